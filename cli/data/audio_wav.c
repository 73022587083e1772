/* audio_wav.c — sound files of device builds: .wav alone, without resampling. */
#include "cli/data/audio.h"

#include "cli/data/model.h"

#include <math.h>
#include <string.h>

enum {
    PCM = 1,
    IEEE_FLOAT = 3,
    EXTENSIBLE = 0xfffe,
    HEAD = 44 /* bytes before the samples of a file written */
};

typedef struct wav_format {
    unsigned code, channels, rate, bits;
} wav_format;

static uint32_t little(const uint8_t *p, unsigned bytes)
{
    uint32_t v = 0;
    while (bytes--)
        v = v << 8 | p[bytes];
    return v;
}

static void put_little(uint8_t *p, uint32_t v, unsigned bytes)
{
    for (; bytes--; v >>= 8)
        *p++ = (uint8_t)v;
}

static float sample_at(const uint8_t *p, const wav_format *f)
{
    if (f->code == IEEE_FLOAT) {
        const uint32_t bits = little(p, 4);
        float x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    if (f->bits == 8)
        return (float)(p[0] - 128) / 128;
    /* The top bits of a signed word, whatever its width. */
    return (float)(int32_t)(little(p, f->bits / 8) << (32 - f->bits)) * 0x1p-31f;
}

static bool known(const wav_format *f)
{
    if (f->channels < 1 || f->channels > 64 || f->rate < 1)
        return false;
    if (f->code == IEEE_FLOAT)
        return f->bits == 32;
    return f->code == PCM && (f->bits == 8 || f->bits == 16 || f->bits == 24 || f->bits == 32);
}

/* Finds "fmt " and "data" among the chunks. */
static bool parse(const uint8_t *bytes, size_t size, wav_format *f, const uint8_t **data, size_t *data_bytes)
{
    *data = NULL;
    *f = (wav_format){0};
    if (size < 12 || memcmp(bytes, "RIFF", 4) != 0 || memcmp(bytes + 8, "WAVE", 4) != 0)
        return false;
    for (size_t at = 12; size - at >= 8 && !*data;) {
        const uint8_t *chunk = bytes + at + 8;
        const size_t length = little(bytes + at + 4, 4), left = size - at - 8;
        if (memcmp(bytes + at, "fmt ", 4) == 0 && length >= 16 && left >= 16) {
            *f = (wav_format){little(chunk, 2), little(chunk + 2, 2), little(chunk + 4, 4),
                              little(chunk + 14, 2)};
            if (f->code == EXTENSIBLE && length >= 26 && left >= 26)
                f->code = little(chunk + 24, 2);
        } else if (memcmp(bytes + at, "data", 4) == 0) {
            *data = chunk;
            *data_bytes = length < left ? length : left; /* streams say 0xffffffff */
        }
        if (length >= left)
            break;
        at += 8 + length + (length & 1);
        if (at > size)
            break;
    }
    return *data && known(f);
}

lnt_status lnt_sound_decode(const char *path, const void *file, size_t size, uint32_t want_rate,
                            lnt_sound *out, lnt_error *err)
{
    wav_format f;
    const uint8_t *data;
    size_t bytes = 0;

    *out = (lnt_sound){0};
    LNT_REQUIRE(lnt_ends_with(path, ".wav"), err, LNT_E_UNSUPPORTED, "%s: this build reads .wav only", path);
    LNT_REQUIRE(parse(file, size, &f, &data, &bytes), err, LNT_E_VALUE,
                "%s: no .wav of 8 to 32 bits or float", path);
    LNT_REQUIRE(!want_rate || want_rate == f.rate, err, LNT_E_UNSUPPORTED,
                "%s: is %u Hz, %u is wanted; this build does not resample", path, f.rate, want_rate);
    const size_t width = f.bits / 8, n = bytes / (width * f.channels);
    float *samples = lnt_alloc_zero(&lnt_malloc_allocator, n, sizeof *samples, err);
    if (!samples)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (unsigned c = 0; c < f.channels; c++)
            sum += sample_at(data + (i * f.channels + c) * width, &f);
        samples[i] = sum / (float)f.channels;
    }
    *out = (lnt_sound){.samples = samples, .n = n, .rate = f.rate};
    return LNT_OK;
}

/* A .wav of n samples of 16 bits that are still to be written; *file to be freed after a failure, too. */
static lnt_status make_wav(const char *path, size_t n, uint32_t rate, void **file, size_t *size,
                           lnt_error *err)
{
    *file = NULL;
    LNT_REQUIRE(lnt_ends_with(path, ".wav"), err, LNT_E_UNSUPPORTED, "%s: this build writes .wav only", path);
    LNT_REQUIRE(n < (UINT32_MAX - HEAD) / 2, err, LNT_E_LIMIT, "%s: too long for a .wav", path);
    *size = HEAD + 2 * n;
    uint8_t *bytes = *file = lnt_alloc_zero(&lnt_malloc_allocator, *size, 1, err);
    if (!bytes)
        return LNT_E_MEMORY;
    memcpy(bytes, "RIFF----WAVEfmt ", 16);
    put_little(bytes + 4, (uint32_t)*size - 8, 4);
    put_little(bytes + 16, 16, 4);
    put_little(bytes + 20, PCM, 2);
    put_little(bytes + 22, 1, 2);
    put_little(bytes + 24, rate, 4);
    put_little(bytes + 28, 2 * rate, 4);
    put_little(bytes + 32, 2, 2);
    put_little(bytes + 34, 16, 2);
    memcpy(bytes + 36, "data", 4);
    put_little(bytes + 40, (uint32_t)(2 * n), 4);
    return LNT_OK;
}

lnt_status lnt_sound_encode(const char *path, const float *samples, size_t n, uint32_t rate, void **file,
                            size_t *file_bytes, lnt_error *err)
{
    LNT_TRY(make_wav(path, n, rate, file, file_bytes, err));
    for (size_t i = 0; i < n; i++) {
        const float x = fminf(fmaxf(samples[i] * 32768, -32768), 32767);
        put_little((uint8_t *)*file + HEAD + 2 * i, (uint32_t)(int32_t)lrintf(x), 2);
    }
    return LNT_OK;
}

lnt_status lnt_sound_encode_pcm(const char *path, const int16_t *pcm, size_t n, uint32_t rate, void **file,
                                size_t *file_bytes, lnt_error *err)
{
    LNT_TRY(make_wav(path, n, rate, file, file_bytes, err));
    for (size_t i = 0; i < n; i++)
        put_little((uint8_t *)*file + HEAD + 2 * i, (uint32_t)(int32_t)pcm[i], 2);
    return LNT_OK;
}
