# Big-endian: here to prove that a little-endian file is refused or read right, never misread.
CORE := any
RAM := any
THREADS := all
LEVELS := scalar
CROSS := s390x-linux-gnu-
# What ISO C's default is here would be computed in double and rounded later.
ARCH := -fexcess-precision=fast
EMULATOR := qemu-s390x -L /usr/s390x-linux-gnu
CPUS := max=scalar
AUDIO :=
DEBS := gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user
REFUSES := 1
DEB_ARCH := s390x
