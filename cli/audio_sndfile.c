/* audio_sndfile.c — sound files through libsndfile and libsamplerate. */
#include "cli/audio.h"

#include "cli/model.h"

#include <samplerate.h>
#include <sndfile.h>

bool lnt_sound_name(const char *path)
{
    return lnt_ends_with(path, ".wav") || lnt_ends_with(path, ".flac") || lnt_ends_with(path, ".ogg");
}

static void to_mono(float *samples, size_t frames, int channels)
{
    for (size_t i = 0; i < frames; i++) {
        float sum = 0;
        for (int c = 0; c < channels; c++)
            sum += samples[i * (size_t)channels + (size_t)c];
        samples[i] = sum / (float)channels;
    }
}

static lnt_status resample(const char *path, uint32_t rate, lnt_sound *sound, lnt_error *err)
{
    const double ratio = (double)rate / sound->rate;
    const size_t room = (size_t)((double)sound->n * ratio) + 64;
    float *samples = lnt_alloc(&lnt_malloc_allocator, room * sizeof *samples, err);
    if (!samples)
        return LNT_E_MEMORY;
    SRC_DATA job = {.data_in = sound->samples,
                    .data_out = samples,
                    .input_frames = (long)sound->n,
                    .output_frames = (long)room,
                    .src_ratio = ratio};
    const int failed = src_simple(&job, SRC_SINC_MEDIUM_QUALITY, 1);
    lnt_free(&lnt_malloc_allocator, sound->samples);
    sound->samples = samples;
    sound->n = (size_t)job.output_frames_gen;
    sound->rate = rate;
    LNT_REQUIRE(!failed, err, LNT_E_VALUE, "%s: %s", path, src_strerror(failed));
    return LNT_OK;
}

lnt_status lnt_sound_read(const char *path, uint32_t want_rate, lnt_sound *out, lnt_error *err)
{
    SF_INFO info = {0};
    SNDFILE *f = sf_open(path, SFM_READ, &info);
    *out = (lnt_sound){0};
    LNT_REQUIRE(f, err, LNT_E_IO, "%s: %s", path, sf_strerror(NULL));
    size_t bytes;
    if (info.frames < 0 || info.channels < 1 || info.samplerate < 1 ||
        __builtin_mul_overflow((size_t)info.frames, (size_t)info.channels * sizeof(float), &bytes)) {
        sf_close(f);
        return lnt_fail(err, LNT_E_VALUE, "%s: no sound in it", path);
    }
    float *samples = lnt_alloc(&lnt_malloc_allocator, bytes, err);
    if (samples) {
        const sf_count_t read = sf_readf_float(f, samples, info.frames);
        *out = (lnt_sound){.samples = samples, .n = (size_t)read, .rate = (uint32_t)info.samplerate};
        to_mono(samples, out->n, info.channels);
    }
    sf_close(f);
    if (!samples)
        return LNT_E_MEMORY;
    const lnt_status status =
        want_rate && want_rate != out->rate ? resample(path, want_rate, out, err) : LNT_OK;
    if (status != LNT_OK)
        lnt_free(&lnt_malloc_allocator, out->samples);
    return status;
}

lnt_status lnt_sound_write(const char *path, const float *samples, size_t n, uint32_t rate, lnt_error *err)
{
    SF_INFO info = {.samplerate = (int)rate, .channels = 1};
    info.format = lnt_ends_with(path, ".flac")  ? SF_FORMAT_FLAC | SF_FORMAT_PCM_16
                  : lnt_ends_with(path, ".ogg") ? SF_FORMAT_OGG | SF_FORMAT_VORBIS
                                                : SF_FORMAT_WAV | SF_FORMAT_PCM_16;
    SNDFILE *f = sf_open(path, SFM_WRITE, &info);
    LNT_REQUIRE(f, err, LNT_E_IO, "%s: %s", path, sf_strerror(NULL));
    sf_command(f, SFC_SET_CLIPPING, NULL, SF_TRUE);
    const bool whole = sf_writef_float(f, samples, (sf_count_t)n) == (sf_count_t)n;
    LNT_REQUIRE(sf_close(f) == 0 && whole, err, LNT_E_IO, "%s: cannot write it", path);
    return LNT_OK;
}
