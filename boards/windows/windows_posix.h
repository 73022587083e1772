/* windows_posix.h — what Linnet uses of POSIX and mingw-w64 has not: included before every source for Windows. */
#ifndef LNT_WINDOWS_POSIX_H
#define LNT_WINDOWS_POSIX_H

#include <direct.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* A function of io.h's that has a name of the program's. */
#define tell linnet_tell

/* ---- memory: what posix_memalign gives is not free's to take ---- */

int lnt_windows_align(void **block, size_t align, size_t bytes);
#define posix_memalign lnt_windows_align
#ifdef LNT_FREES_ALIGNED
#define free _aligned_free
#endif

/* ---- files: bytes as they are, closed in child processes ---- */

#define O_CLOEXEC _O_NOINHERIT
#define O_NONBLOCK 0
#define O_NOCTTY 0
#define O_NOFOLLOW 0
#define O_DIRECTORY 0x40000000
#define S_ISSOCK(mode) 0
#define F_SETFL 4
#define fcntl(fd, command, flags) 0
#define fsync _commit
#define mkdir(path, mode) _mkdir(path)
int lnt_windows_open(const char *path, int flags, ...);
#define open lnt_windows_open
ssize_t lnt_windows_pread(int fd, void *bytes, size_t size, off_t offset);
#define pread lnt_windows_pread
ssize_t lnt_windows_read(int fd, void *bytes, size_t size);
#define read lnt_windows_read
ssize_t lnt_windows_write(int fd, const void *bytes, size_t size);
#define write lnt_windows_write
int lnt_windows_rename(const char *from, const char *to);
#define rename lnt_windows_rename
char *lnt_windows_realpath(const char *path, char *room);
#define realpath lnt_windows_realpath

/* Do these names lead to one file? */
bool lnt_windows_same_file(const char *a, const char *b);

/* Temporaries of writers that were killed stay: a folder has no descriptor here. */
#define AT_SYMLINK_NOFOLLOW 0
#define dirfd(folder) ((void)(folder), -1)
#define fstatat(folder, name, info, flags) ((void)(folder), (void)(name), (void)(info), -1)
#define unlinkat(folder, name, flags) ((void)(folder), (void)(name))
int lnt_windows_kill(int pid, int number);
#define kill lnt_windows_kill

/* ---- streams: e of a mode is the flag above, and a stream into memory is a file until it is closed ---- */

#include "boards/linux_calls.h" /* here: its structure has a field by a name that is defined above */

FILE *lnt_windows_fopen(const char *path, const char *mode);
#define fopen lnt_windows_fopen
FILE *lnt_windows_cookie(void *cookie, const char *mode, cookie_io_functions_t functions);
#define fopencookie lnt_windows_cookie
FILE *lnt_windows_memory_stream(char **text, size_t *bytes);
#define open_memstream lnt_windows_memory_stream
int lnt_windows_fclose(FILE *f);
#define fclose lnt_windows_fclose

/* ---- the machine ---- */

typedef struct cpu_set_t {
    uint64_t bits;
} cpu_set_t;

int lnt_windows_affinity(int pid, size_t bytes, cpu_set_t *set);
#define sched_getaffinity lnt_windows_affinity
#define CPU_COUNT(set) __builtin_popcountll((set)->bits)
enum { _SC_PAGESIZE = 1 };
long lnt_windows_sysconf(int name);
#define sysconf lnt_windows_sysconf

/* A page that cannot be read ends the program as Windows does it. */
#define SIGBUS 7
#define BUS_ADRERR 2
#define SA_SIGINFO 4
#define SA_RESETHAND 8
typedef struct siginfo_t {
    int si_code;
} siginfo_t;
struct sigaction {
    void (*sa_sigaction)(int, siginfo_t *, void *);
    int sa_flags;
};
#define sigaction(number, action, old) ((void)(action))

#endif
