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

#define TILE(name, type, halves)                                                                             \
    LNT_INLINE void name##_rows(const lnt_number_tile *t, const unsigned rows, const unsigned vectors)       \
    {                                                                                                        \
        enum { LANES = VECTOR / sizeof(type) };                                                              \
        const type *a = t->a, *b = t->b;                                                                     \
        vector_##name sum[LNT_NUMBER_ROWS][VECTORS] = {{{0}}};                                               \
        if (t->accumulate)                                                                                   \
            UNROLL_FOR(6, unsigned i = 0; i < rows; i++)                                                     \
                UNROLL_FOR(2, unsigned v = 0; v < vectors; v++)                                              \
                    memcpy(&sum[i][v], (type *)t->y + i * t->row_y + v * LANES, sizeof sum[i][v]);           \
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
                memcpy((type *)t->y + i * t->row_y + v * LANES, &sum[i][v], sizeof sum[i][v]);               \
    }                                                                                                        \
    static void tile_##name(const lnt_number_tile *t)                                                        \
    {                                                                                                        \
        lnt_number_tile part = *t;                                                                           \
        if (t->rows == LNT_NUMBER_ROWS) {                                                                    \
            if (halves && t->half)                                                                           \
                name##_rows(t, LNT_NUMBER_ROWS, 1);                                                          \
            else                                                                                             \
                name##_rows(t, LNT_NUMBER_ROWS, VECTORS);                                                    \
            return;                                                                                          \
        }                                                                                                    \
        for (unsigned i = 0; i < t->rows; i += part.rows) { /* the last rows of a matrix, two at a time */   \
            part.a = (const type *)t->a + i * t->row_a;                                                      \
            part.y = (type *)t->y + i * t->row_y;                                                            \
            part.rows = t->rows - i > 1 ? 2 : 1;                                                             \
            if (part.rows == 2)                                                                              \
                name##_rows(&part, 2, VECTORS);                                                              \
            else                                                                                             \
                name##_rows(&part, 1, VECTORS);                                                              \
        }                                                                                                    \
    }
TILE(f64, double, LNT_VL == 16)
TILE(i32, uint32_t, false)
TILE(i64, uint64_t, false)

const lnt_number_kernels LNT_SIMD_NAME(lnt_number) = {
    .panel_bytes = VECTORS * VECTOR, .f64 = tile_f64, .i32 = tile_i32, .i64 = tile_i64};
