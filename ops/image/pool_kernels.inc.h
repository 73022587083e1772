/* pool_kernels.inc.h — the kernels of pooling, written once over ops/simd/simd.h and compiled per level; the including
 * file says which. */
#include "ops/image/pool_kernels.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"

enum { VL = LNT_VL };

/* Lanes 0, 2, 4, ... of a and b. */
LNT_INLINE vf even_lanes(vf a, vf b)
{
#if LNT_VL == 16
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif LNT_VL == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#elif LNT_VL == 4
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#else
    (void)b;
    return a;
#endif
}

/* Past the last window whole vectors are read: see ops/image/pool_kernels.h. */
#define WINDOW(name, start, pick)                                                                            \
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
            y[o] = v_first(acc);                                                                             \
        }                                                                                                    \
    }

LNT_INLINE vf plus(vf a, vf b)
{
    return a + b;
}

WINDOW(max_window, -INFINITY, v_max_or_nan)
WINDOW(sum_window, 0, plus)

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

const lnt_pool_kernels LNT_SIMD_NAME(lnt_pool) = {LNT_POOL_TABLE, .max_bytes = LNT_HAS_MaxPool ? max_bytes : NULL};
