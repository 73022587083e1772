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
for model in tests/data/models/*.onnx; do
    for options in "--opt all" "--int8 dynamic --min-snr 0 --float *[0-4]*"; do
        set -f
        build/linnet convert "$model" -o "$work/here.lnt" $options >/dev/null
        $wine $program convert "$model" -o "$work/there.lnt" $options >/dev/null
        set +f
        cmp "$work/here.lnt" "$work/there.lnt"
    done
done
$wine $program info "$work/there.lnt" --json >"$work/info.json"
python3 -m json.tool "$work/info.json" >/dev/null
.deps/venv/bin/python tests/board.py --program $program --emulator $wine --cpus wine
