#!/bin/sh
# package.sh ARCH [ROOT]: what Linnet is installed by, on a Debian 12 of nothing but its base (amd64, arm64 or armhf), in a chroot at
# ROOT (a temporary folder by default, removed at the end), for ARM under emulation. One after another, each removed before the next:
#   the Debian packages, by apt-get, which has to bring libsndfile for the program and for nothing else
#   the wheel, by pip, with Debian's numpy: wheel_smoke.py runs
#   the tarball of `make dist`, unpacked, built and installed: there on amd64, from here for ARM
# After packages and tarball the program verifies a model with the golden vectors that the file carries, speaks, and a program in C
# is compiled by what pkg-config says. Needs root, debootstrap and, for ARM, qemu-user-static.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/tests/root.sh"
arch=$1
case $arch in
amd64) build=build board= wheel=x86_64 emulator=true ;;
arm64) build=build/generic-arm64 board=generic-arm64 wheel=aarch64 emulator=qemu-aarch64-static QEMU_CPU=cortex-a72 ;;
armhf) build=build/generic-armhf board=generic-armhf wheel=armv7l emulator=qemu-arm-static QEMU_CPU=cortex-a7 ;;
*) echo "usage: package.sh amd64|arm64|armhf [ROOT]"; exit 2 ;;
esac
needs_emulated $emulator
work=$(mktemp -d)
root=${2:-$work/root}
clean() {
    unmount_root "$root"
    rm -rf --one-file-system "$work"
}
trap clean EXIT INT TERM
make_root_of "$arch" "$root"
mount_root "$root"
rm -rf "$root"/usr/local/*
[ -z "$QEMU_CPU" ] || export QEMU_CPU

inside() {
    chroot "$root" env HOME=/root DEBIAN_FRONTEND=noninteractive sh -e -c "cd /root && $1"
}

# What an installed Linnet does.
smoke() {
    inside 'ldconfig -p | grep liblinnet.so.0
        linnet --version
        linnet verify image.lnt
        linnet say "Your tea is ready." -f tea.wav && [ "$(stat -c %s tea.wav)" -gt 20000 ] && rm tea.wav
        gcc loads.c $(pkg-config --cflags --libs linnet) -o loads
        ./loads image.lnt'
}

cd "$here"
make BOARD= build/linnet
build/linnet convert tests/data/models/image.onnx -o "$root/root/image.lnt"
cat >"$root/root/loads.c" <<'END'
#include <linnet.h>
#include <stdio.h>

int main(int count, char **words)
{
    lnt_model *model = NULL;
    lnt_error error = {0};
    if (count != 2 || lnt_model_create(words[1], NULL, &model, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    lnt_model_destroy(&model);
    return puts(lnt_version()) < 0;
}
END
inside 'apt-get -q update || true
    dpkg --purge linnet liblinnet-dev liblinnet0 2>/dev/null
    apt-get -q install -y --no-install-recommends gcc libc6-dev pkg-config python3-numpy python3-pip'

echo "== packages"
make BOARD=$board AUDIO=1 deps deb
rm -f "$root"/root/*.deb
cp $build/*_"$arch".deb "$root/root/"
inside 'apt-get -q install -y --no-install-recommends ./*.deb
    if ldd /usr/lib/*/liblinnet.so | grep sndfile; then exit 1; fi'
smoke
inside 'dpkg --purge linnet liblinnet-dev liblinnet0
    if command -v linnet; then exit 1; fi'

echo "== wheel"
make wheel WHEELS=$wheel
rm -f "$root"/root/*.whl
cp build/wheels/*_$wheel.whl tests/wheel_smoke.py tests/data/models/image.onnx "$root/root/"
inside 'pip install -q --break-system-packages --no-index --no-deps --force-reinstall ./*.whl
    python3 wheel_smoke.py image.onnx
    pip uninstall -q -y --break-system-packages linnet'

echo "== tarball"
make dist
tarball=$(ls -t build/linnet-*.tar.gz | head -n 1)
name=$(basename "$tarball" .tar.gz)
rm -rf "$root/root/$name"
if [ "$arch" = amd64 ]; then
    tar -xzf "$tarball" -C "$root/root"
    inside "apt-get -q install -y --no-install-recommends make
        cd $name && make deps && make && make install"
else
    tar -xzf "$tarball" -C "$work"
    make -C "$work/$name" BOARD=$board AUDIO=
    make -C "$work/$name" BOARD=$board AUDIO= install DESTDIR="$root"
    inside ldconfig
fi
smoke
echo "1 passed, 0 failed"
