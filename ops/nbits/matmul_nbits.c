/* matmul_nbits.c — com.microsoft's MatMulNBits: a product with weights of 2, 4 or 8 bits in blocks along K, each with
 * a scale and a zero point.
 *
 * Weights of 4 bits, or 8 where the level has kernels for them, whose node allows A to be int8 (accuracy_level 4) are
 * multiplied as integers (nibble_kernels.h).
 * Others become floats: a row, in the kernels' order (nbits_kernels.h), meets a column while it is taken apart; for
 * more of them some columns at a time are brought to float, and the product's tiles multiply these.
 * Weights whose blocks are permuted (g_idx), or are no power of two, are taken apart one by one. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/element.h"
#include "ops/gemm/gemm.h"
#include "ops/nbits/nbits_kernels.h"
#include "ops/nbits/nibble_kernels.h"
#include "ops/product.h"
#include "ops/rows/row.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum { A, WEIGHTS, SCALES, ZEROS, GROUPS, BIAS }; /* inputs */

enum {
    PANELS_MOST = 4,  /* that are brought to float at a time, */
    DEPTH = 256,      /* elements of K of them */
    MANY_ROWS = 4,    /* of int8, that are worth making columns a panel */
    FEW_COLUMNS = 16, /* that are sooner multiplied as floats than rows are quantized, */
    SHORT = 32,       /* as are columns without panels, of K less than this by the rows, */
    SHORT_ROWS = 16   /* or by so many of them */
};

typedef struct nbits {
    const lnt_row_kernels *row;
    const lnt_gemm_kernels *gemm;
    const lnt_nbits_kernels *kernels; /* NULL: weights are taken apart one by one */
    const lnt_nibble_kernels *nibble; /* of int8; or NULL */
    int64_t columns;                  /* that meet a row at a time, with these */
    int64_t panels; /* that become floats at a time */
    unsigned block_log2;
    int64_t M, K, N, block, blocks, bits;
    int64_t column_bytes, zero_bytes; /* of one column: weights, packed zero points */
    bool packed_zeros;                /* else they are numbers like the scales, or there are none */
    int64_t pitch;        /* elements of a row of A in the kernels' order; bytes of a quantized one */
    size_t ordered_bytes; /* scratch of these, before the threads' */
    size_t thread_bytes;
    lnt_nibble_job job; /* of `nibble`, without operands */
} nbits;

typedef struct nbits_job {
    const nbits *p;
    const float *a, *scales, *bias, *zeros;
    const uint8_t *weights, *packed_zeros;
    const int32_t *groups; /* block of each k, or NULL */
    float *y;
    char *scratch;
    lnt_nibble_job nibble;
} nbits_job;

/* Number i of those packed lowest bits first. */
static inline unsigned packed_at(const uint8_t *bytes, int64_t i, int64_t bits)
{
    const int64_t at = i * bits;
    return (unsigned)bytes[at / 8] >> (at % 8) & ((1u << bits) - 1);
}

/* ---- one by one ---- */

static void unpack_column(const nbits_job *j, int64_t n, float *column)
{
    const nbits *p = j->p;
    const uint8_t *weights = j->weights + n * p->column_bytes;
    for (int64_t i = 0; i < p->K; i++) {
        const int64_t group = j->groups ? j->groups[i] : i / p->block, at = n * p->blocks + group;
        float zero = (float)(1 << (p->bits - 1));
        if (j->packed_zeros)
            zero = (float)packed_at(j->packed_zeros + n * p->zero_bytes, group, p->bits);
        else if (j->zeros)
            zero = j->zeros[at];
        column[i] = ((float)packed_at(weights, i, p->bits) - zero) * j->scales[at];
    }
}

static lnt_status multiply_columns(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const nbits_job *j = arg;
    const nbits *p = j->p;
    float *column = (float *)(j->scratch + thread * p->thread_bytes);
    (void)k;
    for (int64_t n = begin; n < end; n++) {
        unpack_column(j, n, column);
        for (int64_t m = 0; m < p->M; m++)
            j->y[m * p->N + n] = p->row->dot(j->a + m * p->K, column, p->K) + (j->bias ? j->bias[n] : 0);
    }
    return LNT_OK;
}

/* ---- a row ---- */

/* Brings a row of A into the kernels' order, with the sums behind it. */
static void order_row(const nbits_job *j, float *to)
{
    const nbits *p = j->p;
    const int64_t lanes = p->kernels->lanes, per_word = 32 / p->bits;
    float *sums = to + p->pitch;
    for (int64_t word = 0; word < p->pitch / per_word; word++) {
        float *first = to + word / lanes * lanes * per_word + word % lanes;
        sums[word] = 0;
        for (int64_t i = 0; i < per_word; i++) {
            const int64_t at = word * per_word + i;
            first[i * lanes] = at < p->K ? j->a[at] : 0;
            sums[word] += first[i * lanes];
        }
    }
}

/* So many packed zero points from column n's first on as floats, whole vectors of them. */
static void unpack_zeros(const nbits_job *j, int64_t n, int64_t count, float *zeros)
{
    const nbits *p = j->p;
    const uint8_t *packed = j->packed_zeros + n * p->zero_bytes;
    if (p->bits == 4 && p->kernels->numbers)
        p->kernels->numbers(packed, count, zeros);
    else if (p->bits == 8)
        for (int64_t b = 0; b < count; b++)
            zeros[b] = packed[b];
    else
        for (int64_t b = 0; b < count; b++)
            zeros[b] = (float)packed_at(packed, b, p->bits);
}

/* Floats of a panel's scales and zero points, and of its columns' zero points, whole vectors. */
static int64_t panel_room(const nbits *p)
{
    return (2 * p->blocks + (int64_t)lnt_round_up((size_t)p->blocks, LNT_PANEL)) * LNT_PANEL;
}

/* Is A a row that meets columns while they are taken apart? */
static bool is_row(const nbits *p)
{
    return p->M <= 1 && p->bits >= 4;
}

static float *room_of(const nbits_job *j, unsigned thread)
{
    return (float *)(j->scratch + j->p->ordered_bytes + thread * j->p->thread_bytes);
}

/* Some columns' zero points are stored before the first is read: a read so soon would wait for the store. */
static void dot_some(const nbits_job *j, int64_t n, int64_t columns, float *room)
{
    const nbits *p = j->p;
    const int64_t step = p->zero_bytes * 8 / p->bits; /* some behind the last block's are nobody's */
    if (j->packed_zeros)
        unpack_zeros(j, n, columns * step, room);
    const lnt_nbits_column first = {.weights = j->weights + n * p->column_bytes,
                                    .scales = j->scales + n * p->blocks,
                                    .zeros = j->packed_zeros ? room
                                             : j->zeros      ? j->zeros + n * p->blocks
                                                             : NULL,
                                    .blocks = p->blocks,
                                    .block_log2 = p->block_log2,
                                    .bits = (unsigned)p->bits,
                                    .next_weights = p->column_bytes,
                                    .next_scales = p->blocks,
                                    .next_zeros = j->packed_zeros ? step : p->blocks};
    p->kernels->dot(&first, columns, (const float *)j->scratch, p->pitch, j->y + n);
    for (int64_t i = 0; i < columns && j->bias; i++)
        j->y[n + i] += j->bias[n + i];
}

static lnt_status dot_columns(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const nbits_job *j = arg;
    (void)k;
    for (int64_t n = begin; n < end; n += LNT_PANEL)
        dot_some(j, n, lnt_least(LNT_PANEL, end - n), room_of(j, thread));
    return LNT_OK;
}

/* ---- rows ---- */

/* The panel of columns from n on, behind the last one that again; room: panel_room. */
static lnt_nbits_panel panel_of(const nbits_job *j, int64_t n, float *room)
{
    const nbits *p = j->p;
    const int64_t step = (int64_t)lnt_round_up((size_t)p->blocks, LNT_PANEL), numbers = p->blocks * LNT_PANEL;
    float *scales = room, *zeros = scales + numbers, *columns = zeros + numbers;
    lnt_nbits_panel panel = {
        .weights = j->weights, .scales = scales, .block_log2 = p->block_log2, .bits = (unsigned)p->bits};
    int64_t of_zeros[LNT_PANEL], of_scales[LNT_PANEL];
    LNT_ASSERT(n >= 0 && n < p->N);
    for (int64_t i = 0; i < LNT_PANEL; i++) {
        const int64_t at = lnt_least(n + i, p->N - 1);
        if (j->packed_zeros)
            unpack_zeros(j, at, p->blocks, columns + i * step);
        panel.at[i] = at * p->column_bytes;
        of_scales[i] = at * p->blocks * (int64_t)sizeof(float);
        of_zeros[i] = j->packed_zeros ? i * step * (int64_t)sizeof(float) : of_scales[i];
    }
    p->kernels->beside(j->scales, of_scales, p->blocks, scales);
    if (!j->zeros && !j->packed_zeros)
        return panel;
    p->kernels->beside(j->zeros ? j->zeros : columns, of_zeros, p->blocks, zeros);
    panel.zeros = zeros;
    return panel;
}

/* Elements [first, first + depth) of K of all rows, times columns from n on, whose panels are at b: the first ones
 * begin the sums. */
static void multiply_depth(const nbits_job *j, const float *b, int64_t first, int64_t depth, int64_t n,
                           int64_t columns)
{
    static const ptrdiff_t no_offset = 0;
    const nbits *p = j->p;
    const int64_t most = p->gemm->tile_rows, tiles = (p->M + most - 1) / most;
    const float *a[LNT_TILE_ROWS_MAX];
    float *c[LNT_TILE_ROWS_MAX];
    const lnt_tile tile = {.a = a,
                           .c = c,
                           .tap_offset = &no_offset,
                           .taps = 1,
                           .depth = (size_t)depth,
                           .before = (size_t)first,
                           .b = b,
                           .b_row = LNT_PANEL,
                           .b_panel = DEPTH * LNT_PANEL,
                           .columns = (size_t)columns,
                           .bias = j->bias && first + depth == p->K ? j->bias + n : NULL,
                           .scale = 1,
                           .low = -INFINITY,
                           .high = INFINITY,
                           .accumulate = first > 0};
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t m = lnt_cut(p->M, tiles, t), rows = lnt_cut(p->M, tiles, t + 1) - m;
        for (int64_t i = 0; i < rows; i++) {
            a[i] = j->a + (m + i) * p->K + first;
            c[i] = j->y + (m + i) * p->N + n;
        }
        p->gemm->tile[rows](&tile);
    }
}

/* Columns [n, n + columns) of all rows, part by part of K, so that a part stays in the cache. */
static void multiply_panels(const nbits_job *j, int64_t n, int64_t columns, float *room)
{
    const nbits *p = j->p;
    const int64_t per_word = 32 / p->bits;
    float *b = room + p->panels * panel_room(p);
    lnt_nbits_panel panel[PANELS_MOST];
    LNT_ASSERT(columns <= p->panels * LNT_PANEL);
    for (int64_t i = 0; i * LNT_PANEL < columns; i++)
        panel[i] = panel_of(j, n + i * LNT_PANEL, room + i * panel_room(p));
    for (int64_t first = 0; first < p->K; first += DEPTH) {
        const int64_t depth = lnt_least(DEPTH, p->K - first);
        for (int64_t i = 0; i * LNT_PANEL < columns; i++)
            p->kernels->unpack(&panel[i], first / per_word, (first + depth + per_word - 1) / per_word,
                               b + i * DEPTH * LNT_PANEL);
        multiply_depth(j, b, first, depth, n, columns);
    }
}

static lnt_status unpack_columns(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const nbits_job *j = arg;
    const int64_t columns = j->p->panels * LNT_PANEL, last = lnt_least(end * columns, j->p->N);
    (void)k;
    for (int64_t n = begin * columns; n < last; n += columns)
        multiply_panels(j, n, lnt_least(columns, last - n), room_of(j, thread));
    return LNT_OK;
}

/* ---- of int8 ---- */

void lnt_nibble_measure(lnt_nibble_job *j, int64_t K)
{
    const unsigned block_log2 = j->w.block_log2;
    j->group_log2 = block_log2 < LNT_NIBBLE_GROUP_LOG2 ? block_log2 : LNT_NIBBLE_GROUP_LOG2;
    j->shift = block_log2 - j->group_log2;
    const int64_t chunk = (int64_t)j->lanes << j->group_log2;
    j->chunks = (K + chunk - 1) / chunk;
    j->numbers_bytes = j->chunks * chunk;
    j->row_bytes = j->numbers_bytes + j->chunks * j->lanes * 2 * (int64_t)sizeof(float);
    j->column_bytes = (j->w.blocks << block_log2) * j->w.bits / 8;
}

static lnt_status quantize_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const nbits_job *j = arg;
    const nbits *p = j->p;
    (void)k, (void)thread;
    for (int64_t m = begin; m < end; m++)
        p->nibble->quantize(&j->nibble, j->a + m * p->K, p->K, j->scratch + m * p->pitch);
    return LNT_OK;
}

/* Columns [n, n + columns) of all rows. */
static void multiply_block(const nbits_job *j, int64_t n, unsigned columns, float *room)
{
    const nbits *p = j->p;
    lnt_nibble_block b;
    float sums[LNT_NIBBLE_COLUMNS];
    p->nibble->prepare(&j->nibble, n, columns, room, &b);
    for (int64_t m = 0; m < p->M; m++) {
        p->nibble->tile(&j->nibble, &b, m, sums);
        for (unsigned c = 0; c < columns; c++)
            j->y[m * p->N + n + c] = sums[c] + (j->bias ? j->bias[n + c] : 0);
    }
}

static lnt_status multiply_nibbles(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const nbits_job *j = arg;
    const nbits *p = j->p;
    (void)k;
    if (p->columns < LNT_PANEL && p->nibble->columns) {
        p->nibble->columns(&j->nibble, begin * p->columns, lnt_least(end * p->columns, p->N));
        return LNT_OK;
    }
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i * p->columns;
        const unsigned columns = (unsigned)lnt_least(p->columns, p->N - n);
        float *room = room_of(j, thread);
        if (p->columns == LNT_PANEL) {
            const lnt_nbits_panel panel = panel_of(j, n, room);
            p->nibble->panel(&j->nibble, &panel, n, columns, room + panel_room(p));
        } else {
            multiply_block(j, n, columns, room);
        }
    }
    return LNT_OK;
}

static lnt_status run_nibbles(lnt_kernel *k, nbits_job *j)
{
    const nbits *p = j->p;
    j->nibble = p->job;
    j->nibble.w.weights = j->weights;
    j->nibble.w.scales = j->scales;
    j->nibble.w.zeros = j->packed_zeros;
    j->nibble.rows = j->scratch;
    j->nibble.bias = j->bias;
    j->nibble.y = j->y;
    LNT_TRY(lnt_parallel(k, p->M, 1 + 8192 / p->pitch, quantize_rows, j));
    return lnt_parallel(k, (p->N + p->columns - 1) / p->columns, 1 + 32768 / (p->pitch * p->M),
                        multiply_nibbles, j);
}

/* ---- the operator ---- */

static lnt_status run_floats(lnt_kernel *k, nbits_job *j)
{
    const nbits *p = j->p;
    if (is_row(p)) {
        order_row(j, (float *)j->scratch);
        return lnt_parallel(k, p->N, 1 + 32768 / p->pitch, dot_columns, j);
    }
    const int64_t columns = p->panels * LNT_PANEL;
    return lnt_parallel(k, (p->N + columns - 1) / columns, 1, unpack_columns, j);
}

static lnt_status run_nbits(lnt_kernel *k, const lnt_step *s)
{
    const nbits *p = s->params;
    const void *zeros = lnt_in(k, s, ZEROS);
    nbits_job job = {p,
                     lnt_in(k, s, A),
                     lnt_in(k, s, SCALES),
                     lnt_in(k, s, BIAS),
                     p->packed_zeros ? NULL : zeros,
                     lnt_in(k, s, WEIGHTS),
                     p->packed_zeros ? zeros : NULL,
                     lnt_in(k, s, GROUPS),
                     lnt_out(k, s, 0),
                     lnt_scratch(k, s),
                     {.lanes = 0}};
    for (int64_t i = 0; job.groups && i < p->K; i++)
        LNT_REQUIRE(job.groups[i] >= 0 && job.groups[i] < p->blocks, k->err, LNT_E_VALUE,
                    "g_idx holds %d, of %lld blocks", (int)job.groups[i], (long long)p->blocks);
    if (p->nibble && p->M > 0)
        return run_nibbles(k, &job);
    if (p->kernels && p->M > 0)
        return run_floats(k, &job);
    return lnt_parallel(k, p->N, 1 + 16384 / (p->K * (p->M + 1) + 1), multiply_columns, &job);
}

lnt_status lnt_shape_nbits(lnt_site *site)
{
    const lnt_operand *a = site->in[A];
    const int64_t columns = lnt_attr_i(site->node, "N", 0);
    int64_t dims[LNT_MAX_RANK];
    LNT_REQUIRE(a->rank >= 1, site->err, LNT_E_SHAPE, "A is a scalar");
    LNT_REQUIRE(columns > 0 && columns < INT32_MAX, site->err, LNT_E_ARGUMENT, "N is %lld, not from 1 to %d",
                (long long)columns, INT32_MAX - 1);
    for (unsigned d = 0; d < a->rank; d++)
        dims[d] = d + 1u < a->rank ? a->dims[d] : columns;
    lnt_set_dims(site, 0, a->rank, dims);
    return LNT_OK;
}

static lnt_status check_numbers(const lnt_site *site, const nbits *p)
{
    LNT_REQUIRE(p->bits == 2 || p->bits == 4 || p->bits == 8, site->err, LNT_E_UNSUPPORTED,
                "MatMulNBits is implemented for 2, 4 and 8 bits, not %lld", (long long)p->bits);
    LNT_REQUIRE(p->K > 0 && p->N > 0 && p->block > 0 && p->K < INT32_MAX && p->N < INT32_MAX &&
                    p->block < INT32_MAX,
                site->err, LNT_E_ARGUMENT, "K, N and block_size must be from 1 to %d", INT32_MAX - 1);
    return LNT_OK;
}

static lnt_status check_operands(const lnt_site *site, const nbits *p)
{
    const lnt_operand *zeros = lnt_input(site, ZEROS), *groups = lnt_input(site, GROUPS);
    const lnt_operand *bias = lnt_input(site, BIAS);
    LNT_REQUIRE(site->in[WEIGHTS]->dtype == LNT_UINT8 &&
                    lnt_operand_count(site->in[WEIGHTS]) == p->N * p->column_bytes,
                site->err, LNT_E_SHAPE, "the weights must be %lld bytes",
                (long long)(p->N * p->column_bytes));
    LNT_REQUIRE(lnt_operand_count(site->in[SCALES]) == p->N * p->blocks, site->err, LNT_E_SHAPE,
                "%lld scales are needed", (long long)(p->N * p->blocks));
    LNT_REQUIRE(!zeros || lnt_operand_count(zeros) == p->N * (p->packed_zeros ? p->zero_bytes : p->blocks),
                site->err, LNT_E_SHAPE, "zero_points do not fit the scales");
    LNT_REQUIRE(!groups || (groups->dtype == LNT_INT32 && lnt_operand_count(groups) >= p->K), site->err,
                LNT_E_SHAPE, "g_idx must hold K int32");
    LNT_REQUIRE(!bias || lnt_operand_count(bias) == p->N, site->err, LNT_E_SHAPE,
                "the bias must hold N numbers");
    return LNT_OK;
}

/* Can the kernels take these weights? Blocks much longer than K would be rows of nothing. */
static bool has_order(const lnt_site *site, const nbits *p, int64_t per_word)
{
    return !lnt_input(site, GROUPS) && p->block >= per_word && (p->block & (p->block - 1)) == 0 &&
           p->block / 2 < p->K;
}

/* Are columns whole steps of those that panels are made of? */
static bool fits_panels(const nbits *p)
{
    return p->column_bytes % LNT_NIBBLE_UNPACKED == 0;
}

/* Has the level kernels for their width and blocks, and are columns enough to be worth quantizing rows? */
static bool has_nibbles(const lnt_site *site, const nbits *p)
{
    const lnt_nibble_kernels *kernels = site->kernels->nibble;
    if (p->bits == 4 && p->block >= LNT_NIBBLE_GROUP)
        return p->N >= FEW_COLUMNS;
    const bool row = p->bits == 4 && kernels->columns && p->M < MANY_ROWS;
    if (p->M < MANY_ROWS)
        return (row || (p->bits >= 4 && kernels->bytes)) && p->N >= FEW_COLUMNS;
    return p->bits >= 4 && kernels->bytes && p->N >= 4 * FEW_COLUMNS &&
           (fits_panels(p) || p->K >= SHORT * lnt_least(p->M, SHORT_ROWS));
}

/* May and can they be multiplied as integers? */
static bool takes_int8(const lnt_site *site, const nbits *p)
{
    return lnt_attr_i(site->node, "accuracy_level", 0) == LNT_NBITS_INT8 &&
           (p->packed_zeros || !lnt_input(site, ZEROS)) && has_nibbles(site, p) &&
           has_order(site, p, LNT_NIBBLE_GROUP / 2);
}

static lnt_status no_room(const lnt_site *site)
{
    return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the rows of A need more memory than there can be");
}

/* Scratch memory: `rows` bytes of A, then floats for each thread. */
static lnt_status bind_room(lnt_site *site, nbits *p, size_t rows, int64_t floats)
{
    size_t total = rows, at;
    p->ordered_bytes = rows;
    if (!lnt_reserve(&total, lnt_dim_mul(floats, site->threads), sizeof(float), &at))
        return no_room(site);
    p->thread_bytes = (total - rows) / site->threads;
    lnt_bind_scratch(site, total);
    return LNT_OK;
}

static lnt_status plan_nibbles(lnt_site *site, nbits *p)
{
    const lnt_nibble_kernels *kernels = site->kernels->nibble;
    const bool panels = kernels->panel && p->M >= MANY_ROWS && fits_panels(p);
    size_t total = 0, at;
    p->nibble = kernels;
    p->kernels = site->kernels->nbits;
    p->columns = panels ? LNT_PANEL : LNT_NIBBLE_COLUMNS;
    p->block_log2 = (unsigned)__builtin_ctzll((unsigned long long)p->block);
    p->job =
        (lnt_nibble_job){.w = {.blocks = p->blocks, .block_log2 = p->block_log2, .bits = (unsigned)p->bits},
                         .lanes = panels ? LNT_NIBBLE_PANEL_LANES : kernels->lanes,
                         .M = p->M,
                         .N = p->N};
    lnt_nibble_measure(&p->job, p->K);
    p->pitch = p->job.row_bytes;
    const int64_t numbers = p->blocks * p->block * LNT_PANEL / (int64_t)sizeof(float);
    const int64_t each =
        panels ? panel_room(p) + numbers : 2 * LNT_NIBBLE_COLUMNS * p->job.chunks * p->job.lanes;
    if (!lnt_reserve(&total, lnt_dim_mul(p->M, p->pitch), 1, &at))
        return no_room(site);
    return bind_room(site, p, total, each);
}

/* Chooses the kernels, and asks for the scratch memory they need. */
static lnt_status plan_order(lnt_site *site, nbits *p)
{
    const int64_t per_word = 32 / p->bits, group = site->kernels->nbits->lanes * per_word;
    int64_t ordered = 0, each = p->K;
    size_t total = 0, at;
    if (has_order(site, p, per_word)) {
        p->kernels = site->kernels->nbits;
        p->gemm = site->kernels->gemm;
        p->block_log2 = (unsigned)__builtin_ctzll((unsigned long long)p->block);
        p->panels =
            lnt_least(lnt_least(PANELS_MOST, p->gemm->tile_panels), 1 + p->N / LNT_PANEL / site->threads);
        p->pitch = (p->blocks * p->block + group - 1) / group * group;
        ordered = is_row(p) ? p->pitch + p->pitch / per_word : 0;
        each = is_row(p) ? panel_room(p) : p->panels * (panel_room(p) + DEPTH * LNT_PANEL);
    }
    if (!lnt_reserve(&total, ordered, sizeof(float), &at))
        return no_room(site);
    return bind_room(site, p, total, each);
}

lnt_status lnt_bind_nbits(lnt_site *site)
{
    const lnt_node *node = site->node;
    const lnt_operand *a = site->in[A], *zeros = lnt_input(site, ZEROS);
    nbits *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (a->dtype == LNT_DOUBLE || !lnt_is_floating(a->dtype))
        return lnt_bind_unsupported_type(site, a->dtype);
    p->row = site->kernels->row;
    p->K = lnt_attr_i(node, "K", 0);
    p->N = lnt_attr_i(node, "N", 0);
    p->bits = lnt_attr_i(node, "bits", 4);
    p->block = lnt_attr_i(node, "block_size", 0);
    LNT_TRY(check_numbers(site, p));
    LNT_REQUIRE(a->dims[a->rank - 1] == p->K, site->err, LNT_E_SHAPE, "A has rows of %lld, K is %lld",
                (long long)a->dims[a->rank - 1], (long long)p->K);
    p->M = lnt_operand_count(a) / p->K;
    p->blocks = (p->K + p->block - 1) / p->block;
    p->column_bytes = p->blocks * ((p->block * p->bits + 7) / 8);
    p->zero_bytes = (p->blocks * p->bits + 7) / 8;
    p->packed_zeros = zeros && zeros->dtype == LNT_UINT8;
    LNT_TRY(check_operands(site, p));
    LNT_TRY(takes_int8(site, p) ? plan_nibbles(site, p) : plan_order(site, p));
    site->step->run = run_nbits;
    const uint32_t real = 1u << A | 1u << SCALES | 1u << BIAS | (p->packed_zeros ? 0 : 1u << ZEROS);
    return lnt_bind_widened(site, real, 1);
}

const lnt_product lnt_product_nbits = {.multiply_adds = lnt_matrix_multiply_adds};
