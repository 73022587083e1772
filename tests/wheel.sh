#!/bin/sh
# wheel.sh [ROOT]: `make wheel`, then each wheel held to its name by auditwheel and by what it was compiled for; installed with numpy
# alone into an empty environment of this machine, and on an arm64 Debian of nothing but its base, in a chroot below ROOT (a
# temporary folder by default, removed at the end), where wheel_smoke.py runs under emulation. The latter needs root,
# debootstrap and qemu-user-static.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
. tests/root.sh
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT INT TERM
model=$here/tests/data/models/image.onnx

make wheel
for wheel in build/wheels/*manylinux*.whl; do
    .deps/wheel/bin/auditwheel show "$wheel" | tee "$work/shown" | head -n 5
    newest=$(sed -n 's/.*tag: "manylinux_2_\([0-9]*\)_.*/\1/p' "$work/shown" | head -n 1)
    [ "${newest:-99}" -le 28 ]
done
for arch in armv6l armv7l; do
    for file in linnet liblinnet_python.so; do
        newest=$(arm-linux-gnueabihf-objdump -T build/wheel/$arch/$file | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
        [ "$(printf 'GLIBC_2.28\n%s\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.28 ]
    done
done
# Debian has no system for ARMv6 to run it on: no instruction may be one that came with ARMv7.
for file in linnet liblinnet_python.so; do
    arm-linux-gnueabihf-objdump -d build/wheel/armv6l/$file >"$work/code"
    if grep -E '\b(movw|movt|dmb|ubfx|bfi|udiv|sdiv)\b' "$work/code"; then exit 1; fi
done
for cpu in cortex-a7 cortex-a7,neon=off; do
    program="qemu-arm -cpu $cpu -L /usr/arm-linux-gnueabihf build/wheel/armv7l/package/linnet"
    $program convert "$model" -o "$work/model.lnt"
    $program verify "$work/model.lnt"
done

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check build/wheels/*manylinux*_x86_64.whl
(cd "$work" && PATH="$work/venv/bin:$PATH" python "$here/tests/wheel_smoke.py" "$model")

needs_emulated qemu-aarch64-static
root=${1:-$work/root}
make_arm64_root "$root"
rm -f "$root"/root/*.whl
cp build/wheels/*aarch64.whl tests/wheel_smoke.py "$model" "$root/root/"
chroot "$root" sh -e -c 'cd /root
    apt-get -q update || true
    apt-get -q install -y --no-install-recommends python3-numpy python3-pip
    pip install -q --break-system-packages --no-index --no-deps --force-reinstall ./*.whl
    QEMU_CPU=cortex-a53 python3 wheel_smoke.py image.onnx'
echo "1 passed, 0 failed"
