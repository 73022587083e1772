# Any 64-bit ARM; levels are chosen at run time.
CORE := any ARMv8-A
RAM := any
THREADS := all
LEVELS := neon
CROSS := aarch64-linux-gnu-
ARCH := -march=armv8-a
EMULATOR := qemu-aarch64 -L /usr/aarch64-linux-gnu
CPUS := cortex-a53=neon cortex-a72=neon cortex-a76=neon max=neon
DEBS := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
DEB_ARCH := arm64
