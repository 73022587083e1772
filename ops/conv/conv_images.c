/* conv_images.c — storage orders, weights and types around the convolution kernels. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv.h"
#include "ops/gemm/gemm_driver.h"
#include "ops/half_kernels.h"
#include "ops/widen.h"

#include <string.h>

/* ---- images ---- */

/* Plain and channels-last are the same where there is one channel or one pixel. */
static bool is_either_order(const lnt_operand *o)
{
    int64_t pixels = 1;
    for (unsigned i = 2; i < o->rank; i++)
        pixels *= o->dims[i];
    return o->order == LNT_ORDER_CHANNELS_LAST || o->dims[1] <= 1 || pixels <= 1;
}

bool lnt_conv_writes_output(const lnt_site *site)
{
    return is_either_order(site->out[0]);
}

/* Groups that have images of their own. */
static inline int64_t groups_apart(const lnt_conv_images *images)
{
    return LNT_GROUPS_APART ? images->groups : 1;
}

/* To channels-last, within padded images: [groups, batch, extents..., channels]. */
static void relayout_in(lnt_conv_images *images, const lnt_padding *padding, const lnt_operand *in)
{
    enum { BATCH, GROUP, CHANNEL, EXTENT };
    int64_t src[LNT_MAX_RANK], dims[LNT_MAX_RANK], from[LNT_MAX_RANK], to[LNT_MAX_RANK];
    int64_t step = images->pixel;
    const unsigned rank = in->rank + 1;
    lnt_operand_strides(in, src);
    for (unsigned i = rank; i-- > EXTENT;) {
        const unsigned axis = LNT_WINDOW_AXES + i - rank;
        dims[i] = images->extent[axis];
        from[i] = src[i - 1] * (!LNT_TRIMMED && padding ? padding->step[axis] : 1);
        to[i] = step;
        step *= images->whole[axis];
    }
    dims[CHANNEL] = images->pixel, from[CHANNEL] = src[1], to[CHANNEL] = 1;
    dims[GROUP] = groups_apart(images), from[GROUP] = src[1] * images->pixel,
    to[GROUP] = step * images->batch;
    dims[BATCH] = images->batch, from[BATCH] = src[0], to[BATCH] = step;
    lnt_copy_box(&images->in, images->element, rank, dims, to, from);
}

static void relayout_out(lnt_conv_images *images, const lnt_operand *out)
{
    lnt_operand src = *out;
    int64_t src_strides[LNT_MAX_RANK], dst_strides[LNT_MAX_RANK];
    src.order = LNT_ORDER_CHANNELS_LAST;
    lnt_operand_strides(&src, src_strides);
    lnt_operand_strides(out, dst_strides);
    lnt_copy_box(&images->out, images->element, out->rank, out->dims, dst_strides, src_strides);
}

lnt_status lnt_conv_bind_images(lnt_site *site, const lnt_conv *c, const lnt_padding *padding,
                                lnt_conv_images *images, size_t *scratch)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    int64_t floats = c->groups * c->channels;
    images->groups = LNT_GROUPS_APART && padding ? padding->groups : 1;
    images->pixel = floats / groups_apart(images);
    images->batch = c->batch;
    images->element = lnt_site_element(site);
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        images->extent[a] = images->whole[a] = c->w.in[a];
        if (padding) {
            if (!LNT_TRIMMED)
                images->extent[a] = (c->w.in[a] + padding->step[a] - 1) / padding->step[a];
            images->before[a] = padding->before[a];
            images->whole[a] = padding->before[a] + images->extent[a] + padding->after[a];
            images->pad_in |= images->whole[a] > images->extent[a];
        }
        if (!lnt_mul_i64(floats, images->whole[a], &floats))
            return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the padded input is too large");
    }
    if (!lnt_mul_i64(floats, c->batch * (int64_t)images->element, &floats) || floats > PTRDIFF_MAX / 4)
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the padded input is too large");
    images->relayout_in = groups_apart(images) > 1 || !is_either_order(in);
    images->relayout_out = !is_either_order(out);
    if (images->relayout_in)
        relayout_in(images, padding, in);
    if (images->relayout_in || images->pad_in) {
        images->in_at = *scratch;
        *scratch += lnt_round_up(floats ? (size_t)floats : 1, LNT_ALIGN); /* a place without channels, too */
    }
    if (images->relayout_out) {
        relayout_out(images, out);
        images->out_at = *scratch;
        *scratch += lnt_round_up(lnt_float_bytes(out), LNT_ALIGN);
    }
    return LNT_OK;
}

static float *scratch_at(lnt_kernel *k, const lnt_step *s, size_t at)
{
    return (float *)(void *)((char *)lnt_scratch(k, s) + at);
}

typedef struct pad_call {
    const lnt_conv_images *images;
    const char *src; /* NULL: leave room for the image, which is transposed into its place */
    char *dst;
} pad_call;

/* Lines of the padded images. */
static lnt_status pad_lines(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    const pad_call *c = arg;
    const lnt_conv_images *m = c->images;
    const int64_t *in = m->extent, *whole = m->whole;
    const size_t pixel = (size_t)m->pixel * m->element, line = (size_t)whole[2] * pixel,
                 left = (size_t)m->before[2] * pixel, row = (size_t)in[2] * pixel;
    for (int64_t i = begin; i < end; i++) {
        const int64_t y = i % whole[1] - m->before[1], z = i / whole[1] % whole[0] - m->before[0];
        char *to = c->dst + (size_t)i * line;
        if (y < 0 || y >= in[1] || z < 0 || z >= in[0]) {
            memset(to, 0, line);
            continue;
        }
        const int64_t from = ((i / whole[1] / whole[0] * in[0] + z) * in[1] + y) * (int64_t)row;
        memset(to, 0, left);
        if (c->src)
            memcpy(to + left, c->src + from, row);
        memset(to + left + row, 0, line - left - row);
    }
    return LNT_OK;
}

lnt_status lnt_conv_input(lnt_kernel *k, const lnt_step *s, const lnt_conv_images *images, const float **x)
{
    LNT_ASSERT(!(images->relayout_in || images->pad_in) || images->in_at < s->scratch_bytes);
    enum { GRAIN_FLOATS = 16384 };
    const float *src = lnt_in(k, s, 0);
    *x = src;
    if (!images->relayout_in && !images->pad_in)
        return LNT_OK;
    float *dst = scratch_at(k, s, images->in_at);
    const int64_t *whole = images->whole, *before = images->before;
    if (images->pad_in) {
        pad_call c = {images, images->relayout_in ? NULL : (const char *)src, (char *)dst};
        const int64_t lines = groups_apart(images) * images->batch * whole[0] * whole[1];
        LNT_TRY(lnt_parallel(k, lines, GRAIN_FLOATS / (whole[2] * images->pixel + 1) + 1, pad_lines, &c));
    }
    if (images->relayout_in) {
        const int64_t first = (before[0] * whole[1] + before[1]) * whole[2] + before[2];
        LNT_TRY(lnt_copy_run(k, &images->in, lnt_moved(dst, first * images->pixel, images->element), src));
    }
    *x = dst;
    return LNT_OK;
}

float *lnt_conv_output(lnt_kernel *k, const lnt_step *s, const lnt_conv_images *images)
{
    return images->relayout_out ? scratch_at(k, s, images->out_at) : lnt_out(k, s, 0);
}

int64_t lnt_conv_out_pixel(const lnt_step *s)
{
    const lnt_operand *out = s->out[0];
    return out->order == LNT_ORDER_CHANNELS_LAST ? lnt_operand_pitch(out) : out->dims[1];
}

void lnt_conv_bind_pitched(lnt_site *site, const lnt_store *store)
{
    if (site->out[0]->order == LNT_ORDER_CHANNELS_LAST && store->residual < 0)
        lnt_bind_pitched(site);
}

typedef struct program_call {
    const lnt_epilogue *program;
    const lnt_step *step;
    float *out;
    int64_t columns, ld;
    size_t element;
} program_call;

static lnt_status run_program(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const program_call *c = arg;
    lnt_epilogue_run(c->program, k, c->step, lnt_moved(c->out, begin * c->ld, c->element), c->ld, begin,
                     end - begin, 0, c->columns);
    return LNT_OK;
}

lnt_status lnt_conv_finish(lnt_kernel *k, const lnt_step *s, const lnt_conv_images *images,
                           const lnt_epilogue *program)
{
    LNT_ASSERT(!images->relayout_out || s->scratch_bytes > images->out_at);
    const lnt_operand *out = s->out[0];
    float *y = lnt_out(k, s, 0);
    if (images->relayout_out)
        LNT_TRY(lnt_copy_run(k, &images->out, y, scratch_at(k, s, images->out_at)));
    const int64_t count = lnt_operand_count(out);
    if (!program || count == 0)
        return LNT_OK;
    program_call c = {program,
                      s,
                      y,
                      out->dims[out->order == LNT_ORDER_CHANNELS_LAST ? 1 : out->rank - 1],
                      lnt_operand_pitch(out),
                      images->element};
    return lnt_parallel(k, count / c.columns, 4096 / c.columns + 1, run_program, &c);
}

/* ---- weights ---- */

lnt_packed lnt_conv_record(const lnt_conv *c)
{
    const lnt_source source = c->transposed ? LNT_SOURCE_CONVT : LNT_SOURCE_CONV;
    const uint32_t taps = (uint32_t)lnt_volume(c->w.kernel);
    lnt_packed p =
        lnt_packed_panels(source, (uint32_t)c->groups, taps * (uint32_t)c->channels, (uint32_t)c->features);
    p.taps = taps;
    if (lnt_conv_is_depthwise(c)) { /* a transposed one has the same extents, and taps in ONNX order */
        p.layout = LNT_LAYOUT_DEPTHWISE_F32;
        p.source = LNT_SOURCE_CONV;
    }
    const bool phased = p.source == LNT_SOURCE_CONVT;
    for (unsigned i = 0; i < c->axes; i++) {
        const unsigned a = LNT_WINDOW_AXES - c->axes + i;
        p.kernel[i] = (uint32_t)c->w.kernel[a];
        p.stride[i] = phased ? (uint32_t)c->w.stride[a] : 1;
        p.dilation[i] = phased ? (uint32_t)c->w.dilation[a] : 1;
    }
    p.phases = phased ? (uint32_t)lnt_volume(c->w.stride) : 1;
    return p;
}

bool lnt_conv_of_weights(const lnt_node *node, const lnt_operand *w, bool transposed, lnt_conv *c)
{
    const int64_t groups = lnt_attr_i(node, "group", 1);
    if (w->rank < 3 || w->rank > 2 + LNT_WINDOW_AXES || groups < 1 || w->dims[0] % groups)
        return false;
    const int64_t first = w->dims[0] / groups, second = w->dims[1];
    *c = (lnt_conv){.batch = LNT_DIM_UNKNOWN,
                    .groups = groups,
                    .channels = transposed ? first : second,
                    .features = transposed ? second : first,
                    .axes = w->rank - 2u,
                    .transposed = transposed};
    lnt_error ignored = {.code = LNT_OK};
    const lnt_site site = {.node = node, .err = &ignored};
    bool known = lnt_window_kernel(&site, w->dims + 2, c->axes, &c->w) == LNT_OK;
    for (unsigned a = LNT_WINDOW_AXES - c->axes; known && a < LNT_WINDOW_AXES; a++) {
        known = c->w.kernel[a] > 0;
        c->w.in[a] = c->w.out[a] = LNT_DIM_UNKNOWN;
    }
    return known;
}

bool lnt_conv_pack(const lnt_node *node, const lnt_operand *w, lnt_packed *record)
{
    lnt_conv c;
    if (!lnt_conv_of_weights(node, w, node->op->id == LNT_ID_ConvTranspose, &c))
        return false;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        if (c.w.stride[a] > INT16_MAX || c.w.dilation[a] > INT16_MAX)
            return false;
    *record = lnt_conv_record(&c);
    return true;
}

lnt_status lnt_conv_bind_weights(lnt_site *site, const lnt_conv *c, lnt_conv_weights *w, size_t *scratch)
{
    size_t bytes;
    if (site->in[1]->packed)
        return LNT_OK;
    w->pack = true;
    w->record = lnt_conv_record(c);
    if (!lnt_packed_bytes(&w->record, &bytes))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the weights are too large");
    w->at = *scratch;
    *scratch += lnt_round_up(bytes, LNT_ALIGN);
    return LNT_OK;
}

lnt_status lnt_conv_plain_weights(lnt_site *site, const float **plain)
{
    const lnt_operand *o = site->in[1];
    size_t bytes;
    if (!lnt_shape_bytes(o->dims, o->rank, sizeof **plain, &bytes))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the weights are too large");
    float *floats = lnt_bump_alloc(site->memory, bytes, site->err);
    if (!floats)
        return LNT_E_MEMORY;
    lnt_unpack(o->packed, LNT_FLOAT, o->data, floats);
    *plain = floats;
    return LNT_OK;
}

/* Constant panels, as a depthwise convolution's weights. */
static lnt_status lay_out_depthwise(lnt_site *site, lnt_conv_weights *w)
{
    lnt_packed record = *site->in[1]->packed;
    const float *plain;
    size_t bytes;
    record.layout = LNT_LAYOUT_DEPTHWISE_F32;
    if (!lnt_packed_bytes(&record, &bytes))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the weights are too large");
    LNT_TRY(lnt_conv_plain_weights(site, &plain));
    float *floats = lnt_bump_alloc(site->memory, bytes, site->err);
    if (!floats)
        return LNT_E_MEMORY;
    lnt_pack(&record, LNT_FLOAT, plain, floats);
    w->widened = floats;
    return LNT_OK;
}

lnt_status lnt_conv_bind_floats(lnt_site *site, const lnt_conv *c, lnt_conv_weights *w, size_t *scratch)
{
    const lnt_operand *o = site->in[1];
    const lnt_b_form form = lnt_b_form_of(o);
    size_t bytes;
    LNT_TRY(lnt_conv_bind_weights(site, c, w, scratch));
    if (LNT_HAS_WIDE_GROUPS && c->groups > 1 && lnt_depthwise_widens(c->channels, c->features))
        return lay_out_depthwise(site, w);
    if (!lnt_b_is_half(form) || site->half)
        return LNT_OK;
    const lnt_packed wide = lnt_packed_as(o->packed, LNT_FLOAT);
    float *floats = lnt_packed_bytes(&wide, &bytes) ? lnt_bump_alloc(site->memory, bytes, site->err) : NULL;
    if (!floats)
        return LNT_E_MEMORY;
    site->kernels->gemm->widen[form](o->data, floats, bytes / sizeof *floats);
    w->widened = floats;
    return LNT_OK;
}

lnt_status lnt_conv_packed_weights(lnt_kernel *k, const lnt_step *s, const lnt_conv_weights *w,
                                   const void **b)
{
    LNT_ASSERT(!w->pack || w->at <= s->scratch_bytes); /* without input channels nothing is packed */
    *b = w->widened ? w->widened : lnt_in(k, s, 1);
    if (!w->pack)
        return LNT_OK;
    float *packed = scratch_at(k, s, w->at);
    LNT_TRY(lnt_gemm_pack(k, &w->record, LNT_FLOAT, *b, packed));
    *b = packed;
    return LNT_OK;
}

/* ---- double ---- */

typedef struct reference_call {
    const lnt_conv *c;
    const double *x, *w, *bias;
    double *y;
} reference_call;

bool lnt_conv_source(const lnt_conv *c, unsigned axis, int64_t o, int64_t t, int64_t *i)
{
    const lnt_window *w = &c->w;
    if (!c->transposed) {
        *i = o * w->stride[axis] - w->before[axis] + t * w->dilation[axis];
    } else {
        const int64_t at = o + w->before[axis] - t * w->dilation[axis];
        if (at % w->stride[axis])
            return false;
        *i = at / w->stride[axis];
    }
    return *i >= 0 && *i < w->in[axis];
}

/* The sum for output pixel o of feature f in group g of image n; all plain order. */
static double pixel(const reference_call *r, int64_t n, int64_t g, int64_t f, const int64_t o[3])
{
    const lnt_conv *c = r->c;
    const int64_t *kernel = c->w.kernel, *in = c->w.in;
    const int64_t pixels = lnt_volume(in), taps = lnt_volume(kernel);
    const double *x = r->x + (n * c->groups + g) * c->channels * pixels;
    const double *w =
        r->w +
        (c->transposed ? (g * c->channels * c->features + f) : (g * c->features + f) * c->channels) * taps;
    const int64_t w_step = (c->transposed ? c->features : 1) * taps;
    double sum = 0;
    int64_t i[3];
    for (int64_t t = 0; t < taps; t++) {
        if (!lnt_conv_source(c, 0, o[0], t / (kernel[1] * kernel[2]), &i[0]) ||
            !lnt_conv_source(c, 1, o[1], t / kernel[2] % kernel[1], &i[1]) ||
            !lnt_conv_source(c, 2, o[2], t % kernel[2], &i[2]))
            continue;
        const int64_t at = (i[0] * in[1] + i[1]) * in[2] + i[2];
        for (int64_t ch = 0; ch < c->channels; ch++)
            sum += x[ch * pixels + at] * w[ch * w_step + t];
    }
    return sum;
}

/* A pixel has as many taps as there is memory for weights: the clock is looked at behind each. */
static lnt_status reference_planes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const reference_call *r = arg;
    const lnt_conv *c = r->c;
    const int64_t *out = c->w.out;
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t f = plane % c->features, g = plane / c->features % c->groups;
        const double bias = r->bias ? r->bias[g * c->features + f] : 0;
        double *y = r->y + plane * lnt_volume(out);
        for (int64_t o = 0; o < lnt_volume(out); o++) {
            const int64_t at[3] = {o / (out[1] * out[2]), o / out[2] % out[1], o % out[2]};
            y[o] = bias + pixel(r, plane / c->features / c->groups, g, f, at);
            LNT_TRY(lnt_poll(k));
        }
    }
    return LNT_OK;
}

static lnt_status run_reference(lnt_kernel *k, const lnt_step *s)
{
    const lnt_conv *c = s->params;
    reference_call r = {c, lnt_in(k, s, 0), lnt_in(k, s, 1), s->n_in > 2 ? lnt_in(k, s, 2) : NULL,
                        lnt_out(k, s, 0)};
    return lnt_parallel(k, c->batch * c->groups * c->features, 1, reference_planes, &r);
}

static lnt_status bind_reference(lnt_site *site, const lnt_conv *c)
{
    if (site->node->program || site->in[0]->order != LNT_ORDER_PLAIN ||
        site->out[0]->order != LNT_ORDER_PLAIN)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED,
                             "fused work and channels-last order are for float only");
    lnt_conv *params = lnt_bind_params(site, sizeof *params);
    if (!params)
        return LNT_E_MEMORY;
    *params = *c;
    site->step->run = run_reference;
    return LNT_OK;
}

lnt_status lnt_conv_bind_types(lnt_site *site, const lnt_conv *c, lnt_status (*bind_float)(lnt_site *site))
{
    const lnt_operand *x = site->in[0], *bias = lnt_own_input(site, 2);
    const bool stored_half =
        x->dtype == LNT_FLOAT16 && site->in[1]->dtype == LNT_FLOAT; /* runtime/halves.c */
    const lnt_dtype type = stored_half ? LNT_FLOAT : (lnt_dtype)x->dtype;
    if (type != site->in[1]->dtype || (bias && bias->dtype != type))
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "operands must be of one type");
    if (type != LNT_FLOAT && type != LNT_DOUBLE && type != LNT_FLOAT16 && type != LNT_BFLOAT16)
        return lnt_bind_unsupported_type(site, type);
    if (type != LNT_FLOAT && site->node->program)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "fused work is for float only");
    LNT_TRY(lnt_site_real_type(site) == LNT_FLOAT ? bind_float(site) : bind_reference(site, c));
    return lnt_bind_widened(site, 7, 1);
}
