/* groupnorm.inc.h — groups of channels in one type, R; included by groupnorm.c with R, NAME and ROW. */

static lnt_status NAME(groups)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const groupnorm_job *j = arg;
    const groupnorm *p = j->p;
    const int64_t per_group = p->channels / p->groups, n = per_group * p->positions;
    const R *scale = j->scale, *bias = j->bias;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const R *x = (const R *)j->x + i * n;
        R *y = (R *)j->y + i * n, mean, variance;
        ROW(p)->moments(x, n, &mean, &variance);
        const R factor = (R)(1 / sqrt((double)variance + p->epsilon));
        for (int64_t c = 0; c < per_group; c++) {
            const int64_t channel = i % p->groups * per_group + c, at = c * p->positions;
            ROW(p)->shift_scale(x + at, y + at, p->positions, mean, factor * scale[channel], bias[channel]);
        }
    }
    return LNT_OK;
}

/* A number of each channel, from v to p->fold positions' worth of them. */
static void NAME(spread)(const groupnorm *p, const R *v, R *to)
{
    const size_t bytes = (size_t)p->channels * sizeof *v;
    for (int64_t i = 0; i < p->fold; i++)
        if (to + i * p->channels != v)
            memcpy(to + i * p->channels, v, bytes);
}

/* Adds up what p->fold positions hold of each channel, times `by`, and gives all of them the sum. */
static void NAME(join)(const groupnorm *p, R *v, R by)
{
    const int64_t n = p->channels;
    for (int64_t i = n; i < n * p->fold; i += n)
        ROW(p)->add(v, v + i, n);
    for (int64_t c = 0; c < n; c++)
        v[c] *= by;
    NAME(spread)(p, v, v);
}

/* Mean and variance of each channel of an image [positions][channels], p->fold times; row is working memory. */
static void NAME(channel_moments)(const groupnorm *p, const R *x, R *mean, R *variance, R *row)
{
    const int64_t wide = p->channels * p->fold, all = p->channels * p->positions;
    memset(mean, 0, (size_t)wide * sizeof *mean);
    memset(variance, 0, (size_t)wide * sizeof *variance);
    for (int64_t i = 0; i < all; i += wide)
        ROW(p)->add(mean, x + i, lnt_least(wide, all - i));
    NAME(join)(p, mean, 1 / (R)p->positions);
    for (int64_t i = 0; i < all; i += wide) {
        ROW(p)->subtract(x + i, mean, row, lnt_least(wide, all - i));
        ROW(p)->add_squares(variance, row, lnt_least(wide, all - i));
    }
    NAME(join)(p, variance, 1 / (R)p->positions);
}

/* Channels-last images; item = image. */
static lnt_status NAME(images)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const groupnorm_job *j = arg;
    const groupnorm *p = j->p;
    const int64_t n = p->channels, per_group = n / p->groups;
    const int64_t wide = n * p->fold, all = n * p->positions;
    R *mean = (R *)((char *)j->scratch + thread * p->thread_bytes), *factor = mean + wide, *row = factor + wide;
    (void)k;
    for (int64_t image = begin; image < end; image++) {
        const R *x = (const R *)j->x + image * all;
        R *y = (R *)j->y + image * all;
        NAME(channel_moments)(p, x, mean, factor, row);
        for (int64_t g = 0; g < n; g += per_group) {
            double total = 0, spread = 0;
            for (int64_t c = g; c < g + per_group; c++)
                total += (double)mean[c];
            total /= (double)per_group;
            for (int64_t c = g; c < g + per_group; c++)
                spread += (double)factor[c] + ((double)mean[c] - total) * ((double)mean[c] - total);
            const double f = 1 / sqrt(spread / (double)per_group + p->epsilon);
            for (int64_t c = g; c < g + per_group; c++) {
                mean[c] = (R)total;
                factor[c] = (R)f * ((const R *)j->scale)[c];
            }
        }
        NAME(spread)(p, mean, mean);
        NAME(spread)(p, factor, factor);
        NAME(spread)(p, j->bias, row);
        for (int64_t i = 0; i < all; i += wide)
            ROW(p)->shift_scale_each(x + i, y + i, lnt_least(wide, all - i), mean, factor, row);
    }
    return LNT_OK;
}
