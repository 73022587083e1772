/* pool_kernels.inc.h — the kernels of pooling, written once over ops/simd/simd.h and compiled per level; the including
 * file says which. */
#include "ops/image/pool_kernels.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"

#include <math.h>

enum { VL = LNT_VL };

/* Lanes 0, 2, 4, ... of a and b, and lanes 0, 3, 6, ... of a, b and c. */
#if LNT_VL == 16
LNT_INLINE vf every_second(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

LNT_INLINE vf every_third(vf a, vf b, vf c)
{
    const vf ab = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);
    return __builtin_shufflevector(ab, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);
}
#elif LNT_VL == 8
LNT_INLINE vf every_second(vf a, vf b)
{
    const vf ab = __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14); /* an instruction, and another */
    return __builtin_shufflevector(ab, ab, 0, 1, 4, 5, 2, 3, 6, 7);
}

LNT_INLINE vf every_third(vf a, vf b, vf c)
{
    const vf ab = __builtin_shufflevector(a, b, 0, 9, 2, 3, 12, 5, 6,
                                          15), /* of each lane the one that has it */
        abc = __builtin_shufflevector(ab, c, 0, 1, 10, 3, 4, 13, 6, 7);
    return __builtin_shufflevector(abc, abc, 0, 3, 6, 1, 4, 7, 2, 5);
}
#elif LNT_VL == 4
LNT_INLINE vf every_second(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}

LNT_INLINE vf every_third(vf a, vf b, vf c)
{
    const vf ab = __builtin_shufflevector(a, b, 0, 3, 6, 6);
    return __builtin_shufflevector(ab, c, 0, 1, 2, 5);
}
#else
LNT_INLINE vf every_second(vf a, vf b)
{
    (void)b;
    return a;
}

LNT_INLINE vf every_third(vf a, vf b, vf c)
{
    (void)b, (void)c;
    return a;
}
#endif

/* Are there kernels for the usual windows? */
#if defined(LNT_SIMD_NEON) || LNT_VL > 4
enum { USUAL = 1 };
#else
enum { USUAL = 0 };
#endif

enum { STRIDE_MAX = USUAL ? 4 : 2 };
_Static_assert((int)LNT_POOL_SLACK >= STRIDE_MAX * (int)VL, "whole vectors are read past the last window");

/* x[i * stride], i < VL, stride <= STRIDE_MAX */
LNT_INLINE vf load_strided(const float *x, int64_t stride)
{
    const vf a = v_load(x);
    if (stride == 1)
        return a;
    const vf b = v_load(x + VL);
    if (stride == 2)
        return every_second(a, b);
    const vf c = v_load(x + 2 * VL);
    return stride == 3 ? every_third(a, b, c)
                       : every_second(every_second(a, b), every_second(c, v_load(x + 3 * VL)));
}

/* Fewer outputs than a vector has: in one with masks, or one by one where those are many instructions. */
enum { MASKED = LNT_VL > 4 };
_Static_assert((int)LNT_POOL_WIDE >= (int)VL, "lines to be joined fill a vector");

/* Lines joined into y, which has n elements; neighbors of x to outputs. What is usual is a constant. */
#define WINDOW(name, pick)                                                                                   \
    /* Some elements are joined twice, that there are whole vectors. */                                      \
    static __attribute__((noinline)) int64_t join_##name(const lnt_pool_lines *w, const float *const *lines, \
                                                         int64_t n_lines, int64_t row, float *y)             \
    {                                                                                                        \
        const int64_t end = lnt_least(row + w->together, w->rows), n = w->in;                                \
        for (; row < end; row++, y += w->acc_step) {                                                         \
            const int64_t at = row * w->line_step;                                                           \
            for (int64_t i = 0; i < n; i += 2 * VL) {                                                        \
                const int64_t a = lnt_least(i, n - VL), b = lnt_least(i + VL, n - VL);                       \
                vf one = v_load(lines[0] + at + a), two = v_load(lines[0] + at + b);                         \
                for (int64_t l = 1; l < n_lines; l++) {                                                      \
                    one = pick(one, v_load(lines[l] + at + a));                                              \
                    two = pick(two, v_load(lines[l] + at + b));                                              \
                }                                                                                            \
                v_store(y + a, one);                                                                         \
                v_store(y + b, two);                                                                         \
            }                                                                                                \
        }                                                                                                    \
        return row;                                                                                          \
    }                                                                                                        \
                                                                                                             \
    LNT_INLINE vf taps_##name(const float *x, const int64_t stride, const int64_t taps, int64_t dilation)    \
    {                                                                                                        \
        vf all = load_strided(x, stride);                                                                    \
        for (int64_t t = 1; t < taps; t++)                                                                   \
            all = pick(all, load_strided(x += dilation, stride));                                            \
        return all;                                                                                          \
    }                                                                                                        \
                                                                                                             \
    LNT_INLINE void neighbors_##name(const lnt_pool_lines *w, const float *x, float *y,                      \
                                     const int64_t stride, const int64_t taps, const float *share,           \
                                     vf factor)                                                              \
    {                                                                                                        \
        const int64_t end = w->end, dilation = w->dilation;                                                  \
        const unsigned lanes = MASKED && end - w->begin < VL ? (unsigned)(end - w->begin) : VL;              \
        for (int64_t o = w->begin; o < end; o += VL) {                                                       \
            o = o + VL <= end ? o : end - lanes;                                                             \
            const vf all = taps_##name(x + o * stride, stride, taps, dilation);                              \
            store(y + o, share ? all * (factor * load(share + o, lanes)) : all, lanes);                      \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    static __attribute__((noinline)) void each_output_##name(const lnt_pool_lines *w, const float *x,        \
                                                             float *y, const float *share, vf factor)        \
    {                                                                                                        \
        for (int64_t o = w->begin; o < w->end; o++) {                                                        \
            const float *from = x + o * w->stride;                                                           \
            vf all = v_splat(*from);                                                                         \
            for (int64_t t = 1; t < w->taps; t++)                                                            \
                all = pick(all, v_splat(*(from += w->dilation)));                                            \
            y[o] = v_first(share ? all * (factor * v_splat(share[o])) : all);                                \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    LNT_INLINE void name(const lnt_pool_lines *w, const float *const *lines, int64_t n_lines, float *acc,    \
                         float *y, float factor, const float *share)                                         \
    {                                                                                                        \
        const float *x = acc;                                                                                \
        int64_t joined = n_lines ? 0 : w->rows;                                                              \
        for (int64_t r = 0; r < w->rows; r++, x += w->acc_step, y += w->y_step) {                            \
            if (r == joined) {                                                                               \
                x = acc;                                                                                     \
                joined = join_##name(w, lines, n_lines, r, acc + w->inside);                                 \
            }                                                                                                \
            if (w->stride > STRIDE_MAX || (w->end - w->begin < VL && !MASKED))                               \
                each_output_##name(w, x, y, share, v_splat(factor));                                         \
            else if (USUAL && w->stride == 1)                                                                \
                neighbors_##name(w, x, y, 1, w->taps, share, v_splat(factor));                               \
            else if (USUAL && w->stride == 2)                                                                \
                neighbors_##name(w, x, y, 2, w->taps, share, v_splat(factor));                               \
            else                                                                                             \
                neighbors_##name(w, x, y, w->stride, w->taps, share, v_splat(factor));                       \
        }                                                                                                    \
    }

LNT_INLINE vf plus(vf a, vf b)
{
    return a + b;
}

WINDOW(largest, v_max_or_nan)
WINDOW(sum, plus)

static void max_window(const lnt_pool_lines *w, const float *const *lines, int64_t n_lines, float *acc,
                       float *y)
{
    LNT_ASSERT(w->taps > 0);
    largest(w, lines, n_lines, acc, y, 1, NULL);
}

static void sum_window(const lnt_pool_lines *w, const float *const *lines, int64_t n_lines, float *acc,
                       float *y, float factor, const float *share)
{
    LNT_ASSERT(w->taps > 0 && share);
    sum(w, lines, n_lines, acc, y, factor, share);
}

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

#ifdef LNT_SIMD_AVX512
LNT_INLINE vf pick(vf a, vf b, const bool sums)
{
    return sums ? a + b : v_max_or_nan(a, b);
}

/* A row of windows, the first of whose lines is at x[at], inside the plane or not. */
LNT_INLINE vf narrow_row(const lnt_window *w, const int32_t *tap, const float *x, int64_t at, const bool sums)
{
    const int64_t n = w->in[2], step = w->dilation[1] * n, size = w->in[1] * n;
    const uint32_t all_lanes = (1u << n) - 1;
    const __m512 none = _mm512_set1_ps(sums ? 0 : -INFINITY);
    __m512 a = none, b = none;
    for (int64_t t = 0; t < w->kernel[1]; t++, at += step) {
        if ((uint64_t)at >= (uint64_t)size)
            continue;
        a = (__m512)pick((vf)a, (vf)_mm512_mask_loadu_ps(none, (__mmask16)all_lanes, x + at), sums);
        if (n > VL)
            b = (__m512)pick((vf)b, (vf)_mm512_mask_loadu_ps(none, (__mmask16)(all_lanes >> VL), x + at + VL),
                             sums);
    }
    vf all = (vf)_mm512_permutex2var_ps(a, (__m512i)vi_load(tap), b);
    for (int64_t t = 1; t < w->kernel[2]; t++, tap += VL)
        all = pick(all, (vf)_mm512_permutex2var_ps(a, (__m512i)vi_load(tap + VL), b), sums);
    return all;
}

static void narrow_planes(const lnt_window *w, const int32_t *lanes, const float *share, const float *x,
                          float *y, int64_t planes)
{
    const lnt_window own = *w; /* out of reach of the stores, which may alias anything */
    const unsigned n = (unsigned)own.out[2];
    for (int64_t plane = 0; plane < planes; plane++, x += own.in[1] * own.in[2]) {
        int64_t at = -own.before[1] * own.in[2];
        for (int64_t o = 0; o < own.out[1]; o++, y += n, at += own.stride[1] * own.in[2]) {
            const vf all = share ? narrow_row(&own, lanes, x, at, true) * v_load_n(share + o * n, n)
                                 : narrow_row(&own, lanes, x, at, false);
            v_store_n(y, all, n);
        }
    }
}
#endif

const lnt_pool_kernels LNT_SIMD_NAME(lnt_pool) = {LNT_POOL_TABLE,
#ifdef LNT_SIMD_AVX512
                                                  .narrow_planes = LNT_POOL_WINDOWS ? narrow_planes : NULL,
#endif
                                                  .max_bytes = LNT_HAS_MaxPool ? max_bytes : NULL};
