/* int8_rows_avx512.c — the kernels of int8 rows at the avx512 level. */
#define LNT_SIMD_AVX512
#define PACK pack
#include "ops/rows/int8_rows.h"

#include <immintrin.h>

/* Quads of columns are brought into such an order that unpacking makes whole vectors of each panel. */
static void pack(const uint8_t *b, size_t step, size_t rows, size_t columns, uint8_t flip, int8_t *to,
                 int32_t *sums)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i flips = _mm512_set1_epi8((char)flip);
    const __mmask64 lanes = ~(__mmask64)0 >> (LNT_PACK_PANELS * LNT_QPANEL - columns);
    const size_t panel = (rows + 3) / 4 * 4 * LNT_QPANEL;
    __m512i sum[LNT_PACK_PANELS] = {_mm512_setzero_si512()};
    for (size_t k = 0; k < rows; k += 4, to += 4 * LNT_QPANEL) {
        __m512i x[4];
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++, b += step) {
            const __mmask64 some = k + i < rows ? lanes : 0;
            x[i] = _mm512_maskz_loadu_epi8(some, b);
            x[i] = _mm512_permutexvar_epi32(order, _mm512_maskz_add_epi8(some, x[i], flips));
        }
        const __m512i low = _mm512_unpacklo_epi8(x[0], x[1]), high = _mm512_unpackhi_epi8(x[0], x[1]),
                      low_rest = _mm512_unpacklo_epi8(x[2], x[3]),
                      high_rest = _mm512_unpackhi_epi8(x[2], x[3]);
        x[0] = _mm512_unpacklo_epi16(low, low_rest);
        x[1] = _mm512_unpackhi_epi16(low, low_rest);
        x[2] = _mm512_unpacklo_epi16(high, high_rest);
        x[3] = _mm512_unpackhi_epi16(high, high_rest);
#pragma GCC unroll 4
        for (size_t i = 0; i < LNT_PACK_PANELS; i++) {
            const __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi8(1), x[i]);
            if (i * LNT_QPANEL < columns)
                _mm512_storeu_si512(to + i * panel, x[i]);
            sum[i] = _mm512_add_epi32(sum[i], _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
        }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < LNT_PACK_PANELS; i++)
        if (i * LNT_QPANEL < columns)
            _mm512_storeu_si512(sums + i * LNT_QPANEL, sum[i]);
}

#include "ops/rows/int8_rows.inc.h"
