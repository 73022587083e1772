# Raspberry Pi 3, 64-bit system.
CORE := 4 x Cortex-A53
RAM := 1 GB
THREADS := 4
LEVELS := neon
CROSS := aarch64-linux-gnu-
ARCH := -mcpu=cortex-a53
EMULATOR := qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/lib
CPUS := cortex-a53=neon
DEBS := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
DEB_ARCH := arm64
