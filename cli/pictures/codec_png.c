/* codec_png.c — PNG, by libpng's simplified interface. */
#include "cli/pictures/codecs.h"

#include "base/memory.h"

#include <string.h>

/* As png.h of 1.6 has it. */
typedef struct png_image {
    void *opaque;
    uint32_t version, width, height, format, flags, colors, warnings;
    char message[64];
} png_image;

enum { VERSION = 1, RGBA = 3, CHANNELS = 4 };

static int (*begin)(png_image *image, const void *bytes, size_t n);
static int (*finish)(png_image *image, const void *background, void *to, int32_t stride, void *colors);
static void (*release)(png_image *image);

static lnt_status load(lnt_error *err)
{
    static const char *const names[2] = {"libpng16.so.16", "libpng16.so"};
    const lnt_symbol_of symbols[] = {{"png_image_begin_read_from_memory", (void **)&begin},
                                     {"png_image_finish_read", (void **)&finish},
                                     {"png_image_free", (void **)&release}};
    return lnt_codec_library(names, "libpng16-16", symbols, sizeof symbols / sizeof *symbols, err);
}

static bool knows(const uint8_t *bytes, size_t n)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static lnt_status open_image(const lnt_picture *p, png_image *image, lnt_error *err)
{
    LNT_TRY(load(err));
    *image = (png_image){.version = VERSION};
    return begin(image, p->bytes, p->n) ? LNT_OK : lnt_picture_damaged(image->message, err);
}

static lnt_status size_of(lnt_picture *p, lnt_error *err)
{
    png_image image;
    LNT_TRY(open_image(p, &image, err));
    p->width = image.width;
    p->height = image.height;
    release(&image);
    return LNT_OK;
}

/* With alpha, which would be put on a background otherwise. */
static lnt_status decode(const lnt_picture *p, uint8_t *rgb, lnt_error *err)
{
    const size_t pixels = (size_t)p->width * p->height;
    png_image image;
    lnt_status status = LNT_OK;
    uint8_t *all = lnt_alloc(&lnt_malloc_allocator, pixels * CHANNELS, err);
    if (!all)
        return LNT_E_MEMORY;
    status = open_image(p, &image, err);
    if (status == LNT_OK) {
        image.format = RGBA;
        if (image.width != p->width || image.height != p->height || !finish(&image, NULL, all, 0, NULL))
            status = lnt_picture_damaged(image.message, err);
        release(&image);
    }
    for (size_t i = 0; status == LNT_OK && i < pixels; i++)
        memcpy(rgb + 3 * i, all + CHANNELS * i, 3);
    lnt_free(&lnt_malloc_allocator, all);
    return status;
}

const lnt_codec lnt_codec_png = {"PNG", knows, size_of, decode};
