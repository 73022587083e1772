/* row.inc.h — the float row kernels over simd.h, compiled once per level. Sums run in four vectors, the tail
 * in a fifth, and are added pairwise. */
#include "ops/op.h"
#include "ops/rows/row.h"
#include "ops/simd/simd_lookup.h"
#include "ops/simd/simd_narrow.h"
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

static void moments(const float *x, int64_t n, float *mean, float *variance)
{
    LNT_ASSERT(n > 0);
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

/* A compile-time constant left == VL makes these plain loads and stores. */
LNT_INLINE vf load(const float *p, unsigned left)
{
    return left == VL ? v_load(p) : v_load_n(p, left);
}

LNT_INLINE void store(float *p, vf v, unsigned left)
{
    if (left == VL)
        v_store(p, v);
    else
        v_store_n(p, v, left);
}

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

static float sum_exp(const float *x, int64_t n, float minus)
{
    const vf m = v_splat(minus);
    vf acc = v_splat(0);
    FOR_VECTORS(acc += keep(exp_down(load(x + i, left) - m), left););
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

static void log_softmax(const float *x, float *y, int64_t n)
{
    const float m = max(x, n);
    const vf vm = v_splat(m), rest = v_splat(logf(sum_exp(x, n, m)));
    FOR_VECTORS(store(y + i, load(x + i, left) - vm - rest, left););
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

static void add_scaled(float *acc, const float *x, float factor, int64_t n)
{
    const vf f = v_splat(factor);
    FOR_VECTORS(store(acc + i, v_fma(load(x + i, left), f, load(acc + i, left)), left););
}

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

/* Lanes 0, 2, 4, ... of a and b. */
LNT_INLINE vf even_lanes(vf a, vf b)
{
#if LNT_VL == 16
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif LNT_VL == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}

/* Past the last window whole vectors are read: see ops/rows/row.h. */
#define WINDOW(name, rows_name, start, pick)                                                                 \
    static void name(const float *x, float *y, int64_t n, int64_t stride, int64_t taps, int64_t dilation)    \
    {                                                                                                        \
        int64_t o = 0;                                                                                       \
        for (; stride <= 2 && o < n; o += VL) {                                                              \
            const float *from = x + o * stride;                                                              \
            vf acc = v_splat(start);                                                                         \
            for (int64_t t = 0; t < taps; t++, from += dilation) {                                           \
                vf v = v_load(from);                                                                         \
                if (stride == 2)                                                                             \
                    v = even_lanes(v, v_load(from + VL));                                                    \
                acc = pick(acc, v);                                                                          \
            }                                                                                                \
            store(y + o, acc, n - o < VL ? (unsigned)(n - o) : VL);                                          \
        }                                                                                                    \
        for (; o < n; o++) {                                                                                 \
            vf acc = v_splat(start);                                                                         \
            for (int64_t t = 0; t < taps; t++)                                                               \
                acc = pick(acc, v_splat(x[o * stride + t * dilation]));                                      \
            y[o] = acc[0];                                                                                   \
        }                                                                                                    \
    }                                                                                                        \
    static void rows_name(const float *const *rows, int64_t n_rows, float *y, int64_t n)                     \
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

LNT_INLINE vf plus(vf a, vf b)
{
    return a + b;
}

WINDOW(max_window, max_rows, -INFINITY, v_max_or_nan)
WINDOW(sum_window, sum_rows, 0, plus)

/* Four vectors of channels at a time: picking has a latency to hide. */
#define PIXELS(name, pick)                                                                                   \
    static void name(const float *const *lines, int64_t n_lines, int64_t taps, int64_t tap_step, float *y,   \
                     int64_t y_step, int64_t outputs, int64_t step, int64_t n)                               \
    {                                                                                                        \
        for (int64_t o = 0; o < outputs; o++, y += y_step) {                                                 \
            int64_t i = 0;                                                                                   \
            for (; i + 4 * VL <= n; i += 4 * VL) {                                                           \
                const float *first = lines[0] + o * step + i;                                                \
                vf a = v_load(first), b = v_load(first + VL), c = v_load(first + 2 * VL),                    \
                   d = v_load(first + 3 * VL);                                                               \
                for (int64_t l = 0; l < n_lines; l++) {                                                      \
                    const float *x = lines[l] + o * step + (l == 0) * tap_step + i;                          \
                    for (int64_t t = l == 0; t < taps; t++, x += tap_step) {                                 \
                        a = pick(a, v_load(x));                                                              \
                        b = pick(b, v_load(x + VL));                                                         \
                        c = pick(c, v_load(x + 2 * VL));                                                     \
                        d = pick(d, v_load(x + 3 * VL));                                                     \
                    }                                                                                        \
                }                                                                                            \
                v_store(y + i, a);                                                                           \
                v_store(y + i + VL, b);                                                                      \
                v_store(y + i + 2 * VL, c);                                                                  \
                v_store(y + i + 3 * VL, d);                                                                  \
            }                                                                                                \
            for (; i < n; i += VL) {                                                                         \
                const unsigned left = n - i < VL ? (unsigned)(n - i) : VL;                                   \
                vf a = v_load_n(lines[0] + o * step + i, left);                                              \
                for (int64_t l = 0; l < n_lines; l++)                                                        \
                    for (int64_t t = l == 0; t < taps; t++)                                                  \
                        a = pick(a, v_load_n(lines[l] + o * step + t * tap_step + i, left));                 \
                v_store_n(y + i, a, left);                                                                   \
            }                                                                                                \
        }                                                                                                    \
    }

PIXELS(max_pixels, v_max_or_nan)
PIXELS(sum_pixels, plus)

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

/* lnt_requantize (ops/quant/qparams.h), lane by lane. */
LNT_INLINE void store_requantized(uint8_t *y, vf v, vf low, vf high, vi zero)
{
    vi_store_8(y, v_round_int(v_min(high, v_at_least(v, low))) + zero);
}

/* Runs block over whole vectors of n elements, the rest through a copy of them in a vector's room. */
#define BYTES_LOOP(x_type, y_type, block)                                                                    \
    do {                                                                                                     \
        int64_t i = 0;                                                                                       \
        for (; i + VL <= n; i += VL)                                                                         \
            block((const x_type *)x + i, (y_type *)y + i);                                                   \
        if (i < n) {                                                                                         \
            x_type x_rest[VL] = {0};                                                                         \
            y_type y_rest[VL];                                                                               \
            memcpy(x_rest, (const x_type *)x + i, (size_t)(n - i) * sizeof *x_rest);                         \
            block(x_rest, y_rest);                                                                           \
            memcpy((y_type *)y + i, y_rest, (size_t)(n - i) * sizeof *y_rest);                               \
        }                                                                                                    \
    } while (0)

/* x / scale where it is near the middle between integers; elsewhere x * inverse, which rounds to the same one
 * and takes a fraction of the time. */
LNT_INLINE vf divided(vf x, float scale, float inverse)
{
    const float near_middle = 0.5f - 0x1p-12f; /* their distance is a thousandth of that below 512 */
    const vf v = x * v_splat(inverse);
    return v_any_beyond(v - v_round(v), near_middle) ? x / v_splat(scale) : v;
}

static void quantize(const float *x, void *y, int64_t n, float scale, int32_t zero, bool is_signed)
{
    const vf low = v_splat((float)((is_signed ? -128 : 0) - zero)), high = low + v_splat(255);
    const vi z = vi_splat(zero);
    const float inverse = scale > 1e-30f && scale < 1e30f ? 1 / scale : NAN; /* NaN: always divides */
#define BLOCK(from, to) store_requantized(to, divided(v_load(from), scale, inverse), low, high, z)
    BYTES_LOOP(float, uint8_t, BLOCK);
#undef BLOCK
}

LNT_INLINE vi load_bytes(const uint8_t *p, bool is_signed)
{
    return is_signed ? vi_load_i8((const int8_t *)p) : vi_load_u8(p);
}

static void dequantize(const void *x, float *y, int64_t n, float scale, int32_t zero, bool is_signed)
{
    const vf s = v_splat(scale);
    const vi z = vi_splat(zero);
#define BLOCK(from, to) v_store(to, vi_float(load_bytes(from, is_signed) - z) * s)
    BYTES_LOOP(uint8_t, float, BLOCK);
#undef BLOCK
}

/* Columns [j, j + n) of all rows; n is VL if they are `whole`. */
LNT_INLINE void store_sum_columns(const lnt_qtile *t, unsigned j, unsigned n, const bool whole)
{
    enum { PANEL = 16 };
    const vf low = v_splat(t->low), high = v_splat(t->high);
    const vu sums = (vu)vi_load(t->sums + j);
    const vf factors = whole ? v_load(t->scales + j) : v_load_n(t->scales + j, n);
    const vf plus = !t->bias ? v_splat(0) : whole ? v_load(t->bias + j) : v_load_n(t->bias + j, n);
    vu taken = (vu)vi_splat(t->zero[0]) * sums;
    for (unsigned r = 0; r < t->rows; r++) {
        if (r > 0 && t->zero[r] != t->zero[r - 1])
            taken = (vu)vi_splat(t->zero[r]) * sums;
        const vu acc = (vu)vi_load(t->acc + r * PANEL + j) - taken;
        vf v = vi_float((vi)acc) * (v_splat(t->scale[r]) * factors) + plus;
        if (t->residual)
            v += whole ? v_load(t->residual[r] + j) : v_load_n(t->residual[r] + j, n);
        v = v_min(high, v_max(low, v));
        if (whole)
            v_store(t->y[r] + j, v);
        else
            v_store_n(t->y[r] + j, v, n);
    }
}

static void store_sums(const lnt_qtile *tile)
{
    LNT_ASSERT(tile->rows <= 1 || tile->columns <= 16);
    const lnt_qtile own = *tile; /* out of reach of the stores */
    unsigned j = 0;
    for (; j + VL <= own.columns; j += VL)
        store_sum_columns(&own, j, VL, true);
    if (j < own.columns)
        store_sum_columns(&own, j, own.columns - j, false);
}

/* Columns [j, j + VL) of all rows: `whole` if there are as many, `moved` if rows have sums to be taken off,
 * `bent` if there are slopes. */
LNT_INLINE void store_columns(const lnt_qbytes *t, unsigned j, const bool whole, const bool moved,
                              const bool bent)
{
    enum { PANEL = 16 };
    const vf low = v_splat((float)((t->is_signed ? -128 : 0) - t->zero)), high = low + v_splat(255);
    const vi zero = vi_splat(t->zero);
    const vu plus = (vu)vi_load(t->plus + j), zeros = (vu)vi_load(t->zeros + j);
    const vf scale = v_load(t->scale + j);
    const vf slope = v_load(bent ? t->slope + j : t->scale + j),
             floor = v_load(bent ? t->floor + j : t->scale + j);
    for (unsigned r = 0; r < t->rows; r++) {
        vu acc = (vu)vi_load(t->acc + r * PANEL + j) + plus;
        if (moved)
            acc -= (vu)vi_splat(t->row[r]) * zeros;
        vf v = vi_float((vi)acc) * scale;
        if (bent)
            v = v_at_least(v, v_at_least(v * slope, floor));
        uint8_t bytes[VL];
        store_requantized(whole ? t->y + t->out[r] + j : bytes, v, low, high, zero);
        if (!whole)
            memcpy(t->y + t->out[r] + j, bytes, t->columns - j);
    }
}

static void store_bytes(const lnt_qbytes *tile)
{
    const lnt_qbytes t = *tile; /* out of reach of the stores */
    for (unsigned j = 0; j < t.columns; j += VL)
        if (j + VL <= t.columns && !t.row && !t.slope)
            store_columns(&t, j, true, false, false);
        else if (j + VL <= t.columns && !t.slope)
            store_columns(&t, j, true, true, false);
        else
            store_columns(&t, j, j + VL <= t.columns, t.row != NULL, t.slope != NULL);
}

LNT_INLINE void combine_vector(const lnt_qpair *p, vi a, vi b, bool multiply, uint8_t *c)
{
    const vf low = v_splat((float)((p->c_signed ? -128 : 0) - p->c_zero)), high = low + v_splat(255);
    const vf of_a = v_splat(p->a_ratio), of_b = v_splat(p->b_ratio);
    a -= vi_splat(p->a_zero);
    b -= vi_splat(p->b_zero);
    const vf v = multiply ? vi_float(a * b) * of_a : vi_float(a) * of_a + vi_float(b) * of_b;
    store_requantized(c, v, low, high, vi_splat(p->c_zero));
}

LNT_INLINE void combine_row(const lnt_qpair *p, int64_t n, bool multiply, bool each_a, bool each_b)
{
    const lnt_qpair own = *p; /* out of reach of the stores */
    uint8_t fill_a[VL], fill_b[VL], c[VL];
    memset(fill_a, own.a[0], sizeof fill_a);
    memset(fill_b, own.b[0], sizeof fill_b);
    const vi one_a = load_bytes(fill_a, own.a_signed), one_b = load_bytes(fill_b, own.b_signed);
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        combine_vector(&own, each_a ? load_bytes(own.a + i, own.a_signed) : one_a,
                       each_b ? load_bytes(own.b + i, own.b_signed) : one_b, multiply, own.c + i);
    if (i == n)
        return;
    memcpy(fill_a, own.a + each_a * i, each_a ? (size_t)(n - i) : 1);
    memcpy(fill_b, own.b + each_b * i, each_b ? (size_t)(n - i) : 1);
    combine_vector(&own, load_bytes(fill_a, own.a_signed), load_bytes(fill_b, own.b_signed), multiply, c);
    memcpy(own.c + i, c, (size_t)(n - i));
}

static void combine_bytes(const lnt_qpair *p, int64_t n)
{
    if (n == 0)
        return;
    if (p->a_step && p->b_step) {
        if (p->multiply)
            combine_row(p, n, true, true, true);
        else
            combine_row(p, n, false, true, true);
    } else {
        combine_row(p, n, p->multiply, p->a_step, p->b_step);
    }
}

typedef uint8_t eight_bytes __attribute__((vector_size(8)));

static void max_bytes(const uint8_t *const *rows, int64_t n_rows, bool is_signed, uint8_t *y, int64_t n)
{
    LNT_ASSERT(n_rows > 0);
    enum { BYTES = 4 * LNT_VL };
    const uint8_t flip = is_signed ? 0x80 : 0;
    int64_t i = 0;
    for (; i + BYTES <= n; i += BYTES) {
        vb most = vb_load(rows[0] + i) ^ flip;
        for (int64_t r = 1; r < n_rows; r++)
            most = vb_max(most, vb_load(rows[r] + i) ^ flip);
        vb_store(y + i, most ^ flip);
    }
    for (eight_bytes most, other; i + (int64_t)sizeof most <= n; i += (int64_t)sizeof most) {
        memcpy(&most, rows[0] + i, sizeof most);
        most ^= flip;
        for (int64_t r = 1; r < n_rows; r++) {
            memcpy(&other, rows[r] + i, sizeof other);
            other ^= flip;
            const eight_bytes less = (eight_bytes)(most < other);
            most = (other & less) | (most & ~less);
        }
        most ^= flip;
        memcpy(y + i, &most, sizeof most);
    }
    for (; i < n; i++) {
        uint8_t most = rows[0][i] ^ flip;
        for (int64_t r = 1; r < n_rows; r++)
            most = (rows[r][i] ^ flip) > most ? rows[r][i] ^ flip : most;
        y[i] = most ^ flip;
    }
}

/* to[] is out of reach of the stores. */
static void look_up(const uint8_t *restrict to, const uint8_t *x, int64_t n, uint8_t *y)
{
    int64_t i = 0;
#if LNT_LOOKS_UP
    enum { BYTES = sizeof(vb) };
    if (n >= BYTES) {
        const vb_table table = vb_table_of(to);
        for (; i + BYTES <= n; i += BYTES)
            vb_store(y + i, vb_look_up(&table, vb_load(x + i)));
    }
#endif
#pragma GCC unroll 8
    for (; i < n; i++)
        y[i] = to[x[i]];
}

/* Left out where no operator of a trimmed library asks for them. */
enum {
    LOOKS_UP =
        LNT_HAS_ByteTable || LNT_HAS_QLinearSigmoid || LNT_HAS_QLinearLeakyRelu || LNT_HAS_QLinearConcat,
    STORES_BYTES = LNT_HAS_QLinearConv || LNT_HAS_QLinearMatMul || LNT_HAS_QLinearGemm,
    COMBINES_BYTES = LNT_HAS_QLinearAdd || LNT_HAS_QLinearMul
};

const lnt_row_kernels LNT_SIMD_NAME(lnt_row) = {LNT_ROW_TABLE,
                                                .pick_max = pick_max,
                                                .first_beyond = LNT_HAS_TopK ? first_beyond : NULL,
                                                .quantize = quantize,
                                                .dequantize = dequantize,
                                                .store_sums = store_sums,
                                                .store_bytes = STORES_BYTES ? store_bytes : NULL,
                                                .combine_bytes = COMBINES_BYTES ? combine_bytes : NULL,
                                                .max_bytes = LNT_HAS_MaxPool ? max_bytes : NULL,
                                                .look_up = LOOKS_UP ? look_up : NULL};
