/* codec_webp.c — WebP, by libwebp. */
#include "cli/pictures/codecs.h"

#include <string.h>

static int (*info)(const uint8_t *bytes, size_t n, int *width, int *height);
static uint8_t *(*into)(const uint8_t *bytes, size_t n, uint8_t *to, size_t room, int stride);

static lnt_status load(lnt_error *err)
{
    static const char *const names[2] = {"libwebp.so.7", "libwebp.so"};
    const lnt_symbol_of symbols[] = {{"WebPGetInfo", (void **)&info}, {"WebPDecodeRGBInto", (void **)&into}};
    return lnt_codec_library(names, "libwebp7", symbols, sizeof symbols / sizeof *symbols, err);
}

static bool knows(const uint8_t *bytes, size_t n)
{
    return n > 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

static lnt_status size_of(lnt_picture *p, lnt_error *err)
{
    int width, height;
    LNT_TRY(load(err));
    if (!info(p->bytes, p->n, &width, &height))
        return lnt_picture_damaged("its head is no WebP's", err);
    p->width = (uint32_t)width;
    p->height = (uint32_t)height;
    return LNT_OK;
}

static lnt_status decode(const lnt_picture *p, uint8_t *rgb, lnt_error *err)
{
    const size_t stride = 3 * (size_t)p->width;
    LNT_TRY(load(err));
    return into(p->bytes, p->n, rgb, stride * p->height, (int)stride)
               ? LNT_OK
               : lnt_picture_damaged("its WebP cannot be decoded", err);
}

const lnt_codec lnt_codec_webp = {"WebP", knows, size_of, decode};
