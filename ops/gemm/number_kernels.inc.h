/* number_kernels.inc.h — tiles of double and integers over vectors of the level's width, compiled once per level. */
#include "ops/gemm/number_kernels.h"
#include "ops/simd/simd_lanes.h"

/* A vector of 4 bytes is no vector: there, a tile's row is as long as four numbers of 64 bits. */
enum { VECTOR = LNT_VL == 1 ? 16 : LNT_VL * 4, VECTORS = 2 };

typedef double vector_f64 __attribute__((vector_size(VECTOR)));
typedef uint32_t vector_i32 __attribute__((vector_size(VECTOR))); /* unsigned: may wrap */
typedef uint64_t vector_i64 __attribute__((vector_size(VECTOR)));

LNT_INLINE vector_f64 add_product_f64(vector_f64 a, vector_f64 b, vector_f64 c)
{
#if defined(LNT_SIMD_AVX512)
    return (vector_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(LNT_SIMD_AVX2)
    return (vector_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(LNT_SIMD_NEON) && defined(__aarch64__)
    return (vector_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + c;
#endif
}

LNT_INLINE vector_i32 add_product_i32(vector_i32 a, vector_i32 b, vector_i32 c)
{
    return a * b + c;
}

LNT_INLINE vector_i64 add_product_i64(vector_i64 a, vector_i64 b, vector_i64 c)
{
    return a * b + c;
}

#if defined(LNT_SIMD_AVX512)
enum { MASKS_COLUMNS = true };

/* Elements of so many bytes, those whose bits are set: a bit for each column. */
LNT_INLINE __m512i load_some(const void *from, const size_t bytes, uint64_t bits)
{
    return bytes == 8 ? _mm512_maskz_loadu_epi64((__mmask8)bits, from)
                      : _mm512_maskz_loadu_epi32((__mmask16)bits, from);
}

LNT_INLINE void store_some(void *to, __m512i x, const size_t bytes, uint64_t bits)
{
    if (bytes == 8)
        _mm512_mask_storeu_epi64(to, (__mmask8)bits, x);
    else
        _mm512_mask_storeu_epi32(to, (__mmask16)bits, x);
}

#define LOAD_SOME(x, from, bits) (x) = (__typeof__(x))load_some(from, sizeof *(from), bits)
#define STORE_SOME(to, x, bits) store_some(to, (__m512i)(x), sizeof *(to), bits)
#else
enum { MASKS_COLUMNS = false };
#define LOAD_SOME(x, from, bits) (void)(bits), memcpy(&(x), from, sizeof(x))
#define STORE_SOME(to, x, bits) memcpy(to, &(x), sizeof(x))
#endif

#define TILE(name, type, halves)                                                                             \
    LNT_INLINE void name##_rows(const lnt_number_tile *t, uint64_t bits, const type *a, type *y,             \
                                const unsigned rows, const unsigned vectors)                                 \
    {                                                                                                        \
        enum { LANES = VECTOR / sizeof(type) };                                                              \
        const type *b = t->b;                                                                                \
        const int64_t row_y = t->row_y;                                                                      \
        vector_##name sum[LNT_NUMBER_ROWS][VECTORS] = {{{0}}};                                               \
        if (t->accumulate)                                                                                   \
            UNROLL_FOR(6, unsigned i = 0; i < rows; i++)                                                     \
                UNROLL_FOR(2, unsigned v = 0; v < vectors; v++)                                              \
                    LOAD_SOME(sum[i][v], y + i * row_y + v * LANES, bits >> v * LANES);                      \
        for (int64_t e = 0; e < t->depth; e++, a += t->column_a, b += t->row_b) {                            \
            vector_##name x[VECTORS];                                                                        \
            UNROLL_FOR(2, unsigned v = 0; v < vectors; v++)                                                  \
                memcpy(&x[v], b + v * LANES, sizeof x[v]);                                                   \
            UNROLL_FOR(6, unsigned i = 0; i < rows; i++) {                                                   \
                const vector_##name each = a[i * t->row_a] - (vector_##name){0};                             \
                UNROLL_FOR(2, unsigned v = 0; v < vectors; v++)                                              \
                    sum[i][v] = add_product_##name(each, x[v], sum[i][v]);                                   \
            }                                                                                                \
        }                                                                                                    \
        UNROLL_FOR(6, unsigned i = 0; i < rows; i++)                                                         \
            UNROLL_FOR(2, unsigned v = 0; v < vectors; v++)                                                  \
                STORE_SOME(y + i * row_y + v * LANES, sum[i][v], bits >> v * LANES);                         \
    }                                                                                                        \
    static void tile_##name(const lnt_number_tile *t)                                                        \
    {                                                                                                        \
        const type *a = t->a;                                                                                \
        type *y = t->y;                                                                                      \
        const uint64_t bits = ((uint64_t)1 << t->columns) - 1;                                               \
        const bool half = (halves) && t->columns <= VECTOR / (int64_t)sizeof(type);                          \
        for (int64_t left = t->rows, n; left > 0; left -= n, a += n * t->row_a, y += n * t->row_y) {         \
            n = left >= LNT_NUMBER_ROWS ? LNT_NUMBER_ROWS : left > 1 ? 2 : 1;                                \
            if (n == LNT_NUMBER_ROWS && half)                                                                \
                name##_rows(t, bits, a, y, LNT_NUMBER_ROWS, 1);                                              \
            else if (n == LNT_NUMBER_ROWS)                                                                   \
                name##_rows(t, bits, a, y, LNT_NUMBER_ROWS, VECTORS);                                        \
            else if (n == 2) /* the last rows of a matrix */                                                 \
                name##_rows(t, bits, a, y, 2, VECTORS);                                                      \
            else                                                                                             \
                name##_rows(t, bits, a, y, 1, VECTORS);                                                      \
        }                                                                                                    \
    }
TILE(f64, double, LNT_VL == 16)
TILE(i32, uint32_t, false)
TILE(i64, uint64_t, false)

const lnt_number_kernels LNT_SIMD_NAME(lnt_number) = {.panel_bytes = VECTORS * VECTOR,
                                                      .masks = MASKS_COLUMNS,
                                                      .f64 = tile_f64,
                                                      .i32 = tile_i32,
                                                      .i64 = tile_i64};
