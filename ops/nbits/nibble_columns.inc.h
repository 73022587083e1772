/* nibble_columns.inc.h — columns of weights of 4 bits times rows of int8, part of nibble_kernels.inc.h on x86: scales
 * are picked where they lie for each row; many rows meet panels. */
#include "formats/packed.h"

/* Lane i is of block i >> shift, counted from the first lane's. */
LNT_INLINE vi lane_blocks(unsigned shift)
{
    int32_t lane[LNT_VL];
    UNROLL_FOR(16, int i = 0; i < LNT_VL; i++)
        lane[i] = i;
    return (vi)((vu)vi_load(lane) >> shift);
}

LNT_INLINE unsigned group_shift(const lnt_nibble_job *j)
{
    return j->w.block_log2 - LNT_NIBBLE_GROUP_LOG2;
}

/* A quantized row. */
typedef struct row_parts {
    const char *numbers;
    const float *scales, *sums;
} row_parts;

LNT_INLINE row_parts row_at(const lnt_nibble_job *j, int64_t m)
{
    const int64_t groups = j->chunks * j->lanes;
    row_parts r = {.numbers = j->rows + m * groups * LNT_NIBBLE_GROUP_BYTES};
    r.scales = (const float *)(const void *)(r.numbers + groups * LNT_NIBBLE_GROUP);
    r.sums = r.scales + groups;
    return r;
}

/* ---- a row by some columns ---- */

/* An 8th of the zero points of LNT_VL blocks, `left` bytes or more; zeros may be NULL. */
LNT_INLINE vf zeros_8th(const uint8_t *zeros, int64_t left)
{
    return zeros ? vi_float(nibbles_numbers(zeros, left)) * v_splat(0.125f) : v_splat(1);
}

/* Less what zero points add to a column's sum; sums: of the row's blocks. */
static __attribute__((noinline)) vf begin_column(const lnt_nibbles *w, int64_t column, const float *sums)
{
    const int64_t blocks = w->blocks, zero_bytes = (blocks + 1) / 2;
    const float *scales = w->scales + column * blocks;
    const uint8_t *zeros = w->zeros ? w->zeros + column * zero_bytes : NULL;
    vf total = v_splat(0);
    for (int64_t b = 0; b < blocks; b += LNT_VL, zeros += zeros ? LNT_VL / 2 : 0) {
        const vf scale = v_load_n(scales + b, lanes_left((size_t)(blocks - b)));
        total = v_fnma(scale * zeros_8th(zeros, zero_bytes - b / 2), v_load(sums + b), total);
    }
    return total;
}

typedef struct some_columns {
    const uint8_t *from[COLUMNS];
    const float *scales[COLUMNS];
    vf total[COLUMNS];
} some_columns;

/* A chunk of all columns; lanes are of these of its n blocks, from number `first` on. */
LNT_INLINE void add_chunk(some_columns *t, int64_t first, unsigned n, vi blocks, const char *row,
                          const float *of_row)
{
    vf scale[COLUMNS];
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++)
        scale[c] = v_pick(t->scales[c] + first, n, blocks) * v_load(of_row);
    UNROLL_FOR(1, unsigned i = 0; i < STEPS; i++)
        UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
            const nibbles w = nibbles_load(t->from[c] + i * NIBBLES_BYTES);
            const vi sum = nibbles_dot(w, (const int8_t *)row + i * NIBBLES_STEP);
            t->total[c] = v_fma(vi_float(sum), v_spread(scale[c], i), t->total[c]);
        }
}

/* Copies what a column has of its last chunk, 0 behind it. */
static __attribute__((noinline)) const uint8_t *copy_end(const uint8_t *from, int64_t bytes, uint8_t *end)
{
    memset(end, 0, CHUNK / 2);
    return memcpy(end, from, (size_t)bytes);
}

/* A row by columns from n on; behind the last one that again. */
LNT_INLINE vf row_by_columns(const lnt_nibble_job *j, row_parts row, int64_t n, unsigned columns)
{
    const lnt_nibbles *w = &j->w;
    const unsigned shift = group_shift(j);
    const int64_t column_bytes = w->blocks << (w->block_log2 - 1);
    const vi blocks = lane_blocks(shift);
    uint8_t ends[COLUMNS][CHUNK / 2];
    some_columns t;
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
        const int64_t column = n + (c < columns ? c : columns - 1);
        t.from[c] = w->weights + column * column_bytes;
        t.scales[c] = w->scales + column * w->blocks;
        t.total[c] = begin_column(w, column, row.sums);
    }
    for (int64_t chunk = 0; chunk < j->chunks; chunk++) {
        const int64_t first = chunk * LNT_VL >> shift, left = column_bytes - chunk * (CHUNK / 2);
        UNROLL_FOR(4, unsigned i = 0; i < COLUMNS * CHUNK / 2; i += 64)
            v_prefetch(t.from[0] + COLUMNS * column_bytes + i);
        if (left < CHUNK / 2)
            UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++)
                t.from[c] = copy_end(t.from[c], left, ends[c]);
        add_chunk(&t, first, lanes_left((size_t)(w->blocks - first)), blocks, row.numbers + chunk * CHUNK,
                  row.scales + chunk * LNT_VL);
        UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++)
            t.from[c] += CHUNK / 2;
    }
    return v_sum4(t.total[0], t.total[1], t.total[2], t.total[3]);
}

static void columns(const lnt_nibble_job *j, int64_t begin, int64_t end)
{
    for (int64_t m = 0; m < j->M; m++)
        for (int64_t n = begin; n < end; n += COLUMNS) {
            const unsigned columns = (unsigned)lnt_least(COLUMNS, end - n);
            vf sums = row_by_columns(j, row_at(j, m), n, columns);
            if (j->bias)
                sums += v_load_n(j->bias + n, columns);
            v_store_n(j->y + m * j->N + n, sums, columns);
        }
}

/* ---- rows by a panel ---- */

enum {
    PARTS = LNT_PANEL / LNT_VL, /* vectors across */
    ROWS = 8 / PARTS,
    QUADS = LNT_NIBBLE_GROUP / 4
};

/* A panel: numbers [groups][even, odd][QUADS / 2][LNT_PANEL][4], scales [blocks][LNT_PANEL], offsets like these. */
typedef struct panel_parts {
    uint8_t *numbers;
    float *scales, *offsets;
} panel_parts;

LNT_INLINE panel_parts parts_of(const lnt_nibbles *w, char *room)
{
    panel_parts p = {.numbers = (uint8_t *)room};
    p.scales = (float *)(void *)(room + (w->blocks << w->block_log2) * LNT_PANEL);
    p.offsets = p.scales + w->blocks * LNT_PANEL;
    return p;
}

#ifndef NIBBLE_TILE_ALONE

/* Bytes to each of a panel's columns: behind the last one that. */
static void column_offsets(unsigned columns, int64_t bytes, int64_t *at)
{
    for (unsigned i = 0; i < LNT_PANEL; i++)
        at[i] = (i < columns ? i : columns - 1) * bytes;
}

/* Zero points of eight blocks or fewer, of which `left` bytes are left, of all columns. */
static void zero_words(const uint8_t *zeros, int64_t left, const int64_t *at, uint32_t *words)
{
    for (unsigned i = 0; i < LNT_PANEL; i++) {
        words[i] = 0;
        if (left >= 4)
            memcpy(&words[i], zeros + at[i], 4);
        else
            memcpy(&words[i], zeros + at[i], (size_t)left);
    }
}

/* Scales of four blocks or fewer, `left`, of all columns. */
static void scale_words(const float *scales, int64_t left, const int64_t *at, float *to)
{
    for (unsigned first = 0; first < LNT_PANEL && left >= 4; first += LNT_VL) {
        vi four[4];
        vi_columns(scales, at + first, four);
        for (unsigned k = 0; k < 4; k++)
            v_store(to + k * LNT_PANEL + first, (vf)four[k]);
    }
    for (int64_t i = 0; i < left * LNT_PANEL && left < 4; i++)
        memcpy(to + i, (const char *)(scales + i / LNT_PANEL) + at[i % LNT_PANEL], sizeof *to);
}

static void unpack_scales(const lnt_nibble_job *j, int64_t n, unsigned columns, panel_parts to)
{
    const lnt_nibbles *w = &j->w;
    const int64_t zero_bytes = (w->blocks + 1) / 2;
    int64_t of_scales[LNT_PANEL], of_zeros[LNT_PANEL];
    uint32_t words[LNT_PANEL];
    column_offsets(columns, w->blocks * (int64_t)sizeof(float), of_scales);
    column_offsets(columns, zero_bytes, of_zeros);
    for (int64_t b = 0; b < w->blocks; b++) {
        if (b % 4 == 0)
            scale_words(w->scales + n * w->blocks + b, w->blocks - b, of_scales, to.scales + b * LNT_PANEL);
        if (w->zeros && b % 8 == 0)
            zero_words(w->zeros + n * zero_bytes + b / 2, zero_bytes - b / 2, of_zeros, words);
        for (unsigned i = 0; i < LNT_PANEL; i += LNT_VL) {
            vi zero = vi_splat(8);
            if (w->zeros)
                zero = (vi_load((const int32_t *)words + i) >> (int)(b % 8 * 4)) & vi_splat(15);
            v_store(to.offsets + b * LNT_PANEL + i,
                    v_load(to.scales + b * LNT_PANEL + i) * v_splat(0.125f) * vi_float(zero));
        }
    }
}

static void unpack_numbers(const lnt_nibble_job *j, int64_t n, unsigned columns, uint8_t *to)
{
    const int64_t bytes = j->w.blocks << (j->w.block_log2 - 1), step = LNT_NIBBLE_GROUP / 2;
    const uint8_t *from = j->w.weights + n * bytes;
    const vi low = vi_splat(0x0f0f0f0f);
    int64_t at[LNT_PANEL];
    column_offsets(columns, bytes, at);
    for (int64_t i = 0; i < bytes; i += step)
        for (unsigned first = 0; first < LNT_PANEL; first += LNT_VL) {
            int32_t *even = (int32_t *)(void *)to + i / step * (LNT_NIBBLE_GROUP / 4 * LNT_PANEL) + first;
            vi words[4];
            vi_columns(from + i, at + first, words);
            UNROLL_FOR(4, unsigned k = 0; k < 4; k++) {
                /* Of the next panel, a line of each column in four steps. */
                v_prefetch_far(from + at[first + i / step % 2 * 4 + k] + LNT_PANEL * bytes + i);
                vi_store(even + k * LNT_PANEL, words[k] & low);
                vi_store(even + (k + 4) * LNT_PANEL, (words[k] >> 4) & low);
            }
        }
}

void LNT_SIMD_NAME(lnt_nibble_unpack)(const lnt_nibble_job *j, int64_t n, unsigned columns, char *room)
{
    const panel_parts p = parts_of(&j->w, room);
    unpack_scales(j, n, columns, p);
    unpack_numbers(j, n, columns, p.numbers);
}

void LNT_SIMD_NAME(lnt_nibble_end)(const lnt_nibble_job *j, int64_t m, int64_t n, unsigned columns,
                                   const float *sums)
{
    for (unsigned first = 0; first < columns; first += LNT_VL) {
        const unsigned lanes = lanes_left(columns - first);
        const vf bias = j->bias ? v_load_n(j->bias + n + first, lanes) : v_splat(0);
        v_store_n(j->y + m * j->N + n + first, v_load(sums + first) + bias, lanes);
    }
}

#endif

typedef struct some_rows {
    row_parts row[ROWS];
    vf total[ROWS][PARTS];
} some_rows;

/* Adds group g, of block b. */
LNT_INLINE void add_group(some_rows *t, int64_t g, int64_t b, const panel_parts *p)
{
    const int32_t *quads = (const int32_t *)(const void *)p->numbers + g * QUADS * LNT_PANEL;
    vi sum[ROWS][PARTS];
    UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
        UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++)
            sum[r][i] = vi_splat(0);
    if (LNT_VL == 8) /* totals wait in memory, or the sums would */
        __asm__("" : "+m"(t->total));
    UNROLL_FOR(1, int64_t q = 0; q < QUADS; q++)
        UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++) {
            const vi x = vi_splat(((const int32_t *)(const void *)t->row[r].numbers)[g * QUADS + q]);
            UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++)
                sum[r][i] = nibbles_add(sum[r][i], vi_load(quads + q * LNT_PANEL + i * LNT_VL), x);
        }
    UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++) {
        const vf scale = v_load(p->scales + b * LNT_PANEL + i * LNT_VL);
        UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
            t->total[r][i] = v_fma(vi_float(nibbles_sums(sum[r][i])), scale * v_splat(t->row[r].scales[g]),
                                   t->total[r][i]);
    }
}

/* Takes off what the zero points of block b make. */
LNT_INLINE void add_offsets(some_rows *t, int64_t b, const panel_parts *p)
{
    UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++) {
        const vf offset = v_load(p->offsets + b * LNT_PANEL + i * LNT_VL);
        UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
            t->total[r][i] = v_fnma(offset, v_splat(t->row[r].sums[b]), t->total[r][i]);
    }
}

/* Rows from m on, behind the last one that again. */
static void rows_by_panel(const lnt_nibble_job *j, int64_t m, const panel_parts *p, float (*sums)[LNT_PANEL])
{
    const unsigned shift = group_shift(j);
    const int64_t groups = j->chunks * j->lanes;
    some_rows t;
    UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++) {
        t.row[r] = row_at(j, lnt_least(m + r, j->M - 1));
        UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++)
            t.total[r][i] = v_splat(0);
    }
    for (int64_t b = 0; b < j->w.blocks; b++) {
        for (int64_t g = b << shift; g < (b + 1) << shift && g < groups; g++)
            add_group(&t, g, b, p);
        add_offsets(&t, b, p);
    }
    UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
        UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++)
            v_store(sums[r] + i * LNT_VL, t.total[r][i]);
}

static void panel(const lnt_nibble_job *j, int64_t n, unsigned columns, char *room)
{
    const panel_parts p = parts_of(&j->w, room);
    LNT_ASSERT(columns > 0 && columns <= LNT_PANEL);
    lnt_nibble_unpack_avx2(j, n, columns, room);
    for (int64_t m = 0; m < j->M; m += ROWS) {
        float sums[ROWS][LNT_PANEL];
        rows_by_panel(j, m, &p, sums);
        for (int64_t r = 0; r < ROWS && m + r < j->M; r++)
            lnt_nibble_end_avx2(j, m + r, n, columns, sums[r]);
    }
}
