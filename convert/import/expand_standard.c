/* expand_standard.c — operators that ONNX defines through others and that have no row of their own.
 *
 * A node becomes a handful of plain ones, which the passes then fold and fuse like any. */
#include "convert/import/expand.h"

#include <string.h>

/* ---- losses ---- */

/* What an element weighs: its class's weight, 0 where its class is the one to ignore; LNT_NONE: always 1. */
static uint32_t loss_weights(maker *m, uint32_t classes, uint32_t valid, uint32_t weight, lnt_dtype dtype)
{
    if (weight == LNT_NONE)
        return valid == LNT_NONE ? LNT_NONE : cast(m, valid, dtype);
    const uint32_t w = make(m, "Gather", IN(weight, classes), NULL);
    if (valid == LNT_NONE)
        return w;
    return make(m, "Where", IN(valid, w, scalar(m, "zero", dtype, 0)), NULL);
}

/* Output 0: loss summed up as attribute reduction says. A mean is over the weights. */
static void reduce_loss(maker *m, uint32_t loss, uint32_t weights)
{
    static const int64_t no = 0;
    const char *reduction = lnt_inode_s(m->n, "reduction", "mean");
    const lnt_attr *flat = INT_ATTR("keepdims", &no);
    if (strcmp(reduction, "none") == 0) {
        finish(m, 0, "Identity", IN(loss), NULL);
    } else if (strcmp(reduction, "sum") == 0) {
        finish(m, 0, "ReduceSum", IN(loss), flat);
    } else if (weights == LNT_NONE) {
        finish(m, 0, "ReduceMean", IN(loss), flat);
    } else {
        const uint32_t sum = make(m, "ReduceSum", IN(loss), flat);
        finish(m, 0, "Div", IN(sum, make(m, "ReduceSum", IN(weights), flat)), NULL);
    }
}

/* loss[n, d...] = -log_probability[n, target[n, d...], d...] * weight[target] */
static void negative_log_likelihood(maker *m, uint32_t log_probability)
{
    const int64_t classes_axis = 1;
    const uint32_t target = m->n->in[1], axis = INTS(m, "axis", 1);
    uint32_t valid = LNT_NONE, classes = target;
    if (lnt_inode_attr(m->n, "ignore_index")) {
        const lnt_dtype index = type_of(m, target);
        const uint32_t ignored = scalar(m, "ignore", index, (double)lnt_inode_i(m->n, "ignore_index", 0));
        valid = make(m, "Not", IN(make(m, "Equal", IN(target, ignored), NULL)), NULL);
        classes = make(m, "Where", IN(valid, target, scalar(m, "class0", index, 0)), NULL);
    }
    const uint32_t at = make(m, "Unsqueeze", IN(classes, axis), NULL);
    const uint32_t picked =
        make(m, "GatherElements", IN(log_probability, at), INT_ATTR("axis", &classes_axis));
    uint32_t loss = make(m, "Neg", IN(make(m, "Squeeze", IN(picked, axis), NULL)), NULL);
    const uint32_t weights =
        loss_weights(m, classes, valid, lnt_inode_in(m->n, 2), type_of(m, log_probability));
    if (weights != LNT_NONE)
        loss = make(m, "Mul", IN(loss, weights), NULL);
    reduce_loss(m, loss, weights);
}

static void expand_likelihood_loss(maker *m)
{
    negative_log_likelihood(m, m->n->in[0]);
}

static void expand_cross_entropy(maker *m)
{
    const int64_t axis = 1;
    const uint32_t log_probability = make(m, "LogSoftmax", IN(m->n->in[0]), INT_ATTR("axis", &axis));
    finish(m, 1, "Identity", IN(log_probability), NULL);
    negative_log_likelihood(m, log_probability);
}

/* ---- activations ---- */

static void expand_swiglu(maker *m)
{
    const float alpha = lnt_inode_f(m->n, "alpha", 1);
    const lnt_attr at = {.name = "alpha", .type = LNT_ATTR_FLOAT, .count = 1, .f = &alpha};
    finish(m, 0, "Mul", IN(make(m, "Swish", IN(m->n->in[0]), &at), m->n->in[1]), NULL);
}

/* ---- AffineGrid ---- */

/* Coordinates of `count` pixels along one axis: -1 to 1, from center to center of the corner pixels with
 * align_corners, else from edge to edge. count has one element. */
static uint32_t coordinates(maker *m, uint32_t count, lnt_dtype dtype, bool align_corners)
{
    const uint32_t zero = scalar(m, "zero", LNT_INT64, 0), one = scalar(m, "one", LNT_INT64, 1);
    const uint32_t n = make(m, "Squeeze", IN(count), NULL);
    const uint32_t pixel = cast(m, make(m, "Range", IN(zero, n, one), NULL), dtype);
    const uint32_t unit = scalar(m, "unit", dtype, 1), two = scalar(m, "two", dtype, 2);
    if (align_corners) { /* 2 i / (n - 1) - 1; a single pixel lies at -1 */
        const uint32_t steps = make(m, "Max", IN(make(m, "Sub", IN(n, one), NULL), one), NULL);
        const uint32_t doubled = make(m, "Mul", IN(pixel, two), NULL);
        return make(m, "Sub", IN(make(m, "Div", IN(doubled, cast(m, steps, dtype)), NULL), unit), NULL);
    }
    /* (2 i + 1) / n - 1 */
    const uint32_t odd = make(m, "Add", IN(make(m, "Mul", IN(pixel, two), NULL), unit), NULL);
    return make(m, "Sub", IN(make(m, "Div", IN(odd, cast(m, n, dtype)), NULL), unit), NULL);
}

/* grid[n, p] = theta[n] [x y (z) 1] for every pixel p of the last axes of size, x along the last one. */
static void affine_grid(maker *m, unsigned axes)
{
    const lnt_dtype dtype = type_of(m, m->n->in[0]);
    const bool align_corners = lnt_inode_i(m->n, "align_corners", 0) != 0;
    const int64_t first = 0, last = -1, swapped[] = {0, 2, 1};
    const uint32_t size = m->n->in[1];
    operands place = {.n = axes + 1}, shape = {.n = axes + 2}, pixels = {.n = axes};
    for (unsigned a = 0; a < axes; a++)
        pixels.value[a] = make(m, "Gather", IN(size, INTS(m, "axis", a + 2)), NULL);
    const uint32_t extents = make(m, "Concat", pixels, INT_ATTR("axis", &first));
    for (unsigned a = 0; a < axes; a++) { /* x comes first in a place, last in the extents */
        const unsigned behind = axes - 1 - a;
        const int64_t trail[] = {1, 2, 3};
        uint32_t c = coordinates(m, pixels.value[a], dtype, align_corners);
        c = make(m, "Unsqueeze", IN(c, make_ints(m, "axes", trail, behind + 1)), NULL);
        const uint32_t full = make(m, "Concat", IN(extents, INTS(m, "one", 1)), INT_ATTR("axis", &first));
        place.value[behind] = make(m, "Expand", IN(c, full), NULL);
    }
    const uint32_t any = place.value[0];
    const uint32_t zeros = make(m, "Sub", IN(any, any), NULL);
    place.value[axes] = make(m, "Add", IN(zeros, scalar(m, "unit", dtype, 1)), NULL);
    const uint32_t places = make(m, "Concat", place, INT_ATTR("axis", &last));
    const uint32_t rows = make(m, "Reshape", IN(places, INTS(m, "rows", 1, -1, axes + 1)), NULL);
    const lnt_attr perm = {.name = "perm", .type = LNT_ATTR_INTS, .count = 3, .i = swapped};
    const uint32_t moved = make(m, "MatMul", IN(rows, make(m, "Transpose", IN(m->n->in[0]), &perm)), NULL);
    shape.value[0] = make(m, "Gather", IN(size, INTS(m, "axis", 0)), NULL);
    memcpy(shape.value + 1, pixels.value, axes * sizeof *pixels.value);
    shape.value[axes + 1] = INTS(m, "coordinates", axes);
    finish(m, 0, "Reshape", IN(moved, make(m, "Concat", shape, INT_ATTR("axis", &first))), NULL);
}

static void expand_affine_grid(maker *m)
{
    const lnt_operand *size = lnt_ginfo(m->im->g, m->n->in[1]);
    if (size->rank == 1 && (size->dims[0] == 4 || size->dims[0] == 5))
        affine_grid(m, (unsigned)size->dims[0] - 2);
    else
        m->status = lnt_import_unsupported(m->im, m->n, "input size must have a known length of 4 or 5");
}

/* ---- CausalConvWithState ---- */

/* The input with what came before it: the state, or zeros. */
static uint32_t with_past(maker *m, uint32_t x, uint32_t past, uint32_t kept)
{
    const int64_t time = 2;
    if (past == LNT_NONE) {
        const int64_t first = 0;
        const uint32_t batch = extent(m, x, 0), channels = extent(m, x, 1);
        const uint32_t shape = make(m, "Concat", IN(batch, channels, kept), INT_ATTR("axis", &first));
        past = cast(m, make(m, "ConstantOfShape", IN(shape), NULL), type_of(m, x));
    }
    return make(m, "Concat", IN(past, x), INT_ATTR("axis", &time));
}

/* A depthwise convolution that looks back only, over the past and the input. */
static void causal_conv(maker *m, int64_t channels)
{
    const uint32_t x = m->n->in[0], weight = m->n->in[1], bias = lnt_inode_in(m->n, 2);
    const uint32_t kept = make(m, "Sub", IN(extent(m, weight, 2), INTS(m, "one", 1)), NULL);
    const uint32_t all = with_past(m, x, lnt_inode_in(m->n, 3), kept);
    const operands in = bias == LNT_NONE ? IN(all, weight) : IN(all, weight, bias);
    const uint32_t y = make(m, "Conv", in, INT_ATTR("group", &channels));
    if (strcmp(lnt_inode_s(m->n, "activation", "none"), "none") == 0) {
        finish(m, 0, "Identity", IN(y), NULL);
    } else { /* silu and swish name the same */
        const lnt_dtype dtype = type_of(m, x);
        const int64_t to = dtype;
        const uint32_t wide = cast(m, y, LNT_FLOAT);
        const uint32_t silu = make(m, "Mul", IN(wide, make(m, "Sigmoid", IN(wide), NULL)), NULL);
        finish(m, 0, "Cast", IN(silu), INT_ATTR("to", &to));
    }
    const uint32_t end = extent(m, all, 2), start = make(m, "Sub", IN(end, kept), NULL);
    finish(m, 1, "Slice", IN(all, start, end, INTS(m, "time", 2)), NULL);
}

static void expand_causal_conv(maker *m)
{
    const lnt_operand *weight = lnt_ginfo(m->im->g, m->n->in[1]), *x = lnt_ginfo(m->im->g, m->n->in[0]);
    const int64_t channels = weight->rank == 3 && weight->dims[0] >= 0 ? weight->dims[0]
                             : x->rank == 3                            ? x->dims[1]
                                                                       : -1;
    if (channels >= 0)
        causal_conv(m, channels);
    else
        m->status = lnt_import_unsupported(m->im, m->n, "the number of channels must be known");
}

/* ---- */

static lnt_status check_counts(lnt_importer *im, const lnt_inode *n, const lnt_expansion *row, bool *fine)
{
    *fine = false;
    if (n->n_in < row->in_min || n->n_in > row->in_max || n->n_out > row->out_max)
        return lnt_import_unsupported(im, n, "has %u inputs and %u outputs", n->n_in, n->n_out);
    for (unsigned i = 0; i < row->in_min; i++)
        if (n->in[i] == LNT_NONE)
            return lnt_import_unsupported(im, n, "input %u is required", i);
    *fine = true;
    return LNT_OK;
}

lnt_status lnt_expand_by(const lnt_expansion *table, size_t count, lnt_importer *im, lnt_inode *n)
{
    for (const lnt_expansion *row = table; row < table + count; row++) {
        if (strcmp(n->op, row->op) != 0 || (row->when && !lnt_inode_i(n, row->when, 0)))
            continue;
        bool fine;
        n->replaced = true;
        LNT_TRY(check_counts(im, n, row, &fine));
        maker m = {.im = im, .n = n};
        if (fine)
            row->expand(&m);
        return m.status;
    }
    return LNT_OK;
}

lnt_status lnt_expand(lnt_importer *im, lnt_inode *n)
{
    static const lnt_expansion table[] = {
        {"AffineGrid", NULL, 2, 2, 1, expand_affine_grid},
        {"CausalConvWithState", NULL, 2, 4, 2, expand_causal_conv},
        {"NegativeLogLikelihoodLoss", NULL, 2, 3, 1, expand_likelihood_loss},
        {"SoftmaxCrossEntropyLoss", NULL, 2, 3, 2, expand_cross_entropy},
        {"SwiGLU", NULL, 2, 2, 1, expand_swiglu},
    };
    return n->domain[0] ? LNT_OK : lnt_expand_by(table, sizeof table / sizeof table[0], im, n);
}
