/* gridsample.inc.h — sampling at given points in one type, R; included by gridsample.c with R and NAME. */

/* Into [low, high], mirrored at the ends. */
static R NAME(reflect)(R x, R low, R high)
{
    const R range = high - low;
    if (!(range > 0))
        return low;
    const R distance = x < low ? low - x : x - low;
    const R rest = (R)fmod((double)distance, 2 * (double)range);
    return rest > range ? high - (rest - range) : low + rest;
}

/* Input position of grid coordinate n along an axis of the given extent, after padding. */
static R NAME(position)(const gridsample *p, R n, int64_t extent)
{
    const R d = (R)extent, low = p->align_corners ? 0 : (R)-0.5, high = p->align_corners ? d - 1 : d - (R)0.5;
    R x = p->align_corners ? (n + 1) / 2 * (d - 1) : ((n + 1) * d - 1) / 2;
    if (p->kind == NEAREST)
        x = (R)rint((double)x);
    if (x < low || x > high) {
        if (p->padding == BORDER && p->kind != CUBIC) /* cubic: each element by itself, as PyTorch has it */
            x = x < 0 ? 0 : x > d - 1 ? d - 1 : x;
        else if (p->padding == REFLECTION)
            x = NAME(reflect)(x, low, high);
    }
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

/* All elements one output hangs on: offsets into a plane and weights. Returns their number. */
static unsigned NAME(taps)(const gridsample *p, const R *point, int64_t *offset, R *weight)
{
    unsigned n = 1;
    offset[0] = 0;
    weight[0] = 1;
    for (unsigned d = 0; d < p->axes; d++) {
        const int64_t extent = p->extent[d];
        const R x = NAME(position)(p, point[p->axes - 1 - d], extent), base = (R)floor((double)x);
        R w[4], from[MAX_TAPS];
        int64_t at[MAX_TAPS];
        unsigned count = 0;
        NAME(weights)(p, x - base, w);
        memcpy(from, weight, n * sizeof *from);
        memcpy(at, offset, n * sizeof *at);
        for (unsigned i = 0; i < n; i++)
            for (unsigned t = 0; t < p->taps; t++) {
                const int64_t e = NAME(element)(p, (int64_t)base - (p->kind == CUBIC) + t, extent);
                if (e < 0)
                    continue;
                offset[count] = at[i] * extent + e;
                weight[count++] = from[i] * w[t];
            }
        n = count;
    }
    return n;
}

static lnt_status NAME(sample)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const gridsample_job *j = arg;
    const gridsample *p = j->p;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t image = item / p->points, at = item % p->points;
        const R *x = (const R *)j->x + image * p->channels * p->size;
        R *y = (R *)j->y + image * p->channels * p->points + at, weight[MAX_TAPS];
        int64_t offset[MAX_TAPS];
        const unsigned n = NAME(taps)(p, (const R *)j->grid + item * p->axes, offset, weight);
        for (int64_t c = 0; c < p->channels; c++, x += p->size) {
            R total = 0;
            for (unsigned t = 0; t < n; t++)
                total += weight[t] * x[offset[t]];
            y[c * p->points] = total;
        }
    }
    return LNT_OK;
}

/* Rows of an affine grid: coordinates of output positions under theta [n][axes][axes + 1]. */
static lnt_status NAME(affine)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const gridsample_job *j = arg;
    const gridsample *p = j->p;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const R *theta = (const R *)j->x + item / p->points * p->axes * (p->axes + 1);
        R *y = (R *)j->y + item * p->axes;
        double point[MAX_AXES + 1];
        int64_t rest = item % p->points;
        for (unsigned d = p->axes; d-- > 0; rest /= p->extent[d]) {
            const double i = (double)(rest % p->extent[d]), n = (double)p->extent[d];
            const double span = p->align_corners ? n - 1 : n, first = p->align_corners ? -1 : 1 / n - 1;
            point[p->axes - 1 - d] = span > 0 ? first + 2 * i / span : -1;
        }
        point[p->axes] = 1;
        for (unsigned r = 0; r < p->axes; r++) {
            double total = 0;
            for (unsigned c = 0; c <= p->axes; c++)
                total += (double)theta[r * (p->axes + 1) + c] * point[c];
            y[r] = (R)total;
        }
    }
    return LNT_OK;
}
