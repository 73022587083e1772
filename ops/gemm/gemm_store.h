/* gemm_store.h — how much of a node's epilogue program fits into the store of a tile. */
#ifndef LNT_OPS_GEMM_GEMM_STORE_H
#define LNT_OPS_GEMM_GEMM_STORE_H

#include "ops/elementwise/epilogue.h"

/* Inputs by number, -1 where there is none. */
typedef struct lnt_store {
    int bias;     /* added per column */
    int residual; /* added element by element; has output 0's strides */
    float low, high;
    const lnt_epilogue *program; /* NULL, or the whole program, which then does everything itself */
} lnt_store;

/* Reads the node's program (none: a plain store). Columns are axis `column_axis` of output 0. own_bias is the
 * operator's own bias input or -1; with residual_fits a residual may be taken in. */
lnt_status lnt_bind_store(lnt_site *site, unsigned column_axis, int own_bias, bool residual_fits,
                          lnt_store *out);

/* Inputs that belong to the operator, not to its program. */
static inline unsigned lnt_own_inputs(const lnt_site *site)
{
    return site->n_in - site->node->n_program_in;
}

/* Own input i, NULL where skipped. */
static inline const lnt_operand *lnt_own_input(const lnt_site *site, unsigned i)
{
    return i < lnt_own_inputs(site) ? site->in[i] : NULL;
}

#endif
