# root.sh: for scripts that try packages on a Debian 12 of nothing but its base; they source it.

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

# The kernel hands arm64 programs to the emulator.
emulate_arm64() {
    binfmt=/proc/sys/fs/binfmt_misc
    [ -e $binfmt/register ] || mount -t binfmt_misc none $binfmt
    [ -e $binfmt/qemu-aarch64 ] || printf '%s' ':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F' >$binfmt/register
}

# make_arm64_root ROOT: a Debian there by debootstrap under emulation, some minutes; as it is where there is one.
make_arm64_root() {
    emulate_arm64
    [ ! -e "$1/etc/debian_version" ] || return 0
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
        sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\).*/\2/p' | head -n 1)
    [ -n "$mirror" ] && python3 -c "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)" \
        "$mirror/dists/bookworm/Release" >/dev/null 2>&1 ||
        skip "no Debian mirror of this machine's package sources can be reached"
    debootstrap --foreign --arch=arm64 --variant=minbase bookworm "$1" "$mirror" >"$1.log" 2>&1 &&
        chroot "$1" /debootstrap/debootstrap --second-stage >>"$1.log" 2>&1 || { tail -n 20 "$1.log"; exit 1; }
    rm -f "$1.log"
}
