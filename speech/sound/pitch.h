/* pitch.h — sound is played faster, and so higher: what is spoken that much slower keeps its length. Formants move with
 * the pitch, as of a smaller or larger speaker. Bandlimited interpolation (Julius Smith and Phil Gossett, "A flexible
 * sampling-rate conversion method", 1984). */
#ifndef LNT_SPEECH_SOUND_PITCH_H
#define LNT_SPEECH_SOUND_PITCH_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* All zeros at first. */
typedef struct lnt_pitch {
    float *kernel; /* [CROSSINGS * PHASES + 2], one side of it */
    float *held;   /* samples from number `first` on, which are still needed; an lnt_grow array */
    size_t n, room;
    float *made; /* an lnt_grow array */
    size_t made_room;
    uint64_t first, next; /* next: number of the sample that is made next */
    double ratio;
} lnt_pitch;

/* Of a new sound; ratio from 0.1 to 10. */
lnt_status lnt_pitch_begin(lnt_pitch *p, double ratio, lnt_error *err);
/* x[0..n), and with `last` what was still to come: *y, of *m samples, is p's until its next call. The samples are the
 * same in whatever pieces a sound comes; they are as many as the sound's over the ratio, rounded up. */
lnt_status lnt_pitch_feed(lnt_pitch *p, const float *x, size_t n, bool last, const float **y, size_t *m,
                          lnt_error *err);
void lnt_pitch_free(lnt_pitch *p);

#endif
