/* segments.h — from speech probabilities to stretches of speech, by silero's published rule: speech begins at 0.5
 * and ends where it stays below 0.35 for 100 ms; less than 250 ms is none; 30 ms are added on both sides. */
#ifndef VAD_SEGMENTS_H
#define VAD_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct segment {
    size_t begin, end; /* samples */
} segment;

/* Finds them one by one, without what is added on both sides. */
typedef struct segmenter {
    size_t shortest, pause, pad; /* of the rule, in samples */
    size_t at;                   /* samples heard */
    size_t begin, quiet;         /* of the present stretch; where its present pause began, 0 outside of one */
    bool speaking;
} segmenter;

segmenter segmenter_start(int rate);
/* The next n samples are speech with this probability; true if a stretch has ended, which *ended receives. */
bool segmenter_feed(segmenter *g, float probability, size_t n, segment *ended);
/* No samples follow; as above. */
bool segmenter_end(segmenter *g, segment *ended);
/* Whether the present stretch is long enough already to be one. */
bool segmenter_sure(const segmenter *g);

/* probability[i] is that of samples [i * step, (i + 1) * step) of a sound of `samples` at `rate` Hz. Returns
 * segments to free(), their number in *count. */
segment *find_segments(const float *probability, size_t n, size_t step, size_t samples, int rate,
                       size_t *count);

#endif
