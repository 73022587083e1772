#!/bin/sh
# package.sh [ROOT]: the arm64 packages on a Debian 12 of nothing but its base, in a chroot below ROOT (a temporary folder
# by default, removed at the end; made by debootstrap under emulation, some minutes). Installs them with apt-get, which
# has to bring libsndfile for the program and for nothing else, and lets the program verify a model with the golden vectors
# the file carries. Needs root, debootstrap, qemu-user-static.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
    echo "needs root, debootstrap and qemu-user-static (make deps-long)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
root=${1:-$(mktemp -d)}
[ -n "$1" ] || trap 'rm -rf --one-file-system "$root"' EXIT INT TERM

# The kernel hands arm64 programs to the emulator.
binfmt=/proc/sys/fs/binfmt_misc
[ -e $binfmt/register ] || mount -t binfmt_misc none $binfmt
[ -e $binfmt/qemu-aarch64 ] || printf '%s' ':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F' >$binfmt/register

if [ ! -e "$root/etc/debian_version" ]; then
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
        sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\).*/\2/p' | head -n 1)
    [ -n "$mirror" ] && python3 -c "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)" \
        "$mirror/dists/bookworm/Release" >/dev/null 2>&1 || {
        echo "no Debian mirror of this machine's package sources can be reached"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    }
    debootstrap --foreign --arch=arm64 --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 &&
        chroot "$root" /debootstrap/debootstrap --second-stage >>"$root.log" 2>&1 || { tail -n 20 "$root.log"; exit 1; }
    rm -f "$root.log"
fi

cd "$here"
make BOARD= build/linnet
make BOARD=generic-arm64 AUDIO=1 deps deb
build/linnet convert tests/data/models/image.onnx -o "$root/root/image.lnt"
rm -f "$root"/root/*.deb
cp build/generic-arm64/*_arm64.deb "$root/root/"
QEMU_CPU=cortex-a72 chroot "$root" sh -e -c 'cd /root
    dpkg --purge linnet liblinnet-dev liblinnet0 2>/dev/null
    apt-get -q update || true
    apt-get -q install -y --no-install-recommends ./*.deb
    linnet --version
    if ldd /usr/lib/aarch64-linux-gnu/liblinnet.so | grep sndfile; then exit 1; fi
    ldconfig -p | grep liblinnet.so.0
    linnet verify image.lnt'
echo "1 passed, 0 failed"
