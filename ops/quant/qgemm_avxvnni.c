/* qgemm_avxvnni.c — int8 GEMM at the avxvnni level, of CPUs with dot products of bytes but no AVX-512: a quad of a
 * panel is two vectors. */
#define LNT_SIMD_AVX2
#include "ops/quant/qgemm.h"
#include "ops/simd/simd_lanes.h"

#include <immintrin.h>
#include <string.h>

/* 12 accumulators, a quad's two vectors and one of a row, of 16 registers. */
enum { ROWS = 6, HALF = 8 };
_Static_assert(LNT_QPANEL == 2 * HALF, "a panel's sums are two vectors of 8 lanes");

LNT_INLINE __m256i eight_columns(const int8_t *quad)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)quad);
}

LNT_INLINE void tile_of(const unsigned rows, const lnt_qproduct *p)
{
    const int8_t *panel = p->panel[0];
    __m256i acc[ROWS][2];
    UNROLL_FOR(6, unsigned r = 0; r < rows; r++)
        acc[r][0] = acc[r][1] = _mm256_setzero_si256();
    for (int64_t t = 0; t < p->taps; t++) {
        const uint8_t *a[ROWS];
        UNROLL_FOR(6, unsigned r = 0; r < rows; r++)
            a[r] = p->a[r] + p->tap_offset[t];
        for (int64_t q = 0; q < p->quads; q++, panel += 4 * LNT_QPANEL) {
            const __m256i b0 = eight_columns(panel), b1 = eight_columns(panel + 4 * HALF);
            UNROLL_FOR(6, unsigned r = 0; r < rows; r++) {
                int32_t four;
                memcpy(&four, a[r] + 4 * q, sizeof four);
                const __m256i x = _mm256_set1_epi32(four);
                acc[r][0] = _mm256_dpbusd_avx_epi32(acc[r][0], x, b0);
                acc[r][1] = _mm256_dpbusd_avx_epi32(acc[r][1], x, b1);
            }
        }
    }
    UNROLL_FOR(6, unsigned r = 0; r < rows; r++)
        for (unsigned i = 0; i < 2; i++)
            _mm256_storeu_si256((__m256i *)(void *)(p->c[0] + r * LNT_QPANEL + i * HALF), acc[r][i]);
}

#include "ops/quant/qgemm_by_rows.inc.h"

/* No dot products: a tap of each channel. */
static void depthwise(const lnt_qdepthwise *d)
{
    lnt_qgemm_avx2.depthwise(d);
}

const lnt_qgemm_kernels lnt_qgemm_avxvnni = {
    .rows = ROWS, .rows_by = 1, .panels = 1, .tile = tile, .depthwise = depthwise};
