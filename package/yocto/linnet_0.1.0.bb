# Linnet for a device: library, program and voice, without the converter. Put beside it what `make dist` writes, as
# files/linnet-0.1.0.tar.gz, and name it in an image: IMAGE_INSTALL:append = " linnet". For programs in C, DEPENDS = "linnet".
#
# tests/yocto.sh runs do_compile and do_install as they stand here, with a cross compiler of Debian's.
SUMMARY = "Neural networks on CPUs, from one file"
LICENSE = "MIT"
LIC_FILES_CHKSUM = "file://LICENSE;md5=fdc2e5ab11d99355adf765791cf903de"

SRC_URI = "file://linnet-${PV}.tar.gz"
S = "${WORKDIR}/linnet-${PV}"

DEPENDS = "xxhash python3-native"
inherit pkgconfig

# Pages and completion come from the program itself, which does not run where it is built. What costs decide is of boards/costs.
EXTRA_OEMAKE = "CC='${CC}' AR=${AR} STRIP=${STRIP} CONVERTER= AUDIO= DOCS= PREFIX=${prefix} LIBDIR=${baselib}"

do_compile() {
    oe_runmake all
}

do_install() {
    oe_runmake DESTDIR=${D} install
}

PACKAGES =+ "${PN}-lib ${PN}-voices"
FILES:${PN}-lib = "${libdir}/liblinnet.so.*"
FILES:${PN}-voices = "${datadir}/linnet/voices"
FILES:${PN}-dev += "${libdir}/cmake"
RDEPENDS:${PN} = "${PN}-lib"
RRECOMMENDS:${PN} = "${PN}-voices"
# `make install` strips what it installs.
INSANE_SKIP:${PN} = "already-stripped"
INSANE_SKIP:${PN}-lib = "already-stripped"
