# Any 64-bit ARM: Raspberry Pi 3 and later with a 64-bit system. Levels are chosen at run time.
CROSS := aarch64-linux-gnu-
ARCH := -march=armv8-a
RUN_ENV := qemu-aarch64 -cpu cortex-a53 -L /usr/aarch64-linux-gnu
DEBS := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
