/* audio.h — sound files as mono float samples. */
#ifndef LNT_CLI_DATA_AUDIO_H
#define LNT_CLI_DATA_AUDIO_H

#include "base/memory.h"

typedef struct lnt_sound {
    float *samples; /* in [-1, 1], channels averaged; an lnt_alloc block of malloc's */
    size_t n;
    uint32_t rate; /* Hz */
} lnt_sound;

/* .wav; with libsndfile also .flac, .ogg and what else it knows. want_rate 0: as it is, else brought to that
 * rate (needs libsamplerate where they differ). */
lnt_status lnt_sound_read(const char *path, uint32_t want_rate, lnt_sound *out, lnt_error *err);
/* 16-bit mono .wav; with libsndfile also .flac and .ogg. */
lnt_status lnt_sound_write(const char *path, const float *samples, size_t n, uint32_t rate, lnt_error *err);
/* The same of a file in memory; path is for its ending and for messages. *bytes is an lnt_alloc block of
 * malloc's, to be freed after a failure too. */
lnt_status lnt_sound_decode(const char *path, const void *bytes, size_t size, uint32_t want_rate,
                            lnt_sound *out, lnt_error *err);
lnt_status lnt_sound_encode(const char *path, const float *samples, size_t n, uint32_t rate, void **bytes,
                            size_t *size, lnt_error *err);
/* Of 16 bits to begin with: .wav and .flac have exactly these samples. */
lnt_status lnt_sound_encode_pcm(const char *path, const int16_t *pcm, size_t n, uint32_t rate, void **bytes,
                                size_t *size, lnt_error *err);
/* By its ending: .wav .flac .ogg */
bool lnt_sound_name(const char *path);

#endif
