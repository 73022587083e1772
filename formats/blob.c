/* blob.c — a file in memory, mapped or read; of a bundle, the model behind the program. */
#include "formats/lnt_file.h"

#include "base/file.h"
#include "formats/byte_order.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where in a file its bytes are. */
typedef struct span {
    size_t offset, size;
} span;

static lnt_status copy_file(int fd, const char *path, span at, const lnt_allocator *a, lnt_blob *out,
                            lnt_error *err)
{
    void *bytes = lnt_alloc(a, at.size, err);
    if (!bytes)
        return LNT_E_MEMORY;
    const lnt_status status = lnt_read_at(fd, path, bytes, at.size, at.offset, err);
    if (status != LNT_OK) {
        lnt_free(a, bytes);
        return status;
    }
    *out = (lnt_blob){.bytes = bytes, .size = at.size, .allocator = a};
    return LNT_OK;
}

static lnt_status map_file(int fd, const char *path, span at, lnt_blob *out, lnt_error *err)
{
    void *bytes = mmap(NULL, at.size, PROT_READ, MAP_PRIVATE, fd, (off_t)at.offset);
    LNT_REQUIRE(bytes != MAP_FAILED, err, LNT_E_IO, "cannot map %s: %s; it may be read into memory instead",
                path, strerror(errno));
    *out = (lnt_blob){.bytes = bytes, .size = at.size, .allocator = NULL};
    return LNT_OK;
}

/* Of a bundle, where its model starts: the trailer is the model's offset, its bytes and the magic, 8 bytes
 * each. Of any other file *at stays as it is. */
static lnt_status find_bundled(int fd, const char *path, span *at, bool *found, lnt_error *err)
{
    uint8_t trailer[24];
    *found = false;
    if (at->size <= sizeof trailer)
        return LNT_OK;
    const size_t before = at->size - sizeof trailer;
    LNT_TRY(lnt_read_at(fd, path, trailer, sizeof trailer, before, err));
    const uint64_t offset = lnt_load_le(trailer, 8), bytes = lnt_load_le(trailer + 8, 8);
    if (memcmp(trailer + 16, LNT_BUNDLE_MAGIC, 8) != 0 || bytes == 0 || offset % LNT_BUNDLE_ALIGN ||
        offset > before || bytes > before - offset)
        return LNT_OK;
    *at = (span){(size_t)offset, (size_t)bytes};
    *found = true;
    return LNT_OK;
}

bool lnt_blob_is_bundle(const char *path)
{
    int fd;
    span at = {0};
    bool found;
    if (lnt_open_regular(path, 0, &fd, &at.size, NULL) != LNT_OK)
        return false;
    const lnt_status status = find_bundled(fd, path, &at, &found, NULL);
    close(fd);
    return status == LNT_OK && found;
}

lnt_status lnt_blob_open(const char *path, bool copy, const lnt_allocator *a, lnt_blob *out, lnt_error *err)
{
    int fd;
    span at = {0};
    bool bundle;
    LNT_TRY(lnt_open_regular(path, 0, &fd, &at.size, err));
    lnt_status status = at.size > 0 ? find_bundled(fd, path, &at, &bundle, err)
                                    : lnt_fail(err, LNT_E_FILE, "%s is empty", path);
    if (status == LNT_OK)
        status = copy ? copy_file(fd, path, at, a, out, err) : map_file(fd, path, at, out, err);
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
