/* codec_tiff.c — TIFF, by libtiff: the first page. */
#include "cli/pictures/codecs.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct tiff tiff; /* the library's */

/* The file in memory, as the library reads it. */
typedef struct source {
    const lnt_picture *picture;
    uint64_t at;
} source;

typedef int64_t transfer(void *user, void *to, int64_t n);
typedef uint64_t seek(void *user, uint64_t to, int whence);
typedef void complain(const char *module, const char *format, va_list values);

enum { TAG_WIDTH = 256, TAG_HEIGHT = 257, TOP_LEFT = 1, STOP = 1 };

static tiff *(*client_open)(const char *name, const char *mode, void *user, transfer *read, transfer *write,
                            seek *seek_to, int (*close)(void *), uint64_t (*size)(void *),
                            int (*map)(void *, void **, uint64_t *), void (*unmap)(void *, void *, uint64_t));
static void (*close_file)(tiff *t);
static int (*get_field)(tiff *t, uint32_t tag, ...);
static int (*read_rgba)(tiff *t, uint32_t width, uint32_t height, uint32_t *to, int orientation, int stop);
static complain *(*set_errors)(complain *to);
static complain *(*set_warnings)(complain *to);

static lnt_status load(lnt_error *err)
{
    static const char *const names[2] = {"libtiff.so.6", "libtiff.so.5"};
    const lnt_symbol_of symbols[] = {
        {"TIFFClientOpen", (void **)&client_open},     {"TIFFClose", (void **)&close_file},
        {"TIFFGetField", (void **)&get_field},         {"TIFFReadRGBAImageOriented", (void **)&read_rgba},
        {"TIFFSetErrorHandler", (void **)&set_errors}, {"TIFFSetWarningHandler", (void **)&set_warnings}};
    return lnt_codec_library(names, "libtiff6", symbols, sizeof symbols / sizeof *symbols, err);
}

static int64_t read_some(void *user, void *to, int64_t n)
{
    source *s = user;
    const uint64_t left = s->at < s->picture->n ? s->picture->n - s->at : 0;
    const uint64_t taken = n < 0 ? 0 : (uint64_t)n < left ? (uint64_t)n : left;
    if (taken)
        memcpy(to, s->picture->bytes + s->at, (size_t)taken);
    s->at += taken;
    return (int64_t)taken;
}

static int64_t write_none(void *user, void *from, int64_t n)
{
    (void)user;
    (void)from;
    (void)n;
    return -1;
}

static uint64_t seek_to(void *user, uint64_t to, int whence)
{
    source *s = user;
    s->at = to + (whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->picture->n : 0);
    return s->at;
}

static int close_none(void *user)
{
    (void)user;
    return 0;
}

static uint64_t file_size(void *user)
{
    return ((source *)user)->picture->n;
}

static lnt_status open_tiff(source *s, tiff **t, lnt_error *err)
{
    LNT_TRY(load(err));
    set_errors(NULL);
    set_warnings(NULL);
    *t = client_open("picture", "rm", s, read_some, write_none, seek_to, close_none, file_size, NULL, NULL);
    return *t ? LNT_OK : lnt_picture_damaged("it is no TIFF", err);
}

static bool knows(const uint8_t *bytes, size_t n)
{
    return n > 8 && (memcmp(bytes, "II*", 4) == 0 || memcmp(bytes, "MM\0*", 4) == 0);
}

static lnt_status size_of(lnt_picture *p, lnt_error *err)
{
    source s = {.picture = p};
    tiff *t;
    LNT_TRY(open_tiff(&s, &t, err));
    const bool right = get_field(t, TAG_WIDTH, &p->width) && get_field(t, TAG_HEIGHT, &p->height);
    close_file(t);
    return right ? LNT_OK : lnt_picture_damaged("its TIFF has no extents", err);
}

static lnt_status decode(const lnt_picture *p, uint8_t *rgb, lnt_error *err)
{
    const size_t pixels = (size_t)p->width * p->height;
    source s = {.picture = p};
    tiff *t;
    LNT_TRY(open_tiff(&s, &t, err));
    uint32_t *rgba = lnt_alloc(&lnt_malloc_allocator, pixels * sizeof *rgba, err);
    const bool right = rgba && read_rgba(t, p->width, p->height, rgba, TOP_LEFT, STOP);
    for (size_t i = 0; right && i < 3 * pixels; i++)
        rgb[i] = (uint8_t)(rgba[i / 3] >> 8 * (i % 3));
    lnt_free(&lnt_malloc_allocator, rgba);
    close_file(t);
    return right ? LNT_OK : rgba ? lnt_picture_damaged("its TIFF cannot be decoded", err) : LNT_E_MEMORY;
}

const lnt_codec lnt_codec_tiff = {"TIFF", knows, size_of, decode};
