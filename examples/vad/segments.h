/* segments.h — from speech probabilities to stretches of speech, by silero's published rule. */
#ifndef VAD_SEGMENTS_H
#define VAD_SEGMENTS_H

#include <stddef.h>

typedef struct segment {
    size_t begin, end; /* samples */
} segment;

/* probability[i] is that of samples [i * step, (i + 1) * step) of a sound of `samples` at `rate` Hz. Speech
 * begins at 0.5 and ends where it stays below 0.35 for 100 ms; less than 250 ms is none; 30 ms are added on
 * both sides. Returns segments to free(), their number in *count. */
segment *find_segments(const float *probability, size_t n, size_t step, size_t samples, int rate,
                       size_t *count);

#endif
