# 64-bit RISC-V: the portable fallback.
CORE := any rv64gc
RAM := any
THREADS := all
LEVELS := scalar
CROSS := riscv64-linux-gnu-
EMULATOR := qemu-riscv64 -L /usr/riscv64-linux-gnu
CPUS := rv64=scalar
AUDIO :=
DEBS := gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user
DEB_ARCH := riscv64
