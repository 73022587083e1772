/* softmax.inc.h — Softmax, LogSoftmax and Hardmax in one type, R; included by softmax.c with R, NAME and ROW. */

static void NAME(hard_row)(const softmax *p, const R *x, R *y)
{
    const int64_t at = ROW(p)->argmax(x, p->n, false);
    memset(y, 0, (size_t)p->n * sizeof *y);
    y[at] = 1;
}

/* Of n numbers, and up to whole vectors of what is behind them. */
static void NAME(logarithms)(const softmax *p, R *x, int64_t n)
{
    if (sizeof *x == sizeof(float)) {
        const float none[2] = {0};
        float *v = (float *)(void *)x;
        p->log(&(lnt_instr_args){.dst = v,
                                 .src = {v},
                                 .step = {1},
                                 .imm = none,
                                 .n = (int64_t)lnt_round_up((size_t)n, LNT_VECTOR_MAX)});
        return;
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = (R)log((double)x[i]);
}

/* largest = the larger one of each and x, or NaN. */
static __attribute__((noinline)) void NAME(take_larger)(const softmax *p, R *largest, const R *x, int64_t w)
{
    if (SOFT_LOOPS && sizeof *x == sizeof(double))
        apply(p, LNT_TYPED_Max, (const void *)x, (const void *)largest, false, (void *)largest, w);
    else
        ROW(p)->max_to(largest, x, w);
}

static __attribute__((noinline)) void NAME(take_from)(const softmax *p, const R *x, const R *minus, R *y,
                                                      int64_t w)
{
    if (SOFT_LOOPS && sizeof *x == sizeof(double))
        apply(p, LNT_TYPED_Sub, (const void *)x, (const void *)minus, false, (void *)y, w);
    else
        ROW(p)->subtract(x, minus, y, w);
}

/* w columns of n rows, which are `apart` elements apart. Short rows that follow one another are taken several as
 * one, but not where threads decide how many images were turned. */
static void NAME(soft_columns)(const softmax *p, const void *from, void *to, int64_t apart, int64_t w)
{
    const int64_t fold = sizeof(R) == sizeof(float) && !p->transposed && apart == w
                             ? lnt_least(BLOCK / w, 1 + p->n / MANY_ROWS)
                             : 1;
    const int64_t step = fold * apart, end = p->n * apart, bytes = w * (int64_t)sizeof(R);
    const R *x = from;
    R *y = to;
    R largest[BLOCK], total[BLOCK];
    memcpy(largest, x, (size_t)(fold * bytes));
    memset(total, 0, sizeof total);
    for (int64_t i = step; i < end; i += step)
        NAME(take_larger)(p, largest, x + i, lnt_least(fold * w, end - i));
    for (int64_t i = 1; i < fold; i++)
        NAME(take_larger)(p, largest, largest + i * w, w);
    lnt_repeat_bytes(largest, largest, bytes, fold);
    for (int64_t i = 0; i < end; i += step) {
        const int64_t n = lnt_least(fold * w, end - i);
        R *powers = p->kind == SOFTMAX ? y + i : NULL;
        if (SOFT_LOOPS && sizeof *x == sizeof(double))
            add_powers(p, (void *)total, (const void *)(x + i), (const void *)largest, (void *)powers, n);
        else
            ROW(p)->exp_minus(total, x + i, largest, powers, n);
    }
    for (int64_t i = 1; i < fold; i++)
        ROW(p)->add(total, total + i * w, w);
    for (int64_t c = 0; c < w && p->kind == SOFTMAX; c++)
        total[c] = 1 / total[c];
    if (p->kind == LOG_SOFTMAX)
        NAME(logarithms)(p, total, w);
    lnt_repeat_bytes(total, total, bytes, fold);
    for (int64_t i = 0; i < end; i += step) {
        const int64_t n = lnt_least(fold * w, end - i);
        if (p->kind == SOFTMAX) {
            ROW(p)->multiply(y + i, total, n);
            continue;
        }
        NAME(take_from)(p, x + i, largest, y + i, n);
        NAME(take_from)(p, y + i, total, y + i, n);
    }
}

typedef R NAME(vector) __attribute__((vector_size(16), aligned(sizeof(R)), may_alias));

/* y = left where x is the largest, which is no longer left then; else 0. */
static void NAME(hard_step)(const R *x, const R *largest, R *left, R *y, int64_t w)
{
    enum { LANES = sizeof(NAME(vector)) / sizeof(R) };
    int64_t c = 0;
    for (; c + LANES <= w; c += LANES) {
        NAME(vector) *rest = (NAME(vector) *)(left + c);
        const __typeof__(*rest == *rest) hit =
            *(const NAME(vector) *)(x + c) == *(const NAME(vector) *)(largest + c);
        const __typeof__(hit) bits = (__typeof__(hit))*rest;
        *(NAME(vector) *)(y + c) = (NAME(vector))(bits & hit);
        *rest = (NAME(vector))(bits & ~hit);
    }
    for (; c < w; c++) {
        y[c] = x[c] == largest[c] ? left[c] : 0;
        left[c] -= y[c];
    }
}

/* The first of the largest in each column, or the first NaN. */
static void NAME(hard_columns)(const softmax *p, const void *from, void *to, int64_t apart, int64_t w)
{
    const R *x = from;
    R *y = to;
    R largest[BLOCK], left[BLOCK]; /* 1 until it is found */
    int64_t nan_at[BLOCK];
    memcpy(largest, x, (size_t)w * sizeof *x);
    for (int64_t i = 1; i < p->n; i++)
        ROW(p)->max_to(largest, x + i * apart, w);
    for (int64_t c = 0; c < w; c++) {
        left[c] = 1;
        nan_at[c] = c;
        while (largest[c] != largest[c] && x[nan_at[c]] == x[nan_at[c]])
            nan_at[c] += apart;
    }
    for (int64_t i = 0; i < p->n; i++)
        NAME(hard_step)(x + i * apart, largest, left, y + i * apart, w);
    for (int64_t c = 0; c < w; c++)
        if (largest[c] != largest[c])
            y[nan_at[c]] = 1;
}

/* Rows step by step together: none waits for the one before it. */
static void NAME(log_rows)(const softmax *p, const R *x, R *y, int64_t rows)
{
    R largest[LOGARITHMS], rest[LOGARITHMS] = {0};
    LNT_ASSERT(rows <= LOGARITHMS);
    for (int64_t r = 0; r < rows; r++)
        largest[r] = ROW(p)->max(x + r * p->n, p->n);
    for (int64_t r = 0; r < rows; r++)
        rest[r] = ROW(p)->sum_exp(x + r * p->n, p->n, largest[r]);
    NAME(logarithms)(p, rest, rows);
    for (int64_t r = 0; r < rows; r++)
        ROW(p)->shift_scale(x + r * p->n, y + r * p->n, p->n, largest[r], 1, -rest[r]);
}

static void NAME(long_rows)(const softmax *p, const void *from, void *to, int64_t rows)
{
    const R *x = from;
    R *y = to;
    const int64_t at_once =
        p->kind != LOG_SOFTMAX || (SOFT_LOOPS && sizeof(R) == sizeof(double)) ? 1 : p->logarithms;
    for (; rows > 0; rows -= at_once, x += at_once * p->n, y += at_once * p->n) {
        if (SOFT_LOOPS && sizeof *x == sizeof(double) && p->kind != HARDMAX)
            soft_row(p, (const double *)(const void *)x, (double *)(void *)y);
        else if (p->kind == SOFTMAX)
            ROW(p)->softmax(x, y, p->n);
        else if (p->kind == LOG_SOFTMAX)
            NAME(log_rows)(p, x, y, lnt_least(at_once, rows));
        else
            NAME(hard_row)(p, x, y);
    }
}
