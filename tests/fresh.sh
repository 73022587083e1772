#!/bin/sh
# fresh.sh [ROOT]: the README's two commands on a Debian 12 that has nothing of ours, in a chroot below ROOT (a temporary
# folder by default, removed at the end). Needs root and debootstrap. Package sources, proxies and certificates are
# taken from this machine: apt's and pip's configuration and the environment; the shared models are mounted if there.
set -e

here=$(cd "$(dirname "$0")/.." && pwd)
shared=${LINNET_SHARED:-$here/../shared}
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "fresh.sh needs root and debootstrap (apt-get install debootstrap)" >&2
    exit 1
fi

root=${1:-$(mktemp -d)}
clean() {
    for m in proc dev shared; do
        mountpoint -q "$root/$m" && umount "$root/$m"
    done
    [ -n "$1" ] || rm -rf --one-file-system "$root"
}
trap 'clean "$1"' EXIT INT TERM

# The mirror this machine uses; debootstrap knows one of its own.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
    sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\).*/\2/p' | head -n 1)

if [ ! -e "$root/etc/debian_version" ]; then
    debootstrap --variant=minbase --include=make,git,ca-certificates bookworm "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 ||
        { tail -n 20 "$root.log"; exit 1; }
    rm -f "$root.log"
fi

for f in /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/auth.conf.d \
    /etc/pip.conf /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
    if [ -e "$f" ]; then
        mkdir -p "$root$(dirname "$f")"
        cp -rL "$f" "$root$(dirname "$f")/"
    fi
done

mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mountpoint -q "$root/dev" || mount --bind /dev "$root/dev"
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
