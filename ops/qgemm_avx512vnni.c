/* qgemm_avx512vnni.c — products of bytes at the avx512vnni level: a quad of a panel is one vector, a row of
 * sums another. */
#include "ops/qgemm.h"

#include <immintrin.h>
#include <string.h>

enum { ROWS = 14 };

static inline __attribute__((always_inline)) void tile_of(unsigned rows, const uint8_t *const *a,
                                                          const int8_t *panel, int64_t quads, int32_t *c)
{
    __m512i acc[ROWS];
#pragma GCC unroll 14
    for (unsigned r = 0; r < rows; r++)
        acc[r] = _mm512_setzero_si512();
    for (int64_t q = 0; q < quads; q++) {
        const __m512i b = _mm512_loadu_si512(panel + q * 4 * LNT_QPANEL);
#pragma GCC unroll 14
        for (unsigned r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, a[r] + 4 * q, sizeof four);
            acc[r] = _mm512_dpbusd_epi32(acc[r], _mm512_set1_epi32(four), b);
        }
    }
#pragma GCC unroll 14
    for (unsigned r = 0; r < rows; r++)
        _mm512_storeu_si512(c + r * LNT_QPANEL, acc[r]);
}

static void tile(const uint8_t *const *a, unsigned rows, const int8_t *panel, int64_t quads, int32_t *c)
{
    switch (rows) {
#define ROWS_CASE(n)                                                                                         \
    case n: tile_of(n, a, panel, quads, c); return;
        ROWS_CASE(1)
        ROWS_CASE(2)
        ROWS_CASE(3)
        ROWS_CASE(4)
        ROWS_CASE(5)
        ROWS_CASE(6)
        ROWS_CASE(7)
        ROWS_CASE(8)
        ROWS_CASE(9)
        ROWS_CASE(10)
        ROWS_CASE(11)
        ROWS_CASE(12)
        ROWS_CASE(13)
        ROWS_CASE(14)
#undef ROWS_CASE
    default: return;
    }
}

const lnt_qgemm_kernels lnt_qgemm_avx512vnni = {.rows = ROWS, .tile = tile};
