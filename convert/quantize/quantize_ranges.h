/* quantize_ranges.h — calibration: the ranges of the values of a float model, observed in runs of it. */
#ifndef LNT_CONVERT_QUANTIZE_QUANTIZE_RANGES_H
#define LNT_CONVERT_QUANTIZE_QUANTIZE_RANGES_H

#include "base/error.h"

#include <stdbool.h>

typedef enum lnt_range_method {
    LNT_RANGE_MINMAX,     /* all that was seen */
    LNT_RANGE_PERCENTILE, /* without the outermost of ten thousand elements */
    LNT_RANGE_ENTROPY,    /* of the least KL divergence */
    LNT_RANGE_MSE,        /* of the least squared error of rounding and of clipping */
    LNT_RANGE_BEST        /* the one of these that serves the outputs best */
} lnt_range_method;

enum { LNT_SEEN_BINS = 2048 };

/* What was seen of one value; all zeros: nothing yet. */
typedef struct lnt_seen {
    float low, high;
    bool any, not_finite;
    uint64_t *bin; /* [LNT_SEEN_BINS] over low..high; NULL where only the bounds are wanted */
} lnt_seen;

/* The first look at n elements, and the second, once all bounds are known. */
void lnt_seen_bounds(lnt_seen *s, const float *x, int64_t n);
void lnt_seen_count(lnt_seen *s, const float *x, int64_t n);
/* The range to be held, 0 included. */
void lnt_seen_range(const lnt_seen *s, lnt_range_method method, float *low, float *high);

#endif
