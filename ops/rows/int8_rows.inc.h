/* int8_rows.inc.h — the kernels of int8 rows, written once over ops/simd/simd.h and compiled per level; the including
 * file says which. */
#include "ops/op.h"
#include "ops/rows/int8_rows.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"
#include "ops/simd/simd_lookup.h"
#include "ops/simd/simd_narrow.h"

/* Rows are gone through by blocks of AT_ONCE elements, VECTORS vectors of lanes of 32 bits. */
enum { VL = LNT_VL, VECTORS = LNT_BYTE_VECTORS, AT_ONCE = VECTORS * VL };

/* Runs block over n elements of x, which is not y: the last block begins within the one before, or is a copy of all
 * there are in a block's room. */
#define INT8_LOOP(x_type, y_type, block)                                                                     \
    do {                                                                                                     \
        for (int64_t i = 0, last = n - AT_ONCE; last >= 0; i = last) {                                       \
            for (; i <= last; i += AT_ONCE)                                                                  \
                block((const x_type *)x + i, (y_type *)y + i);                                               \
            if (i == n)                                                                                      \
                break;                                                                                       \
        }                                                                                                    \
        if (n > 0 && n < AT_ONCE) {                                                                          \
            x_type x_rest[AT_ONCE] = {0};                                                                    \
            y_type y_rest[AT_ONCE];                                                                          \
            memcpy(x_rest, x, (size_t)n * sizeof *x_rest);                                                   \
            block(x_rest, y_rest);                                                                           \
            memcpy(y, y_rest, (size_t)n * sizeof *y_rest);                                                   \
        }                                                                                                    \
    } while (0)

/* x / scale where it is near the middle between integers; elsewhere x * inverse, which rounds to the same one
 * and takes a fraction of the time. */
LNT_INLINE void quantize_block(const float *x, uint8_t *y, float scale, float inverse, byte_range range)
{
    vf v[VECTORS];
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2)
    /* Added to what is below 512, the last 12 bits are of the fraction: up to 2 near the middle. Of infinities and of
     * NaN for an inverse they are 0. */
    const vf shift = v_splat(0x1.8p11f + 0.5f + 0x1p-12f);
    v[0] = v_load(x) * v_splat(inverse);
    const vi sum = (vi)v_fma(v_load(x), v_splat(inverse), shift), fraction_bits = vi_splat(0xffc);
#if defined(LNT_SIMD_AVX512)
    const int beyond = _mm512_testn_epi32_mask((__m512i)sum, (__m512i)fraction_bits) != 0;
#else
    const int beyond = vi_any((sum & fraction_bits) == 0);
#endif
#else
    const float near_middle = 0.5f - 0x1p-12f; /* their distance is a thousandth of that below 512 */
    vi some = vi_splat(0);
    UNROLL_FOR(4, unsigned i = 0; i < VECTORS; i++) {
        v[i] = v_load(x + i * VL) * v_splat(inverse);
        some |= v_not_below(v_off_integer(v[i]), v_splat(near_middle));
    }
    const int beyond = vi_any(some);
#endif
    /* What is 2**22 or more is saturated, divided or not. */
    if (beyond)
        UNROLL_FOR(4, unsigned i = 0; i < VECTORS; i++)
            v[i] = v_load(x + i * VL) / v_splat(scale);
    v_store_requantized(y, v, range);
}

static void quantize(const float *x, void *y, int64_t n, float scale, int32_t zero, bool is_signed)
{
    const byte_range range = byte_range_of(zero, is_signed);
    const float inverse = scale > 1e-30f && scale < 1e30f ? 1 / scale : NAN; /* NaN: always divides */
#define BLOCK(from, to) quantize_block(from, to, scale, inverse, range)
    INT8_LOOP(float, uint8_t, BLOCK);
#undef BLOCK
}

LNT_INLINE void dequantize_block(const uint8_t *x, float *y, vf scale, vi zero, bool is_signed)
{
    vi v[VECTORS];
    vi_load_bytes(x, is_signed, v);
    UNROLL_FOR(4, unsigned i = 0; i < VECTORS; i++)
        v_store(y + i * VL, vi_float(v[i] - zero) * scale);
}

static void dequantize(const void *x, float *y, int64_t n, float scale, int32_t zero, bool is_signed)
{
    const vf s = v_splat(scale);
    const vi z = vi_splat(zero);
#define BLOCK(from, to) dequantize_block(from, to, s, z, is_signed)
    INT8_LOOP(uint8_t, float, BLOCK);
#undef BLOCK
}

/* Columns [j, j + vectors * VL) of all rows; only the first n of one vector that is not `whole`. */
LNT_INLINE void dequantize_columns(const lnt_dequantize_tile *t, unsigned j, const unsigned vectors,
                                   unsigned n, const bool whole)
{
    const vf low = v_splat(t->low), high = v_splat(t->high);
    vf bias[VECTORS], scales[VECTORS];
    vu taken[VECTORS];
    UNROLL_FOR(4, unsigned i = 0; i < vectors; i++) {
        const unsigned at = j + i * VL;
        bias[i] = !t->bias ? v_splat(0) : whole ? v_load(t->bias + at) : v_load_n(t->bias + at, n);
    }
    const int32_t *from = t->acc + j;
    for (unsigned r = 0; r < t->rows; r++, from += LNT_QPANEL) {
        const int64_t out = t->out[r] + j;
        if (r == 0 || !t->alike)
            UNROLL_FOR(4, unsigned i = 0; i < vectors; i++) {
                const unsigned at = j + i * VL;
                scales[i] =
                    v_splat(t->scale[r]) * (whole ? v_load(t->scales + at) : v_load_n(t->scales + at, n));
                taken[i] = (vu)vi_splat(t->zero[r]) * (vu)vi_load(t->sums + at);
            }
        UNROLL_FOR(4, unsigned i = 0; i < vectors; i++) {
            vu acc = (vu)vi_load(from + i * VL) - taken[i];
            if (t->row)
                acc -= (vu)vi_splat(t->row[r]) * (vu)vi_load(t->zeros + j + i * VL);
            vf v = vi_float((vi)acc) * scales[i] + bias[i];
            if (t->residual)
                v += whole ? v_load(t->residual + out + i * VL) : v_load_n(t->residual + out, n);
            v = v_min(high, v_max(low, v));
            if (whole)
                v_store(t->y + out + i * VL, v);
            else
                v_store_n(t->y + out, v, n);
        }
    }
}

static void store_dequantized(const lnt_dequantize_tile *tile)
{
    LNT_ASSERT(tile->rows <= 1 || tile->columns <= LNT_QPANEL);
    const lnt_dequantize_tile own = *tile; /* out of reach of the stores */
    unsigned j = 0;
    for (; VECTORS > 1 && j + AT_ONCE <= own.columns; j += AT_ONCE)
        dequantize_columns(&own, j, VECTORS, AT_ONCE, true);
    for (; j + VL <= own.columns; j += VL)
        dequantize_columns(&own, j, 1, VL, true);
    if (j < own.columns)
        dequantize_columns(&own, j, 1, own.columns - j, false);
}

/* n < most bytes, most being a power of two, without a call: registers would have to be saved. */
LNT_INLINE void copy_some(void *to, const void *from, size_t n, const size_t most)
{
    uint8_t *y = to;
    const uint8_t *x = from;
    UNROLL_FOR(6, size_t part = most / 2; part > 0; part /= 2)
        if (n & part) {
            memcpy(y, x, part);
            y += part;
            x += part;
        }
}

/* Columns that become bytes side by side. */
enum { BYTES_VECTORS = VL == 8 ? 2 : VECTORS, BYTE_COLUMNS = BYTES_VECTORS * VL };

LNT_INLINE void store_columns(uint8_t *y, const vf v[BYTES_VECTORS], byte_range range)
{
#if LNT_VL == 8
    v_store_requantized_two(y, v[0], v[1], range);
#else
    v_store_requantized(y, v, range);
#endif
}

/* Columns [j, j + BYTE_COLUMNS) of all rows: `whole` if there are as many, `has_w_zero` if weights have zero points,
 * `has_slope` with slopes. */
LNT_INLINE void requantize_columns(const lnt_requantize_tile *t, unsigned j, const bool whole,
                                   const bool has_w_zero, const bool has_slope)
{
    const byte_range range = byte_range_of(t->zero, t->is_signed);
    vu acc_bias[BYTES_VECTORS];
    vf scale[BYTES_VECTORS];
    UNROLL_FOR(4, unsigned i = 0; i < BYTES_VECTORS; i++) {
        acc_bias[i] = (vu)vi_load(t->acc_bias + j + i * VL);
        scale[i] = v_load(t->scale + j + i * VL);
    }
    for (unsigned r = 0; r < t->rows; r++) {
        vf v[BYTES_VECTORS];
        UNROLL_FOR(4, unsigned i = 0; i < BYTES_VECTORS; i++) {
            const unsigned at = j + i * VL;
            vu acc = (vu)vi_load(t->acc + r * LNT_QPANEL + at) + acc_bias[i];
            if (has_w_zero)
                acc -= (vu)vi_splat(t->row[r]) * (vu)vi_load(t->zeros + at);
            v[i] = vi_scaled((vi)acc, scale[i]);
            if (has_slope)
                v[i] = v_at_least(v[i], v_at_least(v[i] * v_load(t->slope + at), v_load(t->floor + at)));
        }
        uint8_t bytes[BYTE_COLUMNS];
        store_columns(whole ? t->y + t->out[r] + j : bytes, v, range);
        if (!whole)
            copy_some(t->y + t->out[r] + j, bytes, t->columns - j, sizeof bytes);
    }
}

static void store_requantized(const lnt_requantize_tile *tile)
{
    const lnt_requantize_tile t = *tile; /* out of reach of the stores */
    for (unsigned j = 0; j < t.columns; j += BYTE_COLUMNS)
        if (j + BYTE_COLUMNS <= t.columns && !t.row && !t.slope)
            requantize_columns(&t, j, true, false, false);
        else if (j + BYTE_COLUMNS <= t.columns && !t.slope)
            requantize_columns(&t, j, true, true, false);
        else
            requantize_columns(&t, j, j + BYTE_COLUMNS <= t.columns, t.row != NULL, t.slope != NULL);
}

/* Columns [j, j + TOGETHER) of all rows. */
enum { INTEGER_VECTORS = VL == 1 ? 1 : LNT_QPANEL / VL, TOGETHER = INTEGER_VECTORS * VL };

LNT_INLINE void store_integer_columns(const lnt_integer_tile *t, unsigned j, const bool whole,
                                      const bool has_w_zero)
{
    vu acc_bias[INTEGER_VECTORS], zeros[INTEGER_VECTORS];
    UNROLL_FOR(4, unsigned i = 0; i < INTEGER_VECTORS; i++) {
        acc_bias[i] = (vu)vi_load(t->acc_bias + j + i * VL);
        zeros[i] = has_w_zero ? (vu)vi_load(t->zeros + j + i * VL) : (vu)vi_splat(0);
    }
    for (unsigned r = 0; r < t->rows; r++) {
        int32_t some[TOGETHER], *const y = t->y + t->out[r] + j, *const to = whole ? y : some;
        const vu sum = (vu)vi_splat(has_w_zero ? t->row[r] : 0);
        UNROLL_FOR(4, unsigned i = 0; i < INTEGER_VECTORS; i++) {
            vu acc = (vu)vi_load(t->acc + r * LNT_QPANEL + j + i * VL) + acc_bias[i];
            if (has_w_zero)
                acc -= sum * zeros[i];
            vi_store(to + i * VL, (vi)acc);
        }
        if (!whole)
            copy_some(y, some, (t->columns - j) * sizeof *y, sizeof some);
    }
}

static void store_integers(const lnt_integer_tile *tile)
{
    const lnt_integer_tile t = *tile; /* out of reach of the stores */
    for (unsigned j = 0; j < t.columns; j += TOGETHER)
        if (j + TOGETHER > t.columns)
            store_integer_columns(&t, j, false, t.row != NULL);
        else if (t.row)
            store_integer_columns(&t, j, true, true);
        else
            store_integer_columns(&t, j, true, false);
}

enum { WIDE_VECTORS = LNT_WIDE_VECTORS, WIDE = WIDE_VECTORS * VL };

/* WIDE elements; one of B for all of A is a factor, or a term. */
LNT_INLINE void combine_block(const lnt_qpair *p, const bool multiply, const bool each_b, vf factor, vf term,
                              wide_range range)
{
    const vf of_a = v_splat(p->a_ratio), of_b = v_splat(p->b_ratio);
    vf a[WIDE_VECTORS], b[WIDE_VECTORS];
    v_load_centered(p->a, p->a_signed, p->a_zero, a);
    if (each_b)
        v_load_centered(p->b, p->b_signed, p->b_zero, b);
    else if (p->multiply)
        UNROLL_FOR(4, unsigned i = 0; i < WIDE_VECTORS; i++)
            a[i] *= factor;
    UNROLL_FOR(4, unsigned i = 0; i < WIDE_VECTORS; i++)
        a[i] = !each_b ? a[i] * of_a + term : multiply ? a[i] * b[i] * of_a : a[i] * of_a + b[i] * of_b;
    v_store_requantized_wide(p->c, a, range);
}

/* Whole blocks, then the rest in blocks of its own. */
LNT_INLINE void combine_row(const lnt_qpair *p, int64_t n, const bool multiply, const bool each_b)
{
    lnt_qpair own = *p; /* out of reach of the stores */
    const wide_range range = wide_range_of(own.c_zero, own.c_signed);
    const float one = (float)((own.b_signed ? (int8_t)*own.b : *own.b) - own.b_zero);
    const vf factor = v_splat(one), term = v_splat(own.multiply ? 0 : one * own.b_ratio);
    uint8_t a[WIDE] = {0}, b[WIDE] = {0}, c[WIDE], *rest = own.c;
    int64_t left = n;
    for (;; own.a = a, own.b = b, own.c = c, left = WIDE) {
        for (; left >= WIDE; left -= WIDE, own.a += WIDE, own.b += each_b * WIDE, own.c += WIDE)
            combine_block(&own, multiply, each_b, factor, term, range);
        if (left == 0)
            break;
        n = left;
        rest = own.c;
        memcpy(a, own.a, (size_t)n);
        memcpy(b, own.b, each_b ? (size_t)n : 0);
    }
    if (own.c == c + WIDE)
        memcpy(rest, c, (size_t)n);
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

static void combine_quantized(const lnt_qpair *p, int64_t n)
{
    LNT_ASSERT(p->a_step || n <= 1);
    if (n == 0)
        return;
    if (!p->b_step)
        combine_row(p, n, false, false);
    else if (p->multiply)
        combine_row(p, n, true, true);
    else
        combine_row(p, n, false, true);
}

#if defined(LNT_SIMD_AVX512)
/* What one number does to many bytes is looked up in less time than it is computed in, after all 256 of them. */
static void combine_or_look_up(const lnt_qpair *p, int64_t n)
{
    enum { MANY = 1024 };
    uint8_t to[256];
    lnt_qpair all = *p;
    if (p->b_step || n < MANY) {
        combine_quantized(p, n);
        return;
    }
    for (unsigned i = 0; i < sizeof to; i++)
        to[i] = (uint8_t)i;
    all.a = all.c = to;
    combine_quantized(&all, sizeof to);
    look_up(to, p->a, n, p->c);
}
#else
#define combine_or_look_up combine_quantized
#endif

/* Vectors first, then eights, whose bytes are added up in lanes of 16 bits; of all bytes with the bits of `flip`
 * inverted. */
LNT_INLINE int32_t sum_of(const uint8_t *x, int64_t n, uint8_t flip)
{
    enum { VECTOR = 4 * LNT_VL, EIGHT = 8, FOUR = 4 };
    const uint64_t every_other = 0x00ff00ff00ff00ffu, flips = flip * 0x0101010101010101u;
    uint32_t total = 0;
    if (n >= VECTOR) {
        vi sums = vi_splat(0);
        int32_t lanes[LNT_VL];
        for (; n >= VECTOR; n -= VECTOR, x += VECTOR)
            sums = vb_add_to(sums, vb_load(x) ^ flip);
        vi_store(lanes, sums);
        for (unsigned i = 0; i < LNT_VL; i++)
            total += (uint32_t)lanes[i];
    }
    uint64_t fours = 0, eight;
    for (; VECTOR > EIGHT && n >= EIGHT; n -= EIGHT, x += EIGHT) {
        memcpy(&eight, x, EIGHT);
        eight ^= flips;
        fours += (eight & every_other) + (eight >> 8 & every_other);
    }
    total += (uint32_t)(fours * 0x0001000100010001u >> 48);
    for (uint32_t four; n >= FOUR; n -= FOUR, x += FOUR) {
        memcpy(&four, x, FOUR);
        four ^= (uint32_t)flips;
        four = (four & 0x00ff00ffu) + (four >> 8 & 0x00ff00ffu);
        total += (four & 0xffffu) + (four >> 16);
    }
    for (; n > 0; n--, x++)
        total += *x ^ flip;
    return (int32_t)total;
}

static int32_t sum(const uint8_t *x, int64_t n, bool is_signed)
{
    const uint8_t flip =
        LNT_HAS_QLinearGlobalAveragePool && is_signed ? 128 : 0; /* makes -128 the least byte */
    return sum_of(x, n, flip) - (int32_t)n * flip;
}

enum { QUAD = 4, QUADS = 64 /* at once */ };

/* Of n quads, which are lanes of vectors. */
LNT_INLINE void sum_quads(const uint8_t *x, unsigned n, int32_t *sums)
{
    const vi every_other = vi_splat(0x00ff00ff), low = vi_splat(0xffff);
    unsigned i = 0;
    for (; i + VL <= n; i += VL) {
        const vi four = (vi)vb_load(x + i * QUAD);
        const vi pairs = (four & every_other) + ((four >> 8) & every_other);
        vi_store(sums + i, (pairs & low) + (pairs >> 16));
    }
    for (; i < n; i++)
        sums[i] = x[i * QUAD] + x[i * QUAD + 1] + x[i * QUAD + 2] + x[i * QUAD + 3];
}

/* Rows of less than a vector are summed across their bounds, by quads. */
static void sum_rows(const uint8_t *x, int64_t n, unsigned rows, int32_t minus, int32_t *sums)
{
    const uint32_t less = (uint32_t)minus;
    if (VL == 1 || n >= QUAD * VL || n < QUAD || n % QUAD) {
        for (unsigned i = 0; i < rows; i++)
            sums[i] = (int32_t)((uint32_t)sum_of(x + i * n, n, 0) - less);
        return;
    }
    const unsigned quads = (unsigned)n / QUAD, most = QUADS / quads;
    int32_t of_quad[QUADS];
    for (unsigned i = 0, some; i < rows; i += some, x += some * n) {
        const int32_t *at = of_quad;
        some = rows - i < most ? rows - i : most;
        sum_quads(x, some * quads, of_quad);
        for (unsigned r = 0; r < some; r++, at += quads) {
            uint32_t total = (uint32_t)at[0] - less;
            for (unsigned q = 1; q < quads; q++)
                total += (uint32_t)at[q];
            sums[i + r] = (int32_t)total;
        }
    }
}

/* Left out where no operator of a trimmed library asks for them. */
enum {
    LOOKS_UP =
        LNT_HAS_LookupTable || LNT_HAS_QLinearSigmoid || LNT_HAS_QLinearLeakyRelu || LNT_HAS_QLinearConcat,
    REQUANTIZES = LNT_HAS_QLinearConv || LNT_HAS_QLinearMatMul || LNT_HAS_QLinearGemm,
    INTEGERS = LNT_HAS_MatMulInteger,
    COMBINES = LNT_HAS_QLinearAdd || LNT_HAS_QLinearMul
};

#ifndef PACK
#define PACK NULL
#endif

const lnt_int8_kernels LNT_SIMD_NAME(lnt_int8) = {.quantize = quantize,
                                                  .dequantize = dequantize,
                                                  .sum = sum,
                                                  .sum_rows = sum_rows,
                                                  .pack = PACK,
                                                  .store_dequantized = store_dequantized,
                                                  .store_integers = INTEGERS ? store_integers : NULL,
                                                  .store_requantized = REQUANTIZES ? store_requantized : NULL,
                                                  .combine_quantized = COMBINES ? combine_or_look_up : NULL,
                                                  .look_up = LOOKS_UP ? look_up : NULL};
