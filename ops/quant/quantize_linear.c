/* quantize_linear.c — QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, per tensor, per axis and in
 * blocks. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "base/small.h"
#include "ops/cells.h"
#include "ops/copy.h"
#include "ops/quant/qparams.h"
#include "ops/rows/int8_rows.h"
#include "ops/rows/row.h"
#include "ops/vectorize.h"

#include <string.h>

enum {
    BLOCK = 256,       /* elements converted at a time by way of a copy, */
    IN_PLACE = 512,    /* in the output, by more than one loop, */
    STRAIGHT = 1 << 30 /* by one loop */
};

/* Rows this short get as many scales, unless they would be more in all than stay in the cache, or hardly used again. */
enum { SHORT_ROW = 32, MOST_SCALES = 16384, FEW_ROWS = 4 };

/* Of memory that a scale takes: it and its zero point, and what is repeated of both. */
enum { SCALE_BYTES = 2 * (sizeof(float) + sizeof(int32_t)) };

/* A tensor is a sequence of contiguous rows. A row's elements share one scale, or each has its own. */
typedef struct linear {
    const lnt_int8_kernels *int8;
    const lnt_row_kernels *row;
    const lnt_cells *cells;
    lnt_dtype in_type, out_type, scale_type; /* small integers as the bytes they are */
    lnt_qrange range;                        /* of the output where it is an integer */
    bool whole_byte;                         /* it is that of int8 or uint8 */
    bool saturate;
    int64_t rows, n; /* rows of n elements */
    int64_t width;   /* scales a row takes: 1 or n */
    int64_t axis;    /* extent of the quantization axis; rows run along it */
    int64_t block;   /* rows that share scales */
    int64_t scales;  /* in all, */
    int64_t given;   /* and before any are repeated */
    int64_t
        each; /* elements one behind the other that have one of them, which is repeated for all of these, */
    int64_t times;   /* and rows that are one with the scales of them all, repeated as a whole */
    int64_t at_once; /* elements that run takes */
} linear;

typedef struct linear_job linear_job;

struct linear_job {
    const linear *p;
    const void *x;
    void *y;
    float *scale;
    int32_t *zero;    /* where quantized elements are integers */
    bool shifts;      /* one of these is not 0 */
    float *real_zero; /* where they are floats, or differ within rows that become floats; in the same place */
    void (*run)(const linear_job *j, int64_t at, int64_t n, int64_t from);
};

/* lnt_requantize of x / scale, in vectors: rounded by an addition, which is exact up to 2 ** 22. */
static void quantize_each(const float *x, float *y, int64_t n, const float *scale, const int32_t *zero,
                          lnt_qrange range)
{
    const float magic = 0x1.8p23f;
    LNT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float low = (float)(range.low - zero[i]), high = (float)(range.high - zero[i]),
                    t = x[i] / scale[i];
        const float above = t > low ? t : low, inside = above < high ? above : high;
        y[i] = ((inside + magic) - magic) + (float)zero[i];
    }
}

/* To floats of 8 and 4 bits. */
static void quantize_to_float(const linear *p, float *x, uint8_t *y, int64_t n, const float *scale,
                              const float *zero)
{
    const int64_t step = p->width > 1;
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] / scale[i * step] + zero[i * step];
    lnt_small_from_float(p->out_type, x, y, n, (lnt_small_rounding){.saturate = p->saturate});
}

/* Index of the first scale of a row. */
static int64_t scale_at(const linear *p, int64_t row)
{
    if (p->block == 1)
        return row * p->width % p->scales;
    const int64_t blocks = (p->axis + p->block - 1) / p->block;
    return (row / p->axis * blocks + row % p->axis / p->block) * p->width % p->scales;
}

/* n elements from element at on, with scales from index `from` on. */
static void quantize_run(const linear_job *j, int64_t at, int64_t n, int64_t from)
{
    const linear *p = j->p;
    float x[BLOCK], own[BLOCK];
    int32_t own_zero[BLOCK];
    const float *scale = j->scale + from;
    const int32_t *zero = j->zero + from;
    if (p->at_once == STRAIGHT) {
        p->int8->quantize((const float *)j->x + at, (uint8_t *)j->y + at, n, j->scale[from], j->zero[from],
                          p->out_type == LNT_INT8);
        return;
    }
    lnt_cells_to_float(p->cells, p->in_type, lnt_element_at(j->x, p->in_type, at), x, n);
    if (lnt_is_small(p->out_type)) {
        quantize_to_float(p, x, (uint8_t *)j->y + at, n, scale, j->real_zero + from);
        return;
    }
    if (p->width == 1) {
        lnt_fill(own, n, scale, sizeof *scale);
        lnt_fill(own_zero, n, zero, sizeof *zero);
        scale = own;
        zero = own_zero;
    }
    quantize_each(x, x, n, scale, zero, p->range);
    p->cells->store[lnt_is_byte(p->out_type) ? LNT_CELL_U8 : LNT_CELL_U16](
        x, lnt_element_at(j->y, p->out_type, at), 1, n);
}

/* Quantized elements as floats; int32 less their zero points, which floats may not hold. */
static void load_quantized(const linear_job *j, int64_t at, int64_t n, int64_t from, float *y)
{
    const linear *p = j->p;
    const void *x = lnt_element_at(j->x, p->in_type, at);
    if (lnt_is_small(p->in_type))
        lnt_small_to_float(p->in_type, x, y, n);
    else if (p->in_type == LNT_INT32 && j->shifts)
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(((const int32_t *)x)[i] - (int64_t)j->zero[from + (p->width > 1 ? i : 0)]);
    else
        lnt_cells_to_float(p->cells, p->in_type, x, y, n);
}

/* RUN or more int32 that share a scale and have no zero point, in one pass; the last ones may be computed twice. */
enum { RUN = 16 };
static void scale_int32(const int32_t *x, float *y, int64_t n, float scale)
{
    typedef int32_t integers __attribute__((vector_size(RUN * sizeof(int32_t)), aligned(4)));
    typedef float floats __attribute__((vector_size(RUN * sizeof(float)), aligned(4)));
    LNT_ASSERT(n >= RUN);
    for (int64_t i = 0; i < n; i += RUN) {
        const int64_t at = lnt_least(i, n - RUN);
        *(floats *)(y + at) = __builtin_convertvector(*(const integers *)(x + at), floats) * scale;
    }
}

/* What was loaded becomes what it stands for. */
static void scale_loaded(const linear_job *j, int64_t n, int64_t from, float *y)
{
    const linear *p = j->p;
    const bool left = p->in_type != LNT_INT32; /* zero points are: differences of narrow ones are exact */
    const float *scale = j->scale + from;
    if (p->width == 1) {
        p->row->shift_scale(y, y, n, left ? (float)j->zero[from] : 0, *scale, -0.0f);
        return;
    }
    if (left && j->shifts)
        p->row->subtract(y, j->real_zero + from, y, n);
    p->row->multiply(y, scale, n);
}

static void dequantize_run(const linear_job *j, int64_t at, int64_t n, int64_t from)
{
    const linear *p = j->p;
    const float *scale = j->scale + from;
    const int32_t *zero = j->zero + from; /* where there is one of a row */
    float own[BLOCK], *y = p->out_type == LNT_FLOAT ? (float *)j->y + at : own;
    if (p->at_once == STRAIGHT) {
        p->int8->dequantize((const uint8_t *)j->x + at, y, n, *scale, *zero, p->in_type == LNT_INT8);
        return;
    }
    LNT_ASSERT(y != own || n <= BLOCK);
    if (p->in_type == LNT_INT32 && !j->shifts && p->width == 1 && n >= RUN) {
        scale_int32((const int32_t *)j->x + at, y, n, *scale);
    } else {
        load_quantized(j, at, n, from, y);
        scale_loaded(j, n, from, y);
    }
    if (y == own)
        lnt_cells_from_float(p->cells, p->out_type, y, lnt_element_at(j->y, p->out_type, at), n);
}

/* Rows, or with one scale for the whole tensor elements. */
static lnt_status convert_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const linear_job *j = arg;
    const linear *p = j->p;
    const int64_t n_rows = p->scales == 1 ? 1 : end - begin, n = p->scales == 1 ? end - begin : p->n;
    (void)k, (void)thread;
    for (int64_t row = begin; row < begin + n_rows; row++)
        for (int64_t i = 0; i < n; i += p->at_once) {
            const int64_t from = p->scales == 1 ? 0 : scale_at(p, row) + (p->width > 1 ? i : 0);
            j->run(j, row * p->n + i, lnt_least(n - i, p->at_once), from);
        }
    return LNT_OK;
}

/* The first n zero points of the job, 0 where there are none. Of floats only float4e2m1 has one, when it is made: that
 * of float8 is 0. */
static void read_zeros(linear_job *j, int64_t n, const lnt_operand *zero, const void *data)
{
    const linear *p = j->p;
    const bool real = lnt_is_small(p->out_type) || lnt_is_small(p->in_type);
    int64_t some[BLOCK];
    if (p->out_type == LNT_FLOAT4E2M1 && data) {
        lnt_small_to_float(p->out_type, data, j->real_zero, n);
        return;
    }
    memset(j->zero, 0, (size_t)n * sizeof *j->zero);
    for (int64_t i = 0; i < n && data && !real; i += BLOCK) {
        const lnt_dtype t = lnt_small_as_byte((lnt_dtype)zero->dtype);
        const int64_t block = lnt_least(BLOCK, n - i);
        lnt_elements_to_int64(t, lnt_element_at(data, t, i), some, block);
        for (int64_t b = 0; b < block; b++) {
            j->zero[i + b] = (int32_t)some[b];
            j->shifts |= some[b] != 0;
        }
    }
}

/* Those that were given, of a row's elements, or as many zero points: for all elements of all rows that are one. */
static __attribute__((noinline)) void repeat_scales(const linear *p, float *to, const float *once)
{
    lnt_repeat_each(to, once, sizeof *once, p->given, p->each, sizeof *once);
    lnt_repeat_bytes(to, to, p->given * p->each * (int64_t)sizeof *to, p->times);
}

static lnt_status run_linear(lnt_kernel *k, const lnt_step *s,
                             void (*run)(const linear_job *j, int64_t at, int64_t n, int64_t from))
{
    const linear *p = s->params;
    LNT_ASSERT(s->scratch_bytes >= (size_t)p->scales * SCALE_BYTES);
    const int64_t given = p->given;
    float *const scale = lnt_scratch(k, s), *const once = given < p->scales ? scale + 2 * p->scales : scale;
    linear_job job = {.p = p, .x = lnt_in(k, s, 0), .y = lnt_out(k, s, 0), .scale = scale, .run = run};
    job.real_zero = once + given; /* the bits of 0 are those of 0.0 */
    job.zero = (int32_t *)job.real_zero;
    if (p->scale_type == LNT_FLOAT8E8M0)
        lnt_small_to_float(p->scale_type, lnt_in(k, s, 1), once, given);
    else
        lnt_elements_to_float(p->scale_type, lnt_in(k, s, 1), once, given);
    read_zeros(&job, given, s->n_in > 2 ? s->in[2] : NULL, lnt_in(k, s, 2));
    if (run == dequantize_run && p->width > 1 && p->in_type != LNT_INT32 && job.shifts)
        lnt_elements_to_float(LNT_INT32, job.zero, job.real_zero, given);
    if (once != scale) {
        repeat_scales(p, scale, once);
        repeat_scales(p, scale + p->scales, job.real_zero);
    }
    job.real_zero = scale + p->scales;
    job.zero = (int32_t *)job.real_zero;
    const int64_t grain = p->n == 1 ? 8192 : 1 + 16384 / (p->n + 1); /* whole vectors of single elements */
    return lnt_parallel(k, p->rows, grain, convert_rows, &job);
}

static lnt_status run_quantize(lnt_kernel *k, const lnt_step *s)
{
    return run_linear(k, s, quantize_run);
}

static lnt_status run_dequantize(lnt_kernel *k, const lnt_step *s)
{
    return run_linear(k, s, dequantize_run);
}

lnt_status lnt_shape_quantize(lnt_site *site)
{
    const lnt_operand *zero = lnt_input(site, 2);
    const int64_t wanted = lnt_attr_i(site->node, "output_dtype", 0);
    lnt_set_type(site, 0, zero ? zero->dtype : wanted ? (lnt_dtype)wanted : LNT_UINT8);
    if (site->in[0]->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    lnt_set_dims_like(site, 0, site->in[0]);
    return LNT_OK;
}

lnt_status lnt_shape_dequantize(lnt_site *site)
{
    const int64_t wanted = lnt_attr_i(site->node, "output_dtype", 0);
    lnt_set_type(site, 0, wanted ? (lnt_dtype)wanted : site->in[1]->dtype);
    if (site->in[0]->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    lnt_set_dims_like(site, 0, site->in[0]);
    return LNT_OK;
}

/* One scale for all, one per position of an axis, or one per block of positions of an axis. */
static lnt_status bind_scales(lnt_site *site, linear *p)
{
    const lnt_operand *x = site->in[0], *scale = site->in[1];
    const int64_t block = lnt_attr_i(site->node, "block_size", 0), count = lnt_operand_count(x);
    unsigned axis;
    p->given = p->scales = lnt_operand_count(scale);
    p->block = p->axis = p->width = p->each = p->times = 1;
    if (p->scales == 1 && block == 0) {
        p->n = 1;
        p->rows = count;
        return LNT_OK;
    }
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 1), x->rank, &axis));
    p->axis = x->dims[axis];
    p->n = 1;
    for (unsigned d = axis + 1; d < x->rank; d++)
        p->n *= x->dims[d];
    p->rows = p->n ? count / p->n : 0;
    if (block == 0 && p->axis == p->scales && p->axis > 0 &&
        (p->n == 1 ||
         (p->n > 0 && p->n <= SHORT_ROW &&
          p->axis * p->n <=
              lnt_least(MOST_SCALES,
                        count / FEW_ROWS)))) { /* the last axis, or nearly so: all scales in a row */
        p->each = p->n;
        p->n *= p->axis;
        p->rows = count / p->n;
        for (int64_t t = lnt_least(BLOCK / p->n, p->rows / FEW_ROWS); t > 1 && p->times == 1; t--)
            p->times = p->rows % t == 0 ? t : 1;
        p->rows /= p->times;
        p->n = p->width = p->scales = p->n * p->times;
        p->axis = 1;
        return LNT_OK;
    }
    if (block == 0) {
        LNT_REQUIRE(p->scales == p->axis, site->err, LNT_E_SHAPE,
                    "%lld scales for %lld elements along axis %u", (long long)p->scales, (long long)p->axis,
                    axis);
        return LNT_OK;
    }
    LNT_REQUIRE(block > 0 && scale->rank == x->rank, site->err, LNT_E_SHAPE,
                "block_size %lld: scale must have the input's rank", (long long)block);
    for (unsigned d = 0; d < x->rank; d++)
        LNT_REQUIRE(
            scale->dims[d] == (d == axis ? x->dims[d] / block + (x->dims[d] % block != 0) : x->dims[d]),
            site->err, LNT_E_SHAPE, "scale has extent %lld along axis %u", (long long)scale->dims[d], d);
    p->block = block;
    p->width = p->n;
    return LNT_OK;
}

/* Floats and bytes that share a scale are converted by one loop. */
static int64_t elements_at_once(const linear *p, bool dequantizes)
{
    const bool floats = (dequantizes ? p->out_type : p->in_type) == LNT_FLOAT,
               bytes = dequantizes ? lnt_is_byte(p->in_type) : p->whole_byte;
    if (floats && bytes && p->width == 1)
        return STRAIGHT;
    return floats && dequantizes ? IN_PLACE : BLOCK;
}

static lnt_status bind_linear(lnt_site *site, lnt_run_fn run)
{
    const lnt_operand *zero = lnt_input(site, 2);
    size_t bytes;
    linear *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->int8 = site->kernels->int8;
    p->row = site->kernels->row;
    p->cells = site->kernels->cells;
    p->in_type = lnt_small_as_byte(site->in[0]->dtype);
    p->out_type = lnt_small_as_byte(site->out[0]->dtype);
    p->range = lnt_qrange_of(site->out[0]->dtype);
    p->whole_byte = lnt_is_byte(site->out[0]->dtype);
    p->saturate = lnt_attr_i(site->node, "saturate", 1) != 0;
    p->scale_type = site->in[1]->dtype;
    LNT_TRY(bind_scales(site, p));
    p->at_once = elements_at_once(p, run == run_dequantize);
    LNT_REQUIRE(!zero || lnt_operand_count(zero) == p->given, site->err, LNT_E_SHAPE,
                "scale and zero point must have the same shape");
    if (p->out_type == LNT_FLOAT4E2M1 && zero && zero->dtype != LNT_FLOAT4E2M1)
        return lnt_bind_unsupported_type(site, zero->dtype);
    if (lnt_is_small(p->scale_type) && p->scale_type != LNT_FLOAT8E8M0)
        return lnt_bind_unsupported_type(site, p->scale_type);
    LNT_REQUIRE(lnt_mul_size((size_t)p->scales, SCALE_BYTES, &bytes), site->err, LNT_E_LIMIT,
                "too many scales");
    lnt_bind_scratch(site, bytes);
    site->step->run = run;
    return LNT_OK;
}

static bool takes_quantized(lnt_dtype t)
{
    return lnt_is_quantized(t) || (lnt_is_small(t) && t != LNT_FLOAT8E8M0);
}

lnt_status lnt_bind_quantize(lnt_site *site)
{
    const lnt_dtype in = site->in[0]->dtype, out = site->out[0]->dtype;
    if (!lnt_is_floating(in) && in != LNT_INT32)
        return lnt_bind_unsupported_type(site, in);
    if (!takes_quantized(out))
        return lnt_bind_unsupported_type(site, out);
    return bind_linear(site, run_quantize);
}

lnt_status lnt_bind_dequantize(lnt_site *site)
{
    const lnt_dtype in = site->in[0]->dtype, out = site->out[0]->dtype;
    if (!takes_quantized(in) && in != LNT_INT32)
        return lnt_bind_unsupported_type(site, in);
    if (!lnt_is_floating(out))
        return lnt_bind_unsupported_type(site, out);
    return bind_linear(site, run_dequantize);
}

/* ---- DynamicQuantizeLinear ---- */

typedef struct dynamic {
    const lnt_row_kernels *row;
    const lnt_int8_kernels *int8;
} dynamic;

typedef struct dynamic_job {
    const lnt_int8_kernels *int8;
    const float *x;
    uint8_t *y;
    float scale;
    int32_t zero;
} dynamic_job;

static lnt_status quantize_slice(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const dynamic_job *j = arg;
    (void)k, (void)thread;
    j->int8->quantize(j->x + begin, j->y + begin, end - begin, j->scale, j->zero, false);
    return LNT_OK;
}

/* Parts of a tensor, each of which stays in the first-level cache, have their least and largest element found. */
enum { PARTS = 64, PART = 4096 };

typedef struct ends_job {
    const lnt_row_kernels *row;
    const float *x;
    int64_t n, part;
    float low[PARTS], high[PARTS];
} ends_job;

static lnt_status find_ends(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    ends_job *j = arg;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * j->part, n = lnt_least(j->part, j->n - first);
        j->low[i] = j->row->min(j->x + first, n);
        j->high[i] = j->row->max(j->x + first, n);
    }
    return LNT_OK;
}

lnt_status lnt_dynamic_scale(lnt_kernel *k, const lnt_row_kernels *row, const float *x, int64_t n,
                             float *scale, int32_t *zero)
{
    const int64_t part = (n / PARTS / PART + 1) * PART, parts = (n + part - 1) / part;
    ends_job j;
    j.row = row, j.x = x, j.n = n, j.part = part;
    LNT_TRY(parts > 1 ? lnt_parallel(k, parts, 4, find_ends, &j) : find_ends(k, &j, 0, parts, 0));
    const float low = fminf(row->min(j.low, parts), 0), high = fmaxf(row->max(j.high, parts), 0);
    *scale = high > low ? (high - low) / 255 : 1;
    *zero = lnt_requantize((0 - low) / *scale, 0, lnt_qrange_of(LNT_UINT8));
    return LNT_OK;
}

static lnt_status run_dynamic(lnt_kernel *k, const lnt_step *s)
{
    const dynamic *p = s->params;
    const int64_t n = lnt_operand_count(s->in[0]);
    dynamic_job job = {.int8 = p->int8, .x = lnt_in(k, s, 0), .y = lnt_out(k, s, 0)};
    LNT_TRY(lnt_dynamic_scale(k, p->row, job.x, n, &job.scale, &job.zero));
    LNT_TRY(lnt_parallel(k, n, 8192, quantize_slice, &job));
    if (lnt_out(k, s, 1))
        *(float *)lnt_out(k, s, 1) = job.scale;
    if (lnt_out(k, s, 2))
        *(uint8_t *)lnt_out(k, s, 2) = (uint8_t)job.zero;
    return LNT_OK;
}

lnt_status lnt_shape_dynamic_quantize(lnt_site *site)
{
    lnt_set_type(site, 0, LNT_UINT8);
    lnt_set_type(site, 1, LNT_FLOAT);
    lnt_set_type(site, 2, LNT_UINT8);
    lnt_set_dims(site, 1, 0, NULL);
    lnt_set_dims(site, 2, 0, NULL);
    if (site->in[0]->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    lnt_set_dims_like(site, 0, site->in[0]);
    return LNT_OK;
}

lnt_status lnt_bind_dynamic_quantize(lnt_site *site)
{
    dynamic *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (site->in[0]->dtype != LNT_FLOAT)
        return lnt_bind_unsupported_type(site, site->in[0]->dtype);
    p->row = site->kernels->row;
    p->int8 = site->kernels->int8;
    site->step->run = run_dynamic;
    return LNT_OK;
}
