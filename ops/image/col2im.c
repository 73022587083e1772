/* col2im.c — Col2Im: overlapping blocks summed back into an image. */
#include "base/lnt_assert.h"
#include "ops/data/data.h"
#include "ops/number.h"

enum { AXES = LNT_MAX_RANK - 2 };

typedef struct col2im_params {
    unsigned axes;
    int64_t image[AXES], block[AXES], blocks[AXES]; /* blocks: how many fit along each axis */
    int64_t stride[AXES], dilation[AXES], pad[AXES];
    int64_t pixels, taps, columns; /* of one channel */
    void (*plane)(const struct col2im_params *p, const void *src, void *dst);
} col2im_params;

/* Column of the block whose tap lies on the pixel, or -1. */
static int64_t column_of(const col2im_params *p, const int64_t *pixel, const int64_t *tap)
{
    int64_t column = 0;
    for (unsigned i = 0; i < p->axes; i++) {
        const int64_t at = pixel[i] + p->pad[i] - tap[i] * p->dilation[i];
        if (at < 0 || at % p->stride[i] != 0 || at / p->stride[i] >= p->blocks[i])
            return -1;
        column = column * p->blocks[i] + at / p->stride[i];
    }
    return column;
}

/* Next position of an odometer over n. */
static void step_on(unsigned axes, const int64_t *n, int64_t *at)
{
    for (unsigned i = axes; i-- > 0;) {
        if (++at[i] < n[i])
            return;
        at[i] = 0;
    }
}

#define X(DT, T, C, load, store, comparable)                                                                 \
    static void plane_##DT(const col2im_params *p, const void *src, void *dst)                               \
    {                                                                                                        \
        const T *x = src;                                                                                    \
        int64_t pixel[AXES] = {0};                                                                           \
        for (int64_t i = 0; i < p->pixels; i++, step_on(p->axes, p->image, pixel)) {                         \
            int64_t tap[AXES] = {0};                                                                         \
            C sum = 0;                                                                                       \
            for (int64_t t = 0; t < p->taps; t++, step_on(p->axes, p->block, tap)) {                         \
                const int64_t column = column_of(p, pixel, tap);                                             \
                if (column >= 0)                                                                             \
                    sum += load(x[t * p->columns + column]);                                                 \
            }                                                                                                \
            ((T *)dst)[i] = store(sum);                                                                      \
        }                                                                                                    \
    }
LNT_NUMBER_LIST(X)
#undef X

/* Image, block and attributes; LNT_UNKNOWN if the first two are not known. */
static lnt_status read_geometry(lnt_site *site, col2im_params *p)
{
    int64_t pads[2 * AXES];
    unsigned n_image = AXES, n_block = AXES;
    LNT_TRY(lnt_value_ints(site, 1, p->image, &n_image, NULL));
    LNT_TRY(lnt_value_ints(site, 2, p->block, &n_block, NULL));
    if (n_image != n_block || n_image == 0)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "image_shape and block_shape must name the same axes");
    p->axes = n_image;
    LNT_TRY(lnt_attr_ints(site, "strides", p->stride, p->axes, 1));
    LNT_TRY(lnt_attr_ints(site, "dilations", p->dilation, p->axes, 1));
    LNT_TRY(lnt_attr_ints(site, "pads", pads, 2 * p->axes, 0));
    p->pixels = p->taps = p->columns = 1;
    for (unsigned i = 0; i < p->axes; i++) {
        const int64_t most = INT64_MAX / 4, after = pads[i + p->axes];
        if (p->image[i] < 0 || p->block[i] < 1 || p->stride[i] < 1 || p->dilation[i] < 1 || pads[i] < 0 ||
            after < 0)
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "extents, strides and dilations must be positive");
        const int64_t reach = lnt_dim_mul(p->dilation[i], p->block[i] - 1);
        if (p->image[i] > most || pads[i] > most || after > most || reach > most)
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "extents along axis %u are too large", i);
        const int64_t room = p->image[i] + pads[i] + after - reach - 1;
        if (reach < 0 || room < 0)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the block does not fit into the image along axis %u", i);
        p->pad[i] = pads[i];
        p->blocks[i] = room / p->stride[i] + 1;
        p->pixels = lnt_dim_mul(p->pixels, p->image[i]);
        p->taps = lnt_dim_mul(p->taps, p->block[i]);
        p->columns = lnt_dim_mul(p->columns, p->blocks[i]);
    }
    return LNT_OK;
}

lnt_status lnt_shape_col2im(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    col2im_params p = {0};
    if (in->rank != 3)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the input must have rank 3, has %u", in->rank);
    const lnt_status status = read_geometry(site, &p);
    if (status == LNT_UNKNOWN) {
        unsigned axes;
        LNT_TRY(lnt_value_length(site, 1, &axes));
        return axes <= AXES ? lnt_shape_of_rank(site, axes + 2) : LNT_UNKNOWN;
    }
    LNT_TRY(status);
    if (p.taps < 1 || (in->dims[1] >= 0 && in->dims[1] % p.taps != 0) ||
        (in->dims[2] >= 0 && in->dims[2] != p.columns))
        return LNT_SITE_FAIL(
            site, LNT_E_SHAPE, "%lld x %lld columns do not hold blocks of %lld at %lld places",
            (long long)in->dims[1], (long long)in->dims[2], (long long)p.taps, (long long)p.columns);
    int64_t dims[LNT_MAX_RANK] = {in->dims[0], in->dims[1] < 0 ? LNT_DIM_UNKNOWN : in->dims[1] / p.taps};
    for (unsigned i = 0; i < p.axes; i++)
        dims[i + 2] = p.image[i];
    lnt_set_dims(site, 0, p.axes + 2, dims);
    return LNT_OK;
}

typedef struct col2im_job {
    const col2im_params *p;
    const char *src;
    char *dst;
    int64_t size;
} col2im_job;

static lnt_status col2im_planes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const col2im_job *job = arg;
    const col2im_params *p = job->p;
    for (int64_t i = begin; i < end; i++)
        p->plane(p, job->src + i * p->taps * p->columns * job->size, job->dst + i * p->pixels * job->size);
    return LNT_OK;
}

static lnt_status run_col2im(lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->out[0]->rank >= 3 && s->in[0]->dtype == s->out[0]->dtype);
    col2im_job job = {s->params, lnt_in(k, s, 0), lnt_out(k, s, 0), (int64_t)lnt_element_size(s->in[0])};
    const lnt_operand *out = s->out[0];
    return lnt_parallel(k, out->dims[0] * out->dims[1], lnt_grain(job.p->pixels * job.p->taps * job.size),
                        col2im_planes, &job);
}

lnt_status lnt_bind_col2im(lnt_site *site)
{
    col2im_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(read_geometry(site, p));
    switch (site->in[0]->dtype) {
#define X(DT, T, C, load, store, comparable)                                                                 \
    case LNT_##DT: p->plane = plane_##DT; break;
        LNT_NUMBER_LIST(X)
#undef X
    default: return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[0]->dtype);
    }
    site->step->run = run_col2im;
    return LNT_OK;
}
