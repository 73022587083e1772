#!/bin/sh
# fresh.sh [ROOT]: the README's two commands on a Debian 12 that has nothing of ours, in a chroot below ROOT (a temporary
# folder by default, removed at the end). Needs root and debootstrap. Package sources, proxies and certificates are
# taken from this machine: apt's and pip's configuration and the environment; the shared models are mounted if there.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/tests/root.sh"
shared=${LINNET_SHARED:-$here/../shared}
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || skip "needs root and debootstrap (make deps-long)"

root=${1:-$(mktemp -d)}
clean() {
    unmount_root "$root"
    [ -n "$1" ] || rm -rf --one-file-system "$root"
}
trap 'clean "$1"' EXIT INT TERM

make_root "$root" make,git
mount_root "$root"
rm -rf "$root/linnet"
git clone -q "$here" "$root/linnet"
if [ -d "$shared" ]; then
    mkdir -p "$root/shared"
    mount -o bind,ro "$shared" "$root/shared"
fi

for command in "make demo" "make test"; do
    echo "== $command"
    chroot "$root" env HOME=/root LINNET_SHARED=/shared sh -c "cd /linnet && $command"
done
