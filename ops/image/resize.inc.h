/* resize.inc.h — coordinates and interpolation in one type, R; included by resize.c with R, NAME and ROW. */

/* A weighted sum of rows that come one after another; the first waits for the second. */
typedef struct NAME(sum) {
    R *to;
    int64_t n;
    const R *first; /* waiting */
    R weight;
    bool begun;
} NAME(sum);

static void NAME(add)(const resize *p, NAME(sum) * s, const R *x, R weight)
{
    if (s->begun) {
        ROW(p)->add_scaled(s->to, x, 0, &weight, 1, s->n);
    } else if (s->first) {
        ROW(p)->blend(s->first, s->weight, x, weight, s->to, s->n);
        s->begun = true;
    } else {
        s->first = x;
        s->weight = weight;
    }
}

static void NAME(end)(const resize *p, const NAME(sum) * s)
{
    if (!s->begun)
        ROW(p)->shift_scale(s->first, s->to, s->n, 0, s->weight, 0);
}

/* Outputs of 2 or 4 taps each, none of which lies outside. */
static inline __attribute__((always_inline)) void NAME(mix_pairs)(const axis_map *a, const R *row, R *y,
                                                                  const int taps)
{
    const int32_t *index = a->index;
    const R *weight = a->weight;
    for (const R *end = y + a->out; y < end; y++, index += taps, weight += taps) {
        R total = weight[0] * row[index[0]] + weight[1] * row[index[1]];
        if (taps == 4)
            total += weight[2] * row[index[2]] + weight[3] * row[index[3]];
        *y = total;
    }
}

/* A row of inputs to a row as wide as the outputs. */
static void NAME(interpolate_row)(const resize *p, const R *row, R *y)
{
    const axis_map *a = &p->along;
    const R *weight = a->weight;
    if (p->unit == 1 && !p->crops && (a->taps == 2 || a->taps == 4)) { /* linear and cubic */
        if (a->taps == 2)
            NAME(mix_pairs)(a, row, y, 2);
        else
            NAME(mix_pairs)(a, row, y, 4);
        return;
    }
    for (int64_t o = 0; o < a->out; o++, y += p->unit) {
        const int32_t *index = a->index + o * a->taps;
        if (index[0] < 0) {
            for (int64_t i = 0; i < p->unit; i++)
                y[i] = (R)p->extrapolation;
        } else if (p->unit == 1) {
            R total = 0;
            for (unsigned t = 0; t < a->taps; t++)
                total += weight[o * a->taps + t] * row[index[t]];
            *y = total;
        } else {
            NAME(sum) s = {.to = y, .n = p->unit};
            for (unsigned t = 0; t < a->taps; t++)
                NAME(add)(p, &s, row + index[t] * p->unit, weight[o * a->taps + t]);
            NAME(end)(p, &s);
        }
    }
}

/* The row of inputs at offset; if rows are kept it is as wide as the outputs, in its slot already or made
 * there. */
static const R *NAME(row_at)(const resize *p, const R *x, int64_t offset, unsigned slot, char *scratch)
{
    if (p->slots == 0)
        return x + offset;
    int64_t *kept = (int64_t *)(void *)scratch + slot;
    R *row = (R *)(void *)(scratch + p->slots * sizeof *kept) + slot * p->along.out * p->unit;
    if (*kept != offset)
        NAME(interpolate_row)(p, x + offset, row);
    *kept = offset;
    return row;
}

/* The rows that output row o depends on, mixed. False if it lies outside the region of interest. */
static bool NAME(mix_rows)(const resize *p, const R *x, int64_t o, R *to, char *scratch)
{
    int64_t at[LNT_MAX_RANK];
    unsigned tap[LNT_MAX_RANK] = {0};
    NAME(sum) s = {.to = to, .n = (p->slots ? p->along.out : p->along.in) * p->unit};
    for (unsigned d = p->n_outer; d-- > 0; o /= p->outer[d].out) {
        at[d] = o % p->outer[d].out;
        if (p->outer[d].index[at[d] * p->outer[d].taps] < 0)
            return false;
    }
    for (bool more = true; more;) {
        int64_t offset = o * p->plane;
        unsigned slot = 0;
        R weight = 1;
        for (unsigned d = 0; d < p->n_outer; d++) {
            const unsigned taps = p->outer[d].taps;
            const int64_t entry = at[d] * taps + tap[d];
            const int32_t index = p->outer[d].index[entry];
            offset += index * p->outer[d].stride;
            slot = slot * taps + (unsigned)index % taps;
            weight *= ((const R *)p->outer[d].weight)[entry];
        }
        NAME(add)(p, &s, NAME(row_at)(p, x, offset, slot, scratch), weight);
        more = false;
        for (unsigned d = p->n_outer; d-- > 0 && !more;) {
            more = ++tap[d] < p->outer[d].taps;
            if (!more)
                tap[d] = 0;
        }
    }
    NAME(end)(p, &s);
    return true;
}

static lnt_status NAME(interpolate)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const resize_job *j = arg;
    const resize *p = j->p;
    char *scratch = (char *)j->scratch + thread * p->thread_bytes;
    (void)k;
    memset(scratch, 0xff, p->slots * sizeof(int64_t)); /* no row is kept yet */
    for (int64_t o = begin; o < end; o++) {
        R *y = (R *)j->y + o * p->along.out * p->unit, *mixed = p->slots ? y : (R *)(void *)scratch;
        if (!NAME(mix_rows)(p, j->x, o, mixed, scratch))
            for (int64_t i = 0; i < p->along.out * p->unit; i++)
                y[i] = (R)p->extrapolation;
        else if (mixed != y)
            NAME(interpolate_row)(p, mixed, y);
    }
    return LNT_OK;
}

/* ---- coordinates ---- */

/* Where output i of an axis lies in the input. */
static R NAME(source_of)(transform how, int64_t i, const axis_map *a, double ratio, const double roi[2])
{
    const R y = (R)i, scale = (R)ratio, width = (R)(ratio * (double)a->in), last = (R)(a->in - 1);
    const R half = (R)0.5, middle = (y + half) / scale, start = (R)roi[0], extent = (R)roi[1] - start;
    switch (how) {
    case ALIGN_CORNERS: /* the region is the whole axis; width is not rounded down */
    case TF_CROP_AND_RESIZE:
        if (width != 1)
            return start * last + y * extent * last / (width - 1);
        return how == ALIGN_CORNERS ? 0 : start * last + extent * last / 2;
    case HALF_PIXEL_SYMMETRIC: return (R)a->in / 2 * (1 - (R)a->out / width) + middle - half;
    case ASYMMETRIC: return y / scale;
    case TF_HALF_PIXEL_FOR_NN: return middle;
    case PYTORCH_HALF_PIXEL: return width == 1 ? -half : middle - half;
    case HALF_PIXEL: break;
    }
    return middle - half;
}
