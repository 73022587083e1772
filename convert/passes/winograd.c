/* winograd.c — makes WinogradConv of Conv, if that is asked for (--winograd), where it is sooner. */
#include "ops/conv/winograd.h"

#include "convert/graph/edit.h"
#include "convert/passes/passes.h"
#include "convert/graph/report.h"

#include "formats/packed.h"

enum { TAPS = LNT_WINOGRAD_TAPS, PATCH = LNT_WINOGRAD_PATCH };

/* ---- weights ---- */

/* What the taps [features, channels, taps] are made into: a constant [6, 6, channels, features] of squares,
 * [points, groups * channels, features] of lines. */
typedef struct form {
    bool square;
    int64_t features, channels, taps, groups, points;
} form;

/* G of ops/conv/winograd.h, for squares. */
static const double G[PATCH][TAPS] = {
    {1, 0, 0}, /* at 0, then at p, -p, q, -q and infinity */
    {-2 / 3., -2 / 3. * LNT_WINOGRAD_P, -1 / 3.},
    {-2 / 3., 2 / 3. * LNT_WINOGRAD_P, -1 / 3.},
    {1 / 6., LNT_WINOGRAD_Q / 6, 1 / 3.},
    {1 / 6., -LNT_WINOGRAD_Q / 6, 1 / 3.},
    {0, 0, 1},
};

/* G g G' for g[TAPS][TAPS]; element (i, j) goes to to[(i * PATCH + j) * step]. */
static void transform_square(const float *g, float *to, size_t step)
{
    for (unsigned i = 0; i < PATCH; i++) {
        double row[TAPS];
        for (unsigned t = 0; t < TAPS; t++)
            row[t] = G[i][0] * g[t] + G[i][1] * g[TAPS + t] + G[i][2] * g[2 * TAPS + t];
        for (unsigned j = 0; j < PATCH; j++, to += step)
            *to = (float)(row[0] * G[j][0] + row[1] * G[j][1] + row[2] * G[j][2]);
    }
}

/* G g for the taps g[n] of a group, of up to `most`; point i goes to to[i * step]. */
static void transform_group(const float *g, int64_t n, int64_t most, int64_t points, float *to, size_t step)
{
    enum { FINITE = LNT_WINOGRAD_LINE_POINTS_MAX - 1 };
    static const double point[FINITE] = {0, 0.5, -0.5, 1, -1, 2, -2};
    for (unsigned i = 0; i < FINITE; i++, to += step) {
        double divisor = 1, sum = 0;
        for (unsigned j = 0; j < FINITE; j++)
            divisor *= j == i ? 1 : point[i] - point[j];
        for (int64_t t = n; t-- > 0;)
            sum = sum * point[i] + (double)g[t];
        *to = (float)(sum / divisor);
    }
    if (points > FINITE)
        *to = n == most ? g[n - 1] : 0;
}

/* A line's groups of taps, each `step` floats from the other; points are `groups * step` apart. */
static void transform_line(const float *g, const form *f, float *to, size_t step)
{
    enum { GROUP = LNT_WINOGRAD_LINE_GROUP };
    const int64_t most = LNT_WINOGRAD_LINE_POINTS_MAX + 1 - lnt_winograd_line_tile(f->taps);
    for (int64_t i = 0; i < f->groups; i++) {
        const int64_t n = i + 1 < f->groups ? GROUP : f->taps - i * GROUP;
        transform_group(g + i * GROUP, n, most, f->points, to + (size_t)i * step, (size_t)f->groups * step);
    }
}

/* LNT_NONE with g->err set. */
static uint32_t transformed(lnt_graph *g, uint32_t weights, const form *f)
{
    const size_t features = (size_t)f->features, channels = (size_t)f->channels, taps = (size_t)f->taps;
    const float *from = g->value[weights].info.data;
    const size_t step = channels * features, count = (size_t)(f->points * f->groups) * step;
    float *data = lnt_alloc(g->memory.allocator, count * sizeof *data, g->err);
    if (!data)
        return LNT_NONE;
    for (size_t n = 0; n < features; n++)
        for (size_t c = 0; c < channels; c++) {
            const float *taps_at = from + (n * channels + c) * taps;
            float *to = data + c * features + n;
            if (f->square)
                transform_square(taps_at, to, step);
            else
                transform_line(taps_at, f, to, step);
        }
    const int64_t square[4] = {PATCH, PATCH, f->channels, f->features},
                  line[3] = {f->points, f->groups * f->channels, f->features};
    const uint32_t made =
        lnt_add_floats(g, g->value[weights].name, f->square ? 4 : 3, f->square ? square : line, data);
    lnt_free(g->memory.allocator, data);
    return made;
}

/* ---- which convolutions ---- */

enum { FEWEST = 16 /* channels, and features */, FEW = 4, MANY = 12 /* tiles */, CACHED = 128 * 128 };

/* Is the transform sooner for so many tiles? Weights are up to four times as large: for few tiles they come
 * slower than they are multiplied, unless they stay in a cache. */
static bool pays(const form *f, int64_t tiles)
{
    const bool cached = lnt_dim_mul(f->channels, f->features) <= CACHED;
    return f->channels >= FEWEST && f->features >= FEWEST && tiles >= (cached ? FEW : MANY);
}

/* The last number of an attribute if all before it are `others`; 0 if not, `others` if there is none. */
static int64_t last_of(const lnt_gnode *n, const char *name, int64_t others)
{
    const lnt_attr *a = lnt_gnode_attr(n, name);
    for (uint32_t i = 0; a && i < a->count; i++)
        if (a->type != LNT_ATTR_INTS || (i + 1 < a->count && a->i[i] != others))
            return 0;
    return a && a->count ? a->i[a->count - 1] : others;
}

/* Open extents may mean few tiles. */
static bool squares_fit(const lnt_gnode *n, const lnt_operand *w, const lnt_operand *y, form *f)
{
    if (w->rank != 4 || w->dims[2] != TAPS || w->dims[3] != TAPS || last_of(n, "dilations", 1) != 1)
        return false;
    *f = (form){.square = true,
                .features = w->dims[0],
                .channels = w->dims[1],
                .taps = TAPS * TAPS,
                .groups = 1,
                .points = LNT_WINOGRAD_POINTS};
    int64_t tiles = y->dims[0] > 0 ? y->dims[0] : 1;
    for (unsigned i = 2; i < y->rank; i++)
        tiles = lnt_dim_mul(tiles, y->dims[i] < 0 ? FEW : (y->dims[i] - 1) / LNT_WINOGRAD_TILE + 1);
    return pays(f, tiles);
}

/* Padding only at both ends of the last of so many axes? */
static bool pads_line(const lnt_gnode *n, unsigned axes)
{
    const lnt_attr *a = lnt_gnode_attr(n, "pads");
    for (uint32_t i = 0; a && i < a->count; i++)
        if (a->type != LNT_ATTR_INTS || ((i + 1) % axes && a->i[i] != 0))
            return false;
    return true;
}

/* Products are of one line at a time. An open line may be short, but where weights hardly grow it may as well
 * be long. */
static bool lines_fit(const lnt_gnode *n, const lnt_operand *w, const lnt_operand *y, form *f)
{
    const int64_t taps = w->dims[w->rank - 1], dilation = last_of(n, "dilations", 1);
    const int64_t length = y->dims[y->rank - 1];
    if ((w->rank == 4 && w->dims[2] != 1) || dilation < 1 || taps < LNT_WINOGRAD_LINE_TAPS_MIN ||
        taps > LNT_WINOGRAD_LINE_TAPS_MAX || !pads_line(n, w->rank - 2u))
        return false;
    *f = (form){.features = w->dims[0],
                .channels = w->dims[1],
                .taps = taps,
                .groups = lnt_winograd_line_groups(taps),
                .points = lnt_winograd_line_points(taps)};
    if (length >= 0)
        return lnt_winograd_line_fills(taps, dilation, length) &&
               pays(f, (length - 1) / lnt_winograd_line_tile(taps) + 1);
    return dilation <= LNT_WINOGRAD_LINE_NEAR && pays(f, f->points * f->groups <= 2 * taps ? MANY : FEW);
}

static bool fits(const lnt_graph *g, const lnt_gnode *n, form *f)
{
    int64_t count;
    if (!lnt_is(n, Conv) || !lnt_constant_floats(g, n->in[1], &count) || count == 0)
        return false;
    const lnt_operand *w = lnt_ginfo(g, n->in[1]), *x = lnt_ginfo(g, n->in[0]), *y = lnt_ginfo(g, n->out[0]);
    if (w->rank < 3 || w->rank > 4 || x->rank != w->rank || y->rank != w->rank || x->dtype != LNT_FLOAT ||
        lnt_gnode_int(n, "group", 1) != 1 || last_of(n, "strides", 1) != 1)
        return false;
    return squares_fit(n, w, y, f) || lines_fit(n, w, y, f);
}

/* A convolution of these weights that is still to be changed in the same way, or NULL. */
static lnt_gnode *another(const lnt_edit *e, uint32_t weights, const form *f)
{
    uint32_t at = LNT_EDIT_FIRST;
    lnt_gnode *n;
    form other;
    while ((n = lnt_edit_reader(e, weights, &at)) != NULL)
        if (n->in[1] == weights && fits(e->g, n, &other) && other.square == f->square)
            break;
    return n;
}

/* The taps' extents are no longer those of the weights. */
static lnt_status note_kernel(lnt_graph *g, lnt_gnode *n, const lnt_operand *taps)
{
    return lnt_gnode_set_attr(g, n,
                              &(lnt_attr){.name = "kernel_shape",
                                          .type = LNT_ATTR_INTS,
                                          .count = taps->rank - 2u,
                                          .i = taps->dims + 2});
}

static lnt_status visit(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    size_t bytes;
    form f;
    if (!fits(g, n, &f))
        return LNT_OK;
    const uint32_t before = n->in[1], weights = transformed(g, before, &f);
    if (weights == LNT_NONE)
        return g->err->code;
    const lnt_packed record = lnt_packed_panels(LNT_SOURCE_KN, (uint32_t)f.points,
                                                (uint32_t)(f.groups * f.channels), (uint32_t)f.features);
    LNT_REQUIRE(lnt_packed_bytes(&record, &bytes), g->err, LNT_E_LIMIT, "the weights of %s are too large",
                n->name);
    e->report->winograd_bytes += bytes;
    e->report->taps_bytes += bytes / (uint64_t)(f.points * f.groups) * (uint64_t)f.taps;
    const lnt_operand taps = *lnt_ginfo(g, before);
    for (; n; n = another(e, before, &f)) {
        n->op = lnt_op_by_id(LNT_ID_WinogradConv);
        LNT_TRY(note_kernel(g, n, &taps));
        LNT_TRY(lnt_edit_set_input(e, n, 1, weights));
        LNT_TRY(lnt_edit_count(e, f.square ? "3x3 convolution transformed" : "1-D convolution transformed"));
    }
    return LNT_OK;
}

lnt_status lnt_pass_winograd(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    report->winograd_bytes = report->taps_bytes = 0;
    LNT_TRY(lnt_edit_begin(&e, g, report, "winograd"));
    return g->winograd ? lnt_edit_each(&e, visit) : LNT_OK;
}
