#!/bin/sh
# yocto.sh: do_compile and do_install of the recipe in package/yocto, on the tarball of `make dist`, with Debian's cross compiler for
# arm64 in place of Yocto's; then every installed file must belong to one of its packages, and the program must run under
# emulation. What bitbake itself makes of the recipe is not tried.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/tests/root.sh"
command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null || skip "needs the tools of make deps-long"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$here"
recipe=$(ls package/yocto/linnet_*.bb)
PV=${recipe##*_} PV=${PV%.bb} PN=linnet
make -s dist BOARD=
tar -x -f "build/linnet-$PV.tar.gz" -C "$work"
cd "$work/linnet-$PV"

# What bitbake sets, and the recipe's own lines as the shell has them.
CC="aarch64-linux-gnu-gcc -march=armv8-a+crc -mtune=cortex-a72" AR=aarch64-linux-gnu-ar STRIP=aarch64-linux-gnu-strip
prefix=/usr baselib=lib libdir=/usr/lib datadir=/usr/share D=$work/image WORKDIR=$work
sed -n -e 's/^\([A-Z_]*\) = "\(.*\)"$/\1="\2"/p' -e 's/^FILES:${PN}-\([a-z]*\) +\{0,1\}= "\(.*\)"$/FILES_\1="\2"/p' \
    -e '/^do_[a-z]*() {$/,/^}$/p' "$here/$recipe" >"$work/recipe.sh"
. "$work/recipe.sh"
oe_runmake() {
    eval "make -j$(nproc) $EXTRA_OEMAKE \"\$@\""
}
echo "${LIC_FILES_CHKSUM##*md5=}  LICENSE" | md5sum -c --quiet
do_compile
do_install

cd "$D"
find . ! -type d | sed 's/^\.//' | while read -r file; do
    # bitbake's own of the program, of what is for development, of static libraries.
    for pattern in $FILES_lib $FILES_voices $FILES_dev "$prefix/bin/*" "$prefix/include/*" "$libdir/*.so" "$libdir/*.a" "$libdir/pkgconfig/*"; do
        case $file in $pattern | $pattern/*) continue 2 ;; esac
    done
    echo "no package has $file"
    exit 1
done
qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/lib usr/bin/linnet --version
echo "1 passed, 0 failed"
