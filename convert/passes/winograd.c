/* winograd.c — makes WinogradConv of Conv where it is sooner: of those that save most time for each byte that
 * the file grows by, as many as the budget has room for (--winograd-budget; --winograd: all). Squares are in small
 * tiles where weights become float16, whose digits are too few for large ones. Taps of squares for which there is no
 * room stay as they are and are transformed in each run, where that is still sooner. */
#include "ops/conv/winograd.h"

#include "convert/graph/edit.h"
#include "convert/passes/passes.h"
#include "convert/passes/stream.h"
#include "convert/graph/report.h"

#include "formats/packed.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { TAPS = LNT_WINOGRAD_TAPS, PATCH = LNT_WINOGRAD_PATCH, SMALL_PATCH = LNT_WINOGRAD_SMALL_PATCH };
enum { ROUNDINGS = 20 /* of an input, a tap and an output, in their transforms */ };

/* ---- weights ---- */

/* What the taps [features, channels, taps] are made into: a constant [patch, patch, channels, features] of squares,
 * [points, groups * channels, features] of lines. */
typedef struct form {
    bool square;
    int64_t tile; /* outputs along an axis */
    int64_t features, channels, taps, groups, points;
    int64_t tiles;  /* of all outputs of a feature; where extents are open, as many as are thought of */
    double outputs; /* in a tile, on average */
} form;

enum { LINE, LARGE, SMALL, KINDS };

/* G of ops/conv/winograd.h, for squares and for those in small tiles. */
static const double large_G[PATCH][TAPS] = {
    {1, 0, 0}, /* at 0, then at p, -p, q, -q and infinity */
    {-2 / 3., -2 / 3. * LNT_WINOGRAD_P, -1 / 3.},
    {-2 / 3., 2 / 3. * LNT_WINOGRAD_P, -1 / 3.},
    {1 / 6., LNT_WINOGRAD_Q / 6, 1 / 3.},
    {1 / 6., -LNT_WINOGRAD_Q / 6, 1 / 3.},
    {0, 0, 1},
};
static const double small_G[SMALL_PATCH][TAPS] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

static unsigned kind_of(const form *f)
{
    return !f->square ? LINE : f->tile == LNT_WINOGRAD_TILE ? LARGE : SMALL;
}

/* Inputs of a square's tile along an axis. */
static unsigned patch_of(const form *f)
{
    return (unsigned)f->tile + TAPS - 1;
}

/* G g G' for g[TAPS][TAPS]; element (i, j) goes to to[(i * patch + j) * step]. */
static void transform_square(const float *g, const form *f, float *to, size_t step)
{
    const double(*G)[TAPS] = kind_of(f) == SMALL ? small_G : large_G;
    const unsigned patch = patch_of(f);
    for (unsigned i = 0; i < patch; i++) {
        double row[TAPS];
        for (unsigned t = 0; t < TAPS; t++)
            row[t] = G[i][0] * g[t] + G[i][1] * g[TAPS + t] + G[i][2] * g[2 * TAPS + t];
        for (unsigned j = 0; j < patch; j++, to += step)
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
    const int64_t most = LNT_WINOGRAD_LINE_POINTS_MAX + 1 - f->tile;
    for (int64_t i = 0; i < f->groups; i++) {
        const int64_t n = i + 1 < f->groups ? GROUP : f->taps - i * GROUP;
        transform_group(g + i * GROUP, n, most, f->points, to + (size_t)i * step, (size_t)f->groups * step);
    }
}

/* ---- rounding ---- */

/* |A'| and the sums of |B'|'s rows, of ops/conv/winograd.h: by how much an output may be larger than the product
 * at a point, and that than inputs and transformed taps. Infinity counts in every output. */
static double at_point(const form *f, unsigned output, unsigned point)
{
    enum { INFINITE = LNT_WINOGRAD_LINE_POINTS_MAX - 1 };
    static const double distance[KINDS][LNT_WINOGRAD_LINE_POINTS_MAX] = {
        {0, 0.5, 0.5, 1, 1, 2, 2, 0},
        {0, LNT_WINOGRAD_P, LNT_WINOGRAD_P, LNT_WINOGRAD_Q, LNT_WINOGRAD_Q, 0},
        {0, 1, 1, 0}};
    static const double row[KINDS][LNT_WINOGRAD_LINE_POINTS_MAX] = {
        {12.5, 15, 15, 12.5, 12.5, 7.5, 7.5, 12.5},
        {4.5, 3 + 3 * LNT_WINOGRAD_P, 3 + 3 * LNT_WINOGRAD_P, 1.5 + 1.5 * LNT_WINOGRAD_Q,
         1.5 + 1.5 * LNT_WINOGRAD_Q, 4.5},
        {2, 2, 2, 2}};
    const unsigned kind = kind_of(f);
    const bool infinite = point == (f->square ? patch_of(f) - 1 : INFINITE);
    return (infinite ? 1 : pow(distance[kind][point], output)) * row[kind][point];
}

/* The most that an output's error can be, over u: all products of a feature have sum[point] of |taps|. */
static double worst_output(const form *f, const double *sum)
{
    const unsigned tile = (unsigned)f->tile, along = f->square ? patch_of(f) : (unsigned)f->points;
    double most = 0;
    for (unsigned o = 0; o < (f->square ? tile * tile : tile); o++) {
        double bound = 0;
        for (unsigned p = 0; p < (unsigned)f->points; p++)
            bound += sum[p] * at_point(f, o % tile, p % along) *
                     (f->square ? at_point(f, o / tile, p / along) : 1);
        most = fmax(most, bound);
    }
    return most;
}

/* Of the largest |input| times the sum of a feature's |taps|, the most that an output can be off: by as many
 * roundings as the longest chain of sums has, none of them in the other's favor. */
static double error_bound(const form *f, const float *taps, const float *points)
{
    const size_t features = (size_t)f->features, depth = (size_t)(f->channels * f->groups);
    const size_t n = (size_t)(f->channels * f->taps);
    double most = 0;
    for (size_t feature = 0; feature < features; feature++) {
        double sum[LNT_WINOGRAD_POINTS] = {0}, all = 0;
        for (size_t p = 0; p < (size_t)f->points; p++)
            for (size_t k = 0; k < depth; k++)
                sum[p] += fabs((double)points[(p * depth + k) * features + feature]);
        for (size_t i = 0; i < n; i++)
            all += fabs((double)taps[feature * n + i]);
        most = all > 0 ? fmax(most, worst_output(f, sum) / all) : most;
    }
    return most * ((double)depth + ROUNDINGS) * FLT_EPSILON / 2;
}

/* Weights transformed, in the file or, as they are now, in each run; LNT_NONE with g->err set. Notes the bound of
 * errors, too. */
static uint32_t transformed(lnt_graph *g, uint32_t weights, const form *f, bool in_file, double *bound)
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
                transform_square(taps_at, f, to, step);
            else
                transform_line(taps_at, f, to, step);
        }
    *bound = fmax(*bound, error_bound(f, from, data));
    const int64_t square[4] = {patch_of(f), patch_of(f), f->channels, f->features},
                  line[3] = {f->points, f->groups * f->channels, f->features};
    if (in_file)
        weights =
            lnt_add_floats(g, g->value[weights].name, f->square ? 4 : 3, f->square ? square : line, data);
    lnt_free(g->memory.allocator, data);
    return weights;
}

/* ---- which convolutions ---- */

enum { FEWEST = LNT_WINOGRAD_FEWEST, FEW = 4, MANY = 12 /* tiles */, CACHED = 128 * 128 };
enum { LONG = 64 /* elements */, FAR = 1000 /* operators */ };
/* Multiply-adds that transforming a filter in each run is worth, and what is to be saved of all by it. */
enum { TAPS_WORK = 160, SMALL_TAPS_WORK = 60 };
static const double WORTH = 0.3;

/* Is the transform sooner for so many tiles? Weights are up to four times as large: for few tiles they come
 * slower than they are multiplied, unless they stay in a cache. */
static bool pays(const form *f)
{
    const bool cached = lnt_dim_mul(f->channels, f->features) <= CACHED;
    return f->channels >= FEWEST && f->features >= FEWEST && f->tiles >= (cached ? FEW : MANY);
}

/* What is computed less, in multiply-adds. The transforms' additions, loads and stores are counted as such. */
static double saved(const form *f)
{
    static const double in_of[KINDS] = {130, 160, 50}, out_of[KINDS] = {110, 120, 55};
    const double in = in_of[kind_of(f)], out = out_of[kind_of(f)]; /* for a channel, a feature, of a tile */
    const double pairs = (double)f->channels * (double)f->features;
    const double tile = pairs * ((double)f->taps * f->outputs - (double)(f->points * f->groups)) -
                        in * (double)f->channels - out * (double)f->features;
    return (double)f->tiles * tile;
}

/* What is saved where taps are transformed in each run, which takes memory, too: 0, or a good part of all. */
static double saved_by_taps(const form *f)
{
    const int64_t empty = f->features < LNT_PANEL ? LNT_PANEL - f->features : 0; /* columns of a product */
    const double pairs = (double)f->channels * (double)f->features;
    const double all = pairs * (double)f->taps * f->outputs * (double)f->tiles;
    const double left = saved(f) - pairs * (kind_of(f) == SMALL ? SMALL_TAPS_WORK : TAPS_WORK) -
                        (double)(f->channels * empty * f->points) * (double)f->tiles;
    const bool enough = f->channels >= FEWEST && f->features >= LNT_WINOGRAD_FEWEST_OUT;
    return f->square && enough && left > WORTH * all ? left : 0;
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
static bool squares_fit(const lnt_graph *g, const lnt_gnode *n, const lnt_operand *w, const lnt_operand *y,
                        form *f)
{
    if (w->rank != 4 || w->dims[2] != TAPS || w->dims[3] != TAPS || last_of(n, "dilations", 1) != 1)
        return false;
    const bool small = g->precision == LNT_PRECISION_FLOAT16 || g->precision == LNT_PRECISION_AUTO;
    *f = (form){.square = true,
                .tile = small ? LNT_WINOGRAD_SMALL_TILE : LNT_WINOGRAD_TILE,
                .features = w->dims[0],
                .channels = w->dims[1],
                .taps = TAPS * TAPS,
                .groups = 1,
                .points = small ? LNT_WINOGRAD_SMALL_POINTS : LNT_WINOGRAD_POINTS};
    f->tiles = y->dims[0] > 0 ? y->dims[0] : 1;
    f->outputs = 1;
    for (unsigned i = 2; i < y->rank; i++) {
        const int64_t along = y->dims[i] < 0 ? FEW : (y->dims[i] - 1) / f->tile + 1;
        f->tiles = lnt_dim_mul(f->tiles, along);
        f->outputs *= y->dims[i] <= 0 ? (double)f->tile : (double)y->dims[i] / (double)along;
    }
    return pays(f) || saved_by_taps(f) > 0;
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

/* How many elements of an open line come of each element of one that is open before, by the strides of transposed
 * convolutions between them. */
static int64_t grown(const lnt_graph *g, const lnt_gnode *n)
{
    int64_t times = 1;
    for (unsigned i = 0; n && i < FAR && times < LONG; i++) {
        const bool convolves = lnt_is(n, Conv), grows = lnt_is(n, ConvTranspose);
        const int64_t stride = convolves || grows ? last_of(n, "strides", 1) : 1;
        if (convolves ? stride != 1 : grows ? stride < 1 : !(n->op->flags & LNT_OP_ELEMENTWISE))
            break;
        times = lnt_dim_mul(times, stride);
        unsigned from = 0;
        while (from < n->n_in && (n->in[from] == LNT_NONE || lnt_ginfo(g, n->in[from])->constant ||
                                  lnt_ginfo(g, n->in[from])->rank != lnt_ginfo(g, n->out[0])->rank))
            from++;
        n = lnt_producer(g, n, from);
    }
    return times;
}

/* Products are of one line at a time. An open line may be short: weights that grow much for it are only taken
 * where growth is no matter, or what makes it makes it long. */
static bool lines_fit(const lnt_graph *g, const lnt_gnode *n, const lnt_operand *w, const lnt_operand *y, form *f)
{
    const int64_t taps = w->dims[w->rank - 1], dilation = last_of(n, "dilations", 1);
    const int64_t length = y->dims[y->rank - 1];
    if ((w->rank == 4 && w->dims[2] != 1) || dilation < 1 || taps < LNT_WINOGRAD_LINE_TAPS_MIN ||
        taps > LNT_WINOGRAD_LINE_TAPS_MAX || !pads_line(n, w->rank - 2u))
        return false;
    *f = (form){.tile = lnt_winograd_line_tile(taps),
                .features = w->dims[0],
                .channels = w->dims[1],
                .taps = taps,
                .groups = lnt_winograd_line_groups(taps),
                .points = lnt_winograd_line_points(taps)};
    const int64_t tile = f->tile, times = length < 0 ? grown(g, n) : 1,
                  open = times >= LONG || f->points * f->groups <= 2 * taps ? MANY : FEW;
    f->tiles = length < 0 ? lnt_dim_mul(open, times) : (length - 1) / tile + 1;
    f->outputs = length <= 0 ? (double)tile : (double)length / (double)f->tiles;
    if (length < 0 && (dilation > LNT_WINOGRAD_LINE_NEAR || (open == FEW && g->winograd_budget < INFINITY)))
        return false;
    return pays(f) && (length < 0 || lnt_winograd_line_fills(taps, dilation, length));
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
    return (squares_fit(g, n, w, y, f) || lines_fit(g, n, w, y, f)) &&
           lnt_stream_allows(g, n, f->square ? 0 : f->tile);
}

/* ---- how many of them ---- */

/* Weights whose convolutions may be transformed. */
typedef struct candidate {
    uint32_t weights, n_readers;
    form f;
    double saved;          /* multiply-adds, in all its convolutions */
    double saved_by_taps;  /* where these are transformed in each run; 0: it is not worth it */
    uint64_t bytes, taps;  /* of the weights transformed, and as they are */
    bool may_grow, chosen; /* transformed in the file */
} candidate;

typedef struct ranked {
    double gain, bytes; /* multiply-adds saved for each byte that the file grows by */
    size_t at;          /* in the list */
} ranked;

typedef struct choice {
    candidate *list;
    size_t n, capacity;
    uint32_t *of; /* for each value its number in the list and one, or 0 */
} choice;

/* Bytes of weights of so many groups of [K, N] in the file. */
static lnt_status weight_bytes(const lnt_graph *g, int64_t groups, int64_t K, int64_t N, uint64_t *out)
{
    const lnt_packed record = lnt_packed_panels(LNT_SOURCE_KN, (uint32_t)groups, (uint32_t)K, (uint32_t)N);
    size_t bytes;
    LNT_REQUIRE(lnt_packed_bytes(&record, &bytes), g->err, LNT_E_LIMIT, "the weights of a convolution are too large");
    *out = bytes;
    return LNT_OK;
}

static lnt_status note(lnt_graph *g, choice *c, const lnt_gnode *n, const form *f)
{
    const uint32_t weights = n->in[1];
    if (!c->of[weights]) {
        candidate new = {.weights = weights, .f = *f};
        LNT_TRY(weight_bytes(g, f->points, f->groups * f->channels, f->features, &new.bytes));
        LNT_TRY(weight_bytes(g, 1, f->taps * f->channels, f->features, &new.taps));
        LNT_TRY(LNT_GROW(g->memory.allocator, c->list, c->capacity, c->n, g->err));
        c->list[c->n++] = new;
        c->of[weights] = (uint32_t)c->n;
    }
    candidate *of = &c->list[c->of[weights] - 1];
    of->may_grow |= pays(f);
    of->saved += saved(f);
    of->saved_by_taps += saved_by_taps(f);
    of->n_readers++;
    return LNT_OK;
}

/* All that fit. */
static lnt_status gather(lnt_graph *g, choice *c)
{
    form f;
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            if (fits(g, g->sub[s].node[i], &f))
                LNT_TRY(note(g, c, g->sub[s].node[i], &f));
    return LNT_OK;
}

/* Bytes that the file grows by; the taps stay where others read them. */
static double growth(const lnt_edit *e, const candidate *c)
{
    const bool stay = lnt_edit_is_output(e, c->weights) || lnt_edit_uses(e, c->weights) > c->n_readers;
    return (double)c->bytes - (stay ? 0 : (double)c->taps);
}

/* What is saved beyond what the taps as they are would save. */
static double gained(const candidate *c)
{
    return c->saved - c->saved_by_taps;
}

/* What saves most for a byte comes first, what makes the file smaller before all. */
static int by_gain(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->gain != y->gain)
        return x->gain < y->gain ? 1 : -1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Marks those for which there is room, in bytes. */
static lnt_status choose(const lnt_edit *e, choice *c, double room)
{
    ranked *rank = lnt_alloc_zero(e->g->memory.allocator, c->n, sizeof *rank, e->g->err);
    if (!rank)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < c->n; i++) {
        const double bytes = growth(e, &c->list[i]);
        rank[i] = (ranked){bytes > 0 ? gained(&c->list[i]) / bytes : INFINITY, bytes, i};
    }
    qsort(rank, c->n, sizeof *rank, by_gain);
    for (size_t i = 0; i < c->n; i++) {
        candidate *of = &c->list[rank[i].at];
        of->chosen = of->may_grow && (room == INFINITY || (gained(of) > 0 && rank[i].bytes <= room));
        room -= of->chosen ? rank[i].bytes : 0;
    }
    lnt_free(e->g->memory.allocator, rank);
    return LNT_OK;
}

/* ---- the pass ---- */

/* A convolution of these weights that is still to be changed, or NULL. */
static lnt_gnode *next_reader(const lnt_edit *e, uint32_t weights)
{
    uint32_t at = LNT_EDIT_FIRST;
    lnt_gnode *n;
    form f;
    while ((n = lnt_edit_reader(e, weights, &at)) != NULL)
        if (n->in[1] == weights && fits(e->g, n, &f))
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

static lnt_status transform(lnt_edit *e, const candidate *c)
{
    lnt_graph *g = e->g;
    const lnt_operand taps = *lnt_ginfo(g, c->weights);
    const uint32_t weights = transformed(g, c->weights, &c->f, c->chosen, &e->report->winograd_error_bound);
    if (weights == LNT_NONE)
        return g->err->code;
    e->report->winograd_bytes += c->chosen ? c->bytes : 0;
    e->report->taps_bytes += c->chosen ? c->taps : 0;
    for (lnt_gnode *n; (n = next_reader(e, c->weights)) != NULL;) {
        n->op = lnt_op_by_id(LNT_ID_WinogradConv);
        LNT_TRY(note_kernel(g, n, &taps));
        LNT_TRY(lnt_edit_set_input(e, n, 1, weights));
        LNT_TRY(lnt_edit_count(e, c->f.square ? "3x3 convolution transformed" : "1-D convolution transformed"));
    }
    return LNT_OK;
}

/* Bytes of the constants that are read, about those of the file. */
static double constant_bytes(const lnt_edit *e)
{
    double sum = 0;
    for (uint32_t i = 0; i < e->g->n_values; i++)
        if (e->g->value[i].constant && lnt_edit_uses(e, i))
            sum += (double)e->g->value[i].bytes;
    return sum;
}

/* Bytes that the file may grow by. What is to be small grows if that is asked for alone. */
static double room(const lnt_edit *e)
{
    const double percent = e->g->winograd_budget;
    if (percent == 0)
        return e->g->small ? 0 : constant_bytes(e) * LNT_WINOGRAD_BUDGET / 100;
    return percent < INFINITY ? constant_bytes(e) * percent / 100 : INFINITY;
}

static lnt_status transform_chosen(lnt_edit *e, choice *c)
{
    LNT_TRY(gather(e->g, c));
    if (!c->n)
        return LNT_OK;
    LNT_TRY(choose(e, c, room(e)));
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].chosen || (c->list[i].saved_by_taps > 0 && !e->g->small))
            LNT_TRY(transform(e, &c->list[i]));
    return LNT_OK;
}

lnt_status lnt_pass_winograd(lnt_graph *g, lnt_report *report)
{
    const lnt_allocator *memory = g->memory.allocator;
    lnt_edit e;
    report->winograd_bytes = report->taps_bytes = 0;
    report->winograd_error_bound = 0;
    if (g->winograd_budget < 0)
        return LNT_OK;
    LNT_TRY(lnt_edit_begin(&e, g, report, "winograd"));
    choice c = {.of = lnt_alloc_zero(memory, g->n_values, sizeof *c.of, g->err)};
    const lnt_status status = c.of ? transform_chosen(&e, &c) : LNT_E_MEMORY;
    lnt_free(memory, c.list);
    lnt_free(memory, c.of);
    return status;
}
