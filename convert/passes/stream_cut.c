/* stream_cut.c — finds the value from which a sound can be computed piece by piece, with the same bits as in one.
 *
 * From the sound back to the inputs, nodes are taken apart as long as they do the same at all times: a place along
 * time of what they write is made of places around it of what they read, and of what is the same for all times. Where
 * only one value is left to be computed, a cut may be. Of these the earliest is taken that needs no more frames on
 * either side than MOST. The places needed follow through strides, dilations and pads without rounding, as each node
 * must make the extent along time a whole multiple of what it was.
 *
 * The pass stream_cut, before nodes are fused, keeps the value and tells others what is behind it (stream_rate);
 * stream_marks, when all is done, writes what the file says of it. */
#include "base/lnt_assert.h"
#include "base/nearest.h"
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"
#include "convert/passes/stream.h"
#include "ops/conv/winograd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 16, LARGEST = 1 << 20 /* stride, dilation, pad, hop */ };

/* What of a value the sound is made of. */
typedef struct stretch {
    bool wanted;
    unsigned axis;    /* of time, counted from the last */
    int64_t hop;      /* samples of the sound to a place */
    int64_t from, to; /* first and last place needed */
} stretch;

typedef struct cutter {
    lnt_graph *g;
    bool *steady;  /* [values] the same for all times, whatever the inputs' extents */
    stretch *of;   /* [values] */
    uint32_t open; /* values wanted and not taken apart */
    uint64_t sum;  /* of their numbers */
    int64_t hop;   /* the largest */
    int64_t frame; /* samples; where tiles are to be thought of. 0: they are not */
    const lnt_gnode *stop;
    const char *reason; /* why that stops the way */
} cutter;

static const char not_uniform[] = "makes the extent along time no whole multiple of what it was";
static const char mixes_times[] = "mixes all times";
static const char not_constant[] = "has weights or axes that are no constants";

/* ---- tiles ---- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Places that a row of tiles takes, one after the other by n's dilation. */
static int64_t tile_block(const lnt_gnode *n, int64_t tile)
{
    const lnt_attr *a = lnt_gnode_attr(n, "dilations");
    const bool known = a && a->type == LNT_ATTR_INTS && a->count;
    return tile * (known ? a->i[a->count - 1] : 1);
}

int64_t lnt_stream_step(const lnt_gnode *n, int64_t tile, int64_t rate)
{
    enum { FRAMES = 3 }; /* that tiles may reach over */
    const int64_t block = tile_block(n, tile);
    if (block < 1 || rate < 1 || block > FRAMES * rate)
        return 0;
    const int64_t step = block / gcd(block, rate);
    return LNT_STREAM_ALIGN % step == 0 ? step : 0;
}

bool lnt_stream_allows(const lnt_graph *g, const lnt_gnode *n, int64_t tile)
{
    const uint32_t in = g->value[n->in[0]].stream_rate, out = g->value[n->out[0]].stream_rate;
    return (!in && !out) || (in == out && lnt_stream_step(n, tile, in) > 0);
}

/* ---- nodes, from what they write to what they read ---- */

/* NULL, or why not. */
static const char *want(cutter *c, uint32_t value, stretch s)
{
    LNT_ASSERT(value < c->g->n_values && s.from <= s.to);
    stretch *of = &c->of[value];
    const lnt_operand *info = lnt_ginfo(c->g, value);
    if (c->steady[value] || info->rank == LNT_RANK_UNKNOWN || s.axis >= info->rank ||
        info->dims[info->rank - 1 - s.axis] >= 0)
        return "reads what has no times";
    if (s.hop > LARGEST)
        return "makes too many samples of one place";
    if (of->wanted && (of->axis != s.axis || of->hop != s.hop))
        return "reads a value whose times others read otherwise";
    if (of->wanted) {
        of->from = s.from < of->from ? s.from : of->from;
        of->to = s.to > of->to ? s.to : of->to;
        return NULL;
    }
    s.wanted = true;
    *of = s;
    c->hop = s.hop > c->hop ? s.hop : c->hop;
    c->open++;
    c->sum += value;
    return NULL;
}

static bool all_constant(const cutter *c, const lnt_gnode *n, unsigned first)
{
    for (unsigned i = first; i < n->n_in; i++)
        if (n->in[i] != LNT_NONE && !lnt_is_constant(c->g, n->in[i]))
            return false;
    return true;
}

/* Element i of an attribute of integers; -1 if it is out of bounds. */
static int64_t int_at(const lnt_gnode *n, const char *name, unsigned i, int64_t otherwise)
{
    const lnt_attr *a = lnt_gnode_attr(n, name);
    if (!a)
        return otherwise;
    return a->type == LNT_ATTR_INTS && i < a->count && a->i[i] >= 0 && a->i[i] <= LARGEST ? a->i[i] : -1;
}

/* A convolution along time. */
typedef struct taps {
    int64_t stride, before, after, reach,
        more; /* reach: from the first tap to the last; more: output_padding */
} taps;

static const char *read_taps(const cutter *c, const lnt_gnode *n, unsigned axis, taps *t)
{
    const lnt_operand *w = lnt_ginfo(c->g, n->in[1]);
    if (!all_constant(c, n, 1) || w->rank < 3 || w->rank > LNT_MAX_RANK)
        return not_constant;
    const unsigned spatial = w->rank - 2u;
    if (axis >= spatial)
        return mixes_times;
    const unsigned a = spatial - 1 - axis;
    const int64_t dilation = int_at(n, "dilations", a, 1), kernel = w->dims[2 + a];
    *t = (taps){.stride = int_at(n, "strides", a, 1),
                .before = int_at(n, "pads", a, 0),
                .after = int_at(n, "pads", spatial + a, 0),
                .more = int_at(n, "output_padding", a, 0)};
    if (dilation < 1 || t->stride < 1 || t->before < 0 || t->after < 0 || t->more < 0 || kernel < 1 ||
        kernel > LARGEST || lnt_gnode_attr(n, "output_shape") ||
        strcmp(lnt_gnode_string(n, "auto_pad", "NOTSET"), "NOTSET") != 0)
        return not_uniform;
    t->reach = dilation * (kernel - 1);
    return NULL;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    LNT_ASSERT(b > 0);
    return a / b - (a % b < 0);
}

/* All of a tile is computed of all that the tile reads, and rounded so. */
static void widen_to_tiles(const cutter *c, const lnt_gnode *n, stretch *s)
{
    const lnt_operand *w = lnt_ginfo(c->g, n->in[1]);
    const int64_t count = w->dims[w->rank - 1], tile = lnt_winograd_line_tile(count);
    if (!c->frame || count < LNT_WINOGRAD_LINE_TAPS_MIN || count > LNT_WINOGRAD_LINE_TAPS_MAX ||
        !lnt_stream_step(n, tile, c->frame / s->hop))
        return;
    const int64_t block = tile_block(n, tile);
    s->from = floor_div(s->from, block) * block;
    s->to = floor_div(s->to, block) * block + block - 1;
    const int64_t read =
        (lnt_winograd_line_groups(count) - 1) * LNT_WINOGRAD_LINE_GROUP + lnt_winograd_line_points(count);
    if (read > tile + count - 1) /* by a last group that is not full */
        s->to += (read - (tile + count - 1)) * (block / tile);
}

static const char *take_conv(cutter *c, const lnt_gnode *n, stretch s)
{
    taps t;
    const char *fault = read_taps(c, n, s.axis, &t);
    if (fault)
        return fault;
    if (t.stride != 1 || t.reach != t.before + t.after)
        return not_uniform;
    widen_to_tiles(c, n, &s);
    s.from -= t.before;
    s.to += t.after;
    return want(c, n->in[0], s);
}

/* Place i goes to places i * stride - before + tap. */
static const char *take_transposed(cutter *c, const lnt_gnode *n, stretch s)
{
    taps t;
    const char *fault = read_taps(c, n, s.axis, &t);
    if (fault)
        return fault;
    if (t.reach + 1 + t.more - t.stride != t.before + t.after)
        return not_uniform;
    s.from = -floor_div(-(s.from + t.before - t.reach), t.stride);
    s.to = floor_div(s.to + t.before, t.stride);
    s.hop *= t.stride;
    return want(c, n->in[0], s);
}

/* Is the value, which is steady, there once for all times? */
static bool is_spread(const lnt_operand *o, unsigned axis)
{
    return o->rank != LNT_RANK_UNKNOWN && (axis >= o->rank || o->dims[o->rank - 1 - axis] == 1);
}

static const char *take_elementwise(cutter *c, const lnt_gnode *n, stretch s)
{
    for (unsigned i = 0; i < n->n_in; i++) {
        const uint32_t value = n->in[i];
        if (value == LNT_NONE || (c->steady[value] && is_spread(lnt_ginfo(c->g, value), s.axis)))
            continue;
        const char *fault = want(c, value, s);
        if (fault)
            return fault;
    }
    return NULL;
}

static const char *take_normalization(cutter *c, const lnt_gnode *n, stretch s)
{
    const lnt_operand *x = lnt_ginfo(c->g, n->in[0]);
    if (!all_constant(c, n, 1))
        return not_constant;
    return n->n_out == 1 && s.axis + 2u < x->rank ? want(c, n->in[0], s) : mixes_times;
}

/* Concat and Split: along another axis. */
static const char *take_parts(cutter *c, const lnt_gnode *n, stretch s)
{
    const unsigned rank = lnt_ginfo(c->g, n->in[0])->rank;
    const int64_t axis = lnt_gnode_int(n, "axis", 0);
    const bool splits = lnt_is(n, Split);
    if ((axis < 0 ? axis + rank : axis) == (int64_t)rank - 1 - s.axis)
        return "cuts or joins along time";
    if (splits && !all_constant(c, n, 1))
        return not_constant;
    for (unsigned i = 0; i < (splits ? 1u : n->n_in); i++) {
        const char *fault = want(c, n->in[i], s);
        if (fault)
            return fault;
    }
    return NULL;
}

static const char *take_transpose(cutter *c, const lnt_gnode *n, stretch s)
{
    const lnt_attr *perm = lnt_gnode_perm(n);
    if (!perm || s.axis >= perm->count)
        return not_constant;
    s.axis = perm->count - 1 - (unsigned)perm->i[perm->count - 1 - s.axis];
    return want(c, n->in[0], s);
}

/* Unsqueeze and Squeeze. */
static const char *take_ones(cutter *c, const lnt_gnode *n, stretch s)
{
    const bool adds = lnt_is(n, Unsqueeze);
    const unsigned rank = lnt_ginfo(c->g, adds ? n->out[0] : n->in[0])->rank; /* with the ones */
    const uint32_t axes = lnt_in_value(n, 1);
    int64_t axis[LNT_MAX_RANK];
    unsigned count = LNT_MAX_RANK, from_end[LNT_MAX_RANK], at = 0;
    bool one[LNT_MAX_RANK] = {0};
    if (axes == LNT_NONE || rank > LNT_MAX_RANK || !lnt_constant_ints(c->g, axes, axis, &count))
        return not_constant;
    for (unsigned i = 0; i < count; i++) {
        const int64_t a = axis[i] < 0 ? axis[i] + rank : axis[i];
        if (a < 0 || a >= rank)
            return not_constant;
        one[rank - 1 - a] = true;
    }
    for (unsigned k = 0; k < rank; k++)
        if (!one[k])
            from_end[at++] = k; /* of the axes that are there without the ones, too */
    if (adds ? s.axis >= rank || one[s.axis] : s.axis >= at)
        return "makes an axis of time";
    for (unsigned k = 0; adds && k < at; k++)
        if (from_end[k] == s.axis)
            return s.axis = k, want(c, n->in[0], s);
    s.axis = from_end[s.axis];
    return want(c, n->in[0], s);
}

static const char *take_slice(cutter *c, const lnt_gnode *n, stretch s)
{
    const unsigned rank = lnt_ginfo(c->g, n->in[0])->rank;
    int64_t part[4][LNT_MAX_RANK]; /* starts, ends, axes, steps */
    unsigned count[4] = {0};
    for (unsigned k = 0; k < 4; k++) {
        count[k] = LNT_MAX_RANK;
        if (lnt_in_value(n, k + 1) == LNT_NONE)
            count[k] = 0;
        else if (!lnt_constant_ints(c->g, n->in[k + 1], part[k], &count[k]))
            return not_constant;
    }
    for (unsigned i = 0; i < count[0]; i++) {
        const int64_t axis = i < count[2] ? part[2][i] : i, step = i < count[3] ? part[3][i] : 1;
        if ((axis < 0 ? axis + rank : axis) != (int64_t)rank - 1 - s.axis)
            continue;
        if (part[0][i] != 0 || i >= count[1] || part[1][i] < LNT_BEYOND_EXTENTS || step != 1)
            return "cuts along time";
    }
    return want(c, n->in[0], s);
}

static const struct {
    unsigned op;
    const char *(*take)(cutter *c, const lnt_gnode *n, stretch s);
} ways[] = {{LNT_ID_Conv, take_conv},
            {LNT_ID_ConvTranspose, take_transposed},
            {LNT_ID_BatchNormalization, take_normalization},
            {LNT_ID_Identity, take_elementwise},
            {LNT_ID_Concat, take_parts},
            {LNT_ID_Split, take_parts},
            {LNT_ID_Transpose, take_transpose},
            {LNT_ID_Unsqueeze, take_ones},
            {LNT_ID_Squeeze, take_ones},
            {LNT_ID_Slice, take_slice}};

static const char *take(cutter *c, const lnt_gnode *n, stretch s)
{
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        if (lnt_gnode_is(n, ways[k].op))
            return ways[k].take(c, n, s);
    return n->op->flags & LNT_OP_ELEMENTWISE ? take_elementwise(c, n, s)
                                             : "is not known to do the same at all times";
}

/* ---- the way back ---- */

/* What of n's outputs is wanted, all together; they are no longer open. */
static const char *gather(cutter *c, const lnt_gnode *n, stretch *all)
{
    *all = (stretch){0};
    for (unsigned i = 0; i < n->n_out; i++) {
        if (n->out[i] == LNT_NONE || !c->of[n->out[i]].wanted)
            continue;
        const stretch s = c->of[n->out[i]];
        c->open--;
        c->sum -= n->out[i];
        if (all->wanted && (s.axis != all->axis || s.hop != all->hop))
            return "writes values whose times are read differently";
        if (!all->wanted)
            *all = s;
        all->from = s.from < all->from ? s.from : all->from;
        all->to = s.to > all->to ? s.to : all->to;
    }
    return NULL;
}

typedef struct cut {
    uint32_t value; /* LNT_NONE: there is none */
    int64_t left, right, hop;
} cut;

/* Is the only value that is open a place for the cut? name NULL: any that is worth it. */
static void consider(const cutter *c, const char *name, int64_t samples, cut *best)
{
    const uint32_t value = (uint32_t)c->sum;
    const stretch *s = &c->of[value];
    const cut here = {value, s->from < 0 ? -s->from : 0, s->to - (samples / s->hop - 1), s->hop};
    const bool worth = s->hop > 1 && here.left <= MOST && here.right <= MOST;
    if (s->axis == 0 && (name ? strcmp(c->g->value[value].name, name) == 0 : worth))
        *best = here;
}

/* From the sound, of so many samples, back as far as it goes, or to the value `end`. */
static void go_back(cutter *c, uint32_t sound, int64_t samples, uint32_t end, const char *name, cut *best)
{
    const lnt_gsubgraph *model = &c->g->sub[0];
    memset(c->of, 0, c->g->n_values * sizeof *c->of);
    c->open = 0;
    c->sum = 0;
    c->stop = NULL;
    *best = (cut){.value = LNT_NONE};
    c->reason = want(c, sound, (stretch){.hop = 1, .to = samples - 1});
    for (size_t i = model->n_nodes; i-- > 0 && !c->reason && !(c->open == 1 && c->sum == end);) {
        stretch s;
        const lnt_gnode *n = model->node[i];
        c->reason = gather(c, n, &s);
        if (!c->reason && s.wanted)
            c->reason = take(c, n, s);
        if (c->reason)
            c->stop = n;
        else if (s.wanted && c->open == 1)
            consider(c, name, samples, best);
    }
}

/* Constants, inputs of fixed extents, and what is made of them alone. */
static void find_steady(cutter *c)
{
    const lnt_graph *g = c->g;
    for (uint32_t v = 0; v < g->n_values; v++)
        c->steady[v] = g->value[v].constant;
    for (uint32_t i = 0; i < g->sub[0].n_in; i++) {
        const lnt_operand *o = lnt_ginfo(g, g->sub[0].in[i]);
        bool fixed = o->rank != LNT_RANK_UNKNOWN;
        for (unsigned d = 0; fixed && d < o->rank; d++)
            fixed = o->dims[d] >= 0;
        c->steady[g->sub[0].in[i]] = fixed;
    }
    for (size_t i = 0; i < g->sub[0].n_nodes; i++) {
        const lnt_gnode *n = g->sub[0].node[i];
        bool steady = !(n->op->flags & (LNT_OP_RANDOM | LNT_OP_CONTROL));
        for (unsigned k = 0; steady && k < n->n_in; k++)
            steady = n->in[k] == LNT_NONE || c->steady[n->in[k]];
        for (unsigned k = 0; k < n->n_out; k++)
            if (n->out[k] != LNT_NONE)
                c->steady[n->out[k]] = steady;
    }
}

/* The first output that is a sound: float, of open extent along its last axis, and of one line. */
static uint32_t find_sound(const lnt_graph *g)
{
    for (uint32_t i = 0; i < g->sub[0].n_out; i++) {
        const lnt_operand *o = lnt_ginfo(g, g->sub[0].out[i]);
        bool sound =
            o->dtype == LNT_FLOAT && o->rank > 0 && o->rank <= LNT_MAX_RANK && o->dims[o->rank - 1] < 0;
        for (unsigned d = 0; sound && d + 1 < o->rank; d++)
            sound = o->dims[d] <= 1;
        if (sound)
            return g->sub[0].out[i];
    }
    return LNT_NONE;
}

/* ---- the passes ---- */

static lnt_status refuse_name(const cutter *c, const char *name)
{
    const lnt_graph *g = c->g;
    lnt_nearest nearest = {.wanted = name};
    for (size_t i = 0; i < g->n_values; i++)
        if (strcmp(g->value[i].name, name) == 0)
            return c->stop
                       ? lnt_fail(g->err, LNT_E_UNSUPPORTED,
                                  "--stream %s: the sound cannot be computed from there by pieces; node '%s' "
                                  "(%s) %s",
                                  name, c->stop->name, lnt_op_name(c->stop->op), c->reason)
                       : lnt_fail(
                             g->err, LNT_E_UNSUPPORTED,
                             "--stream %s: the sound is not made of this value alone, along its last axis",
                             name);
        else
            lnt_nearest_add(&nearest, g->value[i].name);
    const char *meant = lnt_nearest_name(&nearest);
    return lnt_fail(g->err, LNT_E_NOT_FOUND, "--stream: the model has no value '%s'%s%s%s", name,
                    meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
}

static void take_cut(cutter *c, uint32_t sound, const cut *best)
{
    lnt_graph *g = c->g;
    cut again;
    c->frame = best->hop;
    go_back(c, sound, LNT_STREAM_ALIGN * best->hop, best->value, NULL, &again);
    const stretch *s = &c->of[best->value];
    for (uint32_t v = 0; v < g->n_values; v++)
        if (c->of[v].wanted)
            g->value[v].stream_rate = (uint32_t)(best->hop / c->of[v].hop);
    g->value[best->value].keep = true;
    g->stream = (lnt_gstream){.sound = sound,
                              .value = best->value,
                              .left = {best->left, s->from < 0 ? -s->from : 0},
                              .right = {best->right, s->to - (LNT_STREAM_ALIGN - 1)},
                              .hop = best->hop};
}

static lnt_status find_cut(cutter *c, lnt_report *report)
{
    lnt_graph *g = c->g;
    cut best = {.value = LNT_NONE};
    const uint32_t sound = find_sound(g);
    if (sound != LNT_NONE && !g->n_states) {
        find_steady(c);
        go_back(c, sound, 1, LNT_NONE, NULL, &best); /* what the largest hop is */
        go_back(c, sound, c->hop, LNT_NONE, g->stream_at, &best);
    }
    if (best.value != LNT_NONE)
        take_cut(c, sound, &best);
    else if (g->stream_at)
        return refuse_name(c, g->stream_at);
    if (c->stop && c->hop > 1)
        report->stream = lnt_report_text(report, "none: node '%s' (%s) %s", c->stop->name,
                                         lnt_op_name(c->stop->op), c->reason);
    return LNT_OK;
}

lnt_status lnt_pass_stream_cut(lnt_graph *g, lnt_report *report)
{
    cutter c = {.g = g, .hop = 1};
    const lnt_allocator *heap = g->memory.allocator;
    if (g->stream_at && strcmp(g->stream_at, "off") == 0)
        return LNT_OK;
    c.steady = lnt_alloc_zero(heap, g->n_values + 1, sizeof *c.steady, g->err);
    c.of = lnt_alloc_zero(heap, g->n_values + 1, sizeof *c.of, g->err);
    const lnt_status status = c.steady && c.of ? find_cut(&c, report) : LNT_E_MEMORY;
    lnt_free(heap, c.steady);
    lnt_free(heap, c.of);
    return status;
}

/* Does n take its scale from all of what it reads? */
static bool measures(const lnt_gnode *n)
{
    static const unsigned dynamic[] = {LNT_ID_DynamicQuantizeLinear, LNT_ID_DynamicQuantizeMatMul,
                                       LNT_ID_DynamicMatMul, LNT_ID_DynamicConv};
    for (size_t k = 0; k < sizeof dynamic / sizeof *dynamic; k++)
        if (lnt_gnode_is(n, dynamic[k]))
            return true;
    return false;
}

/* Frames that pieces have to begin at multiples of; 0: n forbids pieces. */
static int64_t alignment(const lnt_graph *g, const lnt_gnode *n)
{
    if (measures(n))
        return 0;
    if (!lnt_is(n, WinogradConv))
        return 1;
    const lnt_attr *kernel = lnt_gnode_attr(n, "kernel_shape");
    const uint32_t in = g->value[n->in[0]].stream_rate, out = g->value[n->out[0]].stream_rate;
    const bool line = kernel && kernel->count && (kernel->count == 1 || kernel->i[0] == 1);
    return line && in && in == out
               ? lnt_stream_step(n, lnt_winograd_line_tile(kernel->i[kernel->count - 1]), in)
               : 0;
}

/* Over all nodes behind the cut; *at: the one that forbids. */
static int64_t align_all(const lnt_graph *g, bool *needed, bool *tiled, const lnt_gnode **at)
{
    int64_t all = 1;
    needed[g->stream.sound] = true;
    for (size_t i = g->sub[0].n_nodes; i-- > 0;) {
        const lnt_gnode *n = g->sub[0].node[i];
        bool behind = false;
        for (unsigned k = 0; k < n->n_out; k++)
            behind |= n->out[k] != LNT_NONE && n->out[k] != g->stream.value && needed[n->out[k]];
        if (!behind)
            continue;
        *at = n;
        const int64_t one = alignment(g, n);
        if (!one)
            return 0;
        all = all / gcd(all, one) * one;
        *tiled |= lnt_is(n, WinogradConv);
        for (unsigned k = 0; k < n->n_in; k++)
            if (n->in[k] != LNT_NONE)
                needed[n->in[k]] = true;
    }
    return all;
}

static lnt_status add_meta(lnt_graph *g, const char *key, const char *text)
{
    size_t i = 0;
    while (i < g->n_meta && strcmp(g->meta[i].key, key) != 0)
        i++;
    const lnt_gmeta m = {key, lnt_bump_string(&g->memory, text, strlen(text), g->err)};
    if (!m.text)
        return LNT_E_MEMORY;
    LNT_TRY(LNT_GROW(g->memory.allocator, g->meta, g->meta_capacity, g->n_meta, g->err));
    g->meta[i] = m;
    g->n_meta += i == g->n_meta;
    return LNT_OK;
}

static lnt_status write_cut(lnt_graph *g, lnt_report *report, int64_t align, bool tiled)
{
    const lnt_gstream *s = &g->stream;
    const int64_t left = s->left[tiled], right = s->right[tiled];
    const struct {
        const char *key;
        int64_t value;
    } number[] = {
        {"stream.left", left}, {"stream.right", right}, {"stream.hop", s->hop}, {"stream.align", align}};
    LNT_TRY(add_meta(g, "stream.value", g->value[s->value].name));
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, number[i].value);
        LNT_TRY(add_meta(g, number[i].key, text));
    }
    report->stream = lnt_report_text(report,
                                     "from '%s', frames of %" PRId64 " samples, %" PRId64
                                     " before and %" PRId64 " behind, pieces from multiples of %" PRId64,
                                     g->value[s->value].name, s->hop, left, right, align);
    return report->stream ? LNT_OK : LNT_E_MEMORY;
}

lnt_status lnt_pass_stream_marks(lnt_graph *g, lnt_report *report)
{
    const lnt_gnode *at = NULL;
    bool tiled = false;
    if (!g->stream.hop)
        return LNT_OK;
    bool *needed = lnt_alloc_zero(g->memory.allocator, g->n_values + 1, sizeof *needed, g->err);
    if (!needed)
        return LNT_E_MEMORY;
    const int64_t align = align_all(g, needed, &tiled, &at);
    lnt_free(g->memory.allocator, needed);
    if (align)
        return write_cut(g, report, align, tiled);
    LNT_REQUIRE(!g->stream_at, g->err, LNT_E_UNSUPPORTED,
                "--stream %s: node '%s' (%s) reads all times, for its scale or its tiles", g->stream_at,
                at->name, lnt_op_name(at->op));
    report->stream =
        lnt_report_text(report, "none: node '%s' (%s) reads all times, for its scale or its tiles", at->name,
                        lnt_op_name(at->op));
    return report->stream ? LNT_OK : LNT_E_MEMORY;
}
