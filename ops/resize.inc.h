/* resize.inc.h — interpolation in one type, R; included by resize.c with R, NAME and ROW. */

/* row += weight * x, or row = weight * x for the first. */
static void NAME(mix)(const resize *p, R *row, const R *x, R weight, int64_t n, bool first)
{
    if (first)
        ROW(p)->shift_scale(x, row, n, 0, weight, 0);
    else
        ROW(p)->add_scaled(row, x, weight, n);
}

/* The rows that outer output position o hangs on, mixed into row. False if o lies outside the region of
 * interest. */
static bool NAME(gather_rows)(const resize *p, const R *x, int64_t o, R *row)
{
    int64_t at[LNT_MAX_RANK];
    unsigned tap[LNT_MAX_RANK] = {0};
    const int64_t n = p->along.in * p->unit;
    for (unsigned d = p->n_outer; d-- > 0; o /= p->outer[d].out) {
        at[d] = o % p->outer[d].out;
        if (p->outer[d].index[at[d] * p->outer[d].taps] < 0)
            return false;
    }
    for (bool first = true, more = true; more; first = false) {
        int64_t offset = 0;
        R weight = 1;
        for (unsigned d = 0; d < p->n_outer; d++) {
            const int64_t entry = at[d] * p->outer[d].taps + tap[d];
            offset += p->outer[d].index[entry] * p->outer[d].stride;
            weight *= ((const R *)p->outer[d].weight)[entry];
        }
        NAME(mix)(p, row, x + offset, weight, n, first);
        more = false;
        for (unsigned d = p->n_outer; d-- > 0 && !more;) {
            more = ++tap[d] < p->outer[d].taps;
            if (!more)
                tap[d] = 0;
        }
    }
    return true;
}

/* A row of inputs to a row of outputs. */
static void NAME(interpolate_row)(const resize *p, const R *row, R *y)
{
    const axis_map *a = &p->along;
    const R *weight = a->weight;
    if (a->taps == 2 && p->unit == 1 && !p->crops) { /* linear */
        for (int64_t o = 0; o < a->out; o++)
            y[o] = weight[2 * o] * row[a->index[2 * o]] + weight[2 * o + 1] * row[a->index[2 * o + 1]];
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
            for (unsigned t = 0; t < a->taps; t++)
                NAME(mix)(p, y, row + index[t] * p->unit, weight[o * a->taps + t], p->unit, t == 0);
        }
    }
}

static lnt_status NAME(interpolate)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const resize_job *j = arg;
    const resize *p = j->p;
    R *row = (R *)((char *)j->scratch + thread * p->thread_bytes);
    (void)k;
    for (int64_t o = begin; o < end; o++) {
        R *y = (R *)j->y + o * p->along.out * p->unit;
        if (NAME(gather_rows)(p, j->x, o, row)) {
            NAME(interpolate_row)(p, row, y);
            continue;
        }
        for (int64_t i = 0; i < p->along.out * p->unit; i++)
            y[i] = (R)p->extrapolation;
    }
    return LNT_OK;
}
