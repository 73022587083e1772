/* nibble_columns.inc.h — columns of weights of few bits times rows of int8, part of nibble_kernels.inc.h on x86: scales
 * are picked where they lie for each row; many rows meet panels. */

/* Bits of the numbers, as the compiler may know them. */
LNT_INLINE unsigned bits_of(const lnt_nibbles *w)
{
    return NIBBLES_8_BITS ? w->bits : 4;
}

/* A quantized row. */
typedef struct row_parts {
    const char *numbers;
    const float *scales, *sums;
} row_parts;

LNT_INLINE row_parts row_at(const lnt_nibble_job *j, int64_t m)
{
    row_parts r = {.numbers = j->rows + m * j->row_bytes};
    r.scales = (const float *)(const void *)(r.numbers + j->numbers_bytes);
    r.sums = r.scales + j->chunks * j->lanes;
    return r;
}

/* ---- a row by some columns ---- */

/* What all columns have in common. */
typedef struct columns_shape {
    int64_t blocks, column_bytes, zero_bytes, chunk_bytes;
    int64_t ahead;          /* bytes from these columns to the next, for the first row */
    unsigned shift;         /* a block is 2 ** shift groups, */
    unsigned lanes_log2;    /* a group 2 ** this lanes of 32 bits */
    bool bytes;             /* numbers are of 8 bits */
    vi lane_block, lane_of; /* of groups: block, counted from the first one's on; of lanes: group */
} columns_shape;

LNT_INLINE columns_shape shape_of(const lnt_nibble_job *j)
{
    const bool bytes = bits_of(&j->w) == 8;
    columns_shape s = {.blocks = j->w.blocks,
                       .column_bytes = j->column_bytes,
                       .zero_bytes = (j->w.blocks * bits_of(&j->w) + 7) / 8,
                       .shift = j->shift,
                       .lanes_log2 = j->group_log2 - (bytes ? 2 : 3),
                       .bytes = bytes};
    s.chunk_bytes = NIBBLES_BYTES << s.lanes_log2;
    s.lane_block = v_lanes_of(s.shift);
    s.lane_of = v_lanes_of(s.lanes_log2);
    return s;
}

/* COLUMNS that follow one another, or one of them so often: bytes and blocks from each to the next. */
typedef struct some_columns {
    const uint8_t *from, *zeros; /* zeros: NULL as those of lnt_nibbles */
    const float *scales;
    int64_t next_from, next_zeros, next_scales;
    row_parts row;
    vf total[COLUMNS];
} some_columns;

/* Adds a chunk of all columns, of which each has `left` bytes, whole steps of them or not, and lanes of scales. */
LNT_INLINE void add_steps(some_columns *t, const columns_shape *s, int64_t left, const vf *scale,
                          const bool bytes, const bool whole)
{
    const vi low = vi_splat(0x0f0f0f0f);
    vi group = s->lane_of;
    UNROLL_FOR(1, int64_t i = 0; i < left; i += NIBBLES_BYTES) {
        const unsigned words = lanes_left((size_t)(left - i) / 4);
        UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
            const uint8_t *at = t->from + i + c * t->next_from;
            v_prefetch(at + s->ahead);
            const vi w = (vi)(whole ? v_load(ELEMS(at)) : v_load_n(ELEMS(at), words));
            const vi sum =
                bytes ? nibbles_add(vi_splat(0), w, vi_load((const int32_t *)(const void *)t->row.numbers))
                      : nibbles_dot(nibbles_of(w, low, low), (const int8_t *)t->row.numbers);
            t->total[c] = v_fma(vi_float(sum), v_lanes(scale[c], group), t->total[c]);
        }
        t->row.numbers += bytes ? NIBBLES_BYTES : NIBBLES_STEP;
        group += vi_splat(LNT_VL >> s->lanes_log2);
    }
}

/* Less what the zero points of blocks from `first` on add, as many as a vector has lanes. */
LNT_INLINE void add_offsets(some_columns *t, const columns_shape *s, int64_t first)
{
    const unsigned blocks = lanes_left((size_t)(s->blocks - first));
    const vf sums = v_load(t->row.sums + first);
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
        /* May be NULL. */
        const uint8_t *zeros = (const uint8_t *)((uintptr_t)t->zeros + c * (uintptr_t)t->next_zeros);
        vf scale = v_load_n(t->scales + first + c * t->next_scales, blocks);
        if (t->zeros && NIBBLES_8_BITS && s->bytes)
            scale *= vi_float(nibbles_bytes(zeros + first, blocks));
        else if (t->zeros)
            scale *= vi_float(nibbles_numbers(zeros + first / 2, s->zero_bytes - first / 2));
        t->total[c] = v_fnma(scale, sums, t->total[c]);
    }
}

/* Adds a chunk of all columns, of which each has `left` bytes, from block `first` on. */
LNT_INLINE void add_chunk(some_columns *t, const columns_shape *s, int64_t left, int64_t first)
{
    const unsigned blocks = lanes_left((size_t)(s->blocks - first));
    vf scale[COLUMNS];
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++)
        scale[c] =
            v_load(t->row.scales) * v_pick(t->scales + first + c * t->next_scales, blocks, s->lane_block);
    if (left % NIBBLES_BYTES)
        add_steps(t, s, left, scale, NIBBLES_8_BITS && s->bytes, false);
    else if (NIBBLES_8_BITS && s->bytes)
        add_steps(t, s, left, scale, true, true);
    else
        add_steps(t, s, left, scale, false, true);
    t->row.scales += LNT_VL;
}

/* A row by COLUMNS from n on, or by that one. */
LNT_INLINE vf row_by_columns(const lnt_nibbles *w, const columns_shape *s, row_parts row, int64_t n, bool one)
{
    some_columns t = {.from = w->weights + n * s->column_bytes,
                      .zeros = w->zeros ? w->zeros + n * s->zero_bytes : NULL,
                      .scales = w->scales + n * s->blocks,
                      .next_from = one ? 0 : s->column_bytes,
                      .next_zeros = one ? 0 : s->zero_bytes,
                      .next_scales = one ? 0 : s->blocks,
                      .row = row,
                      .total = {v_splat(0), v_splat(0), v_splat(0), v_splat(0)}};
    for (int64_t at = 0, groups = 0; at < s->column_bytes; at += s->chunk_bytes, groups += LNT_VL) {
        const int64_t first = groups >> s->shift;
        if ((groups & (((int64_t)LNT_VL << s->shift) - 1)) == 0)
            add_offsets(&t, s, first);
        add_chunk(&t, s, lnt_least(s->chunk_bytes, s->column_bytes - at), first);
        t.from += s->chunk_bytes;
    }
    return v_sum4(t.total[0], t.total[1], t.total[2], t.total[3]);
}

static void columns(const lnt_nibble_job *j, int64_t begin, int64_t end)
{
    columns_shape s = shape_of(j);
    for (int64_t n = begin, some; n < end; n += some) {
        some = end - n < COLUMNS ? 1 : COLUMNS;
        for (int64_t m = 0; m < j->M; m++) {
            s.ahead = m == 0 ? COLUMNS * s.column_bytes : 0;
            vf sums = row_by_columns(&j->w, &s, row_at(j, m), n, some == 1);
            if (j->bias)
                sums += v_load_n(j->bias + n, (unsigned)some);
            v_store_n(j->y + m * j->N + n, sums, (unsigned)some);
        }
    }
}

/* ---- rows by a panel ---- */

enum {
    PARTS = LNT_PANEL / LNT_VL, /* vectors across */
    ROWS = 8 / PARTS
};

#ifndef NIBBLE_TILE_ALONE

void LNT_SIMD_NAME(lnt_nibble_unpack)(const lnt_nibble_job *j, const lnt_nbits_panel *p, int32_t *to)
{
    const unsigned per_byte = 8 / j->w.bits;
    const int64_t bytes = (j->w.blocks << j->w.block_log2) / per_byte, step = LNT_NIBBLE_UNPACKED;
    const vi low = vi_splat(per_byte == 1 ? -1 : 0x0f0f0f0f);
    for (int64_t i = 0; i < bytes; i += step, to += 4 * per_byte * LNT_PANEL)
        for (unsigned first = 0; first < LNT_PANEL; first += LNT_VL) {
            vi words[4];
            vi_columns(p->weights + i, p->at + first, words);
            UNROLL_FOR(4, unsigned k = 0; k < 4; k++) {
                /* Of the next panel, a line of each column in four steps. */
                v_prefetch_far(p->weights + p->at[first + i / step % 2 * 4 + k] + LNT_PANEL * bytes + i);
                vi_store(to + k * LNT_PANEL + first, words[k] & low);
                if (per_byte == 2)
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

/* Where groups have their quads of numbers: half a GROUP of 4 bits has a pair of the even ones, and one of the odd. */
typedef struct group_quads {
    int64_t quads, apart; /* of a group; from one pair to the next besides */
} group_quads;

/* Adds group g, of block b. */
LNT_INLINE void add_group(some_rows *t, int64_t g, int64_t b, const lnt_nbits_panel *p, group_quads of,
                          const int32_t *quads)
{
    vi sum[ROWS][PARTS];
    UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
        UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++)
            sum[r][i] = vi_splat(0);
    if (LNT_VL == 8) /* totals wait in memory, or the sums would */
        __asm__("" : "+m"(t->total));
    int64_t q = g * of.quads - (g & 1) * of.apart;
    UNROLL_FOR(1, int64_t left = of.quads; left > 0; q += 1 + (left & 1) * of.apart, left--) {
        UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++) {
            const vi x = vi_splat(((const int32_t *)(const void *)t->row[r].numbers)[q]);
            UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++)
                sum[r][i] = nibbles_add(sum[r][i], vi_load(quads + q * LNT_PANEL + i * LNT_VL), x);
        }
    }
    UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++) {
        const vf scale = v_load(p->scales + b * LNT_PANEL + i * LNT_VL);
        UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
            t->total[r][i] = v_fma(vi_float(nibbles_sums(sum[r][i])), scale * v_splat(t->row[r].scales[g]),
                                   t->total[r][i]);
    }
}

/* Takes off what the zero points of block b make. */
LNT_INLINE void add_block(some_rows *t, int64_t b, const lnt_nbits_panel *p)
{
    UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++) {
        const int64_t at = b * LNT_PANEL + i * LNT_VL;
        const vf scale = v_load(p->scales + at), offset = p->zeros ? scale * v_load(p->zeros + at) : scale;
        UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
            t->total[r][i] = v_fnma(offset, v_splat(t->row[r].sums[b]), t->total[r][i]);
    }
}

/* Rows from m on, behind the last one that again. */
static void rows_by_panel(const lnt_nibble_job *j, int64_t m, const lnt_nbits_panel *p, const int32_t *quads,
                          float (*sums)[LNT_PANEL])
{
    const unsigned shift = j->shift;
    const int64_t groups = j->chunks * j->lanes;
    const unsigned group_log2 = NIBBLES_8_BITS ? j->group_log2 : LNT_NIBBLE_GROUP_LOG2;
    const group_quads of = {.quads = 1 << (group_log2 - 2),
                            .apart = group_log2 < LNT_NIBBLE_GROUP_LOG2 && bits_of(&j->w) == 4 ? 2 : 0};
    some_rows t;
    UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++) {
        t.row[r] = row_at(j, lnt_least(m + r, j->M - 1));
        UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++)
            t.total[r][i] = v_splat(0);
    }
    for (int64_t b = 0; b < j->w.blocks; b++) {
        for (int64_t g = b << shift; g < (b + 1) << shift && g < groups; g++)
            add_group(&t, g, b, p, of, quads);
        add_block(&t, b, p);
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
