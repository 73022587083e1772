# root.sh: for scripts that try things on a Debian 12 of nothing but its base, in a chroot; they source it.

# skip REASON: ends the script, with one test skipped.
skip() {
    echo "$1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

# needs_emulated PROGRAM: root, debootstrap, an emulator.
needs_emulated() {
    [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null && command -v "$1" >/dev/null ||
        skip "needs root, debootstrap and qemu-user-static (make deps-long)"
}

# The mirror this machine uses; debootstrap knows one of its own.
debian_mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
        sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\).*/\2/p' | head -n 1
}

# make_root ROOT [PACKAGES]: a Debian there by debootstrap, with package sources, proxies and certificates of this machine; as
# it is where there is one.
make_root() {
    if [ ! -e "$1/etc/debian_version" ]; then
        mirror=$(debian_mirror)
        debootstrap --variant=minbase --include="ca-certificates${2:+,$2}" bookworm "$1" ${mirror:+"$mirror"} >"$1.log" 2>&1 ||
            { tail -n 20 "$1.log"; exit 1; }
        rm -f "$1.log"
    fi
    for f in /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/auth.conf.d \
        /etc/pip.conf /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
        if [ -e "$f" ]; then
            mkdir -p "$1$(dirname "$f")"
            cp -rL "$f" "$1$(dirname "$f")/"
        fi
    done
}

# mount_root ROOT, unmount_root ROOT: what programs in it expect of a system.
mount_root() {
    mountpoint -q "$1/proc" || mount -t proc proc "$1/proc"
    mountpoint -q "$1/dev" || mount --bind /dev "$1/dev"
}

unmount_root() {
    for m in proc dev shared; do
        if mountpoint -q "$1/$m"; then umount "$1/$m"; fi
    done
}

# emulate ARCH: the kernel hands programs of arm64 or armhf to the emulator.
emulate() {
    binfmt=/proc/sys/fs/binfmt_misc
    case $1 in
    arm64) emulator=qemu-aarch64 class=02 machine=b7 ;;
    armhf) emulator=qemu-arm class=01 machine=28 ;;
    *) return 0 ;;
    esac
    head="\\x7fELF\\x$class\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x$machine\\x00"
    mask="\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff"
    [ -e $binfmt/register ] || mount -t binfmt_misc none $binfmt
    [ -e $binfmt/$emulator ] || printf '%s' ":$emulator:M::$head:$mask:/usr/bin/$emulator-static:F" >$binfmt/register
}

# make_root_of ARCH ROOT: a Debian of that architecture there; under emulation that takes some minutes. As it is where there is one.
make_root_of() {
    if [ "$1" = "$(dpkg --print-architecture)" ]; then
        make_root "$2"
        return
    fi
    emulate "$1"
    [ ! -e "$2/etc/debian_version" ] || return 0
    mirror=$(debian_mirror)
    [ -n "$mirror" ] && python3 -c "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)" \
        "$mirror/dists/bookworm/Release" >/dev/null 2>&1 ||
        skip "no Debian mirror of this machine's package sources can be reached"
    debootstrap --foreign --arch="$1" --variant=minbase bookworm "$2" "$mirror" >"$2.log" 2>&1 &&
        chroot "$2" /debootstrap/debootstrap --second-stage >>"$2.log" 2>&1 || { tail -n 20 "$2.log"; exit 1; }
    rm -f "$2.log"
}
