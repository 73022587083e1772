#!/bin/sh
# vm.sh [KERNEL]: a voice of 60 MB in a virtual 64-bit ARM machine with 512 MB (init.c says what is tried). KERNEL is a vmlinuz
# for arm64, as in Debian's linux-image-cloud-arm64, by default the one that make deps-long fetches. Needs
# qemu-system-aarch64, cpio, the cross compiler, .deps/venv.
set -e

kernel=$(realpath -m "${1:-$(dirname "$0")/../../.deps/vm/vmlinuz}")
cd "$(dirname "$0")/../.."
if [ ! -f "$kernel" ] || ! command -v qemu-system-aarch64 >/dev/null || ! command -v cpio >/dev/null; then
    echo "needs $kernel, qemu-system-aarch64 and cpio (make deps-long, as root)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
work=build/vm
mkdir -p $work/root
make -s BOARD= build/linnet
make -s BOARD=rpi4 STATIC=1 BUILD=build/rpi4-static build/rpi4-static/linnet
aarch64-linux-gnu-gcc -O2 -static -o $work/root/init tests/vm/init.c
aarch64-linux-gnu-strip -o $work/root/linnet build/rpi4-static/linnet
if [ ! -e $work/voice.lnt ]; then
    (cd tests/python && ../../.deps/venv/bin/python -c "
import sys; sys.path.insert(0, 'builders')
import voice, harness
model, fed = voice.build(voice.MEDIUM), voice.inputs(3, size=voice.MEDIUM)
harness.write_case('../../$work/voice', model, fed, harness.reference(model, fed))")
    build/linnet convert $work/voice/model.onnx -o $work/voice.lnt --golden $work/voice/test_data_set_0 >$work/convert.txt
fi
cp $work/voice.lnt $work/root/
(cd $work/root && ls | cpio -o -H newc 2>/dev/null) >$work/initrd
qemu-system-aarch64 -M virt -cpu cortex-a72 -m 512 -nic none -nographic -no-reboot -kernel "$kernel" -initrd $work/initrd \
    -append "console=ttyAMA0 quiet panic=-1" | tee $work/console.txt
grep -q "vm: 2 passed, 0 failed" $work/console.txt
echo "2 passed, 0 failed"
