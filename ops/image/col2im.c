/* col2im.c — Col2Im: overlapping blocks summed back into an image. */
#include "base/lnt_assert.h"
#include "ops/data/data.h"
#include "ops/rows/row.h"
#include "ops/vectorize.h"
#include "ops/widen.h"

#include <string.h>

enum { AXES = LNT_MAX_RANK - 2, TAPS = 8 };

/* Lines of blocks added to lines of an image, n elements each: the image's elements are `step` apart. */
typedef struct span {
    char *to;
    const char *from;
    int64_t n, step, lines, to_line, from_line; /* bytes from line to line */
} span;

typedef void (*add_fn)(const span *s);

typedef struct col2im_params {
    unsigned axes;
    int64_t image[AXES], block[AXES], blocks[AXES]; /* blocks: how many fit along each axis */
    int64_t stride[AXES], dilation[AXES], pad[AXES];
    int64_t pixels, taps, columns; /* of one channel */
    int64_t size;                  /* bytes of an element */
    add_fn add;
    const lnt_row_kernels *row; /* NULL: not add_lines */
} col2im_params;

/* Elements that are apart are added so many in a turn. */
#define PRAGMA(text) _Pragma(#text)
#define ADD(name, T, times)                                                                                  \
    static void add_##name(const span *s)                                                                    \
    {                                                                                                        \
        const int64_t n = s->n, step = s->step;                                                              \
        for (int64_t l = 0; l < s->lines; l++) {                                                             \
            T *to = (T *)(void *)(s->to + l * s->to_line);                                                   \
            const T *from = (const T *)(const void *)(s->from + l * s->from_line);                           \
            if (step == 1)                                                                                   \
                LNT_INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = (T)(to[i] + from[i]);                \
            else                                                                                             \
                PRAGMA(GCC unroll times)                                                                     \
                for (int64_t i = 0; i < n; i++) to[i * step] = (T)(to[i * step] + from[i]);                  \
        }                                                                                                    \
    }
ADD(floats, float, 2)
ADD(doubles, double, 1)
ADD(bytes, uint8_t, 1)
ADD(shorts, uint16_t, 1)
ADD(words, uint32_t, 1)
ADD(longs, uint64_t, 1)

/* Integers wrap, whether they have a sign or not. */
static add_fn add_of(lnt_dtype dtype)
{
    switch (dtype) {
    case LNT_FLOAT: return add_floats;
    case LNT_DOUBLE: return add_doubles;
    case LNT_INT8:
    case LNT_UINT8: return add_bytes;
    case LNT_INT16:
    case LNT_UINT16: return add_shorts;
    case LNT_INT32:
    case LNT_UINT32: return add_words;
    case LNT_INT64:
    case LNT_UINT64: return add_longs;
    default: return NULL;
    }
}

/* Where b is 1, as it most often is, dividing is waited for in vain. */
static int64_t ceil_div(int64_t a, int64_t b)
{
    return a <= 0 ? 0 : b == 1 ? a : (a - 1) / b + 1;
}

/* Next position of an odometer over [low, high); false when all have been. */
static bool step_on(unsigned axes, const int64_t *low, const int64_t *high, int64_t *at)
{
    for (unsigned i = axes; i-- > 0;) {
        if (++at[i] < high[i])
            return true;
        at[i] = low[i];
    }
    return false;
}

/* Adds one tap of all blocks, columns [columns], whose first pixel would be `origin` of the image. */
static void add_tap(const col2im_params *p, const int64_t *origin, const char *columns, char *image)
{
    const unsigned last = p->axes - 1, line = last - 1;
    int64_t low[AXES], high[AXES], at[AXES];
    for (unsigned i = 0; i < p->axes; i++) {
        low[i] = at[i] = ceil_div(-origin[i], p->stride[i]);
        high[i] = ceil_div(p->image[i] - origin[i], p->stride[i]);
        high[i] = high[i] < p->blocks[i] ? high[i] : p->blocks[i];
        if (low[i] >= high[i])
            return;
    }
    span s = {.n = high[last] - low[last],
              .step = p->stride[last],
              .lines = high[line] - low[line],
              .to_line = p->stride[line] * p->image[last] * p->size,
              .from_line = p->blocks[last] * p->size};
    do {
        int64_t column = 0, pixel = 0;
        for (unsigned i = 0; i < p->axes; i++) {
            column = column * p->blocks[i] + at[i];
            pixel = pixel * p->image[i] + origin[i] + at[i] * p->stride[i];
        }
        s.from = columns + column * p->size;
        s.to = image + pixel * p->size;
        p->add(&s);
    } while (step_on(line, low, high, at));
}

/* One channel of floats, of two axes, whose blocks are one pixel apart, at most TAPS of them high: the taps of a column
 * of a block together, which a line of the image adds a line each of. */
static void add_lines(const col2im_params *p, const float *columns, float *image)
{
    static const float one[TAPS] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int64_t apart = p->dilation[0], down = p->block[1] * p->columns - apart * p->blocks[1];
    LNT_ASSERT(p->axes == 2 && p->block[0] <= TAPS);
    for (int64_t tap = 0; tap < p->block[1]; tap++, columns += p->columns) {
        const int64_t origin = tap * p->dilation[1] - p->pad[1], low = origin < 0 ? -origin : 0;
        const int64_t n = lnt_least(p->image[1] - origin, p->blocks[1]) - low;
        for (int64_t y = 0; y < p->image[0] && n > 0; y++) {
            const int64_t last = y + p->pad[0], first = ceil_div(last - p->blocks[0] + 1, apart);
            const int64_t taps = lnt_least(p->block[0], ceil_div(last + 1, apart)) - first;
            const float *from = columns + first * down + last * p->blocks[1] + low;
            if (taps > 0)
                p->row->add_scaled(image + y * p->image[1] + origin + low, from, down, one, taps, n);
        }
    }
}

/* One channel: columns [taps][columns] to the image's pixels. */
static void add_plane(const col2im_params *p, const char *columns, char *image)
{
    const int64_t first[AXES] = {0};
    int64_t tap[AXES] = {0}, origin[AXES];
    memset(image, 0, (size_t)(p->pixels * p->size));
    if (p->row) {
        add_lines(p, (const void *)columns, (void *)image);
        return;
    }
    do {
        for (unsigned i = 0; i < p->axes; i++)
            origin[i] = tap[i] * p->dilation[i] - p->pad[i];
        add_tap(p, origin, columns, image);
        columns += p->columns * p->size;
    } while (step_on(p->axes, first, p->block, tap));
}

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
} col2im_job;

static lnt_status col2im_planes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const col2im_job *job = arg;
    const col2im_params *p = job->p;
    for (int64_t i = begin; i < end; i++) {
        add_plane(p, job->src + i * p->taps * p->columns * p->size, job->dst + i * p->pixels * p->size);
        LNT_TRY(lnt_poll(k));
    }
    return LNT_OK;
}

static lnt_status run_col2im(lnt_kernel *k, const lnt_step *s)
{
    col2im_job job = {s->params, lnt_in(k, s, 0), lnt_out(k, s, 0)};
    const lnt_operand *out = s->out[0];
    LNT_ASSERT(out->rank >= 3 && job.p->add);
    return lnt_parallel(k, out->dims[0] * out->dims[1], lnt_grain(job.p->columns * job.p->taps * job.p->size),
                        col2im_planes, &job);
}

/* Images of one axis are one line. */
static void make_lines(col2im_params *p)
{
    int64_t *const extents[] = {p->image, p->block, p->blocks, p->stride, p->dilation, p->pad};
    for (unsigned i = 0; i < sizeof extents / sizeof *extents; i++) {
        extents[i][1] = extents[i][0];
        extents[i][0] = 1;
    }
    p->pad[0] = 0;
    p->axes = 2;
}

lnt_status lnt_bind_col2im(lnt_site *site)
{
    const lnt_dtype dtype = (lnt_dtype)site->in[0]->dtype;
    const bool widened = dtype == LNT_FLOAT16 || dtype == LNT_BFLOAT16;
    const lnt_dtype summed = widened ? LNT_FLOAT : dtype;
    col2im_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(read_geometry(site, p));
    if (p->axes == 1)
        make_lines(p);
    p->add = add_of(summed);
    if (!p->add)
        return lnt_bind_unsupported_type(site, dtype);
    p->size = (int64_t)lnt_dtype_size(summed);
    if (summed == LNT_FLOAT && p->axes == 2 && p->stride[0] == 1 && p->stride[1] == 1 && p->block[0] <= TAPS)
        p->row = site->kernels->row;
    site->step->run = run_col2im;
    return widened ? lnt_bind_widened(site, 1, 1) : LNT_OK;
}
