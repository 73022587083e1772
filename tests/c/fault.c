/* fault.c — takes the place of libc's functions so that a chosen call of them fails. */
#include "fault.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef enum class {
    OPEN, READ, WRITE, STAT, MAP, SYNC, CLOSE, RENAME, THREAD, PROCESS, MEMORY,
    CLASSES, NONE = CLASSES
} class;
typedef enum kind { PASS, FAIL, SHORT, AGAIN, FULL } kind;

static const char *const class_name[CLASSES] = {"open", "read",  "write",  "stat",   "map",
                                                "sync", "close", "rename", "thread", "process", "memory"};
static const char *const kind_name[] = {"pass", "fail", "short", "again", "full"};
static const int class_error[CLASSES] = {EMFILE, EIO, ENOSPC, EIO, ENODEV, EIO, EIO, EACCES, EAGAIN, EAGAIN, ENOMEM};

static _Atomic(class) armed = NONE;
static _Atomic(unsigned long) left; /* calls until the fault, that one included */
static _Atomic(bool) happened;
static kind how;
static const char *caller, *spared, *log_file;

void fault_arm(const char *name, const char *kind_text, unsigned long n)
{
    class c = 0;
    while (c < CLASSES && strcmp(class_name[c], name) != 0)
        c++;
    how = FAIL;
    while (how < FULL && strcmp(kind_name[how], kind_text) != 0)
        how++;
    happened = false;
    left = n;
    armed = c;
}

bool fault_disarm(void)
{
    armed = NONE;
    return happened;
}

__attribute__((constructor)) static void arm_from_environment(void)
{
    const char *text = getenv("FAULT");
    char name[16], kind_text[16];
    unsigned long n;
    caller = getenv("FAULT_CALLER");
    spared = getenv("FAULT_SPARED");
    log_file = getenv("FAULT_LOG");
    if (text && sscanf(text, "%15s %15s %lu", name, kind_text, &n) == 3)
        fault_arm(name, kind_text, n);
}

/* The name of the object whose code is at from. */
static const char *object_of(const void *from)
{
    Dl_info where;
    return dladdr(from, &where) && where.dli_fname ? where.dli_fname : "";
}

static bool calls_count(const void *from)
{
    if (!caller && !spared)
        return true;
    const char *name = object_of(from);
    return (!caller || strstr(name, caller)) && (!spared || !strstr(name, spared));
}

/* What becomes of a call of class c, made from the code at from. */
static kind fault_of(class c, const void *from)
{
    if (armed != c || !calls_count(from))
        return PASS;
    if (happened)
        return how == FULL ? FULL : PASS;
    if (atomic_fetch_sub(&left, 1) != 1)
        return PASS;
    happened = true;
    if (log_file)
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, log_file, O_WRONLY | O_CREAT, 0666));
    return how;
}

/* The next definition of the function that it stands in. */
#define REAL(name)                                     \
    static __typeof__(name) *real;                     \
    if (!real)                                         \
        *(void **)&real = dlsym(RTLD_NEXT, #name)

#define FAULT(c) fault_of((c), __builtin_return_address(0))

static int refuse(class c, kind k)
{
    errno = k == AGAIN ? EINTR : class_error[c];
    return -1;
}

/* ---- files ---- */

#define OPEN_AS(name)                                                                                        \
    int name(const char *path, int flags, ...)                                                               \
    {                                                                                                        \
        va_list rest;                                                                                        \
        va_start(rest, flags);                                                                               \
        const unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, unsigned) : 0;                    \
        va_end(rest);                                                                                        \
        const kind k = FAULT(OPEN);                                                                          \
        return k ? refuse(OPEN, k) : (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);    \
    }
OPEN_AS(open)
OPEN_AS(open64)

#define FOPEN_AS(name)                                                                                       \
    FILE *name(const char *path, const char *mode)                                                           \
    {                                                                                                        \
        REAL(name);                                                                                 \
        const kind k = FAULT(OPEN);                                                                          \
        return k ? (refuse(OPEN, k), NULL) : real(path, mode);                                               \
    }
FOPEN_AS(fopen)
FOPEN_AS(fopen64)

DIR *opendir(const char *path)
{
    REAL(opendir);
    const kind k = FAULT(OPEN);
    return k ? (refuse(OPEN, k), NULL) : real(path);
}

#define READDIR_AS(name, type)                                                                               \
    struct type *name(DIR *d)                                                                                \
    {                                                                                                        \
        REAL(name);                                                                                          \
        const kind k = FAULT(READ);                                                                          \
        return k == FAIL || k == FULL ? (refuse(READ, k), NULL) : real(d);                                   \
    }
READDIR_AS(readdir, dirent)
READDIR_AS(readdir64, dirent64)

static size_t part(kind k, size_t n)
{
    return k == SHORT ? (n + 1) / 2 : n;
}

static bool refused(kind k)
{
    return k != PASS && k != SHORT;
}

ssize_t read(int fd, void *bytes, size_t n)
{
    const kind k = FAULT(READ);
    return refused(k) ? refuse(READ, k) : syscall(SYS_read, fd, bytes, part(k, n));
}

#define PREAD_AS(name, offset_type)                                                                          \
    ssize_t name(int fd, void *bytes, size_t n, offset_type offset)                                          \
    {                                                                                                        \
        REAL(pread64);                                                                            \
        const kind k = FAULT(READ);                                                                          \
        return refused(k) ? refuse(READ, k) : real(fd, bytes, part(k, n), (off64_t)offset);                  \
    }
PREAD_AS(pread, off_t)
PREAD_AS(pread64, off64_t)

ssize_t write(int fd, const void *bytes, size_t n)
{
    const kind k = FAULT(WRITE);
    return refused(k) ? refuse(WRITE, k) : syscall(SYS_write, fd, bytes, part(k, n));
}

#define STAT_AS(name, first, type)                                                                           \
    int name(first, struct type *info)                                                                       \
    {                                                                                                        \
        REAL(name);                                                                                    \
        const kind k = FAULT(STAT);                                                                          \
        return k ? refuse(STAT, k) : real(what, info);                                                       \
    }
STAT_AS(stat, const char *restrict what, stat)
STAT_AS(fstat, int what, stat)
STAT_AS(stat64, const char *restrict what, stat64)
STAT_AS(fstat64, int what, stat64)

#define MMAP_AS(name, offset_type)                                                                           \
    void *name(void *at, size_t n, int protection, int flags, int fd, offset_type offset)                    \
    {                                                                                                        \
        REAL(mmap64);                                                                              \
        const kind k = fd >= 0 ? FAULT(MAP) : PASS;                                                          \
        return k ? (refuse(MAP, k), MAP_FAILED) : real(at, n, protection, flags, fd, (off64_t)offset);       \
    }
MMAP_AS(mmap, off_t)
MMAP_AS(mmap64, off64_t)

int fsync(int fd)
{
    const kind k = FAULT(SYNC);
    return k ? refuse(SYNC, k) : (int)syscall(SYS_fsync, fd);
}

/* Closed it is in any case, as by the kernel. */
int close(int fd)
{
    const kind k = FAULT(CLOSE);
    const int failed = (int)syscall(SYS_close, fd);
    return k ? refuse(CLOSE, k) : failed;
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    const kind k = FAULT(RENAME);
    return k ? refuse(RENAME, k) : real(from, to);
}

/* ---- threads and processes ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *how_to, void *(*run)(void *), void *arg)
{
    REAL(pthread_create);
    return FAULT(THREAD) ? EAGAIN : real(thread, how_to, run, arg);
}

pid_t fork(void)
{
    REAL(fork);
    const kind k = FAULT(PROCESS);
    return k ? refuse(PROCESS, FAIL) : real();
}

int pipe(int ends[2])
{
    REAL(pipe);
    const kind k = FAULT(PROCESS);
    return k ? refuse(PROCESS, FAIL) : real(ends);
}

int pipe2(int ends[2], int flags)
{
    REAL(pipe2);
    const kind k = FAULT(PROCESS);
    return k ? refuse(PROCESS, FAIL) : real(ends, flags);
}

/* ---- memory ---- */

/* Blocks that watched objects asked for and nobody gave back: a hash table with linear probing. */
enum { LIVE = 1 << 16 };
static void *live[LIVE];
static size_t n_live;
static char watched[64];
static atomic_flag busy = ATOMIC_FLAG_INIT;

static size_t home_of(const void *block)
{
    return (size_t)(((uint64_t)(uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u >> 48);
}

static size_t next_of(size_t i)
{
    return (i + 1) % LIVE;
}

static bool is_watched(const void *from)
{
    const char *name = object_of(from);
    char words[sizeof watched], *rest;
    strcpy(words, watched);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (strstr(name, word))
            return true;
    return false;
}

static void *taken(void *block, const void *from)
{
    if (!*watched || !block || !is_watched(from))
        return block;
    while (atomic_flag_test_and_set(&busy))
        ;
    if (n_live < LIVE / 2) {
        size_t i = home_of(block);
        while (live[i])
            i = next_of(i);
        live[i] = block;
        n_live++;
    }
    atomic_flag_clear(&busy);
    return block;
}

/* Entries behind the one that leaves move up, if their home is not between the two places. */
static void take_out(size_t hole)
{
    for (size_t i = next_of(hole); live[i]; i = next_of(i))
        if ((i - home_of(live[i])) % LIVE >= (i - hole) % LIVE) {
            live[hole] = live[i];
            hole = i;
        }
    live[hole] = NULL;
    n_live--;
}

static void given_back(const void *block)
{
    if (!*watched || !block)
        return;
    while (atomic_flag_test_and_set(&busy))
        ;
    size_t i = home_of(block);
    while (live[i] && live[i] != block)
        i = next_of(i);
    if (live[i])
        take_out(i);
    atomic_flag_clear(&busy);
}

void fault_watch(const char *objects)
{
    snprintf(watched, sizeof watched, "%s", objects);
}

size_t fault_blocks(void)
{
    return n_live;
}

#define NO_MEMORY (refuse(MEMORY, FAIL), NULL)
#define TAKEN(block) taken(block, __builtin_return_address(0))

void *malloc(size_t n)
{
    REAL(malloc);
    return FAULT(MEMORY) ? NO_MEMORY : TAKEN(real(n));
}

/* A block that is left where it is, because there is no memory, is noted anew. */
void *realloc(void *block, size_t n)
{
    REAL(realloc);
    if (FAULT(MEMORY))
        return NO_MEMORY;
    given_back(block);
    void *moved = real(block, n);
    TAKEN(moved || !n ? moved : block);
    return moved;
}

void *aligned_alloc(size_t alignment, size_t n)
{
    REAL(aligned_alloc);
    return FAULT(MEMORY) ? NO_MEMORY : TAKEN(real(alignment, n));
}

int posix_memalign(void **block, size_t alignment, size_t n)
{
    REAL(posix_memalign);
    const int error = FAULT(MEMORY) ? ENOMEM : real(block, alignment, n);
    if (!error)
        TAKEN(*block);
    return error;
}

/* dlsym may ask for memory before there is a calloc to pass it on to. */
static _Alignas(64) char early[4096];

void *calloc(size_t n, size_t size)
{
    static size_t used;
    static bool looking;
    static void *(*real)(size_t, size_t);
    if (!real && looking) {
        char *block = early + used;
        used += (n * size + 63) / 64 * 64;
        return used <= sizeof early ? block : NULL;
    }
    if (!real) {
        looking = true;
        *(void **)&real = dlsym(RTLD_NEXT, "calloc");
    }
    return FAULT(MEMORY) ? NO_MEMORY : TAKEN(real(n, size));
}

void free(void *block)
{
    static bool looking;
    static void (*real)(void *);
    if (!block || ((char *)block >= early && (char *)block < early + sizeof early) || (!real && looking))
        return;
    if (!real) {
        looking = true;
        *(void **)&real = dlsym(RTLD_NEXT, "free");
    }
    given_back(block);
    real(block);
}
