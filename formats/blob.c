/* blob.c — a file in memory, mapped or read; of a bundle, the model behind the program. */
#include "formats/lnt_file.h"

#include "formats/byte_order.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where in a file its bytes lie. */
typedef struct span {
    off_t offset;
    size_t size;
} span;

static lnt_status read_all(int fd, const char *path, uint8_t *bytes, span at, lnt_error *err)
{
    while (at.size > 0) {
        const ssize_t n = pread(fd, bytes, at.size, at.offset);
        if (n < 0 && errno == EINTR)
            continue;
        LNT_REQUIRE(n >= 0, err, LNT_E_IO, "cannot read %s: %s", path, strerror(errno));
        LNT_REQUIRE(n > 0, err, LNT_E_IO, "%s became shorter while it was read", path);
        bytes += n;
        at.offset += n;
        at.size -= (size_t)n;
    }
    return LNT_OK;
}

static lnt_status copy_file(int fd, const char *path, span at, const lnt_allocator *a, lnt_blob *out,
                            lnt_error *err)
{
    void *bytes = lnt_alloc(a, at.size, err);
    if (!bytes)
        return LNT_E_MEMORY;
    const lnt_status status = read_all(fd, path, bytes, at, err);
    if (status != LNT_OK) {
        lnt_free(a, bytes);
        return status;
    }
    *out = (lnt_blob){.bytes = bytes, .size = at.size, .allocator = a};
    return LNT_OK;
}

static lnt_status map_file(int fd, const char *path, span at, lnt_blob *out, lnt_error *err)
{
    void *bytes = mmap(NULL, at.size, PROT_READ, MAP_PRIVATE, fd, at.offset);
    LNT_REQUIRE(bytes != MAP_FAILED, err, LNT_E_IO, "cannot map %s: %s; it may be read into memory instead",
                path, strerror(errno));
    *out = (lnt_blob){.bytes = bytes, .size = at.size, .allocator = NULL};
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

/* Of a bundle, where its model lies: the trailer is the model's offset, its bytes and the magic, 8 bytes
 * each. */
static bool find_bundled(int fd, size_t size, span *model)
{
    uint8_t trailer[24];
    if (size <= sizeof trailer ||
        pread(fd, trailer, sizeof trailer, (off_t)(size - sizeof trailer)) != sizeof trailer ||
        memcmp(trailer + 16, LNT_BUNDLE_MAGIC, 8) != 0)
        return false;
    const uint64_t offset = lnt_load_le(trailer, 8), bytes = lnt_load_le(trailer + 8, 8);
    if (bytes == 0 || offset % LNT_BUNDLE_ALIGN || offset >= size || bytes > size - sizeof trailer - offset)
        return false;
    *model = (span){(off_t)offset, (size_t)bytes};
    return true;
}

bool lnt_blob_is_bundle(const char *path)
{
    size_t size;
    span model;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool found =
        fd >= 0 && file_size(fd, path, &size, NULL) == LNT_OK && find_bundled(fd, size, &model);
    if (fd >= 0)
        close(fd);
    return found;
}

lnt_status lnt_blob_open(const char *path, bool copy, const lnt_allocator *a, lnt_blob *out, lnt_error *err)
{
    span at = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    LNT_REQUIRE(fd >= 0, err, LNT_E_IO, "cannot open %s: %s", path, strerror(errno));
    lnt_status status = file_size(fd, path, &at.size, err);
    if (status == LNT_OK) {
        find_bundled(fd, at.size, &at);
        status = copy ? copy_file(fd, path, at, a, out, err) : map_file(fd, path, at, out, err);
    }
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
