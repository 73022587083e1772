/* pooling.c — MaxPool, AveragePool, LpPool and their global forms. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/row_fusion.h"
#include "ops/half_kernels.h"
#include "ops/image/pool_kernels.h"
#include "ops/rows/row.h"
#include "ops/widen.h"
#include "ops/window.h"

#include <math.h>
#include <string.h>

enum { MAX, AVERAGE, LP };
enum {
    ROWS_MAX = 32, /* joined at a time */
    A_CALL = 8,    /* elements that cost as much */
    GRAIN = 16384  /* elements worth a thread's while */
};

typedef struct pool {
    const lnt_row_kernels *row;
    const lnt_pool_kernels *pool;
    const lnt_half_kernels *half;
    unsigned kind;
    double order; /* of the Lp norm */
    lnt_window w;
    int64_t batch, channels, positions;
    bool channels_last, count_pad, column_major, is_signed;
    size_t element; /* bytes of an element as it is compared: bytes and halves may stay as they are stored */
    int64_t inner[2];    /* outputs along the last axis with all their taps inside */
    bool joins;          /* rows of channels-last images are joined before pixels are */
    int64_t pitch;       /* of a row with all its padding where images are worked on with it; else 0 */
    int64_t lines,
        padded_lines;    /* then: with the first tap of a window, or between such; of a padded plane */
    int64_t reach;       /* elements behind one that are in its window along the last axis */
    int64_t taps;        /* along the last axis that meet the input for any output */
    int64_t inside;      /* padding before a row, as far as those taps reach */
    int64_t padded;      /* length of a row with its padding, as far as they reach */
    int64_t together;    /* rows that are joined before their neighbors are, if those are few elements */
    int64_t planes; /* whose rows in one place are worked on together, if those of a plane are few; else 1 */
    int64_t part, parts; /* outputs along the last axis that are worth a slice of work; such parts of a row;
                            of a global pool: parts of an image whose sums are joined at the end */
    void *share; /* of each output of a row in the average, [out], or of a plane, [out][pitch], in the type
                            computed in */
    int32_t *lanes; /* of narrow planes, whose pitch is that of outputs */
    lnt_row_fusion fusion;
    size_t scratch_at, thread_bytes; /* scratch: one padded row; channels-last, one of the image. Of a global
                                        pool: [batch][parts][channels] of all threads */
} pool;

typedef struct pool_job {
    const pool *p;
    const void *x;
    void *y, *scratch;
    int64_t *indices;
    int64_t in_pixel, out_pixel; /* elements from pixel to pixel of channels-last images */
    int64_t lines;               /* at x, of all such images or of a ring */
} pool_job;

/* Position `at` of a plane, counted with the first spatial axis running fastest. */
static int64_t column_major(const lnt_window *w, int64_t at)
{
    const int64_t x = at % w->in[2], y = at / w->in[2] % w->in[1], z = at / (w->in[2] * w->in[1]);
    return z + w->in[0] * (y + w->in[1] * x);
}

/* A part of a row of outputs. */
typedef struct row_place {
    int64_t part, o[2], image, row; /* o: of the first two axes; row: of all images */
} row_place;

static row_place place_of_row(const pool *p, int64_t item)
{
    const lnt_window *w = &p->w;
    const int64_t row = item / p->parts, plane = row / w->out[1];
    return (row_place){item % p->parts, {plane % w->out[0], row % w->out[1]}, plane / w->out[0], row};
}

/* Moves on by so many parts of a row, or rows of a plane. */
static void next_row(const pool *p, row_place *at, int64_t n)
{
    if (p->parts > 1 && ++at->part < p->parts)
        return;
    at->part = 0;
    at->row += n;
    if ((at->o[1] += n) < p->w.out[1])
        return;
    at->o[1] = 0;
    if (++at->o[0] < p->w.out[0])
        return;
    at->o[0] = 0;
    at->image++;
}

/* How many rows from there on, of at most n, have windows with all their lines inside the image; 1 if this has not. */
static int64_t rows_alike(const pool *p, const row_place *at, int64_t n)
{
    const lnt_window *w = &p->w;
    const int64_t start = at->o[1] * w->stride[1] - w->before[1],
                  room = w->in[1] - 1 - start - (w->kernel[1] - 1) * w->dilation[1];
    if (p->parts > 1 || p->kind == LP || start < 0 || room < 0)
        return 1;
    return lnt_least(lnt_least(room / w->stride[1] + 1, w->out[1] - at->o[1]), n);
}

/* What a window at o holds along axis a: taps inside the input, and how many count for the average. */
static int64_t counted(const pool *p, unsigned a, int64_t o, int64_t *first, int64_t *end)
{
    lnt_window_taps(&p->w, a, o, first, end);
    return p->count_pad ? lnt_window_padded_taps(&p->w, a, o) : *end - *first;
}

/* For the average: how many lines count. */
static int64_t lines_counted(const pool *p, const row_place *at)
{
    int64_t first, last;
    return counted(p, 0, at->o[0], &first, &last) * counted(p, 1, at->o[1], &first, &last);
}

/* Elements in four vectors of any level, which are read and written as a whole where planes are joined: a part of one
 * would wait for what was written of it just before. */
static int64_t whole_vectors(int64_t n)
{
    return (int64_t)lnt_round_up((size_t)n, LNT_POOL_SLACK);
}

/* For the average: 1 / (elements that count along the last axis), for each output of a row, or 1 / (elements that
 * count) for each of a plane; else 1. */
static void fill_share(const pool *p, bool is_double)
{
    const int64_t width = p->pitch ? p->pitch : p->w.out[2], n = p->pitch ? p->lines * width : width,
                  across = p->pitch && !p->lanes ? p->w.stride[2] : 1, down = p->lanes ? 1 : p->w.stride[1];
    for (int64_t i = 0; i < n; i++) {
        int64_t first, last, count = 1;
        if (p->kind == AVERAGE)
            count = counted(p, 2, i % width / across, &first, &last) *
                    (p->pitch ? counted(p, 1, i / width / down, &first, &last) : 1);
        const double share = count > 0 ? 1 / (double)count : 0;
        if (is_double)
            ((double *)p->share)[i] = share;
        else
            ((float *)p->share)[i] = (float)share;
    }
}

/* The outputs of a row, [*first, *end) of those, for which tap t along the last axis is inside the image. */
static void outputs_of_tap(const lnt_window *w, int64_t t, int64_t *first, int64_t *end)
{
    const int64_t start = t * w->dilation[2] - w->before[2], room = w->in[2] - start;
    const int64_t from = start < 0 ? (-start + w->stride[2] - 1) / w->stride[2] : 0;
    const int64_t to = room > 0 ? (room - 1) / w->stride[2] + 1 : 0;
    *first = from > *first ? from : *first;
    *end = to < *end ? to : *end;
}

#define POOL(p) ((p)->pool)
#include "ops/real_float.h"
#include "ops/image/pooling.inc.h"
#undef POOL
#define POOL(p) ((void)(p), &lnt_pool_double)
#include "ops/real_double.h"
#include "ops/image/pooling.inc.h"

/* Takes the line of plane x that begins at `at` into outputs [begin, end) of a row; the first line of all outputs. */
static void pick_line(const pool *p, const void *x, int64_t at, bool first_line, int64_t begin, int64_t end,
                      int64_t *best)
{
    const lnt_window *w = &p->w;
    for (int64_t o = begin; first_line && o < end; o++) {
        int64_t first, stop;
        lnt_window_taps(w, 2, o, &first, &stop);
        best[o] = first < stop ? at + lnt_window_at(w, 2, o, first) : -1;
    }
    for (int64_t t = 0; t < w->kernel[2]; t++) {
        int64_t first = begin, stop = end;
        outputs_of_tap(w, t, &first, &stop);
        if (first < stop)
            (p->element == sizeof(double) ? pick_larger_double : pick_larger_float)(
                x, at + lnt_window_at(w, 2, first, t), w->stride[2], best + first, stop - first);
    }
}

/* Output o of a row y: element `best` of plane x, the least that there is if below 0. */
static void take_picked(const pool *p, const void *x, int64_t best, void *y, int64_t o)
{
    if (p->element == sizeof(double))
        ((double *)y)[o] = best < 0 ? -(double)INFINITY : ((const double *)x)[best];
    else
        ((float *)y)[o] = best < 0 ? -INFINITY : ((const float *)x)[best];
}

/* MaxPool with indices: rows of outputs of plain images. */
static lnt_status indexed_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pool_job *j = arg;
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    const int64_t size = lnt_volume(w->in);
    row_place at = place_of_row(p, begin);
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++, next_row(p, &at, 1)) {
        const int64_t from = at.part * p->part, to = lnt_least(from + p->part, w->out[2]), plane = at.image;
        const int64_t row = at.row * w->out[2];
        const char *x = (const char *)j->x + plane * size * (int64_t)p->element;
        int64_t *best = j->indices + row, z0, z1, y0, y1;
        lnt_window_taps(w, 0, at.o[0], &z0, &z1);
        lnt_window_taps(w, 1, at.o[1], &y0, &y1);
        for (int64_t o = from; o < to && (z0 == z1 || y0 == y1); o++)
            best[o] = -1;
        for (int64_t tz = z0; tz < z1; tz++)
            for (int64_t ty = y0; ty < y1; ty++) {
                const int64_t iz = lnt_window_at(w, 0, at.o[0], tz), iy = lnt_window_at(w, 1, at.o[1], ty);
                pick_line(p, x, (iz * w->in[1] + iy) * w->in[2], tz == z0 && ty == y0, from, to, best);
            }
        for (int64_t o = from; o < to; o++) {
            take_picked(p, x, best[o], j->y, row + o);
            if (best[o] >= 0)
                best[o] = plane * size + (p->column_major ? column_major(w, best[o]) : best[o]);
        }
    }
    return LNT_OK;
}

/* y[i] = the largest, or the sum, of x[i + t * step], t < taps <= ROWS_MAX. */
static void join_taps(const pool *p, const float *x, int64_t taps, int64_t step, float *y, int64_t n)
{
    const float *rows[ROWS_MAX];
    for (int64_t t = 0; t < taps; t++, x += step)
        rows[t] = x;
    (p->kind == MAX ? p->row->max_rows : p->row->sum_rows)(rows, taps, y, n);
}

/* A row, which few elements may be: without a call. Aligned, its short loop is fetched at once. */
static inline __attribute__((aligned(32))) void copy_row(const float *x, float *y, int64_t n)
{
    enum { FOUR = 4 };
    const int64_t last = n - FOUR;
    for (int64_t i = 0; i < last; i += FOUR)
        memcpy(y + i, x + i, FOUR * sizeof *y);
    if (last >= 0)
        memcpy(y + last, x + last, FOUR * sizeof *y);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i];
}

/* Largest elements or averages of small plain images of floats, whose rows fill few vectors: all rows with their
 * padding are one, so what comes of windows that reach from one into the next is left behind, as is what lies between
 * windows. Planes that a window covers are joined before that. */
static lnt_status padded_planes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pool_job *j = arg;
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    const int64_t pitch = p->pitch, in = w->in[1] * pitch, plane = w->in[1] * w->in[2];
    float *padded = (float *)((char *)j->scratch + thread * p->thread_bytes);
    float *across = padded + in + p->reach + LNT_POOL_SLACK;
    float *down = across + p->padded_lines * pitch;
    const int64_t whole = whole_vectors(p->lines * pitch);
    /* planes without padding are as they have to be */
    const int64_t part = w->in[2] < pitch ? w->in[2] : plane;
    (void)k;
    start_float(p, padded, down - padded);
    for (int64_t item = begin; item < end; item++) {
        int64_t z0, z1;
        const int64_t oz = item % w->out[0], count = counted(p, 0, oz, &z0, &z1);
        const float *x =
            (const float *)j->x + (item / w->out[0] * w->in[0] + lnt_window_at(w, 0, oz, z0)) * plane;
        float *y = (float *)j->y + item * w->out[1] * w->out[2];
        if (z1 - z0 != 1) {
            if (z0 == z1)
                start_float(p, down, plane);
            else
                join_taps(p, x, z1 - z0, w->dilation[0] * plane, down, plane);
            x = down;
        }
        if (part == plane)
            memcpy(padded + w->before[2], x, (size_t)plane * sizeof *x);
        for (int64_t i = 0, at = w->before[2]; i < plane && part < plane; i += part, at += pitch)
            copy_row(x + i, padded + at, part);
        join_taps(p, padded, w->kernel[2], w->dilation[2], across + w->before[1] * pitch, whole_vectors(in));
        join_taps(p, across, w->kernel[1], w->dilation[1] * pitch, down, whole);
        if (p->kind == AVERAGE)
            p->row->multiply(down, p->share, whole);
        if (count != 1)
            finish_float(p, down, whole, count);
        for (int64_t i = 0; i < w->out[1]; i++, y += w->out[2]) {
            const float *from = down + i * w->stride[1] * pitch;
            if (w->stride[2] == 1 && w->out[2] > 1)
                copy_row(from, y, w->out[2]);
            else
                for (int64_t o = 0; o < w->out[2]; o++, from += w->stride[2])
                    y[o] = *from;
        }
    }
    return LNT_OK;
}

#ifdef __x86_64__
static lnt_status narrow_planes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pool_job *j = arg;
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    (void)k, (void)thread;
    p->pool->narrow_planes(w, p->lanes, p->kind == MAX ? NULL : p->share,
                           (const float *)j->x + begin * lnt_volume(w->in),
                           (float *)j->y + begin * lnt_volume(w->out), end - begin);
    return LNT_OK;
}

/* Planes of floats whose rows fit into vectors need no memory between lines and neighbors, unless rows are so short,
 * and windows so large, that it is less work when a plane's rows are one. */
static lnt_status plan_narrow(lnt_site *site, pool *p)
{
    enum { ROWS = 4096, LAST = 2 * LNT_POOL_LANES - 1, A_PLANE = 100 };
    const lnt_window *w = &p->w;
    const int64_t together = p->pitch * (w->in[1] * w->kernel[2] + w->out[1] * w->kernel[1]) / LNT_POOL_LANES;
    if (p->pitch && w->out[1] * (w->kernel[1] + w->kernel[2]) > together + w->out[1] + A_PLANE)
        return LNT_OK;
    if (!p->pool->narrow_planes || w->in[0] != 1 || w->out[0] != 1 || w->kernel[0] != 1 || w->in[1] > ROWS ||
        w->out[1] > ROWS || w->in[2] > LAST || w->out[2] > LNT_POOL_LANES || w->kernel[1] > ROWS_MAX ||
        w->kernel[2] > ROWS_MAX)
        return LNT_OK;
    const int64_t n = w->kernel[2] * LNT_POOL_LANES;
    p->lanes = lnt_bump_alloc(site->memory, (size_t)n * sizeof *p->lanes, site->err);
    if (!p->lanes)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = lnt_window_at(w, 2, i % LNT_POOL_LANES, i / LNT_POOL_LANES);
        p->lanes[i] = at >= 0 && at < w->in[2] ? (int32_t)at : LAST;
    }
    p->pitch = w->out[2];
    p->lines = w->out[1];
    return LNT_OK;
}
#endif

/* Taps along axis a that can meet the input at once. */
static int64_t busy_taps(const lnt_window *w, unsigned a)
{
    return w->kernel[a] < w->in[a] ? w->kernel[a] : w->in[a];
}

/* The same of a whole window: of images without channels it may be too large for an integer. */
static double busy_window(const lnt_window *w)
{
    return (double)busy_taps(w, 0) * (double)busy_taps(w, 1) * (double)busy_taps(w, 2);
}

/* Items that are worth a slice of work, of `cost` each: a number that may be too large for an integer where
 * there are no items. */
static int64_t grain_of(double worth, double cost)
{
    return 1 + (int64_t)(worth / (cost + 1));
}

static lnt_status run_fused(lnt_kernel *k, const void *arg, const float *ring, int64_t image, int64_t row,
                            int64_t row_end, unsigned thread)
{
    pool_job job = *(const pool_job *)arg;
    job.x = ring;
    job.lines = job.p->fusion.ring_lines;
    const int64_t first = image * job.p->w.out[1];
    return deep_rows_float(k, &job, first + row, first + row_end, thread);
}

static lnt_status run_pool(lnt_kernel *k, const lnt_step *s)
{
    static const lnt_task_fn tasks[2][4] = {{plain_rows_float, deep_rows_float, indexed_rows, padded_planes},
                                            {plain_rows_double, deep_rows_double, indexed_rows}};
    const pool *p = s->params;
    const lnt_window *w = &p->w;
    pool_job job = {.p = p,
                    .x = lnt_in(k, s, 0),
                    .y = lnt_out(k, s, 0),
                    .scratch = (char *)lnt_scratch(k, s) + p->scratch_at,
                    .indices = lnt_out(k, s, 1),
                    .in_pixel = lnt_operand_pitch(s->in[0]),
                    .out_pixel = lnt_operand_pitch(s->out[0]),
                    .lines = p->batch * w->in[0] * w->in[1]};
    const unsigned how = job.indices ? 2 : p->pitch ? 3 : p->channels_last;
    const int64_t rows = w->out[0] * w->out[1];
    const double taps = busy_window(w);
    const int64_t items[4] = {p->batch * p->channels * rows * p->parts, p->batch * rows * p->parts,
                              p->batch * p->channels * rows * p->parts, p->batch * p->channels * w->out[0]};
    const double cost[4] = {(double)w->in[2] * (double)busy_taps(w, 1) +
                                (double)p->part * (double)p->taps / 8,
                            (double)p->part * (double)p->channels * taps, (double)p->part * taps,
                            (double)p->pitch * (double)(p->lines * (w->kernel[1] + w->kernel[2])) / 8};
    if (p->fusion.producer)
        return lnt_row_fusion_run(k, s, &p->fusion, w, grain_of(32768, cost[how]), run_fused, &job);
    lnt_task_fn task = tasks[s->in[0]->dtype == LNT_DOUBLE][how];
#ifdef __x86_64__
    task = p->lanes ? narrow_planes : task;
#endif
    return lnt_parallel(k, items[how], grain_of(32768, cost[how]), task, &job);
}

/* Where a window stands, and which of its taps meet the input. */
typedef struct standing {
    int64_t at[LNT_WINDOW_AXES], first[LNT_WINDOW_AXES], end[LNT_WINDOW_AXES];
} standing;

static void stand(const lnt_window *w, unsigned axis, int64_t at, standing *m)
{
    m->at[axis] = at;
    lnt_window_taps(w, axis, at, &m->first[axis], &m->end[axis]);
}

/* The pixels of image x that a window meets; how many there are. */
static int64_t find_pixels(const pool *p, const uint8_t *x, const standing *m, const uint8_t **pixel)
{
    const lnt_window *w = &p->w;
    const int64_t step = p->channels * (int64_t)p->element,
                  first = lnt_window_at(w, 2, m->at[2], m->first[2]);
    int64_t n = 0;
    for (int64_t tz = m->first[0]; tz < m->end[0]; tz++)
        for (int64_t ty = m->first[1]; ty < m->end[1]; ty++) {
            const int64_t line =
                lnt_window_at(w, 0, m->at[0], tz) * w->in[1] + lnt_window_at(w, 1, m->at[1], ty);
            int64_t at = (line * w->in[2] + first) * step;
            for (int64_t tx = m->first[2]; tx < m->end[2]; tx++, at += w->dilation[2] * step)
                pixel[n++] = x + at;
        }
    return n;
}

/* The largest of n pixels, of none the least that there is. */
static void take_largest(const pool *p, const uint8_t **pixel, int64_t n, uint8_t *y)
{
    const uint16_t least = 0xfc00; /* -infinity */
    if (p->element == 1 && n)
        p->pool->max_bytes(pixel, n, p->is_signed, y, p->channels);
    else if (p->element == 1)
        memset(y, p->is_signed ? INT8_MIN : 0, (size_t)p->channels);
    else if (n)
        p->half->max_rows((const void *const *)pixel, n, y, p->channels);
    else
        for (int64_t i = 0; i < p->channels; i++)
            memcpy(y + i * (int64_t)sizeof least, &least, sizeof least);
}

/* A row of windows of image x, whose place along the other axes m has. Where a window meets the same taps as the one
 * before it, its pixels are a step on. */
static void stored_row(const pool *p, const uint8_t *x, uint8_t *y, standing *m, const uint8_t **pixel)
{
    const int64_t step = p->channels * (int64_t)p->element;
    int64_t n = 0, first = 0, end = -1;
    for (int64_t ox = 0; ox < p->w.out[2]; ox++, y += step) {
        stand(&p->w, 2, ox, m);
        if (m->first[2] == first && m->end[2] == end)
            for (int64_t i = 0; i < n; i++)
                pixel[i] += p->w.stride[2] * step;
        else
            n = find_pixels(p, x, m, pixel);
        first = m->first[2];
        end = m->end[2];
        take_largest(p, pixel, n, y);
    }
}

/* Rows of outputs of channels-last images of bytes, or halves: the largest. */
static lnt_status stored_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pool_job *j = arg;
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    const uint8_t **pixel = (const uint8_t **)(void *)((char *)j->scratch + thread * p->thread_bytes);
    const int64_t step = p->channels * (int64_t)p->element;
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t image = item / (w->out[1] * w->out[0]);
        standing m;
        stand(w, 0, item / w->out[1] % w->out[0], &m);
        stand(w, 1, item % w->out[1], &m);
        stored_row(p, (const uint8_t *)j->x + image * lnt_volume(w->in) * step,
                   (uint8_t *)j->y + item * w->out[2] * step, &m, pixel);
    }
    return LNT_OK;
}

static lnt_status run_stored_pool(lnt_kernel *k, const lnt_step *s)
{
    const pool *p = s->params;
    LNT_ASSERT(p->channels_last && lnt_dtype_size((lnt_dtype)s->in[0]->dtype) == p->element);
    const lnt_window *w = &p->w;
    pool_job job = {.p = p, .x = lnt_in(k, s, 0), .y = lnt_out(k, s, 0), .scratch = lnt_scratch(k, s)};
    const double taps = busy_window(w);
    const double cost = (double)w->out[2] * (double)(p->channels / 16 + 8) * taps;
    return lnt_parallel(k, p->batch * w->out[0] * w->out[1], grain_of(GRAIN, cost), stored_rows, &job);
}

/* The largest of bytes is a byte, that of halves a half: nothing has to be widened. */
static bool stays_stored(const lnt_site *site, const pool *p)
{
    const lnt_dtype type = site->in[0]->dtype;
    return p->kind == MAX && p->channels_last && !lnt_output(site, 1) && type == site->out[0]->dtype &&
           (type == LNT_INT8 || type == LNT_UINT8 || (type == LNT_FLOAT16 && p->half->max_rows));
}

static lnt_status run_global_pool(lnt_kernel *k, const lnt_step *s)
{
    static const lnt_task_fn tasks[2][2] = {{plain_images_float, deep_images_float},
                                            {plain_images_double, deep_images_double}};
    const pool *p = s->params;
    const bool is_double = s->in[0]->dtype == LNT_DOUBLE;
    pool_job job = {.p = p, .x = lnt_in(k, s, 0), .y = lnt_out(k, s, 0), .scratch = lnt_scratch(k, s)};
    const int64_t items = p->batch * (p->channels_last ? p->parts : p->channels);
    const int64_t work = p->channels_last ? p->positions / p->parts * p->channels : p->positions;
    LNT_TRY(lnt_parallel(k, items, 1 + GRAIN / (work + 1), tasks[is_double][p->channels_last], &job));
    if (!p->channels_last)
        return LNT_OK;
    return lnt_parallel(k, p->batch, 1 + GRAIN / (p->parts * p->channels + 1),
                        is_double ? join_images_double : join_images_float, &job);
}

lnt_status lnt_shape_pool(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    lnt_window w;
    int64_t dims[LNT_MAX_RANK] = {x->dims[0], x->dims[1]};
    LNT_TRY(lnt_window_of(site, &w));
    for (unsigned d = 2; d < x->rank; d++)
        dims[d] = w.out[LNT_WINDOW_AXES + d - x->rank];
    lnt_set_dims(site, 0, x->rank, dims);
    lnt_set_dims(site, 1, x->rank, dims);
    return LNT_OK;
}

lnt_status lnt_shape_global_pool(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    int64_t dims[LNT_MAX_RANK];
    LNT_REQUIRE(x->rank >= 2, site->err, LNT_E_SHAPE, "the input must have a batch and a channel axis");
    for (unsigned d = 0; d < x->rank; d++)
        dims[d] = d < 2 ? x->dims[d] : 1;
    lnt_set_dims(site, 0, x->rank, dims);
    return LNT_OK;
}

/* What all pooling operators share. */
static pool *bind_common(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    const unsigned id = site->node->op->id;
    pool *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return NULL;
    p->row = site->kernels->row;
    p->pool = site->kernels->pool;
    p->half = site->kernels->half;
    p->kind = id == LNT_ID_MaxPool || id == LNT_ID_GlobalMaxPool           ? MAX
              : id == LNT_ID_AveragePool || id == LNT_ID_GlobalAveragePool ? AVERAGE
                                                                           : LP;
    p->order = (double)lnt_attr_i(site->node, "p", 2);
    p->batch = x->dims[1] ? x->dims[0] : 0; /* without channels there is nothing to go through */
    p->channels = x->dims[1];
    p->positions = 1;
    for (unsigned d = 2; d < x->rank; d++)
        p->positions *= x->dims[d];
    /* One channel is in either order, and of rows more than an element is taken at once. */
    p->channels_last = x->order == LNT_ORDER_CHANNELS_LAST && p->channels != 1;
    return p;
}

/* For channels-last images: where no tap is missing, and whether joining the rows of a window first (stride
 * pixels of each for an output, then its taps) is less work than taking all of its pixels. */
static void plan_deep_rows(pool *p)
{
    enum { COST_OF_JOINING = 2 };
    const lnt_window *w = &p->w;
    const int64_t last = w->in[2] - 1 - (w->kernel[2] - 1) * w->dilation[2] + w->before[2];
    const int64_t rows = busy_taps(w, 0) * busy_taps(w, 1), taps = w->kernel[2];
    p->inner[0] = (w->before[2] + w->stride[2] - 1) / w->stride[2];
    p->inner[1] = last < 0 ? 0 : last / w->stride[2] + 1;
    if (p->inner[1] > w->out[2])
        p->inner[1] = w->out[2];
    p->joins = rows * taps > rows * w->stride[2] + taps + COST_OF_JOINING;
}

/* Of a window and a padding that are much wider than the input only what can meet it has a place. */
static void plan_padding(pool *p)
{
    enum { SHORT = 512, TOGETHER = 4 };
    const lnt_window *w = &p->w;
    const int64_t d = w->dilation[2], last = (w->out[2] - 1) * w->stride[2];
    const int64_t met = (w->before[2] + w->in[2] + d - 1) / d, end = w->kernel[2] < met ? w->kernel[2] : met;
    int64_t first = w->before[2] > last ? (w->before[2] - last) / d : 0;
    if (first >= end)
        first = end > 0 ? end - 1 : 0;
    p->taps = end > first ? end - first : 1;
    p->inside = w->before[2] - first * d;
    const int64_t reach = last + (p->taps - 1) * d + 1;
    p->padded = reach > p->inside + w->in[2] ? reach : p->inside + w->in[2];
    p->together = p->padded < SHORT ? TOGETHER : 1;
}

/* Images whose rows fill few vectors, of such a size that they stay in the first-level cache, twice over. */
static void plan_planes(pool *p, bool may)
{
    enum { FEW = ROWS_MAX, MANY = 4096, NARROW = 24, STRIDE = 3 };
    const lnt_window *w = &p->w;
    int64_t extent[LNT_WINDOW_AXES]; /* with the padding, and with what windows reach behind that */
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        const int64_t last = (w->out[a] - 1) * w->stride[a] + (w->kernel[a] - 1) * w->dilation[a] + 1,
                      padded = w->in[a] + w->before[a] + w->after[a];
        extent[a] = last > padded ? last : padded;
        if (w->out[a] < 1 || w->in[a] < 1 || extent[a] > MANY)
            return;
    }
    const bool strided = w->stride[1] != 1 || w->stride[2] != 1;
    if (!may || extent[1] * extent[2] > MANY || w->in[2] > (strided ? LNT_POOL_WIDE - 1 : NARROW) ||
        w->kernel[1] + w->kernel[2] > FEW || busy_taps(w, 0) > FEW || w->stride[1] > STRIDE ||
        w->stride[2] > STRIDE)
        return;
    p->pitch = extent[2];
    p->padded_lines = extent[1];
    p->lines = (w->out[1] - 1) * w->stride[1] + 1;
    p->reach = (w->kernel[2] - 1) * w->dilation[2];
}

/* A row of outputs is cut where its windows are more work than joining the rows they cover, and a lot: a
 * deadline is heard between parts. */
static void plan_parts(pool *p)
{
    enum { A_LOT = 1 << 20 };
    const lnt_window *w = &p->w;
    const double width = p->channels_last ? (double)p->channels : 1;
    const double join = (double)w->in[2] * width * (double)busy_taps(w, 0) * (double)busy_taps(w, 1);
    const double part = 1 + (join > A_LOT ? join : A_LOT) / ((double)p->taps * width + 1);
    p->part = part < (double)w->out[2] ? (int64_t)part : w->out[2];
    p->parts = p->part ? (w->out[2] + p->part - 1) / p->part : 0;
}

/* Planes of few rows, that lie in the first-level cache together, if that takes fewer calls than rows alike of each.
 * No window is without a line. */
static void plan_beside(pool *p)
{
    enum { NEAR = 4096, FEW = 12 };
    const lnt_window *w = &p->w;
    int64_t edges = 0;
    p->planes = 1;
    if (p->kind == LP || p->together == 1 || p->parts != 1 || w->in[2] < LNT_POOL_WIDE || w->in[2] > NEAR)
        return;
    for (unsigned a = 0; a < 2; a++) {
        if (w->in[a] < 1 || w->in[a] > NEAR || w->out[a] > NEAR)
            return;
        for (int64_t o = 0, first, end; o < w->out[a]; o++) {
            lnt_window_taps(w, a, o, &first, &end);
            if (first == end)
                return;
            edges += a == 1 && end - first < w->kernel[1];
        }
    }
    const int64_t planes = NEAR / lnt_volume(w->in), calls = edges + (edges < w->out[1]);
    if (busy_taps(w, 0) * busy_taps(w, 1) <= ROWS_MAX && w->out[1] <= FEW && w->out[1] < calls * planes)
        p->planes = planes;
}

/* Rows are joined with all that is stored between their pixels: those are read side by side. */
static void bind_pitched(lnt_site *site, const pool *p)
{
    if (!p->channels_last || lnt_output(site, 1))
        return;
    if (!p->joins && busy_taps(&p->w, 0) * busy_taps(&p->w, 1) <= ROWS_MAX)
        lnt_bind_pitched_input(site, 0);
    lnt_bind_pitched(site);
}

/* Is there one window, the image? */
static bool is_global(const lnt_window *w)
{
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        if (w->out[a] != 1 || w->kernel[a] != w->in[a] || w->dilation[a] != 1 || w->before[a] || w->after[a])
            return false;
    return true;
}

/* Threads share a channels-last image. How many parts it is in depends on its size alone, as its sums do. */
static lnt_status bind_global(lnt_site *site, pool *p)
{
    enum { FEW = 32, MANY = 128 };
    p->parts = p->kind == LP || p->positions < FEW ? 1 : p->positions < MANY ? 4 : 8;
    if (p->channels_last && p->parts > 1)
        lnt_bind_scratch(site, (size_t)(p->batch * p->parts * p->channels) *
                                   lnt_dtype_size(lnt_site_real_type(site)));
    site->step->run = run_global_pool;
    return lnt_bind_widened(site, 1, 1);
}

lnt_status lnt_bind_pool(lnt_site *site)
{
    pool *p = bind_common(site);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_window_of(site, &p->w));
    p->count_pad = lnt_attr_i(site->node, "count_include_pad", 0) != 0;
    p->column_major = lnt_attr_i(site->node, "storage_order", 0) != 0;
    const lnt_window *w = &p->w;
    if (stays_stored(site, p)) {
        p->element = lnt_dtype_size((lnt_dtype)site->in[0]->dtype);
        p->is_signed = site->in[0]->dtype == LNT_INT8;
        p->thread_bytes = lnt_round_up((size_t)busy_window(w) * sizeof(uint8_t *), LNT_ALIGN);
        lnt_bind_scratch(site, p->thread_bytes * site->threads);
        site->step->run = run_stored_pool;
        return LNT_OK;
    }
    p->element = lnt_dtype_size(lnt_site_real_type(site));
    const bool places = lnt_output(site, 1) != NULL;
    LNT_REQUIRE(!places || !p->channels_last, site->err, LNT_E_MODEL, "indices are of images in ONNX order");
    if (is_global(w) && !places)
        return bind_global(site, p);
    plan_padding(p);
    plan_deep_rows(p);
    plan_parts(p);
    plan_beside(p);
    const bool may = !places && p->kind != LP && !p->channels_last && lnt_site_real_type(site) == LNT_FLOAT;
    plan_planes(p, may);
#ifdef __x86_64__
    LNT_TRY(may ? plan_narrow(site, p) : LNT_OK);
#endif
    const int64_t planes = p->pitch * (w->in[1] + 2 * p->padded_lines) + p->reach + 2 * LNT_POOL_SLACK;
    const int64_t row = p->pitch           ? planes
                        : p->channels_last ? w->in[2] * p->channels
                                           : p->together * p->padded + LNT_POOL_SLACK;
    p->thread_bytes = lnt_round_up((size_t)row * sizeof(double), LNT_ALIGN);
    const int64_t shares = p->pitch ? whole_vectors(p->pitch * p->lines) : w->out[2];
    p->share = lnt_bump_alloc(site->memory, (size_t)shares * sizeof(double), site->err);
    if (!p->share)
        return LNT_E_MEMORY;
    fill_share(p, lnt_site_real_type(site) == LNT_DOUBLE);
    if (p->channels_last && p->kind != LP && p->parts == 1 && !lnt_output(site, 1))
        lnt_bind_row_fusion(site, w, 1, &p->fusion, &p->scratch_at);
    lnt_bind_scratch(site, p->scratch_at + p->thread_bytes * site->threads);
    bind_pitched(site, p);
    site->step->run = run_pool;
    return lnt_bind_widened(site, 1, 1);
}

lnt_status lnt_bind_global_pool(lnt_site *site)
{
    pool *p = bind_common(site);
    return p ? bind_global(site, p) : LNT_E_MEMORY;
}
