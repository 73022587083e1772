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

/* Bytes from row to row of A, 0 where there are no squares. */
static ptrdiff_t step_of_squares(const lnt_qproduct *p)
{
    return p->panels > 1 && p->rows == 2 * ROWS && p->quads % QUADS == 0 ? step_of(p->a, p->rows) : 0;
}

/* All panels but an odd last one in this way, if rows are so many and lie evenly; how many those were. */
static unsigned multiply_squares(const lnt_qproduct *p)
{
    const ptrdiff_t step = step_of_squares(p);
    if (!step)
        return 0;
    shape_whole_registers();
    for (unsigned panel = 0; panel + 1 < p->panels; panel += 2) {
        const square s = {.c = {p->c[panel], p->c[panel + 1]}, .c_step = CHUNK};
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
    const ptrdiff_t step = step_of_squares(p);
    const int64_t *out = to->out + first;
    bool even = step && p->panels % 2 == 0 && to->columns == p->panels * LNT_QPANEL;
    for (unsigned r = 2; r < p->rows && even; r++)
        even = out[r] - out[r - 1] == out[1] - out[0];
    if (!even)
        return false;
    square s = {.start_step = to->row ? CHUNK : 0, .c_step = (out[1] - out[0]) * (ptrdiff_t)sizeof *to->y};
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
                                         .depthwise = depthwise};
