/* macos_posix.c — what Linnet uses of Linux, made of what macOS has. */
#include "macos_posix.h"
#include "sys/auxv.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/sysctl.h>

/* fd with these flags, those of open. */
static int with_flags(int fd, int flags)
{
    if (fd >= 0 && (flags & O_NONBLOCK))
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

int lnt_macos_pipe(int ends[2], int flags)
{
    if (pipe(ends) != 0)
        return -1;
    with_flags(ends[0], flags);
    with_flags(ends[1], flags);
    return 0;
}

int lnt_macos_accept(int fd)
{
    return with_flags(accept(fd, NULL, NULL), 0);
}

/* One stream's cookie and function, which funopen hands on as one pointer. */
typedef struct stream {
    void *cookie;
    cookie_io_functions_t functions;
} stream;

static int write_on(void *handed, const char *bytes, int n)
{
    const stream *s = handed;
    return (int)s->functions.write(s->cookie, bytes, (size_t)n);
}

static int close_stream(void *handed)
{
    free(handed);
    return 0;
}

FILE *lnt_macos_cookie(void *cookie, const char *mode, cookie_io_functions_t functions)
{
    (void)mode;
    stream *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (stream){cookie, functions};
    FILE *f = funopen(s, NULL, write_on, NULL, close_stream);
    if (!f)
        free(s);
    return f;
}

static uint32_t number_of(const char *name)
{
    uint32_t value = 0;
    size_t bytes = sizeof value;
    return sysctlbyname(name, &value, &bytes, NULL, 0) == 0 ? value : 0;
}

int lnt_macos_affinity(int pid, size_t bytes, cpu_set_t *set)
{
    (void)pid, (void)bytes;
    set->processors = number_of("hw.activecpu");
    return 0;
}

unsigned long lnt_macos_features(int which)
{
    enum { FPHP = 1 << 9, ASIMDHP = 1 << 10, ASIMDDP = 1 << 20, I8MM = 1 << 13 };
    if (which == AT_HWCAP2)
        return number_of("hw.optional.arm.FEAT_I8MM") ? I8MM : 0;
    return (number_of("hw.optional.arm.FEAT_FP16") ? FPHP | ASIMDHP : 0) |
           (number_of("hw.optional.arm.FEAT_DotProd") ? ASIMDDP : 0);
}
