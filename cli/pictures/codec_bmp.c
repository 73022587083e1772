/* codec_bmp.c — BMP, but for those of runs (RLE). */
#include "cli/pictures/codecs.h"

#include "base/checked.h"

#include <stdlib.h>

/* The head's: at which byte what lies. */
enum {
    AT_PIXELS = 10,
    AT_HEAD = 14, /* bytes of what follows, itself included */
    AT_WIDTH = 18,
    AT_HEIGHT = 22,
    AT_BITS = 28,
    AT_COMPRESSION = 30,
    AT_COLORS = 46,
    AT_MASKS = 54,
    SHORT_HEAD = 40,
    HEAD = 54
};
enum { PLAIN = 0, MASKS = 3, ALPHA_MASKS = 6 };

typedef struct bmp {
    uint32_t bits, mask[3]; /* of red, green, blue */
    const uint8_t *palette; /* [colors, 4], blue first */
    uint32_t colors;
    const uint8_t *pixels;
    size_t stride;
    bool top_down;
} bmp;

static uint32_t number(const uint8_t *at, unsigned n)
{
    uint32_t x = 0;
    for (unsigned i = 0; i < n; i++)
        x |= (uint32_t)at[i] << 8 * i;
    return x;
}

static bool knows(const uint8_t *bytes, size_t n)
{
    return n >= HEAD && bytes[0] == 'B' && bytes[1] == 'M';
}

/* Which bits of a pixel are which color. */
static lnt_status read_masks(const lnt_picture *p, bmp *b, lnt_error *err)
{
    static const uint32_t fifteen[] = {0x7c00, 0x3e0, 0x1f}, more[] = {0xff0000, 0xff00, 0xff};
    const uint32_t how = number(p->bytes + AT_COMPRESSION, 4);
    const bool masks = (how == MASKS || how == ALPHA_MASKS) && (b->bits == 16 || b->bits == 32);
    LNT_REQUIRE(how == PLAIN || masks, err, LNT_E_UNSUPPORTED, "the picture is a BMP with compression %u",
                how);
    LNT_REQUIRE(!masks || p->n >= AT_MASKS + 12, err, LNT_E_VALUE,
                "the picture is damaged: its BMP ends early");
    for (unsigned c = 0; c < 3; c++)
        b->mask[c] = masks ? number(p->bytes + AT_MASKS + 4 * c, 4) : b->bits == 16 ? fifteen[c] : more[c];
    return LNT_OK;
}

static lnt_status read_palette(const lnt_picture *p, bmp *b, lnt_error *err)
{
    const uint32_t head = number(p->bytes + AT_HEAD, 4), told = number(p->bytes + AT_COLORS, 4);
    if (b->bits > 8)
        return LNT_OK;
    b->colors = told && told < 1u << b->bits ? told : 1u << b->bits;
    LNT_REQUIRE(head <= p->n && AT_HEAD + (size_t)head + 4 * (size_t)b->colors <= p->n, err, LNT_E_VALUE,
                "the picture is damaged: its BMP ends in the palette");
    b->palette = p->bytes + AT_HEAD + head;
    return LNT_OK;
}

static lnt_status read_head(lnt_picture *p, bmp *b, lnt_error *err)
{
    const int32_t height = (int32_t)number(p->bytes + AT_HEIGHT, 4);
    const size_t first = number(p->bytes + AT_PIXELS, 4);
    *b = (bmp){.bits = number(p->bytes + AT_BITS, 2), .top_down = height < 0};
    LNT_REQUIRE(number(p->bytes + AT_HEAD, 4) >= SHORT_HEAD, err, LNT_E_UNSUPPORTED,
                "the picture is a BMP of OS/2's");
    LNT_REQUIRE(b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 16 || b->bits == 24 ||
                    b->bits == 32,
                err, LNT_E_VALUE, "the picture is damaged: a BMP of %u bits a pixel", b->bits);
    p->width = number(p->bytes + AT_WIDTH, 4);
    p->height = height < 0 ? 0 - (uint32_t)height : (uint32_t)height;
    b->stride = (size_t)(((uint64_t)p->width * b->bits + 31) / 32 * 4);
    b->pixels = p->bytes + (first < p->n ? first : p->n);
    LNT_TRY(read_masks(p, b, err));
    LNT_TRY(read_palette(p, b, err));
    size_t bytes;
    LNT_REQUIRE(first <= p->n && lnt_mul_size(b->stride, p->height, &bytes) && bytes <= p->n - first, err,
                LNT_E_VALUE, "the picture is damaged: its BMP ends early");
    return LNT_OK;
}

static lnt_status size_of(lnt_picture *p, lnt_error *err)
{
    bmp b;
    return read_head(p, &b, err);
}

/* The bits of a mask as 0 to 255. */
static uint8_t scaled(uint32_t pixel, uint32_t mask)
{
    if (!mask)
        return 0;
    uint32_t x = pixel & mask;
    for (; !(mask & 1); mask >>= 1)
        x >>= 1;
    return (uint8_t)((uint64_t)x * 255 / mask);
}

static void put_pixel(const bmp *b, const uint8_t *row, uint32_t x, uint8_t *rgb)
{
    if (b->bits <= 8) {
        const uint32_t at = x * b->bits, shift = 8 - b->bits - at % 8;
        const uint32_t index = (uint32_t)row[at / 8] >> shift & ((1u << b->bits) - 1);
        for (unsigned c = 0; c < 3; c++)
            rgb[c] = index < b->colors ? b->palette[4 * index + 2 - c] : 0;
        return;
    }
    const uint32_t bytes = b->bits / 8, pixel = number(row + (size_t)x * bytes, bytes);
    for (unsigned c = 0; c < 3; c++)
        rgb[c] = scaled(pixel, b->mask[c]);
}

static lnt_status decode(const lnt_picture *p, uint8_t *rgb, lnt_error *err)
{
    lnt_picture same = *p;
    bmp b;
    LNT_TRY(read_head(&same, &b, err));
    for (uint32_t y = 0; y < p->height; y++) {
        const uint8_t *row = b.pixels + b.stride * (b.top_down ? y : p->height - 1 - y);
        for (uint32_t x = 0; x < p->width; x++)
            put_pixel(&b, row, x, rgb + 3 * ((size_t)y * p->width + x));
    }
    return LNT_OK;
}

const lnt_codec lnt_codec_bmp = {"BMP", knows, size_of, decode};
