# Raspberry Pi Zero, Zero W and 1: 32-bit system. Static: Debian's armhf start files are ARMv7 and die there.
CORE := ARM1176 (ARMv6, VFP)
RAM := 512 MB
THREADS := 1
LEVELS := scalar
CROSS := arm-linux-gnueabi-
ARCH := -marm -march=armv6kz -mfpu=vfp -mfloat-abi=softfp
STATIC := 1
EMULATOR := qemu-arm
CPUS := arm1176=scalar
DEBS := gcc-arm-linux-gnueabi libc6-dev-armel-cross qemu-user
DEB_ARCH := armhf
