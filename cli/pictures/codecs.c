/* codecs.c — the format of a picture; libraries of formats. */
#include "cli/pictures/codecs.h"

#include "cli/shell/library.h"

static const lnt_codec *const codecs[] = {&lnt_codec_jpeg, &lnt_codec_png,  &lnt_codec_webp,
                                          &lnt_codec_bmp,  &lnt_codec_tiff, &lnt_codec_jpeg2000,
                                          &lnt_codec_pnm};

lnt_status lnt_picture_open(const uint8_t *bytes, size_t n, lnt_picture *p, const lnt_codec **codec,
                            lnt_error *err)
{
    *p = (lnt_picture){.bytes = bytes, .n = n};
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        *codec = codecs[i];
        if (!codecs[i]->knows(bytes, n))
            continue;
        LNT_TRY(codecs[i]->size(p, err));
        LNT_REQUIRE(p->width && p->height && (uint64_t)p->width * p->height <= LNT_PICTURE_MOST, err,
                    LNT_E_LIMIT, "the picture has %u x %u pixels, at most %d are taken", p->width, p->height,
                    LNT_PICTURE_MOST);
        return LNT_OK;
    }
    return lnt_fail(err, LNT_E_VALUE,
                    "%zu bytes are no picture: JPEG, PNG, WebP, BMP, TIFF, JPEG 2000, PNM are known", n);
}

lnt_status lnt_codec_library(const char *const names[2], const char *package, const lnt_symbol_of *symbol,
                             size_t n, lnt_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (*symbol[i].to)
            continue;
        lnt_error why = {0};
        if (lnt_library_symbol(names[0], symbol[i].name, symbol[i].to, &why) != LNT_OK &&
            lnt_library_symbol(names[1], symbol[i].name, symbol[i].to, &why) != LNT_OK)
            return lnt_fail(err, LNT_E_UNSUPPORTED, "the picture needs a library, of Debian's package %s: %s",
                            package, why.message);
    }
    return LNT_OK;
}

lnt_status lnt_picture_damaged(const char *why, lnt_error *err)
{
    return lnt_fail(err, LNT_E_VALUE, "the picture is damaged: %s", why);
}
