/* row_fusion.h — an image that the step before makes line by line, while the rows that read it go down.
 *
 * What a convolution of small work makes of few or many channels may be larger than a second-level cache.
 * Where it is read once and by nobody else the two steps run together: each thread has the lines that its
 * rows need made into a ring of a few. */
#ifndef LNT_OPS_CONV_ROW_FUSION_H
#define LNT_OPS_CONV_ROW_FUSION_H

#include "ops/op.h"
#include "ops/window.h"

typedef struct lnt_feed {
    const lnt_step *step;        /* makes the lines of the image; NULL: that lies in memory */
    int64_t batch, height, rows; /* images, their lines, rows of output of each */
    int64_t line;                /* floats of a line */
    int64_t rows_at_once;        /* rows of output that share a call */
    int64_t ring_lines;          /* line l of all images is number l % ring_lines of a ring */
    size_t ring_at, ring_bytes;  /* in scratch memory, of a thread */
} lnt_feed;

/* For bind functions of windows w that go along rows: takes the site's feeder if that is to the good. Then
 * its scratch memory comes before all other, the rings behind it, and *scratch is the end of both. */
void lnt_bind_feed(lnt_site *site, const lnt_window *w, lnt_feed *feed, size_t *scratch);

/* Rows [row, row_end) of output of an image whose lines are in a ring. */
typedef lnt_status (*lnt_fed_fn)(lnt_kernel *k, const void *arg, const float *ring, int64_t image,
                                 int64_t row, int64_t row_end, unsigned thread);

/* All rows of the step, at least `grain` of them in a slice of work. */
lnt_status lnt_feed_run(lnt_kernel *k, const lnt_step *s, const lnt_feed *feed, const lnt_window *w,
                        int64_t grain, lnt_fed_fn rows, const void *arg);

#endif
