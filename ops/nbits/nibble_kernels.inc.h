/* nibble_kernels.inc.h — products of int8 with weights of 4 bits over simd_nibbles.h, compiled once per level. */
#include "ops/nbits/nibble_kernels.h"

#include "base/checked.h"
#include "ops/simd/simd_lanes.h"
#include "ops/simd/simd_narrow.h"
#include "ops/simd/simd_nibbles.h"

enum {
    CHUNK = LNT_VL * LNT_NIBBLE_GROUP, /* numbers */
    STEPS = CHUNK / NIBBLES_STEP,
    ROWS = LNT_NIBBLE_ROWS,
    COLUMNS = LNT_NIBBLE_COLUMNS,
};
_Static_assert(STEPS == 4, "a step for each lane of 128 bits");

/* A quantized row is its numbers, [chunks][STEPS][even, odd][NIBBLES_BYTES], then the groups' scales and then the sums
 * of their numbers times 8 times these, [chunks][LNT_VL] each, in the order of group_at. */
LNT_INLINE const float *scales_of(const char *row, int64_t chunks)
{
    return (const float *)(const void *)(row + chunks * CHUNK);
}

#ifndef NIBBLE_TILE_ALONE

/* Which group of its chunk lane i is of: that whose sum v_spread puts it with. */
LNT_INLINE unsigned group_at(const unsigned i)
{
    return LNT_VL == 8 ? i % 4 * 2 + i / 4 : i;
}

/* ---- rows ---- */

/* A group's numbers into the steps of its chunk. */
LNT_INLINE void put_group(const int8_t *numbers, unsigned group, int8_t *chunk)
{
    for (unsigned i = 0; i < LNT_NIBBLE_GROUP; i++) {
        const unsigned k = group * LNT_NIBBLE_GROUP + i, in_step = k % NIBBLES_STEP;
        chunk[k / NIBBLES_STEP * NIBBLES_STEP + in_step % 2 * NIBBLES_BYTES + in_step / 2] = numbers[i];
    }
}

/* The largest magnitude of a group; NaN if one of its numbers is no finite one. */
LNT_INLINE float largest_of(const vf *x)
{
    vf largest = v_splat(0), bad = v_splat(0);
    UNROLL_FOR(8, unsigned i = 0; i < LNT_NIBBLE_GROUP / LNT_VL; i++) {
        largest = v_max(largest, v_abs(x[i]));
        bad += x[i] * v_splat(0);
    }
    float all = v_sum(bad);
    for (unsigned i = 0; i < LNT_VL; i++)
        all = fmaxf(all, ((const float *)&largest)[i]) + 0 * all;
    return all;
}

/* Quantizes a group; its scale, and the sum of its numbers. */
LNT_INLINE float quantize_group(const vf *x, int8_t *numbers, int32_t *sum)
{
    const float most = 127, largest = largest_of(x);
    const vf inverse = v_splat(largest > 0x1p-100f ? most / largest : 0);
    *sum = 0;
    if (!(largest > 0x1p-100f)) {
        memset(numbers, 0, LNT_NIBBLE_GROUP);
        return largest >= 0 ? 0 : largest;
    }
    for (unsigned i = 0; i < LNT_NIBBLE_GROUP / LNT_VL; i++) {
        int32_t lanes[LNT_VL];
        const vi q = v_round_int(x[i] * inverse);
        vi_store(lanes, q);
        for (unsigned k = 0; k < LNT_VL; k++) {
            numbers[i * LNT_VL + k] = (int8_t)lanes[k];
            *sum += lanes[k];
        }
    }
    return largest / most;
}

void LNT_SIMD_NAME(lnt_nibble_quantize)(const float *a, int64_t K, int64_t chunks, char *row)
{
    float *scales = (float *)(void *)(row + chunks * CHUNK), *sums = scales + chunks * LNT_VL;
    for (int64_t c = 0; c < chunks; c++)
        for (unsigned lane = 0; lane < LNT_VL; lane++) {
            const unsigned group = group_at(lane);
            const int64_t k = c * CHUNK + group * LNT_NIBBLE_GROUP;
            vf x[LNT_NIBBLE_GROUP / LNT_VL];
            int8_t numbers[LNT_NIBBLE_GROUP];
            int32_t sum;
            for (unsigned i = 0; i < LNT_NIBBLE_GROUP / LNT_VL; i++) {
                const int64_t at = k + i * LNT_VL, left = K - at;
                x[i] = left >= LNT_VL ? v_load(a + at)
                       : left > 0     ? v_load_n(a + at, (unsigned)left)
                                      : v_splat(0);
            }
            scales[c * LNT_VL + lane] = quantize_group(x, numbers, &sum);
            sums[c * LNT_VL + lane] = scales[c * LNT_VL + lane] * (float)(8 * sum);
            put_group(numbers, group, (int8_t *)row + c * CHUNK);
        }
}

/* ---- columns ---- */

/* What all columns have in common. */
typedef struct shape {
    vi block;       /* that lanes are of, from the chunk's first on */
    unsigned last;  /* of the last lane */
    unsigned shift; /* a block is 2 ** shift groups */
} shape;

LNT_INLINE shape shape_of(const lnt_nibbles *w)
{
    int32_t block[LNT_VL];
    const unsigned shift = w->block_log2 - LNT_NIBBLE_GROUP_LOG2;
    for (unsigned i = 0; i < LNT_VL; i++)
        block[i] = (int32_t)(shift < 8 ? group_at(i) >> shift : 0);
    return (shape){vi_load(block), (unsigned)block[LNT_VL - 1], shift};
}

/* Scales of a chunk's groups, of n blocks that are left. */
LNT_INLINE vf chunk_scales(const float *p, int64_t n, const shape *s)
{
#if LNT_VL == 8
    return v_pick(p, n < LNT_VL ? (unsigned)n : LNT_VL, s->block);
#elif LNT_VL == 4
    if (s->shift == 0)
        return v_load_n(p, n < LNT_VL ? (unsigned)n : LNT_VL);
    const float next = s->shift == 1 && n > 1 ? p[1] : p[0];
    return (vf){p[0], p[0], next, next};
#else
    (void)n, (void)s;
    return v_load(p);
#endif
}

/* Zero points of a chunk's groups from number `first` on. */
LNT_INLINE vf chunk_zeros(const uint8_t *zeros, int64_t first, int64_t blocks, const shape *s)
{
    uint32_t word = 0;
    const int64_t left = (blocks + 1) / 2 - first / 2;
    for (unsigned i = 0; i <= (s->last + first % 2) / 2 && i < left; i++)
        word |= (uint32_t)zeros[first / 2 + i] << 8 * i;
    const vu numbers = (vu)vi_splat((int32_t)word) >> (vu)((s->block + vi_splat((int32_t)(first % 2))) << 2);
    return vi_float((vi)numbers & vi_splat(15));
}

static void prepare_scales(const lnt_nibble_job *j, const shape *s, int64_t n, float *to)
{
    const lnt_nibbles *w = &j->w;
    const float *scales = w->scales + n * w->blocks;
    const uint8_t *zeros = w->zeros + (w->zeros ? n * ((w->blocks + 1) / 2) : 0);
    for (int64_t chunk = 0; chunk < j->chunks; chunk++, to += LNT_VL) {
        const int64_t first = (chunk * LNT_VL) >> s->shift;
        const vf scale = chunk_scales(scales + first, w->blocks - first, s);
        v_store(to, scale);
        v_store(to + j->chunks * LNT_VL,
                scale * (w->zeros ? chunk_zeros(zeros, first, w->blocks, s) * v_splat(0.125f) : v_splat(1)));
    }
}

void LNT_SIMD_NAME(lnt_nibble_prepare)(const lnt_nibble_job *j, int64_t n, unsigned columns, float *room,
                                       lnt_nibble_block *b)
{
    const shape s = shape_of(&j->w);
    const int64_t column_bytes = j->w.blocks << (j->w.block_log2 - 1);
    /* Scales as they lie in memory serve where there are whole chunks of them and no zero points but 8. */
    const bool plain = LNT_VL != 8 && s.shift == 0 && !j->w.zeros && j->w.blocks % LNT_VL == 0;
    b->offsets = plain ? 0 : j->chunks * LNT_VL;
    b->next = COLUMNS * column_bytes;
    b->whole = lnt_least(j->chunks, column_bytes / (CHUNK / 2));
    for (unsigned c = 0; c < COLUMNS; c++) {
        const int64_t column = n + (c < columns ? c : columns - 1);
        b->weights[c] = j->w.weights + column * column_bytes;
        b->scales[c] = plain ? j->w.scales + column * j->w.blocks : room + c * 2 * j->chunks * LNT_VL;
        if (!plain)
            prepare_scales(j, &s, column, room + c * 2 * j->chunks * LNT_VL);
        if (b->whole == j->chunks)
            continue;
        memset(b->end[c], 0, CHUNK / 2);
        memcpy(b->end[c], b->weights[c] + b->whole * (CHUNK / 2),
               (size_t)(column_bytes - b->whole * (CHUNK / 2)));
    }
}

#endif

/* ---- a tile ---- */

/* What a tile has come to. */
typedef struct progress {
    const uint8_t *from[COLUMNS];
    const float *scale[COLUMNS];
    const char *row;     /* numbers of the first row */
    const float *of_row; /* its scales */
    vf total[ROWS][COLUMNS];
} progress;

/* The next chunk of rows by columns. */
LNT_INLINE void next_chunk(progress *t, int64_t pitch, int64_t sums, const lnt_nibble_block *b,
                           const unsigned rows, const unsigned columns)
{
    vf scale[ROWS][COLUMNS];
    UNROLL_FOR(4, unsigned r = 0; r < rows; r++) {
        const float *of_row = (const float *)(const void *)((const char *)t->of_row + r * pitch);
        const vf row_scale = v_load(of_row), row_sum = v_load(of_row + sums);
        UNROLL_FOR(4, unsigned c = 0; c < columns; c++) {
            scale[r][c] = v_load(t->scale[c]) * row_scale;
            t->total[r][c] = v_fnma(v_load(t->scale[c] + b->offsets), row_sum, t->total[r][c]);
        }
    }
    if (rows == 1)
        UNROLL_FOR(4, unsigned c = 0; c < columns; c++)
            for (unsigned i = 0; i < CHUNK / 2; i += 64)
                __builtin_prefetch(t->from[c] + b->next + i);
    UNROLL_FOR(4, unsigned i = 0; i < STEPS; i++)
        UNROLL_FOR(4, unsigned c = 0; c < columns; c++) {
            const nibbles n = nibbles_load(t->from[c] + i * NIBBLES_BYTES);
            UNROLL_FOR(4, unsigned r = 0; r < rows; r++) {
                const vi sum = nibbles_dot(n, (const int8_t *)t->row + r * pitch + i * NIBBLES_STEP);
                t->total[r][c] = v_fma(vi_float(sum), v_spread(scale[r][c], i), t->total[r][c]);
            }
        }
    UNROLL_FOR(4, unsigned c = 0; c < columns; c++) {
        t->from[c] += CHUNK / 2;
        t->scale[c] += LNT_VL;
    }
    t->row += CHUNK;
    t->of_row += LNT_VL;
}

/* sums[row][column] of rows by columns, those of b from `first` on. */
LNT_INLINE void tile_of(const lnt_nibble_job *j, const lnt_nibble_block *b, unsigned first, int64_t m,
                        const unsigned rows, const unsigned columns, float (*sums)[COLUMNS])
{
    const int64_t pitch = j->chunks * LNT_VL * LNT_NIBBLE_GROUP_BYTES, whole = b->whole;
    progress t = {.row = j->rows + m * pitch};
    t.of_row = scales_of(t.row, j->chunks);
    UNROLL_FOR(4, unsigned c = 0; c < columns; c++) {
        t.from[c] = b->weights[first + c];
        t.scale[c] = b->scales[first + c];
        UNROLL_FOR(4, unsigned r = 0; r < rows; r++)
            t.total[r][c] = v_splat(0);
    }
    for (int64_t chunk = 0; chunk < j->chunks;) {
        for (const int64_t end = chunk < whole ? whole : j->chunks; chunk < end; chunk++)
            next_chunk(&t, pitch, j->chunks * LNT_VL, b, rows, columns);
        UNROLL_FOR(4, unsigned c = 0; c < columns; c++)
            t.from[c] = b->end[first + c];
    }
    UNROLL_FOR(4, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned c = 0; c < columns; c++)
            sums[r][c] = v_sum(t.total[r][c]);
}

/* Of few registers several rows leave room for one column. */
static void tile(const lnt_nibble_job *j, const lnt_nibble_block *b, int64_t m, unsigned rows,
                 float (*sums)[COLUMNS])
{
#ifdef NIBBLE_TILE_OF_ROWS
    for (unsigned c = 0; c < COLUMNS && rows > 1; c++)
        tile_of(j, b, c, m, ROWS, 1, (float(*)[COLUMNS]) & sums[0][c]);
    if (rows > 1)
        return;
#endif
    (void)rows;
    tile_of(j, b, 0, m, 1, COLUMNS, sums);
}
