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

/* ---- a row or two by some columns ---- */

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

/* Rows that meet columns while these are at hand, for which there are registers. */
enum { TOGETHER = LNT_VL == 16 ? 2 : 1 };

/* COLUMNS that follow one another, or one of them so often: bytes and blocks from each to the next. */
typedef struct places {
    const uint8_t *from, *zeros; /* zeros: NULL as those of lnt_nibbles */
    const float *scales;
    int64_t next_from, next_zeros, next_scales;
} places;

/* Rows that meet them. */
typedef struct some_columns {
    places at;
    row_parts row; /* the first */
    int64_t next_row;
    unsigned rows; /* as the compiler knows them */
    vf total[TOGETHER][COLUMNS];
} some_columns;

/* Of row r what lies here of the first. */
LNT_INLINE const void *of_row(const some_columns *t, const void *first, unsigned r)
{
    return (const char *)first + r * t->next_row;
}

/* Sums of products of these weights with row r's numbers. */
LNT_INLINE vi dot_step(const some_columns *t, vi w, unsigned r, const bool bytes)
{
    const vi low = vi_splat(0x0f0f0f0f);
    const void *numbers = of_row(t, t->row.numbers, r);
    return bytes ? nibbles_add(vi_splat(0), w, vi_load(numbers))
                 : nibbles_dot(nibbles_of(w, low, low), numbers);
}

/* Adds a chunk of all columns, of which each has `left` bytes, whole steps of them or not, and lanes of scales. */
LNT_INLINE void add_steps(some_columns *t, const columns_shape *s, int64_t left, vf (*scale)[COLUMNS],
                          const bool bytes, const bool whole)
{
    vi group = s->lane_of;
    UNROLL_FOR(1, int64_t i = 0; i < left; i += NIBBLES_BYTES) {
        const unsigned words = lanes_left((size_t)(left - i) / 4);
        UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
            const uint8_t *at = t->at.from + i + c * t->at.next_from;
            v_prefetch(at + s->ahead);
            const vi w = (vi)(whole ? v_load(ELEMS(at)) : v_load_n(ELEMS(at), words));
            UNROLL_FOR(2, unsigned r = 0; r < t->rows; r++)
                t->total[r][c] =
                    v_fma(vi_float(dot_step(t, w, r, bytes)), v_lanes(scale[r][c], group), t->total[r][c]);
        }
        t->row.numbers += bytes ? NIBBLES_BYTES : NIBBLES_STEP;
        group += vi_splat(LNT_VL >> s->lanes_log2);
    }
}

/* Adds what the zero points of blocks from `first` on make, as many as a vector has lanes. */
LNT_INLINE void add_offsets(some_columns *t, const columns_shape *s, int64_t first)
{
    const unsigned blocks = lanes_left((size_t)(s->blocks - first));
    const int64_t in_pairs = (int64_t)((size_t)first / 2);
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
        /* May be NULL. */
        const uint8_t *zeros = (const uint8_t *)((uintptr_t)t->at.zeros + c * (uintptr_t)t->at.next_zeros);
        vf scale = v_load_n(t->at.scales + first + c * t->at.next_scales, blocks);
        if (t->at.zeros && NIBBLES_8_BITS && s->bytes)
            scale *= vi_float(nibbles_bytes(zeros + first, blocks));
        else if (t->at.zeros)
            scale *= vi_float(nibbles_numbers(zeros + in_pairs, s->zero_bytes - in_pairs));
        UNROLL_FOR(2, unsigned r = 0; r < t->rows; r++)
            t->total[r][c] = v_fma(scale, v_load(of_row(t, t->row.sums + first, r)), t->total[r][c]);
    }
}

/* Adds a chunk of all columns, of which each has `left` bytes, from block `first` on. */
LNT_INLINE void add_chunk(some_columns *t, const columns_shape *s, int64_t left, int64_t first)
{
    const unsigned blocks = lanes_left((size_t)(s->blocks - first));
    const bool bytes = NIBBLES_8_BITS && s->bytes;
    vf scale[TOGETHER][COLUMNS];
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
        const vf of_lanes = v_pick(t->at.scales + first + c * t->at.next_scales, blocks, s->lane_block);
        UNROLL_FOR(2, unsigned r = 0; r < t->rows; r++)
            scale[r][c] = of_lanes * v_load(of_row(t, t->row.scales, r));
    }
    if (t->rows > 1 && bytes)
        add_steps(t, s, left, scale, true, false);
    else if (t->rows > 1 || left % NIBBLES_BYTES)
        add_steps(t, s, left, scale, bytes, false);
    else if (bytes)
        add_steps(t, s, left, scale, true, true);
    else
        add_steps(t, s, left, scale, false, true);
    t->row.scales += LNT_VL;
}

/* COLUMNS from n on, or that one. */
LNT_INLINE places places_of(const lnt_nibble_job *j, const columns_shape *s, int64_t n, bool one)
{
    const lnt_nibbles *w = &j->w;
    return (places){.from = w->weights + n * s->column_bytes,
                    .zeros = w->zeros ? w->zeros + n * s->zero_bytes : NULL,
                    .scales = w->scales + n * s->blocks,
                    .next_from = one ? 0 : s->column_bytes,
                    .next_zeros = one ? 0 : s->zero_bytes,
                    .next_scales = one ? 0 : s->blocks};
}

/* Rows from m on by `some` columns from n on, which these are. */
LNT_INLINE void rows_by_columns(const lnt_nibble_job *j, const columns_shape *s, const places *at, int64_t m,
                                const unsigned rows, int64_t n, unsigned some)
{
    some_columns t = {.at = *at, .row = row_at(j, m), .next_row = j->row_bytes, .rows = rows};
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++)
            t.total[r][c] = v_splat(0);
    for (int64_t i = 0, groups = 0; i < s->column_bytes; i += s->chunk_bytes, groups += LNT_VL) {
        const int64_t first = groups >> s->shift;
        if ((groups & (((int64_t)LNT_VL << s->shift) - 1)) == 0)
            add_offsets(&t, s, first);
        add_chunk(&t, s, lnt_least(s->chunk_bytes, s->column_bytes - i), first);
        t.at.from += s->chunk_bytes;
    }
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++) {
        vf sums = v_sum4(t.total[r][0], t.total[r][1], t.total[r][2], t.total[r][3]);
        if (j->bias)
            sums += v_load_n(j->bias + n, some);
        v_store_n(j->y + (m + r) * j->N + n, sums, some);
    }
}

static void columns(const lnt_nibble_job *j, int64_t begin, int64_t end)
{
    columns_shape s = shape_of(j);
    for (int64_t n = begin, some; n < end; n += some) {
        int64_t m = 0;
        some = end - n < COLUMNS ? 1 : COLUMNS;
        s.ahead = COLUMNS * s.column_bytes;
        const places at = places_of(j, &s, n, some == 1);
        for (; TOGETHER > 1 && m + TOGETHER <= j->M; m += TOGETHER, s.ahead = 0)
            rows_by_columns(j, &s, &at, m, TOGETHER, n, (unsigned)some);
        for (; m < j->M; m++, s.ahead = 0)
            rows_by_columns(j, &s, &at, m, 1, n, (unsigned)some);
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

/* Adds what the zero points of block b make. */
LNT_INLINE void add_block(some_rows *t, int64_t b, const lnt_nbits_panel *p)
{
    UNROLL_FOR(2, unsigned i = 0; i < PARTS; i++) {
        const int64_t at = b * LNT_PANEL + i * LNT_VL;
        const vf scale = v_load(p->scales + at), offset = p->zeros ? scale * v_load(p->zeros + at) : scale;
        UNROLL_FOR(8, unsigned r = 0; r < ROWS; r++)
            t->total[r][i] = v_fma(offset, v_splat(t->row[r].sums[b]), t->total[r][i]);
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
