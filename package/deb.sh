#!/bin/sh
# deb.sh ROOT OUT VERSION ARCH TRIPLE DEPENDS: divides what `make install DESTDIR=ROOT/all PREFIX=/usr` has put there between Debian
# packages: linnet, which depends on DEPENDS; liblinnet0 and liblinnet-dev where there is a shared library. Writes OUT/*.deb.
# Environment: CROSS, prefix of objdump; MAINTAINER; SOURCE_DATE_EPOCH, the time that all files and the packages' changes have.
set -e
root=$1 out=$2 version=$3 arch=$4 triple=$5 depends=$6
export SOURCE_DATE_EPOCH
all=$root/all/usr

# The newest libc that any symbol of a file is from.
libc_of() {
    newest=$("${CROSS}objdump" -T "$1" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
    [ -z "$newest" ] || echo "libc6 (>= ${newest#GLIBC_})"
}

# pack NAME SECTION DEPENDS SUMMARY TEXT: what is in ROOT/NAME.
pack() {
    doc=$root/$1/usr/share/doc/$1
    mkdir -p "$doc" "$root/$1/DEBIAN"
    install -m 644 package/copyright "$doc/copyright"
    printf 'linnet (%s) unstable; urgency=medium\n\n  * Version %s: CHANGELOG.md of the source lists what changed.\n\n -- %s  %s\n' \
        "$version" "${version%-*}" "$MAINTAINER" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" |
        gzip -9n >"$doc/changelog.Debian.gz"
    (cd "$root/$1" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
    printf '%s\n' "Package: $1" "Source: linnet" "Version: $version" "Architecture: $arch" "Maintainer: $MAINTAINER" \
        "Installed-Size: $(du -k -s --apparent-size "$root/$1/usr" | cut -f 1)" "${3:+Depends: $3}" "Section: $2" \
        "Priority: optional" "${6:+Multi-Arch: $6}" "Description: $4" "$5" | grep . >"$root/$1/DEBIAN/control"
    find "$root/$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$root/$1" "$out/$1_${version}_$arch.deb"
}

mkdir -p "$root/linnet/usr"
mv "$all/bin" "$all/share" "$root/linnet/usr/"
libc=$(libc_of "$root/linnet/usr/bin/linnet")
if [ -z "$libc" ]; then
    mkdir -p "$root/linnet/usr/share/lintian/overrides"
    echo "linnet: statically-linked-binary [usr/bin/linnet]" >"$root/linnet/usr/share/lintian/overrides/linnet"
fi
[ -z "$libc" ] || depends=$libc${depends:+, $depends}
pack linnet science "$depends" "neural networks on CPUs, from one file" \
    " Runs models that were converted from ONNX once, on x86 and ARM, and says how
 fast they are and whether they compute what they should."
[ -e "$all/lib/$triple/liblinnet.so" ] || exit 0

lib=usr/lib/$triple
mkdir -p "$root/liblinnet0/$lib" "$root/liblinnet0/DEBIAN" "$root/liblinnet-dev/usr"
mv "$all"/lib/"$triple"/liblinnet.so.* "$root/liblinnet0/$lib/"
chmod 644 "$root/liblinnet0/$lib"/liblinnet.so.*
mv "$all/lib" "$all/include" "$root/liblinnet-dev/usr/"
echo "liblinnet 0 liblinnet0 (>= ${version%-*})" >"$root/liblinnet0/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$root/liblinnet0/DEBIAN/triggers"
pack liblinnet0 libs "$(libc_of "$(echo "$root/liblinnet0/$lib"/liblinnet.so.0.*)")" "neural networks on CPUs, from one file: library" \
    " Loads files that the program linnet has converted from ONNX, and runs them." same
pack liblinnet-dev libdevel "liblinnet0 (= $version)" "neural networks on CPUs, from one file: for programs in C" \
    " Headers, static libraries, and configurations for pkg-config and CMake." same
