# Windows on x86-64, by mingw-w64: make SYSTEM=windows. Programs and libraries need nothing that Windows has not.
CROSS := x86_64-w64-mingw32-
DEBS := gcc-mingw-w64-x86-64-posix
CONVERTER ?= 1
SPEECH := 0
AUDIO :=
# Windows calls functions with a stack of 16 bytes' alignment, GCC trusts in more for what it spills of a vector.
ARCH := -Wa,-muse-unaligned-vector-move
CPPFLAGS += -D_WIN32_WINNT=0x0601 -D_FILE_OFFSET_BITS=64 -D__USE_MINGW_ANSI_STDIO=1
# Of ELF's symbols, of formats of a C library that is not linked, of isfinite() in its headers, of forks, of names in windows_posix.h.
WARN_SYSTEM := -Wno-attributes -Wno-format -Wno-conversion -Wno-float-conversion -Wno-unused-function -Wno-shadow
LEFT_OUT := cli/data/suite.c cli/measure/duel.c cli/measure/ort.c cli/measure/worker.c cli/shell/library_dl.c
PRODUCTS = $(BUILD)/linnet.exe $(BUILD)/liblinnet.dll $(BUILD)/liblinnet.a
# As Debian's wine64 has it, which is in no folder of programs.
EMULATOR := /usr/lib/wine/wine64
CPUS := wine
