/* gridsample.inc.h — sampling at given points in one type, R; included by gridsample.c with R and NAME. */

/* Into [low, high], mirrored at the ends. */
static R NAME(reflect)(R x, R low, R high)
{
    const R range = high - low;
    if (!(range > 0))
        return low;
    const R distance = x < low ? low - x : x - low;
    const R rest = distance < 2 * range ? distance : (R)fmod((double)distance, 2 * (double)range);
    return rest > range ? high - (rest - range) : low + rest;
}

/* Input position of grid coordinate n along an axis of the given extent, after padding. */
static R NAME(position)(const gridsample *p, R n, int64_t extent)
{
    const R d = (R)extent, low = p->align_corners ? 0 : (R)-0.5, high = p->align_corners ? d - 1 : d - (R)0.5;
    R x = p->align_corners ? (n + 1) / 2 * (d - 1) : ((n + 1) * d - 1) / 2;
    if (p->kind == NEAREST) { /* half to even, as rint has it; beyond all extents it does not matter */
        const double shift = 0x1.8p52;
        x = (R)((double)x + shift - shift);
    }
    if (p->padding == BORDER && p->kind != CUBIC) { /* cubic: each element by itself, as PyTorch has it */
        x = x > 0 ? x : 0;
        x = x < d - 1 ? x : d - 1;
    } else if (p->padding == REFLECTION && (x < low || x > high))
        x = NAME(reflect)(x, low, high);
    const R limit = (R)0x1p30; /* beyond all extents, NaN too: an int must hold it */
    return x > -limit && x < limit ? x : x > 0 ? limit : -limit;
}

/* Index of the input element at i, -1 if it is 0. */
static int64_t NAME(element)(const gridsample *p, int64_t i, int64_t extent)
{
    if (i >= 0 && i < extent)
        return i;
    if (p->padding == ZEROS)
        return -1;
    if (p->padding == BORDER)
        return i < 0 ? 0 : extent - 1;
    const R low = p->align_corners ? 0 : (R)-0.5, high = low * -1 + (R)(extent - 1);
    const int64_t at = (int64_t)NAME(reflect)((R)i, low, high);
    return at < 0 ? 0 : at < extent ? at : extent - 1;
}

/* Weights of the taps at floor(x) - before + t, where the fraction of x is f. */
static void NAME(weights)(const gridsample *p, R f, R *w)
{
    const R a = (R)-0.75;
    if (p->kind == CUBIC) {
        for (int t = 0; t < 4; t++) {
            const R d = (R)fabs((double)(f + 1 - (R)t));
            w[t] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
        }
    } else if (p->kind == LINEAR) {
        w[0] = 1 - f;
        w[1] = f;
    } else {
        w[0] = 1;
    }
}

/* The elements that count along one axis at grid coordinate n. Returns their number; of nearest there is one in any
 * case, to be left out or not. */
static unsigned NAME(axis_taps)(const gridsample *p, R n, int64_t extent, NAME(lnt_tap) * tap)
{
    const R x = NAME(position)(p, n, extent);
    const int64_t cut = (int64_t)x, base = cut - ((R)cut > x);
    const bool inside = (uint64_t)base < (uint64_t)extent;
    R w[4];
    unsigned count = 0;
    if (p->kind == NEAREST &&
        (inside | (p->padding == ZEROS))) { /* no jump: whether a point is inside is hard to foretell */
        tap[0] = (NAME(lnt_tap)){base, 1};
        return inside;
    }
    if (p->kind == LINEAR && base >= 0 && base < extent - 1) {
        tap[0] = (NAME(lnt_tap)){base, 1 - (x - (R)base)};
        tap[1] = (NAME(lnt_tap)){base + 1, x - (R)base};
        return 2;
    }
    NAME(weights)(p, x - (R)base, w);
    for (unsigned t = 0; t < p->taps; t++) {
        const int64_t at = NAME(element)(p, base - (p->kind == CUBIC) + t, extent);
        if (at >= 0)
            tap[count++] = (NAME(lnt_tap)){at, w[t]};
    }
    return count;
}

/* All elements one output depends on. Returns their number. */
static unsigned NAME(point_taps)(const gridsample *p, const R *point, NAME(lnt_tap) * tap)
{
    unsigned n = NAME(axis_taps)(p, point[p->axes - 1], p->extent[0], tap);
    for (unsigned d = 1; d < p->axes; d++) {
        NAME(lnt_tap) along[4];
        const unsigned count = NAME(axis_taps)(p, point[p->axes - 1 - d], p->extent[d], along);
        if (p->taps == 1) {
            tap->at = tap->at * p->extent[d] + along->at;
            n &= count;
            continue;
        }
        /* From the last on: their places are behind those of the taps they come from. */
        for (unsigned i = n; i-- > 0;) {
            const NAME(lnt_tap) from = tap[i];
            for (unsigned t = count; t-- > 0;)
                tap[i * count + t] =
                    (NAME(lnt_tap)){from.at * p->extent[d] + along[t].at, from.weight * along[t].weight};
        }
        n *= count;
    }
    return n;
}

static lnt_status NAME(sample)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const gridsample_job *j = arg;
    const gridsample *p = j->p;
    NAME(lnt_taps) taps;
    taps.onto = false;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item += taps.points) {
        const int64_t image = item / p->points, at = item % p->points;
        const int64_t rest = end - item < p->points - at ? end - item : p->points - at;
        taps.points = rest < p->block ? rest : p->block;
        taps.used = 0;
        for (int64_t i = 0; i < taps.points; i++) {
            taps.count[i] =
                NAME(point_taps)(p, (const R *)j->grid + (item + i) * p->axes, taps.tap + taps.used);
            taps.used += taps.count[i];
        }
        NAME(lnt_sum_taps)
        (&taps, (const R *)j->x + image * p->channels * p->size, p->size,
         (R *)j->y + image * p->channels * p->points + at, p->points, p->channels);
    }
    return LNT_OK;
}

typedef R NAME(pair) __attribute__((vector_size(2 * sizeof(R))));

/* Lines of an affine grid: coordinates of output positions under theta [n][axes][axes + 1], of two neighboring axes at
 * a time. */
static lnt_status NAME(affine)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const gridsample_job *j = arg;
    const gridsample *p = j->p;
    const unsigned last = p->axes - 1;
    const int64_t width = p->extent[last], lines = p->points / width;
    (void)k, (void)thread;
    for (int64_t line = begin; line < end; line++) {
        const R *one = (const R *)j->x + line / lines * p->axes * (p->axes + 1), *two = one + p->axes + 1;
        for (unsigned r = 0; r < last; r++, one = two, two += p->axes + 1) {
            R *y = (R *)j->y + line * width * p->axes + r;
            const pair slope = {(double)one[0], (double)two[0]};
            pair offset = {(double)one[p->axes], (double)two[p->axes]};
            int64_t rest = line % lines;
            for (unsigned d = last; d-- > 0; rest /= p->extent[d])
                offset += (pair){(double)one[last - d], (double)two[last - d]} *
                          p->coordinate[d][rest % p->extent[d]];
            for (int64_t i = 0; i < width; i++, y += p->axes) {
                const NAME(pair) at =
                    __builtin_convertvector(slope * p->coordinate[last][i] + offset, NAME(pair));
                memcpy(y, &at, sizeof at);
            }
        }
    }
    return LNT_OK;
}
