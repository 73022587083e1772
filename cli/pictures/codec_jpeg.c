/* codec_jpeg.c — JPEG, by libjpeg-turbo's TurboJPEG. */
#include "cli/pictures/codecs.h"

typedef void *decoder;

static decoder (*init)(void);
static int (*header)(decoder d, const uint8_t *bytes, unsigned long n, int *width, int *height, int *sampling,
                     int *colors);
static int (*decompress)(decoder d, const uint8_t *bytes, unsigned long n, uint8_t *to, int width, int pitch,
                         int height, int format, int flags);
static char *(*explain)(decoder d);
static int (*destroy)(decoder d);

static lnt_status load(lnt_error *err)
{
    static const char *const names[2] = {"libturbojpeg.so.0", "libturbojpeg.so"};
    const lnt_symbol_of symbols[] = {{"tjInitDecompress", (void **)&init},
                                     {"tjDecompressHeader3", (void **)&header},
                                     {"tjDecompress2", (void **)&decompress},
                                     {"tjGetErrorStr2", (void **)&explain},
                                     {"tjDestroy", (void **)&destroy}};
    return lnt_codec_library(names, "libturbojpeg0", symbols, sizeof symbols / sizeof *symbols, err);
}

static bool knows(const uint8_t *bytes, size_t n)
{
    return n > 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

/* rgb NULL: the size alone. */
static lnt_status read_picture(lnt_picture *p, uint8_t *rgb, lnt_error *err)
{
    enum { RGB = 0 };
    int width = 0, height = 0, sampling, colors;
    LNT_TRY(load(err));
    decoder d = init();
    LNT_REQUIRE(d, err, LNT_E_MEMORY, "no memory for a decoder of JPEG");
    bool right = header(d, p->bytes, (unsigned long)p->n, &width, &height, &sampling, &colors) == 0;
    if (right && rgb)
        right = width == (int)p->width && height == (int)p->height &&
                decompress(d, p->bytes, (unsigned long)p->n, rgb, width, 0, height, RGB, 0) == 0;
    const lnt_status status = !right                    ? lnt_picture_damaged(explain(d), err)
                              : width > 0 && height > 0 ? LNT_OK
                                                        : lnt_picture_damaged("its JPEG ends in the head", err);
    destroy(d);
    p->width = (uint32_t)width;
    p->height = (uint32_t)height;
    return status;
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

const lnt_codec lnt_codec_jpeg = {"JPEG", knows, size_of, decode};
