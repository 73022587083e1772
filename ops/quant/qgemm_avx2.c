/* qgemm_avx2.c — int8 GEMM at the avx2 level: operands widened to int16, products added in pairs. A
 * vector holds four columns of two partial sums each, which are joined at the end. */
#define LNT_SIMD_AVX2
#include "ops/quant/qgemm.h"
#include "ops/simd/simd.h"

#include "ops/quant/qdepthwise.inc.h"

#include <immintrin.h>
#include <string.h>

/* Half a panel of 6 rows, or a whole one of 3, keeps 12 accumulators in registers; CHUNK quads of the rows are widened
 * at a time, for all panels. */
enum { ROWS = 6, HALF = 8, FEW = 3, CHUNK = 128, PANELS = 4 };
_Static_assert(LNT_QPANEL == 2 * HALF, "this level's tile is two halves of 8 columns");

typedef struct wide_rows {
    int16_t row[ROWS][4 * CHUNK];
} wide_rows;

/* Columns of a panel, 4 for each of `vectors`, times n quads of the rows. */
static inline __attribute__((always_inline)) void columns_of_tile(const unsigned rows, const unsigned vectors,
                                                                  const wide_rows *a, const int8_t *panel,
                                                                  int64_t quads, int32_t *c, bool more)
{
    __m256i acc[ROWS][4];
#pragma GCC unroll 6
    for (unsigned r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (unsigned v = 0; v < vectors; v++)
            acc[r][v] = _mm256_setzero_si256();
    for (int64_t q = 0; q < quads; q++, panel += 4 * LNT_QPANEL) {
        __m256i b[4];
#pragma GCC unroll 4
        for (unsigned v = 0; v < vectors; v++)
            b[v] = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(panel + 16 * v)));
#pragma GCC unroll 6
        for (unsigned r = 0; r < rows; r++) {
            int64_t four;
            memcpy(&four, &a->row[r][4 * q], sizeof four);
            const __m256i x = _mm256_set1_epi64x(four);
#pragma GCC unroll 4
            for (unsigned v = 0; v < vectors; v++) {
                acc[r][v] = _mm256_add_epi32(acc[r][v], _mm256_madd_epi16(x, b[v]));
                /* Row after row: GCC would start all rows' products first and spill the accumulators. */
                __asm__ volatile("" : "+x"(acc[r][v]));
            }
        }
    }
#pragma GCC unroll 6
    for (unsigned r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (unsigned v = 0; v < vectors; v += 2) {
            /* hadd joins within halves of 128 bits: columns come out as 0 1 4 5 2 3 6 7. */
            const __m256i joined = _mm256_hadd_epi32(acc[r][v], acc[r][v + 1]);
            __m256i sums = _mm256_permute4x64_epi64(joined, _MM_SHUFFLE(3, 1, 2, 0));
            __m256i *to = (__m256i *)(c + r * LNT_QPANEL + 4 * v);
            if (more)
                sums = _mm256_add_epi32(sums, _mm256_loadu_si256(to));
            _mm256_storeu_si256(to, sums);
        }
}

/* n quads. */
static inline void widen(const uint8_t *src, int16_t *dst, int64_t n)
{
    for (; n >= 4; n -= 4, src += 16, dst += 16)
        _mm256_storeu_si256((__m256i *)dst, _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)src)));
    for (int four; n > 0; n--, src += 4, dst += 4) {
        memcpy(&four, src, sizeof four);
        _mm_storel_epi64((__m128i *)dst, _mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
    }
}

/* Runs of taps are widened one after the other until CHUNK quads are together, for all panels. */
static inline __attribute__((always_inline)) void tile_of(unsigned rows, const lnt_qproduct *p)
{
    wide_rows wide;
    const int64_t quads = p->taps * p->quads;
    int64_t tap = 0, at = 0; /* of the next quad to be widened */
    for (int64_t q = 0; q == 0 || q < quads; q += CHUNK) {
        const int64_t n = quads - q < CHUNK ? quads - q : CHUNK;
        for (int64_t done = 0, run; done < n; done += run) {
            run = p->quads - at < n - done ? p->quads - at : n - done;
            for (unsigned r = 0; r < rows; r++)
                widen(p->a[r] + p->tap_offset[tap] + 4 * at, wide.row[r] + 4 * done, run);
            at += run;
            if (at == p->quads) {
                at = 0;
                tap++;
            }
        }
        for (unsigned i = 0; i < p->panels; i++) {
            const int8_t *b = p->panel[i] + q * 4 * LNT_QPANEL;
            if (rows <= FEW) {
                columns_of_tile(rows, 4, &wide, b, n, p->c[i], q > 0);
                continue;
            }
            columns_of_tile(rows, 2, &wide, b, n, p->c[i], q > 0);
            columns_of_tile(rows, 2, &wide, b + 4 * HALF, n, p->c[i] + HALF, q > 0);
        }
    }
}

#include "ops/quant/qgemm_by_rows.inc.h"

const lnt_qgemm_kernels lnt_qgemm_avx2 = {
    .rows = ROWS, .rows_by = 1, .panels = PANELS, .fewer_panels = true, .tile = tile, .depthwise = depthwise};
