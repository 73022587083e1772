#!/bin/sh
# container.sh [WORK]: the lines of package/Dockerfile, one after another, each stage in a chroot of Debian's base below WORK (a
# temporary folder by default, removed at the end); then its program says its version, converts a model and verifies it. Needs
# root and debootstrap.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/tests/root.sh"
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || skip "needs root and debootstrap (make deps-long)"
work=${1:-$(mktemp -d)}
stage=0
clean() {
    for root in "$work"/stage*; do
        unmount_root "$root"
    done
    [ -n "$1" ] || rm -rf --one-file-system "$work"
}
trap 'clean "$1"' EXIT INT TERM
make_root "$work/base"

# A line of the file at a time: INSTRUCTION and its words.
instruction() {
    case $1 in
    FROM)
        case $2 in debian:12*) ;; *) echo "container.sh knows debian:12, not $2"; exit 1 ;; esac
        stage=$((stage + 1))
        root=$work/stage$stage
        folder=/
        [ -e "$root" ] || cp -a "$work/base" "$root"
        [ "$3" != AS ] || echo "$stage" >"$work/$4"
        mount_root "$root" ;;
    WORKDIR)
        folder=$2
        mkdir -p "$root$folder" ;;
    COPY)
        case $2 in
        --from=*) cp "$work/stage$(cat "$work/${2#--from=}")"$3 "$root$4" ;;
        .) git -C "$here" archive HEAD | tar -x -C "$root$folder" ;;
        esac ;;
    RUN)
        shift
        chroot "$root" env HOME=/root DEBIAN_FRONTEND=noninteractive sh -e -c "cd $folder && $*" ;;
    ENTRYPOINT) program=$(echo "$2" | tr -d '["]') ;;
    *) echo "container.sh does not know $1"; exit 1 ;;
    esac
}
set -f # patterns are the chroots' affair
grep -v -e '^#' -e '^$' "$here/package/Dockerfile" >"$work/lines"
while read -r line; do
    echo "== $line"
    set -- $line
    case $1 in COPY) set +f ;; esac
    instruction "$@" </dev/null
    set -f
done <"$work/lines"

cp "$here/tests/data/models/image.onnx" "$root$folder"
for command in --version "convert image.onnx -o image.lnt" "verify image.lnt"; do
    chroot "$root" sh -e -c "cd $folder && $program $command"
done
echo "1 passed, 0 failed"
