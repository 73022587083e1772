/* conv_rows.c — finding the neighborhoods of a tile's pixels.
 *
 * Taps side by side along x are walked as one run. Taps that meet nothing but padding for all rows of a tile
 * are left out; where others do for some of them, the tile is gathered into scratch memory, zeros included
 * (im2col of one tile; Chellapilla, Puri and Simard, "High Performance Convolutional Neural Networks for Document
 * Processing", 2006). All others are used in place, by a pointer for each pixel and offsets of the taps: the
 * indirect convolution of Dukhan, "The Indirect Convolution Algorithm", 2019, which has a pointer for each tap. */
#include "ops/conv/conv_rows.h"

#include "base/lnt_assert.h"
#include "ops/half_kernels.h"

#include <string.h>

/* A position and its image. */
typedef struct place {
    int64_t image, p[LNT_WINDOW_AXES];
} place;

/* Takes *at apart: into how many times n, which is returned, and the rest. Most positions are of the first
 * image and the first plane: they need no division. */
static int64_t take_out(int64_t *at, int64_t n)
{
    if (*at < n)
        return 0;
    const int64_t times = *at / n;
    *at -= times * n;
    return times;
}

static place place_of(const lnt_conv_rows *r, int64_t row)
{
    const int64_t *n = r->count;
    place p = {.p = {0, 0, row}};
    p.p[1] = take_out(&p.p[2], n[2]);
    p.p[0] = take_out(&p.p[1], n[1]);
    p.image = take_out(&p.p[0], n[0]);
    return p;
}

/* Pixels before position `at` of image `image`; along each axis it may lie outside. */
static int64_t pixel_of(const int64_t extent[3], int64_t image, const int64_t at[3])
{
    return ((image * extent[0] + at[0]) * extent[1] + at[1]) * extent[2] + at[2];
}

/* Which floats [*low, *high) of tap t lie inside the image; start is where tap 0 is. */
static void tap_inside(const lnt_conv_rows *r, const int64_t start[3], size_t t, int64_t *low, int64_t *high)
{
    const int64_t along_x = r->runs ? 1 : r->taps[2], pixels = r->runs ? r->taps[2] : 1, tap = (int64_t)t;
    const int64_t z = start[0] + tap / (along_x * r->taps[1]) * r->spacing[0];
    const int64_t y = start[1] + tap / along_x % r->taps[1] * r->spacing[1];
    const int64_t x = start[2] + tap % along_x * r->spacing[2];
    *low = *high = 0;
    if (z < 0 || z >= r->in[0] || y < 0 || y >= r->in[1] || x >= r->in[2] || x + pixels <= 0)
        return;
    *low = x < 0 ? -x * r->channels : 0;
    *high = (x + pixels > r->in[2] ? r->in[2] - x : pixels) * r->channels;
}

/* Copies elements [k_begin, k_end) of a neighborhood; x is where its tap 0 would be. */
static void gather_row(const lnt_gemm_plan *plan, const float *x, const int64_t start[3], size_t k_begin,
                       size_t k_end, float *dst)
{
    const size_t depth = plan->depth, element = plan->kernels->element;
    for (size_t k = k_begin; k < k_end;) {
        const size_t t = k / depth, first = k - t * depth;
        const size_t end = k_end - t * depth < depth ? k_end - t * depth : depth;
        int64_t low, high;
        tap_inside(plan->rows_arg, start, t, &low, &high);
        const size_t from = low > (int64_t)first ? (size_t)low : first;
        const size_t to = high < (int64_t)end ? (size_t)high : end;
        if (from >= to) {
            memset(dst, 0, (end - first) * element);
        } else {
            memset(dst, 0, (from - first) * element);
            memcpy(lnt_moved(dst, (int64_t)(from - first), element),
                   lnt_moved(x, plan->tap_offset[t] + (ptrdiff_t)from, element), (to - from) * element);
            memset(lnt_moved(dst, (int64_t)(to - first), element), 0, (end - to) * element);
        }
        dst = lnt_moved(dst, (int64_t)(end - first), element);
        k += end - first;
    }
}

/* Where the rows of a tile start, and the least and the largest of it: pixels outside the image count, too. */
typedef struct starts {
    int64_t at[LNT_TILE_ROWS_MAX][LNT_WINDOW_AXES];
    int64_t low[LNT_WINDOW_AXES], high[LNT_WINDOW_AXES];
} starts;

/* Rows i .. of the tile from place p on, as far as they stand in one line. Returns how many; false in *inner
 * if taps of one of them miss the image. */
static unsigned rows_of_line(const lnt_conv_rows *r, const place *p, unsigned i, unsigned n, const float *x,
                             int64_t out_first, int64_t ld, lnt_row_set *set, starts *start, bool *inner)
{
    const int64_t left = r->count[2] - p->p[2];
    const unsigned rows = left < n - i ? (unsigned)left : n - i;
    int64_t from[LNT_WINDOW_AXES], to[LNT_WINDOW_AXES];
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        from[a] = r->origin[a] + p->p[a] * r->step[a];
        to[a] = r->out_first[a] + p->p[a] * r->out_step[a];
        const int64_t more = a == 2 ? rows - 1 : 0, last = from[a] + more * r->step[a];
        *inner &= p->p[a] >= r->inner[a][0] && p->p[a] + more < r->inner[a][1];
        start->low[a] = i == 0 || from[a] < start->low[a] ? from[a] : start->low[a];
        start->high[a] = i == 0 || last > start->high[a] ? last : start->high[a];
    }
    const float *a = lnt_moved(x, pixel_of(r->in, p->image, from) * r->pixel, r->element);
    int64_t out = pixel_of(r->out, p->image, to) * ld + out_first;
    for (unsigned end = i + rows; i < end; i++) {
        set->a[i] = a;
        set->out[i] = out;
        start->at[i][0] = from[0];
        start->at[i][1] = from[1];
        start->at[i][2] = from[2];
        a = lnt_moved(a, r->step[2] * r->pixel, r->element);
        out += r->out_step[2] * ld;
        from[2] += r->step[2];
    }
    return rows;
}

/* Taps [*first, *stop) of axis a meet the image for some of the rows; none: *stop is *first. */
static void taps_met(const lnt_conv_rows *r, const starts *start, unsigned a, int64_t *first, int64_t *stop)
{
    const int64_t begin = r->zeros[a][0], end = r->in[a] - r->zeros[a][1], d = r->spacing[a];
    *first = 0;
    *stop = r->taps[a];
    while (*first < *stop && start->high[a] + *first * d < begin)
        ++*first;
    while (*first < *stop && start->low[a] + (*stop - 1) * d >= end)
        --*stop;
}

/* Leaves out taps that meet the image for none of the rows, as far as the others are contiguous in the
 * weights. Returns whether some of those are outside what is in memory. */
static bool leave_out(const lnt_conv_rows *r, const starts *start, lnt_row_set *set)
{
    int64_t first[LNT_WINDOW_AXES] = {0}, stop[LNT_WINDOW_AXES] = {r->taps[0], r->taps[1], r->taps[2]};
    const unsigned axes = r->runs ? LNT_WINDOW_AXES - 1 : LNT_WINDOW_AXES; /* those with taps to leave out */
    size_t behind = set->tap_end;
    for (unsigned a = 0; a < axes && set->tap_end; a++) {
        taps_met(r, start, a, &first[a], &stop[a]);
        behind /= (size_t)r->taps[a];
        set->tap += (size_t)first[a] * behind;
        set->tap_end = set->tap + (size_t)(stop[a] - first[a]) * behind;
        if (stop[a] - first[a] != 1)
            break;
    }
    bool outside = false;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        outside |= start->low[a] + first[a] * r->spacing[a] < 0 ||
                   start->high[a] + (stop[a] - 1) * r->spacing[a] >= r->in[a];
    return outside && set->tap < set->tap_end;
}

/* The place after the last one of its line. */
static void next_line(const lnt_conv_rows *r, place *p)
{
    p->p[2] = 0;
    for (unsigned a = 2; a-- > 0;) {
        if (++p->p[a] < r->count[a])
            return;
        p->p[a] = 0;
    }
    p->image++;
}

static void rows_of(const lnt_gemm_call *call, int64_t product, int64_t row, unsigned n, size_t k_begin,
                    size_t k_end, float *gather, lnt_row_set *set)
{
    const lnt_conv_rows *r = call->plan->rows_arg;
    const float *x = lnt_moved(call->a, product * r->group, r->element);
    starts start;
    bool inner = true;
    place p = place_of(r, row);
    for (unsigned i = 0; i < n; next_line(r, &p))
        i += rows_of_line(r, &p, i, n, x, product * r->features, call->ld, set, &start, &inner);
    const bool outside = !inner && leave_out(r, &start, set);
    set->gathered = outside || call->plan->gathers_all;
    if (!set->gathered)
        return;
    const size_t first = set->tap * call->plan->depth, end = set->tap_end * call->plan->depth;
    k_begin = k_begin > first ? k_begin : first;
    k_end = k_end < end ? k_end : end;
    for (unsigned i = 0; i < n; i++) {
        gather_row(call->plan, set->a[i], start.at[i], k_begin, k_end, gather);
        set->a[i] = gather;
        gather = lnt_moved(gather, k_begin < k_end ? (int64_t)(k_end - k_begin) : 0, r->element);
    }
}

/* The same where each pixel is a neighborhood by itself. */
static void rows_of_pixels(const lnt_gemm_call *call, int64_t product, int64_t row, unsigned n,
                           size_t k_begin, size_t k_end, float *gather, lnt_row_set *set)
{
    const lnt_conv_rows *r = call->plan->rows_arg;
    const size_t length = k_end - k_begin;
    const float *a = lnt_moved(call->a, product * r->group + row * r->pixel, r->element);
    int64_t out = product * r->features + row * call->ld;
    set->gathered = call->plan->gathers_all;
    for (unsigned i = 0; i < n; i++, a = lnt_moved(a, r->pixel, r->element), out += call->ld) {
        set->a[i] = set->gathered ? memcpy(lnt_moved(gather, (int64_t)(i * length), r->element),
                                           lnt_moved(a, (int64_t)k_begin, r->element), length * r->element)
                                  : a;
        set->out[i] = out;
    }
}

/* ---- bind ---- */

static bool are_pixels(const lnt_conv_rows *r)
{
    bool are = true;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        are &= r->taps[a] == 1 && r->step[a] == 1 && r->origin[a] == 0 && r->out_first[a] == 0 &&
               r->out_step[a] == 1 && r->in[a] == r->count[a] && r->out[a] == r->count[a];
    return are;
}

static void find_inner(lnt_conv_rows *r)
{
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        const int64_t first = r->zeros[a][0] - r->origin[a];
        const int64_t last = r->in[a] - r->zeros[a][1] - 1 - (r->taps[a] - 1) * r->spacing[a] - r->origin[a];
        r->inner[a][0] = first <= 0 ? 0 : (first + r->step[a] - 1) / r->step[a];
        r->inner[a][1] = last < 0 ? 0 : last / r->step[a] + 1;
    }
}

/* Do taps of axis a reach beyond what is in memory? */
static bool reaches_out(const lnt_conv_rows *r, unsigned a)
{
    const int64_t last = r->origin[a] + (r->count[a] - 1) * r->step[a];
    return r->origin[a] < 0 || last + (r->taps[a] - 1) * r->spacing[a] >= r->in[a];
}

lnt_status lnt_conv_rows_plan(lnt_site *site, lnt_conv_rows *r, int64_t batch, lnt_gemm_plan *plan)
{
    LNT_ASSERT(r->taps[0] >= 0 && r->taps[1] >= 0 && r->taps[2] >= 0);
    r->runs = (r->spacing[2] == 1 || r->taps[2] == 1) && r->channels == r->pixel;
    const int64_t along_x = r->runs ? 1 : r->taps[2], taps = r->taps[0] * r->taps[1] * along_x;
    ptrdiff_t *offset = lnt_bump_alloc(site->memory, ((size_t)taps + 1) * sizeof *offset, site->err);
    if (!offset)
        return LNT_E_MEMORY;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t z = t / (along_x * r->taps[1]), y = t / along_x % r->taps[1], x = t % along_x;
        const int64_t lines = z * r->spacing[0] * r->in[1] + y * r->spacing[1];
        offset[t] = (ptrdiff_t)((lines * r->in[2] + x * r->spacing[2]) * r->pixel);
    }
    find_inner(r);
    r->element = plan->kernels->element;
    plan->rows_of = are_pixels(r) ? rows_of_pixels : rows_of;
    plan->rows_arg = r;
    plan->rows = batch * lnt_volume(r->count);
    plan->taps = (size_t)taps;
    plan->depth = (size_t)(r->channels * (r->runs ? r->taps[2] : 1));
    plan->tap_offset = offset;
    plan->b_row = LNT_PANEL;
    plan->b_panel = plan->taps * plan->depth * LNT_PANEL;
    plan->row_step = r->step[2] * r->pixel;
    plan->gathers = false;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        plan->gathers |= reaches_out(r, a);
    return LNT_OK;
}
