/* layernorm.inc.h — rows of LayerNormalization and its kin in one type, R; included by layernorm.c with R,
 * NAME and ROW. */

/* Operand c seen from row o: in place, or its broadcast written out into buffer. */
static const R *NAME(coefficients)(const norm *p, const cast *c, const void *data, int64_t o, R *buffer)
{
    const R *src = data;
    if (!src || !c->spread)
        return src;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t item = o * p->n + i, at = 0;
        for (unsigned d = p->rank; d-- > 0; item /= p->dims[d])
            at += item % p->dims[d] * c->stride[d];
        buffer[i] = src[at];
    }
    return buffer;
}

/* sum = x + skip, and bias if there is one, for rows from row o on. */
static void NAME(add_skip)(const norm_job *j, int64_t o, int64_t rows, R *sum)
{
    const norm *p = j->p;
    const R *x = (const R *)j->x + o * p->n;
    for (const int64_t end = o + rows; o < end; o++, x += p->n, sum += p->n) {
        ROW(p)->blend(x, 1, (const R *)j->skip + o % p->skip_rows * p->n, 1, sum, p->n);
        if (j->skip_bias)
            ROW(p)->add(sum, j->skip_bias, p->n);
    }
}

static lnt_status NAME(rows)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const norm_job *j = arg;
    const norm *p = j->p;
    const bool tailed = j->x == j->y && p->n % LANES;
    const int64_t n = p->n,
                  together = sizeof(R) == sizeof(float) && n <= (tailed ? TAILED : SHORT) ? TOGETHER : 1;
    R *buffer = (R *)((char *)j->scratch + thread * p->thread_bytes), moments[2 * TOGETHER];
    (void)k;
    for (int64_t o = begin; o < end; o++) {
        const int64_t at = (o - begin) % together, w = lnt_least(together, end - o);
        const R *x = (const R *)j->x + o * n;
        R *y = (R *)j->y + o * n;
        if (j->skip) {
            R *sum = j->sum ? (R *)j->sum + o * n : y;
            if (at == 0)
                NAME(add_skip)(j, o, w, sum);
            x = sum;
        }
        if (together > 1 && at == 0)
            moments_of_short(p, (const void *)x, w, (void *)moments);
        else if (together == 1 && p->centered)
            ROW(p)->moments(x, n, moments, moments + TOGETHER);
        else if (together == 1)
            moments[0] = 0, moments[TOGETHER] = ROW(p)->sum_squares(x, n) / (R)n;
        const R mean = moments[at], spread = moments[at + TOGETHER];
        const R factor = 1 / (R)sqrt((double)(spread + (R)p->epsilon));
        const R *scale = NAME(coefficients)(p, &p->scale, j->scale, o, buffer);
        const R *bias = NAME(coefficients)(p, &p->bias, j->bias, o, buffer + n);
        ROW(p)->normalize(x, y, n, mean, factor, scale, bias);
        if (j->mean)
            ((R *)j->mean)[o] = mean;
        if (j->factor)
            ((R *)j->factor)[o] = factor;
    }
    return LNT_OK;
}
