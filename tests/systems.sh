#!/bin/sh
# systems.sh: with musl the static program checks itself and converts as glibc's does; for macOS every source compiles, by zig's clang,
# which has that system's headers. Needs what `make deps-long` and `make deps-wheel` install.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
. tests/root.sh
command -v musl-gcc >/dev/null && [ -e .deps/wheel/ready ] || skip "needs musl-tools and zig (make deps-long deps-wheel)"
work=$(mktemp -d)
trap 'rm -rf "$work" a.o' EXIT INT TERM # zig leaves the latter where it is asked for its version
jobs=-j$(nproc)

make $jobs build/linnet
mkdir -p build/systems/musl
musl-gcc -O2 -I.deps/protobuf-c -c -o build/systems/musl/protobuf-c.o .deps/protobuf-c/protobuf-c/protobuf-c.c
make $jobs BUILD=build/systems/musl STATIC=1 CC="musl-gcc -idirafter /usr/include" CONVERT_LIBS=build/systems/musl/protobuf-c.o all
build/systems/musl/linnet doctor
for model in tests/data/models/*.onnx; do
    build/linnet convert "$model" -o "$work/glibc.lnt" >/dev/null
    build/systems/musl/linnet convert "$model" -o "$work/musl.lnt" >/dev/null
    cmp "$work/glibc.lnt" "$work/musl.lnt"
done
build/systems/musl/linnet say -m speech/voices/robin.lnt "Your tea is ready." -f "$work/tea.wav"

export ZIG_LOCAL_CACHE_DIR="$work/zig" ZIG_GLOBAL_CACHE_DIR="$work/zig"
# zig has names of its own for Arm's cores.
make $jobs SYSTEM=macos CC=".deps/wheel/bin/python -m ziglang cc -target aarch64-macos" CFLAGS_fp16=-mcpu=cortex_a76-dotprod \
    CFLAGS_dotprod=-mcpu=cortex_a76 CFLAGS_i8mm=-mcpu=cortex_a76+i8mm objects
echo "1 passed, 0 failed"
