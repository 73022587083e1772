#!/bin/sh
# package.sh [ROOT]: the arm64 packages on a Debian 12 of nothing but its base, in a chroot below ROOT (a temporary folder
# by default, removed at the end; made by debootstrap under emulation, some minutes). Installs them with apt-get, which
# has to bring libsndfile for the program and for nothing else, and lets the program verify a model with the golden vectors
# the file carries. Needs root, debootstrap, qemu-user-static.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/tests/root.sh"
needs_emulated qemu-aarch64-static
root=${1:-$(mktemp -d)}
[ -n "$1" ] || trap 'rm -rf --one-file-system "$root"' EXIT INT TERM
make_arm64_root "$root"

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
