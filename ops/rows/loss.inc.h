/* loss.inc.h — losses in one type, R; included by loss.c with R, NAME and ROW. */

/* log(sum of e ** x) over the classes at one position. */
static double NAME(log_sum)(const loss *p, const R *x)
{
    double largest = (double)x[0], total = 0;
    for (int64_t c = 1; c < p->classes; c++)
        largest = (double)x[c * p->positions] > largest ? (double)x[c * p->positions] : largest;
    for (int64_t c = 0; c < p->classes; c++)
        total += exp((double)x[c * p->positions] - largest);
    return largest + log(total);
}

/* Weighted losses and weights of positions [begin, end). */
static lnt_status NAME(positions)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const loss_job *j = arg;
    const loss *p = j->p;
    (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item / p->positions * p->classes * p->positions + item % p->positions;
        const int64_t target =
            j->wide_targets ? ((const int64_t *)j->target)[item] : ((const int32_t *)j->target)[item];
        const R *x = (const R *)j->x + first;
        const double shift = p->softmax ? NAME(log_sum)(p, x) : 0;
        for (int64_t c = 0; c < p->classes && j->log_prob; c++)
            ((R *)j->log_prob)[first + c * p->positions] = (R)((double)x[c * p->positions] - shift);
        j->weighted[item] = j->weights[item] = 0;
        if (p->ignores && target == p->ignore)
            continue;
        LNT_REQUIRE(target >= 0 && target < p->classes, k->err, LNT_E_VALUE,
                    "target %lld is none of %lld classes", (long long)target, (long long)p->classes);
        j->weights[item] = j->weight ? (double)((const R *)j->weight)[target] : 1;
        j->weighted[item] = j->weights[item] * (shift - (double)x[target * p->positions]);
    }
    return LNT_OK;
}

static void NAME(reduce)(const loss *p, const loss_job *j, R *y)
{
    double total = 0, weight = 0;
    for (int64_t i = 0; i < p->batch * p->positions; i++) {
        total += j->weighted[i];
        weight += j->weights[i];
        if (p->reduction == REDUCE_NONE)
            y[i] = (R)j->weighted[i];
    }
    if (p->reduction != REDUCE_NONE)
        *y = (R)(p->reduction == REDUCE_MEAN ? total / weight : total);
}
