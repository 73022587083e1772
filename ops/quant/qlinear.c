/* qlinear.c — com.microsoft's operators on quantized tensors: QLinearAdd, QLinearMul, QLinearSigmoid,
 * QLinearLeakyRelu, QLinearConcat; and LookupTable, any function of an int8 or uint8 value. Such functions are
 * tables of 256 entries. */
#include "ops/op.h"

#include "base/checked.h"
#include "ops/axes.h"
#include "ops/copy.h"
#include "ops/quant/qparams.h"

#include <string.h>

/* ---- one input ---- */

typedef struct table_job {
    const lnt_int8_kernels *int8;
    const uint8_t *x;
    uint8_t *y;
    uint8_t to[256];
} table_job;

/* Dequantizes b. */
static float real_of(uint8_t b, lnt_dtype type, float scale, int32_t zero)
{
    return (float)((type == LNT_INT8 ? (int8_t)b : b) - zero) * scale;
}

static lnt_status look_up(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const table_job *j = arg;
    (void)k, (void)thread;
    j->int8->look_up(j->to, j->x + begin, end - begin, j->y + begin);
    return LNT_OK;
}

typedef enum function { IDENTITY, SIGMOID, LEAKY_RELU } function;

/* A function of a quantized value: dequantize, f, requantize. */
typedef struct mapping {
    function f;
    float alpha; /* of LEAKY_RELU */
    lnt_dtype type;
    float x_scale, y_scale;
    int32_t x_zero, y_zero;
} mapping;

static uint8_t map_byte(const mapping *m, uint8_t b)
{
    const float x = real_of(b, m->type, m->x_scale, m->x_zero);
    const float y = m->f == SIGMOID ? 1 / (1 + expf(-x)) : m->f == LEAKY_RELU && x < 0 ? m->alpha * x : x;
    return (uint8_t)lnt_requantize(y / m->y_scale, m->y_zero, lnt_qrange_of(m->type));
}

/* The table for the n values at x; if they are few, only the entries that occur. */
static void fill_table(const mapping *m, table_job *j, int64_t n)
{
    if (n < 256)
        for (int64_t i = 0; i < n; i++)
            j->to[j->x[i]] = map_byte(m, j->x[i]);
    else
        for (unsigned b = 0; b < 256; b++)
            j->to[b] = map_byte(m, (uint8_t)b);
}

typedef struct unary {
    const lnt_int8_kernels *int8;
    function f;
    float alpha;
} unary;

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO }; /* inputs of operators with one tensor */

static lnt_status run_unary(lnt_kernel *k, const lnt_step *s)
{
    const unary *p = s->params;
    const mapping m = {p->f,
                       p->alpha,
                       s->in[X]->dtype,
                       lnt_qstep_float(k, s, X_SCALE),
                       lnt_qstep_float(k, s, Y_SCALE),
                       lnt_qstep_int(k, s, X_ZERO),
                       lnt_qstep_int(k, s, Y_ZERO)};
    table_job job = {.int8 = p->int8, .x = lnt_in(k, s, X), .y = lnt_out(k, s, 0)};
    fill_table(&m, &job, lnt_operand_count(s->in[X]));
    return lnt_parallel(k, lnt_operand_count(s->in[X]), 32768, look_up, &job);
}

lnt_status lnt_bind_qunary(lnt_site *site)
{
    unary *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (!lnt_is_byte(site->in[X]->dtype))
        return lnt_bind_unsupported_type(site, site->in[X]->dtype);
    p->int8 = site->kernels->int8;
    p->f = site->node->op->id == LNT_ID_QLinearSigmoid ? SIGMOID : LEAKY_RELU;
    p->alpha = lnt_attr_f(site->node, "alpha", 0.01f);
    site->step->run = run_unary;
    lnt_bind_in_place(site, 0, X);
    return LNT_OK;
}

/* LookupTable: planes of n elements, each with its channel's table, or the one for all; or channels-last pixels of n
 * elements that each have a table. */
typedef struct tables {
    const lnt_int8_kernels *int8;
    int64_t planes, n, channels;
    bool pixels;
} tables;

typedef struct pixel_job {
    const uint8_t *x, *table;
    uint8_t *y;
    int64_t n;
} pixel_job;

static lnt_status look_up_pixels(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pixel_job *j = arg;
    (void)k, (void)thread;
    for (int64_t pixel = begin; pixel < end; pixel++) {
        const uint8_t *x = j->x + pixel * j->n, *table = j->table;
        uint8_t *y = j->y + pixel * j->n;
        for (int64_t i = 0; i < j->n; i++, table += 256)
            y[i] = table[x[i]];
    }
    return LNT_OK;
}

static lnt_status run_lookup_table(lnt_kernel *k, const lnt_step *s)
{
    const tables *p = s->params;
    const uint8_t *x = lnt_in(k, s, 0), *table = lnt_in(k, s, 1);
    uint8_t *y = lnt_out(k, s, 0);
    if (p->pixels) {
        pixel_job pixels = {x, table, y, p->n};
        return lnt_parallel(k, p->planes, 1 + 16384 / p->n, look_up_pixels, &pixels);
    }
    for (int64_t i = 0; i < p->planes; i++) {
        table_job job = {.int8 = p->int8, .x = x + i * p->n, .y = y + i * p->n};
        memcpy(job.to, table + i % p->channels * 256, sizeof job.to);
        LNT_TRY(lnt_parallel(k, p->n, 32768, look_up, &job));
    }
    return LNT_OK;
}

lnt_status lnt_bind_lookup_table(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *table = site->in[1];
    tables *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (!lnt_is_byte(x->dtype) || table->dtype != LNT_UINT8)
        return lnt_bind_unsupported_type(site, lnt_is_byte(x->dtype) ? table->dtype : x->dtype);
    p->int8 = site->kernels->int8;
    p->channels = table->rank == 2 ? table->dims[0] : 0;
    LNT_REQUIRE(p->channels > 0 && table->dims[1] == 256 &&
                    (p->channels == 1 || (x->rank > 1 && x->dims[1] == p->channels)),
                site->err, LNT_E_SHAPE, "the table must be [1 or channels, 256]");
    const int64_t count = lnt_operand_count(x);
    p->pixels = p->channels > 1 && x->order == LNT_ORDER_CHANNELS_LAST;
    p->planes = p->pixels ? count / p->channels : p->channels == 1 ? 1 : x->dims[0] * p->channels;
    p->n = p->planes ? count / p->planes : 1;
    site->step->run = run_lookup_table;
    lnt_bind_in_place(site, 0, 0);
    return LNT_OK;
}

/* ---- two inputs ---- */

enum { A, A_SCALE, A_ZERO, B, C_SCALE = 6, C_ZERO };

/* Rows of the output, and where their operands' rows start; flat: all of it is one row, operands too or one
 * number. */
typedef struct binary {
    const lnt_int8_kernels *int8;
    bool flat;
    int64_t n;
    bool swapped; /* a is operand B: it is not one number for a row where b is none */
    lnt_axes a, b;
    int64_t
        alike; /* so many rows, from a multiple of it on, share the row of one operand, or have an element of B
                    * each; those of the other are one after the other. 1: none do */
    bool shares_a;     /* that operand is A, else B */
    int64_t each_step; /* from one such element to the next */
    lnt_qpair pair; /* what does not depend on a run */
} binary;

enum { TILED = 1024 }; /* bytes of a row that is repeated to make short rows long */

typedef struct binary_job {
    const binary *p;
    lnt_qpair pair;
} binary_job;

/* Rows that share one of an operand, or have an element of it each: as many at a time as that, repeated, has room
 * for. */
static void combine_alike(const binary *p, lnt_qpair pair, int64_t rows)
{
    uint8_t tiled[TILED];
    const uint8_t **shared = p->shares_a ? &pair.a : &pair.b, **other = p->shares_a ? &pair.b : &pair.a;
    const uint8_t *from = *shared;
    const bool each = !pair.b_step;
    const int64_t at_once = lnt_least(rows, TILED / p->n);
    for (int64_t i = 0; i < at_once && !each; i++)
        memcpy(tiled + i * p->n, from, (size_t)p->n);
    *shared = tiled;
    pair.a_step = pair.b_step = 1;
    for (int64_t some; rows > 0; rows -= some, *other += some * p->n, pair.c += some * p->n) {
        some = lnt_least(rows, at_once);
        if (each)
            lnt_repeat_each(tiled, from, p->each_step, some, p->n, 1);
        from += some * p->each_step;
        p->int8->combine_quantized(&pair, some * p->n);
    }
}

static lnt_status combine_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const binary_job *j = arg;
    const binary *p = j->p;
    (void)k, (void)thread;
    for (int64_t row = begin, rows; row < end; row += rows) {
        lnt_qpair pair = j->pair;
        pair.a += lnt_axes_offset(&p->a, row);
        pair.b += lnt_axes_offset(&p->b, row);
        pair.c += row * p->n;
        rows = lnt_least(end - row, p->alike - row % p->alike);
        if (rows > 1)
            combine_alike(p, pair, rows);
        else
            p->int8->combine_quantized(&pair, p->n);
    }
    return LNT_OK;
}

static lnt_status combine_slice(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const binary_job *j = arg;
    lnt_qpair pair = j->pair;
    (void)k, (void)thread;
    pair.a += pair.a_step * begin;
    pair.b += pair.b_step * begin;
    pair.c += begin;
    j->p->int8->combine_quantized(&pair, end - begin);
    return LNT_OK;
}

static lnt_status run_binary(lnt_kernel *k, const lnt_step *s)
{
    const binary *p = s->params;
    const unsigned in_a = p->swapped ? B : A, in_b = p->swapped ? A : B;
    const float a = lnt_qstep_float(k, s, in_a + A_SCALE), b = lnt_qstep_float(k, s, in_b + A_SCALE),
                c = lnt_qstep_float(k, s, C_SCALE);
    binary_job job = {.p = p, .pair = p->pair};
    job.pair.a = lnt_in(k, s, in_a);
    job.pair.b = lnt_in(k, s, in_b);
    job.pair.c = lnt_out(k, s, 0);
    job.pair.a_zero = lnt_qstep_int(k, s, in_a + A_ZERO);
    job.pair.b_zero = lnt_qstep_int(k, s, in_b + A_ZERO);
    job.pair.c_zero = lnt_qstep_int(k, s, C_ZERO);
    job.pair.a_ratio = p->pair.multiply ? a * b / c : a / c;
    job.pair.b_ratio = b / c;
    if (p->flat)
        return lnt_parallel(k, lnt_operand_count(s->out[0]), 16384, combine_slice, &job);
    return lnt_parallel(k, lnt_axes_items(&p->a), 1 + 16384 / (p->n + 1), combine_rows, &job);
}

lnt_status lnt_shape_qbinary(lnt_site *site)
{
    unsigned rank = 0;
    int64_t dims[LNT_MAX_RANK];
    LNT_TRY(lnt_broadcast_dims(site, &rank, dims, site->in[A]));
    LNT_TRY(lnt_broadcast_dims(site, &rank, dims, site->in[B]));
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

/* The axis of y that comes d-th in memory. */
static unsigned axis_stored(const lnt_operand *y, unsigned d)
{
    if (y->order == LNT_ORDER_PLAIN || d == 0)
        return d;
    return d + 1u == y->rank ? 1 : d + 1;
}

/* Rows of operand o against the output y, in y's storage order; returns the step along the row. */
static int64_t broadcast_rows(const lnt_operand *o, const lnt_operand *y, lnt_axes *rows)
{
    int64_t own[LNT_MAX_RANK] = {0}, stride[LNT_MAX_RANK];
    lnt_operand_strides(o, own);
    for (unsigned d = 0; d < y->rank; d++) {
        const unsigned axis = axis_stored(y, d), given = axis + o->rank - y->rank;
        stride[d] = axis + o->rank < y->rank || o->dims[given] == 1 ? 0 : own[given];
    }
    for (unsigned d = 0; d + 1u < y->rank; d++)
        lnt_axes_push(rows, y->dims[axis_stored(y, d)], stride[d]);
    return y->rank ? stride[y->rank - 1] : 0;
}

/* How many rows share one of an operand that stays while the other goes on by n. */
static int64_t rows_alike(const lnt_axes *stays, const lnt_axes *goes, int64_t n)
{
    int64_t rows = 1;
    for (unsigned i = stays->n; i-- > 0 && stays->stride[i] == 0 && goes->stride[i] == rows * n;)
        rows *= stays->extent[i];
    return rows;
}

/* Rows that go on where the one before ended, or repeat the same number, are one. */
static void join_rows(binary *p)
{
    for (unsigned i = p->a.n; i-- > 0; p->a.n = p->b.n = i) {
        const int64_t a = p->pair.a_step ? p->n : 0, b = p->pair.b_step ? p->n : 0;
        if (p->a.extent[i] != 1 && (p->a.stride[i] != a || p->b.stride[i] != b))
            return;
        p->n *= p->a.extent[i];
    }
}

/* Short rows are worth repeating. */
static void share_rows(binary *p)
{
    const int64_t of_a = rows_alike(&p->a, &p->b, p->n), of_b = rows_alike(&p->b, &p->a, p->n);
    const bool fits = p->pair.a_step && p->pair.b_step && p->n > 0 && p->n <= TILED / 2;
    p->shares_a = of_a > of_b;
    p->alike = !fits ? 1 : p->shares_a ? of_a : of_b;
    const unsigned last = p->a.n - 1;
    if (p->a.n > 0 && !p->pair.b_step && p->n > 0 && p->n <= TILED / 2 && p->a.stride[last] == p->n) {
        p->shares_a = false;
        p->alike = p->a.extent[last];
        p->each_step = p->b.stride[last];
    }
}

static void swap_operands(binary *p)
{
    const binary was = *p;
    p->swapped = true;
    p->a = was.b;
    p->b = was.a;
    p->pair.a_step = was.pair.b_step;
    p->pair.b_step = was.pair.a_step;
    p->pair.a_signed = was.pair.b_signed;
    p->pair.b_signed = was.pair.a_signed;
}

lnt_status lnt_bind_qbinary(lnt_site *site)
{
    const lnt_operand *a = site->in[A], *b = site->in[B], *y = site->out[0];
    binary *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (!lnt_is_byte(a->dtype) || !lnt_is_byte(b->dtype))
        return lnt_bind_unsupported_type(site, lnt_is_byte(a->dtype) ? b->dtype : a->dtype);
    p->int8 = site->kernels->int8;
    p->pair.multiply = site->node->op->id == LNT_ID_QLinearMul;
    p->pair.a_signed = a->dtype == LNT_INT8;
    p->pair.b_signed = b->dtype == LNT_INT8;
    p->pair.c_signed = y->dtype == LNT_INT8;
    const int64_t count = lnt_operand_count(y);
    const bool all_a = lnt_operand_count(a) == count, all_b = lnt_operand_count(b) == count;
    p->flat = (all_a || lnt_operand_count(a) == 1) && (all_b || lnt_operand_count(b) == 1);
    p->n = y->rank ? y->dims[axis_stored(y, y->rank - 1u)] : 1;
    p->pair.a_step = p->flat ? all_a : broadcast_rows(a, y, &p->a) != 0;
    p->pair.b_step = p->flat ? all_b : broadcast_rows(b, y, &p->b) != 0;
    if (!p->flat)
        join_rows(p);
    if (!p->pair.a_step)
        swap_operands(p);
    share_rows(p);
    site->step->run = run_binary;
    return LNT_OK;
}

/* ---- any number of inputs: Y scale, Y zero point, then each tensor with its scale and zero point ---- */

/* An input, and where its elements are in the output. */
typedef struct concat_part {
    int64_t at, n;
    bool same;       /* it has the output's quantization parameters, else: */
    uint8_t to[256]; /* the requantization of each value */
} concat_part;

typedef struct concat {
    const lnt_int8_kernels *int8;
    int64_t outer, inner; /* extents before the axis; bytes of the output behind one position before it */
    unsigned parts;
    concat_part *part; /* laid out at bind; tables are filled there if known */
    bool known;        /* scales and zero points are constant; else each run fills parts of its own */
} concat;

typedef struct concat_job {
    const concat *p;
    const concat_part *part;
    const void *const *data; /* of each input */
    uint8_t *y;
} concat_job;

/* The input that part i is; its scale and zero point come behind it. */
static unsigned tensor_of(unsigned i)
{
    return 2 + 3 * i;
}

/* Requantization tables of all parts, from the scales and zero points in data[], the contents of the inputs. */
static void fill_parts(lnt_operand *const *in, const void *const *data, unsigned parts, concat_part *part)
{
    const float y_scale = lnt_qfloat(in[0], data[0], 0);
    const int32_t y_zero = lnt_qint(in[1], data[1], 0, 0);
    for (unsigned i = 0; i < parts; i++) {
        const unsigned x = tensor_of(i);
        const mapping m = {.f = IDENTITY,
                           .type = in[x]->dtype,
                           .x_scale = lnt_qfloat(in[x + 1], data[x + 1], 0),
                           .y_scale = y_scale,
                           .x_zero = lnt_qint(in[x + 2], data[x + 2], 0, 0),
                           .y_zero = y_zero};
        part[i].same = m.x_scale == y_scale && m.x_zero == y_zero && y_scale > 0;
        for (unsigned b = 0; b < 256 && !part[i].same; b++)
            part[i].to[b] = map_byte(&m, (uint8_t)b);
    }
}

/* Item: a position before the axis. */
static lnt_status join_parts(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const concat_job *j = arg;
    (void)k, (void)thread;
    for (unsigned i = 0; i < j->p->parts; i++) {
        const concat_part *part = &j->part[i];
        const uint8_t *x = (const uint8_t *)j->data[tensor_of(i)] + begin * part->n;
        uint8_t *y = j->y + begin * j->p->inner + part->at;
        for (int64_t o = begin; o < end; o++, x += part->n, y += j->p->inner)
            if (part->same)
                memcpy(y, x, (size_t)part->n);
            else
                j->p->int8->look_up(part->to, x, part->n, y);
    }
    return LNT_OK;
}

static lnt_status run_concat(lnt_kernel *k, const lnt_step *s)
{
    const concat *p = s->params;
    const void **data = lnt_scratch(k, s);
    concat_job job = {p, p->part, data, lnt_out(k, s, 0)};
    for (unsigned i = 0; i < s->n_in; i++)
        data[i] = lnt_in(k, s, i);
    if (!p->known) {
        concat_part *part = (concat_part *)(void *)(data + s->n_in);
        memcpy(part, p->part, p->parts * sizeof *part);
        fill_parts(s->in, data, p->parts, part);
        job.part = part;
    }
    return lnt_parallel(k, p->outer, 1 + 16384 / (p->inner + 1), join_parts, &job);
}

static lnt_status concat_axis(const lnt_site *site, unsigned *axis)
{
    LNT_REQUIRE(site->n_in >= 5 && site->n_in % 3 == 2, site->err, LNT_E_ARGUMENT,
                "inputs must be scale and zero point, then threes of tensor, scale and zero point");
    return lnt_axis(site, lnt_attr_i(site->node, "axis", 1), site->in[2]->rank, axis);
}

lnt_status lnt_shape_qconcat(lnt_site *site)
{
    unsigned axis;
    int64_t dims[LNT_MAX_RANK], total = 0;
    LNT_TRY(concat_axis(site, &axis));
    const unsigned rank = site->in[2]->rank;
    memcpy(dims, site->in[2]->dims, sizeof dims);
    for (unsigned i = 2; i < site->n_in; i += 3) {
        const lnt_operand *x = site->in[i];
        LNT_REQUIRE(x->rank == rank, site->err, LNT_E_SHAPE, "inputs of rank %u and %u", rank, x->rank);
        total = i == 2 ? x->dims[axis] : lnt_dim_add(total, x->dims[axis]);
        for (unsigned d = 0; d < rank; d++)
            LNT_REQUIRE(d == axis || dims[d] == x->dims[d] || dims[d] < 0 || x->dims[d] < 0, site->err,
                        LNT_E_SHAPE, "extents %lld and %lld along axis %u", (long long)dims[d],
                        (long long)x->dims[d], d);
    }
    dims[axis] = total;
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

/* Lays out the parts, and fills their tables if all quantization parameters are constant. */
static lnt_status bind_parts(lnt_site *site, concat *p)
{
    int64_t at = 0;
    p->parts = (site->n_in - 2u) / 3;
    p->part = lnt_bump_alloc(site->memory, p->parts * sizeof *p->part, site->err);
    const void **data = lnt_bump_alloc(site->memory, site->n_in * sizeof *data, site->err);
    if (!p->part || !data)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < p->parts; i++) {
        p->part[i].at = at;
        p->part[i].n = p->outer ? lnt_operand_count(site->in[tensor_of(i)]) / p->outer : 0;
        at += p->part[i].n;
    }
    p->known = true;
    for (unsigned i = 0; i < site->n_in; i++) {
        const lnt_operand *o = site->in[i];
        data[i] = o && o->constant ? o->data : NULL;
        p->known &= (i >= 2 && i % 3 == 2) || !o || data[i];
    }
    if (p->known)
        fill_parts(site->in, data, p->parts, p->part);
    lnt_bind_scratch(site, site->n_in * sizeof *data + (p->known ? 0 : p->parts * sizeof *p->part));
    return LNT_OK;
}

lnt_status lnt_bind_qconcat(lnt_site *site)
{
    const lnt_operand *y = site->out[0];
    unsigned axis;
    concat *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(concat_axis(site, &axis));
    for (unsigned i = 2; i < site->n_in; i += 3)
        if (!lnt_is_byte(site->in[i]->dtype))
            return lnt_bind_unsupported_type(site, site->in[i]->dtype);
    p->int8 = site->kernels->int8;
    p->outer = p->inner = 1;
    bool behind = false; /* of the axis, in memory */
    for (unsigned d = 0; d < y->rank; d++) {
        behind |= axis_stored(y, d) == axis;
        *(behind ? &p->inner : &p->outer) *= y->dims[axis_stored(y, d)];
    }
    site->step->run = run_concat;
    return bind_parts(site, p);
}
