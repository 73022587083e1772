/* blob.c — a file in memory, mapped or read. */
#include "formats/lnt_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static lnt_status read_all(int fd, const char *path, uint8_t *bytes, size_t size, lnt_error *err)
{
    while (size > 0) {
        const ssize_t n = read(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        LNT_REQUIRE(n >= 0, err, LNT_E_IO, "cannot read %s: %s", path, strerror(errno));
        LNT_REQUIRE(n > 0, err, LNT_E_IO, "%s became shorter while it was read", path);
        bytes += n;
        size -= (size_t)n;
    }
    return LNT_OK;
}

static lnt_status copy_file(int fd, const char *path, size_t size, const lnt_allocator *a, lnt_blob *out,
                            lnt_error *err)
{
    void *bytes = lnt_alloc(a, size, err);
    if (!bytes)
        return LNT_E_MEMORY;
    const lnt_status status = read_all(fd, path, bytes, size, err);
    if (status != LNT_OK) {
        lnt_free(a, bytes);
        return status;
    }
    *out = (lnt_blob){.bytes = bytes, .size = size, .allocator = a};
    return LNT_OK;
}

static lnt_status map_file(int fd, const char *path, size_t size, lnt_blob *out, lnt_error *err)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    LNT_REQUIRE(bytes != MAP_FAILED, err, LNT_E_IO, "cannot map %s: %s; it may be read into memory instead",
                path, strerror(errno));
    *out = (lnt_blob){.bytes = bytes, .size = size, .allocator = NULL};
    return LNT_OK;
}

static lnt_status file_size(int fd, const char *path, size_t *size, lnt_error *err)
{
    struct stat info;
    LNT_REQUIRE(fstat(fd, &info) == 0, err, LNT_E_IO, "cannot read %s: %s", path, strerror(errno));
    LNT_REQUIRE(S_ISREG(info.st_mode), err, LNT_E_IO, "%s is not a regular file", path);
    LNT_REQUIRE(info.st_size > 0, err, LNT_E_FILE, "%s is empty", path);
    LNT_REQUIRE((uint64_t)info.st_size <= PTRDIFF_MAX, err, LNT_E_LIMIT, "%s is too large for this machine",
                path);
    *size = (size_t)info.st_size;
    return LNT_OK;
}

lnt_status lnt_blob_open(const char *path, bool copy, const lnt_allocator *a, lnt_blob *out, lnt_error *err)
{
    size_t size = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    LNT_REQUIRE(fd >= 0, err, LNT_E_IO, "cannot open %s: %s", path, strerror(errno));
    lnt_status status = file_size(fd, path, &size, err);
    if (status == LNT_OK)
        status = copy ? copy_file(fd, path, size, a, out, err) : map_file(fd, path, size, out, err);
    close(fd);
    return status;
}

void lnt_blob_close(lnt_blob *blob)
{
    if (blob->allocator)
        lnt_free(blob->allocator, (void *)(uintptr_t)blob->bytes);
    else if (blob->bytes)
        munmap((void *)(uintptr_t)blob->bytes, blob->size);
    *blob = (lnt_blob){.bytes = NULL};
}
