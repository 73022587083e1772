/* attention.h — what the files of Attention share: its bound parameters and one run of it.
 *
 *   attention.c          shapes, binding, the cache of past keys and values
 *   attention.inc.h      query by query in float or double: every output, the reference
 *   attention_blocks.c   float in blocks of queries and keys, with the kernels of ops/attention/attend.h */
#ifndef LNT_OPS_ATTENTION_ATTENTION_H
#define LNT_OPS_ATTENTION_ATTENTION_H

#include "base/kernel.h"
#include "ops/attention/attend.h"
#include "ops/gemm/gemm.h"
#include "ops/rows/row.h"

/* Elements between neighbors of an operand [batch][head][row][width], however it is stored. */
typedef struct lnt_attention_layout {
    int64_t batch, head, row, width;
} lnt_attention_layout;

typedef struct lnt_attention {
    const lnt_row_kernels *row;
    const lnt_attend_kernels *attend;
    const lnt_gemm_kernels *gemm;
    int64_t batches, heads, kv_heads, queries, fresh, past, total; /* total = past + fresh keys */
    lnt_attention_layout q, k, v, y, mask;
    bool blocks; /* attention_blocks.c does it */
    bool mask_is_bool, causal;
    int64_t left, right; /* keys a query may look back or ahead; -1: any number */
    double scale, softcap;
    int64_t show;
    size_t thread_bytes; /* scratch */
} lnt_attention;

typedef struct lnt_attention_job {
    const lnt_attention *p;
    size_t size; /* of an element */
    const void *query, *key, *value, *mask, *past_key, *past_value;
    const int64_t *valid; /* [batch] keys that are not padding */
    void *y, *present_key, *present_value, *logits, *scratch;
    /* Elements from head to head of each cache. */
    int64_t past_key_head, past_value_head, present_key_head, present_value_head;
} lnt_attention_job;

/* The keys [first, end) that a query of batch entry b may look at, the mask left aside. */
typedef struct lnt_attention_range {
    int64_t first, end;
} lnt_attention_range;

lnt_attention_range lnt_attention_range_of(const lnt_attention_job *j, int64_t b, int64_t query);

/* Makes the present keys and values of one head, counted through all batches. */
void lnt_attention_extend(const lnt_attention_job *j, int64_t head);
/* Of every head, on all threads. */
lnt_status lnt_attention_extend_all(lnt_kernel *k, lnt_attention_job *j);

/* Float without output of the logits, in blocks; present keys and values, too. */
lnt_status lnt_attention_blocks(lnt_kernel *k, lnt_attention_job *job);
/* Scratch memory of one thread. */
size_t lnt_attention_blocks_bytes(const lnt_attention *p);

#endif
