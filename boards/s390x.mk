# Big-endian: here to prove that a little-endian file is refused or read right, never misread.
CROSS := s390x-linux-gnu-
RUN_ENV := qemu-s390x -L /usr/s390x-linux-gnu
DEBS := gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user
REFUSES := 1
