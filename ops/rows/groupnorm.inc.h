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

/* Mean and variance of each channel of an image [positions][channels]; row is working memory. */
static void NAME(channel_moments)(const groupnorm *p, const R *x, R *mean, R *variance, R *row)
{
    const int64_t n = p->channels;
    memset(mean, 0, (size_t)n * sizeof *mean);
    memset(variance, 0, (size_t)n * sizeof *variance);
    for (int64_t i = 0; i < p->positions; i++)
        ROW(p)->add(mean, x + i * n, n);
    for (int64_t c = 0; c < n; c++)
        mean[c] /= (R)p->positions;
    for (int64_t i = 0; i < p->positions; i++) {
        ROW(p)->subtract(x + i * n, mean, row, n);
        ROW(p)->add_squares(variance, row, n);
    }
    for (int64_t c = 0; c < n; c++)
        variance[c] /= (R)p->positions;
}

/* Channels-last images; item = image. */
static lnt_status NAME(images)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const groupnorm_job *j = arg;
    const groupnorm *p = j->p;
    const int64_t n = p->channels, per_group = n / p->groups;
    R *mean = (R *)((char *)j->scratch + thread * p->thread_bytes), *factor = mean + n, *row = factor + n;
    (void)k;
    for (int64_t image = begin; image < end; image++) {
        const R *x = (const R *)j->x + image * n * p->positions;
        R *y = (R *)j->y + image * n * p->positions;
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
        for (int64_t i = 0; i < p->positions; i++)
            ROW(p)->shift_scale_each(x + i * n, y + i * n, n, mean, factor, j->bias);
    }
    return LNT_OK;
}
