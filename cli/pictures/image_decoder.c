/* image_decoder.c — ONNX's ImageDecoder: a file's bytes [n] to pixels [height, width, channels], uint8. */
#include "cli/pictures/image_decoder.h"

#include "cli/pictures/codecs.h"

#include "base/memory.h"

#include <string.h>

/* Channels of an attribute pixel_format; 0: there is no such format. */
static int64_t channels_of(const char *format)
{
    const bool gray = strcmp(format, "Grayscale") == 0;
    return gray ? 1 : strcmp(format, "RGB") == 0 || strcmp(format, "BGR") == 0 ? 3 : 0;
}

static lnt_status open_picture(lnt_custom_call *call, lnt_picture *p, const lnt_codec **codec)
{
    const lnt_tensor *in = &call->in[0];
    LNT_REQUIRE(call->n_in == 1 && call->n_out == 1 && in->dtype == LNT_UINT8 && in->rank == 1, call->err,
                LNT_E_TYPE, "ImageDecoder: its input is the bytes of a file, uint8 [n]");
    return lnt_picture_open(in->data, in->bytes, p, codec, call->err);
}

static lnt_status shape(lnt_custom_call *call)
{
    const char *format = lnt_custom_attr_string(call, "pixel_format", "RGB");
    const lnt_codec *codec;
    lnt_picture p;
    LNT_TRY(open_picture(call, &p, &codec));
    LNT_REQUIRE(channels_of(format), call->err, LNT_E_VALUE,
                "ImageDecoder: pixel_format is RGB, BGR or Grayscale, not %s", format);
    call->out[0] =
        (lnt_tensor){.dtype = LNT_UINT8, .rank = 3, .dims = {p.height, p.width, channels_of(format)}};
    return LNT_OK;
}

/* ITU-R BT.601's luma, in 16 bits. */
static uint8_t gray_of(const uint8_t *rgb)
{
    return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

static void swap_colors(uint8_t *rgb, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++) {
        const uint8_t red = rgb[3 * i];
        rgb[3 * i] = rgb[3 * i + 2];
        rgb[3 * i + 2] = red;
    }
}

static lnt_status decode_gray(const lnt_codec *codec, const lnt_picture *p, uint8_t *gray, lnt_error *err)
{
    const size_t pixels = (size_t)p->width * p->height;
    uint8_t *rgb = lnt_alloc(&lnt_malloc_allocator, 3 * pixels, err);
    if (!rgb)
        return LNT_E_MEMORY;
    const lnt_status status = codec->decode(p, rgb, err);
    for (size_t i = 0; status == LNT_OK && i < pixels; i++)
        gray[i] = gray_of(rgb + 3 * i);
    lnt_free(&lnt_malloc_allocator, rgb);
    return status;
}

static lnt_status run(lnt_custom_call *call)
{
    const char *format = lnt_custom_attr_string(call, "pixel_format", "RGB");
    const lnt_tensor *out = &call->out[0];
    const lnt_codec *codec;
    lnt_picture p;
    LNT_TRY(open_picture(call, &p, &codec));
    const size_t pixels = (size_t)p.width * p.height;
    LNT_REQUIRE(out->bytes == pixels * (size_t)channels_of(format), call->err, LNT_E_SHAPE,
                "ImageDecoder: the picture has other extents than before");
    if (channels_of(format) == 1)
        return decode_gray(codec, &p, out->data, call->err);
    LNT_TRY(codec->decode(&p, out->data, call->err));
    if (strcmp(format, "BGR") == 0)
        swap_colors(out->data, pixels);
    return LNT_OK;
}

const lnt_custom_op lnt_image_decoder = {
    .domain = "", .name = "ImageDecoder", .value_inputs = 1, .shape = shape, .run = run};
