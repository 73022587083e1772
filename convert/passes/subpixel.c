/* subpixel.c — a ConvTranspose becomes a Conv: for a model that is quantized, as that has an int8 form,
 * where there are so few features that panels of the kernel's phases would be nearly empty, and at stride 1, where
 * it is one whose kernel is turned around.
 *
 * Output o = s q + r of stride s reads the inputs q - j by the taps r + s j. So one convolution of J = ceil(k
 * / s) taps gives the s outputs of each q side by side, as channels: (r, m) along one axis, which is how they
 * are in a row if pixels are contiguous; (m, r) along two, for DepthToSpace, and where there are groups.
 * What the padding would have cut off is cut off; at stride 1 it is not padded for in the first place. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include "base/checked.h"
#include "convert/quantize/quantize.h"

#include <string.h>

enum { AXES = 2, STRIDE_MOST = 4096, BYTES_MIN = 4096 /* weights worth quantizing */ };

typedef struct subpixel {
    lnt_gnode *node;
    unsigned axes;
    int64_t groups, channels, features;                                        /* C and M of a group */
    int64_t kernel[AXES], stride[AXES], dilation[AXES], taps[AXES];
    int64_t pads[2 * AXES];            /* of the convolution: before each axis, then behind each */
    int64_t first[AXES], behind[AXES]; /* to cut off */
} subpixel;

/* Behind the last output that is wanted the convolution gives `behind` more; false where it gives too few. */
static bool settle_axis(subpixel *p, unsigned a)
{
    const int64_t s = p->stride[a] = lnt_gnode_int_at(p->node, "strides", a, 1);
    const int64_t padding = lnt_gnode_int_at(p->node, "output_padding", a, 0);
    const int64_t before = lnt_gnode_int_at(p->node, "pads", a, 0),
                  after = lnt_gnode_int_at(p->node, "pads", a + p->axes, 0);
    const int64_t apart = p->dilation[a] = lnt_gnode_int_at(p->node, "dilations", a, 1);
    if (s < 1 || s > STRIDE_MOST || before < 0 || after < 0 || padding < 0 || apart < 1 ||
        (apart > 1 && (s > 1 || apart > STRIDE_MOST)))
        return false;
    p->taps[a] = (p->kernel[a] + s - 1) / s;
    p->first[a] = before;
    p->behind[a] = p->taps[a] * s - p->kernel[a] + after - padding;
    const int64_t reach = p->pads[a] = p->pads[a + p->axes] = (p->taps[a] - 1) * apart;
    if (s == 1 && p->first[a] <= reach && p->behind[a] >= 0 && p->behind[a] <= reach) {
        p->pads[a] -= p->first[a];
        p->pads[a + p->axes] -= p->behind[a];
        p->first[a] = p->behind[a] = 0;
    }
    return p->behind[a] >= 0;
}

/* Outputs of a pixel that are contiguous: s along each axis. */
static int64_t phases(const subpixel *p)
{
    return p->axes == 1 ? p->stride[0] : p->stride[0] * p->stride[1];
}

/* Strides wider than the kernel leave holes between its outputs: are there not too many? */
static bool fills_taps(const subpixel *p)
{
    enum { LARGER = 4 }; /* the weights, at most */
    int64_t taps = phases(p), kernel = 1;
    for (unsigned a = 0; a < p->axes; a++) {
        taps *= p->taps[a];
        kernel *= p->kernel[a];
    }
    return taps <= LARGER * kernel;
}

static bool find(const lnt_graph *g, lnt_gnode *n, subpixel *p)
{
    const uint32_t bias = lnt_in_value(n, 2);
    int64_t count = 0;
    if (n->dead || !lnt_is(n, ConvTranspose) || !lnt_constant_floats(g, n->in[1], &count))
        return false;
    const lnt_operand *w = lnt_ginfo(g, n->in[1]);
    const int64_t groups = lnt_gnode_int(n, "group", 1);
    if (w->rank < 3 || w->rank > 2 + AXES || groups < 1 || w->dims[0] % groups ||
        lnt_gnode_attr(n, "output_shape") || strcmp(lnt_gnode_string(n, "auto_pad", "NOTSET"), "NOTSET") != 0)
        return false;
    *p = (subpixel){.node = n,
                    .axes = w->rank - 2u,
                    .groups = groups,
                    .channels = w->dims[0] / groups,
                    .features = w->dims[1]};
    for (unsigned a = 0; a < p->axes; a++) {
        p->kernel[a] = w->dims[2 + a];
        if (!settle_axis(p, a))
            return false;
    }
    return (p->axes == 1 || p->stride[0] == p->stride[1]) && fills_taps(p) &&
           (bias == LNT_NONE || (lnt_constant_floats(g, bias, &count) && count == groups * p->features));
}

/* Multiply-adds for a pixel and channel, in whole panels: are there enough fewer that moving the outputs
 * pays? */
static bool saves_panels(const subpixel *p)
{
    enum { MOVED = 64 }; /* multiply-adds that take as long as moving an element */
    if (p->groups > 1 && p->channels == 1 &&
        p->features == 1) /* ops/conv/conv_transpose.c has a way without panels */
        return false;
    if (phases(p) == 1)
        return true;
    int64_t apart = lnt_round_up((size_t)p->features, LNT_PANEL), outputs = p->features * phases(p);
    int64_t together = lnt_round_up((size_t)outputs, LNT_PANEL);
    for (unsigned a = 0; a < p->axes; a++) {
        apart *= p->kernel[a];
        together *= p->taps[a];
    }
    return p->channels * (apart - together) > MOVED * outputs ||
           (p->groups > 1 && p->features < LNT_PANEL); /* all groups go at once */
}

/* The whole network is it, whose images are planes: is there a way from planes to planes? But Winograd's algorithm
 * takes fewer multiplications, where the convolution has enough features. */
static bool keeps_planes(const lnt_edit *e, const subpixel *p)
{
    lnt_conv_kind ignored;
    const lnt_gnode *n = p->node;
    const int64_t taps = p->axes == 1 || p->taps[0] < p->taps[1] ? p->taps[p->axes - 1] : p->taps[0];
    return !lnt_producer(e->g, n, 0) && lnt_edit_is_output(e, n->out[0]) &&
           (taps <= 2 || p->features * phases(p) < LNT_PANEL) && lnt_makes_planes(e->g, n, &ignored);
}

/* Are the outputs of a pixel stored as they are in a row? */
static bool lie_in_row(const subpixel *p)
{
    return p->axes == 1 && p->groups == 1;
}

/* Channel i of the convolution's is output r of feature m, of all groups'. */
static void split_channel(const subpixel *p, int64_t i, int64_t *m, int64_t *r)
{
    *m = lie_in_row(p) ? i % p->features : i / phases(p);
    *r = lie_in_row(p) ? i / p->features : i % phases(p);
}

/* [channels as split_channel has them, c, J...] of [c, m, k...], taps the other way round. */
static uint32_t make_weights(lnt_graph *g, const subpixel *p)
{
    const float *w = g->value[p->node->in[1]].info.data;
    const int64_t tall = p->axes == 2 ? p->kernel[0] : 1, rows = p->axes == 2 ? p->taps[0] : 1;
    const int64_t wide = p->kernel[p->axes - 1], columns = p->taps[p->axes - 1], s = p->stride[0];
    const int64_t filters = p->groups * p->features * phases(p), taps = rows * columns;
    int64_t dims[2 + AXES] = {filters, p->channels, p->taps[0], p->taps[1]};
    float *to = lnt_bump_alloc(&g->memory, (size_t)(filters * p->channels * taps) * sizeof *to, g->err);
    for (int64_t i = 0; to && i < filters * p->channels * taps; i++) {
        const int64_t u = i % taps, c = i / taps % p->channels, f = i / taps / p->channels;
        int64_t m, r;
        split_channel(p, f, &m, &r);
        const int64_t y = p->axes == 2 ? r / s + s * (rows - 1 - u / columns) : 0;
        const int64_t x = r % s + s * (columns - 1 - u % columns);
        const int64_t from = (m / p->features * p->channels + c) * p->features + m % p->features;
        to[i] = y < tall && x < wide ? w[(from * tall + y) * wide + x] : 0;
    }
    return to ? lnt_add_floats(g, p->node->name, 2 + p->axes, dims, to) : LNT_NONE;
}

static uint32_t make_bias(lnt_graph *g, const subpixel *p)
{
    int64_t count, n = p->groups * p->features * phases(p);
    const float *from = lnt_constant_floats(g, p->node->in[2], &count);
    float *to = lnt_bump_alloc(&g->memory, (size_t)n * sizeof *to, g->err);
    for (int64_t i = 0, m, r; to && i < n; i++) {
        split_channel(p, i, &m, &r);
        to[i] = from[m];
    }
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
    const bool bias = lnt_in_value(p->node, 2) != LNT_NONE;
    uint32_t in[3] = {p->node->in[0], make_weights(g, p), bias ? make_bias(g, p) : LNT_NONE};
    if (in[1] == LNT_NONE || (bias && in[2] == LNT_NONE))
        return LNT_E_MEMORY;
    lnt_gnode *conv = lnt_edit_insert(e, p->node, lnt_op_by_id(LNT_ID_Conv), in, bias ? 3 : 2, LNT_NONE, y);
    if (!conv)
        return LNT_E_MEMORY;
    LNT_TRY(set_ints(g, conv, "pads", 2 * p->axes, p->pads));
    LNT_TRY(set_ints(g, conv, "dilations", p->axes, p->dilation));
    LNT_TRY(lnt_gnode_set_int(g, conv, "group", p->groups));
    return set_ints(g, conv, "kernel_shape", p->axes, p->taps);
}

static lnt_status insert(lnt_edit *e, const subpixel *p, unsigned op, uint32_t x, uint32_t operand,
                         uint32_t *y, lnt_gnode **made)
{
    const uint32_t in[] = {x, operand};
    *made = lnt_edit_insert(e, p->node, lnt_op_by_id(op), in, operand == LNT_NONE ? 1 : 2, LNT_NONE, y);
    return *made ? LNT_OK : LNT_E_MEMORY;
}

/* The last two axes of so many change places. */
static lnt_status turn(lnt_edit *e, const subpixel *p, uint32_t x, unsigned rank, uint32_t *y)
{
    static const int64_t perm[2][4] = {{0, 2, 1}, {0, 1, 3, 2}};
    lnt_gnode *n;
    LNT_TRY(insert(e, p, LNT_ID_Transpose, x, LNT_NONE, y, &n));
    return set_ints(e->g, n, "perm", rank, perm[rank - 3]);
}

static lnt_status shape(lnt_edit *e, const subpixel *p, uint32_t x, unsigned rank, const int64_t *dims,
                        uint32_t *y)
{
    const uint32_t to = lnt_add_ints(e->g, p->node->name, rank, dims);
    lnt_gnode *n;
    return to == LNT_NONE ? LNT_E_MEMORY : insert(e, p, LNT_ID_Reshape, x, to, y, &n);
}

/* Channels (m, r) become features with the outputs of all r in their places. */
static lnt_status put_in_plane(lnt_edit *e, const subpixel *p, uint32_t x, uint32_t *y)
{
    lnt_gnode *n;
    LNT_TRY(insert(e, p, LNT_ID_DepthToSpace, x, LNT_NONE, y, &n));
    LNT_TRY(lnt_gnode_set_int(e->g, n, "blocksize", p->stride[0]));
    return lnt_gnode_set_attr(e->g, n,
                              &(lnt_attr){.name = "mode", .type = LNT_ATTR_STRING, .count = 3, .s = "CRD"});
}

/* So do channels (r, m), along one axis. */
static lnt_status put_in_row(lnt_edit *e, const subpixel *p, uint32_t x, uint32_t *y)
{
    const bool one = p->features == 1; /* is turned already */
    const int64_t rows[] = {0, one ? 1 : -1, one ? -1 : p->features};
    LNT_TRY(turn(e, p, x, 3, y));
    LNT_TRY(shape(e, p, *y, 3, rows, y));
    return one ? LNT_OK : turn(e, p, *y, 3, y);
}

/* And (m, r). */
static lnt_status put_groups_in_row(lnt_edit *e, const subpixel *p, uint32_t x, uint32_t *y)
{
    const int64_t features = p->groups * p->features;
    const int64_t apart[] = {0, features, p->stride[0], -1}, together[] = {0, features, -1};
    LNT_TRY(shape(e, p, x, 4, apart, y));
    LNT_TRY(turn(e, p, *y, 4, y));
    return shape(e, p, *y, 3, together, y);
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

static lnt_status replace(lnt_edit *e, const subpixel *p)
{
    uint32_t y;
    LNT_TRY(insert_conv(e, p, &y));
    if (phases(p) > 1)
        LNT_TRY((p->axes > 1 ? put_in_plane : lie_in_row(p) ? put_in_row : put_groups_in_row)(e, p, y, &y));
    LNT_TRY(cut_off(e, p, y));
    return lnt_edit_count(e, "ConvTranspose as Conv");
}

static lnt_status visit_layer(lnt_edit *e, lnt_gnode *n)
{
    subpixel p;
    return find(e->g, n, &p) && lnt_operand_count(lnt_ginfo(e->g, n->in[1])) >= BYTES_MIN ? replace(e, &p)
                                                                                          : LNT_OK;
}

static lnt_status visit_floats(lnt_edit *e, lnt_gnode *n)
{
    subpixel p;
    return find(e->g, n, &p) && saves_panels(&p) && !keeps_planes(e, &p) ? replace(e, &p) : LNT_OK;
}

lnt_status lnt_pass_subpixel(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    if (!g->quantize || g->quantize->mode == LNT_INT8_OFF || g->quantize->mode == LNT_INT4_BLOCKS)
        return LNT_OK;
    LNT_TRY(lnt_edit_begin(&e, g, report, "subpixel"));
    return lnt_edit_each(&e, visit_layer);
}

lnt_status lnt_pass_subpixel_floats(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "subpixel"));
    return lnt_edit_each(&e, visit_floats);
}
