/* attend.h — the kernel table of attention: what is done to a block of queries between and after the
 * products.
 *
 * A block is LNT_ATTEND_ROWS queries that share a key head. Their logits are stored [key][query], one query per
 * lane, so that maxima and sums run down the lanes; blocks of very few queries are [query][key] instead ("by
 * rows"). Keys come in blocks, too: what earlier ones have given is scaled whenever a larger logit is found. */
#ifndef LNT_OPS_ATTENTION_ATTEND_H
#define LNT_OPS_ATTENTION_ATTEND_H

#include "ops/kernels.h"

#include <stdint.h>

enum {
    LNT_ATTEND_LANES = 16, /* queries side by side; a block has these or twice as many */
    LNT_ATTEND_ROWS = 2 * LNT_ATTEND_LANES
};

/* y[i] = (y[i] * factor[i] + sum over keys k of weight[i][k] * v[k]) * post[i] */
typedef struct lnt_mix {
    const float *p; /* weight[i][k] is p[k * lanes + i], or p[i * p_row + k] where lanes is 0 */
    int64_t lanes, p_row;
    const float *v; /* [keys], v_row floats from one to the next */
    int64_t v_row, keys, width;
    unsigned rows; /* at most LNT_ATTEND_ROWS */
    float *const *y;
    const float *factor; /* NULL: y holds nothing yet */
    const float *post;
} lnt_mix;

typedef struct lnt_attend_kernels {
    /* LNT_ATTEND_LANES rows transposed: out[c][i] = scale * rows[i][c], c < width */
    void (*transpose)(const float *const *rows, int64_t width, float scale, float *out);
    /* s[c][i] += rows[i][c] for as many rows; lanes floats from s[c] to s[c + 1] */
    void (*add_turned)(const float *const *rows, int64_t width, float *s, int64_t lanes);
    /* s[c][i] += bias[c] for all lanes */
    void (*add_bias)(const float *bias, int64_t keys, float *s, int64_t lanes);
    void (*cap)(float *s, int64_t n, float cap); /* s = cap * tanh(s / cap) */
    /* Takes keys more logits in: max and sum of each query, which start as -inf and 0, go on; s becomes
     * e ** (s - max); what was summed before is to be multiplied by factor. */
    void (*choose)(float *s, int64_t keys, int64_t lanes, float *max, float *sum, float *factor);
    /* The same for one query by rows. */
    void (*choose_row)(float *s, int64_t keys, float *max, float *sum, float *factor);
    void (*mix)(const lnt_mix *m);
} lnt_attend_kernels;

#endif
