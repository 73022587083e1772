/* segments.c — from speech probabilities to stretches of speech. */
#include "segments.h"

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

segmenter segmenter_start(int rate)
{
    const size_t per_second = (size_t)rate;
    return (segmenter){
        .shortest = per_second * 250 / 1000, .pause = per_second * 100 / 1000, .pad = per_second * 30 / 1000};
}

bool segmenter_feed(segmenter *g, float probability, size_t n, segment *ended)
{
    const size_t now = g->at;
    g->at += n;
    if (probability >= speech) {
        if (!g->speaking)
            g->begin = now;
        g->speaking = true;
        g->quiet = 0;
        return false;
    }
    if (!g->speaking || probability >= silence)
        return false;
    if (!g->quiet)
        g->quiet = now;
    if (now - g->quiet < g->pause)
        return false;
    *ended = (segment){g->begin, g->quiet};
    g->speaking = false;
    g->quiet = 0;
    return ended->end - ended->begin > g->shortest;
}

bool segmenter_end(segmenter *g, segment *ended)
{
    const bool found = g->speaking && g->at - g->begin > g->shortest;
    *ended = (segment){g->begin, g->at};
    g->speaking = false;
    return found;
}

bool segmenter_sure(const segmenter *g)
{
    return g->speaking && !g->quiet && g->at - g->begin > g->shortest;
}

segment *find_segments(const float *probability, size_t n, size_t step, size_t samples, int rate,
                       size_t *count)
{
    segment *found = calloc(n + 1, sizeof *found);
    segmenter g = segmenter_start(rate);

    *count = 0;
    for (size_t i = 0; i < n && found; i++) {
        const size_t left = samples - i * step;
        *count += segmenter_feed(&g, probability[i], left < step ? left : step, &found[*count]);
    }
    if (found)
        *count += segmenter_end(&g, &found[*count]);
    pad_segments(found, *count, g.pad, samples);
    return found;
}
