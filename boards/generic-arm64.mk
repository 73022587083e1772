# Any 64-bit ARM; levels are chosen at run time.
CORE := any ARMv8-A
RAM := any
THREADS := all
LEVELS := neon fp16 dotprod i8mm
CROSS := aarch64-linux-gnu-
ARCH := -mcpu=generic
EMULATOR := qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/lib
CPUS := cortex-a53=neon cortex-a72=neon cortex-a76=dotprod max=i8mm
DEBS := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
DEB_ARCH := arm64
