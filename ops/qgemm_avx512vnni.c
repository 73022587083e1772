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

/* One row waits for each product before it adds the next: four quads at a time do not wait for each other. */
static void one_row(const uint8_t *a, const int8_t *panel, int64_t quads, int32_t *c)
{
    enum { AT_ONCE = 4, AHEAD = 2048 };
    __m512i acc[AT_ONCE];
    int64_t q = 0;
#pragma GCC unroll 4
    for (unsigned i = 0; i < AT_ONCE; i++)
        acc[i] = _mm512_setzero_si512();
    for (; q + AT_ONCE <= quads; q += AT_ONCE)
#pragma GCC unroll 4
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const int8_t *b = panel + (q + i) * 4 * LNT_QPANEL;
            int32_t four;
            memcpy(&four, a + 4 * (q + i), sizeof four);
            _mm_prefetch((const char *)b + AHEAD, _MM_HINT_T0);
            acc[i] = _mm512_dpbusd_epi32(acc[i], _mm512_set1_epi32(four), _mm512_loadu_si512(b));
        }
    for (; q < quads; q++) {
        int32_t four;
        memcpy(&four, a + 4 * q, sizeof four);
        acc[0] = _mm512_dpbusd_epi32(acc[0], _mm512_set1_epi32(four),
                                     _mm512_loadu_si512(panel + q * 4 * LNT_QPANEL));
    }
    _mm512_storeu_si512(c,
                        _mm512_add_epi32(_mm512_add_epi32(acc[0], acc[1]), _mm512_add_epi32(acc[2], acc[3])));
}

static void tile(const uint8_t *const *a, unsigned rows, const int8_t *panel, int64_t quads, int32_t *c)
{
    switch (rows) {
#define ROWS_CASE(n)                                                                                         \
    case n: tile_of(n, a, panel, quads, c); return;
    case 1:
        one_row(a[0], panel, quads, c);
        return;
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
