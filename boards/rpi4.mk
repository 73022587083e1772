# Raspberry Pi 4, 400 and Compute Module 4, 64-bit system.
CORE := 4 x Cortex-A72
RAM := 1-8 GB
THREADS := 4
LEVELS := neon
CROSS := aarch64-linux-gnu-
ARCH := -mcpu=cortex-a72+nocrypto
EMULATOR := qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/lib
CPUS := cortex-a72=neon
DEBS := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
DEB_ARCH := arm64
