/* mman.h — files in memory. */
#ifndef LNT_WINDOWS_MMAN_H
#define LNT_WINDOWS_MMAN_H

#include "windows_posix.h"

#define PROT_READ 1
#define MAP_PRIVATE 2
#define MAP_FAILED ((void *)-1)

/* To read alone; offset: a multiple of 64 KB. */
void *lnt_windows_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
#define mmap lnt_windows_mmap
int lnt_windows_munmap(void *bytes, size_t size);
#define munmap lnt_windows_munmap

#endif
