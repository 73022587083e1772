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
static void NAME(take_larger)(const softmax *p, R *largest, const R *x, int64_t w)
{
    if (SOFT_LOOPS && sizeof *x == sizeof(double))
        apply(p, LNT_TYPED_Max, (const void *)x, (const void *)largest, false, (void *)largest, w);
    else
        ROW(p)->max_to(largest, x, w);
}

static void NAME(take_from)(const softmax *p, const R *x, const R *minus, R *y, int64_t w)
{
    if (SOFT_LOOPS && sizeof *x == sizeof(double))
        apply(p, LNT_TYPED_Sub, (const void *)x, (const void *)minus, false, (void *)y, w);
    else
        ROW(p)->subtract(x, minus, y, w);
}

/* w columns of n rows, which are `apart` elements apart. */
static void NAME(soft_columns)(const softmax *p, const R *x, R *y, int64_t apart, int64_t w)
{
    R largest[BLOCK], total[BLOCK];
    memcpy(largest, x, (size_t)w * sizeof *x);
    memset(total, 0, sizeof total);
    for (int64_t i = 1; i < p->n; i++)
        NAME(take_larger)(p, largest, x + i * apart, w);
    for (int64_t i = 0; i < p->n; i++) {
        R *powers = p->kind == SOFTMAX ? y + i * apart : NULL;
        if (SOFT_LOOPS && sizeof *x == sizeof(double))
            add_powers(p, (void *)total, (const void *)(x + i * apart), (const void *)largest, (void *)powers,
                       w);
        else
            ROW(p)->exp_minus(total, x + i * apart, largest, powers, w);
    }
    for (int64_t c = 0; c < w && p->kind == SOFTMAX; c++)
        total[c] = 1 / total[c];
    if (p->kind == LOG_SOFTMAX)
        NAME(logarithms)(p, total, w);
    for (int64_t i = 0; i < p->n; i++) {
        R *row = y + i * apart;
        if (p->kind == SOFTMAX) {
            ROW(p)->multiply(row, total, w);
            continue;
        }
        NAME(take_from)(p, x + i * apart, largest, row, w);
        NAME(take_from)(p, row, total, row, w);
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
static void NAME(hard_columns)(const softmax *p, const R *x, R *y, int64_t apart, int64_t w)
{
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

/* Short rows, or narrow images of them, as columns [n][inner][images] for so long. */
static void NAME(short_rows)(const softmax *p, const R *x, R *y, int64_t images)
{
    R turned[ROOM];
    const int64_t line = p->n * p->inner, w = images * p->inner;
    LNT_ASSERT(w <= BLOCK && line * images <= ROOM);
    lnt_turn(turned, images, x, line, images, line, sizeof *x);
    (p->kind == HARDMAX ? NAME(hard_columns) : NAME(soft_columns))(p, turned, turned, w, w);
    lnt_turn(y, line, turned, images, line, images, sizeof *x);
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

static void NAME(long_rows)(const softmax *p, const R *x, R *y, int64_t rows)
{
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

static lnt_status NAME(rows)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const softmax_job *j = arg;
    const softmax *p = j->p;
    const int64_t line = p->n * p->inner, at_once = p->transposed ? p->transposed : end - begin;
    (void)k, (void)thread;
    for (int64_t o = begin; o < end; o += at_once)
        (p->transposed ? NAME(short_rows) : NAME(long_rows))(
            p, (const R *)j->x + o * line, (R *)j->y + o * line, lnt_least(at_once, end - o));
    return LNT_OK;
}

/* Few columns, as rows for so long. */
static void NAME(narrow_columns)(const softmax *p, const R *x, R *y)
{
    R turned[ROOM];
    for (int64_t c = 0, w; c < p->inner; c += w) {
        w = lnt_least(p->inner - c, ROOM / p->n);
        lnt_turn(turned, p->n, x + c, p->inner, p->n, w, sizeof *x);
        NAME(long_rows)(p, turned, turned, w);
        lnt_turn(y + c, p->inner, turned, p->n, w, p->n, sizeof *x);
    }
}

static lnt_status NAME(columns)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const softmax_job *j = arg;
    const softmax *p = j->p;
    const int64_t blocks = (p->inner + BLOCK - 1) / BLOCK;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t column = item % blocks * BLOCK, at = item / blocks * p->n * p->inner + column;
        const int64_t w = p->inner - column < BLOCK ? p->inner - column : BLOCK;
        const R *x = (const R *)j->x + at;
        R *y = (R *)j->y + at;
        if (p->inner < NARROW && p->n > SHORT && p->n <= ROOM) {
            NAME(narrow_columns)(p, x, y);
            continue;
        }
        (p->kind == HARDMAX ? NAME(hard_columns) : NAME(soft_columns))(p, x, y, p->inner, w);
    }
    return LNT_OK;
}
