/* nibble_columns.inc.h — columns of weights of 4 bits times rows of int8, part of nibble_kernels.inc.h on x86: scales
 * are picked where they lie for each row; many rows meet panels. */

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

/* Less what zero points add to columns' sums; sums: of the row's blocks. */
static __attribute__((noinline)) void begin_columns(const lnt_nibbles *w, const int64_t *column,
                                                    const float *sums, vf *total)
{
    const int64_t blocks = w->blocks, zero_bytes = (blocks + 1) / 2;
    for (int64_t b = 0; b < blocks; b += LNT_VL) {
        const vf sum = v_load(sums + b) * v_splat(0.125f);
        const unsigned some = lanes_left((size_t)(blocks - b));
        for (unsigned c = 0; c < COLUMNS; c++) {
            const vf scale = v_load_n(w->scales + column[c] * blocks + b, some);
            const vf zero =
                vi_float(nibbles_numbers(w->zeros + column[c] * zero_bytes + b / 2, zero_bytes - b / 2));
            total[c] = v_fnma(scale * zero, sum, total[c]);
        }
    }
}

typedef struct some_columns {
    const uint8_t *from[COLUMNS];
    const float *scales[COLUMNS];
    vf total[COLUMNS];
} some_columns;

/* A chunk of all columns, which have `left` bytes from it on; lanes are of these of its n blocks, from number `first`
 * on. sums: of its groups, where zero points are 8; or NULL. */
LNT_INLINE void add_chunk(some_columns *t, int64_t left, int64_t first, unsigned n, vi blocks,
                          const char *row, const float *of_row, const float *sums)
{
    vf scale[COLUMNS];
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
        scale[c] = v_pick(t->scales[c] + first, n, blocks);
        if (sums)
            t->total[c] = v_fnma(scale[c], v_load(sums), t->total[c]);
        scale[c] *= v_load(of_row);
    }
    UNROLL_FOR(1, unsigned i = 0; i < STEPS && left > 0; i++, left -= NIBBLES_BYTES) {
        const unsigned words = lanes_left((size_t)left / 4);
        UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
            const nibbles w = nibbles_of((vi)v_load_n(ELEMS(t->from[c] + i * NIBBLES_BYTES), words));
            const vi sum = nibbles_dot(w, (const int8_t *)row + i * NIBBLES_STEP);
            t->total[c] = v_fma(vi_float(sum), v_spread(scale[c], i), t->total[c]);
        }
    }
}

/* A row by columns from n on; behind the last one that again. */
LNT_INLINE vf row_by_columns(const lnt_nibble_job *j, row_parts row, int64_t n, unsigned columns)
{
    const lnt_nibbles *w = &j->w;
    const unsigned shift = group_shift(j);
    const int64_t column_bytes = w->blocks << (w->block_log2 - 1);
    const vi blocks = v_lanes_of(shift);
    int64_t column[COLUMNS];
    vf total[COLUMNS] = {v_splat(0), v_splat(0), v_splat(0), v_splat(0)};
    some_columns t;
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
        column[c] = n + (c < columns ? c : columns - 1);
        t.from[c] = w->weights + column[c] * column_bytes;
        t.scales[c] = w->scales + column[c] * w->blocks;
    }
    if (w->zeros)
        begin_columns(w, column, row.sums, total);
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++)
        t.total[c] = total[c];
    for (int64_t chunk = 0; chunk < j->chunks; chunk++) {
        const int64_t first = chunk * LNT_VL >> shift, left = column_bytes - chunk * (CHUNK / 2);
        for (int64_t i = 0; i < COLUMNS * lnt_least(left, CHUNK / 2); i += 64)
            v_prefetch(t.from[0] + COLUMNS * column_bytes + i);
        add_chunk(&t, left, first, lanes_left((size_t)(w->blocks - first)), blocks,
                  row.numbers + chunk * CHUNK, row.scales + chunk * LNT_VL,
                  w->zeros ? NULL : row.sums + chunk * LNT_VL);
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

#ifndef NIBBLE_TILE_ALONE

void LNT_SIMD_NAME(lnt_nibble_unpack)(const lnt_nibble_job *j, const lnt_nbits_panel *p, int32_t *to)
{
    const int64_t bytes = j->w.blocks << (j->w.block_log2 - 1), step = LNT_NIBBLE_GROUP / 2;
    const vi low = vi_splat(0x0f0f0f0f);
    for (int64_t i = 0; i < bytes; i += step, to += QUADS * LNT_PANEL)
        for (unsigned first = 0; first < LNT_PANEL; first += LNT_VL) {
            vi words[4];
            vi_columns(p->weights + i, p->at + first, words);
            UNROLL_FOR(4, unsigned k = 0; k < 4; k++) {
                /* Of the next panel, a line of each column in four steps. */
                v_prefetch_far(p->weights + p->at[first + i / step % 2 * 4 + k] + LNT_PANEL * bytes + i);
                vi_store(to + k * LNT_PANEL + first, words[k] & low);
                vi_store(to + (k + 4) * LNT_PANEL + first, (words[k] >> 4) & low);
            }
        }
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
LNT_INLINE void add_group(some_rows *t, int64_t g, int64_t b, const lnt_nbits_panel *p, const int32_t *quads)
{
    quads += g * QUADS * LNT_PANEL;
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
LNT_INLINE void add_offsets(some_rows *t, int64_t b, const lnt_nbits_panel *p)
{
    UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++) {
        const int64_t at = b * LNT_PANEL + i * LNT_VL;
        const vf scale = v_load(p->scales + at),
                 offset = p->zeros ? scale * v_load(p->zeros + at) * v_splat(0.125f) : scale;
        UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
            t->total[r][i] = v_fnma(offset, v_splat(t->row[r].sums[b]), t->total[r][i]);
    }
}

/* Rows from m on, behind the last one that again. */
static void rows_by_panel(const lnt_nibble_job *j, int64_t m, const lnt_nbits_panel *p, const int32_t *quads,
                          float (*sums)[LNT_PANEL])
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
            add_group(&t, g, b, p, quads);
        add_offsets(&t, b, p);
    }
    UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
        UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++)
            v_store(sums[r] + i * LNT_VL, t.total[r][i]);
}

static void panel(const lnt_nibble_job *j, const lnt_nbits_panel *p, int64_t n, unsigned columns, float *room)
{
    int32_t *quads = (int32_t *)(void *)room;
    LNT_ASSERT(columns > 0 && columns <= LNT_PANEL);
    lnt_nibble_unpack_avx2(j, p, quads);
    for (int64_t m = 0; m < j->M; m += ROWS) {
        float sums[ROWS][LNT_PANEL];
        rows_by_panel(j, m, p, quads, sums);
        for (int64_t r = 0; r < ROWS && m + r < j->M; r++)
            lnt_nibble_end_avx2(j, m + r, n, columns, sums[r]);
    }
}
