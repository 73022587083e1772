/* qmatmul.c — int8 matrix products: MatMulInteger, QLinearMatMul, and com.microsoft's
 * MatMulIntegerToFloat and DynamicQuantizeMatMul; QLinearGemm, which is QLinearMatMul with transB and a bias
 * of int32 in units of both scales. All accumulate exactly in int32 and differ in what goes in and comes out. */
#include "base/checked.h"
#include "ops/axes.h"
#include "ops/copy.h"
#include "ops/gemm/gemm_driver.h"
#include "ops/gemm/gemm_store.h"
#include "ops/quant/qgemm_driver.h"
#include "ops/quant/qparams.h"
#include "ops/rows/int8_rows.h"
#include "ops/product.h"

#include <string.h>

enum { NONE = 255, OPERANDS_MAX = 9 };

/* Operand numbers of an operator of the family; NONE where it has no such operand. */
typedef struct operands {
    uint16_t id;
    uint8_t b, a_scale, a_zero, b_scale, b_zero, y_scale, y_zero,
        bias;        /* bias: float, or int32 of QLinearGemm */
    bool quantize_a; /* A is float and quantized on the way in */
} operands;

static const operands family[] = {
    {LNT_ID_MatMulInteger, 1, NONE, 2, NONE, 3, NONE, NONE, NONE, false},
    {LNT_ID_QLinearMatMul, 3, 1, 2, 4, 5, 6, 7, NONE, false},
    {LNT_ID_QLinearGemm, 3, 1, 2, 4, 5, 6, 7, 8, false},
    {LNT_ID_MatMulIntegerToFloat, 1, 2, 4, 3, 5, NONE, NONE, 6, false},
    {LNT_ID_DynamicQuantizeMatMul, 1, NONE, NONE, 2, 3, NONE, NONE, 4, true},
};

/* Parameters of B's columns in the order of the packed weights: [matrices][panels * 16]. */
typedef struct columns {
    const int32_t *sums; /* the packed weights' */
    int32_t *zero;       /* as int8 */
    int32_t *bias;       /* of accumulators; or NULL */
    float *scale;        /* over that of the output */
    bool zeros;          /* a zero point is not 0 */
} columns;

/* Requantization with A's scale and zero point: y = (acc + acc_bias - zero * (sum of the row - K times A's))
 * factor. */
typedef struct requant {
    int32_t *acc_bias;
    float *factor;
} requant;

enum { ARRAYS = 5 }; /* of columns and requant, 4 bytes an element */

typedef struct qmatmul {
    const operands *operands;
    lnt_qgemm_plan plan;
    lnt_store store;
    int64_t M, K, N, a_rows; /* a_rows: of all matrices of A */
    lnt_axes a;              /* matrices of the batch, in elements; none where all rows are one product's */
    int64_t *matrix;         /* of B, [products] */
    lnt_packed record;       /* of B */
    unsigned own_inputs;
    bool a_signed, b_signed, y_signed;
    bool direct;                   /* rows of A are read in place */
    bool each_row;                 /* has a scale or a zero point of its own */
    bool thin;                     /* lnt_qthin */
    bool pack;                     /* B is packed in each run */
    bool columns_known, all_known; /* at bind: columns, and requant too */
    int64_t n_columns;
    columns columns;
    requant requant;
    size_t a_at, b_at, columns_at; /* scratch */
} qmatmul;

typedef struct qmatmul_job {
    const qmatmul *p;
    const lnt_operand *const *operand;
    const void *data[OPERANDS_MAX];
    const void *a;
    const uint8_t *rows;
    uint8_t *made; /* rows that are not read in place */
    const int8_t *packed;
    void *y;
    columns columns;
    requant requant;
    float a_scale; /* of a quantized A */
    int32_t a_zero, y_zero;
} qmatmul_job;

/* Element i of operand `which`, or the only one. Rows and columns of a batch go round. */
static int64_t pick(const qmatmul_job *j, unsigned which, int64_t i)
{
    const int64_t n = j->data[which] ? lnt_operand_count(j->operand[which]) : 1;
    return n == 1 ? 0 : i % n;
}

/* Is there one for each column? */
static bool is_many(const qmatmul_job *j, unsigned which)
{
    return which != NONE && j->data[which] && lnt_operand_count(j->operand[which]) > 1;
}

static int32_t int_of(const qmatmul_job *j, unsigned which, int64_t i)
{
    return which == NONE ? 0 : lnt_qint(j->operand[which], j->data[which], pick(j, which, i), 0);
}

static float float_of(const qmatmul_job *j, unsigned which, int64_t i)
{
    return which == NONE ? 1 : lnt_qfloat(j->operand[which], j->data[which], pick(j, which, i));
}

/* ---- requantization parameters ---- */

static void place_columns(const qmatmul *p, void *memory, columns *c, requant *n)
{
    n->acc_bias = memory;
    n->factor = (float *)(n->acc_bias + p->n_columns);
    c->scale = n->factor + p->n_columns;
    c->zero = (int32_t *)(c->scale + p->n_columns);
    c->bias = p->operands->id == LNT_ID_QLinearGemm ? c->zero + p->n_columns : NULL;
}

static int32_t zero_of_column(const qmatmul_job *j, int64_t i)
{
    return int_of(j, j->p->operands->b_zero, i) - (j->p->b_signed ? 0 : 128);
}

/* Columns behind a matrix's last one, which fill its panel, are as that. */
static void fill_columns(const qmatmul_job *j, const int8_t *packed, columns *c)
{
    const qmatmul *p = j->p;
    const operands *o = p->operands;
    const int64_t padded = p->plan.panels * LNT_QPANEL;
    const float y_scale = float_of(j, o->y_scale, 0), scale = float_of(j, o->b_scale, 0) / y_scale;
    const int32_t zero = zero_of_column(j, 0);
    c->sums = (const int32_t *)(const void *)(packed + p->plan.sums_at);
    c->zeros = zero != 0;
    if (!is_many(j, o->b_zero) && !is_many(j, o->b_scale) && !c->bias) {
        lnt_fill(c->zero, p->n_columns, &zero, sizeof zero);
        lnt_fill(c->scale, p->n_columns, &scale, sizeof scale);
        return;
    }
    for (int64_t at = 0; at < p->n_columns; at++) {
        const int64_t i = at / padded * p->N + lnt_least(at % padded, p->N - 1);
        c->zero[at] = zero_of_column(j, i);
        c->zeros |= c->zero[at] != 0;
        c->scale[at] = float_of(j, o->b_scale, i) / y_scale;
        if (c->bias)
            c->bias[at] = int_of(j, o->bias, i);
    }
}

static int32_t zero_of_row(const qmatmul_job *j, int64_t row)
{
    const operands *o = j->p->operands;
    return (o->quantize_a ? j->a_zero : int_of(j, o->a_zero, row)) + 128 * j->p->a_signed;
}

static float scale_of_row(const qmatmul_job *j, int64_t row)
{
    return j->p->operands->quantize_a ? j->a_scale : float_of(j, j->p->operands->a_scale, row);
}

/* The parameters of n columns from `at` on, for a row. */
static void fill_requant(const qmatmul_job *j, int64_t row, int64_t at, int64_t n, requant *to)
{
    const uint32_t zero = (uint32_t)zero_of_row(j, row);
    const float scale = scale_of_row(j, row);
    const columns c = j->columns; /* out of reach of the stores, as is where they go */
    const requant own = *to;
    for (int64_t i = 0; i < n; i++) {
        own.acc_bias[i] =
            (int32_t)((c.bias ? (uint32_t)c.bias[at + i] : 0) - zero * (uint32_t)c.sums[at + i]);
        own.factor[i] = scale * c.scale[at + i];
    }
}

/* ---- rows and stores ---- */

/* Rows that are not whole quads are quantized many at a time, and set apart then, if they are short. */
static void quantize_rows(const qmatmul_job *j, int64_t begin, int64_t end)
{
    enum { ROOM = 2048 };
    const int64_t K = j->p->K, row_bytes = j->p->plan.row_bytes, gap = row_bytes - K;
    const bool apart = gap && K <= ROOM;
    uint8_t some[ROOM];
    for (int64_t m = begin, n; m < end; m += n) {
        uint8_t *row = j->made + m * row_bytes;
        n = !gap ? end - m : apart ? lnt_least(ROOM / K, end - m) : 1;
        j->p->plan.int8->quantize((const float *)j->a + m * K, apart ? some : row, n * K, j->a_scale,
                                  j->a_zero, false);
        if (apart)
            lnt_qflip_rows(some, n, K, 0, row);
        else
            memset(row + K, 0, (size_t)gap);
    }
}

/* Rows of A as uint8, padded to whole quads. */
static lnt_status prepare_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const qmatmul_job *j = arg;
    const qmatmul *p = j->p;
    (void)k, (void)thread;
    if (!p->operands->quantize_a)
        lnt_qflip_rows((const uint8_t *)j->a + begin * p->K, end - begin, p->K, p->a_signed ? 0x80 : 0,
                       j->made + begin * p->plan.row_bytes);
    else
        quantize_rows(j, begin, end);
    return LNT_OK;
}

static void rows_of(const lnt_qgemm_call *call, int64_t product, lnt_qrow_set *set)
{
    const qmatmul_job *j = call->arg;
    const qmatmul *p = j->p;
    const int64_t first = p->plan.products > 1 ? lnt_axes_offset(&p->a, product) / p->K : 0;
    const int64_t row = product * p->plan.rows + set->first;
    const uint8_t *a = j->rows + (first + set->first) * p->plan.row_bytes;
    for (unsigned i = 0; i < set->n; i++) {
        set->a[i] = a + i * p->plan.row_bytes;
        set->out[i] = (row + i) * p->N;
    }
    for (unsigned i = 0; i < (p->each_row ? set->n : 1); i++) {
        set->zero[i] = zero_of_row(j, row + i);
        set->scale[i] = scale_of_row(j, row + i);
    }
    if (!j->columns.zeros)
        return;
    const uint32_t K = (uint32_t)p->K;
    p->plan.int8->sum_rows(set->a[0], p->plan.row_bytes, set->n,
                           p->each_row ? 0 : (int32_t)(K * (uint32_t)set->zero[0]), set->sum);
    for (unsigned i = 0; p->each_row && i < set->n; i++)
        set->sum[i] = (int32_t)((uint32_t)set->sum[i] - K * (uint32_t)set->zero[i]);
}

/* Index of a panel's first parameter, and how many of its columns there are. */
static int64_t requant_at(const qmatmul *p, int64_t product, int64_t panel, unsigned *n)
{
    const int64_t left = p->N - panel * LNT_QPANEL;
    *n = left < LNT_QPANEL ? (unsigned)left : LNT_QPANEL;
    return (p->matrix[product] * p->plan.panels + panel) * LNT_QPANEL;
}

/* Requantization of columns [first, first + width), parameters c, of rows [from, from + n) that share them. */
static lnt_requantize_tile requantize_rows(const qmatmul_job *j, const lnt_qrow_set *set, unsigned from,
                                           unsigned n, int64_t first, unsigned width, const int32_t *zeros,
                                           const requant *c)
{
    return (lnt_requantize_tile){.rows = n,
                                 .columns = width,
                                 .acc_bias = c->acc_bias,
                                 .zeros = zeros,
                                 .row = j->columns.zeros ? set->sum + from : NULL,
                                 .scale = c->factor,
                                 .zero = j->y_zero,
                                 .is_signed = j->p->y_signed,
                                 .y = (uint8_t *)j->y + first,
                                 .out = set->out + from};
}

/* The same as integers. */
static lnt_integer_tile integer_rows(const qmatmul_job *j, const lnt_qrow_set *set, unsigned from, unsigned n,
                                     int64_t first, unsigned width, const int32_t *zeros, const requant *c)
{
    return (lnt_integer_tile){.rows = n,
                              .columns = width,
                              .acc_bias = c->acc_bias,
                              .zeros = zeros,
                              .row = j->columns.zeros ? set->sum + from : NULL,
                              .y = (int32_t *)j->y + first,
                              .out = set->out + from};
}

/* Stores accumulators of rows [from, from + n) that share parameters. */
static void store_alike(const qmatmul_job *j, const lnt_qrow_set *set, unsigned from, unsigned n,
                        int64_t first, unsigned width, const int32_t *zeros, const requant *c,
                        const int32_t *acc)
{
    if (j->p->operands->y_zero != NONE) {
        lnt_requantize_tile tile = requantize_rows(j, set, from, n, first, width, zeros, c);
        tile.acc = acc;
        j->p->plan.int8->store_requantized(&tile);
        return;
    }
    lnt_integer_tile tile = integer_rows(j, set, from, n, first, width, zeros, c);
    tile.acc = acc;
    j->p->plan.int8->store_integers(&tile);
}

/* int8, uint8 and int32 results. */
static void store_integers(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from, unsigned n,
                           int64_t product, int64_t panel, int32_t *acc)
{
    const qmatmul_job *j = call->arg;
    const qmatmul *p = j->p;
    unsigned width;
    const int64_t first = panel * LNT_QPANEL, at = requant_at(p, product, panel, &width);
    int32_t acc_bias[LNT_QPANEL];
    float factor[LNT_QPANEL];
    requant c = {j->requant.acc_bias + at, j->requant.factor + at}, own = {acc_bias, factor};
    if (!p->each_row) {
        store_alike(j, set, from, n, first, width, j->columns.zero + at, &c, acc);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        fill_requant(j, product * p->plan.rows + set->first + from + i, at, LNT_QPANEL, &own);
        store_alike(j, set, from + i, 1, first, width, j->columns.zero + at, &own, acc + i * LNT_QPANEL);
    }
}

static bool requantize_of(const lnt_qgemm_call *call, const lnt_qrow_set *set, int64_t product, int64_t panel,
                          unsigned n_columns, lnt_requantize_tile *to)
{
    const qmatmul_job *j = call->arg;
    const qmatmul *p = j->p;
    unsigned width;
    const int64_t at = requant_at(p, product, panel, &width), first = panel * LNT_QPANEL;
    if (p->operands->y_zero == NONE || p->each_row)
        return false;
    const requant c = {j->requant.acc_bias + at, j->requant.factor + at};
    *to = requantize_rows(j, set, 0, set->n, first, n_columns, j->columns.zero + at, &c);
    return true;
}

static bool integers_of(const lnt_qgemm_call *call, const lnt_qrow_set *set, int64_t product, int64_t panel,
                        unsigned n_columns, lnt_integer_tile *to)
{
    const qmatmul_job *j = call->arg;
    const qmatmul *p = j->p;
    unsigned width;
    const int64_t at = requant_at(p, product, panel, &width), first = panel * LNT_QPANEL;
    if (p->operands->y_zero != NONE || p->each_row || call->residual)
        return false;
    const requant c = {j->requant.acc_bias + at, j->requant.factor + at};
    *to = integer_rows(j, set, 0, set->n, first, n_columns, j->columns.zero + at, &c);
    to->times = 1;
    to->scale = NULL;
    if (p->plan.requantize_of)
        return true;
    to->acc_bias = j->columns.sums + at;
    to->times = (int32_t)(0 - (uint32_t)set->zero[0]);
    to->scale = j->columns.scale + at;
    to->a_scale = set->scale[0];
    to->bias = call->bias ? call->bias + first : NULL;
    to->low = p->plan.low;
    to->high = p->plan.high;
    return true;
}

static void store_floats(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from, unsigned n,
                         int64_t product, int64_t panel, int32_t *acc)
{
    const qmatmul_job *j = call->arg;
    const qmatmul *p = j->p;
    unsigned width;
    const int64_t first = panel * LNT_QPANEL, at = requant_at(p, product, panel, &width);
    const unsigned own = p->each_row ? from : 0;
    p->plan.int8->store_dequantized(
        &(lnt_dequantize_tile){.acc = acc,
                               .rows = n,
                               .columns = width,
                               .scale = set->scale + own,
                               .zero = set->zero + own,
                               .alike = !p->each_row,
                               .sums = j->columns.sums + at,
                               .scales = j->columns.scale + at,
                               .row = j->columns.zeros ? set->sum + from : NULL,
                               .zeros = j->columns.zero + at,
                               .bias = call->bias ? call->bias + first : NULL,
                               .y = call->c + first,
                               .residual = call->residual ? call->residual + first : NULL,
                               .out = set->out + from,
                               .low = p->plan.low,
                               .high = p->plan.high});
}

/* ---- short rows whose results are integers ---- */

enum {
    THIN_ITEM = 8,              /* rows of an item */
    THIN_SHORT = LNT_QTHIN / 2, /* bytes; of longer rows the sums of many columns would be loaded again */
    THIN_COLUMNS = 128,
    THIN_WIDE = 1024 /* columns of an item of all rows */
};

static bool is_thin(const lnt_site *site, const qmatmul *p, int64_t rows)
{
    const bool again = rows > THIN_ITEM && p->N > THIN_COLUMNS;
    return site->kernels->qgemm->thin && site->node->op->id == LNT_ID_MatMulInteger && !p->each_row &&
           p->K <= (again ? THIN_SHORT : LNT_QTHIN) && p->N > 0 && rows > 0;
}

/* Items of a product: of some rows, or of some columns where there are but few rows. */
static int64_t thin_items(const qmatmul *p)
{
    return p->plan.rows > THIN_ITEM ? (p->plan.rows + THIN_ITEM - 1) / THIN_ITEM
                                    : (p->N + THIN_WIDE - 1) / THIN_WIDE;
}

static lnt_status run_thin_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const qmatmul_job *j = arg;
    const qmatmul *p = j->p;
    const int64_t items = thin_items(p), panel_bytes = p->plan.row_bytes * LNT_QPANEL;
    const bool by_rows = p->plan.rows > THIN_ITEM;
    (void)k, (void)thread;
    for (int64_t n; begin < end; begin += n) {
        const int64_t product = begin / items, item = begin % items;
        const int64_t row = by_rows ? item * THIN_ITEM : 0, column = by_rows ? 0 : item * THIN_WIDE;
        const int64_t a = p->plan.products > 1 ? lnt_axes_offset(&p->a, product) : 0;
        const int64_t first = p->matrix[product] * p->plan.panels * LNT_QPANEL + column;
        n = lnt_least(items - item, end - begin);
        p->plan.kernels->thin(&(lnt_qthin){
            .a = (const uint8_t *)j->a + a + row * p->K,
            .rows = (size_t)(by_rows ? lnt_least(n * THIN_ITEM, p->plan.rows - row) : p->plan.rows),
            .depth = (size_t)p->K,
            .columns = (size_t)(by_rows ? p->N : lnt_least(n * THIN_WIDE, p->N - column)),
            .ld = (size_t)p->N,
            .panels = j->packed + first / LNT_QPANEL * panel_bytes,
            .sums = j->columns.sums + first,
            .zero = zero_of_row(j, 0),
            .zeros = j->columns.zero + first,
            .has_zeros = j->columns.zeros,
            .y = (int32_t *)j->y + (product * p->plan.rows + row) * p->N + column,
            .flip = p->a_signed ? 0x80 : 0,
        });
    }
    return LNT_OK;
}

static lnt_status run_thin(lnt_kernel *k, qmatmul_job *j)
{
    const qmatmul *p = j->p;
    const int64_t items = thin_items(p), work = p->plan.rows * p->N / items * (p->K + LNT_QSTORE_WORK);
    return lnt_parallel(k, p->plan.products * items, 1 + LNT_QITEM_WORK / (work + 1), run_thin_items, j);
}

/* ---- run ---- */

static lnt_status make_rows(lnt_kernel *k, const lnt_step *s, qmatmul_job *j)
{
    const qmatmul *p = j->p;
    j->rows = j->a;
    if (p->operands->quantize_a)
        LNT_TRY(
            lnt_dynamic_scale(k, p->plan.row, j->a, lnt_operand_count(s->in[0]), &j->a_scale, &j->a_zero));
    if (p->direct)
        return LNT_OK;
    j->rows = j->made = (uint8_t *)lnt_scratch(k, s) + p->a_at;
    return lnt_parallel(k, p->a_rows, 1 + 16384 / p->plan.row_bytes, prepare_rows, j);
}

static lnt_status run_qmatmul(lnt_kernel *k, const lnt_step *s)
{
    const qmatmul *p = s->params;
    const operands *o = p->operands;
    char *scratch = lnt_scratch(k, s);
    qmatmul_job job = {.p = p,
                       .operand = (const lnt_operand *const *)s->in,
                       .a = lnt_in(k, s, 0),
                       .y = lnt_out(k, s, 0),
                       .columns = p->columns,
                       .requant = p->requant};
    const int8_t *packed = job.packed = p->pack ? (int8_t *)scratch + p->b_at : lnt_in(k, s, o->b);
    for (unsigned i = 0; i < p->own_inputs; i++)
        job.data[i] = lnt_in(k, s, i);
    job.y_zero = int_of(&job, o->y_zero, 0);
    if (p->pack)
        LNT_TRY(lnt_gemm_pack(k, &p->record, p->b_signed ? LNT_INT8 : LNT_UINT8, lnt_in(k, s, o->b),
                              scratch + p->b_at));
    LNT_TRY(make_rows(k, s, &job));
    if (!p->columns_known) {
        place_columns(p, scratch + p->columns_at, &job.columns, &job.requant);
        fill_columns(&job, packed, &job.columns);
    } else if (!p->all_known) {
        job.requant.acc_bias = (int32_t *)(void *)(scratch + p->columns_at);
        job.requant.factor = (float *)(job.requant.acc_bias + p->n_columns);
    }
    if (!p->all_known && !p->each_row && !p->thin && p->plan.requantize_of) /* others take the columns' own */
        fill_requant(&job, 0, 0, p->n_columns, &job.requant);
    if (LNT_QTILES_OF_INTEGERS && p->thin)
        return run_thin(k, &job);
    const lnt_qgemm_call call = {
        .plan = &p->plan,
        .step = s,
        .b = packed,
        .bias = p->store.bias >= 0 ? lnt_in(k, s, (unsigned)p->store.bias) : NULL,
        .c = job.y,
        .residual = p->store.residual >= 0 ? lnt_in(k, s, (unsigned)p->store.residual) : NULL,
        .arg = &job};
    return lnt_qgemm_run(k, &call);
}

/* A sum of nothing. */
static lnt_status run_empty(lnt_kernel *k, const lnt_step *s)
{
    memset(lnt_out(k, s, 0), 0, lnt_known_bytes(s->out[0]));
    return LNT_OK;
}

/* ---- bind ---- */

static const operands *operands_of(const lnt_site *site)
{
    for (unsigned i = 0; i < sizeof family / sizeof family[0]; i++)
        if (family[i].id == site->node->op->id)
            return &family[i];
    return NULL;
}

lnt_status lnt_shape_qmatmul(lnt_site *site)
{
    const operands *o = operands_of(site);
    lnt_operand *factors[2] = {site->in[0], site->in[o->b]};
    lnt_site product = *site;
    product.in = factors;
    product.n_in = 2;
    lnt_set_type(site, 0,
                 o->y_zero != NONE                            ? (lnt_dtype)site->in[o->y_zero]->dtype
                 : site->node->op->id == LNT_ID_MatMulInteger ? LNT_INT32
                                                              : LNT_FLOAT);
    if (factors[0]->rank == LNT_RANK_UNKNOWN || factors[1]->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    return lnt_shape_matmul(&product);
}

/* Where the matrices of operand o start, for each entry of the output's batch of the given rank. */
static lnt_axes batch_axes(const lnt_operand *o, const int64_t *batch, unsigned rank, int64_t matrix)
{
    lnt_axes a = {0};
    int64_t stride[LNT_MAX_RANK], step = matrix;
    for (unsigned d = rank; d-- > 0;) {
        const int64_t extent = d + o->rank >= rank + 2 ? o->dims[d + o->rank - rank - 2] : 1;
        stride[d] = extent == 1 ? 0 : step;
        step *= extent;
    }
    for (unsigned d = 0; d < rank; d++)
        lnt_axes_push(&a, batch[d], stride[d]);
    return a;
}

/* B of each product: in a batch of weights that all products share there is but one. */
static lnt_status bind_products(lnt_site *site, qmatmul *p, unsigned batch_rank)
{
    const lnt_operand *a = site->in[0], *b = site->in[p->operands->b], *y = site->out[0];
    const int64_t matrices = p->record.groups;
    const lnt_axes axes = batch_axes(b, y->dims, batch_rank, p->K * p->N);
    p->a = batch_axes(a, y->dims, batch_rank, p->M * p->K);
    p->plan.products = matrices <= 1 ? matrices : lnt_axes_items(&p->a);
    p->plan.rows = matrices == 1 ? p->a_rows : p->M;
    p->plan.b_product = p->matrix =
        lnt_bump_alloc(site->memory, (size_t)p->plan.products * sizeof *p->matrix, site->err);
    if (!p->matrix)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < p->plan.products; i++)
        p->matrix[i] = matrices == 1 ? 0 : lnt_axes_offset(&axes, i) / (p->K * p->N);
    return LNT_OK;
}

static lnt_status bind_record(lnt_site *site, qmatmul *p)
{
    const lnt_operand *b = site->in[p->operands->b];
    const int64_t matrices = p->K > 0 && p->N > 0 ? lnt_operand_count(b) / (p->K * p->N) : 0;
    const lnt_source source = lnt_attr_i(site->node, "transB", 0) ? LNT_SOURCE_NK : LNT_SOURCE_KN;
    size_t packed = 0;
    p->record = lnt_packed_panels(source, (uint32_t)matrices, (uint32_t)p->K, (uint32_t)p->N);
    p->record.layout = LNT_LAYOUT_PANEL_I8;
    LNT_REQUIRE(p->K <= INT32_MAX && p->N <= INT32_MAX && matrices <= INT32_MAX &&
                    lnt_packed_bytes(&p->record, &packed),
                site->err, LNT_E_LIMIT, "matrix B is too large");
    lnt_qgemm_plan_weights(&p->plan, &p->record, b);
    p->pack = !b->packed;
    p->thin = LNT_QTILES_OF_INTEGERS && is_thin(site, p, matrices == 1 ? p->a_rows : p->M);
    p->direct |= p->thin;
    p->n_columns = matrices * p->plan.panels * LNT_QPANEL;
    p->a_at = lnt_round_up((size_t)p->n_columns * ARRAYS * sizeof(int32_t), LNT_ALIGN);
    p->b_at = p->a_at + (p->direct ? 0 : lnt_round_up((size_t)(p->a_rows * p->plan.row_bytes), LNT_ALIGN));
    lnt_bind_scratch(site, p->b_at + (p->pack ? packed : 0));
    return LNT_OK;
}

static bool is_known(const lnt_site *site, unsigned i)
{
    const lnt_operand *o = i == NONE ? NULL : lnt_own_input(site, i);
    return !o || (o->constant && o->data);
}

/* Parameters that depend on constants alone are computed at bind. */
static lnt_status bind_requant(lnt_site *site, qmatmul *p)
{
    const operands *o = p->operands;
    qmatmul_job job = {.p = p, .operand = (const lnt_operand *const *)site->in};
    p->columns_known = !p->pack && site->in[o->b]->constant && is_known(site, o->b_scale) &&
                       is_known(site, o->b_zero) && is_known(site, o->y_scale) && is_known(site, o->bias);
    p->all_known =
        p->columns_known && !o->quantize_a && is_known(site, o->a_scale) && is_known(site, o->a_zero);
    if (!p->columns_known)
        return LNT_OK;
    void *memory = lnt_bump_alloc(site->memory, (size_t)p->n_columns * ARRAYS * sizeof(int32_t), site->err);
    if (!memory)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < p->own_inputs; i++)
        job.data[i] = site->in[i] && site->in[i]->constant ? site->in[i]->data : NULL;
    place_columns(p, memory, &p->columns, &p->requant);
    fill_columns(&job, site->in[o->b]->data, &p->columns);
    job.columns = p->columns;
    if (p->all_known && !p->each_row)
        fill_requant(&job, 0, 0, p->n_columns, &p->requant);
    return LNT_OK;
}

static lnt_status check_operands(lnt_site *site, const qmatmul *p)
{
    const operands *o = p->operands;
    const lnt_operand *a = site->in[0], *b = site->in[o->b], *y = site->out[0];
    if (!(o->quantize_a ? a->dtype == LNT_FLOAT : lnt_is_byte(a->dtype)))
        return lnt_bind_unsupported_type(site, a->dtype);
    if (!lnt_is_byte(b->dtype))
        return lnt_bind_unsupported_type(site, b->dtype);
    if (o->y_zero != NONE && !lnt_is_byte(y->dtype))
        return lnt_bind_unsupported_type(site, y->dtype);
    for (unsigned i = 1; i < lnt_own_inputs(site); i++)
        LNT_REQUIRE(i == o->b || !site->in[i] || lnt_operand_count(site->in[i]) > 0, site->err, LNT_E_SHAPE,
                    "input %u, a scale or zero point, is empty", i);
    const lnt_operand *bias = o->bias == NONE ? NULL : lnt_own_input(site, o->bias);
    LNT_REQUIRE(o->id != LNT_ID_QLinearGemm || b->rank == 2, site->err, LNT_E_SHAPE, "B has rank %u",
                b->rank);
    LNT_REQUIRE(!bias || (lnt_operand_count(bias) == p->N &&
                          bias->dtype == (o->id == LNT_ID_QLinearGemm ? LNT_INT32 : LNT_FLOAT)),
                site->err, LNT_E_SHAPE, "the bias must hold %lld %s", (long long)p->N,
                o->id == LNT_ID_QLinearGemm ? "int32" : "floats");
    LNT_REQUIRE(p->K > 0 || y->dtype == LNT_INT32, site->err, LNT_E_UNSUPPORTED, "A has rows of no elements");
    return LNT_OK;
}

static bool one_of(const lnt_site *site, unsigned i)
{
    return i == NONE || !lnt_own_input(site, i) || lnt_operand_count(site->in[i]) == 1;
}

/* How accumulators are stored. */
static lnt_status bind_plan(lnt_site *site, qmatmul *p)
{
    const operands *o = p->operands;
    const lnt_operand *y = site->out[0];
    const bool is_float = y->dtype == LNT_FLOAT;
    p->plan.row = site->kernels->row;
    p->plan.int8 = site->kernels->int8;
    p->plan.kernels = site->kernels->qgemm;
    p->plan.rows_of = rows_of;
    p->plan.store = is_float ? store_floats : store_integers;
    p->plan.requantize_of = is_float ? NULL : requantize_of;
    p->plan.integers_of = is_float && !p->plan.kernels->dequantizes ? NULL : integers_of;
    p->store = (lnt_store){.bias = -1, .residual = -1};
    if (!is_float)
        return LNT_OK;
    const int own_bias = o->bias != NONE && lnt_own_input(site, o->bias) ? o->bias : -1;
    LNT_TRY(lnt_bind_store(site, y->rank ? y->rank - 1u : 0, own_bias, true, &p->store));
    p->plan.low = p->store.low;
    p->plan.high = p->store.high;
    p->plan.epilogue = p->store.program;
    p->plan.epilogue_rows = p->M;
    p->plan.ld = p->N;
    return LNT_OK;
}

lnt_status lnt_bind_qmatmul(lnt_site *site)
{
    qmatmul *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    const operands *o = p->operands = operands_of(site);
    const lnt_operand *a = site->in[0], *b = site->in[o->b], *y = site->out[0];
    const unsigned batch_rank = y->rank - (a->rank > 1) - (b->rank > 1);
    p->M = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    p->K = a->dims[a->rank - 1];
    p->N = b->rank > 1 ? b->dims[b->rank - (lnt_attr_i(site->node, "transB", 0) ? 2 : 1)] : 1;
    LNT_TRY(check_operands(site, p));
    site->step->run = p->K ? run_qmatmul : run_empty;
    if (p->K == 0)
        return LNT_OK;
    p->a_rows = lnt_operand_count(a) / p->K;
    p->own_inputs = lnt_own_inputs(site);
    p->a_signed = a->dtype == LNT_INT8;
    p->b_signed = b->dtype == LNT_INT8;
    p->y_signed = y->dtype == LNT_INT8;
    p->direct = a->dtype == LNT_UINT8 && p->K % 4 == 0;
    p->each_row = !o->quantize_a && (!one_of(site, o->a_scale) || !one_of(site, o->a_zero));
    LNT_TRY(bind_plan(site, p));
    LNT_TRY(bind_record(site, p));
    LNT_TRY(bind_products(site, p, batch_rank));
    return bind_requant(site, p);
}

/* ---- the rows' hooks ---- */

/* MatMulInteger and its relatives; QLinearMatMul and QLinearGemm, with scales between. */
const lnt_product lnt_product_qmatmul = {1u << 1, NULL, lnt_pack_matrix, lnt_matrix_multiply_adds};
const lnt_product lnt_product_qlinear_matmul = {1u << 3, NULL, lnt_pack_matrix, lnt_matrix_multiply_adds};
