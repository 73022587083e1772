/* merge_groups.c — an int8 convolution whose groups have so few features that panels of weights would be nearly
 * empty: as many groups as fill a panel become one. Weights [F, C / groups, k...] get the channels of the others' with
 * a filter's zero point for each weight, which adds nothing. So the panels are as many and as large, rows of
 * receptive fields fewer. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include "ops/quant/qgemm.h"
#include "ops/quant/qparams.h"

#include <string.h>

/* The operands of a node. */
typedef struct grouped {
    unsigned at;                           /* input that the weights are */
    int64_t groups, features, depth, taps; /* features and channels of a group */
    const lnt_operand *weights, *zero;     /* zero: one or for each filter; NULL: 0 */
} grouped;

static bool is_byte_constant(const lnt_graph *g, uint32_t value)
{
    return lnt_is_constant(g, value) && lnt_is_byte(lnt_ginfo(g, value)->dtype) && lnt_ginfo(g, value)->data;
}

static bool find(const lnt_graph *g, const lnt_gnode *n, grouped *p)
{
    const bool linear = lnt_is(n, QLinearConv);
    if (!linear && !lnt_is(n, ConvInteger))
        return false;
    const uint32_t w = lnt_in_value(n, linear ? 3 : 1), zero = lnt_in_value(n, linear ? 5 : 3);
    *p = (grouped){.at = linear ? 3 : 1, .groups = lnt_gnode_int(n, "group", 1), .weights = lnt_ginfo(g, w)};
    if (!is_byte_constant(g, w) || (zero != LNT_NONE && !is_byte_constant(g, zero)) || p->weights->rank < 3 ||
        p->groups < 2 || p->weights->dims[0] % p->groups || lnt_operand_count(p->weights) < 1)
        return false;
    p->zero = zero == LNT_NONE ? NULL : lnt_ginfo(g, zero);
    p->features = p->weights->dims[0] / p->groups;
    p->depth = p->weights->dims[1];
    p->taps = lnt_operand_count(p->weights) / (p->weights->dims[0] * p->depth);
    const int64_t points = p->zero ? lnt_operand_count(p->zero) : 1;
    return points == 1 || points == p->weights->dims[0];
}

/* How many groups become one; 1 where there is a kernel without panels, or rows would be too long. */
static int64_t merged_groups(const grouped *p)
{
    enum { TERMS_MOST = 1 << 16 };
    int64_t n = 1;
    if (p->features == 1 && p->depth == 1 && p->taps <= LNT_QTAPS_MAX)
        return 1;
    for (int64_t i = 2; i * p->features <= LNT_QPANEL; i++)
        if (p->groups % i == 0 && p->depth * p->taps <= TERMS_MOST / i)
            n = i;
    return n;
}

/* The weights, of `merged` groups each. */
static uint32_t spread_weights(lnt_graph *g, const grouped *p, int64_t merged)
{
    const lnt_operand *w = p->weights;
    const uint8_t *from = w->data, *zero = p->zero ? p->zero->data : NULL;
    const int64_t row = p->depth * p->taps, bytes = w->dims[0] * row * merged;
    int64_t dims[LNT_MAX_RANK];
    uint8_t *to = bytes < PTRDIFF_MAX ? lnt_bump_alloc(&g->memory, (size_t)bytes, g->err) : NULL;
    if (!to)
        return LNT_NONE;
    for (int64_t f = 0; f < w->dims[0]; f++) {
        uint8_t *filter = to + f * row * merged;
        memset(filter, zero ? zero[lnt_operand_count(p->zero) > 1 ? f : 0] : 0, (size_t)(row * merged));
        memcpy(filter + f / p->features % merged * row, from + f * row, (size_t)row);
    }
    memcpy(dims, w->dims, sizeof dims);
    dims[1] *= merged;
    return lnt_graph_add_constant(g, "groups", (lnt_dtype)w->dtype, w->rank, dims, to, (size_t)bytes);
}

static lnt_status visit(lnt_edit *e, lnt_gnode *n)
{
    grouped p;
    const int64_t merged = find(e->g, n, &p) ? merged_groups(&p) : 1;
    if (merged == 1)
        return LNT_OK;
    const uint32_t weights = spread_weights(e->g, &p, merged);
    if (weights == LNT_NONE)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_edit_set_input(e, n, p.at, weights));
    LNT_TRY(lnt_gnode_set_int(e->g, n, "group", p.groups / merged));
    return lnt_edit_count(e, "int8 convolutions");
}

lnt_status lnt_pass_merge_groups(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "merge_groups"));
    return lnt_edit_each(&e, visit);
}
