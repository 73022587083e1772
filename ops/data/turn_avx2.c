/* turn_avx2.c — transposes of elements of 4 bytes (ops/copy.h), and of halves that become floats, for avx2 and the
 * levels above. */
#include "ops/copy.h"

#include "base/lnt_assert.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 8, HALF = LANES / 2 };

/* dst[r][c] = src[c][r] of HALF rows of LANES columns: columns four apart meet in one vector, pairs are interleaved,
 * then pairs of pairs. */
static inline void half_square(char *dst, int64_t dst_step, const char *src, int64_t src_step)
{
    __m256 a[HALF];
    _Pragma("GCC unroll 4") for (int64_t i = 0; i < HALF; i++)
    {
        const float *from = (const void *)(src + i * src_step),
                    *below = (const void *)(src + (i + HALF) * src_step);
        a[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), _mm_loadu_ps(below), 1);
    }
    const __m256d low = _mm256_castps_pd(_mm256_unpacklo_ps(a[0], a[1]));
    const __m256d high = _mm256_castps_pd(_mm256_unpackhi_ps(a[0], a[1]));
    const __m256d next_low = _mm256_castps_pd(_mm256_unpacklo_ps(a[2], a[3]));
    const __m256d next_high = _mm256_castps_pd(_mm256_unpackhi_ps(a[2], a[3]));
    _mm256_storeu_pd((void *)dst, _mm256_unpacklo_pd(low, next_low));
    _mm256_storeu_pd((void *)(dst + dst_step), _mm256_unpackhi_pd(low, next_low));
    _mm256_storeu_pd((void *)(dst + 2 * dst_step), _mm256_unpacklo_pd(high, next_high));
    _mm256_storeu_pd((void *)(dst + 3 * dst_step), _mm256_unpackhi_pd(high, next_high));
}

/* Rows of two columns, one after the other. The last ones begin early enough to fill vectors. */
static void mix_two(char *dst, const char *src, int64_t src_step, int64_t rows)
{
    for (int64_t i = 0; i < rows; i += LANES) {
        const int64_t r = i + LANES < rows ? i : rows - LANES;
        const __m256 a = _mm256_loadu_ps((const void *)(src + 4 * r));
        const __m256 b = _mm256_loadu_ps((const void *)(src + src_step + 4 * r));
        const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
        _mm256_storeu_ps((void *)(dst + 8 * r), _mm256_permute2f128_ps(low, high, 0x20));
        _mm256_storeu_ps((void *)(dst + 8 * r + 32), _mm256_permute2f128_ps(low, high, 0x31));
    }
}

/* The last rows and columns begin early enough to be as many. */
void lnt_turn_avx2(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,
                   int64_t columns)
{
    LNT_ASSERT(rows >= 0 && columns >= 0);
    if (rows >= LANES && columns == 2 && dst_step == 8) {
        mix_two(dst, src, src_step, rows);
        return;
    }
    if (rows < HALF || columns < LANES) {
        lnt_turn_scalar(dst, dst_step, src, src_step, rows, columns);
        return;
    }
    for (int64_t i = 0; i < rows; i += LANES)
        for (int64_t j = 0; j < columns; j += LANES) {
            const int64_t c = j + LANES < columns ? j : columns - LANES;
            for (int64_t half = i; half < i + LANES && half < rows; half += HALF) {
                const int64_t r = half + HALF < rows ? half : rows - HALF;
                half_square(dst + r * dst_step + c * 4, dst_step, src + c * src_step + r * 4, src_step);
            }
        }
}

/* dst[r][c] = src[c][r] of a square of halves: three times rows four apart are interleaved. */
static inline void widen_square(char *dst, int64_t dst_step, const char *src, int64_t src_step)
{
    __m128i a[LANES], b[LANES];
    _Pragma("GCC unroll 8") for (int64_t i = 0; i < LANES; i++) a[i] =
        _mm_loadu_si128((const void *)(src + i * src_step));
    _Pragma("GCC unroll 3") for (int round = 0; round < 3; round++)
    {
        _Pragma("GCC unroll 4") for (int i = 0; i < LANES / 2; i++)
        {
            b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + LANES / 2]);
            b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + LANES / 2]);
        }
        memcpy(a, b, sizeof a);
    }
    _Pragma("GCC unroll 8") for (int64_t i = 0; i < LANES; i++)
        _mm256_storeu_ps((void *)(dst + i * dst_step), _mm256_cvtph_ps(a[i]));
}

/* Cache lines of either side are read, and written, one after the other. */
void lnt_widen_avx2(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,
                    int64_t columns)
{
    enum { LINE = 2 * LANES /* floats */ };
    LNT_ASSERT(rows >= LANES && columns >= LANES);
    for (int64_t j = 0; j < columns; j += LINE)
        for (int64_t i = 0; i < rows; i += LANES) {
            const int64_t r = i + LANES < rows ? i : rows - LANES;
            for (int64_t half = j; half < j + LINE && half < columns; half += LANES) {
                const int64_t c = half + LANES < columns ? half : columns - LANES;
                widen_square(dst + r * dst_step + c * 4, dst_step, src + c * src_step + r * 2, src_step);
            }
        }
}
