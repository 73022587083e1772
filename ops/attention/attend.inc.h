/* attend.inc.h — the kernels of ops/attention/attend.h, written once over ops/simd/simd.h and compiled per level. The
 * including file says how many rows of results fit its registers, two vectors each: MIX_ROWS, 4 or 8. */
#include "ops/attention/attend.h"
#include "ops/simd/vmath.h"

enum { LANES = LNT_ATTEND_LANES, VL = LNT_VL, MIX_VECTORS = 2 };

/* ---- transposition ---- */

typedef float v4 __attribute__((vector_size(16)));
typedef float v4_unaligned __attribute__((vector_size(16), aligned(4), may_alias));

LNT_INLINE v4 load4(const float *p)
{
    return *(const v4_unaligned *)p;
}

/* Columns c .. c + 3 of four rows, transposed: t[j] holds element c + j of each. */
LNT_INLINE void transpose4(const float *const *rows, int64_t c, v4 t[4])
{
    const v4 a = load4(rows[0] + c), b = load4(rows[1] + c), d = load4(rows[2] + c), e = load4(rows[3] + c);
    const v4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const v4 de = __builtin_shufflevector(d, e, 0, 4, 1, 5), de2 = __builtin_shufflevector(d, e, 2, 6, 3, 7);
    t[0] = __builtin_shufflevector(ab, de, 0, 1, 4, 5);
    t[1] = __builtin_shufflevector(ab, de, 2, 3, 6, 7);
    t[2] = __builtin_shufflevector(ab2, de2, 0, 1, 4, 5);
    t[3] = __builtin_shufflevector(ab2, de2, 2, 3, 6, 7);
}

/* out[c][i] = (add ? out[c][i] : 0) + scale * rows[i][c]; step floats from out[c] to out[c + 1] */
LNT_INLINE void transpose_rows(const float *const *rows, int64_t width, float scale, float *out, int64_t step,
                               const int add)
{
    const v4 factor = {scale, scale, scale, scale};
    int64_t c = 0;
    for (; c + 4 <= width; c += 4)
        for (unsigned i = 0; i < LANES; i += 4) {
            v4 t[4];
            transpose4(rows + i, c, t);
            for (unsigned j = 0; j < 4; j++) {
                float *to = out + (c + j) * step + i;
                *(v4_unaligned *)to = add ? load4(to) + t[j] : t[j] * factor;
            }
        }
    for (; c < width; c++)
        for (unsigned i = 0; i < LANES; i++)
            out[c * step + i] = add ? out[c * step + i] + rows[i][c] : rows[i][c] * scale;
}

static void transpose(const float *const *rows, int64_t width, float scale, float *out)
{
    transpose_rows(rows, width, scale, out, LANES, 0);
}

static void add_turned(const float *const *rows, int64_t width, float *s, int64_t lanes)
{
    transpose_rows(rows, width, 1, s, lanes, 1);
}

/* ---- logits ---- */

static void add_bias(const float *bias, int64_t keys, float *s, int64_t lanes)
{
    LNT_ASSERT(lanes % VL == 0);
    for (int64_t k = 0; k < keys; k++, s += lanes)
        for (int64_t j = 0; j < lanes; j += VL)
            v_store(s + j, v_load(s + j) + v_splat(bias[k]));
}

static void cap(float *s, int64_t n, float limit)
{
    const vf whole = v_splat(limit), part = v_splat(1 / limit);
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(s + i, whole * v_tanh(v_load(s + i) * part));
    if (i < n)
        v_store_n(s + i, whole * v_tanh(v_load_n(s + i, (unsigned)(n - i)) * part), (unsigned)(n - i));
}

/* e ** x for x <= 0; 0 below -87: sums of less than that are denormal, which takes a hundred times as long. NaN stays
 * NaN. */
LNT_INLINE vf exp_of(vf x)
{
    const vf least = v_splat(-87);
    return v_select(x < least, v_splat(0), v_exp_narrow(v_max(least, x)));
}

/* A maximum that can be subtracted: where all is masked, -inf, it is 0. */
LNT_INLINE vf subtractable(vf max)
{
    return v_select(max == v_splat(-INFINITY), v_splat(0), max);
}

static void choose(float *s, int64_t keys, int64_t lanes, float *max, float *sum, float *factor)
{
    for (int64_t j = 0; j < lanes; j += VL) {
        const vf before = v_load(max + j);
        vf most[2] = {before, before}, total[2] = {v_splat(0), v_splat(0)};
        float *at = s + j;
        int64_t k = 0;
        for (; k + 2 <= keys; k += 2) {
            most[0] = v_max(most[0], v_load(at + k * lanes));
            most[1] = v_max(most[1], v_load(at + (k + 1) * lanes));
        }
        if (k < keys)
            most[0] = v_max(most[0], v_load(at + k * lanes));
        const vf now = v_max(most[0], most[1]), minus = subtractable(now);
        for (k = 0; k < keys; k++, at += lanes) {
            const vf e = exp_of(v_load(at) - minus);
            total[k & 1] += e;
            v_store(at, e);
        }
        const vf f = exp_of(before - minus);
        v_store(max + j, now);
        v_store(factor + j, f);
        v_store(sum + j, v_fma(v_load(sum + j), f, total[0] + total[1]));
    }
}

static void choose_row(float *s, int64_t keys, float *max, float *sum, float *factor)
{
    vf most = v_splat(*max), total = v_splat(0);
    int64_t k = 0;
    for (; k + VL <= keys; k += VL)
        most = v_max(most, v_load(s + k));
    float now = v_max_lane(most);
    for (; k < keys; k++)
        now = s[k] > now ? s[k] : now;
    const vf minus = subtractable(v_splat(now));
    for (k = 0; k + VL <= keys; k += VL) {
        const vf e = exp_of(v_load(s + k) - minus);
        total += e;
        v_store(s + k, e);
    }
    float rest = 0;
    if (k < keys) {
        const unsigned left = (unsigned)(keys - k);
        const vf e = exp_of(v_load_n(s + k, left) - minus);
        for (unsigned j = 0; j < left; j++)
            rest += e[j];
        v_store_n(s + k, e, left);
    }
    *factor = exp_of(v_splat(*max) - minus)[0];
    *sum = *sum * *factor + (v_sum(total) + rest);
    *max = now;
}

/* ---- mixing the values ---- */

typedef struct mix_acc {
    vf v[MIX_ROWS][MIX_VECTORS];
} mix_acc;

LNT_INLINE vf load_part(const float *p, unsigned j, const int whole, unsigned lanes)
{
    return whole ? v_load(p + j * VL) : v_load_n(p + j * VL, lanes);
}

/* Columns [n, n + vectors * VL) of rows [first, first + rows). Few rows take several keys at a time: each
 * chain's sum is its own until the end. */
LNT_INLINE void mix_part(const lnt_mix *m, unsigned first, int64_t n, const unsigned rows,
                         const unsigned vectors, const int by_rows, const int whole, unsigned lanes)
{
    const unsigned chains = rows >= 4 ? 1 : 4 / rows;
    const int64_t p_row = by_rows ? m->p_row : 1, p_key = by_rows ? 1 : m->lanes, v_row = m->v_row;
    const float *p = m->p + first * p_row, *v = m->v + n;
    mix_acc acc;
#pragma GCC unroll 8
    for (unsigned i = 0; i < rows * chains; i++)
#pragma GCC unroll 2
        for (unsigned j = 0; j < vectors; j++)
            acc.v[i][j] = v_splat(0);
    int64_t k = 0;
    for (; k + chains <= m->keys; k += chains)
#pragma GCC unroll 4
        for (unsigned c = 0; c < chains; c++, v += v_row, p += p_key) {
            vf x[MIX_VECTORS];
#pragma GCC unroll 2
            for (unsigned j = 0; j < vectors; j++)
                x[j] = load_part(v, j, whole, lanes);
#pragma GCC unroll 8
            for (unsigned i = 0; i < rows; i++)
#pragma GCC unroll 2
                for (unsigned j = 0; j < vectors; j++)
                    acc.v[c * rows + i][j] = v_fma(v_splat(p[i * p_row]), x[j], acc.v[c * rows + i][j]);
        }
    for (; k < m->keys; k++, v += v_row, p += p_key)
        for (unsigned j = 0; j < vectors; j++) {
            const vf x = load_part(v, j, whole, lanes);
#pragma GCC unroll 8
            for (unsigned i = 0; i < rows; i++)
                acc.v[i][j] = v_fma(v_splat(p[i * p_row]), x, acc.v[i][j]);
        }
#pragma GCC unroll 8
    for (unsigned i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (unsigned j = 0; j < vectors; j++) {
            vf sum = acc.v[i][j];
            for (unsigned c = 1; c < chains; c++)
                sum += acc.v[c * rows + i][j];
            float *y = m->y[first + i] + n + j * VL;
            if (m->factor)
                sum = v_fma(load_part(y, 0, whole, lanes), v_splat(m->factor[first + i]), sum);
            sum *= v_splat(m->post[first + i]);
            if (whole)
                v_store(y, sum);
            else
                v_store_n(y, sum, lanes);
        }
}

/* Columns from n on of all rows: the values are read again while they are near. */
LNT_INLINE void mix_columns(const lnt_mix *m, int64_t n, const unsigned vectors, const int by_rows,
                            const int whole, unsigned lanes)
{
    unsigned i = 0;
    for (; i + MIX_ROWS <= m->rows; i += MIX_ROWS)
        mix_part(m, i, n, MIX_ROWS, vectors, by_rows, whole, lanes);
    for (; i + 2 <= m->rows; i += 2)
        mix_part(m, i, n, 2, vectors, by_rows, whole, lanes);
    if (i < m->rows)
        mix_part(m, i, n, 1, vectors, by_rows, whole, lanes);
}

/* The weights' strides are constants where most of the time goes; the few columns after that share their code. */
static void mix(const lnt_mix *m)
{
    LNT_ASSERT(m->rows <= LNT_ATTEND_ROWS && (m->lanes == 0 || (unsigned)m->lanes >= m->rows));
    int64_t n = 0;
    for (; n + MIX_VECTORS * VL <= m->width; n += MIX_VECTORS * VL) {
        if (m->lanes)
            mix_columns(m, n, MIX_VECTORS, 0, 1, VL);
        else
            mix_columns(m, n, MIX_VECTORS, 1, 1, VL);
    }
    for (; n + VL <= m->width; n += VL)
        mix_columns(m, n, 1, !m->lanes, 1, VL);
    if (n < m->width)
        mix_columns(m, n, 1, !m->lanes, 0, (unsigned)(m->width - n));
}

const lnt_attend_kernels LNT_SIMD_NAME(lnt_attend) = {.transpose = transpose,
                                                      .add_turned = add_turned,
                                                      .add_bias = add_bias,
                                                      .cap = cap,
                                                      .choose = choose,
                                                      .choose_row = choose_row,
                                                      .mix = mix};
