/* depthwise_pairs.inc.h — two rows of a depthwise convolution at once, part of ops/conv/conv_kernels.inc.h for 64-bit
 * ARM.
 *
 * Kernels are squares of constant extent, the stride is constant. A group is four pixels of each row at a vector of
 * channels; what the rows share of the image and of the weights is loaded once, some columns before it is multiplied.
 * Sums are those of depthwise_line, to the bit. For cores that run in order vectors come by halves
 * (ops/simd/simd_ordered.h), the second with the next load. */

enum {
    PAIR_ROWS = 2,
    PAIR_PIXELS = 4,
    PAIR_COLUMNS_MAX = 11, /* of the image, for a group */
    PAIR_LINES_MAX = 7,
    PAIR_TAPS_MAX = 5,
    PAIR_AHEAD = 3,                    /* columns between a load and its use */
    PAIR_COLUMN_RING = PAIR_AHEAD + 1, /* in registers */
    PAIR_WEIGHT_RING = 3               /* lines of weights in registers */
};

/* What a body of code is specialized for. border: lines or columns may lie outside the image, pixels outside the
 * row. */
typedef struct pair_kind {
    unsigned taps, stride;
    bool border, in_order;
} pair_kind;

/* Where a group is: its lines and weights at a vector of channels. Steps are bytes: w_line is that from the last tap of
 * a line to the next line's first. from: of a border group, from pixel 0 to each column, or the nearest one inside. */
typedef struct pair_group {
    const char *line[PAIR_LINES_MAX]; /* at the first column; of a border group, at pixel 0 */
    const char *w;
    size_t step, w_tap, w_line, from[PAIR_COLUMNS_MAX];
    size_t lines_met, met; /* bit l, c: does line l, column c lie in the image? */
    size_t flags;          /* PAIR_ADDS and the like */
    unsigned pixels;       /* to be stored */
} pair_group;

enum { PAIR_ADDS = 1, PAIR_HAS_LOW = 2, PAIR_HAS_HIGH = 4 }; /* bounds that change something */

/* The second halves of the last column and the last weight begun are still to be inserted; x and w: where these
 * are. */
typedef struct pair_state {
    vf acc[PAIR_ROWS][PAIR_PIXELS], weight[PAIR_WEIGHT_RING][PAIR_TAPS_MAX], column[PAIR_COLUMN_RING];
    uint64_t of_column, of_weight;
    const char *x, *w;
} pair_state;

LNT_INLINE unsigned pair_columns(const pair_kind k)
{
    return (PAIR_PIXELS - 1) * k.stride + k.taps;
}

LNT_INLINE unsigned pair_lines(const pair_kind k)
{
    return k.taps + k.stride;
}

/* Columns of all lines go by the registers one after the other; c may be of a later line. */
LNT_INLINE vf *pair_place(pair_state *s, unsigned l, unsigned c, const pair_kind k)
{
    return &s->column[(l * pair_columns(k) + c) % PAIR_COLUMN_RING];
}

LNT_INLINE bool pair_is_column(unsigned l, unsigned c, const pair_kind k)
{
    return l + c / pair_columns(k) < pair_lines(k);
}

LNT_INLINE void pair_begin(vf *x, const char *from, const pair_kind k)
{
    if (k.in_order)
        ordered_first(x, from);
    else
        ordered_load(x, from);
}

LNT_INLINE void pair_begin_column(pair_state *s, const pair_group *g, unsigned l, unsigned c,
                                  const pair_kind k)
{
    const unsigned columns = pair_columns(k), line = l + c / columns;
    if (!pair_is_column(l, c, k))
        return;
    if (k.border)
        s->x = ordered_pointer(g->line[line] + g->from[c % columns]);
    else if (c % columns == 0)
        s->x = g->line[line];
    pair_begin(pair_place(s, l, c, k), s->x, k);
}

LNT_INLINE void pair_fetch_column(pair_state *s, const pair_group *g, unsigned l, unsigned c,
                                  const pair_kind k)
{
    if (!pair_is_column(l, c, k))
        return;
    if (k.in_order)
        ordered_pair(&s->of_column, s->x + 2 * sizeof(float));
    if (!k.border)
        s->x = ordered_pointer(s->x + g->step);
}

LNT_INLINE void pair_end_column(pair_state *s, unsigned l, unsigned c, const pair_kind k)
{
    if (k.in_order && pair_is_column(l, c, k))
        ordered_insert(pair_place(s, l, c, k), true, s->of_column);
}

/* Weights are taken one after the other. */
LNT_INLINE void pair_begin_weight(pair_state *s, unsigned line, unsigned t, const pair_kind k)
{
    pair_begin(&s->weight[line % PAIR_WEIGHT_RING][t], s->w, k);
}

LNT_INLINE void pair_fetch_weight(pair_state *s, const pair_group *g, unsigned t, const pair_kind k)
{
    if (k.in_order)
        ordered_pair(&s->of_weight, s->w + 2 * sizeof(float));
    s->w = ordered_pointer(s->w + (t + 1 < k.taps ? g->w_tap : g->w_line));
}

LNT_INLINE void pair_end_weight(pair_state *s, unsigned line, unsigned t, const pair_kind k)
{
    if (k.in_order)
        ordered_insert(&s->weight[line % PAIR_WEIGHT_RING][t], true, s->of_weight);
}

/* The first pixel that column c adds to. */
LNT_INLINE unsigned pair_first_pixel(unsigned c, const pair_kind k)
{
    return c < k.taps ? 0 : (c - k.taps) / k.stride + 1;
}

/* Adds the products of column c of line l to pixels [i, end). */
LNT_INLINE void pair_column(pair_state *s, unsigned l, unsigned c, unsigned i, unsigned end,
                            const pair_kind k)
{
    const vf x = *pair_place(s, l, c, k);
    UNROLL_FOR(4, ; i < end; i++)
        UNROLL_FOR(2, unsigned r = 0; r < PAIR_ROWS; r++) {
            const unsigned t = c - i * k.stride, line = l - r * k.stride; /* large if below 0 */
            if (t < k.taps && line < k.taps)
                ordered_fma(&s->acc[r][i], x, s->weight[line % PAIR_WEIGHT_RING][t]);
        }
}

/* Are the weights of a line loaded while the line before is multiplied? */
LNT_INLINE bool pair_is_early(const pair_kind k)
{
    return !k.border && k.stride < PAIR_WEIGHT_RING - 1; /* the ring has room for another */
}

LNT_INLINE void pair_load_weights(pair_state *s, const pair_group *g, unsigned line, const pair_kind k)
{
    UNROLL_FOR(5, unsigned t = 0; t < k.taps; t++) {
        pair_begin_weight(s, line, t, k);
        if (t > 0)
            pair_end_weight(s, line, t - 1, k);
        pair_fetch_weight(s, g, t, k);
    }
    pair_end_weight(s, line, k.taps - 1, k);
}

/* The first columns of line l, all but the last one whole. */
LNT_INLINE void pair_load_columns(pair_state *s, const pair_group *g, unsigned l, const pair_kind k)
{
    UNROLL_FOR(3, unsigned c = 0; c < PAIR_AHEAD; c++) {
        pair_begin_column(s, g, l, c, k);
        if (c > 0)
            pair_end_column(s, l, c - 1, k);
        pair_fetch_column(s, g, l, c, k);
    }
}

/* All of line l inside the image. Its first columns are loaded, those of the next line are behind it. */
LNT_INLINE void pair_line(pair_state *s, const pair_group *g, unsigned l, const pair_kind k)
{
    const unsigned columns = pair_columns(k);
    UNROLL_FOR(11, unsigned c = 0; c < columns; c++) {
        const bool weights = pair_is_early(k) && l + 1 < k.taps && c >= 1 && c < 2 + k.taps;
        const unsigned t = c - 1, i = pair_first_pixel(c, k);
        pair_begin_column(s, g, l, c + PAIR_AHEAD, k);
        pair_end_column(s, l, c + PAIR_AHEAD - 1, k);
        if (weights && t < k.taps)
            pair_begin_weight(s, l + 1, t, k);
        if (weights && t > 0)
            pair_end_weight(s, l + 1, t - 1, k);
        pair_column(s, l, c, i, i + 1, k);
        pair_fetch_column(s, g, l, c + PAIR_AHEAD, k);
        if (weights && t < k.taps)
            pair_fetch_weight(s, g, t, k);
        pair_column(s, l, c, i + 1, PAIR_PIXELS, k);
    }
}

/* All of line l, columns in the image only. */
LNT_INLINE void pair_border_line(pair_state *s, const pair_group *g, unsigned l, const pair_kind k)
{
    const unsigned columns = pair_columns(k);
    pair_load_columns(s, g, l, k);
    UNROLL_FOR(11, unsigned c = 0; c < columns; c++) {
        if (c + PAIR_AHEAD < columns)
            pair_begin_column(s, g, l, c + PAIR_AHEAD, k);
        if (c + PAIR_AHEAD - 1 < columns)
            pair_end_column(s, l, c + PAIR_AHEAD - 1, k);
        if (c + PAIR_AHEAD < columns)
            pair_fetch_column(s, g, l, c + PAIR_AHEAD, k);
        if (g->met & 1u << c)
            pair_column(s, l, c, 0, PAIR_PIXELS, k);
    }
}

/* start: the initial sums. */
LNT_INLINE void pair_sum(pair_state *s, const pair_group *g, vf start, const pair_kind k)
{
    s->w = g->w;
    pair_load_weights(s, g, 0, k);
    if (!k.border)
        pair_load_columns(s, g, 0, k);
    UNROLL_FOR(4, unsigned i = 0; i < PAIR_PIXELS; i++)
        UNROLL_FOR(2, unsigned r = 0; r < PAIR_ROWS; r++)
            ordered_copy(&s->acc[r][i], start);
    UNROLL_FOR(7, unsigned l = 0; l < pair_lines(k); l++) {
        if (l > 0 && l < k.taps && !pair_is_early(k))
            pair_load_weights(s, g, l, k);
        if (!k.border)
            pair_line(s, g, l, k);
        else if (g->lines_met & 1u << l)
            pair_border_line(s, g, l, k);
    }
}

LNT_INLINE void pair_clamp(pair_state *s, const pair_group *g, const lnt_depthwise *d)
{
    const vf low = v_splat(d->low), high = v_splat(d->high);
    if (g->flags & PAIR_HAS_LOW)
        UNROLL_FOR(4, unsigned i = 0; i < PAIR_PIXELS; i++)
            UNROLL_FOR(2, unsigned r = 0; r < PAIR_ROWS; r++)
                s->acc[r][i] = v_max(low, s->acc[r][i]);
    if (g->flags & PAIR_HAS_HIGH)
        UNROLL_FOR(4, unsigned i = 0; i < PAIR_PIXELS; i++)
            UNROLL_FOR(2, unsigned r = 0; r < PAIR_ROWS; r++)
                s->acc[r][i] = v_min(high, s->acc[r][i]);
}

/* to: of the first pixel from d->c and d->residual. */
LNT_INLINE void pair_store(pair_state *s, const pair_group *g, const lnt_depthwise *d, size_t to,
                           const pair_kind k)
{
    const size_t pixel = d->pixel, row = d->row;
    if (g->flags & PAIR_ADDS) {
        const float *added = d->residual + to;
        UNROLL_FOR(4, unsigned i = 0; i < PAIR_PIXELS; i++) {
            if (k.border && i >= g->pixels)
                break;
            UNROLL_FOR(2, unsigned r = 0; r < PAIR_ROWS; r++)
                s->acc[r][i] += v_load(added + r * row);
            added = ordered_pointer(added + pixel);
        }
    }
    pair_clamp(s, g, d);
    float *c = d->c + to;
    UNROLL_FOR(4, unsigned i = 0; i < PAIR_PIXELS; i++) {
        if (k.border && i >= g->pixels)
            break;
        UNROLL_FOR(2, unsigned r = 0; r < PAIR_ROWS; r++)
            v_store(c + r * row, s->acc[r][i]);
        c = ordered_result(c + pixel);
    }
}

/* Pixels from i on, all channels but those that fill no vector. */
LNT_INLINE void pair_channels(const lnt_depthwise *d, pair_group g, size_t i, const pair_kind k)
{
    const size_t to = i * d->pixel;
    for (size_t n = 0; n + LNT_VL <= d->channels; n += LNT_VL) {
        pair_state s;
        g.met = ordered_value(g.met);
        g.flags = ordered_value(g.flags);
        pair_sum(&s, &g, d->bias ? v_load(d->bias + n) : v_splat(0), k);
        pair_store(&s, &g, d, to + n, k);
        UNROLL_FOR(7, unsigned l = 0; l < pair_lines(k); l++)
            g.line[l] += LNT_VL * sizeof(float);
        g.w += LNT_VL * sizeof(float);
    }
}

/* The group of pixels from i on at the first channels, its lines at pixel 0. */
LNT_INLINE pair_group pair_group_at(const lnt_depthwise *d, size_t i, const pair_kind k)
{
    const depthwise_place p = place_group(d, i, PAIR_PIXELS);
    const size_t taps = (k.taps - 1) * d->w_tap;
    pair_group g = {.met = p.met,
                    .pixels = p.pixels,
                    .w = (const char *)d->w[0],
                    .step = d->in_pixel * sizeof(float),
                    .w_tap = d->w_tap * sizeof(float),
                    .w_line = (size_t)(d->w[1] - d->w[0]) * sizeof(float) - taps * sizeof(float),
                    .flags = (size_t)(d->residual ? PAIR_ADDS : 0) |
                             (size_t)(d->low > -INFINITY ? PAIR_HAS_LOW : 0) |
                             (size_t)(d->high < INFINITY ? PAIR_HAS_HIGH : 0)};
    for (unsigned l = 0; l < pair_lines(k); l++) {
        g.line[l] = (const char *)d->line[l];
        g.lines_met |= (size_t)(d->line[l] != NULL) << l;
    }
    for (ptrdiff_t c = 0; c < (ptrdiff_t)pair_columns(k); c++) {
        const ptrdiff_t at = p.at + c < 0 ? 0 : p.at + c < d->width ? p.at + c : d->width - 1;
        g.from[c] = (size_t)at * g.step;
    }
    return g;
}

LNT_INLINE void pair_run(const lnt_depthwise *d, const unsigned taps, const unsigned stride,
                         const bool in_order)
{
    const lnt_depthwise own = *d; /* out of reach of the stores, which may alias anything */
    const pair_kind inside = {.taps = taps, .stride = stride, .in_order = in_order};
    const pair_kind border = {.taps = taps, .stride = stride, .in_order = in_order, .border = true};
    size_t begin, end;
    find_inside(&own, (ptrdiff_t)stride, &begin, &end);
    for (size_t i = 0; i < own.pixels; i += PAIR_PIXELS) {
        pair_group g = pair_group_at(&own, i, inside);
        if (g.lines_met != (1u << pair_lines(inside)) - 1 || i < begin || i + PAIR_PIXELS > end) {
            pair_channels(&own, g, i, border);
            continue;
        }
        UNROLL_FOR(7, unsigned l = 0; l < pair_lines(inside); l++)
            g.line[l] += g.from[0];
        pair_channels(&own, g, i, inside);
    }
}

/* Channels that fill no vector, a row at a time. */
static __attribute__((noinline)) void pair_tails(const lnt_depthwise *d, size_t stride)
{
    const size_t n = d->channels / LNT_VL * LNT_VL;
    for (size_t r = 0; r < PAIR_ROWS && n < d->channels; r++) {
        const float *line[PAIR_TAPS_MAX], *w[PAIR_TAPS_MAX];
        lnt_depthwise row = *d;
        row.line = line, row.w = w, row.lines = 0;
        row.c += r * d->row;
        row.residual = d->residual ? d->residual + r * d->row : NULL;
        for (size_t l = 0; l < d->taps; l++)
            if (d->line[l + r * stride])
                line[row.lines] = d->line[l + r * stride], w[row.lines++] = d->w[l];
        depthwise_tail(&row, 0, (unsigned)d->pixels, n);
    }
}

#define PAIR_RUN(name, taps, stride, in_order)                                                               \
    static void name(const lnt_depthwise *d)                                                                 \
    {                                                                                                        \
        pair_run(d, taps, stride, in_order);                                                                 \
    }
PAIR_RUN(depthwise_pair_3_1, 3, 1, false)
PAIR_RUN(depthwise_pair_3_2, 3, 2, false)
PAIR_RUN(depthwise_pair_5_1, 5, 1, false)
PAIR_RUN(depthwise_pair_5_2, 5, 2, false)
PAIR_RUN(depthwise_pair_3_1_in_order, 3, 1, true)
PAIR_RUN(depthwise_pair_3_2_in_order, 3, 2, true)
PAIR_RUN(depthwise_pair_5_1_in_order, 5, 1, true)
#undef PAIR_RUN

LNT_INLINE void pairs(const lnt_depthwise *d, const lnt_depthwise_fn of[2][2])
{
    LNT_ASSERT(lnt_depthwise_pairs(d->lines, d->taps, d->stride, d->spacing) && d->features == 0 &&
               d->width > 0);
    of[d->taps == 5][d->stride == 2](d);
    pair_tails(d, (size_t)d->stride);
}

static void depthwise_pair(const lnt_depthwise *d)
{
    static const lnt_depthwise_fn of[2][2] = {{depthwise_pair_3_1, depthwise_pair_3_2},
                                              {depthwise_pair_5_1, depthwise_pair_5_2}};
    pairs(d, of);
}

/* The largest and least frequent has no form of its own. */
static void depthwise_pair_in_order(const lnt_depthwise *d)
{
    static const lnt_depthwise_fn of[2][2] = {{depthwise_pair_3_1_in_order, depthwise_pair_3_2_in_order},
                                              {depthwise_pair_5_1_in_order, depthwise_pair_5_2}};
    pairs(d, of);
}
