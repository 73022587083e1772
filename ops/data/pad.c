/* pad.c — Pad and CenterCropPad: a box surrounded by a constant, or by elements of its own. */
#include "ops/data/data.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <string.h>

/* ---- geometry ---- */

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

typedef struct border {
    int64_t begin, end; /* elements added on each side; negative: taken away */
} border;

static lnt_status read_mode(const lnt_site *site, pad_mode *out)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const int mode = lnt_attr_choice(site->node, "mode", names, 4);
    LNT_REQUIRE(mode >= 0, site->err, LNT_E_UNSUPPORTED, "mode %s", lnt_attr_s(site->node, "mode", ""));
    *out = (pad_mode)mode;
    return LNT_OK;
}

/* Borders of every axis from pads (input 1) and axes (input 3). */
static lnt_status read_borders(lnt_site *site, border borders[LNT_MAX_RANK])
{
    const unsigned rank = site->in[0]->rank;
    int64_t pads[2 * LNT_MAX_RANK], axes[LNT_MAX_RANK];
    unsigned n_pads = 2 * LNT_MAX_RANK, n_axes = LNT_MAX_RANK;
    bool given;
    memset(borders, 0, LNT_MAX_RANK * sizeof *borders);
    LNT_TRY(lnt_value_ints(site, 3, axes, &n_axes, &given));
    LNT_TRY(lnt_value_ints(site, 1, pads, &n_pads, NULL));
    if (!given)
        n_axes = rank;
    if (n_pads != 2 * n_axes)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "%u pads for %u axes", n_pads, n_axes);
    for (unsigned i = 0; i < n_axes; i++) {
        unsigned axis;
        LNT_TRY(lnt_axis(site, given ? axes[i] : i, rank, &axis));
        borders[axis] = (border){pads[i], pads[i + n_axes]};
    }
    return LNT_OK;
}

lnt_status lnt_shape_pad(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    border borders[LNT_MAX_RANK];
    int64_t dims[LNT_MAX_RANK];
    const lnt_status status = read_borders(site, borders);
    if (status == LNT_UNKNOWN)
        return lnt_shape_of_rank(site, in->rank);
    LNT_TRY(status);
    for (unsigned i = 0; i < in->rank; i++) {
        const border b = borders[i];
        const bool grows = b.begin != 0 || b.end != 0;
        const int64_t n = in->dims[i], least = INT64_MIN / 4, most = INT64_MAX / 4;
        dims[i] = n < 0 && grows ? LNT_DIM_UNKNOWN : n;
        if (n < 0 || !grows)
            continue;
        if (b.begin < least || b.begin > most || b.end < least || b.end > most || n > most ||
            n + (b.begin < 0 ? b.begin : 0) + (b.end < 0 ? b.end : 0) < 0)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "pads %lld and %lld do not fit extent %lld of axis %u",
                                 (long long)b.begin, (long long)b.end, (long long)n, i);
        dims[i] = n + b.begin + b.end;
    }
    lnt_set_dims(site, 0, in->rank, dims);
    return LNT_OK;
}

/* ---- the plan ---- */

/* An axis of the output: its border first cuts what is negative, then adds what the mode says. */
typedef struct pad_axis {
    int64_t n;         /* of the output */
    int64_t added;     /* before the first element kept */
    int64_t low, kept; /* elements [low, low + kept) of the source */
    int64_t step;      /* bytes from one to the next */
} pad_axis;

/* Axes in the output's storage order; those behind the last padded one have become part of the unit. */
typedef struct pad_params {
    pad_mode mode;
    unsigned rank;
    int64_t unit, rows; /* bytes moved as one; rows of the last axis */
    int64_t middle;     /* elements from added on that are adjacent in the source, too */
    int64_t *border; /* source_offset of the other elements of a row, those before the middle and behind it */
    size_t element;
    pad_axis axis[LNT_MAX_RANK];
} pad_params;

/* Index among n elements that index i outside them repeats; -1: the constant. */
static int64_t fold_index(pad_mode mode, int64_t i, int64_t n)
{
    const int64_t period = mode == PAD_REFLECT && n > 1 ? 2 * (n - 1) : n;
    int64_t rest;
    switch (mode) {
    case PAD_CONSTANT: return -1;
    case PAD_EDGE: return i < 0 ? 0 : n - 1;
    default: rest = i % period < 0 ? i % period + period : i % period; return rest < n ? rest : period - rest;
    }
}

/* Byte offset in the source of index i along an axis, or -1. */
static inline int64_t source_offset(pad_mode mode, const pad_axis *a, int64_t i)
{
    int64_t at = i - a->added;
    if (at < 0 || at >= a->kept)
        at = fold_index(mode, at, a->kept);
    return at < 0 ? -1 : (at + a->low) * a->step;
}

/* The axes of o from outermost to innermost in memory. */
static void storage_order(const lnt_operand *o, unsigned order[LNT_MAX_RANK])
{
    for (unsigned i = 0; i < o->rank; i++)
        order[i] = i;
    if (o->order == LNT_ORDER_CHANNELS_LAST) {
        for (unsigned i = 1; i + 1 < o->rank; i++)
            order[i] = i + 1;
        order[o->rank - 1] = 1;
    }
}

static pad_axis make_axis(int64_t extent, border b, int64_t step)
{
    pad_axis a = {.n = extent + b.begin + b.end, .step = step};
    a.added = b.begin > 0 ? b.begin : 0;
    a.low = b.begin < 0 ? -b.begin : 0;
    a.kept = extent - a.low + (b.end < 0 ? b.end : 0);
    return a;
}

static lnt_status plan_axes(lnt_site *site, const border *borders, pad_params *p)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    unsigned order[LNT_MAX_RANK];
    int64_t src[LNT_MAX_RANK];
    const int64_t size = (int64_t)lnt_element_size(in);
    lnt_operand_strides(in, src);
    storage_order(out, order);
    p->rank = out->rank;
    p->element = (size_t)size;
    p->unit = size;
    while (p->rank > 0) {
        const unsigned a = order[p->rank - 1];
        if (borders[a].begin || borders[a].end || src[a] * size != p->unit)
            break;
        p->unit *= out->dims[a];
        p->rank--;
    }
    p->rows = 1;
    for (unsigned i = 0; i < p->rank; i++) {
        const unsigned a = order[i];
        p->axis[i] = make_axis(in->dims[a], borders[a], src[a] * size);
        if (p->mode != PAD_CONSTANT && p->axis[i].n > 0 && p->axis[i].kept == 0)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "axis %u has no elements to pad with", a);
        if (i + 1 < p->rank)
            p->rows *= p->axis[i].n;
    }
    if (p->rank > 0 && p->axis[p->rank - 1].step == p->unit)
        p->middle = p->axis[p->rank - 1].kept;
    return LNT_OK;
}

static lnt_status plan_border(lnt_site *site, pad_params *p)
{
    const pad_axis *last = &p->axis[p->rank - 1];
    const int64_t before = p->middle > 0 ? last->added : 0, n = last->n - p->middle;
    p->border = lnt_bump_alloc(site->memory, (size_t)(n + 1) * sizeof *p->border, site->err);
    if (!p->border)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < n; i++)
        p->border[i] = source_offset(p->mode, last, i < before ? i : i + p->middle);
    return LNT_OK;
}

/* ---- at run ---- */

typedef struct pad_job {
    const pad_params *p;
    char *dst;
    const char *src, *value;
} pad_job;

static void fill_many(const pad_job *job, char *dst, int64_t bytes)
{
    lnt_fill(dst, bytes / (int64_t)job->p->element, job->value, job->p->element);
}

/* A border has few elements as a rule: fewer than it takes to begin a fill. */
static inline void fill_units(const pad_job *job, char *dst, int64_t n)
{
    enum { FEW = 8 };
    const int64_t element = (int64_t)job->p->element, bytes = n * job->p->unit;
    if (bytes >= FEW * element)
        fill_many(job, dst, bytes);
    else
        for (int64_t at = 0; at < bytes; at += element)
            lnt_move_slice(dst + at, job->value, element);
}

/* Rows whose border comes from its offsets in src; its first `before` elements stand before the middle. */
static __attribute__((noinline)) void pad_own_rows(const pad_job *job, char *row, const char *src,
                                                   int64_t step, int64_t rows)
{
    const pad_params *p = job->p;
    const pad_axis *last = &p->axis[p->rank - 1];
    const int64_t unit = p->unit, bytes = p->middle * unit, first = last->low * last->step;
    const int64_t before = p->middle > 0 ? last->added : 0, n = last->n - p->middle;
    const bool single = unit == (int64_t)p->element;
    for (; rows > 0; rows--, src += step) {
        for (int64_t i = 0; i <= n; i++, row += unit) {
            if (i == before) {
                memcpy(row, src + first, (size_t)bytes);
                row += bytes;
            }
            if (i == n)
                break;
            const int64_t offset = p->border[i];
            if (offset >= 0 || single)
                lnt_move_slice(row, offset >= 0 ? src + offset : job->value, unit);
            else
                fill_many(job, row, unit);
        }
    }
}

/* Rows of which all that is kept is in the middle: what separates one's from the next's is filled at once. */
static void pad_plain_rows(const pad_job *job, char *row, const char *src, int64_t step, int64_t rows)
{
    const pad_params *p = job->p;
    const pad_axis *last = &p->axis[p->rank - 1];
    const int64_t bytes = p->middle * p->unit, behind = last->n - last->added - p->middle;
    char *middle = row + last->added * p->unit;
    src += last->low * last->step;
    fill_many(job, row, last->added * p->unit);
    for (; rows > 0; rows--, middle += last->n * p->unit, src += step) {
        memcpy(middle, src, (size_t)bytes);
        fill_units(job, middle + bytes, rows > 1 ? last->added + behind : behind);
    }
}

/* Where outer row r of all axes but the last two comes from; NULL: it is constant. */
static const char *outer_source(const pad_job *job, int64_t r)
{
    const pad_params *p = job->p;
    const char *src = job->src;
    for (unsigned i = p->rank > 2 ? p->rank - 2 : 0; i-- > 0; r /= p->axis[i].n) {
        const int64_t offset = source_offset(p->mode, &p->axis[i], r % p->axis[i].n);
        if (offset < 0)
            return NULL;
        src += offset;
    }
    return src;
}

/* Rows from index i of an axis on, n or fewer of them in one go: those of one border, or kept; how many there were.
 * outer: what the axes before gave. */
static int64_t pad_some_rows(const pad_job *job, const pad_axis *axis, const char *outer, int64_t i,
                             int64_t n, char *row)
{
    const pad_params *p = job->p;
    const int64_t offset = outer ? source_offset(p->mode, axis, i) : -1,
                  bytes = p->axis[p->rank - 1].n * p->unit;
    const int64_t at = i - axis->added, left = axis->kept - at;
    const bool kept = at >= 0 && left > 0;
    n = lnt_least(n, at < 0 ? -at : kept ? left : axis->n - i);
    if (offset < 0) {
        fill_many(job, row, n * bytes);
    } else if (p->mode == PAD_CONSTANT && p->middle > 0) {
        pad_plain_rows(job, row, outer + offset, axis->step, n);
    } else if (p->mode == PAD_EDGE && !kept) {
        pad_own_rows(job, row, outer + offset, 0, 1);
        lnt_repeat_bytes(row, row, bytes, n);
    } else {
        n = kept ? n : 1;
        pad_own_rows(job, row, outer + offset, axis->step, n);
    }
    return n;
}

static lnt_status pad_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const pad_job *job = arg;
    const pad_params *p = job->p;
    static const pad_axis one_row = {.n = 1, .kept = 1};
    const pad_axis *axis = p->rank > 1 ? &p->axis[p->rank - 2] : &one_row, *last = &p->axis[p->rank - 1];
    const int64_t bytes = last->n * p->unit;
    char *row = job->dst + begin * bytes;
    const char *outer = NULL;
    for (int64_t r = begin, done; r < end;) {
        const char *const before = outer;
        outer = outer_source(job, r / axis->n);
        if (outer == before && r - begin >= axis->n && end - r >= axis->n) {
            memcpy(row, row - axis->n * bytes, (size_t)(axis->n * bytes));
            row += axis->n * bytes;
            r += axis->n;
            continue;
        }
        for (int64_t i = r % axis->n; i < axis->n && r < end; i += done, r += done) {
            done = pad_some_rows(job, axis, outer, i, end - r, row);
            row += done * bytes;
        }
    }
    return LNT_OK;
}

static lnt_status run_pad(lnt_kernel *k, const lnt_step *s)
{
    static const char zero[8] = {0};
    const pad_params *p = s->params;
    LNT_ASSERT(p->rank > 0 && p->rank <= LNT_MAX_RANK);
    const char *value = lnt_in(k, s, 2);
    pad_job job = {p, lnt_out(k, s, 0), lnt_in(k, s, 0), value ? value : zero};
    const int64_t n = p->axis[p->rank - 1].n;
    if (p->unit == 0 || n == 0)
        return LNT_OK;
    return lnt_parallel(k, p->rows, lnt_grain(n * p->unit), pad_rows, &job);
}

static lnt_status bind_borders(lnt_site *site, pad_mode mode, const border *borders)
{
    pad_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->mode = mode;
    LNT_TRY(plan_axes(site, borders, p));
    if (p->rank == 0)
        return lnt_bind_as_view(site);
    LNT_TRY(plan_border(site, p));
    site->step->run = run_pad;
    return LNT_OK;
}

lnt_status lnt_bind_pad(lnt_site *site)
{
    border borders[LNT_MAX_RANK];
    pad_mode mode = PAD_CONSTANT;
    LNT_TRY(read_mode(site, &mode));
    LNT_TRY(read_borders(site, borders));
    const lnt_operand *value = lnt_input(site, 2);
    if (value && (lnt_operand_count(value) != 1 || value->dtype != site->in[0]->dtype))
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "constant_value must be one %s",
                             lnt_dtype_text((lnt_dtype)site->in[0]->dtype));
    return bind_borders(site, mode, borders);
}

/* ---- CenterCropPad ---- */

/* Wanted extent of each axis; axes that are not named keep theirs. */
static lnt_status read_target(lnt_site *site, int64_t target[LNT_MAX_RANK])
{
    const lnt_operand *in = site->in[0];
    const lnt_attr *axes = lnt_attr_of(site->node, "axes", LNT_ATTR_INTS);
    int64_t shape[LNT_MAX_RANK];
    unsigned n = LNT_MAX_RANK;
    memcpy(target, in->dims, LNT_MAX_RANK * sizeof *target);
    LNT_TRY(lnt_value_ints(site, 1, shape, &n, NULL));
    if (n != (axes ? axes->count : in->rank))
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "shape holds %u extents, not one per axis", n);
    for (unsigned i = 0; i < n; i++) {
        unsigned axis;
        LNT_TRY(lnt_axis(site, axes ? axes->i[i] : i, in->rank, &axis));
        if (shape[i] < 0)
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "extent %lld in the shape", (long long)shape[i]);
        target[axis] = shape[i];
    }
    return LNT_OK;
}

lnt_status lnt_shape_center_crop_pad(lnt_site *site)
{
    int64_t target[LNT_MAX_RANK];
    const lnt_status status = read_target(site, target);
    if (status == LNT_UNKNOWN)
        return lnt_shape_of_rank(site, site->in[0]->rank);
    LNT_TRY(status);
    lnt_set_dims(site, 0, site->in[0]->rank, target);
    return LNT_OK;
}

lnt_status lnt_bind_center_crop_pad(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    border borders[LNT_MAX_RANK];
    for (unsigned i = 0; i < in->rank; i++) {
        const int64_t change = out->dims[i] - in->dims[i];
        borders[i].begin = change / 2; /* rounds towards 0: an odd one goes to the end */
        borders[i].end = change - borders[i].begin;
    }
    return bind_borders(site, PAD_CONSTANT, borders);
}
