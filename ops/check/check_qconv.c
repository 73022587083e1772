/* check_qconv.c — QLinearConv at a level against plain loops, bit for bit: depthwise, in groups and dense,
 * over random extents, windows, types and storage orders. */
#include "ops/check/check.h"

#include "base/memory.h"
#include "ops/quant/qparams.h"
#include "ops/window.h"

#include <string.h>

enum { CASES = 150, CHANNELS_MAX = 150, EXTENT_MAX = 8, TAPS_MAX = 5, BATCH_MAX = 2 };
enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS, SLOPE, FLOOR, INPUTS };
enum {
    IMAGE_MAX = BATCH_MAX * CHANNELS_MAX * 2 * EXTENT_MAX * 2 * EXTENT_MAX,
    WEIGHTS_MAX = CHANNELS_MAX * 40 * TAPS_MAX * TAPS_MAX,
    GUARD = 64
};

typedef struct bench {
    uint8_t x[IMAGE_MAX], w[WEIGHTS_MAX], y[IMAGE_MAX + GUARD], want[IMAGE_MAX];
    float scale[CHANNELS_MAX], slope[CHANNELS_MAX], floor[CHANNELS_MAX];
    uint8_t zeros[CHANNELS_MAX];
    int32_t bias[CHANNELS_MAX];
    float x_scale, y_scale;
    uint8_t x_zero, y_zero;
    int64_t attributes[5][4]; /* group; kernel_shape; strides; dilations; pads */
    lnt_attr attr[5];
    lnt_node node;
    lnt_operand operand[INPUTS], output, *in[INPUTS], *out;
    lnt_window window;
    uint64_t random;
} bench;

static unsigned below(bench *b, unsigned n)
{
    return (unsigned)((lnt_check_random(&b->random) >> 33) % n);
}

static void fill(bench *b, uint8_t *to, int64_t n)
{
    static const uint8_t extremes[] = {0, 127, 128, 255};
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)(below(b, 4) ? below(b, 256) : extremes[below(b, 4)]);
}

static void set_operand(bench *b, unsigned i, lnt_dtype type, const void *data, int64_t n)
{
    b->operand[i] = (lnt_operand){
        .dtype = (uint8_t)type, .rank = n > 1, .dims = {n}, .constant = below(b, 4) > 0, .data = data};
    b->in[i] = &b->operand[i];
}

static void set_image(lnt_operand *o, lnt_dtype type, unsigned order, const int64_t dims[4], const void *data)
{
    *o = (lnt_operand){.dtype = (uint8_t)type, .rank = 4, .order = (uint8_t)order, .data = data};
    memcpy(o->dims, dims, 4 * sizeof *dims);
}

static void draw_attributes(bench *b, int64_t groups)
{
    static const char *const names[] = {"group", "kernel_shape", "strides", "dilations", "pads"};
    for (unsigned i = 0; i < 5; i++) {
        const unsigned n = i == 0 ? 1 : i == 4 ? 4 : 2;
        for (unsigned k = 0; k < n; k++)
            b->attributes[i][k] = i == 0   ? groups
                                  : i == 1 ? 1 + below(b, TAPS_MAX - (groups == 1))
                                  : i == 4 ? below(b, 3)
                                           : 1 + below(b, 2);
        b->attr[i] = (lnt_attr){names[i], i ? LNT_ATTR_INTS : LNT_ATTR_INT, n, {.i = b->attributes[i]}};
    }
}

/* A random convolution; its window may not fit. */
static void draw(bench *b)
{
    const unsigned kind = below(b, 3); /* depthwise, dense, groups */
    const int64_t groups = kind == 0 ? 1 + below(b, CHANNELS_MAX) : kind == 1 ? 1 : 2 + below(b, 2);
    const int64_t depth = kind == 0 ? 1 : 1 + below(b, 40), columns = kind == 0 ? 1 : 1 + below(b, 40);
    const lnt_dtype type = below(b, 2) ? LNT_INT8 : LNT_UINT8, weights = below(b, 2) ? LNT_INT8 : LNT_UINT8;
    const int64_t x_dims[4] = {1 + below(b, BATCH_MAX), groups * depth, 1 + below(b, 2 * EXTENT_MAX),
                               1 + below(b, 2 * EXTENT_MAX)};
    draw_attributes(b, groups);
    const int64_t w_dims[4] = {groups * columns, depth, b->attributes[1][0], b->attributes[1][1]};
    const int64_t each = below(b, 2) ? groups * columns : 1;
    set_operand(b, X_SCALE, LNT_FLOAT, &b->x_scale, 1);
    set_operand(b, X_ZERO, type, &b->x_zero, 1);
    set_operand(b, W_SCALE, LNT_FLOAT, b->scale, each);
    set_operand(b, W_ZERO, weights, b->zeros, each);
    set_operand(b, Y_SCALE, LNT_FLOAT, &b->y_scale, 1);
    set_operand(b, Y_ZERO, type, &b->y_zero, 1);
    set_operand(b, BIAS, LNT_INT32, b->bias, groups * columns);
    set_operand(b, SLOPE, LNT_FLOAT, b->slope, groups * columns);
    set_operand(b, FLOOR, LNT_FLOAT, b->floor, groups * columns);
    set_image(&b->operand[X], type, below(b, 2), x_dims, b->x);
    set_image(&b->operand[W], weights, LNT_ORDER_PLAIN, w_dims, b->w);
    set_image(&b->output, type, below(b, 2), x_dims, NULL);
    b->in[X] = &b->operand[X];
    b->in[W] = &b->operand[W];
    b->out = &b->output;
    fill(b, b->x, lnt_operand_count(&b->operand[X]));
    fill(b, b->w, lnt_operand_count(&b->operand[W]));
    fill(b, &b->x_zero, 1);
    fill(b, &b->y_zero, 1);
    b->x_scale = 0.02f;
    b->y_scale = 0.5f;
    const bool moved = below(b, 3) == 0;
    for (int64_t f = 0; f < groups * columns; f++) {
        b->scale[f] = 0.001f * (float)(1 + below(b, 40));
        b->zeros[f] = moved ? (uint8_t)below(b, 256) : weights == LNT_INT8 ? 0 : 128;
        b->bias[f] = (int32_t)below(b, 20000) - 10000;
        b->slope[f] = (float)below(b, 9) / 8;
        b->floor[f] = -0.5f * (float)below(b, 100);
    }
    const uint8_t inputs = kind > 0 && below(b, 2) ? INPUTS : SLOPE;
    b->node = (lnt_node){.op = lnt_op_by_id(LNT_ID_QLinearConv), .name = "", .n_in = inputs, .n_out = 1};
    b->node.attr = b->attr;
    b->node.n_attr = 5;
}

static int32_t stored(const lnt_operand *o, const uint8_t *data, int64_t i)
{
    return o->dtype == LNT_INT8 ? (int8_t)data[i] : data[i];
}

/* The sum of output (n, f, y, x). */
static int32_t sum_at(const bench *b, int64_t n, int64_t f, int64_t y, int64_t x)
{
    const lnt_operand *image = &b->operand[X], *w = &b->operand[W], *zeros = &b->operand[W_ZERO];
    const lnt_window *v = &b->window;
    const int64_t depth = w->dims[1], group = f / (w->dims[0] / b->attributes[0][0]);
    const int32_t zero = stored(zeros, b->zeros, lnt_operand_count(zeros) > 1 ? f : 0);
    int64_t strides[LNT_MAX_RANK];
    uint32_t total = (uint32_t)b->bias[f];
    lnt_operand_strides(image, strides);
    for (int64_t c = 0; c < depth; c++)
        for (int64_t ty = 0; ty < v->kernel[1]; ty++)
            for (int64_t tx = 0; tx < v->kernel[2]; tx++) {
                const int64_t iy = lnt_window_at(v, 1, y, ty), ix = lnt_window_at(v, 2, x, tx);
                if (iy < 0 || iy >= v->in[1] || ix < 0 || ix >= v->in[2])
                    continue;
                const int64_t at =
                    n * strides[0] + (group * depth + c) * strides[1] + iy * strides[2] + ix * strides[3];
                const int32_t a = stored(image, b->x, at) - stored(image, &b->x_zero, 0);
                const int32_t k =
                    stored(w, b->w, ((f * depth + c) * v->kernel[1] + ty) * v->kernel[2] + tx) - zero;
                total += (uint32_t)(a * k);
            }
    return (int32_t)total;
}

static float with_slope(const bench *b, int64_t f, float v)
{
    return b->node.n_in < INPUTS ? v : fmaxf(v, fmaxf(v * b->slope[f], b->floor[f] / b->y_scale));
}

static void judge(bench *b)
{
    const lnt_operand *o = &b->output;
    int64_t strides[LNT_MAX_RANK];
    lnt_operand_strides(o, strides);
    for (int64_t n = 0; n < o->dims[0]; n++)
        for (int64_t f = 0; f < o->dims[1]; f++) {
            const float scale = b->scale[lnt_operand_count(&b->operand[W_SCALE]) > 1 ? f : 0];
            for (int64_t y = 0; y < o->dims[2]; y++)
                for (int64_t x = 0; x < o->dims[3]; x++)
                    b->want[n * strides[0] + f * strides[1] + y * strides[2] + x * strides[3]] =
                        (uint8_t)lnt_requantize(
                            with_slope(b, f,
                                       (float)sum_at(b, n, f, y, x) * (b->x_scale * scale / b->y_scale)),
                            stored(o, &b->y_zero, 0), lnt_qrange_of(o->dtype));
        }
}

static lnt_status check_case(bench *b, lnt_level level, uint64_t seed, lnt_check_report *r)
{
    lnt_error err = {0};
    lnt_site site = {
        .node = &b->node, .in = b->in, .out = &b->out, .n_in = b->node.n_in, .n_out = 1, .err = &err};
    void *y = b->y;
    draw(b);
    if (!b->node.op || lnt_row_shape(&site) != LNT_OK || lnt_operand_count(&b->output) <= 0 ||
        lnt_operand_count(&b->output) > IMAGE_MAX ||
        lnt_window_with(&site, b->operand[W].dims + 2, &b->window))
        return LNT_OK; /* the window does not fit, or there is no such operator */
    const int64_t n = lnt_operand_count(&b->output);
    memset(b->y, 0x5a, sizeof b->y);
    LNT_TRY(lnt_evaluate(&lnt_malloc_allocator, &b->node, b->in, &b->out, &y, level, 0, &err));
    judge(b);
    r->cases++;
    for (int64_t i = 0; i < n + GUARD; i++) {
        if (b->y[i] == (i < n ? b->want[i] : 0x5a))
            continue;
        const int64_t *d = b->operand[X].dims, *w = b->operand[W].dims;
        lnt_check_fail(
            r,
            "%s QLinearConv: %lldx%lldx%lldx%lld, weights %lldx%lldx%lldx%lld, byte %lld is %u, not %u, "
            "seed %llu",
            lnt_level_text(level), (long long)d[0], (long long)d[1], (long long)d[2], (long long)d[3],
            (long long)w[0], (long long)w[1], (long long)w[2], (long long)w[3], (long long)i, b->y[i],
            i < n ? b->want[i] : 0x5a, (unsigned long long)seed);
        break;
    }
    return LNT_OK;
}

lnt_status lnt_check_qconv(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    lnt_error err = {0};
    bench *b = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *b, &err);
    const uint64_t before = r->failures;
    lnt_status status = LNT_OK;
    if (!b)
        return LNT_E_MEMORY;
    b->random = seed | 1;
    for (int i = 0; i < CASES && status == LNT_OK; i++)
        status = check_case(b, level, seed, r);
    lnt_free(&lnt_malloc_allocator, b);
    return status ? status : r->failures > before ? LNT_E_INTERNAL : LNT_OK;
}
