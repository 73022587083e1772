/* writer.c — laying out a file's image, its hashes, and putting it on disk. */
#include "formats/lnt_file.h"

#include "base/checked.h"
#include "base/file.h"
#include "formats/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static lnt_rec_section *section_table(void *image)
{
    return (lnt_rec_section *)((uint8_t *)image + sizeof(lnt_rec_header));
}

/* Readers that do not know these can do without them. */
static bool section_is_optional(lnt_section kind)
{
    return kind == LNT_SECTION_METADATA || kind == LNT_SECTION_GOLDEN || kind == LNT_SECTION_ATTACHMENTS ||
           kind == LNT_SECTION_ATTACHED;
}

static size_t count_nonempty(const lnt_section_data *sections, unsigned n)
{
    size_t count = 0;
    for (unsigned i = 0; i < n; i++)
        count += sections[i].size > 0;
    return count;
}

/* Bytes of the whole image: every part starts at a multiple of LNT_FILE_ALIGN. */
static lnt_status image_bytes(const lnt_section_data *sections, unsigned n, size_t *bytes, lnt_error *err)
{
    const size_t used = count_nonempty(sections, n);
    LNT_REQUIRE(used <= LNT_FILE_MAX_SECTIONS, err, LNT_E_LIMIT, "%zu sections, at most %d allowed", used,
                LNT_FILE_MAX_SECTIONS);
    size_t total = lnt_round_up(sizeof(lnt_rec_header) + used * sizeof(lnt_rec_section), LNT_FILE_ALIGN);
    for (unsigned i = 0; i < n; i++)
        LNT_REQUIRE(sections[i].size <= PTRDIFF_MAX - LNT_FILE_ALIGN &&
                        lnt_add_size(total, lnt_round_up(sections[i].size, LNT_FILE_ALIGN), &total),
                    err, LNT_E_LIMIT, "the file's size overflows the address space");
    *bytes = total;
    return LNT_OK;
}

static void copy_sections(uint8_t *image, const lnt_section_data *sections, unsigned n)
{
    lnt_rec_section *row = section_table(image);
    size_t offset =
        lnt_round_up(sizeof(lnt_rec_header) + count_nonempty(sections, n) * sizeof *row, LNT_FILE_ALIGN);
    for (unsigned i = 0; i < n; i++) {
        if (sections[i].size == 0)
            continue;
        *row++ = (lnt_rec_section){.kind = sections[i].kind,
                                   .flags = section_is_optional(sections[i].kind) ? 0 : LNT_SECTION_REQUIRED,
                                   .offset = offset,
                                   .bytes = sections[i].size};
        memcpy(image + offset, sections[i].bytes, sections[i].size);
        offset += lnt_round_up(sections[i].size, LNT_FILE_ALIGN);
    }
}

lnt_status lnt_file_build(const lnt_section_data *sections, unsigned n, const lnt_allocator *a, void **image,
                          size_t *size, lnt_error *err)
{
    size_t bytes = 0;
    LNT_TRY(image_bytes(sections, n, &bytes, err));
    uint8_t *built = lnt_alloc_zero(a, bytes, 1, err);
    if (!built)
        return LNT_E_MEMORY;
    lnt_rec_header *header = (lnt_rec_header *)built;
    memcpy(header->magic, LNT_FILE_MAGIC, sizeof header->magic);
    header->version = LNT_FILE_VERSION;
    header->n_sections = (uint32_t)count_nonempty(sections, n);
    header->file_bytes = bytes;
    copy_sections(built, sections, n);
    lnt_status status = lnt_file_rehash(built, bytes, err);
    if (status != LNT_OK) {
        lnt_free(a, built);
        return status;
    }
    *image = built;
    *size = bytes;
    return LNT_OK;
}

static lnt_rec_section *find_section(void *image, lnt_section kind)
{
    const lnt_rec_header *header = image;
    lnt_rec_section *table = section_table(image);
    for (uint32_t i = 0; i < header->n_sections; i++)
        if (table[i].kind == (uint32_t)kind)
            return &table[i];
    return NULL;
}

/* Fills the constants' hashes; one whose bytes are outside of the tensors keeps what it has. */
static void hash_constants(uint8_t *image)
{
    const lnt_rec_section *records = find_section(image, LNT_SECTION_CONSTANTS);
    const lnt_rec_section *tensors = find_section(image, LNT_SECTION_TENSORS);
    if (!records || records->offset % _Alignof(lnt_rec_constant) != 0)
        return;
    const uint64_t tensors_bytes = tensors ? tensors->bytes : 0;
    lnt_rec_constant *constant = (lnt_rec_constant *)(image + records->offset);
    for (uint64_t i = 0; i < records->bytes / sizeof *constant; i++) {
        lnt_rec_constant *c = &constant[i];
        if (c->offset <= tensors_bytes && c->bytes <= tensors_bytes - c->offset)
            c->hash = lnt_hash(tensors ? image + tensors->offset + c->offset : image, (size_t)c->bytes);
    }
}

static uint64_t hash_section(uint8_t *image, const lnt_rec_section *s)
{
    const lnt_rec_section *records = find_section(image, LNT_SECTION_CONSTANTS);
    if (s->kind != LNT_SECTION_TENSORS)
        return lnt_hash(image + s->offset, (size_t)s->bytes);
    if (!records || records->offset % _Alignof(lnt_rec_constant) != 0)
        return lnt_hash_tensors(NULL, 0);
    return lnt_hash_tensors((const lnt_rec_constant *)(image + records->offset),
                            (uint32_t)(records->bytes / sizeof(lnt_rec_constant)));
}

lnt_status lnt_file_rehash(void *image, size_t size, lnt_error *err)
{
    lnt_rec_header *header = image;
    lnt_rec_section *table = section_table(image);
    LNT_REQUIRE(size >= sizeof *header && header->n_sections <= LNT_FILE_MAX_SECTIONS &&
                    (size - sizeof *header) / sizeof *table >= header->n_sections,
                err, LNT_E_FILE, "header: no room for the section table");
    for (uint32_t i = 0; i < header->n_sections; i++)
        LNT_REQUIRE(table[i].offset <= size && table[i].bytes <= size - table[i].offset, err, LNT_E_FILE,
                    "%s section: reaches past the end of the file", lnt_section_text(table[i].kind));
    hash_constants(image);
    for (uint32_t i = 0; i < header->n_sections; i++)
        table[i].hash = hash_section(image, &table[i]);
    header->root_hash = lnt_hash_root(image, header->n_sections);
    return LNT_OK;
}

/* ---- on disk ---- */

static lnt_status write_all(int fd, const char *path, const uint8_t *bytes, size_t size, lnt_error *err)
{
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        LNT_REQUIRE(n > 0, err, LNT_E_IO, "cannot write %s: %s", path, strerror(n < 0 ? errno : ENOSPC));
        bytes += n;
        size -= (size_t)n;
    }
    return LNT_OK;
}

/* Writes, syncs if it is a file of ours, and closes fd. */
static lnt_status fill_and_close(int fd, bool sync, const char *path, const void *bytes, size_t size,
                                 lnt_error *err)
{
    lnt_status status = write_all(fd, path, bytes, size, err);
    while (status == LNT_OK && sync && fsync(fd) != 0)
        if (errno != EINTR)
            status = lnt_fail(err, LNT_E_IO, "cannot write %s to the disk: %s", path, strerror(errno));
    if (close(fd) != 0 && errno != EINTR && status == LNT_OK)
        status = lnt_fail(err, LNT_E_IO, "cannot write %s: %s", path, strerror(errno));
    return status;
}

/* Makes the rename last. Not every file system can sync a folder, so failures do not matter. */
static void sync_folder_of(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = '\0';
    const int fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

/* Is name, in the folder of a file called base, a temporary of a process that is gone: "BASE.PID-K.tmp"? */
static bool is_leftover(int folder, const char *base, const char *name)
{
    enum { STILL = 10 }; /* seconds in which a process of another machine or container would have written */
    const size_t length = strlen(base);
    struct stat info;
    long pid = 0;
    unsigned k;
    int end = 0;
    return strncmp(name, base, length) == 0 &&
           sscanf(name + length, ".%10ld-%3u.tmp%n", &pid, &k, &end) == 2 && end > 0 &&
           !name[length + (size_t)end] && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH &&
           fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
           time(NULL) - info.st_mtime >= STILL;
}

/* Removes what writers of path that were killed have left beside it; temporary is room for the folder's name. */
static void remove_leftovers(const char *path, char *temporary)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t length = slash ? (size_t)(slash - path) + 1 : 1;
    memcpy(temporary, slash ? path : ".", length);
    temporary[length] = '\0';
    DIR *folder = opendir(temporary);
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (is_leftover(dirfd(folder), base, e->d_name))
            unlinkat(dirfd(folder), e->d_name, 0);
    if (folder)
        closedir(folder);
}

/* Creates a file of a new name beside path; temporary receives the name. */
static int open_beside(const char *path, char *temporary, size_t bytes)
{
    int fd = -1;
    errno = EEXIST;
    for (unsigned attempt = 0; fd < 0 && (errno == EEXIST || errno == EINTR) && attempt < 100; attempt++) {
        snprintf(temporary, bytes, "%s.%ld-%u.tmp", path, (long)getpid(), attempt);
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return fd;
}

static lnt_status replace_file(const char *path, char *temporary, size_t temporary_bytes, const void *bytes,
                               size_t size, lnt_error *err)
{
    remove_leftovers(path, temporary);
    const int fd = open_beside(path, temporary, temporary_bytes);
    LNT_REQUIRE(fd >= 0, err, LNT_E_IO, "cannot create %s: %s", temporary, strerror(errno));
    lnt_status status = fill_and_close(fd, true, path, bytes, size, err);
    if (status == LNT_OK && rename(temporary, path) != 0)
        status = lnt_fail(err, LNT_E_IO, "cannot rename %s to %s: %s", temporary, path, strerror(errno));
    if (status != LNT_OK)
        unlink(temporary);
    else
        sync_folder_of(temporary);
    return status;
}

/* Terminals, pipes (/dev/stdout) and /dev/null cannot be replaced: they are written to, a pipe if somebody
 * reads it. */
static lnt_status write_through(const char *path, unsigned mode, const void *bytes, size_t size,
                                lnt_error *err)
{
    LNT_REQUIRE(S_ISCHR(mode) || S_ISFIFO(mode), err, LNT_E_IO, "%s is %s: it is not replaced", path,
                lnt_file_kind(mode));
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    LNT_REQUIRE(fd >= 0 || errno != ENXIO, err, LNT_E_IO, "%s is %s that nobody reads", path,
                lnt_file_kind(mode));
    LNT_REQUIRE(fd >= 0, err, LNT_E_IO, "cannot open %s: %s", path, strerror(errno));
    (void)fcntl(fd, F_SETFL, 0);
    return fill_and_close(fd, false, path, bytes, size, err);
}

lnt_status lnt_write_atomic(const char *path, const void *bytes, size_t size, lnt_error *err)
{
    enum { SUFFIX = 48 };
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return write_through(path, info.st_mode, bytes, size, err);
    const size_t room = strlen(path) + SUFFIX;
    char *temporary = lnt_alloc(&lnt_malloc_allocator, room, err);
    if (!temporary)
        return LNT_E_MEMORY;
    const lnt_status status = replace_file(path, temporary, room, bytes, size, err);
    lnt_free(&lnt_malloc_allocator, temporary);
    return status;
}
