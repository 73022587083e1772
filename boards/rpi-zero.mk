# Raspberry Pi Zero and 1 (ARMv6, VFP). Static: Debian's armhf start files are ARMv7 and die there.
CROSS := arm-linux-gnueabi-
ARCH := -marm -march=armv6kz -mfpu=vfp -mfloat-abi=softfp
LDFLAGS := -static
RUN_ENV := qemu-arm -cpu arm1176
DEBS := gcc-arm-linux-gnueabi libc6-dev-armel-cross qemu-user
