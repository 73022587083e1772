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
static const R *NAME(fetch)(const lnt_reduce *p, const void *x, int64_t at, int64_t n, unsigned kind,
                            R *buffer)
{
    if (p->dtype == NATIVE)
        return (const R *)x + at;
    LOAD(p, p->dtype, lnt_element_at(x, p->dtype, at), buffer, n);
    if (p->flip && (kind == MAX || kind == MIN))
        for (int64_t i = 0; i < n; i++)
            buffer[i] = (R)FLIP(buffer[i]);
    return buffer;
}

static void NAME(finish)(const lnt_reduce *p, R *acc, int64_t n)
{
    const R count = (R)p->count;
    switch (p->finish) {
    case FINISH_MEAN:
        for (int64_t i = 0; i < n; i++)
            acc[i] /= count;
        return;
    case FINISH_SQRT:
        for (int64_t i = 0; i < n; i++)
            acc[i] = (R)sqrt((double)acc[i]);
        return;
    case FINISH_LOG:
        for (int64_t i = 0; i < n; i++)
            acc[i] = (R)log((double)acc[i]);
        return;
    case FINISH_FLIP:
        for (int64_t i = 0; i < n; i++)
            acc[i] = (R)FLIP(acc[i]);
        return;
    default: return;
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
    R largest = 0, minus = 0;
    if (p->kind == SUM_EXP) {
        largest = NAME(reduce_rows)(p, x, base, MAX, 0);
        minus = NAME(shift)(largest);
        if (largest != minus)
            return largest;
    }
    R acc = NAME(reduce_rows)(p, x, base, p->kind, minus);
    NAME(finish)(p, &acc, 1);
    return acc + minus;
}

static lnt_status NAME(task_along)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    (void)k, (void)thread;
    /* The usual case: one row of the native type for each output. */
    if (p->dtype == NATIVE && p->out_dtype == NATIVE && p->count == p->inner && p->kind != SUM_EXP) {
        R *y = j->y;
        for (int64_t o = begin; o < end; o++)
            y[o] = NAME(along)(p, p->kind, (const R *)j->x + lnt_axes_offset(&p->kept, o), p->inner, 0);
        NAME(finish)(p, y + begin, end - begin);
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
    lnt_fill(acc, n * fold, &(R){NAME(start)(p, kind)}, sizeof *acc);
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

/* n short rows from element base on, side by side: turned they are columns. */
static void NAME(reduce_turned)(const lnt_reduce *p, const void *x, int64_t base, int64_t n, unsigned kind,
                                R *acc, const R *minus)
{
    R buffer[LNT_REDUCE_ROOM], turned[LNT_REDUCE_ROOM], part[BLOCK];
    lnt_reduce columns = *p;
    columns.dtype = NATIVE;
    columns.rows = p->inner;
    columns.inner = n;
    columns.n_outer_reduced = 1;
    for (int64_t r = 0; r < p->n_outer_reduced; r++) {
        const int64_t at = base + lnt_axes_offset(&p->reduced, r);
        lnt_turn(turned, NAME(fetch)(p, x, at, n * p->inner, kind, buffer), n, p->inner, sizeof *turned);
        NAME(reduce_columns)(&columns, turned, 0, n, kind, r ? part : acc, minus);
        if (r)
            NAME(join)(p, kind, acc, part, n);
    }
}

/* n results from element base on into acc, which has room for a block. */
static void NAME(reduce_block)(const lnt_reduce *p, const void *x, int64_t base, int64_t n, R *acc)
{
    void (*const reduce)(const lnt_reduce *, const void *, int64_t, int64_t, unsigned, R *, const R *) =
        p->way == TURNED ? NAME(reduce_turned) : NAME(reduce_columns);
    R largest[BLOCK], minus[BLOCK];
    if (p->kind == SUM_EXP) {
        reduce(p, x, base, n, MAX, largest, NULL);
        for (int64_t i = 0; i < n * p->fold; i++)
            minus[i] = NAME(shift)(largest[i % n]);
    }
    reduce(p, x, base, n, p->kind, acc, minus);
    NAME(finish)(p, acc, n);
    for (int64_t i = 0; p->kind == SUM_EXP && i < n; i++)
        acc[i] = largest[i] == minus[i] ? acc[i] + minus[i] : largest[i];
}

static lnt_status NAME(task_across)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    const int64_t blocks = lnt_reduce_blocks(p);
    const bool in_place = p->out_dtype == NATIVE && p->fold == 1;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        R buffer[BLOCK];
        const int64_t o = item / blocks, column = item % blocks * p->block;
        const int64_t n = lnt_least(p->block, p->columns - column);
        const int64_t base = lnt_axes_offset(&p->kept, o) + column * (p->way == TURNED ? p->inner : 1);
        void *y = lnt_element_at(j->y, p->out_dtype, o * p->columns + column);
        NAME(reduce_block)(p, j->x, base, n, in_place ? y : buffer);
        if (!in_place)
            STORE(p, p->out_dtype, buffer, y, n);
    }
    return LNT_OK;
}
