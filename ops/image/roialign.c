/* roialign.c — RoiAlign and DeformConv: images sampled between their elements. */
#include "ops/op.h"

#include "base/checked.h"
#include "ops/rows/row.h"
#include "ops/image/taps.h"
#include "ops/widen.h"
#include "ops/window.h"

#include <math.h>
#include <string.h>

enum {
    CHANNELS = 256,      /* of one piece of a bin, that deadlines find its end */
    SAMPLES = 64 * 1024, /* worth a thread's while */
    MAX_RATIO = 256      /* a bin takes its square of samples */
};

typedef struct roialign {
    const lnt_row_kernels *row;
    int64_t images, channels, height, width, regions, out_height, out_width;
    int64_t blocks; /* of CHANNELS */
    int64_t ratio;  /* samples along each axis of a bin; 0: as many as it has elements */
    double scale;
    bool maximum, half_pixel, last; /* channels */
} roialign;

typedef struct roialign_job {
    const roialign *p;
    const void *x, *rois;
    const int64_t *batch;
    void *y;
} roialign_job;

typedef struct deform {
    const lnt_row_kernels *row;
    lnt_window w;
    int64_t batch, channels, filters, groups, offset_groups, taps;
    size_t thread_bytes; /* scratch: the values of one output position */
} deform;

typedef struct deform_job {
    const deform *p;
    const void *x, *weights, *offset, *bias, *mask;
    void *y, *scratch;
} deform_job;

/* Of n points `step` apart, the first half a step behind start: those not surely outside [-1, extent]. None
 * where start or step is infinite: no point is a number. */
static void points_near(double start, double step, int64_t n, int64_t extent, int64_t *first, int64_t *end)
{
    enum { FEW = 256 };
    const double low = floor((-1 - start) / step - 1.5), high = ceil(((double)extent - start) / step + 1.5);
    *first = 0;
    *end = n;
    if (n <= FEW)
        return;
    *first = low < (double)n ? (low > 0 ? (int64_t)low : 0) : n;
    *end = high > (double)*first ? (high < (double)n ? (int64_t)high : n) : *first;
}

#include "ops/real_float.h"
#include "ops/image/roialign.inc.h"
#include "ops/real_double.h"
#include "ops/image/roialign.inc.h"

/* ---- RoiAlign ---- */

/* Where as many as fit: of a region as large as the image. */
static int64_t samples_of_bin(const roialign *p)
{
    return p->ratio > 0 ? p->ratio * p->ratio : 1 + p->height * p->width / p->out_height / p->out_width;
}

static lnt_status run_roialign(lnt_kernel *k, const lnt_step *s)
{
    const roialign *p = s->params;
    roialign_job job = {p, lnt_in(k, s, 0), lnt_in(k, s, 1), lnt_in(k, s, 2), lnt_out(k, s, 0)};
    for (int64_t n = 0; n < p->regions; n++)
        LNT_REQUIRE(job.batch[n] >= 0 && job.batch[n] < p->images, k->err, LNT_E_VALUE,
                    "region %lld is of image %lld, there are %lld", (long long)n, (long long)job.batch[n],
                    (long long)p->images);
    const int64_t channels = p->channels < CHANNELS ? p->channels : CHANNELS, each = samples_of_bin(p);
    return lnt_parallel(k, p->blocks * p->regions * p->out_height * p->out_width,
                        each < SAMPLES ? 1 + SAMPLES / (each * (channels + 1)) : 1,
                        s->in[0]->dtype == LNT_DOUBLE ? bins_double : bins_float, &job);
}

lnt_status lnt_shape_roialign(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *rois = site->in[1];
    LNT_REQUIRE(x->rank == 4 && rois->rank == 2, site->err, LNT_E_SHAPE,
                "the input must have rank 4, rois rank 2");
    lnt_set_dims(site, 0, 4,
                 (const int64_t[]){rois->dims[0], x->dims[1], lnt_attr_i(site->node, "output_height", 1),
                                   lnt_attr_i(site->node, "output_width", 1)});
    return LNT_OK;
}

lnt_status lnt_bind_roialign(lnt_site *site)
{
    const lnt_node *node = site->node;
    const lnt_operand *x = site->in[0], *rois = site->in[1], *batch = site->in[2], *y = site->out[0];
    roialign *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    *p = (roialign){.row = site->kernels->row,
                    .images = x->dims[0],
                    .channels = x->dims[1],
                    .blocks = x->dims[1] / CHANNELS + (x->dims[1] % CHANNELS > 0),
                    .height = x->dims[2],
                    .width = x->dims[3],
                    .regions = rois->dims[0],
                    .out_height = y->dims[2],
                    .out_width = y->dims[3],
                    .ratio = lnt_attr_i(node, "sampling_ratio", 0),
                    .scale = (double)lnt_attr_f(node, "spatial_scale", 1),
                    .maximum = strcmp(lnt_attr_s(node, "mode", "avg"), "max") == 0,
                    .half_pixel = strcmp(lnt_attr_s(node, "coordinate_transformation_mode", "half_pixel"),
                                         "half_pixel") == 0,
                    .last = x->order == LNT_ORDER_CHANNELS_LAST};
    LNT_REQUIRE(rois->dims[1] == 4 && batch->dtype == LNT_INT64 && lnt_operand_count(batch) == p->regions,
                site->err, LNT_E_SHAPE, "rois must be [n, 4] and batch_indices [n] of int64");
    LNT_REQUIRE(p->ratio >= 0 && p->ratio <= MAX_RATIO, site->err, LNT_E_ARGUMENT,
                "sampling_ratio is %lld, and must be 0 (as many as fit) to %d", (long long)p->ratio,
                MAX_RATIO);
    LNT_REQUIRE(p->out_height > 0 && p->out_width > 0 && p->height * p->width > 0, site->err, LNT_E_SHAPE,
                "the image and output_height by output_width must not be empty");
    site->step->run = run_roialign;
    return lnt_bind_widened(site, 3, 1);
}

/* ---- DeformConv ---- */

enum { IMAGE, WEIGHTS, OFFSET, BIAS, MASK }; /* inputs */

static lnt_status run_deform(lnt_kernel *k, const lnt_step *s)
{
    const deform *p = s->params;
    deform_job job = {p,
                      lnt_in(k, s, IMAGE),
                      lnt_in(k, s, WEIGHTS),
                      lnt_in(k, s, OFFSET),
                      lnt_in(k, s, BIAS),
                      lnt_in(k, s, MASK),
                      lnt_out(k, s, 0),
                      lnt_scratch(k, s)};
    return lnt_parallel(k, p->batch * p->w.out[1] * p->w.out[2], 4,
                        s->in[0]->dtype == LNT_DOUBLE ? deform_points_double : deform_points_float, &job);
}

lnt_status lnt_shape_deform(lnt_site *site)
{
    const lnt_operand *x = site->in[IMAGE], *weights = site->in[WEIGHTS];
    lnt_window w;
    LNT_REQUIRE(x->rank == 4 && weights->rank == 4, site->err, LNT_E_UNSUPPORTED,
                "DeformConv is implemented for two spatial axes");
    LNT_TRY(lnt_window_with(site, weights->dims + 2, &w));
    LNT_TRY(lnt_window_check_groups(site, weights, false));
    lnt_set_dims(site, 0, 4, (const int64_t[]){x->dims[0], weights->dims[0], w.out[1], w.out[2]});
    return LNT_OK;
}

/* Is o [batch, offset_groups * taps * each, output height, output width]? */
static bool goes_with_taps(const deform *p, const lnt_operand *o, int64_t each)
{
    return o->rank == 4 && o->dims[0] == p->batch && o->dims[1] % p->offset_groups == 0 &&
           o->dims[1] / p->offset_groups == p->taps * each && o->dims[2] == p->w.out[1] &&
           o->dims[3] == p->w.out[2];
}

lnt_status lnt_bind_deform(lnt_site *site)
{
    const lnt_operand *x = site->in[IMAGE], *weights = site->in[WEIGHTS], *offset = site->in[OFFSET];
    const lnt_operand *bias = lnt_input(site, BIAS), *mask = lnt_input(site, MASK);
    deform *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_window_with(site, weights->dims + 2, &p->w));
    p->row = site->kernels->row;
    p->batch = x->dims[0];
    p->channels = x->dims[1];
    p->filters = weights->dims[0];
    p->groups = lnt_attr_i(site->node, "group", 1);
    p->offset_groups = lnt_attr_i(site->node, "offset_group", 1);
    p->taps = p->w.kernel[1] * p->w.kernel[2];
    LNT_TRY(lnt_window_check_groups(site, weights, false));
    LNT_REQUIRE(p->offset_groups > 0 && p->channels % p->offset_groups == 0, site->err, LNT_E_SHAPE,
                "%lld channels do not fit attribute offset_group, %lld", (long long)p->channels,
                (long long)p->offset_groups);
    LNT_REQUIRE(goes_with_taps(p, offset, 2) && (!mask || goes_with_taps(p, mask, 1)) &&
                    (!bias || lnt_operand_count(bias) == p->filters),
                site->err, LNT_E_SHAPE, "offset, mask or bias do not fit the output");
    LNT_REQUIRE(p->w.in[1] * p->w.in[2] > 0, site->err, LNT_E_SHAPE, "the image is empty");
    size_t bytes;
    LNT_REQUIRE(lnt_mul_size((size_t)p->channels, (size_t)p->taps, &bytes) &&
                    lnt_mul_size(bytes, sizeof(double), &bytes) && bytes <= PTRDIFF_MAX / 2 / site->threads,
                site->err, LNT_E_LIMIT, "the values of one output position overflow the address space");
    p->thread_bytes = lnt_round_up(bytes, LNT_ALIGN);
    lnt_bind_scratch(site, p->thread_bytes * site->threads);
    site->step->run = run_deform;
    return lnt_bind_widened(site, UINT32_MAX, 1);
}
