#!/bin/sh
# wheel.sh: `make wheel`, then each wheel held to its name by auditwheel and by what it was compiled for; this machine's is installed
# with numpy alone into an empty environment, where wheel_smoke.py runs. package.sh installs them on systems of nothing else.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
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
    program="qemu-arm -cpu $cpu -L /usr/arm-linux-gnueabihf -E LD_LIBRARY_PATH=/lib build/wheel/armv7l/package/linnet"
    $program convert "$model" -o "$work/model.lnt"
    $program verify "$work/model.lnt"
done

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check build/wheels/*manylinux*_x86_64.whl
(cd "$work" && PATH="$work/venv/bin:$PATH" python "$here/tests/wheel_smoke.py" "$model")
echo "1 passed, 0 failed"
