/* qgemm_avx512vnni.c — int8 GEMM at the avx512vnni level: a quad of a panel is one vector, a row of
 * accumulators another. */
#include "ops/quant/qgemm_driver.h"

#include <immintrin.h>
#include <string.h>

enum {
    ROWS = 12,
    PANELS = 2,
    AT_ONCE = 4, /* quads of one panel, half as many of two */
    PARTS = 4    /* vectors of accumulators that are narrowed to one of int8 */
};
_Static_assert(LNT_QPANEL * sizeof(int32_t) == sizeof(__m512i), "a panel's sums are one vector of 16 lanes");

static inline __attribute__((always_inline)) __m512i four_of(const uint8_t *a)
{
    int32_t four;
    memcpy(&four, a, sizeof four);
    return _mm512_set1_epi32(four);
}

typedef struct accumulators {
    __m512i row[ROWS][PANELS];
} accumulators;

/* lnt_requantize of two vectors of accumulators to int16, by saturating instructions: conversions beyond int32, and
 * of NaN, give INT32_MIN. Parts of 128 bits of a and b alternate. */
static inline __attribute__((always_inline)) __m512i requantize_two(__m512i a, __m512i b, __m512 scale_a,
                                                                    __m512 scale_b, __m512i zero)
{
    const __m512 most = _mm512_set1_ps(1e6f);
    a = _mm512_cvtps_epi32(_mm512_min_ps(most, _mm512_mul_ps(_mm512_cvtepi32_ps(a), scale_a)));
    b = _mm512_cvtps_epi32(_mm512_min_ps(most, _mm512_mul_ps(_mm512_cvtepi32_ps(b), scale_b)));
    return _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero);
}

static inline __attribute__((always_inline)) __m512i narrow_to_8(__m512i low, __m512i high, bool is_signed)
{
    return is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
}

/* Requantizes rows [first, first + n): up to four vectors of accumulators to as many parts of 16 int8. */
static inline __attribute__((always_inline)) void
store_rows(unsigned first, unsigned n, unsigned panels, const accumulators *acc, const lnt_requantize_tile *b)
{
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i zero = _mm512_set1_epi16((int16_t)b->zero);
    __m512i v[PARTS];
    __m512 scale[PARTS];
#pragma GCC unroll 4
    for (unsigned i = 0; i < PARTS; i++) {
        const unsigned at = i < n * panels ? i : n * panels - 1;
        v[i] = acc->row[first + at / panels][at % panels];
        scale[i] = _mm512_loadu_ps(b->scale + at % panels * LNT_QPANEL);
    }
    const __m512i low = requantize_two(v[0], v[1], scale[0], scale[1], zero);
    const __m512i high = n * panels > 2 ? requantize_two(v[2], v[3], scale[2], scale[3], zero) : low;
    const __m512i bytes = _mm512_permutexvar_epi32(in_order, narrow_to_8(low, high, b->is_signed));
    uint8_t *y[PARTS];
#pragma GCC unroll 4
    for (unsigned i = 0; i < n; i++)
        y[i] = b->y + b->out[first + i];
    if (panels == 2) {
        _mm256_storeu_si256((__m256i *)(void *)y[0], _mm512_castsi512_si256(bytes));
        if (n > 1)
            _mm256_storeu_si256((__m256i *)(void *)y[1], _mm512_extracti64x4_epi64(bytes, 1));
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)y[0], _mm512_castsi512_si128(bytes));
    if (n > 1)
        _mm_storeu_si128((__m128i *)(void *)y[1], _mm512_extracti32x4_epi32(bytes, 1));
    if (n > 2)
        _mm_storeu_si128((__m128i *)(void *)y[2], _mm512_extracti32x4_epi32(bytes, 2));
    if (n > 3)
        _mm_storeu_si128((__m128i *)(void *)y[3], _mm512_extracti32x4_epi32(bytes, 3));
}

/* Stores the accumulators of a tile, requantized if asked for. */
static inline __attribute__((always_inline)) void store(unsigned rows, unsigned panels,
                                                        const accumulators *acc, const lnt_qproduct *p)
{
    const unsigned at_once = PARTS / panels;
    if (p->requantize) {
#pragma GCC unroll 6
        for (unsigned r = 0; r < rows; r += at_once)
            store_rows(r, rows - r < at_once ? rows - r : at_once, panels, acc, p->requantize);
        return;
    }
#pragma GCC unroll 12
    for (unsigned r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (unsigned i = 0; i < panels; i++)
            _mm512_storeu_si512(p->c[i] + r * LNT_QPANEL, acc->row[r][i]);
}

/* n quads of a run of all rows, `at` bytes from their start, with those of the panels. */
static inline __attribute__((always_inline)) void add_quads(unsigned rows, unsigned panels, unsigned n,
                                                            accumulators *acc, const uint8_t *const *a,
                                                            ptrdiff_t at, const int8_t *const *panel)
{
    __m512i b[AT_ONCE][PANELS];
#pragma GCC unroll 4
    for (unsigned i = 0; i < n; i++)
#pragma GCC unroll 2
        for (unsigned p = 0; p < panels; p++)
            b[i][p] = _mm512_loadu_si512(panel[p] + i * 4 * LNT_QPANEL);
#pragma GCC unroll 12
    for (unsigned r = 0; r < rows; r++) {
        const uint8_t *x = a[r] + at; /* there are not as many registers as rows */
#pragma GCC unroll 4
        for (unsigned i = 0; i < n; i++) {
            const __m512i four = four_of(x + 4 * i);
#pragma GCC unroll 2
            for (unsigned p = 0; p < panels; p++)
                acc->row[r][p] = _mm512_dpbusd_epi32(acc->row[r][p], four, b[i][p]);
        }
    }
}

/* Initial accumulators of a panel: 0, or the accumulator biases where they are requantized. */
static inline __attribute__((always_inline)) __m512i start_of(const lnt_qproduct *p, unsigned panel)
{
    return p->requantize ? _mm512_loadu_si512(p->requantize->acc_bias + panel * LNT_QPANEL)
                         : _mm512_setzero_si512();
}

static inline __attribute__((always_inline)) void tile_of(unsigned rows, unsigned panels,
                                                          const lnt_qproduct *p)
{
    const unsigned at_once = AT_ONCE / panels;
    accumulators acc;
    const int8_t *panel[PANELS] = {p->panel[0], p->panel[panels - 1]};
    const int8_t *ahead = p->ahead ? p->ahead : p->panel[0];
#pragma GCC unroll 12
    for (unsigned r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (unsigned i = 0; i < panels; i++)
            acc.row[r][i] = start_of(p, i);
    for (int64_t t = 0; t < p->taps; t++) {
        const ptrdiff_t at = p->tap_offset[t];
        int64_t q = 0;
        for (; q + at_once <= p->quads; q += at_once) {
            add_quads(rows, panels, at_once, &acc, p->a, at + 4 * q, panel);
            for (unsigned i = 0; i < at_once; i++)
                _mm_prefetch((const char *)ahead + (panel[0] - p->panel[0]) + i * 4 * LNT_QPANEL,
                             _MM_HINT_T0);
            panel[0] += at_once * 4 * LNT_QPANEL;
            panel[1] += at_once * 4 * LNT_QPANEL;
        }
        for (; q < p->quads; q++) {
            add_quads(rows, panels, 1, &acc, p->a, at + 4 * q, panel);
            panel[0] += 4 * LNT_QPANEL;
            panel[1] += 4 * LNT_QPANEL;
        }
    }
    store(rows, panels, &acc, p);
}

/* A quad of one row with those of the panels, which are gone past. */
static inline __attribute__((always_inline)) void add_quad(unsigned panels, __m512i *acc, const uint8_t *a,
                                                           const int8_t **panel)
{
    enum { AHEAD = 2048 };
    const __m512i four = four_of(a);
#pragma GCC unroll 2
    for (unsigned p = 0; p < panels; p++) {
        _mm_prefetch((const char *)panel[p] + AHEAD, _MM_HINT_T0);
        acc[p] = _mm512_dpbusd_epi32(acc[p], four, _mm512_loadu_si512(panel[p]));
        panel[p] += 4 * LNT_QPANEL;
    }
}

/* One row waits for each product before it adds the next: four quads at a time do not wait for each other. */
static inline __attribute__((always_inline)) void one_row(unsigned panels, const lnt_qproduct *p)
{
    __m512i acc[AT_ONCE][PANELS];
    const int8_t *panel[PANELS] = {p->panel[0], p->panel[panels - 1]};
#pragma GCC unroll 4
    for (unsigned i = 0; i < AT_ONCE; i++)
#pragma GCC unroll 2
        for (unsigned j = 0; j < PANELS; j++)
            acc[i][j] = i > 0 || j >= panels ? _mm512_setzero_si512() : start_of(p, j);
    for (int64_t t = 0; t < p->taps; t++) {
        const uint8_t *a = p->a[0] + p->tap_offset[t];
        int64_t q = 0;
        for (; q + AT_ONCE <= p->quads; q += AT_ONCE)
#pragma GCC unroll 4
            for (unsigned i = 0; i < AT_ONCE; i++)
                add_quad(panels, acc[i], a + 4 * (q + i), panel);
        for (; q < p->quads; q++)
            add_quad(panels, acc[0], a + 4 * q, panel);
    }
    accumulators total;
#pragma GCC unroll 2
    for (unsigned i = 0; i < panels; i++)
        total.row[0][i] =
            _mm512_add_epi32(_mm512_add_epi32(acc[0][i], acc[1][i]), _mm512_add_epi32(acc[2][i], acc[3][i]));
    store(1, panels, &total, p);
}

/* A tile without its first rows. requantize: memory for its requantization. */
static lnt_qproduct rows_behind(const lnt_qproduct *p, unsigned rows, lnt_requantize_tile *requantize)
{
    lnt_qproduct rest = *p;
    rest.rows -= rows;
    rest.a += rows;
    for (unsigned i = 0; i < p->panels; i++)
        rest.c[i] += rows * LNT_QPANEL;
    if (p->requantize) {
        *requantize = *p->requantize;
        requantize->out += rows;
        rest.requantize = requantize;
    }
    return rest;
}

/* The first rows of a tile, as many as there is code for: returns how many. */
static unsigned one_panel(const lnt_qproduct *p)
{
    switch (p->rows) {
    case 1: one_row(1, p); return 1;
    case 2:
    case 3: tile_of(2, 1, p); return 2;
    case 12: tile_of(12, 1, p); return 12;
    default: break;
    }
    if (p->rows < 8) {
        tile_of(4, 1, p);
        return 4;
    }
    tile_of(8, 1, p);
    return 8;
}

static unsigned two_panels(const lnt_qproduct *p)
{
    switch (p->rows / 2) {
    case 0: one_row(PANELS, p); return 1;
    case 1: tile_of(2, PANELS, p); return 2;
    case 2: tile_of(4, PANELS, p); return 4;
    case 3: tile_of(6, PANELS, p); return 6;
    case 4: tile_of(8, PANELS, p); return 8;
    case 5: tile_of(10, PANELS, p); return 10;
    default: tile_of(12, PANELS, p); return 12;
    }
}

static void tile(const lnt_qproduct *p)
{
    lnt_requantize_tile requantize;
    const unsigned rows = p->panels == 1 ? one_panel(p) : two_panels(p);
    if (rows == p->rows)
        return;
    const lnt_qproduct rest = rows_behind(p, rows, &requantize);
    tile(&rest);
}

/* ---- results of 32 bits ---- */

enum { FEW = 4, SHORT = 32, VERY_SHORT = 8 /* quads of a panel */ };

/* What becomes of the accumulators of some columns. */
typedef struct columns_end {
    __m512i start[PANELS], zeros[PANELS];
    __m512 scale[PANELS], bias[PANELS], low, high;
    __mmask16 lanes[PANELS];
} columns_end;

static inline __attribute__((always_inline)) columns_end end_of(const lnt_integer_tile *to, unsigned panels)
{
    columns_end e = {.low = _mm512_set1_ps(to->low), .high = _mm512_set1_ps(to->high)};
#pragma GCC unroll 2
    for (unsigned i = 0; i < panels; i++) {
        const unsigned at = i * LNT_QPANEL, left = to->columns - at;
        e.lanes[i] = (__mmask16)(left < LNT_QPANEL ? (1u << left) - 1 : 0xffff);
        e.start[i] = _mm512_mullo_epi32(_mm512_set1_epi32(to->times), _mm512_loadu_si512(to->acc_bias + at));
        e.zeros[i] = to->row ? _mm512_loadu_si512(to->zeros + at) : _mm512_setzero_si512();
        e.scale[i] = to->scale ? _mm512_mul_ps(_mm512_set1_ps(to->a_scale),
                                               _mm512_maskz_loadu_ps(e.lanes[i], to->scale + at))
                               : _mm512_setzero_ps();
        e.bias[i] = to->bias ? _mm512_maskz_loadu_ps(e.lanes[i], to->bias + at) : _mm512_setzero_ps();
    }
    return e;
}

/* What the sums of row r begin with. */
static inline __attribute__((always_inline)) __m512i start_row(const columns_end *e, unsigned i,
                                                               const int32_t *sums, unsigned r)
{
    const __m512i sum = _mm512_set1_epi32(sums ? sums[r] : 0);
    return _mm512_sub_epi32(e->start[i], _mm512_mullo_epi32(sum, e->zeros[i]));
}

static inline __attribute__((always_inline)) void end_row(const columns_end *e, unsigned i, bool floats,
                                                          __m512i v, int32_t *y)
{
    if (floats) {
        const __m512 x = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(v), e->scale[i]), e->bias[i]);
        v = _mm512_castps_si512(_mm512_min_ps(e->high, _mm512_max_ps(e->low, x)));
    }
    _mm512_mask_storeu_epi32(y + i * LNT_QPANEL, e->lanes[i], v);
}

/* FEW rows after the other, the last ones early enough to be as many. */
static inline __attribute__((always_inline)) void integers_of(unsigned panels, const lnt_qproduct *p,
                                                              const lnt_integer_tile *to, unsigned first)
{
    const columns_end e = end_of(to, panels);
    const bool floats = to->scale;
    const int32_t *const sums = to->row;
    int32_t *const y = to->y; /* out of reach of the stores, as are the others */
    for (unsigned row = 0; row < p->rows; row += FEW) {
        const unsigned at = row + FEW <= p->rows ? row : p->rows - FEW;
        const int64_t *out = to->out + first + at;
        const int8_t *panel[PANELS] = {p->panel[0], p->panel[panels - 1]};
        accumulators acc;
#pragma GCC unroll 4
        for (unsigned r = 0; r < FEW; r++)
#pragma GCC unroll 2
            for (unsigned i = 0; i < panels; i++)
                acc.row[r][i] = start_row(&e, i, sums, first + at + r);
        for (int64_t q = 0; q < p->quads; q++) {
            add_quads(FEW, panels, 1, &acc, p->a + at, p->tap_offset[0] + 4 * q, panel);
            panel[0] += 4 * LNT_QPANEL;
            panel[1] += 4 * LNT_QPANEL;
#pragma GCC unroll 4
            for (unsigned r = 0; r < FEW; r++)
#pragma GCC unroll 2
                for (unsigned i = 0; i < panels; i++)
                    __asm__("" : "+v"(acc.row[r][i])); /* GCC would copy them */
        }
#pragma GCC unroll 4
        for (unsigned r = 0; r < FEW; r++)
#pragma GCC unroll 2
            for (unsigned i = 0; i < panels; i++)
                end_row(&e, i, floats, acc.row[r][i], y + out[r]);
    }
}

static void few_by_few(const lnt_qproduct *p, const lnt_integer_tile *to, unsigned first)
{
    if (p->panels == 1)
        integers_of(1, p, to, first);
    else
        integers_of(PANELS, p, to, first);
}

/* Rows that are computed twice cost more than the sums in memory do, unless these are few or the rows very short. */
static bool integers(const lnt_qproduct *p, const lnt_integer_tile *to, unsigned first)
{
    const unsigned rows = (p->rows + FEW - 1) / FEW * FEW;
    if (p->rows < FEW || p->taps > 1 || p->quads > (5 * rows > 6 * p->rows ? VERY_SHORT : SHORT) * p->panels)
        return false;
    few_by_few(p, to, first);
    return true;
}

enum {
    SOME = 64,   /* rows that are described at once, */
    STREAMS = 8, /* multiplied together; all, unless results lie in a few sets of the first-level cache: */
    ALIKE = 256  /* a multiple of so many columns apart */
};

/* All columns of rows that are described. */
static void thin_rows(const lnt_qthin *t, lnt_qproduct *p, lnt_integer_tile *to)
{
    const size_t panel_bytes = (size_t)p->quads * 4 * LNT_QPANEL;
    int32_t *const y = to->y;
    for (size_t n = 0; n < t->columns; n += p->panels * LNT_QPANEL) {
        p->panels = t->columns - n > LNT_QPANEL ? PANELS : 1;
        p->panel[0] = t->panels + n / LNT_QPANEL * panel_bytes;
        p->panel[1] = p->panel[0] + panel_bytes;
        to->columns = (unsigned)(t->columns - n);
        to->acc_bias = t->sums + n;
        to->zeros = t->zeros + n;
        to->y = y + n;
        few_by_few(p, to, 0);
    }
}

/* Rows of whole quads are read in place. */
static void thin(const lnt_qthin *t)
{
    const size_t bytes = (t->depth + 3) / 4 * 4;
    const bool direct = bytes == t->depth && !t->flip;
    uint8_t copy[SOME * LNT_QTHIN];
    const uint8_t *a[SOME];
    int64_t out[SOME];
    int32_t sums[SOME];
    lnt_qproduct p = {.tap_offset = lnt_qone_run, .taps = 1, .quads = (int64_t)bytes / 4};
    lnt_integer_tile to = {.out = out, .times = (int32_t)(0 - (uint32_t)t->zero)};
    const int32_t taken = (int32_t)((uint32_t)t->depth * (uint32_t)t->zero);
    for (size_t r = 0; r < SOME; r++)
        out[r] = (int64_t)(r * t->ld);
    const size_t most = t->ld % ALIKE == 0 ? STREAMS : SOME;
    for (size_t row = 0; row < t->rows; row += SOME) {
        size_t rows = t->rows - row < SOME ? t->rows - row : SOME;
        const uint8_t *from = t->a + row * t->depth;
        if (!direct)
            lnt_qflip_rows(from, (int64_t)rows, (int64_t)t->depth, t->flip, copy);
        from = direct ? from : copy;
        if (t->has_zeros)
            lnt_int8_avx512.sum_rows(from, (int64_t)bytes, (unsigned)rows, taken, sums);
        for (size_t r = 0; r < rows; r++)
            a[r] = from + r * bytes;
        for (; rows < FEW; rows++) { /* the last row as often as FEW want one */
            a[rows] = a[rows - 1];
            out[rows] = out[rows - 1];
            sums[rows] = sums[rows - 1];
        }
        for (size_t begin = 0; begin < rows; begin += most) {
            const size_t at = begin + FEW <= rows ? begin : rows - FEW;
            p.a = a + at;
            p.rows = (unsigned)(rows - at < most ? rows - at : most);
            to.row = t->has_zeros ? sums + at : NULL;
            to.y = t->y + (row + at) * t->ld;
            thin_rows(t, &p, &to);
        }
    }
}

/* ---- planes ---- */

enum { STEPS = 4 /* bytes from row to row, at most: a vector holds 16 rows' quads */ };

/* The quads of 16 rows that are `step` bytes apart, 1 to STEPS, the first of which is at x: part l has 16 bytes
 * from 4 * step * l on, of which it takes four quads. */
static inline __attribute__((always_inline)) __m512i quads_of_neighbors(const uint8_t *x, int step)
{
    const __m512i lane = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3),
                  four = _mm512_set4_epi32(3, 2, 1, 0), by = _mm512_set1_epi32(step),
                  parts = _mm512_add_epi32(_mm512_mullo_epi32(lane, by), four),
                  bytes = _mm512_add_epi32(
                      _mm512_mullo_epi32(_mm512_mullo_epi32(four, by), _mm512_set1_epi32(0x01010101)),
                      _mm512_set1_epi32(0x03020100));
    const __m512i all = _mm512_maskz_loadu_epi8(~(__mmask64)0 >> (15 * (STEPS - step)), x);
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(parts, all), bytes);
}

/* The bytes from row to row of 16, where those are the same and at most STEPS; else 0. */
static inline __attribute__((always_inline)) int step_of(const uint8_t *const *a)
{
    const int64_t step = (int64_t)((uintptr_t)a[1] - (uintptr_t)a[0]);
    const __m512i by = _mm512_set1_epi64(step), eight = _mm512_slli_epi64(by, 3),
                  rows = _mm512_sub_epi64(_mm512_loadu_si512(a), _mm512_set1_epi64((int64_t)(uintptr_t)a[0])),
                  more = _mm512_sub_epi64(_mm512_loadu_si512(a + 8),
                                          _mm512_set1_epi64((int64_t)(uintptr_t)a[0])),
                  want = _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), by);
    const unsigned other =
        _mm512_cmpneq_epi64_mask(rows, want) | _mm512_cmpneq_epi64_mask(more, _mm512_add_epi64(want, eight));
    return !other && step >= 1 && step <= STEPS ? (int)step : 0;
}

/* Quads of the rows, side by side; the last row fills the last 16. */
static void gather_quads(const lnt_qplanes *t, int32_t (*to)[LNT_QPLANE_ROWS])
{
    for (unsigned r = 0; r < t->rows; r += LNT_QPANEL) {
        const uint8_t *const *a = t->a + r, *filled[LNT_QPANEL];
        if (t->rows - r < LNT_QPANEL) {
            for (unsigned i = 0; i < LNT_QPANEL; i++)
                filled[i] = t->a[lnt_least(r + i, t->rows - 1)];
            a = filled;
        }
        const int step = step_of(a);
        int32_t *quads = to[0] + r;
        for (int64_t tap = 0; tap < t->taps; tap++)
            for (ptrdiff_t at = t->tap_offset[tap], end = at + 4 * t->quads; at < end;
                 at += 4, quads += LNT_QPLANE_ROWS)
                if (step)
                    _mm512_storeu_si512(quads, quads_of_neighbors(a[0] + at, step));
                else
                    for (unsigned i = 0; i < LNT_QPANEL; i++)
                        memcpy(quads + i, a[i] + at, sizeof *quads);
    }
}

enum { TOGETHER = 4 /* columns */, VECTORS = LNT_QPLANE_ROWS / LNT_QPANEL };

/* Up to TOGETHER columns from n on of some vectors of rows, whose quads are LNT_QPLANE_ROWS apart. Few planes are
 * written at a time: those of images are often apart by a multiple of what a way of the cache holds. */
static inline __attribute__((always_inline)) void plane_columns(unsigned vectors, const lnt_qplanes *t,
                                                                const int32_t *x, size_t quads,
                                                                unsigned first, size_t n)
{
    const size_t left = t->columns - n;
    const ptrdiff_t plane = t->plane; /* out of reach of the stores */
    const int8_t *panel = t->panels + n / LNT_QPANEL * 4 * quads * LNT_QPANEL + n % LNT_QPANEL * 4;
    int32_t *y = t->y + (ptrdiff_t)n * plane + first;
    const int32_t *ahead = left > TOGETHER ? y + TOGETHER * plane : t->y + LNT_QPLANE_ROWS;
    const unsigned rows = t->rows - first;
    const __mmask16 last = (__mmask16)(vectors == 1 && rows < LNT_QPANEL ? (1u << rows) - 1 : 0xffff);
    __m512i acc[TOGETHER][VECTORS];
#pragma GCC unroll 4
    for (unsigned c = 0; c < TOGETHER; c++)
#pragma GCC unroll 4
        for (unsigned v = 0; v < vectors; v++) {
            _mm_prefetch((const char *)(ahead + c * plane + v * LNT_QPANEL), _MM_HINT_T0);
            acc[c][v] = _mm512_set1_epi32(t->acc_bias[n + c]);
            if (t->sums) {
                const __m512i sums = _mm512_maskz_loadu_epi32(last, t->sums + first + v * LNT_QPANEL);
                acc[c][v] =
                    _mm512_sub_epi32(acc[c][v], _mm512_mullo_epi32(sums, _mm512_set1_epi32(t->zeros[n + c])));
            }
        }
    for (size_t q = 0; q < quads; q++, panel += 4 * LNT_QPANEL, x += LNT_QPLANE_ROWS)
#pragma GCC unroll 4
        for (unsigned c = 0; c < TOGETHER; c++) {
            const __m512i weights = four_of((const uint8_t *)panel + 4 * c);
#pragma GCC unroll 4
            for (unsigned v = 0; v < vectors; v++)
                acc[c][v] = _mm512_dpbusd_epi32(acc[c][v], _mm512_loadu_si512(x + v * LNT_QPANEL), weights);
        }
#pragma GCC unroll 4
    for (unsigned c = 0; c < TOGETHER; c++, y += plane) {
        if (c == left)
            return;
#pragma GCC unroll 4
        for (unsigned v = 0; v < vectors; v++)
            _mm512_mask_storeu_epi32(y + v * LNT_QPANEL, last, acc[c][v]);
    }
}

/* Rows are the lanes of vectors: results need no transposing. */
static void planes(const lnt_qplanes *t)
{
    int32_t x[LNT_QPLANE_QUADS][LNT_QPLANE_ROWS];
    const size_t quads = (size_t)(t->taps * t->quads);
    gather_quads(t, x);
    for (size_t n = 0; n < t->columns; n += TOGETHER)
        if (t->rows == LNT_QPLANE_ROWS)
            plane_columns(VECTORS, t, x[0], quads, 0, n);
        else
            for (unsigned first = 0; first < t->rows; first += LNT_QPANEL)
                plane_columns(1, t, x[0] + first, quads, first, n);
}

/* ---- depthwise ---- */

/* Interleaving the bytes of four taps by unpacking puts channels [16 l + 4 j, + 4) into part l of vector j:
 * narrowing the sums pairwise brings them back into order. */
enum { CHANNELS = 64, QUADS = LNT_QTAPS_MAX / 4, SIDE = 3 /* of kernels of nine taps */ };

typedef struct four_vectors {
    __m512i v[PARTS];
} four_vectors;

/* Operands of a block of channels that are the same for all pixels. */
typedef struct depthwise_block {
    __m512i w[QUADS][PARTS], acc_bias[PARTS], zeros[PARTS];
    __m512i column[SIDE][PARTS]; /* of nine taps: a quad is a column, its fourth weight 0 */
    __m512 scale[PARTS], bias[PARTS], low, high;
    __m512i flip, zero;
    __mmask64 lanes;     /* channels there are; of fewer than 33, those of one pixel */
    size_t first, width; /* bytes of a result */
} depthwise_block;

static inline __attribute__((always_inline)) four_vectors interleave(__m512i a, __m512i b, __m512i c,
                                                                     __m512i d)
{
    const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
    const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
    return (four_vectors){{_mm512_unpacklo_epi16(ab_low, cd_low), _mm512_unpackhi_epi16(ab_low, cd_low),
                           _mm512_unpacklo_epi16(ab_high, cd_high), _mm512_unpackhi_epi16(ab_high, cd_high)}};
}

/* 64 channels of a pixel, or 32 of two pixels `step` apart. */
static inline __attribute__((always_inline)) __m512i load_pixels(const uint8_t *p, size_t step,
                                                                 __mmask64 lanes, bool two)
{
    if (!two)
        return _mm512_maskz_loadu_epi8(lanes, p);
    const __m256i low = _mm256_maskz_loadu_epi8((__mmask32)lanes, p);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low),
                              _mm256_maskz_loadu_epi8((__mmask32)lanes, p + step), 1);
}

/* 32-bit parameters of the block's channels in the order of the interleaved accumulators. */
static void load_interleaved(const void *from, size_t room, bool two, void *to)
{
    int32_t lanes[PARTS][LNT_QPANEL] = {{0}};
    for (size_t j = 0; j < PARTS; j++)
        for (size_t l = 0; l < PARTS; l++) {
            const size_t at = 16 * (two ? l % 2 : l) + 4 * j;
            if (at < room)
                memcpy(&lanes[j][4 * l], (const int32_t *)from + at, 4 * sizeof(int32_t));
        }
    memcpy(to, lanes, sizeof lanes);
}

/* Weights of n taps, `apart` from one to the next, as a quad. */
static void load_quad(const lnt_qdepthwise *d, const depthwise_block *b, bool two, size_t tap, size_t apart,
                      size_t n, __m512i *to)
{
    __m512i w[4];
    for (size_t t = 0; t < 4; t++)
        w[t] = t < n ? load_pixels((const uint8_t *)d->w + (tap + t * apart) * d->w_tap + b->first, 0,
                                   b->lanes, two)
                     : _mm512_setzero_si512();
    const four_vectors f = interleave(w[0], w[1], w[2], w[3]);
    memcpy(to, f.v, sizeof f.v);
}

static void load_block(const lnt_qdepthwise *d, size_t first, unsigned n, bool two, depthwise_block *b)
{
    const size_t room = d->w_tap - first;
    b->first = first;
    b->lanes = n == CHANNELS ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
    b->flip = _mm512_set1_epi8((char)d->flip);
    b->zero = _mm512_set1_epi16((int16_t)d->zero);
    load_interleaved(d->acc_bias + first, room, two, b->acc_bias);
    load_interleaved(d->zeros + first, room, two, b->zeros);
    load_interleaved(d->scale + first, room, two, b->scale);
    b->width = lnt_qresult_bytes(d->result);
    b->low = _mm512_set1_ps(d->low);
    b->high = _mm512_set1_ps(d->high);
    if (d->result == LNT_QRESULT_FLOATS)
        load_interleaved(d->bias + first, room, two, b->bias);
    for (size_t t = 0; t < d->taps; t += 4)
        load_quad(d, b, two, t, 1, d->taps - t, b->w[t / 4]);
    for (size_t x = 0; x < SIDE && d->taps == SIDE * SIDE && !two; x++)
        load_quad(d, b, two, x, SIDE, SIDE, b->column[x]);
}

/* Results of 32 bits: part l of all vectors becomes the channels from 16 l on, of a second pixel from l = 2
 * on. */
static __attribute__((noinline)) void store_wide(const lnt_qdepthwise *d, const depthwise_block *b,
                                                 __m512i *acc, uint8_t *y, bool two)
{
    if (d->result == LNT_QRESULT_FLOATS)
        for (int j = 0; j < PARTS; j++) {
            const __m512 v =
                _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(acc[j]), b->scale[j]), b->bias[j]);
            acc[j] = _mm512_castps_si512(_mm512_min_ps(b->high, _mm512_max_ps(b->low, v)));
        }
    const __m512i a = _mm512_shuffle_i32x4(acc[0], acc[1], 0x44),
                  c = _mm512_shuffle_i32x4(acc[0], acc[1], 0xee);
    const __m512i e = _mm512_shuffle_i32x4(acc[2], acc[3], 0x44),
                  f = _mm512_shuffle_i32x4(acc[2], acc[3], 0xee);
    const __m512i rows[PARTS] = {_mm512_shuffle_i32x4(a, e, 0x88), _mm512_shuffle_i32x4(a, e, 0xdd),
                                 _mm512_shuffle_i32x4(c, f, 0x88), _mm512_shuffle_i32x4(c, f, 0xdd)};
    for (int l = 0; l < PARTS; l++) {
        const int part = two ? l % 2 : l;
        _mm512_mask_storeu_epi32(y + (l > part ? d->pixel : 0) + 64 * part,
                                 (__mmask16)(b->lanes >> (16 * part)), rows[l]);
    }
}

/* Converts and stores the accumulators of 64 channels of a pixel, or of 32 of two. */
static inline __attribute__((always_inline)) void
store_pixel(const lnt_qdepthwise *d, const depthwise_block *b, __m512i *acc, uint8_t *y, bool two)
{
    if (d->result != LNT_QRESULT_INT8) {
        __m512i own[PARTS]; /* acc itself is to stay in registers */
        memcpy(own, acc, sizeof own);
        store_wide(d, b, own, y, two);
        return;
    }
    const __m512i bytes =
        narrow_to_8(requantize_two(acc[0], acc[1], b->scale[0], b->scale[1], b->zero),
                    requantize_two(acc[2], acc[3], b->scale[2], b->scale[3], b->zero), d->is_signed);
    if (two) {
        _mm256_mask_storeu_epi8(y, (__mmask32)b->lanes, _mm512_castsi512_si256(bytes));
        _mm256_mask_storeu_epi8(y + d->pixel, (__mmask32)b->lanes, _mm512_extracti64x4_epi64(bytes, 1));
    } else {
        _mm512_mask_storeu_epi8(y, b->lanes, bytes);
    }
}

/* One pixel of 64 channels, or two of 32, all taps by quads. */
static inline __attribute__((always_inline)) void
depthwise_pixel(const lnt_qdepthwise *d, const depthwise_block *b, const uint8_t *const *tap, size_t at,
                uint8_t *y, size_t taps, bool two, bool moved)
{
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i acc[PARTS], total[PARTS];
#pragma GCC unroll 4
    for (int j = 0; j < PARTS; j++) {
        acc[j] = b->acc_bias[j];
        total[j] = _mm512_setzero_si512();
    }
#pragma GCC unroll 3
    for (size_t t = 0; t < taps; t += 4) {
        __m512i x[4];
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++)
            x[i] = t + i < taps
                       ? _mm512_xor_si512(load_pixels(tap[t + i] + at, d->step, b->lanes, two), b->flip)
                       : _mm512_setzero_si512();
        const four_vectors f = interleave(x[0], x[1], x[2], x[3]);
#pragma GCC unroll 4
        for (int j = 0; j < PARTS; j++) {
            acc[j] = _mm512_dpbusd_epi32(acc[j], f.v[j], b->w[t / 4][j]);
            if (moved)
                total[j] = _mm512_dpbusd_epi32(total[j], f.v[j], ones);
        }
    }
#pragma GCC unroll 4
    for (int j = 0; j < PARTS && moved; j++)
        acc[j] = _mm512_sub_epi32(acc[j], _mm512_mullo_epi32(total[j], b->zeros[j]));
    store_pixel(d, b, acc, y, two);
}

/* Do the taps of a 3x3 kernel lie side by side in three lines, and is it moved by a pixel each time? */
static bool in_lines(const lnt_qdepthwise *d, const lnt_qdepthwise_run *run)
{
    for (size_t t = 0; t < SIDE * SIDE; t++)
        if (run->tap[t] != run->tap[t - t % SIDE] + t % SIDE * d->step)
            return false;
    return true;
}

/* Pixels of such a run: each column of three bytes is interleaved once and meets the weights of the three
 * pixels that read it: first's sums have their last column then, second's their middle one. */
static inline __attribute__((always_inline)) void
depthwise_lines(const lnt_qdepthwise *d, const depthwise_block *b, const lnt_qdepthwise_run *run)
{
    const uint8_t *const *tap = run->tap;
    uint8_t *y = run->y + b->first * b->width;
    __m512i first[PARTS], second[PARTS], third[PARTS];
#pragma GCC unroll 4
    for (int j = 0; j < PARTS; j++)
        first[j] = second[j] = b->acc_bias[j];
    for (size_t x = 0, at = b->first; x < run->pixels + SIDE - 1; x++, at += d->step) {
        const __m512i top = _mm512_xor_si512(_mm512_maskz_loadu_epi8(b->lanes, tap[0] + at), b->flip);
        const __m512i middle = _mm512_xor_si512(_mm512_maskz_loadu_epi8(b->lanes, tap[SIDE] + at), b->flip);
        const __m512i last = _mm512_xor_si512(_mm512_maskz_loadu_epi8(b->lanes, tap[2 * SIDE] + at), b->flip);
        const four_vectors f = interleave(top, middle, last, _mm512_setzero_si512());
#pragma GCC unroll 4
        for (int j = 0; j < PARTS; j++) {
            first[j] = _mm512_dpbusd_epi32(first[j], f.v[j], b->column[2][j]);
            second[j] = _mm512_dpbusd_epi32(second[j], f.v[j], b->column[1][j]);
            third[j] = _mm512_dpbusd_epi32(b->acc_bias[j], f.v[j], b->column[0][j]);
        }
        if (x >= SIDE - 1) {
            store_pixel(d, b, first, y, false);
            y += d->pixel;
        }
#pragma GCC unroll 4
        for (int j = 0; j < PARTS; j++) {
            first[j] = second[j];
            second[j] = third[j];
        }
    }
}

static inline __attribute__((always_inline)) void
depthwise_channels(const lnt_qdepthwise *d, size_t first, unsigned n, size_t taps, bool two, bool moved)
{
    depthwise_block b;
    load_block(d, first, n, two, &b);
    for (const lnt_qdepthwise_run *run = d->run; run < d->run + d->runs; run++) {
        size_t i = 0;
        if (taps == SIDE * SIDE && !two && !moved && run->pixels > 1 && in_lines(d, run)) {
            depthwise_lines(d, &b, run);
            continue;
        }
        for (; i + two < run->pixels; i += 1 + two)
            depthwise_pixel(d, &b, run->tap, i * d->step + first, run->y + i * d->pixel + first * b.width,
                            taps, two, moved);
        if (i < run->pixels)
            depthwise_pixel(d, &b, run->tap, i * d->step + first, run->y + i * d->pixel + first * b.width,
                            taps, false, moved);
    }
}

static void depthwise(const lnt_qdepthwise *d)
{
    for (size_t first = 0; first < d->channels; first += CHANNELS) {
        const unsigned n = d->channels - first < CHANNELS ? (unsigned)(d->channels - first) : CHANNELS;
        const bool two = n <= CHANNELS / 2, nine = d->taps == 9 && !d->has_w_zero;
        if (nine && two)
            depthwise_channels(d, first, n, 9, true, false);
        else if (nine)
            depthwise_channels(d, first, n, 9, false, false);
        else
            depthwise_channels(d, first, n, d->taps, false, d->has_w_zero);
    }
}

const lnt_qgemm_kernels lnt_qgemm_avx512vnni = {.rows = ROWS,
                                                .rows_by = 2,
                                                .panels = PANELS,
                                                .requantizes = true,
                                                .dequantizes = true,
                                                .tile = tile,
                                                .integers = integers,
                                                .thin = thin,
                                                .planes = planes,
                                                .depthwise = depthwise};
