/* file.c — opening and reading files that a user or a model names. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *lnt_file_kind(unsigned mode)
{
    return S_ISREG(mode)    ? "a regular file"
           : S_ISDIR(mode)  ? "a folder"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static lnt_status check_regular(int fd, const char *path, size_t *size, lnt_error *err)
{
    struct stat info;
    LNT_REQUIRE(fstat(fd, &info) == 0, err, LNT_E_IO, "cannot read %s: %s", path, strerror(errno));
    LNT_REQUIRE(S_ISREG(info.st_mode), err, LNT_E_IO, "%s is not a regular file but %s", path,
                lnt_file_kind(info.st_mode));
    LNT_REQUIRE((uint64_t)info.st_size <= PTRDIFF_MAX, err, LNT_E_LIMIT, "%s is too large for this machine",
                path);
    *size = (size_t)info.st_size;
    (void)fcntl(fd, F_SETFL, 0); /* O_NONBLOCK was there for a FIFO */
    return LNT_OK;
}

lnt_status lnt_open_regular(const char *path, int flags, int *fd, size_t *size, lnt_error *err)
{
    do
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    while (*fd < 0 && errno == EINTR);
    LNT_REQUIRE(*fd >= 0, err, LNT_E_IO, "cannot open %s: %s", path, strerror(errno));
    const lnt_status status = check_regular(*fd, path, size, err);
    if (status != LNT_OK)
        close(*fd);
    return status;
}

lnt_status lnt_read_at(int fd, const char *path, void *bytes, size_t size, size_t offset, lnt_error *err)
{
    for (uint8_t *to = bytes; size > 0;) {
        const ssize_t n = pread(fd, to, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        LNT_REQUIRE(n >= 0, err, LNT_E_IO, "cannot read %s: %s", path, strerror(errno));
        LNT_REQUIRE(n > 0, err, LNT_E_IO, "%s became shorter while it was read", path);
        to += n;
        offset += (size_t)n;
        size -= (size_t)n;
    }
    return LNT_OK;
}
