/* audio_sndfile.c — sound files through libsndfile and libsamplerate. */
#include "cli/data/audio.h"

#include "base/checked.h"
#include "cli/data/model.h"

#include <math.h>
#include <samplerate.h>
#include <sndfile.h>
#include <string.h>

/* ---- a file in memory ---- */

/* Read from bytes, which are the caller's; or written to them, an lnt_alloc block that grows. */
typedef struct memory_file {
    uint8_t *bytes;
    size_t size, at, capacity;
    lnt_error *err;
} memory_file;

static sf_count_t file_size(void *user)
{
    return (sf_count_t)((const memory_file *)user)->size;
}

static sf_count_t file_at(void *user)
{
    return (sf_count_t)((const memory_file *)user)->at;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *user)
{
    memory_file *f = user;
    const size_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? f->at : f->size;
    sf_count_t to;
    if (__builtin_add_overflow((sf_count_t)from, offset, &to) || to < 0 || (size_t)to > f->size)
        return -1;
    f->at = (size_t)to;
    return to;
}

static sf_count_t file_read(void *to, sf_count_t count, void *user)
{
    memory_file *f = user;
    const size_t left = f->size - f->at, n = count < 0 ? 0 : (size_t)count < left ? (size_t)count : left;
    memcpy(to, f->bytes + f->at, n);
    f->at += n;
    return (sf_count_t)n;
}

/* Room for size bytes. */
static bool make_room(memory_file *f, size_t size)
{
    if (size <= f->capacity)
        return true;
    const size_t capacity = 2 * size;
    uint8_t *grown = lnt_alloc(&lnt_malloc_allocator, capacity, f->err);
    if (!grown)
        return false;
    if (f->size)
        memcpy(grown, f->bytes, f->size);
    lnt_free(&lnt_malloc_allocator, f->bytes);
    f->bytes = grown;
    f->capacity = capacity;
    return true;
}

static sf_count_t file_write(const void *from, sf_count_t count, void *user)
{
    memory_file *f = user;
    size_t end;
    if (count < 0 || __builtin_add_overflow(f->at, (size_t)count, &end) || end > PTRDIFF_MAX ||
        !make_room(f, end))
        return 0;
    memcpy(f->bytes + f->at, from, (size_t)count);
    f->at = end;
    f->size = end > f->size ? end : f->size;
    return count;
}

static SNDFILE *open_memory(memory_file *f, int mode, SF_INFO *info)
{
    static SF_VIRTUAL_IO calls = {file_size, file_seek, file_read, file_write, file_at};
    return sf_open_virtual(&calls, mode, info, f);
}

/* ---- samples ---- */

static void to_mono(float *samples, size_t frames, int channels)
{
    for (size_t i = 0; i < frames; i++) {
        float sum = 0;
        for (int c = 0; c < channels; c++)
            sum += samples[i * (size_t)channels + (size_t)c];
        samples[i] = sum / (float)channels;
    }
}

/* The sound with silence behind it, so that a filter's delay costs no sample at the end; NULL if memory is short. */
static float *with_silence(const lnt_sound *sound, size_t silence, lnt_error *err)
{
    float *samples = lnt_alloc_zero(&lnt_malloc_allocator, sound->n + silence, sizeof *samples, err);
    if (samples && sound->n)
        memcpy(samples, sound->samples, sound->n * sizeof *samples);
    return samples;
}

/* As many samples as last as long as the sound did, to the nearest. */
static lnt_status resample(const char *path, uint32_t rate, lnt_sound *sound, lnt_error *err)
{
    const double ratio = (double)rate / sound->rate;
    const size_t wanted = (size_t)lround((double)sound->n * ratio), silence = sound->rate / rate + 64,
                 room = wanted + 64;
    float *from = with_silence(sound, silence, err),
          *to = lnt_alloc(&lnt_malloc_allocator, room * sizeof *to, err);
    SRC_DATA job = {.data_in = from,
                    .data_out = to,
                    .input_frames = (long)(sound->n + silence),
                    .output_frames = (long)room,
                    .src_ratio = ratio};
    const int failed = from && to ? src_simple(&job, SRC_SINC_MEDIUM_QUALITY, 1) : 0;
    lnt_free(&lnt_malloc_allocator, from);
    if (!from || !to || failed) {
        lnt_free(&lnt_malloc_allocator, to);
        return failed ? lnt_fail(err, LNT_E_VALUE, "%s: %s", path, src_strerror(failed)) : LNT_E_MEMORY;
    }
    for (size_t i = (size_t)job.output_frames_gen; i < wanted; i++)
        to[i] = 0;
    lnt_free(&lnt_malloc_allocator, sound->samples);
    *sound = (lnt_sound){.samples = to, .n = wanted, .rate = rate};
    return LNT_OK;
}

/* All samples of an opened file, its channels averaged. */
static lnt_status read_samples(const char *path, SNDFILE *f, const SF_INFO *info, lnt_sound *out,
                               lnt_error *err)
{
    size_t each;
    LNT_REQUIRE(info->frames >= 0 && info->channels >= 1 && info->samplerate >= 1 &&
                    lnt_mul_size((size_t)info->channels, sizeof(float), &each),
                err, LNT_E_VALUE, "%s: no sound in it", path);
    float *samples = lnt_alloc_zero(&lnt_malloc_allocator, (size_t)info->frames, each, err);
    if (!samples)
        return LNT_E_MEMORY;
    const sf_count_t read = sf_readf_float(f, samples, info->frames);
    *out = (lnt_sound){.samples = samples, .n = (size_t)read, .rate = (uint32_t)info->samplerate};
    to_mono(samples, out->n, info->channels);
    LNT_REQUIRE(sf_error(f) == SF_ERR_NO_ERROR, err, LNT_E_FILE, "%s: %s", path, sf_strerror(f));
    return LNT_OK;
}

lnt_status lnt_sound_decode(const char *path, const void *bytes, size_t size, uint32_t want_rate,
                            lnt_sound *out, lnt_error *err)
{
    SF_INFO info = {0};
    memory_file file = {.bytes = (uint8_t *)(uintptr_t)bytes, .size = size};
    SNDFILE *f = open_memory(&file, SFM_READ, &info);
    *out = (lnt_sound){0};
    LNT_REQUIRE(f, err, LNT_E_FILE, "%s: %s", path, sf_strerror(NULL));
    lnt_status status = read_samples(path, f, &info, out, err);
    sf_close(f);
    if (status == LNT_OK && want_rate && want_rate != out->rate)
        status = resample(path, want_rate, out, err);
    if (status != LNT_OK) {
        lnt_free(&lnt_malloc_allocator, out->samples);
        *out = (lnt_sound){0};
    }
    return status;
}

/* n samples, of one kind or the other. */
typedef struct sound_source {
    const float *samples; /* NULL: pcm */
    const int16_t *pcm;
    size_t n;
    uint32_t rate;
} sound_source;

static bool write_all(SNDFILE *f, const sound_source *from)
{
    const sf_count_t n = (sf_count_t)from->n;
    sf_command(f, SFC_SET_CLIPPING, NULL, SF_TRUE);
    const sf_count_t written =
        from->samples ? sf_writef_float(f, from->samples, n) : sf_writef_short(f, from->pcm, n);
    return sf_close(f) == 0 && written == n;
}

static lnt_status encode(const char *path, const sound_source *from, void **bytes, size_t *size,
                         lnt_error *err)
{
    SF_INFO info = {.samplerate = (int)from->rate, .channels = 1};
    info.format = lnt_ends_with(path, ".flac")  ? SF_FORMAT_FLAC | SF_FORMAT_PCM_16
                  : lnt_ends_with(path, ".ogg") ? SF_FORMAT_OGG | SF_FORMAT_VORBIS
                                                : SF_FORMAT_WAV | SF_FORMAT_PCM_16;
    memory_file file = {.err = err};
    SNDFILE *f = open_memory(&file, SFM_WRITE, &info);
    const bool whole = f && write_all(f, from);
    *bytes = file.bytes;
    *size = file.size;
    if (err && err->code != LNT_OK)
        return err->code;
    LNT_REQUIRE(f, err, LNT_E_VALUE, "%s: %s", path, sf_strerror(NULL));
    LNT_REQUIRE(whole, err, LNT_E_VALUE, "%s: the sound cannot be encoded", path);
    return LNT_OK;
}

lnt_status lnt_sound_encode(const char *path, const float *samples, size_t n, uint32_t rate, void **bytes,
                            size_t *size, lnt_error *err)
{
    return encode(path, &(sound_source){.samples = samples, .n = n, .rate = rate}, bytes, size, err);
}

lnt_status lnt_sound_encode_pcm(const char *path, const int16_t *pcm, size_t n, uint32_t rate, void **bytes,
                                size_t *size, lnt_error *err)
{
    return encode(path, &(sound_source){.pcm = pcm, .n = n, .rate = rate}, bytes, size, err);
}
