/* row.inc.h — the float row kernels over simd.h, compiled once per level. Sums run in four vectors, the tail
 * in a fifth, and are added pairwise. */
#include "ops/row.h"
#include "ops/vmath.h"

enum { VL = LNT_VL };

#define ALONG_SUM(name, step)                                                                                \
    static float name(const float *x, int64_t n)                                                             \
    {                                                                                                        \
        vf acc[4] = {{0}, {0}, {0}, {0}};                                                                    \
        int64_t i = 0;                                                                                       \
        for (; i + 4 * VL <= n; i += 4 * VL)                                                                 \
            for (int j = 0; j < 4; j++) {                                                                    \
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

/* The larger of acc and x, once NaN always NaN. */
LNT_INLINE vf larger(vf acc, vf x)
{
    return v_select((x > acc) | (x != x), x, acc);
}

LNT_INLINE vf smaller(vf acc, vf x)
{
    return v_select((x < acc) | (x != x), x, acc);
}

#define ALONG_EXTREME(name, start, pick, is_beyond)                                                          \
    static float name(const float *x, int64_t n)                                                             \
    {                                                                                                        \
        vf acc[2] = {v_splat(start), v_splat(start)};                                                        \
        float result = (start);                                                                              \
        int64_t i = 0;                                                                                       \
        for (; i + 2 * VL <= n; i += 2 * VL) {                                                               \
            acc[0] = pick(acc[0], v_load(x + i));                                                            \
            acc[1] = pick(acc[1], v_load(x + i + VL));                                                       \
        }                                                                                                    \
        for (; i < n; i++)                                                                                   \
            if (x[i] is_beyond result || x[i] != x[i])                                                       \
                result = x[i];                                                                               \
        acc[0] = pick(acc[0], acc[1]);                                                                       \
        for (int j = 0; j < VL; j++)                                                                         \
            if (acc[0][j] is_beyond result || acc[0][j] != acc[0][j])                                        \
                result = acc[0][j];                                                                          \
        return result;                                                                                       \
    }

ALONG_EXTREME(max, -INFINITY, larger, >)
ALONG_EXTREME(min, INFINITY, smaller, <)

/* First or last element equal to extreme, NaN being equal to NaN. */
static int64_t find(const float *x, int64_t n, float extreme, bool last)
{
    const vf e = v_splat(extreme);
    const vi nan = vi_splat(extreme != extreme ? -1 : 0);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i += VL) {
        const unsigned left = n - i < VL ? (unsigned)(n - i) : VL;
        const vf v = v_load_n(x + i, left);
        if (!vi_any((v == e) | ((v != v) & nan)))
            continue;
        for (unsigned j = 0; j < left; j++) {
            if (x[i + j] != extreme && !(x[i + j] != x[i + j] && extreme != extreme))
                continue;
            at = i + j;
            if (!last)
                return at;
        }
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
    const float m = sum(x, n) / (float)n;
    const vf minus = v_splat(m);
    vf acc[2] = {{0}, {0}};
    float tail = 0;
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL)
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

static float sum_exp(const float *x, int64_t n, float minus)
{
    const vf m = v_splat(minus);
    vf acc = v_splat(0);
    FOR_VECTORS(acc += keep(v_exp(load(x + i, left) - m), left););
    return v_sum(acc);
}

static void shift_scale(const float *x, float *y, int64_t n, float minus, float factor, float plus)
{
    const vf m = v_splat(minus), f = v_splat(factor), p = v_splat(plus);
    FOR_VECTORS(store(y + i, v_fma(load(x + i, left) - m, f, p), left););
}

static void softmax(const float *x, float *y, int64_t n)
{
    const vf m = v_splat(max(x, n));
    vf acc = v_splat(0);
    FOR_VECTORS({
        const vf e = keep(v_exp(load(x + i, left) - m), left);
        acc += e;
        store(y + i, e, left);
    });
    const vf factor = v_splat(1 / v_sum(acc));
    FOR_VECTORS(store(y + i, load(y + i, left) * factor, left););
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
ACROSS(multiply, a *v)
ACROSS(max_to, larger(a, v))
ACROSS(min_to, smaller(a, v))

static void add_scaled(float *acc, const float *x, float factor, int64_t n)
{
    const vf f = v_splat(factor);
    FOR_VECTORS(store(acc + i, v_fma(load(x + i, left), f, load(acc + i, left)), left););
}

static void exp_minus(float *acc, const float *x, const float *minus, float *y, int64_t n)
{
    FOR_VECTORS({
        const vf e = v_exp(load(x + i, left) - load(minus + i, left));
        store(acc + i, load(acc + i, left) + e, left);
        if (y)
            store(y + i, e, left);
    });
}

static void subtract(const float *x, const float *minus, float *y, int64_t n)
{
    FOR_VECTORS(store(y + i, load(x + i, left) - load(minus + i, left), left););
}

typedef uint8_t vb __attribute__((vector_size(LNT_VL)));
typedef int8_t vc __attribute__((vector_size(LNT_VL)));
typedef uint32_t vu __attribute__((vector_size(LNT_VL * 4)));

static void add_bytes(int32_t *acc, const void *x, bool is_signed, int32_t minus, int32_t factor, int64_t n)
{
    const uint8_t *bytes = x;
    const vi m = vi_splat(minus);
    const vu f = (vu)vi_splat(factor);
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        vb b;
        memcpy(&b, bytes + i, sizeof b);
        const vi v = is_signed ? __builtin_convertvector((vc)b, vi) : __builtin_convertvector(b, vi);
        vi_store(acc + i, (vi)((vu)vi_load(acc + i) + f * (vu)(v - m)));
    }
    for (; i < n; i++) {
        const int32_t v = (is_signed ? (int8_t)bytes[i] : bytes[i]) - minus;
        acc[i] = (int32_t)((uint32_t)acc[i] + (uint32_t)factor * (uint32_t)v);
    }
}

const lnt_row_kernels LNT_SIMD_NAME(lnt_row) = {LNT_ROW_TABLE, .add_bytes = add_bytes};
