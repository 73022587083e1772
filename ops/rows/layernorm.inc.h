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

static lnt_status NAME(rows)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const norm_job *j = arg;
    const norm *p = j->p;
    const int64_t n = p->n;
    R *buffer = (R *)((char *)j->scratch + thread * p->thread_bytes);
    (void)k;
    for (int64_t o = begin; o < end; o++) {
        const R *x = (const R *)j->x + o * n;
        R *y = (R *)j->y + o * n, mean = 0, spread = 0;
        if (j->skip) {
            R *sum = j->sum ? (R *)j->sum + o * n : y;
            if (sum != x)
                memcpy(sum, x, (size_t)n * sizeof *x);
            ROW(p)->add(sum, (const R *)j->skip + o % p->skip_rows * n, n);
            if (j->skip_bias)
                ROW(p)->add(sum, j->skip_bias, n);
            x = sum;
        }
        if (p->centered)
            ROW(p)->moments(x, n, &mean, &spread);
        else
            spread = ROW(p)->sum_squares(x, n) / (R)n;
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
