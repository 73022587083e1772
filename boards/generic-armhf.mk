# 32-bit ARMv7 with NEON: Raspberry Pi 2 and later with a 32-bit system.
CROSS := arm-linux-gnueabihf-
ARCH := -march=armv7-a+neon-vfpv4 -mfpu=neon-vfpv4 -DLNT_ARMV7
ARMV7 := 1
RUN_ENV := qemu-arm -cpu cortex-a7 -L /usr/arm-linux-gnueabihf
DEBS := gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user
