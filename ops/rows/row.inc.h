/* row.inc.h — the float row kernels over simd.h, compiled once per level. Sums run in four vectors, the tail
 * in a fifth, and are added pairwise. */
#include "ops/op.h"
#include "ops/rows/row.h"
#include "ops/simd/simd_lanes.h"
#include "ops/simd/vmath.h"

enum { VL = LNT_VL };

#define ALONG_SUM(name, step)                                                                                \
    static float name(const float *x, int64_t n)                                                             \
    {                                                                                                        \
        vf acc[4] = {{0}, {0}, {0}, {0}};                                                                    \
        int64_t i = 0;                                                                                       \
        for (; i + 4 * VL <= n; i += 4 * VL)                                                                 \
            _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++)                                              \
            {                                                                                                \
                const vf v = v_load(x + i + j * VL), a = acc[j];                                             \
                acc[j] = (step);                                                                             \
            }                                                                                                \
        for (; i < n; i += VL) {                                                                             \
            const unsigned left = n - i < VL ? (unsigned)(n - i) : VL;                                       \
            const vf v = v_load_n(x + i, left), a = acc[0];                                                  \
            acc[0] = (step);                                                                                 \
        }                                                                                                    \
        return v_sum((acc[0] + acc[1]) + (acc[2] + acc[3]));                                                 \
    }

ALONG_SUM(sum, a + v)
ALONG_SUM(sum_squares, v_fma(v, v, a))
ALONG_SUM(sum_abs, a + v_abs(v))

static float product(const float *x, int64_t n)
{
    vf acc = v_splat(1);
    float tail = 1;
    int64_t i = 0;
    for (; i + 4 * VL <= n;
         i += 4 * VL) { /* few steps wait for another, or are slow because acc has become tiny */
        const vf first = v_load(x + i) * v_load(x + i + VL);
        acc *= first * (v_load(x + i + 2 * VL) * v_load(x + i + 3 * VL));
    }
    for (; i + VL <= n; i += VL)
        acc *= v_load(x + i);
    for (; i < n; i++)
        tail *= x[i];
    for (int j = 0; j < VL; j++)
        tail *= acc[j];
    return tail;
}

static float dot(const float *a, const float *b, int64_t n)
{
    vf acc[2] = {{0}, {0}};
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        acc[0] = v_fma(v_load(a + i), v_load(b + i), acc[0]);
        acc[1] = v_fma(v_load(a + i + VL), v_load(b + i + VL), acc[1]);
    }
    for (; i < n; i += VL) {
        const unsigned left = n - i < VL ? (unsigned)(n - i) : VL;
        acc[0] = v_fma(v_load_n(a + i, left), v_load_n(b + i, left), acc[0]);
    }
    return v_sum(acc[0] + acc[1]);
}

/* The first `lanes` of a vector: without a branch where that costs nothing. */
LNT_INLINE vf load_part(const float *p, unsigned lanes)
{
    return LNT_VL > 4 ? v_load_n(p, lanes) : load(p, lanes);
}

/* Lanes moved down by n, the lowest to the top. */
#if LNT_VL == 16
#define ROTATE(v, n)                                                                                         \
    __builtin_shufflevector(v, v, (n) + 0, (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7,    \
                            (n) + 8, (n) + 9, (n) + 10, (n) + 11, (n) + 12, (n) + 13, (n) + 14, (n) + 15)
#elif LNT_VL == 8
#define ROTATE(v, n)                                                                                         \
    __builtin_shufflevector(v, v, (n) + 0, (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7)
#else
#define ROTATE(v, n) __builtin_shufflevector(v, v, (n) + 0, (n) + 1, (n) + 2, (n) + 3)
#endif

/* pick over all lanes. */
#if LNT_VL == 16
#define FOLD(v, pick)                                                                                        \
    (v = pick(v, ROTATE(v, 8)), v = pick(v, ROTATE(v, 4)), v = pick(v, ROTATE(v, 2)),                        \
     pick(v, ROTATE(v, 1))[0])
#elif LNT_VL == 8
#define FOLD(v, pick) (v = pick(v, ROTATE(v, 4)), v = pick(v, ROTATE(v, 2)), pick(v, ROTATE(v, 1))[0])
#else
#define FOLD(v, pick) (v = pick(v, ROTATE(v, 2)), pick(v, ROTATE(v, 1))[0])
#endif

#define ALONG_EXTREME(name, start, pick)                                                                     \
    static float name(const float *x, int64_t n)                                                             \
    {                                                                                                        \
        vf acc[2] = {v_splat(start), v_splat(start)};                                                        \
        int64_t i = 0;                                                                                       \
        for (; i + 2 * VL <= n; i += 2 * VL) {                                                               \
            acc[0] = pick(acc[0], v_load(x + i));                                                            \
            acc[1] = pick(acc[1], v_load(x + i + VL));                                                       \
        }                                                                                                    \
        for (; i + VL <= n; i += VL)                                                                         \
            acc[0] = pick(acc[0], v_load(x + i));                                                            \
        if (i < n && n >= VL)                                                                                \
            acc[1] = pick(acc[1], v_load(x + n - VL));                                                       \
        else                                                                                                 \
            for (; i < n; i++)                                                                               \
                acc[1] = pick(acc[1], v_splat(x[i]));                                                        \
        acc[0] = pick(acc[0], acc[1]);                                                                       \
        return FOLD(acc[0], pick);                                                                           \
    }

ALONG_EXTREME(max, -INFINITY, v_max_or_nan)
ALONG_EXTREME(min, INFINITY, v_min_or_nan)

/* First or last element equal to extreme, NaN being equal to NaN. */
static int64_t find(const float *x, int64_t n, float extreme, bool last)
{
    const vf e = v_splat(extreme);
    const vi nan = vi_splat(extreme != extreme ? -1 : 0);
    int64_t at = 0;
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        const vf v = v_load(x + i);
        if (!vi_any((v == e) | ((v != v) & nan)))
            continue;
        for (int64_t j = i; j < i + VL; j++)
            if (x[j] == extreme || (x[j] != x[j] && extreme != extreme)) {
                at = j;
                if (!last)
                    return at;
            }
    }
    for (; i < n; i++)
        if (x[i] == extreme || (x[i] != x[i] && extreme != extreme)) {
            at = i;
            if (!last)
                return at;
        }
    return at;
}

static int64_t argmax(const float *x, int64_t n, bool last)
{
    return find(x, n, max(x, n), last);
}

static int64_t argmin(const float *x, int64_t n, bool last)
{
    return find(x, n, min(x, n), last);
}

/* Of nothing they are NaN. */
static void moments(const float *x, int64_t n, float *mean, float *variance)
{
    LNT_ASSERT(n >= 0);
    const float m = sum(x, n) / (float)n;
    const vf minus = v_splat(m);
    vf acc[2] = {{0}, {0}};
    float tail = 0;
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            const vf d = v_load(x + i + j * VL) - minus;
            acc[j] = v_fma(d, d, acc[j]);
        }
    for (; i < n; i++)
        tail += (x[i] - m) * (x[i] - m);
    *mean = m;
    *variance = (v_sum(acc[0] + acc[1]) + tail) / (float)n;
}

/* Runs body with i, left (elements of this vector) over a row; loads and stores past the end are masked. */
#define FOR_VECTORS(...)                                                                                     \
    do {                                                                                                     \
        int64_t i = 0;                                                                                       \
        for (; i + VL <= n; i += VL) {                                                                       \
            const unsigned left = VL;                                                                        \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
        if (i < n) {                                                                                         \
            const unsigned left = (unsigned)(n - i);                                                         \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    } while (0)

/* v with the lanes from left on made 0. */
LNT_INLINE vf keep(vf v, unsigned left)
{
    if (left < VL)
        for (unsigned j = 0; j < VL; j++)
            v[j] = j < left ? v[j] : 0;
    return v;
}

/* e ** x for x <= 0; below -87 it is 0. NaN stays NaN. */
LNT_INLINE vf exp_down(vf x)
{
    const vf low = v_splat(-87), e = v_exp_narrow(v_max(low, x));
    return v_select(x < low, v_splat(0), e);
}

/* minus: the largest of x, whose power is 1: e ** -87 in the place of 0 makes no difference to the sum. */
static float sum_exp(const float *x, int64_t n, float minus)
{
    const vf m = v_splat(minus), low = v_splat(-87);
    vf acc = v_splat(0);
    FOR_VECTORS(acc += keep(v_exp_narrow(v_max(low, load(x + i, left) - m)), left););
    return v_sum(acc);
}

static void shift_scale(const float *x, float *y, int64_t n, float minus, float factor, float plus)
{
    const vf m = v_splat(minus), f = v_splat(factor), p = v_splat(plus);
    FOR_VECTORS(store(y + i, v_fma(load(x + i, left) - m, f, p), left););
}

LNT_INLINE void scale_row(float *y, int64_t n, float factor)
{
    const vf f = v_splat(factor);
    FOR_VECTORS(store(y + i, load(y + i, left) * f, left););
}

LNT_INLINE vf larger_number(vf acc, vf x)
{
    return v_max(x, acc);
}

/* Where it finds NaN it gives NaN or goes on without, by level: NaN comes back with the exponentials. */
ALONG_EXTREME(max_number, -INFINITY, larger_number)

static void softmax(const float *x, float *y, int64_t n)
{
    const vf m = v_splat(max_number(x, n));
    vf acc[4] = {{0}, {0}, {0}, {0}};
    int64_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const vf e = exp_down(v_load(x + i + j * VL) - m);
            acc[j] += e;
            v_prefetch(x + n + i + j * VL); /* the next row, as a rule */
            v_store(y + i + j * VL, e);
        }
    }
    for (; i < n; i += VL) {
        const unsigned left = n - i < VL ? (unsigned)(n - i) : VL;
        const vf e = keep(exp_down(v_load_n(x + i, left) - m), left);
        acc[0] += e;
        v_store_n(y + i, e, left);
    }
    scale_row(y, n, 1 / v_sum((acc[0] + acc[1]) + (acc[2] + acc[3])));
}

static void normalize(const float *x, float *y, int64_t n, float mean, float factor, const float *scale,
                      const float *bias)
{
    const vf m = v_splat(mean), f = v_splat(factor), zero = v_splat(0);
    if (scale && bias)
        FOR_VECTORS({
            const vf t = (load(x + i, left) - m) * f;
            store(y + i, v_fma(t, load(scale + i, left), load(bias + i, left)), left);
        });
    else
        FOR_VECTORS({
            vf t = (load(x + i, left) - m) * f;
            t = scale ? t * load(scale + i, left) : t;
            store(y + i, t + (bias ? load(bias + i, left) : zero), left);
        });
}

static void shift_scale_each(const float *x, float *y, int64_t n, const float *minus, const float *factor,
                             const float *plus)
{
    FOR_VECTORS({
        const vf d = load(x + i, left) - load(minus + i, left);
        store(y + i, v_fma(d, load(factor + i, left), load(plus + i, left)), left);
    });
}

#define ACROSS(name, expression)                                                                             \
    static void name(float *acc, const float *x, int64_t n)                                                  \
    {                                                                                                        \
        FOR_VECTORS({                                                                                        \
            const vf a = load(acc + i, left), v = load(x + i, left);                                         \
            store(acc + i, (expression), left);                                                              \
        });                                                                                                  \
    }

ACROSS(add, a + v)
ACROSS(add_squares, v_fma(v, v, a))
ACROSS(add_abs, a + v_abs(v))
ACROSS(multiply, (a * v))
ACROSS(max_to, v_max_or_nan(a, v))
ACROSS(min_to, v_min_or_nan(a, v))

/* So many vectors of a row of more than one. The last of them end where the row does: columns that two have get the
 * same sum from both. */
static inline __attribute__((always_inline)) void add_some_scaled(float *acc, const float *x, int64_t step,
                                                                  const float *factor, int64_t rows,
                                                                  int64_t n, const int some)
{
    const int64_t last = n - VL;
    int64_t at[4];
    vf sum[4];
    UNROLL_FOR(4, int j = 0; j < some; j++) {
        at[j] = j * VL < last ? j * VL : last;
        sum[j] = v_load(acc + at[j]);
    }
    for (int64_t r = 0; r < rows; r++, x += step) {
        const vf f = v_splat(factor[r]);
        UNROLL_FOR(4, int j = 0; j < some; j++)
            sum[j] = v_fma(v_load(x + at[j]), f, sum[j]);
    }
    UNROLL_FOR(4, int j = 0; j < some; j++)
        v_store(acc + at[j], sum[j]);
}

static void add_scaled(float *acc, const float *x, int64_t step, const float *factor, int64_t rows, int64_t n)
{
    int64_t i = 0;
    for (; i + 2 * VL < n; i += 4 * VL)
        add_some_scaled(acc + i, x + i, step, factor, rows, n - i, 4);
    if (i + VL < n) {
        add_some_scaled(acc + i, x + i, step, factor, rows, n - i, 2);
        return;
    }
    if (i < n) {
        const unsigned left = (unsigned)(n - i);
        vf sum = load(acc + i, left);
        for (int64_t r = 0; r < rows; r++)
            sum = v_fma(load(x + r * step + i, left), v_splat(factor[r]), sum);
        store(acc + i, sum, left);
    }
}

#if defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_NEON)
/* Four rows at a time; for rows that are not there the first of them is taken again. */
static void dot_rows(const float *x, int64_t step, const float *b, int64_t n, float *y, int64_t rows)
{
    for (int64_t r = 0; r < rows; r += 4) {
        const unsigned some = rows - r < 4 ? (unsigned)(rows - r) : 4;
        int64_t row[4];
        vf sum[4];
        UNROLL_FOR(4, unsigned j = 0; j < 4; j++) {
            row[j] = (r + (j < some ? j : 0)) * step;
            sum[j] = v_splat(0);
        }
        for (int64_t i = 0; i < n; i += VL) {
            const unsigned left = n - i < VL ? (unsigned)(n - i) : VL;
            const vf f = load_part(b + i, left);
            UNROLL_FOR(4, unsigned j = 0; j < 4; j++)
                sum[j] = v_fma(load_part(x + row[j] + i, left), f, sum[j]);
        }
        v_store_n(y + r, v_sum4(sum[0], sum[1], sum[2], sum[3]), some);
    }
}
#else
static void dot_rows(const float *x, int64_t step, const float *b, int64_t n, float *y, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        y[r] = dot(x + r * step, b, n);
}
#endif

static void blend(const float *a, float of_a, const float *b, float of_b, float *y, int64_t n)
{
    const vf fa = v_splat(of_a), fb = v_splat(of_b);
    FOR_VECTORS(store(y + i, v_fma(load(b + i, left), fb, load(a + i, left) * fa), left););
}

static void exp_minus(float *acc, const float *x, const float *minus, float *y, int64_t n)
{
    FOR_VECTORS({
        const vf e = exp_down(load(x + i, left) - load(minus + i, left));
        store(acc + i, load(acc + i, left) + e, left);
        if (y)
            store(y + i, e, left);
    });
}

static void subtract(const float *x, const float *minus, float *y, int64_t n)
{
    FOR_VECTORS(store(y + i, load(x + i, left) - load(minus + i, left), left););
}

LNT_INLINE vf plus(vf a, vf b)
{
    return a + b;
}

#define JOIN(name, pick)                                                                                     \
    static void name(const float *const *rows, int64_t n_rows, float *y, int64_t n)                          \
    {                                                                                                        \
        int64_t i = 0;                                                                                       \
        for (; i + 4 * VL <= n; i += 4 * VL) {                                                               \
            vf acc[4];                                                                                       \
            _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) acc[j] = v_load(rows[0] + i + j * VL);       \
            for (int64_t r = 1; r < n_rows; r++)                                                             \
                _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) acc[j] =                                 \
                    pick(acc[j], v_load(rows[r] + i + j * VL));                                              \
            _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) v_store(y + i + j * VL, acc[j]);             \
        }                                                                                                    \
        for (; i < n; i += VL) {                                                                             \
            const unsigned left = n - i < VL ? (unsigned)(n - i) : VL;                                       \
            vf acc = v_load_n(rows[0] + i, left);                                                            \
            for (int64_t r = 1; r < n_rows; r++)                                                             \
                acc = pick(acc, v_load_n(rows[r] + i, left));                                                \
            v_store_n(y + i, acc, left);                                                                     \
        }                                                                                                    \
    }

JOIN(max_rows, v_max_or_nan)
JOIN(sum_rows, plus)

static void pick_max(float *best, int32_t *at, const float *x, int32_t index, bool least, bool last,
                     int64_t n)
{
    const vi vindex = vi_splat(index), vlast = vi_splat(-(int32_t)last);
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        const vf a = v_load(x + i), b = v_load(best + i);
        const vi a_nan = a != a, b_nan = b != b;
        const vi take = (least ? a < b : a > b) | (a_nan & ~b_nan) | (vlast & ((a == b) | (a_nan & b_nan)));
        v_store(best + i, v_select(take, a, b));
        vi_store(at + i, vi_select(take, vindex, vi_load(at + i)));
    }
    for (; i < n; i++) {
        const float a = x[i], b = best[i];
        const bool same = a == b || (a != a && b != b);
        if ((least ? a < b : a > b) || (a != a && b == b) || (last && same)) {
            best[i] = a;
            at[i] = index;
        }
    }
}

static void rotate_halves(const float *x, const float *c, const float *s, float *y, int64_t n)
{
    FOR_VECTORS({
        const vf a = load(x + i, left), b = load(x + n + i, left);
        const vf cosine = load(c + i, left), sine = load(s + i, left);
        store(y + i, v_fma(cosine, a, -(sine * b)), left);
        store(y + n + i, v_fma(sine, a, cosine * b), left);
    });
}

static int64_t first_beyond(const float *x, int64_t n, float limit, bool least)
{
    /* Not (a <= b) is true for NaN; turned over, least is the same. */
    const vf sign = (vf)vi_splat(least ? INT32_MIN : 0), edge = (vf)((vi)v_splat(limit) ^ (vi)sign);
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        const vi beyond = ~((vf)((vi)v_load(x + i) ^ (vi)sign) <= edge);
        if (vi_any(beyond))
            return i + vi_first(beyond);
    }
    while (i < n && (least ? x[i] >= limit : x[i] <= limit))
        i++;
    return i;
}

#if LNT_VL > 4
static inline vl load_longs(const int64_t *p)
{
    return (vl)vi_load((const void *)p);
}

static inline void store_longs(int64_t *p, vl x)
{
    vi_store((void *)p, (vi)x);
}

static inline vl select_longs(vl mask, vl a, vl b)
{
    return (a & mask) | (b & ~mask);
}

/* Their bits as integers, but in the order of negative ones, those below the others. */
static void order_keys(const float *x, int64_t n, bool largest, int64_t *key)
{
    typedef int32_t half __attribute__((vector_size(LNT_VL * 2)));
    typedef uint32_t unsigned_half __attribute__((vector_size(LNT_VL * 2)));
    const half none = {0}, magnitude = none + INT32_MAX, infinity = none + 0x7f800000;
    for (int64_t i = 0; i < n; i += VL / 2) {
        half bits;
        memcpy(&bits, x + i, sizeof bits);
        const half is_nan = (bits & magnitude) > infinity, is_zero = (bits & magnitude) == none;
        const half ordered = ((bits ^ (bits >> 31 & magnitude)) & ~is_zero & ~is_nan) | (is_nan & magnitude);
        store_longs(key + i,
                    __builtin_convertvector((unsigned_half)((largest ? ~ordered : ordered) ^ INT32_MIN), vl));
    }
}

static void insert_columns(int64_t *keys, int64_t *indices, int64_t have, int64_t k, const int64_t *x,
                           int64_t index, int64_t n)
{
    for (int64_t c = 0; c < n; c += VL / 2) {
        const vl key = load_longs(x + c);
        vl carried = key, at = (vl){0} + index;
        if (have == k && !vi_any((vi)(key < load_longs(keys + (k - 1) * n + c))))
            continue;
        for (int64_t i = c; i < have * n; i += n) {
            const vl here = load_longs(keys + i), here_at = load_longs(indices + i), first = key < here;
            store_longs(keys + i, select_longs(first, carried, here));
            store_longs(indices + i, select_longs(first, at, here_at));
            carried = select_longs(first, here, carried);
            at = select_longs(first, here_at, at);
        }
        if (have < k) {
            store_longs(keys + have * n + c, carried);
            store_longs(indices + have * n + c, at);
        }
    }
}
#endif

const lnt_row_kernels LNT_SIMD_NAME(lnt_row) = {
    LNT_ROW_TABLE,
    .dot_rows = LNT_HAS_MATRICES ? dot_rows : NULL,
    .pick_max = pick_max,
    .rotate_halves = LNT_HAS_RotaryEmbedding ? rotate_halves : NULL,
    .first_beyond = LNT_HAS_TopK ? first_beyond : NULL,
#if LNT_VL > 4
    .order_keys = LNT_HAS_TopK ? order_keys : NULL,
    .insert_columns = LNT_HAS_TopK ? insert_columns : NULL,
#endif
};
