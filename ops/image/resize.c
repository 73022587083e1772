/* resize.c — Resize and Upsample, over any axes, in plain and channels-last order.
 *
 * Interpolation is separable: for each axis there is a table of the inputs each output depends on and their
 * weights, made at bind. A row of outputs is made by mixing the rows it depends on along all outer axes and
 * interpolating that row; where rows become more, each row of inputs is interpolated first and kept, for it
 * serves several rows of outputs. Short rows, of many planes, are sums over taps instead: a row costs the same in calls
 * however few elements it has. Nearest moves elements of any type by their size. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "formats/packed.h"
#include "ops/copy.h"
#include "ops/element.h"
#include "ops/image/taps.h"
#include "ops/rows/row.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum {
    SHORT_ROW = 384,        /* bytes */
    A_VECTOR = 8,           /* floats */
    GROUP = 64,             /* planes that a list of taps is made for */
    FEW_PLANES = 8,         /* not worth a list */
    GRAIN = 1 << 15,        /* products that are worth a slice of work */
    MOST_ROWS = 16,         /* of inputs that a row of outputs may be made of at once */
    FLOAT_INDICES = 1 << 24 /* floats hold them all */
};

/* One axis, in memory order: output i is the sum of weight[i * taps + t] * input[index[i * taps + t]]. */
typedef struct axis_map {
    int64_t in, out, stride; /* stride: elements of the input between neighbors */
    unsigned taps;
    int32_t *index; /* -1: outside the region of interest */
    void *weight;   /* of the type computed in */
} axis_map;

typedef struct resize {
    const lnt_row_kernels *row;
    int64_t planes; /* of the axes before the first that changes */
    int64_t plane;  /* elements of one in the input */
    int64_t lines;  /* rows of outputs of one */
    unsigned n_outer;
    axis_map outer[LNT_MAX_RANK]; /* of a plane; `along` behind them */
    axis_map along;    /* the innermost axis that changes */
    int64_t unit;      /* elements behind it, which do not change */
    int64_t rows;      /* of outputs */
    bool crops;        /* indices may be -1 */
    bool doubles;      /* nearest: each element of a row is taken twice, */
    lnt_turn_fn turn;  /* by this where it stores more at once: the row is turned beside itself; or NULL */
    bool doubles_rows; /* and each row: short ones would be copied while they are being stored */
    bool copies;       /* nearest: elements at a constant step along each axis, which are copied */
    lnt_copy copy;
    double extrapolation;
    uint8_t extrapolated[8]; /* as an element, for nearest */
    size_t size;             /* bytes of an element */
    unsigned slots;      /* for interpolated rows that are kept, as many as an output row depends on; or 0 */
    unsigned taps;       /* of an output, if outputs are sums over taps; or 0 */
    int64_t block;       /* rows of outputs whose taps are listed at a time */
    size_t thread_bytes; /* scratch: where the kept rows are in the input, the rows; or a row of inputs */
} resize;

typedef struct resize_job {
    const resize *p;
    const void *x;
    void *y, *scratch;
} resize_job;

/* In the order of read_method's lists; what is unknown counts as the first. */
typedef enum transform {
    HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_CROP_AND_RESIZE,
    PYTORCH_HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    TF_HALF_PIXEL_FOR_NN /* of opsets 11 to 18 */
} transform;

#include "ops/real_float.h"
#include "ops/image/resize.inc.h"
#include "ops/real_double.h"
#include "ops/image/resize.inc.h"

/* ---- short rows ---- */

/* The taps of a row of outputs of a plane. */
static void row_taps(const resize *p, int64_t row, lnt_tap_float *tap)
{
    const axis_map *along = &p->along;
    const float *weight = along->weight;
    lnt_tap_float outer[MOST_ROWS] = {{0, 1}};
    unsigned n = 1;
    for (unsigned d = p->n_outer; d-- > 0; row /= p->outer[d].out) {
        const axis_map *a = &p->outer[d];
        const int64_t entry = row % a->out * a->taps;
        /* The first last: the others are made of those there are. */
        for (unsigned t = a->taps * n; t-- > 0;) {
            const lnt_tap_float *of = &outer[t % n];
            outer[t].at = of->at + a->index[entry + t / n] * a->stride;
            outer[t].weight = of->weight * ((const float *)a->weight)[entry + t / n];
        }
        n *= a->taps;
    }
    for (int64_t e = 0; e < along->out * along->taps; e++)
        for (unsigned t = 0; t < n; t++, tap++) {
            tap->at = outer[t].at + along->index[e];
            tap->weight = outer[t].weight * weight[e];
        }
}

/* Rows of the planes of a group, side by side; one group's behind the other's. */
static lnt_status sum_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const resize_job *j = arg;
    const resize *p = j->p;
    const int64_t out = p->along.out;
    int64_t rows;
    lnt_taps_float taps;
    taps.onto = false;
    (void)k, (void)thread;
    for (int64_t i = 0; i < LNT_TAPS_POINTS; i++)
        taps.count[i] = p->taps;
    for (int64_t o = begin; o < end; o += rows) {
        const int64_t first = o / p->lines * GROUP, line = o % p->lines;
        rows = lnt_least(lnt_least(end - o, p->lines - line), p->block);
        taps.points = rows * out;
        for (int64_t r = 0; r < rows; r++)
            row_taps(p, line + r, taps.tap + r * out * p->taps);
        lnt_sum_taps_float(&taps, (const float *)j->x + first * p->plane, p->plane,
                           (float *)j->y + (first * p->lines + line) * out, p->lines * out,
                           lnt_least(p->planes - first, GROUP));
    }
    return LNT_OK;
}

/* ---- nearest ---- */

#define PICK(type)                                                                                           \
    if (!LNT_TRIMMED && !p->crops) {                                                                         \
        _Pragma("GCC unroll 4") for (int64_t o = 0; o < n; o++)((type *)y)[o] = ((const type *)x)[index[o]]; \
        return;                                                                                              \
    }                                                                                                        \
    for (int64_t o = 0; o < n; o++)                                                                          \
        if (index[o] >= 0)                                                                                   \
            ((type *)y)[o] = ((const type *)x)[index[o]];                                                    \
        else                                                                                                 \
            memcpy(y + o * (int64_t)sizeof(type), p->extrapolated, sizeof(type));

static void pick_row(const resize *p, const char *x, char *y)
{
    const int32_t *index = p->along.index;
    const int64_t n = p->along.out;
    const size_t bytes = p->size * (size_t)p->unit;
    if (!LNT_TRIMMED && p->turn) {
        p->turn(y, 2 * sizeof(float), x, 0, p->along.in, 2);
        return;
    }
    if (p->doubles) {
        lnt_repeat_twice(y, 0, x, p->along.in, p->size);
        return;
    }
    switch (p->unit == 1 ? p->size : 0) {
    case 1: PICK(uint8_t) return;
    case 2: PICK(uint16_t) return;
    case 4: PICK(uint32_t) return;
    case 8: PICK(uint64_t) return;
    default: break;
    }
    for (int64_t o = 0; o < n; o++, y += bytes) {
        if (index[o] >= 0)
            memcpy(y, x + (size_t)index[o] * bytes, bytes);
        else
            lnt_fill(y, p->unit, p->extrapolated, p->size);
    }
}

/* Offset in elements of the input rows from row o on, of all outer axes but the last; -1 if that is outside. */
static int64_t source_rows(const resize *p, int64_t o)
{
    int64_t offset = 0;
    for (unsigned d = p->n_outer; d-- > 0; o /= p->outer[d].out) {
        const int32_t at = d + 1 < p->n_outer ? p->outer[d].index[o % p->outer[d].out] : 0;
        if (at < 0)
            return -1;
        offset += at * p->outer[d].stride;
    }
    return offset + o * p->plane;
}

/* An image of rows twice as long, and twice as many. */
static void double_rows(const resize *p, const char *x, char *y)
{
    const axis_map *rows = &p->outer[p->n_outer - 1];
    const int64_t size = (int64_t)p->size, n = p->along.in;
    for (int64_t r = 0; r < rows->in; r++)
        lnt_repeat_twice(y + r * 4 * n * size, 2 * n * size, x + r * rows->stride * size, n, p->size);
}

static lnt_status pick_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    static const int32_t only[] = {0};
    const resize_job *j = arg;
    const resize *p = j->p;
    const axis_map one = {.out = 1}, *last = p->n_outer ? &p->outer[p->n_outer - 1] : &one;
    const int32_t *index = p->n_outer ? last->index : only;
    const int64_t bytes = p->along.out * p->unit * (int64_t)p->size;
    int64_t before = -1, outer = -1, row = begin % last->out - 1;
    char *y = (char *)j->y + begin * bytes;
    (void)k, (void)thread;
    for (int64_t o = begin; o < end; o++, y += bytes) {
        row = row + 1 < last->out ? row + 1 : 0;
        if (o == begin || row == 0)
            outer = source_rows(p, o);
        if (p->doubles_rows && row == 0 && outer >= 0 && end - o >= last->out) {
            double_rows(p, (const char *)j->x + outer * (int64_t)p->size, y);
            before = -1;
            row = last->out - 1;
            o += row;
            y += row * bytes;
            continue;
        }
        const int64_t from = outer < 0 || index[row] < 0 ? -1 : outer + index[row] * last->stride;
        if (from < 0)
            lnt_fill(y, bytes / (int64_t)p->size, p->extrapolated, p->size);
        else if (from == before) /* upsampling repeats rows */
            memcpy(y, y - bytes, (size_t)bytes);
        else
            pick_row(p, (const char *)j->x + from * (int64_t)p->size, y);
        before = from;
    }
    return LNT_OK;
}

static lnt_status run_nearest(lnt_kernel *k, const lnt_step *s)
{
    const resize *p = s->params;
    resize_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0), NULL};
    if (p->copies)
        return lnt_copy_run(k, &p->copy, job.y, job.x);
    return lnt_parallel(k, p->rows, 1 + 16384 / (p->along.out * p->unit + 1), pick_rows, &job);
}

static lnt_status run_interpolate(lnt_kernel *k, const lnt_step *s)
{
    const resize *p = s->params;
    LNT_ASSERT(s->in[0]->dtype == LNT_DOUBLE || s->in[0]->dtype == LNT_FLOAT);
    resize_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0), lnt_scratch(k, s)};
    if (p->along.out * p->unit == 0) /* rows without elements: nor is there scratch memory */
        return LNT_OK;
    if (p->taps)
        return lnt_parallel(k, (p->planes + GROUP - 1) / GROUP * p->lines,
                            1 + GRAIN / (p->taps * p->along.out * lnt_least(p->planes, GROUP)), sum_rows,
                            &job);
    return lnt_parallel(k, p->rows, 1 + 8192 / (p->along.out * p->unit + 1),
                        s->in[0]->dtype == LNT_DOUBLE ? interpolate_double : interpolate_float, &job);
}

/* ---- shapes ---- */

/* What is asked for, per logical axis. */
typedef struct request {
    bool upsample; /* the old operator: asymmetric, rounding down */
    bool known;    /* scale or out are */
    bool active[LNT_MAX_RANK];
    double scale[LNT_MAX_RANK]; /* 1 for axes that stay; 0 if not known */
    int64_t out[LNT_MAX_RANK];
    double roi[2][LNT_MAX_RANK];
} request;

/* Text attribute a is b. */
static bool is(const lnt_site *site, const char *a, const char *otherwise, const char *b)
{
    return strcmp(lnt_attr_s(site->node, a, otherwise), b) == 0;
}

static bool crops(const lnt_site *site)
{
    return is(site, "coordinate_transformation_mode", "half_pixel", "tf_crop_and_resize");
}

/* The axes that the k-th given number belongs to; *n of them. */
static lnt_status active_axes(const lnt_site *site, request *r, unsigned axis[LNT_MAX_RANK], unsigned *n)
{
    const unsigned rank = site->in[0]->rank;
    const lnt_attr *a = lnt_attr_of(site->node, "axes", LNT_ATTR_INTS);
    *n = a ? a->count : rank;
    LNT_REQUIRE(*n <= rank, site->err, LNT_E_ARGUMENT, "axes names %u axes, the input has %u", *n, rank);
    for (unsigned i = 0; i < *n; i++) {
        LNT_TRY(lnt_axis(site, a ? a->i[i] : i, rank, &axis[i]));
        r->active[axis[i]] = true;
    }
    return LNT_OK;
}

/* Extents from sizes; a policy other than stretch brings all axes to one scale. */
static lnt_status use_sizes(const lnt_site *site, request *r, const unsigned *axis, const int64_t *sizes,
                            unsigned n)
{
    const lnt_operand *x = site->in[0];
    const bool larger = is(site, "keep_aspect_ratio_policy", "stretch", "not_smaller");
    const bool stretch = is(site, "keep_aspect_ratio_policy", "stretch", "stretch");
    double common = 0;
    bool known = true;
    for (unsigned i = 0; i < n; i++) {
        const int64_t in = x->dims[axis[i]];
        LNT_REQUIRE(sizes[i] >= 0 && sizes[i] <= INT32_MAX, site->err, LNT_E_VALUE, "size %lld along axis %u",
                    (long long)sizes[i], axis[i]);
        known &= in >= 0;
        r->out[axis[i]] = sizes[i];
        r->scale[axis[i]] = in > 0 ? (double)sizes[i] / (double)in : 0;
        if (i == 0 || (larger ? r->scale[axis[i]] > common : r->scale[axis[i]] < common))
            common = r->scale[axis[i]];
    }
    for (unsigned i = 0; i < n && !stretch; i++) {
        const double out = common * (double)x->dims[axis[i]] + 0.5;
        LNT_REQUIRE(!known || out < 0x1p31, site->err, LNT_E_VALUE, "size %g along axis %u", out, axis[i]);
        r->scale[axis[i]] = common;
        r->out[axis[i]] = known ? (int64_t)out : LNT_DIM_UNKNOWN;
    }
    return LNT_OK;
}

static lnt_status use_scales(const lnt_site *site, request *r, const unsigned *axis, const double *scales,
                             unsigned n)
{
    const lnt_operand *x = site->in[0];
    for (unsigned i = 0; i < n; i++) {
        const int64_t in = x->dims[axis[i]];
        const float out = (float)scales[i] * (float)in; /* in float, as ONNX's own shape inference has it */
        LNT_REQUIRE(scales[i] > 0 && out < 0x1p31f, site->err, LNT_E_VALUE, "scale %g along axis %u",
                    scales[i], axis[i]);
        r->scale[axis[i]] = scales[i];
        r->out[axis[i]] = scales[i] == 1 ? in : in < 0 ? LNT_DIM_UNKNOWN : (int64_t)floorf(out);
    }
    return LNT_OK;
}

static lnt_status read_roi(const lnt_site *site, request *r, const unsigned *axis, unsigned n_axes)
{
    double roi[2 * LNT_MAX_RANK];
    unsigned n = 2 * LNT_MAX_RANK;
    LNT_TRY(lnt_value_floats(site, 1, roi, &n, NULL));
    LNT_REQUIRE(n == 2 * n_axes, site->err, LNT_E_SHAPE, "roi must hold %u numbers, has %u", 2 * n_axes, n);
    for (unsigned i = 0; i < n_axes; i++) {
        r->roi[0][axis[i]] = roi[i];
        r->roi[1][axis[i]] = roi[n_axes + i];
    }
    return LNT_OK;
}

/* LNT_UNKNOWN while scales, sizes or roi are not known; r->out is then right for the axes that stay. */
static lnt_status read_request(const lnt_site *site, request *r)
{
    const lnt_operand *x = site->in[0];
    unsigned axis[LNT_MAX_RANK], n_axes, n_sizes = LNT_MAX_RANK, n_scales = LNT_MAX_RANK;
    int64_t sizes[LNT_MAX_RANK];
    double scales[LNT_MAX_RANK];
    *r = (request){.upsample = site->node->op->id == LNT_ID_Upsample};
    LNT_TRY(active_axes(site, r, axis, &n_axes));
    for (unsigned d = 0; d < x->rank; d++) {
        r->scale[d] = r->roi[1][d] = 1;
        r->out[d] = r->active[d] ? LNT_DIM_UNKNOWN : x->dims[d];
    }
    LNT_TRY(lnt_value_floats(site, r->upsample ? 1 : 2, scales, &n_scales, NULL));
    if (r->upsample)
        n_sizes = 0;
    else
        LNT_TRY(lnt_value_ints(site, 3, sizes, &n_sizes, NULL));
    if (crops(site) && !r->upsample)
        LNT_TRY(read_roi(site, r, axis, n_axes));
    LNT_REQUIRE((n_scales == 0) != (n_sizes == 0) || n_axes == 0, site->err, LNT_E_ARGUMENT,
                "exactly one of scales and sizes must be given");
    LNT_REQUIRE(n_scales + n_sizes == n_axes, site->err, LNT_E_SHAPE, "%u scales or sizes for %u axes",
                n_scales + n_sizes, n_axes);
    if (n_sizes)
        LNT_TRY(use_sizes(site, r, axis, sizes, n_axes));
    else
        LNT_TRY(use_scales(site, r, axis, scales, n_axes));
    for (unsigned d = 0; d < x->rank; d++)
        LNT_REQUIRE(r->out[d] <= INT32_MAX && (r->out[d] == 0 || x->dims[d] != 0), site->err, LNT_E_SHAPE,
                    "%lld elements along axis %u cannot become %lld", (long long)x->dims[d], d,
                    (long long)r->out[d]);
    return LNT_OK;
}

lnt_status lnt_shape_resize(lnt_site *site)
{
    request r;
    const lnt_status status = read_request(site, &r);
    if (status == LNT_OK || status == LNT_UNKNOWN)
        lnt_set_dims(site, 0, site->in[0]->rank, r.out);
    return status;
}

/* ---- tables ---- */

enum { NEAREST, LINEAR, CUBIC };

/* OUTWARD, Linnet's own for opset 10: the upper neighbor along an axis that shrinks, else the lower one. */
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL, OUTWARD } rounding;

/* How coordinates and weights are made, the same for all axes. */
typedef struct method {
    unsigned kind;
    transform transform;
    rounding rounding;
    double cubic_a;
    bool antialias, exclude_outside;
} method;

/* Where output i of an axis lies in the input. Nearest computes it in float, in which scales are given: 17 / 1.7f
 * is 10 there, and not just below; but for axes whose indices are no floats. */
static double source_of(const method *m, int64_t i, const axis_map *a, double scale, const double roi[2])
{
    const bool exact = m->kind != NEAREST || a->in > FLOAT_INDICES || a->out > FLOAT_INDICES;
    return exact ? source_of_double(m->transform, i, a, scale, roi)
                 : source_of_float(m->transform, i, a, scale, roi);
}

/* What lies between two elements but for the rounding of coordinates counts as between. */
#define NEARLY 1e-6

static double nearest_of(const method *m, double x, double scale)
{
    switch (m->rounding) {
    case OUTWARD: return scale < 1 ? ceil(x) : floor(x);
    case PREFER_CEIL: return floor(x + 0.5 + NEARLY);
    case FLOOR: return floor(x);
    case CEIL: return ceil(x);
    case PREFER_FLOOR: break;
    }
    return ceil(x - 0.5 - NEARLY);
}

/* The interpolation kernel at distance d. */
static double weight_of(const method *m, double d)
{
    const double a = m->cubic_a, x = fabs(d);
    if (m->kind == LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

/* Taps left of and including the source position; as many are right of it. */
static double reach_of(const method *m, double scale)
{
    const double half = m->kind == LINEAR ? 1 : 2;
    return m->kind == NEAREST ? 1 : ceil(half / (m->antialias && scale < 1 ? scale : 1));
}

/* Weights and inputs of the output at source position x. */
static void fill_taps(const method *m, const axis_map *a, double scale, double x, int32_t *index,
                      double *weight)
{
    const double base = floor(x), stretch = m->antialias && scale < 1 ? scale : 1;
    const double reach = reach_of(m, scale);
    double total = 0;
    for (unsigned t = 0; t < a->taps; t++) {
        const double at = m->kind == NEAREST ? nearest_of(m, x, scale) : base + 1 - reach + (double)t;
        const bool outside = at < 0 || at > (double)(a->in - 1);
        weight[t] = m->kind == NEAREST ? 1 : weight_of(m, (at - x) * stretch);
        if (outside && m->exclude_outside && m->kind != NEAREST)
            weight[t] = 0;
        index[t] = !(at >= 0) ? 0 : at > (double)(a->in - 1) ? (int32_t)(a->in - 1) : (int32_t)at;
        total += weight[t];
    }
    for (unsigned t = 0; t < a->taps && (m->exclude_outside || m->antialias) && total != 0; t++)
        weight[t] /= total;
}

/* An axis that does not change. */
static __attribute__((noinline)) bool stays(const lnt_site *site, const request *r, unsigned d)
{
    return r->out[d] == site->in[0]->dims[d] && (r->scale[d] == 1 || !r->active[d]) &&
           (!crops(site) || (r->roi[0][d] == 0 && r->roi[1][d] == 1));
}

static lnt_status fill_axis(lnt_site *site, const method *m, const request *r, unsigned d, axis_map *a)
{
    const lnt_dtype real = lnt_site_real_type(site);
    const bool identity = stays(site, r, d), crop = crops(site) && !r->upsample;
    const double scale = r->scale[d], last = (double)(a->in - 1), roi[2] = {r->roi[0][d], r->roi[1][d]};
    const double taps = identity || m->kind == NEAREST || a->out == 0 ? 1 : 2 * reach_of(m, scale);
    if (!(taps * (double)a->out < INT32_MAX))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "scale %g along axis %u reads %g elements for each", scale, d,
                             taps);
    if (a->in > INT32_MAX)
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "axis %u has %lld elements, of at most %d", d,
                             (long long)a->in, INT32_MAX);
    a->taps = (unsigned)taps;
    const size_t n = (size_t)a->out * a->taps;
    a->index = lnt_bump_alloc(site->memory, n * sizeof *a->index, site->err);
    a->weight = lnt_bump_alloc(site->memory, n * lnt_dtype_size(real), site->err);
    double *weight = lnt_bump_alloc(site->memory, a->taps * sizeof *weight, site->err);
    if (!a->index || !a->weight || !weight)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < a->out; i++) {
        int32_t *index = a->index + i * a->taps;
        const double x = identity ? (double)i : source_of(m, i, a, scale, roi);
        weight[0] = 1;
        index[0] = (int32_t)i;
        if (!identity)
            fill_taps(m, a, scale, x, index, weight);
        if (crop && !identity && !(x >= 0 && x <= last)) /* nor where roi is not a number */
            index[0] = -1;
        lnt_elements_from_double(real, weight, lnt_element_at(a->weight, real, i * a->taps), a->taps);
    }
    return LNT_OK;
}

static lnt_status read_method(const lnt_site *site, const request *r, method *m)
{
    static const char *const transforms[] = {
        "half_pixel",         "align_corners",        "asymmetric",          "tf_crop_and_resize",
        "pytorch_half_pixel", "half_pixel_symmetric", "tf_half_pixel_for_nn"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                            "linnet.outward"};
    const lnt_node *node = site->node;
    const char *mode = lnt_attr_s(node, "mode", "nearest");
    m->kind = strcmp(mode, "nearest") == 0 ? NEAREST : strcmp(mode, "cubic") == 0 ? CUBIC : LINEAR;
    const int how = lnt_attr_choice(node, "coordinate_transformation_mode", transforms, 7);
    const int round = lnt_attr_choice(node, "nearest_mode", roundings, 5);
    m->transform = r->upsample ? ASYMMETRIC : how < 0 ? HALF_PIXEL : (transform)how;
    m->rounding = r->upsample ? FLOOR : round < 0 ? PREFER_FLOOR : (rounding)round;
    m->cubic_a = (double)lnt_attr_f(node, "cubic_coeff_a", -0.75f);
    m->antialias = lnt_attr_i(node, "antialias", 0) != 0 && m->kind != NEAREST;
    m->exclude_outside = lnt_attr_i(node, "exclude_outside", 0) != 0;
    LNT_REQUIRE(m->kind != LINEAR || strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0, site->err,
                LNT_E_ARGUMENT, "mode %s", mode);
    return LNT_OK;
}

/* Axes of the input in storage order. */
static void axes_as_stored(const lnt_operand *x, unsigned order[LNT_MAX_RANK])
{
    const bool last = x->order == LNT_ORDER_CHANNELS_LAST;
    for (unsigned d = 0, i = 0; d < x->rank; d++)
        if (!last || d != 1)
            order[i++] = d;
    if (last)
        order[x->rank - 1] = 1;
}

/* Splits the axes into those of planes, outer ones, the innermost that changes, and the unit behind it. */
static lnt_status bind_axes(lnt_site *site, const method *m, const request *r, resize *p)
{
    const lnt_operand *x = site->in[0];
    unsigned order[LNT_MAX_RANK] = {0}, n = x->rank;
    int64_t strides[LNT_MAX_RANK] = {0};
    lnt_operand_strides(x, strides);
    axes_as_stored(x, order);
    p->unit = p->rows = p->planes = 1;
    while (n > 1 && stays(site, r, order[n - 1]))
        p->unit *= x->dims[order[--n]];
    for (unsigned i = 0; i < n; i++) {
        const unsigned d = order[i];
        axis_map *a = &p->outer[p->n_outer];
        if (p->n_outer == 0 && i + 1 < n && stays(site, r, d)) {
            p->planes *= x->dims[d];
            p->plane = strides[d];
            continue;
        }
        *a = (axis_map){.in = x->dims[d], .out = r->out[d], .stride = strides[d]};
        LNT_TRY(fill_axis(site, m, r, d, a));
        if (i + 1 == n)
            p->along = *a;
        else
            p->n_outer++, p->rows *= a->out;
    }
    p->lines = p->rows;
    p->rows *= p->planes;
    return LNT_OK;
}

/* Are outputs sums over taps, or rows interpolated before they are mixed, and how much memory does a thread need for
 * them? */
static void plan_rows(resize *p, size_t real)
{
    enum { CALL = 50 /* what a row costs besides, in products */ };
    size_t rows = 1;
    for (unsigned i = 0; i < p->n_outer && rows <= MOST_ROWS; i++)
        rows *= p->outer[i].taps;
    const int64_t out = p->along.out, products = out * p->along.taps;
    if (p->planes >= FEW_PLANES && p->unit == 1 && !p->crops && real == sizeof(float) && rows <= MOST_ROWS &&
        out > 0 && out <= LNT_TAPS_POINTS && products * (int64_t)rows <= LNT_TAPS &&
        products * (int64_t)(rows - 1) < CALL * (int64_t)rows) {
        p->taps = p->along.taps * (unsigned)rows;
        p->block = lnt_least(LNT_TAPS_POINTS / out, LNT_TAPS / (out * p->taps));
    }
    /* Rows are kept for the next ones along the last outer axis; of those before it each has as many to itself. */
    const axis_map *last = &p->outer[p->n_outer ? p->n_outer - 1 : 0];
    p->slots = p->n_outer && rows <= MOST_ROWS && last->out > last->in * ((int64_t)rows / last->taps)
                   ? (unsigned)rows
                   : 0;
    const int64_t elements = (p->slots ? p->along.out * p->slots : p->along.in) * p->unit;
    p->thread_bytes = lnt_round_up(p->slots * sizeof(int64_t) + (size_t)elements * real, LNT_ALIGN);
}

/* An axis of the copy, before which `elements` of the output stand, if its elements are at a constant step. */
static bool copies_axis(resize *p, const axis_map *a, int64_t elements)
{
    const int64_t size = (int64_t)p->size, step = a->out > 1 ? a->index[1] : 0;
    for (int64_t o = 0; o < a->out; o++)
        if (a->index[o] != o * step || step < 0)
            return false;
    lnt_copy_axis(&p->copy, a->out, elements * size, step * a->stride * size);
    return true;
}

static __attribute__((noinline)) bool doubles_axis(const axis_map *a)
{
    bool doubles = a->out == 2 * a->in;
    for (int64_t o = 0; o < a->out; o++)
        doubles &= a->index[o] == o / 2;
    return doubles;
}

static void bind_nearest(resize *p, lnt_turn_fn turn)
{
    const int64_t size = (int64_t)p->size;
    int64_t elements = p->unit;
    p->doubles = p->unit == 1 && doubles_axis(&p->along);
    if (!LNT_TRIMMED && p->doubles && turn != lnt_turn_scalar && size == sizeof(float) &&
        p->along.in >= A_VECTOR)
        p->turn = turn;
    p->doubles_rows = p->doubles && p->along.out * (int64_t)p->size <= SHORT_ROW && p->n_outer &&
                      doubles_axis(&p->outer[p->n_outer - 1]);
    lnt_copy_begin(&p->copy, p->size);
    lnt_copy_axis(&p->copy, p->unit, (int64_t)p->size, (int64_t)p->size);
    p->copies = copies_axis(p, &p->along, elements);
    elements *= p->along.out;
    for (unsigned d = p->n_outer; d-- > 0; elements *= p->outer[d].out)
        p->copies = p->copies && copies_axis(p, &p->outer[d], elements);
    lnt_copy_axis(&p->copy, p->planes, elements * size, p->plane * size);
    if (p->copies)
        lnt_copy_settle(&p->copy);
}

lnt_status lnt_bind_resize(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    request r;
    method m;
    resize *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_REQUIRE(x->rank > 0, site->err, LNT_E_SHAPE, "the input is a scalar");
    LNT_TRY(read_request(site, &r));
    LNT_TRY(read_method(site, &r, &m));
    p->row = site->kernels->row;
    p->crops = crops(site) && !r.upsample;
    p->extrapolation = (double)lnt_attr_f(site->node, "extrapolation_value", 0);
    p->size = lnt_dtype_size(x->dtype);
    if (p->size == 0)
        return lnt_bind_unsupported_type(site, x->dtype);
    lnt_elements_from_double(x->dtype, &p->extrapolation, p->extrapolated, 1);
    LNT_TRY(bind_axes(site, &m, &r, p));
    if (m.kind == NEAREST) {
        bind_nearest(p, site->kernels->turn);
        site->step->run = run_nearest;
        return LNT_OK;
    }
    plan_rows(p, lnt_dtype_size(lnt_site_real_type(site)));
    lnt_bind_scratch(site, p->thread_bytes * site->threads);
    site->step->run = run_interpolate;
    return lnt_bind_widened(site, 1, 1);
}
