#!/bin/sh
# windows.sh: the program for Windows, built by mingw-w64, checks itself and computes what Linux's does, under wine (tests/board.py);
# what it converts is the same file. Needs what `make deps-long` installs.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
. tests/root.sh
wine=/usr/lib/wine/wine64
command -v x86_64-w64-mingw32-gcc >/dev/null && [ -x $wine ] || skip "needs mingw-w64 and wine (make deps-long)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
export WINEPREFIX="$work/wine" WINEDEBUG=-all

make -j"$(nproc)" build/linnet
make -j"$(nproc)" SYSTEM=windows
program=build/windows/linnet.exe
# same MODEL OPTIONS...: both convert it to the same bytes.
same() {
    build/linnet convert "$@" -o "$work/here.lnt" >/dev/null
    $wine $program convert "$@" -o "$work/there.lnt" >/dev/null
    cmp "$work/here.lnt" "$work/there.lnt"
}
for model in tests/data/models/*.onnx; do
    same "$model"
    same "$model" --int8 dynamic --min-snr 0
done
same tests/data/models/image.onnx --int8 dynamic --min-snr 0 --float '[!x-z]*[a-zA-Z0-9]'
cp "$model" "$work/model.onnx"
ln "$work/model.onnx" "$work/model.lnt"
if $wine $program convert "$work/model.onnx" -o "$work/model.lnt" 2>"$work/why"; then exit 1; fi
grep -q "is a file that is read" "$work/why"
$wine $program info "$work/there.lnt" --json >"$work/info.json"
python3 -m json.tool "$work/info.json" >/dev/null
.deps/venv/bin/python tests/board.py --program $program --emulator $wine --cpus wine
