/* batchnorm.inc.h — BatchNormalization in one type, R; included by batchnorm.c with R, NAME and ROW. */

/* Mean and variance of channel c over the batch and all positions, joined from those of each row. */
static void NAME(channel_moments)(const batchnorm *p, const R *x, int64_t c, double *mean, double *variance)
{
    double total = 0, spread = 0;
    if (p->channels_last) {
        for (int64_t i = 0; i < p->batch * p->positions; i++)
            total += (double)x[i * p->channels + c];
        *mean = total / (double)(p->batch * p->positions);
        for (int64_t i = 0; i < p->batch * p->positions; i++)
            spread += ((double)x[i * p->channels + c] - *mean) * ((double)x[i * p->channels + c] - *mean);
        *variance = spread / (double)(p->batch * p->positions);
        return;
    }
    for (int64_t b = 0; b < p->batch; b++)
        total += (double)ROW(p)->sum(x + (b * p->channels + c) * p->positions, p->positions);
    *mean = total / (double)(p->batch * p->positions);
    for (int64_t b = 0; b < p->batch; b++) {
        R m, v;
        ROW(p)->moments(x + (b * p->channels + c) * p->positions, p->positions, &m, &v);
        spread += (double)v + ((double)m - *mean) * ((double)m - *mean);
    }
    *variance = spread / (double)p->batch;
}

/* Training: statistics of this batch, and the running ones moved towards them. */
static lnt_status NAME(statistics)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const batchnorm_job *j = arg;
    const batchnorm *p = j->p;
    const R momentum = (R)p->momentum;
    (void)k, (void)thread;
    for (int64_t c = begin; c < end; c++) {
        double mean, variance;
        NAME(channel_moments)(p, j->x, c, &mean, &variance);
        ((R *)j->batch_mean)[c] = (R)mean;
        ((R *)j->batch_variance)[c] = (R)variance;
        if (j->mean_out)
            ((R *)j->mean_out)[c] = ((const R *)j->mean)[c] * momentum + (R)mean * (1 - momentum);
        if (j->variance_out)
            ((R *)j->variance_out)[c] = ((const R *)j->variance)[c] * momentum + (R)variance * (1 - momentum);
    }
    return LNT_OK;
}

static lnt_status NAME(rows)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const batchnorm_job *j = arg;
    const batchnorm *p = j->p;
    const R *mean = j->mean, *factor = j->factor, *bias = j->bias;
    const int64_t n = p->channels_last ? p->channels : p->positions;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const R *x = (const R *)j->x + i * n;
        R *y = (R *)j->y + i * n;
        const int64_t c = i % p->channels;
        if (p->channels_last)
            ROW(p)->shift_scale_each(x, y, n, mean, factor, bias);
        else
            ROW(p)->shift_scale(x, y, n, mean[c], factor[c], bias[c]);
    }
    return LNT_OK;
}

static lnt_status NAME(run)(lnt_kernel *k, const batchnorm *p, batchnorm_job *j)
{
    if (p->training) {
        R *batch = (R *)j->factor + p->channels;
        j->batch_mean = batch;
        j->batch_variance = batch + p->channels;
        LNT_TRY(lnt_parallel(k, p->channels, 1, NAME(statistics), j));
        j->mean = j->batch_mean;
        j->variance = j->batch_variance;
    } else { /* the running ones stay */
        if (j->mean_out)
            memcpy(j->mean_out, j->mean, (size_t)p->channels * sizeof(R));
        if (j->variance_out)
            memcpy(j->variance_out, j->variance, (size_t)p->channels * sizeof(R));
    }
    for (int64_t c = 0; c < p->channels; c++)
        ((R *)j->factor)[c] =
            (R)((double)((const R *)j->scale)[c] / sqrt((double)((const R *)j->variance)[c] + p->epsilon));
    const int64_t n = p->channels_last ? p->channels : p->positions;
    const int64_t rows = p->batch * (p->channels_last ? p->positions : p->channels);
    return lnt_parallel(k, rows, 1 + 16384 / (n + 1), NAME(rows), j);
}
