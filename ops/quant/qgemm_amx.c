/* qgemm_amx.c — int8 GEMM at the amx level, which has registers of 16 rows of 64 bytes: a panel's
 * sixteen quads are one of them as they lie in memory, and so are sixteen rows' 64 bytes of K.
 *
 * Four registers of sums stay: of two panels and twice sixteen rows, where there are so many, else of four panels. Few
 * rows and short sums are left to the level below. */
#include "ops/quant/qgemm.h"

#include <immintrin.h>
#include <string.h>

enum {
    ROWS = 16,    /* of a register, of A and of accumulators */
    QUADS = 16,   /* of a register, of A and of B */
    CHUNK = 64,   /* bytes of a row of a register: so many quads of A, one of B */
    TOGETHER = 4, /* panels */
    GATHERED = 8, /* registers of A that are gathered at a time */
    PANEL_BYTES = QUADS * CHUNK
};
_Static_assert(4 * LNT_QPANEL == CHUNK, "a quad of a panel is a row of a register");

/* Registers 0 to 3 are accumulators of four panels; A and B; those of what is left when K is no multiple of 64. Their
 * numbers become text of the assembler's. */
#define WHOLE_A 4
#define WHOLE_B 5
#define REST_A 6
#define REST_B 7
/* Or those of twice as many rows times two panels. */
#define UPPER_A 4
#define LOWER_A 5
#define LEFT_B 6
#define RIGHT_B 7

typedef struct shapes {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shapes;

/* x is in memory from here on: gcc's intrinsics do not say all that they read. */
#define IN_MEMORY(x) __asm__ volatile("" : : "m"(x))

static void shape_whole_registers(void)
{
    static const shapes whole = {.palette = 1,
                                 .row_bytes = {CHUNK, CHUNK, CHUNK, CHUNK, CHUNK, CHUNK, CHUNK, CHUNK},
                                 .rows = {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS}};
    _tile_loadconfig(&whole);
}

static void shape_registers(unsigned rows, unsigned rest)
{
    shapes s = {.palette = 1};
    for (unsigned i = 0; i < TOGETHER; i++)
        s.rows[i] = (uint8_t)rows, s.row_bytes[i] = CHUNK;
    s.rows[WHOLE_A] = (uint8_t)rows, s.row_bytes[WHOLE_A] = CHUNK;
    s.rows[WHOLE_B] = QUADS, s.row_bytes[WHOLE_B] = CHUNK;
    if (rest) {
        s.rows[REST_A] = (uint8_t)rows, s.row_bytes[REST_A] = (uint16_t)(4 * rest);
        s.rows[REST_B] = (uint8_t)rest, s.row_bytes[REST_B] = CHUNK;
    }
    IN_MEMORY(s);
    _tile_loadconfig(&s);
}

/* Multiplies what is in the registers of A with B of one panel after the other. */
#define MULTIPLY(a, b)                                                                                       \
    do {                                                                                                     \
        _tile_loadd(b, panel[0] + at, CHUNK);                                                                \
        _tile_dpbusd(0, a, b);                                                                               \
        if (panels > 1) {                                                                                    \
            _tile_loadd(b, panel[1] + at, CHUNK);                                                            \
            _tile_dpbusd(1, a, b);                                                                           \
        }                                                                                                    \
        if (panels > 2) {                                                                                    \
            _tile_loadd(b, panel[2] + at, CHUNK);                                                            \
            _tile_dpbusd(2, a, b);                                                                           \
        }                                                                                                    \
        if (panels > 3) {                                                                                    \
            _tile_loadd(b, panel[3] + at, CHUNK);                                                            \
            _tile_dpbusd(3, a, b);                                                                           \
        }                                                                                                    \
    } while (0)

static void clear_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

static void store_accumulators(int32_t *const *c, unsigned panels, unsigned first)
{
    const size_t at = (size_t)first * LNT_QPANEL;
    _tile_stored(0, c[0] + at, CHUNK);
    if (panels > 1)
        _tile_stored(1, c[1] + at, CHUNK);
    if (panels > 2)
        _tile_stored(2, c[2] + at, CHUNK);
    if (panels > 3)
        _tile_stored(3, c[3] + at, CHUNK);
}

/* Adds quads [first, first + n) of K, which lie one after the other in rows `step` bytes apart. */
static void add_quads(const uint8_t *a, ptrdiff_t step, int64_t first, int64_t n, const int8_t *const *panel,
                      unsigned panels)
{
    int64_t at = first * CHUNK;
    for (; n >= QUADS; n -= QUADS, a += CHUNK, at += PANEL_BYTES) {
        _tile_loadd(WHOLE_A, a, step);
        MULTIPLY(WHOLE_A, WHOLE_B);
    }
    if (n > 0) {
        _tile_loadd(REST_A, a, step);
        MULTIPLY(REST_A, REST_B);
    }
}

/* Copies quads [first, first + n) of all rows to lie side by side, rows GATHERED * CHUNK bytes apart. */
static void gather(const lnt_qproduct *p, const uint8_t *const *a, unsigned rows, int64_t first, int64_t n,
                   uint8_t *to)
{
    for (int64_t q = first; q < first + n;) {
        const int64_t tap = q / p->quads, in_tap = q % p->quads, left = first + n - q;
        int64_t quads = p->quads - in_tap < left ? p->quads - in_tap : left;
        quads = quads < QUADS ? quads : QUADS;
        const __mmask64 bytes = ~(__mmask64)0 >> (CHUNK - 4 * quads);
        const ptrdiff_t from = p->tap_offset[tap] + 4 * in_tap;
        uint8_t *row = to + 4 * (q - first);
        for (unsigned r = 0; r < rows; r++, row += GATHERED * CHUNK)
            _mm512_mask_storeu_epi8(row, bytes, _mm512_maskz_loadu_epi8(bytes, a[r] + from));
        q += quads;
    }
}

/* Bytes from row to row, 0 where rows do not lie evenly. */
static ptrdiff_t step_of(const uint8_t *const *a, unsigned rows)
{
    const ptrdiff_t step = rows > 1 ? a[1] - a[0] : CHUNK;
    for (unsigned r = 2; r < rows; r++)
        if (a[r] - a[r - 1] != step)
            return 0;
    return step;
}

/* Rows [first, first + rows) times some panels; each tap is whole registers, or there is one. */
static void multiply_even(const lnt_qproduct *p, unsigned first, ptrdiff_t step, unsigned panel,
                          unsigned panels)
{
    for (int64_t t = 0; t < p->taps; t++)
        add_quads(p->a[first] + p->tap_offset[t], step, t * p->quads, p->quads, p->panel + panel, panels);
}

static void multiply_gathered(const lnt_qproduct *p, unsigned first, unsigned rows, unsigned panel,
                              unsigned panels)
{
    _Alignas(CHUNK) uint8_t bytes[ROWS][GATHERED * CHUNK];
    const int64_t all = p->taps * p->quads;
    for (int64_t q = 0; q < all; q += GATHERED * QUADS) {
        const int64_t n = all - q < GATHERED * QUADS ? all - q : GATHERED * QUADS;
        gather(p, p->a + first, rows, q, n, bytes[0]);
        IN_MEMORY(bytes);
        add_quads(bytes[0], sizeof bytes[0], q, n, p->panel + panel, panels);
    }
}

/* Do taps begin where registers of B do? */
static bool taps_are_whole(const lnt_qproduct *p)
{
    return p->taps == 1 || p->quads % QUADS == 0;
}

/* Two panels' part of twice ROWS rows: where sums begin, and where they go. start NULL: with 0. */
typedef struct square {
    const int32_t *start[2];
    int32_t *c[2];
    ptrdiff_t start_step, c_step; /* bytes from row to row */
    const uint8_t *rest;          /* of the rows, behind whole registers */
} square;

/* Each register of A and of B is used twice. */
static void multiply_square(const lnt_qproduct *p, ptrdiff_t step, const int8_t *const *panel,
                            const square *s)
{
    if (s->start[0]) {
        _tile_loadd(0, s->start[0], s->start_step);
        _tile_loadd(1, s->start[1], s->start_step);
        _tile_loadd(2, (const char *)s->start[0] + ROWS * s->start_step, s->start_step);
        _tile_loadd(3, (const char *)s->start[1] + ROWS * s->start_step, s->start_step);
    } else {
        clear_sums();
    }
    for (int64_t t = 0; t < p->taps; t++) {
        const uint8_t *a = p->a[0] + p->tap_offset[t];
        int64_t at = t * p->quads * CHUNK;
        for (int64_t q = 0; q < p->quads; q += QUADS, a += CHUNK, at += PANEL_BYTES) {
            if (p->quads - q < QUADS) {
                a = s->rest;
                step = CHUNK;
                at = (p->quads - QUADS) * CHUNK;
            }
            _tile_loadd(UPPER_A, a, step);
            _tile_loadd(LEFT_B, panel[0] + at, CHUNK);
            _tile_dpbusd(0, UPPER_A, LEFT_B);
            _tile_loadd(RIGHT_B, panel[1] + at, CHUNK);
            _tile_dpbusd(1, UPPER_A, RIGHT_B);
            _tile_loadd(LOWER_A, a + ROWS * step, step);
            _tile_dpbusd(2, LOWER_A, LEFT_B);
            _tile_dpbusd(3, LOWER_A, RIGHT_B);
        }
    }
    _tile_stored(0, s->c[0], s->c_step);
    _tile_stored(1, s->c[1], s->c_step);
    _tile_stored(2, (char *)s->c[0] + ROWS * s->c_step, s->c_step);
    _tile_stored(3, (char *)s->c[1] + ROWS * s->c_step, s->c_step);
}

/* Bytes from row to row of A, 0 where there are no squares. Quads that fill no register are copied to rest, behind
 * zeros: they are multiplied with the last QUADS quads of B. */
static ptrdiff_t step_of_squares(const lnt_qproduct *p, uint8_t (*rest)[CHUNK])
{
    const int64_t left = p->quads % QUADS, from = p->tap_offset[0] + 4 * p->quads - CHUNK;
    if (p->panels < 2 || p->rows != 2 * ROWS || (left && (p->taps > 1 || p->quads < QUADS)))
        return 0;
    const ptrdiff_t step = step_of(p->a, p->rows);
    if (step && left) {
        const __mmask64 bytes = ~(__mmask64)0 << (CHUNK - 4 * left);
        for (unsigned r = 0; r < 2 * ROWS; r++)
            _mm512_store_si512(rest[r], _mm512_maskz_loadu_epi8(bytes, p->a[r] + from));
        IN_MEMORY(*(uint8_t(*)[2 * ROWS][CHUNK]) rest);
    }
    return step;
}

/* All panels but an odd last one in this way, if rows are so many and lie evenly; how many those were. */
static unsigned multiply_squares(const lnt_qproduct *p)
{
    _Alignas(CHUNK) uint8_t rest[2 * ROWS][CHUNK];
    const ptrdiff_t step = step_of_squares(p, rest);
    if (!step)
        return 0;
    shape_whole_registers();
    for (unsigned panel = 0; panel + 1 < p->panels; panel += 2) {
        const square s = {.c = {p->c[panel], p->c[panel + 1]}, .c_step = CHUNK, .rest = rest[0]};
        multiply_square(p, step, p->panel + panel, &s);
    }
    _tile_release();
    return p->panels & ~1u;
}

enum { SQUARE_ROWS = 2 * ROWS, SQUARE_SUMS = SQUARE_ROWS * LNT_QPANEL };

/* What the sums of two panels from column n on begin with: the terms that are added to them. */
static void start_square(const lnt_integer_tile *to, unsigned first, size_t n, int32_t (*start)[SQUARE_SUMS])
{
    for (unsigned i = 0; i < 2; i++, n += LNT_QPANEL) {
        const __m512i bias = _mm512_loadu_si512(to->acc_bias + n), zeros = _mm512_loadu_si512(to->zeros + n);
        for (unsigned r = 0; r < SQUARE_ROWS; r++) {
            const __m512i row = _mm512_set1_epi32(to->row[first + r]);
            _mm512_store_si512(start[i] + r * LNT_QPANEL,
                               _mm512_sub_epi32(bias, _mm512_mullo_epi32(row, zeros)));
        }
    }
    IN_MEMORY(*(int32_t(*)[2][SQUARE_SUMS])start);
}

/* Whole squares alone, of rows that lie evenly in the result, too. A square's beginning is made before the square ahead
 * of it is computed: registers take nothing from stores that are on their way. */
static bool multiply_integers(const lnt_qproduct *p, const lnt_integer_tile *to, unsigned first)
{
    _Alignas(CHUNK) int32_t start[2][2][SQUARE_SUMS];
    _Alignas(CHUNK) uint8_t rest[2 * ROWS][CHUNK];
    const ptrdiff_t step = step_of_squares(p, rest);
    const int64_t *out = to->out + first;
    bool even = step && p->panels % 2 == 0 && to->columns == p->panels * LNT_QPANEL;
    for (unsigned r = 2; r < p->rows && even; r++)
        even = out[r] - out[r - 1] == out[1] - out[0];
    if (!even)
        return false;
    square s = {.start_step = to->row ? CHUNK : 0,
                .c_step = (out[1] - out[0]) * (ptrdiff_t)sizeof *to->y,
                .rest = rest[0]};
    shape_whole_registers();
    if (to->row)
        start_square(to, first, 0, start[0]);
    for (unsigned panel = 0; panel < p->panels; panel += 2) {
        const size_t n = panel * LNT_QPANEL;
        if (to->row && panel + 2 < p->panels)
            start_square(to, first, n + 2 * LNT_QPANEL, start[(panel / 2 + 1) % 2]);
        for (unsigned i = 0; i < 2; i++) {
            s.start[i] = to->row ? start[panel / 2 % 2][i] : to->acc_bias + n + i * LNT_QPANEL;
            s.c[i] = to->y + out[0] + n + i * LNT_QPANEL;
        }
        multiply_square(p, step, p->panel + panel, &s);
    }
    _tile_release();
    return true;
}

static void multiply_rows(const lnt_qproduct *p, unsigned first, unsigned rows, unsigned panel)
{
    const ptrdiff_t step = taps_are_whole(p) ? step_of(p->a + first, rows) : 0;
    shape_registers(rows, (unsigned)(p->taps * p->quads % QUADS));
    for (; panel < p->panels; panel += TOGETHER) {
        const unsigned panels = p->panels - panel < TOGETHER ? p->panels - panel : TOGETHER;
        clear_sums();
        if (step)
            multiply_even(p, first, step, panel, panels);
        else
            multiply_gathered(p, first, rows, panel, panels);
        store_accumulators(p->c + panel, panels, first);
    }
    _tile_release();
}

/* The same by the level below. */
static void multiply_small(const lnt_qproduct *p)
{
    const lnt_qgemm_kernels *below = &lnt_qgemm_avx512vnni;
    if (p->rows <= below->rows && p->panels <= below->panels) {
        below->tile(p);
        return;
    }
    lnt_qproduct part = *p;
    for (unsigned panel = 0; panel < p->panels; panel += part.panels) {
        part.panels = p->panels - panel < below->panels ? 1 : below->panels;
        part.sums = p->sums + panel * LNT_QPANEL;
        for (unsigned first = 0; first < p->rows; first += part.rows) {
            part.rows = p->rows - first < below->rows ? p->rows - first : below->rows;
            part.a = p->a + first;
            for (unsigned i = 0; i < part.panels; i++) {
                part.panel[i] = p->panel[panel + i];
                part.c[i] = p->c[panel + i] + (size_t)first * LNT_QPANEL;
            }
            below->tile(&part);
        }
    }
}

static void tile(const lnt_qproduct *p)
{
    enum { FEW = 4, SHORT = 1024, SHORT_GATHERED = 4096 };
    const int64_t quads = p->rows * p->panels * p->taps * p->quads;
    if (p->rows <= FEW || quads < (taps_are_whole(p) ? SHORT : SHORT_GATHERED)) {
        multiply_small(p);
        return;
    }
    const unsigned done = multiply_squares(p);
    for (unsigned first = 0; first < p->rows && done < p->panels; first += ROWS)
        multiply_rows(p, first, p->rows - first < ROWS ? p->rows - first : ROWS, done);
}

/* ---- short rows ---- */

#define THIN_SUMS 0
#define THIN_A 1
#define THIN_B 2
#define THIN_ZEROS 3
#define THIN_ONES 4

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The zero points of a panel's columns, negated, as weights of short rows; 128 is one more than there can be, which
 * `ones` add. */
typedef struct thin_zeros {
    _Alignas(CHUNK) int8_t zeros[PANEL_BYTES], ones[PANEL_BYTES];
    _Alignas(CHUNK) int32_t start[LNT_QPANEL]; /* of all rows' sums */
    bool has_ones;
} thin_zeros;

/* Of the panel from column n on, `depth` elements of it. */
static void find_zeros(const lnt_qthin *t, size_t n, size_t depth, thin_zeros *to)
{
    const __m512i first = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    const __m512i zeros = t->has_zeros ? _mm512_loadu_si512(t->zeros + n) : _mm512_setzero_si512();
    const __m512i taken = _mm512_mullo_epi32(_mm512_set1_epi32((int32_t)t->depth), zeros);
    _mm512_store_si512(to->start,
                       _mm512_mullo_epi32(_mm512_set1_epi32(t->zero),
                                          _mm512_sub_epi32(taken, _mm512_loadu_si512(t->sums + n))));
    const __m512i negative = _mm512_sub_epi8(_mm512_setzero_si512(), _mm512_shuffle_epi8(zeros, first));
    const __mmask64 most = _mm512_cmpeq_epi8_mask(negative, _mm512_set1_epi8(INT8_MIN));
    __m512i ones = _mm512_maskz_set1_epi8(most, 1), rest = _mm512_sub_epi8(negative, ones);
    to->has_ones = most != 0;
    for (size_t k = 0; k < depth; k += 4) {
        const __m512i kept = _mm512_set1_epi32(depth - k < 4 ? (1 << 8 * (depth - k)) - 1 : -1);
        _mm512_store_si512(to->zeros + k * LNT_QPANEL, _mm512_and_si512(rest, kept));
        _mm512_store_si512(to->ones + k * LNT_QPANEL, _mm512_and_si512(ones, kept));
    }
    IN_MEMORY(*to);
}

static void shape_thin(unsigned rows, unsigned quads, unsigned columns)
{
    shapes s = {.palette = 1};
    for (unsigned i = THIN_SUMS; i <= THIN_ONES; i++)
        s.rows[i] = (uint8_t)quads, s.row_bytes[i] = (uint16_t)(4 * columns);
    s.rows[THIN_SUMS] = s.rows[THIN_A] = (uint8_t)rows;
    s.row_bytes[THIN_A] = (uint16_t)(4 * quads);
    IN_MEMORY(s);
    _tile_loadconfig(&s);
}

/* Some of the rows' elements from k on times those of the panel from column n on. The last rows of a product begin
 * early enough to be as many as others, and are read from a copy: behind them may be nothing. */
static void thin_panel(const lnt_qthin *t, size_t begin, size_t end, size_t k, size_t n)
{
    const size_t step = t->ld * sizeof *t->y, quads = (t->depth + 3) / 4, depth = least(t->depth - k, CHUNK);
    const unsigned rows = (unsigned)least(t->rows, ROWS);
    const __mmask64 bytes = ~(__mmask64)0 >> (CHUNK - depth);
    const __m512i flip = _mm512_set1_epi8((char)t->flip);
    _Alignas(CHUNK) uint8_t copy[ROWS * CHUNK];
    thin_zeros z;
    find_zeros(t, n, depth, &z);
    _tile_loadd(THIN_B, t->panels + n * 4 * quads + k * LNT_QPANEL, CHUNK);
    _tile_loadd(THIN_ZEROS, z.zeros, CHUNK);
    _tile_loadd(THIN_ONES, z.ones, CHUNK);
    for (size_t row = begin; row < end; row += ROWS) {
        const bool ends = row + ROWS > t->rows || (row + ROWS == t->rows && depth % 4);
        const size_t first = ends ? t->rows - rows : row;
        const uint8_t *a = t->a + first * t->depth + k;
        int32_t *y = t->y + first * t->ld + n;
        size_t a_step = t->depth;
        if (ends || t->flip) {
            for (unsigned r = 0; r < rows; r++) {
                const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(bytes, a + r * t->depth), flip);
                _mm512_store_si512(copy + r * CHUNK, k && first + r < row ? _mm512_setzero_si512() : x);
            }
            IN_MEMORY(copy);
            a = copy;
            a_step = CHUNK;
        }
        for (unsigned r = 0; r < rows && row + ROWS < end; r++)
            _mm_prefetch((const char *)y + (ROWS + r) * step, _MM_HINT_T0);
        _tile_loadd(THIN_A, a, a_step);
        if (k == 0)
            _tile_loadd(THIN_SUMS, z.start, 0);
        else
            _tile_loadd(THIN_SUMS, y, step);
        _tile_dpbusd(THIN_SUMS, THIN_A, THIN_B);
        _tile_dpbusd(THIN_SUMS, THIN_A, THIN_ZEROS);
        if (z.has_ones)
            _tile_dpbusd(THIN_SUMS, THIN_A, THIN_ONES);
        _tile_stored(THIN_SUMS, y, step);
    }
}

/* Rows whose results stay in the first-level cache at a time, no rest of a few. To shape registers takes as long as
 * some products. */
static void thin(const lnt_qthin *t)
{
    enum { RESULTS = 8 * 1024 };
    const unsigned rows = (unsigned)least(t->rows, ROWS);
    const size_t some = RESULTS / t->columns / ROWS * ROWS, at_once = some > 4 * ROWS ? some : 4 * ROWS;
    unsigned shaped = 0;
    for (size_t row = 0, end; row < t->rows; row = end) {
        end = t->rows - row < at_once + ROWS ? t->rows : row + at_once;
        for (size_t k = 0; k < t->depth; k += CHUNK)
            for (size_t n = 0; n < t->columns; n += LNT_QPANEL) {
                const unsigned quads = (unsigned)(least(t->depth - k, CHUNK) + 3) / 4,
                               columns = (unsigned)least(t->columns - n, LNT_QPANEL);
                if (shaped != quads * CHUNK + columns)
                    shape_thin(rows, quads, columns);
                shaped = quads * CHUNK + columns;
                thin_panel(t, row, end, k, n);
            }
    }
    _tile_release();
}

static void planes(const lnt_qplanes *t)
{
    lnt_qgemm_avx512vnni.planes(t);
}

static void depthwise(const lnt_qdepthwise *d)
{
    lnt_qgemm_avx512vnni.depthwise(d);
}

const lnt_qgemm_kernels lnt_qgemm_amx = {.rows = LNT_QROWS_MAX,
                                         .rows_by = LNT_QROWS_MAX,
                                         .panels = LNT_QPANELS_MAX,
                                         .fewer_panels = true,
                                         .tile = tile,
                                         .integers = multiply_integers,
                                         .thin = thin,
                                         .planes = planes,
                                         .depthwise = depthwise};
