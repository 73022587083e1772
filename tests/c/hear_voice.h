/* hear_voice.h — what a voice emits, kept. */
#ifndef LNT_TESTS_HEAR_VOICE_H
#define LNT_TESTS_HEAR_VOICE_H

#include "model_builder.h"

#include <string.h>

typedef struct heard {
    int16_t pcm[4096];
    size_t n, most; /* most: after which to stop */
} heard;

/* An lnt_voice_emit. */
static inline int hear(void *user, const int16_t *pcm, size_t n)
{
    heard *h = user;
    assert_true(h->n + n <= sizeof h->pcm / sizeof *h->pcm);
    memcpy(h->pcm + h->n, pcm, n * sizeof *pcm);
    h->n += n;
    return h->n > h->most;
}

#endif
