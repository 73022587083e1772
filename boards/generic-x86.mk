# Any x86-64, down to the first.
CORE := any x86-64
RAM := any
THREADS := all
LEVELS := scalar avx2 avxvnni avx512 avx512vnni amx
ARCH := -march=x86-64
EMULATOR := qemu-x86_64
CPUS := native Nehalem=scalar
DEBS := qemu-user
DEB_ARCH := amd64
