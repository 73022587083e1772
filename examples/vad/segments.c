/* segments.c — from speech probabilities to stretches of speech. */
#include "segments.h"

#include <stdbool.h>
#include <stdlib.h>

static const float speech = 0.5f, silence = 0.35f;

/* Widens by pad; a gap too small for two pads is halved. */
static void pad_segments(segment *s, size_t n, size_t pad, size_t samples)
{
    for (size_t i = 0; i < n; i++) {
        const size_t gap = i + 1 < n ? s[i + 1].begin - s[i].end : 2 * pad;
        const size_t share = gap < 2 * pad ? gap / 2 : pad;
        if (i == 0)
            s[0].begin = s[0].begin > pad ? s[0].begin - pad : 0;
        s[i].end = s[i].end + share < samples ? s[i].end + share : samples;
        if (i + 1 < n)
            s[i + 1].begin -= share;
    }
}

segment *find_segments(const float *probability, size_t n, size_t step, size_t samples, int rate,
                       size_t *count)
{
    const size_t shortest = (size_t)rate * 250 / 1000, pause = (size_t)rate * 100 / 1000;
    segment *found = calloc(n + 1, sizeof *found);
    size_t begin = 0, quiet = 0; /* quiet: where the present pause began, 0 outside of one */
    bool speaking = false;

    *count = 0;
    for (size_t i = 0; i < n && found; i++) {
        if (probability[i] >= speech) {
            if (!speaking)
                begin = i * step;
            speaking = true;
            quiet = 0;
        } else if (speaking && probability[i] < silence) {
            if (!quiet)
                quiet = i * step;
            if (i * step - quiet < pause)
                continue;
            if (quiet - begin > shortest)
                found[(*count)++] = (segment){begin, quiet};
            speaking = false;
            quiet = 0;
        }
    }
    if (speaking && found && samples - begin > shortest)
        found[(*count)++] = (segment){begin, samples};
    pad_segments(found, *count, (size_t)rate * 30 / 1000, samples);
    return found;
}
