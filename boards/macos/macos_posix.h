/* macos_posix.h — what Linnet uses of Linux and macOS has not: included before every source of a build for macOS. */
#ifndef LNT_MACOS_POSIX_H
#define LNT_MACOS_POSIX_H

#include "boards/linux_calls.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* A function of unistd.h's that has a name of the library's. */
#define pause linnet_pause

/* ---- descriptors: flags are set behind the call ---- */

int lnt_macos_pipe(int ends[2], int flags);
#define pipe2 lnt_macos_pipe
int lnt_macos_accept(int fd); /* from whom is not told */
#define accept4(fd, from, bytes, flags) lnt_macos_accept(fd)
#define fdatasync fsync
#define POSIX_FADV_DONTNEED 0
#define posix_fadvise(fd, offset, bytes, advice) 0

/* ---- streams ---- */

FILE *lnt_macos_cookie(void *cookie, const char *mode, cookie_io_functions_t functions);
#define fopencookie lnt_macos_cookie

/* ---- the machine ---- */

typedef struct cpu_set_t {
    uint32_t processors;
} cpu_set_t;
int lnt_macos_affinity(int pid, size_t bytes, cpu_set_t *set);
#define sched_getaffinity lnt_macos_affinity
#define CPU_COUNT(set) ((int)(set)->processors)
/* A process's clock is its own affair: a case of the suite is ended by the wall's. */
#define clock_getcpuclockid(pid, clock) ((void)(pid), (void)(clock), -1)

#endif
