/* winograd.c — makes WinogradConv of Conv, if that is asked for (--winograd), where it is sooner. */
#include "ops/winograd.h"

#include "convert/passes/pass.h"
#include "convert/report.h"

#include "formats/packed.h"

enum { TAPS = LNT_WINOGRAD_TAPS, PATCH = LNT_WINOGRAD_PATCH, POINTS = LNT_WINOGRAD_POINTS };

/* G of ops/winograd.h. */
static const double G[PATCH][TAPS] = {
    {1, 0, 0}, /* at 0, then at p, -p, q, -q and infinity */
    {-2 / 3., -2 / 3. * LNT_WINOGRAD_P, -1 / 3.},
    {-2 / 3., 2 / 3. * LNT_WINOGRAD_P, -1 / 3.},
    {1 / 6., LNT_WINOGRAD_Q / 6, 1 / 3.},
    {1 / 6., -LNT_WINOGRAD_Q / 6, 1 / 3.},
    {0, 0, 1},
};

/* G g G' for g[TAPS][TAPS]; element (i, j) goes to to[(i * PATCH + j) * step]. */
static void transform(const float *g, float *to, size_t step)
{
    for (unsigned i = 0; i < PATCH; i++) {
        double row[TAPS];
        for (unsigned t = 0; t < TAPS; t++)
            row[t] = G[i][0] * g[t] + G[i][1] * g[TAPS + t] + G[i][2] * g[2 * TAPS + t];
        for (unsigned j = 0; j < PATCH; j++, to += step)
            *to = (float)(row[0] * G[j][0] + row[1] * G[j][1] + row[2] * G[j][2]);
    }
}

/* A constant [6, 6, channels, features] of weights [features, channels, 3, 3]; LNT_NONE with g->err set. */
static uint32_t transformed(lnt_graph *g, uint32_t weights)
{
    const lnt_operand w = g->value[weights].info;
    const size_t features = (size_t)w.dims[0], channels = (size_t)w.dims[1];
    const float *from = w.data;
    float *data = lnt_alloc(&lnt_malloc_allocator, POINTS * channels * features * sizeof *data, g->err);
    if (!data)
        return LNT_NONE;
    for (size_t n = 0; n < features; n++)
        for (size_t c = 0; c < channels; c++)
            transform(from + (n * channels + c) * TAPS * TAPS, data + c * features + n, channels * features);
    const int64_t dims[4] = {PATCH, PATCH, w.dims[1], w.dims[0]};
    const uint32_t made = lnt_add_floats(g, g->value[weights].name, 4, dims, data);
    lnt_free(&lnt_malloc_allocator, data);
    return made;
}

/* Is the transform sooner? Weights are four times as large: for few tiles they come slower than they are
 * multiplied, unless they stay in a cache. Open extents of the image may mean few tiles. */
static bool pays(const lnt_operand *y, int64_t channels, int64_t features)
{
    enum { FEWEST = 16 /* channels, and features */, FEW = 4, MANY = 12, CACHED = 128 * 128 };
    int64_t tiles = y->dims[0] > 0 ? y->dims[0] : 1;
    for (unsigned i = 2; i < y->rank; i++)
        tiles = lnt_dim_mul(tiles, y->dims[i] < 0 ? FEW : (y->dims[i] - 1) / LNT_WINOGRAD_TILE + 1);
    const bool cached = lnt_dim_mul(channels, features) <= CACHED;
    return channels >= FEWEST && features >= FEWEST && tiles >= (cached ? FEW : MANY);
}

static bool all_ones(const lnt_gnode *n, const char *name)
{
    lnt_node view;
    lnt_gnode_view(n, &view);
    const lnt_attr *a = lnt_attr_find(&view, name);
    for (uint32_t i = 0; a && i < a->count; i++)
        if (a->type != LNT_ATTR_INTS || a->i[i] != 1)
            return false;
    return true;
}

static bool fits(const lnt_graph *g, const lnt_gnode *n)
{
    int64_t count;
    if (!lnt_is(n, Conv) || !lnt_constant_floats(g, n->in[1], &count) || count == 0)
        return false;
    const lnt_operand *w = lnt_ginfo(g, n->in[1]), *x = lnt_ginfo(g, n->in[0]), *y = lnt_ginfo(g, n->out[0]);
    return w->rank == 4 && w->dims[2] == TAPS && w->dims[3] == TAPS && x->rank == 4 &&
           x->dtype == LNT_FLOAT && y->rank == 4 && lnt_gnode_int(n, "group", 1) == 1 &&
           all_ones(n, "strides") && all_ones(n, "dilations") && pays(y, w->dims[1], w->dims[0]);
}

/* A convolution of these weights that is still to be changed, or NULL. */
static lnt_gnode *another(const lnt_edit *e, uint32_t weights)
{
    uint32_t at = LNT_EDIT_FIRST;
    lnt_gnode *n;
    while ((n = lnt_edit_reader(e, weights, &at)) != NULL && !(fits(e->g, n) && n->in[1] == weights))
        ;
    return n;
}

static lnt_status visit(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    size_t bytes;
    if (!fits(g, n))
        return LNT_OK;
    const uint32_t before = n->in[1], weights = transformed(g, before);
    if (weights == LNT_NONE)
        return g->err->code;
    const int64_t *dims = lnt_ginfo(g, weights)->dims;
    const lnt_packed record = lnt_packed_panels(LNT_SOURCE_KN, POINTS, (uint32_t)dims[2], (uint32_t)dims[3]);
    LNT_REQUIRE(lnt_packed_bytes(&record, &bytes), g->err, LNT_E_LIMIT, "the weights of %s are too large",
                n->name);
    e->report->winograd_bytes += bytes;
    for (; n; n = another(e, before)) {
        n->op = lnt_op_by_id(LNT_ID_WinogradConv);
        LNT_TRY(lnt_edit_set_input(e, n, 1, weights));
        LNT_TRY(lnt_edit_count(e, "3x3 convolution transformed"));
    }
    return LNT_OK;
}

lnt_status lnt_pass_winograd(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    report->winograd_bytes = 0;
    LNT_TRY(lnt_edit_begin(&e, g, report, "winograd"));
    return g->winograd ? lnt_edit_each(&e, visit) : LNT_OK;
}
