# Raspberry Pi 5, 500 and Compute Module 5, 64-bit system; its kernel has 16 KB pages.
CORE := 4 x Cortex-A76
RAM := 2-16 GB
THREADS := 4
LEVELS := fp16 dotprod
CROSS := aarch64-linux-gnu-
ARCH := -mcpu=cortex-a76
EMULATOR := qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/lib
CPUS := cortex-a76=dotprod
DEBS := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
DEB_ARCH := arm64
