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

/* Input positions of n grid coordinates, p->axes apart, along an axis of the given extent, after padding. An int holds
 * them: beyond all extents they do not matter, and NaN is such a one. */
static void NAME(positions)(const gridsample *p, const R *grid, int64_t n, int64_t extent, R *x)
{
    const R d = (R)extent, low = p->align_corners ? 0 : (R)-0.5, limit = (R)0x1p30,
            size = p->align_corners ? d - 1 : d, shift = p->align_corners ? 0 : 1;
    const bool clamps =
        p->padding == BORDER && p->kind != CUBIC; /* cubic: each element by itself, as PyTorch has it */
    const R least = clamps ? 0 : -limit, most = clamps ? d - 1 : limit;
    const int64_t apart = p->axes;
    for (int64_t i = 0; i < n; i++) {
        const double far = 0x1.8p52;
        R at = ((grid[i * apart] + 1) * size - shift) / 2;
        if (p->kind == NEAREST) /* half to even, as rint has it */
            at = (R)((double)at + far - far);
        if (p->padding == REFLECTION && (at < low || at > size + low))
            at = NAME(reflect)(at, low, size + low);
        at = at > least ? at : least;
        x[i] = at < most ? at : most;
    }
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

static inline int64_t NAME(floor)(R x)
{
    const int64_t cut = (int64_t)x;
    return cut - ((R)cut > x);
}

/* Weights of the taps at floor(x) - before + t, where the fraction of x is f. */
static inline void NAME(weights)(const gridsample *p, R f, R *w)
{
    const R a = (R)-0.75, far[2] = {1 + f, 2 - f}, near[2] = {f, 1 - f};
    w[0] = p->kind == LINEAR ? near[1] : 1;
    w[1] = f;
    if (p->kind != CUBIC)
        return;
    for (int t = 0; t < 2; t++) {
        w[3 * t] = ((a * far[t] - 5 * a) * far[t] + 8 * a) * far[t] - 4 * a;
        w[1 + t] = ((a + 2) * near[t] - (a + 3)) * near[t] * near[t] + 1;
    }
}

/* The elements that count along one axis at position x. Returns their number; of nearest there is one in any case, to
 * be left out or not. */
static unsigned NAME(axis_taps)(const gridsample *p, R x, int64_t extent, NAME(lnt_tap) * tap)
{
    const int64_t base = NAME(floor)(x);
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

/* The taps at [y, x] of an image, if all of them are inside, as most are; else 0. */
static inline unsigned NAME(inner_taps)(const gridsample *p, R y, R x, NAME(lnt_tap) * tap)
{
    const int64_t before = p->kind == CUBIC, taps = p->taps, width = p->extent[1];
    const int64_t base_y = NAME(floor)(y), base_x = NAME(floor)(x), top = base_y - before,
                  left = base_x - before;
    if (top < 0 || left < 0 || top + taps > p->extent[0] || left + taps > width)
        return 0;
    R down[4], across[4];
    NAME(weights)(p, y - (R)base_y, down);
    NAME(weights)(p, x - (R)base_x, across);
    for (int64_t t = 0; t < taps; t++)
        for (int64_t s = 0; s < taps; s++)
            *tap++ = (NAME(lnt_tap)){(top + t) * width + left + s, down[t] * across[s]};
    return p->all_taps;
}

/* All elements one output, at x along each axis, depends on. Returns their number. */
static unsigned NAME(point_taps)(const gridsample *p, const R *x, NAME(lnt_tap) * tap)
{
    unsigned n = NAME(axis_taps)(p, x[0], p->extent[0], tap);
    for (unsigned d = 1; d < p->axes; d++) {
        NAME(lnt_tap) along[4];
        const unsigned count = NAME(axis_taps)(p, x[d * LNT_TAPS_POINTS], p->extent[d], along);
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

/* The nearest elements of images at n whole positions, down and across, or 0: whether a point is inside is hard to
 * foretell. */
static void NAME(pick)(const gridsample *p, const R *down, const R *across, int64_t n, const R *x, R *y)
{
    static const R zero = 0;
    int64_t at[LNT_TAPS_POINTS];
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = (int64_t)down[i], column = (int64_t)across[i];
        const bool inside =
            ((uint64_t)row < (uint64_t)p->extent[0]) & ((uint64_t)column < (uint64_t)p->extent[1]);
        at[i] = inside ? row * p->extent[1] + column : -1;
    }
    for (int64_t c = 0; c < p->channels; c++, x += p->size, y += p->points)
        for (int64_t i = 0; i < n; i++)
            y[i] = *(at[i] < 0 ? &zero : x + at[i]);
}

static lnt_status NAME(sample)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const gridsample_job *j = arg;
    const gridsample *p = j->p;
    NAME(lnt_taps) taps;
    R x[MAX_AXES * LNT_TAPS_POINTS];
    taps.onto = false;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item += taps.points) {
        const int64_t image = item / p->points, at = item % p->points;
        const int64_t rest = end - item < p->points - at ? end - item : p->points - at;
        taps.points = rest < p->block ? rest : p->block;
        taps.used = 0;
        for (unsigned d = 0; d < p->axes; d++)
            NAME(positions)
        (p, (const R *)j->grid + item * p->axes + p->axes - 1 - d, taps.points, p->extent[d],
         x + d * LNT_TAPS_POINTS);
        const bool two = p->axes == 2 && sizeof(R) == sizeof(float); /* doubles are not worth the room */
        const R *from = (const R *)j->x + image * p->channels * p->size;
        R *y = (R *)j->y + image * p->channels * p->points + at;
        if (two && p->kind == NEAREST && p->padding != REFLECTION) {
            NAME(pick)(p, x, x + LNT_TAPS_POINTS, taps.points, from, y);
            continue;
        }
        for (int64_t i = 0; i < taps.points; i++) {
            NAME(lnt_tap) *tap = taps.tap + taps.used;
            const unsigned inner = two ? NAME(inner_taps)(p, x[i], x[LNT_TAPS_POINTS + i], tap) : 0;
            taps.count[i] = inner ? inner : NAME(point_taps)(p, x + i, tap);
            taps.used += taps.count[i];
        }
        NAME(lnt_sum_taps)(&taps, from, p->size, y, p->points, p->channels);
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
