/* nibble_kernels.inc.h — products of int8 with weights of 4 or 8 bits over simd_nibbles.h, compiled once per level. */
#include "ops/nbits/nibble_kernels.h"

#include "base/checked.h"
#include "ops/simd/simd_lanes.h"
#include "ops/simd/simd_narrow.h"
#include "ops/simd/simd_nibbles.h"

enum {
    CHUNK = LNT_VL * LNT_NIBBLE_GROUP, /* numbers */
    STEPS = CHUNK / NIBBLES_STEP,
    COLUMNS = LNT_NIBBLE_COLUMNS,
};
_Static_assert(STEPS == 4, "a step for each lane of 128 bits");

/* A quantized row is its numbers, [chunks][steps][even, odd][NIBBLES_BYTES] or, for weights of 8 bits, as they come,
 * then the groups' scales and then the sums of their numbers times these times half of the weights' range, negative,
 * [chunks][LNT_VL] each. Where NIBBLES_COLUMNS these are sums of blocks, and without the last factor if there are zero
 * points. */
LNT_INLINE const float *scales_of(const char *row, int64_t chunks)
{
    return (const float *)(const void *)(row + chunks * CHUNK);
}

#ifndef NIBBLE_TILE_ALONE

/* ---- rows ---- */

/* Numbers [group * GROUP, (group + 1) * GROUP) into the steps of their row. */
#if defined(LNT_SIMD_AVX2)
LNT_INLINE void put_group(const lnt_nibble_job *j, const vi *numbers, int64_t group, int8_t *row)
{
    const int64_t in_step = j->lanes / STEPS, bytes = j->lanes * sizeof(float);
    int8_t *even = row + group / in_step * 2 * bytes + group % in_step * (LNT_NIBBLE_GROUP / 2);
    if (j->w.bits == 8)
        nibbles_join(numbers, row + group * LNT_NIBBLE_GROUP);
    else
        nibbles_part(numbers, even, even + bytes);
}
#else
LNT_INLINE void put_group(const lnt_nibble_job *j, const vi *numbers, int64_t group, int8_t *row)
{
    const int64_t step = NIBBLES_STEP;
    (void)j;
    for (int64_t i = 0; i < LNT_NIBBLE_GROUP; i++) {
        const int64_t k = group * LNT_NIBBLE_GROUP + i, in_step = k % step;
        row[k / step * step + in_step % 2 * NIBBLES_BYTES + in_step / 2] =
            (int8_t)((const int32_t *)numbers)[i];
    }
}
#endif

/* Quantizes a group of n vectors; its scale, and the sum of its numbers. */
LNT_INLINE float quantize_group(const vf *x, unsigned n, vi *numbers, float *sum)
{
    const float most = 127;
    vf magnitude = v_abs(x[0]);
    vu all = (vu)vi_splat(0); /* numbers of NaNs wrap */
    for (unsigned i = 1; i < n; i++)
        magnitude = v_max(magnitude, v_abs(x[i]));
    const float largest = v_max_lane(magnitude);
    const bool some = largest > 0x1p-100f;
    const vf inverse = v_splat(some ? most / largest : 0);
    for (unsigned i = 0; i < n; i++) {
        numbers[i] = v_round_int(x[i] * inverse);
        all += (vu)numbers[i];
    }
    *sum = v_sum(vi_float((vi)all));
    return some ? largest / most : 0;
}

void LNT_SIMD_NAME(lnt_nibble_quantize)(const lnt_nibble_job *j, const float *a, int64_t K, char *row)
{
    const int64_t groups = j->chunks * j->lanes;
    const unsigned log2 = NIBBLES_COLUMNS ? j->group_log2 : LNT_NIBBLE_GROUP_LOG2,
                   part = (1u << log2) / LNT_VL;
    const unsigned shift = NIBBLES_COLUMNS ? j->shift : 0; /* sums of blocks, or of groups */
    const float half = !NIBBLES_COLUMNS ? -8 : j->w.zeros ? -1 : -(float)(1u << (j->w.bits - 1));
    float *scales = (float *)(void *)(row + j->numbers_bytes), *sums = scales + groups;
    vf bad = v_splat(0);
    memset(sums, 0, (size_t)groups * sizeof *sums);
    for (int64_t g = 0, first = 0; g < groups; first++) {
        vf x[LNT_NIBBLE_GROUP / LNT_VL];
        vi numbers[LNT_NIBBLE_GROUP / LNT_VL];
        for (int64_t i = 0; i < LNT_NIBBLE_GROUP / LNT_VL; i++) {
            const int64_t at = first * LNT_NIBBLE_GROUP + i * LNT_VL, left = K - at;
            x[i] = left >= LNT_VL ? v_load(a + at) : left > 0 ? v_load_n(a + at, (unsigned)left) : v_splat(0);
            bad += x[i] * v_splat(0);
        }
        for (unsigned i = 0; i < LNT_NIBBLE_GROUP / LNT_VL; i += part, g++) {
            float sum;
            scales[g] = quantize_group(x + i, part, numbers + i, &sum);
            sums[g >> shift] += scales[g] * (half * sum);
        }
        put_group(j, numbers, first, (int8_t *)row);
    }
    scales[0] += v_sum(bad);
}

#if !NIBBLES_COLUMNS

/* ---- columns ---- */

/* What vectors of groups have in common. */
typedef struct shape {
    vi block;       /* that lanes are of, from the first lane's on */
    unsigned last;  /* of the last lane */
    unsigned shift; /* a block is 2 ** shift groups */
} shape;

LNT_INLINE shape shape_of(const lnt_nibbles *w)
{
    int32_t block[LNT_VL];
    const unsigned shift = w->block_log2 - LNT_NIBBLE_GROUP_LOG2;
    for (unsigned i = 0; i < LNT_VL; i++)
        block[i] = (int32_t)(shift < 8 ? i >> shift : 0);
    return (shape){vi_load(block), (unsigned)block[LNT_VL - 1], shift};
}

/* Scales of a vector of groups, of n blocks that are left. */
LNT_INLINE vf group_scales(const float *p, int64_t n, const shape *s)
{
#if LNT_VL == 4
    if (s->shift == 0)
        return v_load_n(p, n < LNT_VL ? (unsigned)n : LNT_VL);
    const float next = s->shift == 1 && n > 1 ? p[1] : p[0];
    return (vf){p[0], p[0], next, next};
#else
    (void)n, (void)s;
    return v_load(p);
#endif
}

/* Their zero points, from block `first` on. */
LNT_INLINE vf group_zeros(const uint8_t *zeros, int64_t first, int64_t blocks, const shape *s)
{
    uint32_t word = 0;
    const int64_t left = (blocks + 1) / 2 - first / 2;
    for (unsigned i = 0; i <= (s->last + first % 2) / 2 && i < left; i++)
        word |= (uint32_t)zeros[first / 2 + i] << 8 * i;
    const vu numbers = (vu)vi_splat((int32_t)word) >> (vu)((s->block + vi_splat((int32_t)(first % 2))) << 2);
    return vi_float((vi)numbers & vi_splat(15));
}

/* Of the groups of column n, what lnt_nibble_block says; behind the last block 0. */
static void prepare_scales(const lnt_nibble_job *j, const shape *s, int64_t n, float *to)
{
    const lnt_nibbles *w = &j->w;
    const int64_t groups = j->chunks * j->lanes;
    const float *scales = w->scales + n * w->blocks;
    const uint8_t *zeros = w->zeros + (w->zeros ? n * ((w->blocks + 1) / 2) : 0);
    for (int64_t g = 0; g < groups; g += LNT_VL, to += LNT_VL) {
        const int64_t first = g >> s->shift;
        vf scale = v_splat(0), zero = v_splat(1);
        if (first < w->blocks) {
            scale = group_scales(scales + first, w->blocks - first, s);
            if (w->zeros)
                zero = group_zeros(zeros, first, w->blocks, s) * v_splat(0.125f);
        }
        v_store(to, scale);
        v_store(to + groups, scale * zero);
    }
}

void LNT_SIMD_NAME(lnt_nibble_prepare)(const lnt_nibble_job *j, int64_t n, unsigned columns, float *room,
                                       lnt_nibble_block *b)
{
    const shape s = shape_of(&j->w);
    const int64_t column_bytes = j->w.blocks << (j->w.block_log2 - 1), groups = j->chunks * j->lanes;
    const int64_t chunk_bytes = j->lanes * (LNT_NIBBLE_GROUP / 2);
    /* Scales as they lie in memory serve where there are whole chunks of them and no zero points but 8. */
    const bool plain = s.shift == 0 && !j->w.zeros && j->w.blocks == groups;
    b->offsets = plain ? 0 : groups;
    b->next = COLUMNS * column_bytes;
    b->whole = lnt_least(j->chunks, column_bytes / chunk_bytes);
    for (int64_t c = 0; c < COLUMNS; c++) {
        const int64_t column = n + (c < columns ? c : columns - 1), end = b->whole * chunk_bytes;
        b->weights[c] = j->w.weights + column * column_bytes;
        b->scales[c] = plain ? j->w.scales + column * j->w.blocks : room + c * 2 * groups;
        if (!plain)
            prepare_scales(j, &s, column, room + c * 2 * groups);
        if (b->whole == j->chunks)
            continue;
        memset(b->end[c], 0, (size_t)chunk_bytes);
        memcpy(b->end[c], b->weights[c] + end, (size_t)(column_bytes - end));
    }
}

#endif
#endif

#if NIBBLES_COLUMNS
#include "ops/nbits/nibble_columns.inc.h"
#else

/* ---- a row by columns ---- */

/* What a tile has come to. */
typedef struct progress {
    const uint8_t *from[COLUMNS];
    const float *scale[COLUMNS];
    const char *row;     /* its numbers */
    const float *of_row; /* its scales */
    vf total[COLUMNS];
} progress;

/* The next chunk. */
LNT_INLINE void next_chunk(progress *t, int64_t sums, const lnt_nibble_block *b)
{
    vf scale[COLUMNS];
    const vf row_scale = v_load(t->of_row), row_sum = v_load(t->of_row + sums);
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
        scale[c] = v_load(t->scale[c]) * row_scale;
        t->total[c] = v_fma(v_load(t->scale[c] + b->offsets), row_sum, t->total[c]);
        for (unsigned i = 0; i < CHUNK / 2; i += 64)
            __builtin_prefetch(t->from[c] + b->next + i);
    }
    UNROLL_FOR(NIBBLES_UNROLLED, unsigned i = 0; i < STEPS; i++)
        UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
            const nibbles n = nibbles_load(t->from[c] + i * NIBBLES_BYTES);
            const vi sum = nibbles_dot(n, (const int8_t *)t->row + i * NIBBLES_STEP);
            t->total[c] = v_fma(vi_float(sum), v_spread(scale[c], i), t->total[c]);
        }
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
        t->from[c] += CHUNK / 2;
        t->scale[c] += LNT_VL;
    }
    t->row += CHUNK;
    t->of_row += LNT_VL;
}

static void tile(const lnt_nibble_job *j, const lnt_nibble_block *b, int64_t m, float sums[COLUMNS])
{
    const int64_t whole = b->whole;
    progress t = {.row = j->rows + m * j->row_bytes};
    t.of_row = scales_of(t.row, j->chunks);
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++) {
        t.from[c] = b->weights[c];
        t.scale[c] = b->scales[c];
        t.total[c] = v_splat(0);
    }
    for (int64_t chunk = 0; chunk < j->chunks;) {
        for (const int64_t end = chunk < whole ? whole : j->chunks; chunk < end; chunk++)
            next_chunk(&t, j->chunks * LNT_VL, b);
        UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++)
            t.from[c] = b->end[c];
    }
    UNROLL_FOR(4, unsigned c = 0; c < COLUMNS; c++)
        sums[c] = v_sum(t.total[c]);
}

#endif
