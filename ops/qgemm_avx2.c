/* qgemm_avx2.c — products of bytes at the avx2 level: bytes widened to int16, products added in pairs. A
 * vector holds four columns of two partial sums each, which are joined at the end. */
#include "ops/qgemm.h"

#include <immintrin.h>
#include <string.h>

enum { ROWS = 6, HALF = 8 }; /* half a panel of 6 rows keeps 12 sums in registers */

static inline __attribute__((always_inline)) void half_tile(unsigned rows, const uint8_t *const *a,
                                                            const int8_t *panel, int64_t quads, int32_t *c)
{
    __m256i acc[ROWS][2];
#pragma GCC unroll 6
    for (unsigned r = 0; r < rows; r++)
        acc[r][0] = acc[r][1] = _mm256_setzero_si256();
    for (int64_t q = 0; q < quads; q++, panel += 4 * LNT_QPANEL) {
        const __m256i b0 = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)panel));
        const __m256i b1 = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(panel + 16)));
#pragma GCC unroll 6
        for (unsigned r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, a[r] + 4 * q, sizeof four);
            const __m256i x = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
            acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(x, b0));
            acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(x, b1));
            /* Row after row: GCC would start all rows' products first and spill the sums (2.3 times slower). */
            __asm__ volatile("" : "+x"(acc[r][0]), "+x"(acc[r][1]));
        }
    }
#pragma GCC unroll 6
    for (unsigned r = 0; r < rows; r++) {
        /* hadd joins within halves of 128 bits: columns come out as 0 1 4 5 2 3 6 7. */
        const __m256i sums = _mm256_hadd_epi32(acc[r][0], acc[r][1]);
        _mm256_storeu_si256((__m256i *)(c + r * LNT_QPANEL),
                            _mm256_permute4x64_epi64(sums, _MM_SHUFFLE(3, 1, 2, 0)));
    }
}

static inline __attribute__((always_inline)) void tile_of(unsigned rows, const uint8_t *const *a,
                                                          const int8_t *panel, int64_t quads, int32_t *c)
{
    half_tile(rows, a, panel, quads, c);
    half_tile(rows, a, panel + 4 * HALF, quads, c + HALF);
}

static void tile(const uint8_t *const *a, unsigned rows, const int8_t *panel, int64_t quads, int32_t *c)
{
    switch (rows) {
    case 1: tile_of(1, a, panel, quads, c); return;
    case 2: tile_of(2, a, panel, quads, c); return;
    case 3: tile_of(3, a, panel, quads, c); return;
    case 4: tile_of(4, a, panel, quads, c); return;
    case 5: tile_of(5, a, panel, quads, c); return;
    default: tile_of(6, a, panel, quads, c); return;
    }
}

const lnt_qgemm_kernels lnt_qgemm_avx2 = {.rows = ROWS, .tile = tile};
