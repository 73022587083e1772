/* codec_jpeg2000.c — JPEG 2000, by OpenJPEG. */
#include "cli/pictures/codecs.h"

#include <stdio.h>
#include <string.h>

/* As openjpeg.h of 2.x has them. */
typedef struct component {
    uint32_t dx, dy, width, height, x0, y0, precision, bits, is_signed, resolutions, factor;
    int32_t *data; /* [height, width] */
    uint16_t alpha;
} component;

typedef struct image {
    uint32_t x0, y0, x1, y1, n_components;
    int color_space;
    component *component;
    uint8_t *profile;
    uint32_t profile_bytes;
} image;

typedef union parameters {
    uint8_t bytes[16384]; /* the library's are half of that */
    void *aligned;
} parameters;

typedef struct source {
    const lnt_picture *picture;
    size_t at;
} source;

typedef size_t read_some_fn(void *to, size_t n, void *user);
typedef int64_t skip_fn(int64_t n, void *user);
typedef int seek_fn(int64_t at, void *user);

enum { CODESTREAM = 0, JP2 = 2, CHUNK = 1 << 16, INPUT = 1, PRECISION_MOST = 16 };

static void *(*create_decoder)(int format);
static void (*destroy_decoder)(void *decoder);
static void (*set_defaults)(void *parameters);
static int (*setup)(void *decoder, void *parameters);
static void *(*create_stream)(size_t chunk, int is_input);
static void (*destroy_stream)(void *stream);
static void (*set_read)(void *stream, read_some_fn *read);
static void (*set_skip)(void *stream, skip_fn *skip);
static void (*set_seek)(void *stream, seek_fn *seek);
static void (*set_user)(void *stream, void *user, void (*destroy)(void *user));
static void (*set_length)(void *stream, uint64_t n);
static int (*read_header)(void *stream, void *decoder, image **to);
static int (*decode_all)(void *decoder, void *stream, image *to);
static void (*destroy_image)(image *i);

static lnt_status load(lnt_error *err)
{
    static const char *const names[2] = {"libopenjp2.so.7", "libopenjp2.so"};
    const lnt_symbol_of symbols[] = {{"opj_create_decompress", (void **)&create_decoder},
                                     {"opj_destroy_codec", (void **)&destroy_decoder},
                                     {"opj_set_default_decoder_parameters", (void **)&set_defaults},
                                     {"opj_setup_decoder", (void **)&setup},
                                     {"opj_stream_create", (void **)&create_stream},
                                     {"opj_stream_destroy", (void **)&destroy_stream},
                                     {"opj_stream_set_read_function", (void **)&set_read},
                                     {"opj_stream_set_skip_function", (void **)&set_skip},
                                     {"opj_stream_set_seek_function", (void **)&set_seek},
                                     {"opj_stream_set_user_data", (void **)&set_user},
                                     {"opj_stream_set_user_data_length", (void **)&set_length},
                                     {"opj_read_header", (void **)&read_header},
                                     {"opj_decode", (void **)&decode_all},
                                     {"opj_image_destroy", (void **)&destroy_image}};
    return lnt_codec_library(names, "libopenjp2-7", symbols, sizeof symbols / sizeof *symbols, err);
}

/* ---- the file in memory, as the library reads it ---- */

static size_t read_some(void *to, size_t n, void *user)
{
    source *s = user;
    const size_t left = s->picture->n - s->at, taken = n < left ? n : left;
    if (!taken)
        return (size_t)-1;
    memcpy(to, s->picture->bytes + s->at, taken);
    s->at += taken;
    return taken;
}

static int seek_to(int64_t at, void *user)
{
    source *s = user;
    if (at < 0 || (uint64_t)at > s->picture->n)
        return 0;
    s->at = (size_t)at;
    return 1;
}

static int64_t skip_some(int64_t n, void *user)
{
    source *s = user;
    const int64_t left = (int64_t)(s->picture->n - s->at), skipped = n < left ? n : left;
    if (n < 0 || !left)
        return -1;
    s->at += (size_t)skipped;
    return skipped;
}

/* ---- pixels ---- */

static uint8_t eight_bits(const component *c, size_t i)
{
    const int32_t x = c->data[i] + (c->is_signed ? 1 << (c->precision - 1) : 0);
    const int32_t y = c->precision > 8 ? x >> (c->precision - 8) : x;
    const int32_t most = c->precision > 8 ? 255 : (1 << c->precision) - 1;
    const int32_t inside = y < 0 ? 0 : y > most ? most : y;
    return (uint8_t)(most == 255 ? inside : inside * 255 / most);
}

/* Gray, or three colors of the picture's own extents; others are refused. */
static lnt_status put_pixels(const lnt_picture *p, const image *i, uint8_t *rgb, lnt_error *err)
{
    const uint32_t channels = i->n_components < 3 ? 1 : 3;
    for (uint32_t c = 0; c < channels; c++) {
        const component *from = &i->component[c];
        LNT_REQUIRE(from->data && from->width == p->width && from->height == p->height && from->precision &&
                        from->precision <= PRECISION_MOST,
                    err, LNT_E_UNSUPPORTED, "the picture's JPEG 2000 has components of different extents");
    }
    for (size_t k = 0; k < 3 * (size_t)p->width * p->height; k++)
        rgb[k] = eight_bits(&i->component[channels == 1 ? 0 : k % 3], k / 3);
    return LNT_OK;
}

/* rgb NULL: the size alone. */
static lnt_status read_image(void *decoder, void *stream, lnt_picture *p, uint8_t *rgb, lnt_error *err)
{
    parameters how;
    image *i = NULL;
    set_defaults(&how);
    if (!setup(decoder, &how) || !read_header(stream, decoder, &i))
        return lnt_picture_damaged("its head is no JPEG 2000's", err);
    lnt_status status = LNT_OK;
    const uint32_t width = i->n_components ? i->component[0].width : 0,
                   height = i->n_components ? i->component[0].height : 0;
    if (!rgb) {
        p->width = width;
        p->height = height;
    } else if (width != p->width || height != p->height || !decode_all(decoder, stream, i)) {
        status = lnt_picture_damaged("its JPEG 2000 cannot be decoded", err);
    } else {
        status = put_pixels(p, i, rgb, err);
    }
    destroy_image(i);
    return status;
}

static bool is_codestream(const uint8_t *bytes)
{
    return memcmp(bytes, "\xff\x4f\xff\x51", 4) == 0;
}

static bool knows(const uint8_t *bytes, size_t n)
{
    return n > 12 && (is_codestream(bytes) || memcmp(bytes, "\0\0\0\x0cjP  \r\n\x87\n", 12) == 0);
}

static lnt_status read_picture(lnt_picture *p, uint8_t *rgb, lnt_error *err)
{
    source s = {.picture = p};
    LNT_TRY(load(err));
    void *decoder = create_decoder(is_codestream(p->bytes) ? CODESTREAM : JP2);
    void *stream = create_stream(CHUNK, INPUT);
    lnt_status status = LNT_E_MEMORY;
    if (decoder && stream) {
        set_read(stream, read_some);
        set_skip(stream, skip_some);
        set_seek(stream, seek_to);
        set_user(stream, &s, NULL);
        set_length(stream, p->n);
        status = read_image(decoder, stream, p, rgb, err);
    }
    if (stream)
        destroy_stream(stream);
    if (decoder)
        destroy_decoder(decoder);
    return status == LNT_E_MEMORY ? lnt_fail(err, status, "no memory for a decoder of JPEG 2000") : status;
}

static lnt_status size_of(lnt_picture *p, lnt_error *err)
{
    return read_picture(p, NULL, err);
}

static lnt_status decode(const lnt_picture *p, uint8_t *rgb, lnt_error *err)
{
    lnt_picture copy = *p;
    return read_picture(&copy, rgb, err);
}

const lnt_codec lnt_codec_jpeg2000 = {"JPEG 2000", knows, size_of, decode};
