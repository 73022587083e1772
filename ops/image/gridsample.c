/* gridsample.c — GridSample, and AffineGrid that makes its grids. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/rows/row.h"
#include "ops/image/taps.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum { LINEAR, NEAREST, CUBIC };
enum { ZEROS, BORDER, REFLECTION };
enum { MAX_AXES = 3 };
enum { SLICE_TAPS = 1 << 20 }; /* of all channels: what a thread does at least */

typedef struct gridsample {
    unsigned kind, padding, axes, taps, all_taps; /* taps along each axis, and of a point */
    int64_t block;                                /* points whose taps are known at a time */
    bool align_corners;
    int64_t extent[MAX_AXES];              /* of the input; of the grid for AffineGrid */
    int64_t batch, channels, size, points; /* size: elements of a plane; points: outputs of a plane */
    double *coordinate[MAX_AXES];          /* of AffineGrid: [extent], -1 to 1 */
} gridsample;

typedef struct gridsample_job {
    const gridsample *p;
    const void *x, *grid;
    void *y;
} gridsample_job;

typedef double pair __attribute__((vector_size(16)));

#include "ops/real_float.h"
#include "ops/image/gridsample.inc.h"
#include "ops/real_double.h"
#include "ops/image/gridsample.inc.h"

static lnt_status run_gridsample(lnt_kernel *k, const lnt_step *s)
{
    const gridsample *p = s->params;
    LNT_ASSERT(p->all_taps > 0 && p->block > 0);
    gridsample_job job = {p, lnt_in(k, s, 0), lnt_in(k, s, 1), lnt_out(k, s, 0)};
    const int64_t most = 1 + SLICE_TAPS / p->all_taps / (p->channels + 1);
    return lnt_parallel(k, p->batch * p->points, most < p->block ? most : p->block,
                        s->in[0]->dtype == LNT_DOUBLE ? sample_double : sample_float, &job);
}

static lnt_status run_affine_grid(lnt_kernel *k, const lnt_step *s)
{
    const gridsample *p = s->params;
    gridsample_job job = {p, lnt_in(k, s, 0), NULL, lnt_out(k, s, 0)};
    const int64_t width = p->extent[p->axes - 1];
    return lnt_parallel(k, p->points ? p->batch * (p->points / width) : 0, 1 + 4096 / (width + 1),
                        s->in[0]->dtype == LNT_DOUBLE ? affine_double : affine_float, &job);
}

lnt_status lnt_shape_gridsample(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *grid = site->in[1];
    int64_t dims[LNT_MAX_RANK] = {x->dims[0], x->dims[1]};
    LNT_REQUIRE(x->rank == grid->rank && x->rank >= 3 && x->rank <= 2 + MAX_AXES, site->err, LNT_E_SHAPE,
                "input and grid must have the same rank, from 3 to 5");
    for (unsigned d = 2; d < x->rank; d++)
        dims[d] = grid->dims[d - 1];
    lnt_set_dims(site, 0, x->rank, dims);
    return LNT_OK;
}

lnt_status lnt_bind_gridsample(lnt_site *site)
{
    /* The long names are those of opset 16. */
    static const char *const modes[] = {"linear", "nearest", "cubic", "bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const lnt_operand *x = site->in[0], *grid = site->in[1];
    gridsample *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    const int mode = lnt_attr_choice(site->node, "mode", modes, 6);
    const int padding = lnt_attr_choice(site->node, "padding_mode", paddings, 3);
    LNT_REQUIRE(mode >= 0 && padding >= 0, site->err, LNT_E_ARGUMENT, "unknown mode or padding_mode");
    p->kind = (unsigned)mode % 3;
    p->padding = (unsigned)padding;
    p->axes = x->rank - 2u;
    p->taps = p->kind == NEAREST ? 1 : p->kind == LINEAR ? 2 : 4;
    p->align_corners = lnt_attr_i(site->node, "align_corners", 0) != 0;
    p->batch = x->dims[0];
    p->channels = x->dims[1];
    p->size = p->points = p->all_taps = 1;
    for (unsigned d = 0; d < p->axes; d++) {
        p->all_taps *= p->taps;
        p->extent[d] = x->dims[2 + d];
        p->size *= x->dims[2 + d];
        p->points *= grid->dims[1 + d];
    }
    p->block = LNT_TAPS / p->all_taps < LNT_TAPS_POINTS ? LNT_TAPS / p->all_taps : LNT_TAPS_POINTS;
    LNT_REQUIRE(grid->dims[0] == p->batch && grid->dims[grid->rank - 1] == p->axes, site->err, LNT_E_SHAPE,
                "the grid must be [%lld, ..., %u]", (long long)p->batch, p->axes);
    LNT_REQUIRE(p->size > 0 || p->points == 0, site->err, LNT_E_SHAPE, "there is nothing to sample");
    site->step->run = run_gridsample;
    return lnt_bind_widened(site, 3, 1);
}

/* Extents [N, C, D, H, W] or [N, C, H, W] that the grid is for. */
static lnt_status read_size(const lnt_site *site, int64_t size[2 + MAX_AXES], unsigned *n)
{
    *n = 2 + MAX_AXES;
    LNT_TRY(lnt_value_ints(site, 1, size, n, NULL));
    LNT_REQUIRE(*n == 4 || *n == 5, site->err, LNT_E_SHAPE, "size must hold 4 or 5 numbers, has %u", *n);
    for (unsigned i = 0; i < *n; i++)
        LNT_REQUIRE(size[i] >= 0, site->err, LNT_E_VALUE, "size holds %lld", (long long)size[i]);
    return LNT_OK;
}

lnt_status lnt_shape_affine_grid(lnt_site *site)
{
    int64_t size[2 + MAX_AXES], dims[LNT_MAX_RANK];
    unsigned n;
    LNT_TRY(read_size(site, size, &n));
    dims[0] = size[0];
    for (unsigned d = 2; d < n; d++)
        dims[d - 1] = size[d];
    dims[n - 1] = n - 2;
    lnt_set_dims(site, 0, n, dims);
    return LNT_OK;
}

/* Where n pixels along an axis lie: -1 to 1 from center to center of the corners', or from edge to edge. */
static lnt_status bind_coordinates(const lnt_site *site, gridsample *p, unsigned axis)
{
    const int64_t pixels = p->extent[axis];
    const double n = (double)pixels, span = p->align_corners ? n - 1 : n,
                 first = p->align_corners ? -1 : 1 / n - 1;
    size_t bytes;
    double *at = lnt_mul_size((size_t)pixels, sizeof *at, &bytes)
                     ? p->coordinate[axis] = lnt_bump_alloc(site->memory, bytes, site->err)
                     : NULL;
    if (!at)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < pixels; i++)
        at[i] = span > 0 ? first + 2 * (double)i / span : -1;
    return LNT_OK;
}

lnt_status lnt_bind_affine_grid(lnt_site *site)
{
    const lnt_operand *theta = site->in[0], *y = site->out[0];
    gridsample *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->axes = y->rank - 2u;
    p->batch = y->dims[0];
    p->points = 1;
    for (unsigned d = 0; d < p->axes; d++) {
        p->extent[d] = y->dims[1 + d];
        p->points *= y->dims[1 + d];
    }
    p->align_corners = lnt_attr_i(site->node, "align_corners", 0) != 0;
    for (unsigned d = 0; d < p->axes && p->points > 0; d++)
        LNT_TRY(bind_coordinates(site, p, d));
    LNT_REQUIRE(theta->rank == 3 && theta->dims[0] == p->batch && theta->dims[1] == p->axes &&
                    theta->dims[2] == p->axes + 1,
                site->err, LNT_E_SHAPE, "theta must be [%lld, %u, %u]", (long long)p->batch, p->axes,
                p->axes + 1);
    site->step->run = run_affine_grid;
    return lnt_bind_widened(site, 1, 1);
}
