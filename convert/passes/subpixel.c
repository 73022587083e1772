/* subpixel.c — for a model that is quantised, a ConvTranspose becomes a Conv, which has a form in bytes.
 *
 * Output o = s q + r of stride s reads the inputs q - j by the taps r + s j. So one convolution of J = ceil(k
 * / s) taps gives the s outputs of each q side by side, as channels (m, r); they are put in a row, and what
 * the padding would have cut off is cut off. */
#include "convert/passes/pass.h"

#include "convert/quantise.h"

#include <string.h>

enum { AXES = 2, WEIGHTS_MIN = 4096 };

typedef struct subpixel {
    lnt_gnode *node;
    unsigned axes;
    int64_t channels, features;                                                /* C, M */
    int64_t kernel[AXES], stride[AXES], taps[AXES], first[AXES], behind[AXES]; /* first, behind: to cut off */
} subpixel;

/* Element i of an attribute of integers. */
static int64_t int_at(const lnt_gnode *n, const char *name, unsigned i, int64_t otherwise)
{
    const lnt_attr *a = lnt_gnode_attr(n, name);
    return a && a->type == LNT_ATTR_INTS && i < a->count ? a->i[i] : otherwise;
}

/* Behind the last output that is wanted the convolution gives `behind` more; false where it gives too few. */
static bool settle_axis(subpixel *p, unsigned a)
{
    const int64_t s = p->stride[a] = int_at(p->node, "strides", a, 1);
    const int64_t padding = int_at(p->node, "output_padding", a, 0);
    const int64_t before = int_at(p->node, "pads", a, 0), after = int_at(p->node, "pads", a + p->axes, 0);
    if (s < 1 || s > 64 || before < 0 || after < 0 || padding < 0 || int_at(p->node, "dilations", a, 1) != 1)
        return false;
    p->taps[a] = (p->kernel[a] + s - 1) / s;
    p->first[a] = before;
    p->behind[a] = p->taps[a] * s - p->kernel[a] + after - padding;
    return p->behind[a] >= 0;
}

static bool find(const lnt_graph *g, lnt_gnode *n, subpixel *p)
{
    const uint32_t bias = lnt_in_value(n, 2);
    int64_t count = 0;
    if (n->dead || !lnt_is(n, ConvTranspose) || !lnt_constant_floats(g, n->in[1], &count) ||
        count < WEIGHTS_MIN)
        return false;
    const lnt_operand *w = lnt_ginfo(g, n->in[1]);
    if (w->rank < 3 || w->rank > 2 + AXES || lnt_gnode_int(n, "group", 1) != 1 ||
        lnt_gnode_attr(n, "output_shape") || strcmp(lnt_gnode_string(n, "auto_pad", "NOTSET"), "NOTSET") != 0)
        return false;
    *p = (subpixel){.node = n, .axes = w->rank - 2u, .channels = w->dims[0], .features = w->dims[1]};
    for (unsigned a = 0; a < p->axes; a++) {
        p->kernel[a] = w->dims[2 + a];
        if (!settle_axis(p, a))
            return false;
    }
    return (p->axes == 1 || p->stride[0] == p->stride[1]) &&
           (bias == LNT_NONE || (lnt_constant_floats(g, bias, &count) && count == p->features));
}

/* Outputs of a pixel that lie side by side: s along each axis. */
static int64_t phases(const subpixel *p)
{
    return p->axes == 1 ? p->stride[0] : p->stride[0] * p->stride[1];
}

/* [(m, r), c, J...] of [c, m, k...], taps the other way round. */
static uint32_t make_weights(lnt_graph *g, const subpixel *p)
{
    const float *w = g->value[p->node->in[1]].info.data;
    const int64_t tall = p->axes == 2 ? p->kernel[0] : 1, rows = p->axes == 2 ? p->taps[0] : 1;
    const int64_t wide = p->kernel[p->axes - 1], columns = p->taps[p->axes - 1], s = p->stride[0];
    const int64_t filters = p->features * phases(p), taps = rows * columns;
    int64_t dims[2 + AXES] = {filters, p->channels, p->taps[0], p->taps[1]};
    float *to = lnt_bump_alloc(&g->memory, (size_t)(filters * p->channels * taps) * sizeof *to, g->err);
    for (int64_t i = 0; to && i < filters * p->channels * taps; i++) {
        const int64_t u = i % taps, c = i / taps % p->channels, f = i / taps / p->channels;
        const int64_t m = f / phases(p), r = f % phases(p);
        const int64_t y = p->axes == 2 ? r / s + s * (rows - 1 - u / columns) : 0;
        const int64_t x = r % s + s * (columns - 1 - u % columns);
        to[i] = y < tall && x < wide ? w[((c * p->features + m) * tall + y) * wide + x] : 0;
    }
    return to ? lnt_add_floats(g, p->node->name, 2 + p->axes, dims, to) : LNT_NONE;
}

static uint32_t make_bias(lnt_graph *g, const subpixel *p)
{
    int64_t count, n = p->features * phases(p);
    const float *from = lnt_constant_floats(g, p->node->in[2], &count);
    float *to = lnt_bump_alloc(&g->memory, (size_t)n * sizeof *to, g->err);
    for (int64_t i = 0; to && i < n; i++)
        to[i] = from[i / phases(p)];
    return to ? lnt_add_floats(g, p->node->name, 1, &n, to) : LNT_NONE;
}

static lnt_status set_ints(lnt_graph *g, lnt_gnode *n, const char *name, unsigned count,
                           const int64_t *values)
{
    return lnt_gnode_set_attr(g, n,
                              &(lnt_attr){.name = name, .type = LNT_ATTR_INTS, .count = count, .i = values});
}

static lnt_status insert_conv(lnt_edit *e, const subpixel *p, uint32_t *y)
{
    lnt_graph *g = e->g;
    int64_t pads[2 * AXES];
    const bool bias = lnt_in_value(p->node, 2) != LNT_NONE;
    uint32_t in[3] = {p->node->in[0], make_weights(g, p), bias ? make_bias(g, p) : LNT_NONE};
    if (in[1] == LNT_NONE || (bias && in[2] == LNT_NONE))
        return LNT_E_MEMORY;
    lnt_gnode *conv = lnt_edit_insert(e, p->node, lnt_op_by_id(LNT_ID_Conv), in, bias ? 3 : 2, LNT_NONE, y);
    if (!conv)
        return LNT_E_MEMORY;
    for (unsigned a = 0; a < p->axes; a++)
        pads[a] = pads[a + p->axes] = p->taps[a] - 1;
    LNT_TRY(set_ints(g, conv, "pads", 2 * p->axes, pads));
    return set_ints(g, conv, "kernel_shape", p->axes, p->taps);
}

static lnt_status insert(lnt_edit *e, const subpixel *p, unsigned op, uint32_t x, uint32_t operand,
                         uint32_t *y, lnt_gnode **made)
{
    const uint32_t in[] = {x, operand};
    *made = lnt_edit_insert(e, p->node, lnt_op_by_id(op), in, operand == LNT_NONE ? 1 : 2, LNT_NONE, y);
    return *made ? LNT_OK : LNT_E_MEMORY;
}

/* Channels (m, r) become features with the outputs of all r in a row. */
static lnt_status put_in_row(lnt_edit *e, const subpixel *p, uint32_t x, uint32_t *y)
{
    static const int64_t perm[] = {0, 1, 3, 2};
    const int64_t apart[] = {0, p->features, p->stride[0], -1}, together[] = {0, p->features, -1};
    lnt_graph *g = e->g;
    const char *name = p->node->name;
    lnt_gnode *n;
    if (p->axes == 2) {
        LNT_TRY(insert(e, p, LNT_ID_DepthToSpace, x, LNT_NONE, y, &n));
        LNT_TRY(lnt_gnode_set_int(g, n, "blocksize", p->stride[0]));
        return lnt_gnode_set_attr(
            g, n, &(lnt_attr){.name = "mode", .type = LNT_ATTR_STRING, .count = 3, .s = "CRD"});
    }
    const uint32_t shape[] = {lnt_add_ints(g, name, 4, apart), lnt_add_ints(g, name, 3, together)};
    if (shape[0] == LNT_NONE || shape[1] == LNT_NONE)
        return LNT_E_MEMORY;
    LNT_TRY(insert(e, p, LNT_ID_Reshape, x, shape[0], y, &n));
    LNT_TRY(insert(e, p, LNT_ID_Transpose, *y, LNT_NONE, y, &n));
    LNT_TRY(set_ints(g, n, "perm", 4, perm));
    return insert(e, p, LNT_ID_Reshape, *y, shape[1], y, &n);
}

/* Puts the last node, which may have nothing to cut off, in the place of the ConvTranspose. */
static lnt_status cut_off(lnt_edit *e, const subpixel *p, uint32_t x)
{
    int64_t ends[AXES], axes[AXES];
    lnt_graph *g = e->g;
    bool nothing = true;
    for (unsigned a = 0; a < p->axes; a++) {
        nothing &= !p->first[a] && !p->behind[a];
        ends[a] = p->behind[a] ? -p->behind[a] : INT64_MAX;
        axes[a] = 2 + a;
    }
    if (nothing && lnt_edit_bypass(e, p->node, x))
        return LNT_OK;
    const char *name = p->node->name;
    const uint32_t in[] = {x, lnt_add_ints(g, name, p->axes, p->first), lnt_add_ints(g, name, p->axes, ends),
                           lnt_add_ints(g, name, p->axes, axes)};
    for (unsigned i = 1; i < 4; i++)
        if (in[i] == LNT_NONE)
            return LNT_E_MEMORY;
    return lnt_edit_substitute(e, p->node, lnt_op_by_id(LNT_ID_Slice), in, 4) ? LNT_OK : LNT_E_MEMORY;
}

static lnt_status visit(lnt_edit *e, lnt_gnode *n)
{
    subpixel p;
    uint32_t y;
    if (!find(e->g, n, &p))
        return LNT_OK;
    LNT_TRY(insert_conv(e, &p, &y));
    LNT_TRY(put_in_row(e, &p, y, &y));
    LNT_TRY(cut_off(e, &p, y));
    return lnt_edit_count(e, "ConvTranspose as Conv");
}

lnt_status lnt_pass_subpixel(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    if (!g->quantise || g->quantise->mode == LNT_INT8_OFF)
        return LNT_OK;
    LNT_TRY(lnt_edit_begin(&e, g, report, "subpixel"));
    return lnt_edit_each(&e, visit);
}
