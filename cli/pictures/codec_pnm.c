/* codec_pnm.c — the portable formats of Netpbm: bitmaps, graymaps, pixmaps, as text (P1 to P3) and bytes (P4 to P6). */
#include "cli/pictures/codecs.h"

#include <string.h>

typedef struct pnm {
    const lnt_picture *picture;
    size_t at;
    unsigned kind; /* the digit behind P */
    uint32_t most; /* the largest value */
} pnm;

static bool knows(const uint8_t *bytes, size_t n)
{
    return n > 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' && memchr(" \t\r\n#", bytes[2], 5);
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Over blanks, and comments from # to the end of the line. */
static void skip(pnm *f)
{
    const lnt_picture *p = f->picture;
    for (bool comment = false; f->at < p->n; f->at++) {
        const uint8_t c = p->bytes[f->at];
        comment = (comment && c != '\n') || c == '#';
        if (!comment && !is_blank(c))
            return;
    }
}

static bool read_number(pnm *f, uint32_t *to)
{
    const lnt_picture *p = f->picture;
    skip(f);
    const size_t first = f->at;
    for (*to = 0; f->at < p->n && p->bytes[f->at] >= '0' && p->bytes[f->at] <= '9' && *to < 1u << 27; f->at++)
        *to = *to * 10 + (uint32_t)(p->bytes[f->at] - '0');
    return f->at > first;
}

static lnt_status read_head(lnt_picture *p, pnm *f, lnt_error *err)
{
    *f = (pnm){.picture = p, .at = 2, .kind = p->bytes[1] - (unsigned)'0', .most = 1};
    const bool bits = f->kind == 1 || f->kind == 4;
    if (!read_number(f, &p->width) || !read_number(f, &p->height) || (!bits && !read_number(f, &f->most)) ||
        !f->most || f->most > UINT16_MAX)
        return lnt_picture_damaged("its head is no PNM's", err);
    f->at += f->kind >= 4; /* the one blank behind the head */
    return LNT_OK;
}

static lnt_status size_of(lnt_picture *p, lnt_error *err)
{
    pnm f;
    return read_head(p, &f, err);
}

/* The next value of a text; bits need no blanks between them. */
static bool read_text(pnm *f, uint32_t *to)
{
    if (f->kind != 1)
        return read_number(f, to);
    skip(f);
    if (f->at >= f->picture->n || (f->picture->bytes[f->at] | 1) != '1')
        return false;
    *to = f->picture->bytes[f->at++] == '0'; /* 1 is black */
    return true;
}

static uint8_t scaled(const pnm *f, uint32_t x)
{
    return (uint8_t)(f->most == 255 ? x : (2 * 255 * (uint64_t)x + f->most) / (2 * (uint64_t)f->most));
}

/* Value i of a row in bytes. */
static uint32_t value_of(const pnm *f, const uint8_t *row, size_t i)
{
    if (f->kind == 4)
        return !(row[i / 8] >> (7 - i % 8) & 1);
    return f->most > 255 ? (uint32_t)row[2 * i] << 8 | row[2 * i + 1] : row[i];
}

static lnt_status decode(const lnt_picture *p, uint8_t *rgb, lnt_error *err)
{
    lnt_picture same = *p;
    pnm f;
    LNT_TRY(read_head(&same, &f, err));
    const unsigned channels = f.kind % 3 == 0 ? 3 : 1;
    const size_t values = (size_t)p->width * channels;
    const size_t stride = f.kind < 4     ? 0
                          : f.kind == 4  ? (values + 7) / 8
                          : f.most > 255 ? 2 * values
                                         : values;
    if (f.at > p->n || (stride && p->height > (p->n - f.at) / stride))
        return lnt_picture_damaged("its PNM ends early", err);
    for (size_t k = 0; k < values * p->height; k++) {
        uint32_t x = 0;
        if (stride)
            x = value_of(&f, p->bytes + f.at + k / values * stride, k % values);
        else if (!read_text(&f, &x))
            return lnt_picture_damaged("its PNM ends early", err);
        if (x > f.most)
            return lnt_picture_damaged("a value of its PNM is too large", err);
        for (unsigned c = 0; c < 3 / channels; c++)
            rgb[k * (3 / channels) + c] = scaled(&f, x);
    }
    return LNT_OK;
}

const lnt_codec lnt_codec_pnm = {"PNM", knows, size_of, decode};
