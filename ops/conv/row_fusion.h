/* row_fusion.h — row-streamed producer/consumer fusion over a ring buffer.
 *
 * The output of a cheap convolution (the producer) may be larger than the second-level cache. If a depthwise
 * convolution or a pooling (the consumer) is its only reader, the two run as one step: each thread has the producer
 * compute the input lines of its own output rows into a ring buffer of a few lines. Halo lines, which the windows of
 * two threads share, are recomputed by each thread. */
#ifndef LNT_OPS_CONV_ROW_FUSION_H
#define LNT_OPS_CONV_ROW_FUSION_H

#include "ops/op.h"
#include "ops/window.h"

typedef struct lnt_row_fusion {
    const lnt_step *producer; /* computes the lines of the image; NULL: not fused, the image is in memory */
    int64_t batch, height, rows; /* images, their lines, rows of output of each */
    int64_t line;                /* elements of a line */
    size_t element;              /* bytes of each */
    int64_t rows_at_once;        /* rows of output per call of the consumer */
    int64_t ring_lines;          /* line l of all images is in line l % ring_lines of the ring buffer */
    size_t ring_at, ring_bytes;  /* a thread's ring buffer in scratch memory */
} lnt_row_fusion;

/* For bind functions of a consumer with window w, whose rows are best computed `together` at once: fuses the site's
 * producer if that pays. The producer's scratch
 * memory then comes first, the ring buffers follow it, and *scratch is the end of both. */
void lnt_bind_row_fusion(lnt_site *site, const lnt_window *w, int64_t together, lnt_row_fusion *fusion,
                         size_t *scratch);

/* The consumer: rows [row, row_end) of output of an image whose lines are in a ring buffer. */
typedef lnt_status (*lnt_consume_rows_fn)(lnt_kernel *k, const void *arg, const float *ring, int64_t image,
                                          int64_t row, int64_t row_end, unsigned thread);

/* Runs both steps for all rows of output, at least `grain` of them in a slice of work. */
lnt_status lnt_row_fusion_run(lnt_kernel *k, const lnt_step *s, const lnt_row_fusion *fusion,
                              const lnt_window *w, int64_t grain, lnt_consume_rows_fn rows, const void *arg);

#endif
