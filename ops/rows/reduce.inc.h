/* reduce.inc.h — reductions computed in one type, R; included once per type by reduce.c, which defines
 *
 *     R          float, double or int64_t
 *     NATIVE     its lnt_dtype: tensors of it are read in place
 *     NAME(x)    x with the type's suffix
 *     LOAD(p, ...)   lnt_elements_to_R, or the same at the level of parameters p
 *     STORE(p, ...)  lnt_elements_from_R
 *     ROW(p)     the table of row kernels for parameters p
 *     START_MAX, START_MIN   maximum and minimum over nothing */

/* The result of reducing nothing. */
static R NAME(start)(const lnt_reduce *p, unsigned kind)
{
    (void)p;
    switch (kind) {
    case PRODUCT: return 1;
    case MAX: return START_MAX(p);
    case MIN: return START_MIN(p);
    default: return 0;
    }
}

static R NAME(along)(const lnt_reduce *p, unsigned kind, const R *x, int64_t n, R minus)
{
    switch (kind) {
    case SUM_SQUARES: return ROW(p)->sum_squares(x, n);
    case SUM_ABS: return ROW(p)->sum_abs(x, n);
    case PRODUCT: return ROW(p)->product(x, n);
    case MAX: return ROW(p)->max(x, n);
    case MIN: return ROW(p)->min(x, n);
    case SUM_EXP: return ROW(p)->sum_exp(x, n, minus);
    default: return ROW(p)->sum(x, n);
    }
}

/* acc[j] = acc[j] (+) f(x[j]) */
static void NAME(across)(const lnt_reduce *p, unsigned kind, R *acc, const R *x, const R *minus, int64_t n)
{
    switch (kind) {
    case SUM_SQUARES: ROW(p)->add_squares(acc, x, n); return;
    case SUM_ABS: ROW(p)->add_abs(acc, x, n); return;
    case PRODUCT: ROW(p)->multiply(acc, x, n); return;
    case MAX: ROW(p)->max_to(acc, x, n); return;
    case MIN: ROW(p)->min_to(acc, x, n); return;
    case SUM_EXP: ROW(p)->exp_minus(acc, x, minus, NULL, n); return;
    default: ROW(p)->add(acc, x, n); return;
    }
}

/* Joins partial results: acc[j] = acc[j] (+) part[j]. */
static void NAME(join)(const lnt_reduce *p, unsigned kind, R *acc, const R *part, int64_t n)
{
    NAME(across)(p, kind == PRODUCT || kind == MAX || kind == MIN ? kind : SUM, acc, part, NULL, n);
}

/* n elements from element `at` on: in place, or converted into buffer. */
static const R *NAME(fetch)(const lnt_reduce *p, const void *x, int64_t at, int64_t n, unsigned kind, R *buffer)
{
    if (p->dtype == NATIVE)
        return (const R *)x + at;
    LOAD(p, p->dtype, lnt_element_at(x, p->dtype, at), buffer, n);
    if (p->flip && (kind == MAX || kind == MIN))
        for (int64_t i = 0; i < n; i++)
            buffer[i] = (R)FLIP(buffer[i]);
    return buffer;
}

static R NAME(finish)(const lnt_reduce *p, R acc)
{
    switch (p->finish) {
    case FINISH_MEAN: return acc / (R)p->count;
    case FINISH_SQRT: return (R)sqrt((double)acc);
    case FINISH_LOG: return (R)log((double)acc);
    case FINISH_FLIP: return (R)FLIP(acc);
    default: return acc;
    }
}

/* LogSumExp subtracts the largest element first, 0 if that is infinite. */
static R NAME(shift)(R largest)
{
    return largest - largest == 0 ? largest : 0;
}

/* Everything that falls into the output whose first element is `base`; the innermost axis is reduced. */
static R NAME(reduce_rows)(const lnt_reduce *p, const void *x, int64_t base, unsigned kind, R minus)
{
    R buffer[BLOCK], acc = NAME(start)(p, kind);
    const int64_t step = p->dtype == NATIVE ? p->inner : BLOCK;
    for (int64_t r = 0; r < p->n_outer_reduced; r++) {
        const int64_t row = base + lnt_axes_offset(&p->reduced, r);
        for (int64_t i = 0; i < p->inner; i += step) {
            const int64_t n = p->inner - i < step ? p->inner - i : step;
            const R part = NAME(along)(p, kind, NAME(fetch)(p, x, row + i, n, kind, buffer), n, minus);
            NAME(join)(p, kind, &acc, &part, 1);
        }
    }
    return acc;
}

/* One output: LogSumExp takes its rows twice, and is its largest element where that is not finite. */
static R NAME(reduce_one)(const lnt_reduce *p, const void *x, int64_t base)
{
    if (p->kind != SUM_EXP)
        return NAME(finish)(p, NAME(reduce_rows)(p, x, base, p->kind, 0));
    const R largest = NAME(reduce_rows)(p, x, base, MAX, 0), minus = NAME(shift)(largest);
    if (largest != minus)
        return largest;
    return NAME(finish)(p, NAME(reduce_rows)(p, x, base, SUM_EXP, minus)) + minus;
}

static lnt_status NAME(task_along)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    (void)k, (void)thread;
    /* The usual case: one row of the native type for each output. */
    if (p->dtype == NATIVE && p->out_dtype == NATIVE && p->count == p->inner && p->kind != SUM_EXP) {
        for (int64_t o = begin; o < end; o++) {
            const R *row = (const R *)j->x + lnt_axes_offset(&p->kept, o);
            ((R *)j->y)[o] = NAME(finish)(p, NAME(along)(p, p->kind, row, p->inner, 0));
        }
        return LNT_OK;
    }
    for (int64_t o = begin; o < end; o++) {
        const R acc = NAME(reduce_one)(p, j->x, lnt_axes_offset(&p->kept, o));
        STORE(p, p->out_dtype, &acc, lnt_element_at(j->y, p->out_dtype, o), 1);
    }
    return LNT_OK;
}

/* Rows on their way into an accumulator, which is the first of them: taken together it is loaded and stored
 * once. */
typedef struct NAME(bundle) {
    const R *row[ROWS_AT_ONCE + 1];
    int64_t n;
} NAME(bundle);

static void NAME(flush)(const lnt_reduce *p, unsigned kind, NAME(bundle) * b, R *acc, int64_t width)
{
    if (b->n > 1)
        (kind == MAX ? ROW(p)->max_rows : ROW(p)->sum_rows)(b->row, b->n, acc, width);
    b->row[0] = acc;
    b->n = 1;
}

/* Columns [base, base + n) of all rows into acc[0..n); the innermost axis is kept. Where rows are short,
 * several (p->fold) are taken as one and joined at the end: acc has room for n * fold. */
static void NAME(reduce_columns)(const lnt_reduce *p, const void *x, int64_t base, int64_t n, unsigned kind,
                                 R *acc, const R *minus)
{
    R buffer[BLOCK];
    const int64_t fold = p->fold, rows = p->rows;
    const bool together =
        p->dtype == NATIVE && ((kind == SUM && ROW(p)->sum_rows) || (kind == MAX && ROW(p)->max_rows));
    NAME(bundle) bundle = {.n = 0};
    for (int64_t i = 0; i < n * fold; i++)
        acc[i] = NAME(start)(p, kind);
    NAME(flush)(p, kind, &bundle, acc, 0);
    for (int64_t r = 0; r < p->n_outer_reduced; r++) {
        const int64_t first = base + lnt_axes_offset(&p->reduced, r);
        for (int64_t i = 0; i < rows; i += fold) {
            const int64_t width = n * (rows - i < fold ? rows - i : fold);
            const R *row = NAME(fetch)(p, x, first + i * p->inner, width, kind, buffer);
            if (together && width == n * fold)
                bundle.row[bundle.n++] = row;
            else
                NAME(across)(p, kind, acc, row, minus, width);
            if (bundle.n > ROWS_AT_ONCE)
                NAME(flush)(p, kind, &bundle, acc, n * fold);
        }
    }
    NAME(flush)(p, kind, &bundle, acc, n * fold);
    for (int64_t i = 1; i < fold; i++)
        NAME(join)(p, kind, acc, acc + i * n, n);
}

static lnt_status NAME(task_across)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    const int64_t blocks = (p->inner + BLOCK - 1) / BLOCK;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t o = item / blocks, column = item % blocks * BLOCK;
        const int64_t n = p->inner - column < BLOCK ? p->inner - column : BLOCK;
        const int64_t base = lnt_axes_offset(&p->kept, o) + column;
        R acc[BLOCK], largest[BLOCK], minus[BLOCK];
        if (p->kind == SUM_EXP) {
            NAME(reduce_columns)(p, j->x, base, n, MAX, largest, NULL);
            for (int64_t i = 0; i < n * p->fold; i++)
                minus[i] = NAME(shift)(largest[i % n]);
        }
        NAME(reduce_columns)(p, j->x, base, n, p->kind, acc, minus);
        for (int64_t i = 0; i < n; i++) {
            acc[i] = NAME(finish)(p, acc[i]);
            if (p->kind == SUM_EXP)
                acc[i] = largest[i] == minus[i] ? acc[i] + minus[i] : largest[i];
        }
        STORE(p, p->out_dtype, acc, lnt_element_at(j->y, p->out_dtype, o * p->inner + column), n);
    }
    return LNT_OK;
}
