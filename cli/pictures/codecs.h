/* codecs.h — pictures in files' formats, as pixels. BMP and the portable formats are read here; the others by the
 * system's libraries, which are opened when the first such picture comes: libjpeg-turbo, libpng, libwebp, libtiff,
 * OpenJPEG. */
#ifndef LNT_CLI_PICTURES_CODECS_H
#define LNT_CLI_PICTURES_CODECS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { LNT_PICTURE_MOST = 1 << 28 /* pixels */ };

typedef struct lnt_picture {
    const uint8_t *bytes; /* the file */
    size_t n;
    uint32_t width, height;
} lnt_picture;

typedef struct lnt_codec {
    const char *name;
    /* Do files of this format begin so? */
    bool (*knows)(const uint8_t *bytes, size_t n);
    /* Sets width and height. */
    lnt_status (*size)(lnt_picture *p, lnt_error *err);
    /* rgb [height, width, 3]. An alpha channel is left out. */
    lnt_status (*decode)(const lnt_picture *p, uint8_t *rgb, lnt_error *err);
} lnt_codec;

extern const lnt_codec lnt_codec_bmp, lnt_codec_jpeg, lnt_codec_jpeg2000, lnt_codec_png, lnt_codec_pnm,
    lnt_codec_tiff, lnt_codec_webp;

/* The format of a picture, and its extents. LNT_E_VALUE: it is none that is known; LNT_E_UNSUPPORTED: its library is
 * not installed. */
lnt_status lnt_picture_open(const uint8_t *bytes, size_t n, lnt_picture *p, const lnt_codec **codec,
                            lnt_error *err);

/* ---- for the codecs ---- */

/* A function of a library. */
typedef struct lnt_symbol_of {
    const char *name;
    void **to;
} lnt_symbol_of;

/* Opens the library, of either name, and finds functions; package: what Debian calls it. Does nothing the next time. */
lnt_status lnt_codec_library(const char *const names[2], const char *package, const lnt_symbol_of *symbol,
                             size_t n, lnt_error *err);
/* LNT_E_VALUE: "the picture is damaged: why". */
lnt_status lnt_picture_damaged(const char *why, lnt_error *err);

#endif
