# Any 32-bit ARMv7: Raspberry Pi 2 and later with a 32-bit system. NEON is a level, used where the CPU has it.
CORE := any ARMv7-A
RAM := any
THREADS := all
LEVELS := scalar neon
CROSS := arm-linux-gnueabihf-
ARCH := -march=armv7-a -mfpu=vfpv3-d16
ARMV7 := 1
EMULATOR := qemu-arm -L /usr/arm-linux-gnueabihf -E LD_LIBRARY_PATH=/lib
CPUS := cortex-a7=neon cortex-a7,neon=off=scalar
DEBS := gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user
DEB_ARCH := armhf
