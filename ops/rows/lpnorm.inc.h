/* lpnorm.inc.h — LpNormalization, MeanVarianceNormalization and LRN in one type, R; included by lpnorm.c with
 * R, NAME and ROW. */

/* w columns of n rows, `step` elements apart: divided by their norms; 0 where the norm is 0. Short rows side by side
 * are taken several (fold) as one. */
static void NAME(lp_columns)(const lpnorm *p, const void *from, void *to, int64_t step, int64_t w)
{
    const R *x = from;
    R *y = to;
    R norm[BLOCK] = {0};
    const int64_t fold = step == w ? lnt_least(BLOCK / w, p->n) : 1;
    for (int64_t i = 0; i < p->n; i += fold)
        (p->order == 1 ? ROW(p)->add_abs : ROW(p)->add_squares)(norm, x + i * step,
                                                                w * lnt_least(fold, p->n - i));
    for (int64_t c = w; c < fold * w; c += w)
        ROW(p)->add(norm, norm + c, w);
    for (int64_t c = 0; c < w; c++) {
        const R length = p->order == 1 ? norm[c] : (R)sqrt((double)norm[c]);
        norm[c] = length == 0 ? 0 : 1 / length;
    }
    for (int64_t c = w; c < fold * w; c++)
        norm[c] = norm[c - w];
    for (int64_t i = 0; i < p->n; i += fold) {
        const int64_t width = w * lnt_least(fold, p->n - i);
        if (y != x)
            memcpy(y + i * step, x + i * step, (size_t)width * sizeof *x);
        ROW(p)->multiply(y + i * step, norm, width);
    }
}

static void NAME(lp_row)(const lpnorm *p, const void *from, void *to)
{
    const R *x = from;
    R *y = to;
    const R total = p->order == 1 ? ROW(p)->sum_abs(x, p->n) : ROW(p)->sum_squares(x, p->n);
    const R length = p->order == 1 ? total : (R)sqrt((double)total);
    ROW(p)->shift_scale(x, y, p->n, 0, length == 0 ? 0 : 1 / length, 0);
}

/* LRN: x * (bias + alpha / size * sum of squares over size neighboring channels) ** -beta. Elements of an image
 * are worked on in blocks, whatever channels they belong to: each neighbor is as far away. The sum is taken anew
 * for each element, so that nothing is left over from subtracting. */
static lnt_status NAME(lrn)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lpnorm_job *j = arg;
    const lpnorm *p = j->p;
    const int64_t count = p->n * p->inner, blocks = (count + BLOCK - 1) / BLOCK;
    const int64_t before = lnt_least((p->size - 1) / 2, p->n), after = lnt_least(p->size / 2, p->n);
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t start = item % blocks * BLOCK, w = lnt_least(BLOCK, count - start);
        const int64_t at = item / blocks * count + start;
        const R *x = (const R *)j->x + at;
        R total[BLOCK] = {0};
        for (int64_t i = -before * p->inner; i <= after * p->inner; i += p->inner) {
            const int64_t first = start + i < 0 ? -(start + i) : 0, stop = lnt_least(w, count - start - i);
            if (first < stop)
                ROW(p)->add_squares(total + first, x + first + i, stop - first);
        }
        ROW(p)->shift_scale(total, total, w, 0, (R)(p->alpha / (double)p->size), (R)p->bias);
        NAME(raise)(p, total, w, -p->beta);
        ROW(p)->multiply(total, x, w);
        memcpy((R *)j->y + at, total, (size_t)w * sizeof *x);
    }
    return LNT_OK;
}

/* Rows of p->run elements; their means and variances are joined one after the other. */
static void NAME(mvn_rows)(const lpnorm *p, const R *x, R *y)
{
    const int64_t runs = p->n / p->run;
    double mean = 0, spread = 0;
    for (int64_t i = 0; i < runs; i++) {
        R m, v;
        ROW(p)->moments(x + lnt_axes_offset(&p->reduced, i), p->run, &m, &v);
        const double beyond = (double)m - mean, share = 1 / (double)(i + 1);
        spread += (double)v + beyond * beyond * (1 - share);
        mean += beyond * share;
    }
    const R factor = (R)(1 / (sqrt(spread / (double)runs) + 1e-9));
    for (int64_t i = 0; i < runs; i++) {
        const int64_t at = lnt_axes_offset(&p->reduced, i);
        ROW(p)->shift_scale(x + at, y + at, p->run, (R)mean, factor, 0);
    }
}

/* One set of elements that share mean and variance; item = position along the kept axes. */
static lnt_status NAME(mvn)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lpnorm_job *j = arg;
    const lpnorm *p = j->p;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t at = lnt_axes_offset(&p->kept, item);
        NAME(mvn_rows)(p, (const R *)j->x + at, (R *)j->y + at);
    }
    return LNT_OK;
}
