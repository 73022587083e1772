/* matmul_number.c — MatMul and Gemm of double and integers.
 *
 * A panel of columns, as wide as the level's tile, for a block of rows is a work item. Where enough rows meet it, or
 * B's columns are not side by side, the panel is copied into scratch memory, a part of K at a time that stays in the
 * first-level cache; else it is read in place, as far as B reaches. What alpha and beta do comes after, row by row. */
#include "ops/gemm/matmul.h"

#include "base/checked.h"
#include "ops/element.h"
#include "ops/gemm/blas.h"
#include "ops/gemm/number_kernels.h"

#include <string.h>

enum { BLOCK_ROWS = 32 * LNT_NUMBER_ROWS /* of a work item */, DEPTH = 512, PACKED_ROWS = 16, GRAIN = 16384 };

typedef struct number_product {
    lnt_matmul m;
    lnt_number_fn tile;
    void (*blend)(const lnt_matmul *m, const void *c, int64_t row, void *y);
    int64_t size, width, panels; /* bytes of an element, columns of a panel, panels of a matrix */
    bool packs, masks;
    size_t panel_bytes; /* of a thread's panel */
} number_product;

typedef struct number_call {
    const number_product *p;
    const char *a, *b, *c;
    char *y, *packed;
} number_call;

/* ---- alpha and beta ---- */

/* y = alpha * y + beta * c for a row of Y; exact where the attributes are 1. */
#define BLEND(name, type, factor)                                                                            \
    static void blend_##name(const lnt_matmul *m, const void *c, int64_t row, void *y)                       \
    {                                                                                                        \
        const type alpha = (type)factor(m->p.alpha), beta = (type)factor(m->p.beta);                         \
        const type *plus = c ? (const type *)c + row * m->stride_c[0] : NULL;                                \
        type *to = y;                                                                                        \
        for (int64_t j = 0; j < m->p.N; j++) {                                                               \
            const type own = plus ? plus[j * m->stride_c[1]] : 0;                                            \
            to[j] = (alpha == 1 ? to[j] : alpha * to[j]) + (beta == 1 ? own : beta * own);                   \
        }                                                                                                    \
    }
#define AS_DOUBLE(x) (double)(x)
#define AS_INT64(x) lnt_saturate((double)(x), INT64_MIN, INT64_MAX)
BLEND(f64, double, AS_DOUBLE)
BLEND(i32, uint32_t, AS_INT64) /* unsigned: wraps alike, and overflow is defined */
BLEND(i64, uint64_t, AS_INT64)

/* ---- panels ---- */

/* Columns side by side, `bytes` of each of n rows. */
static inline void copy_rows(const char *b, int64_t step, int64_t n, char *to, const size_t bytes)
{
    for (int64_t e = 0; e < n; e++, b += step, to += bytes)
        memcpy(to, b, bytes);
}

/* A whole panel of columns side by side. */
static void copy_panel(const char *b, int64_t step, int64_t n, char *to, size_t bytes)
{
    switch (bytes) { /* of known sizes, without a call */
    case 32: copy_rows(b, step, n, to, 32); return;
    case 64: copy_rows(b, step, n, to, 64); return;
    case 128: copy_rows(b, step, n, to, 128); return;
    default: copy_rows(b, step, n, to, bytes);
    }
}

/* n elements of K of a panel, from b on; it has `columns` columns and the tile's width. */
static void pack_panel(const number_product *p, const char *b, int64_t columns, int64_t n, char *to)
{
    const lnt_matmul *m = &p->m;
    const int64_t step = m->column_b * p->size, row = m->row_b * p->size, to_row = p->width * p->size;
    if (m->column_b == 1 && columns == p->width) {
        copy_panel(b, row, n, to, (size_t)to_row);
        return;
    }
    if (columns < p->width && n > 0) /* there may be no memory for none */
        memset(to, 0, (size_t)(n * to_row));
    for (int64_t e = 0; e < n; e++, b += row, to += to_row) {
        if (p->size == 8)
            _Pragma("GCC unroll 2") for (int64_t j = 0; j < columns; j++) memcpy(to + j * 8, b + j * step, 8);
        else
            for (int64_t j = 0; j < columns; j++)
                memcpy(to + j * 4, b + j * step, 4);
    }
}

/* ---- rows ---- */

/* The tile that *t describes: a few rows at a time where there are fewer columns than it writes. */
static void run_tile(const number_product *p, const lnt_number_tile *t)
{
    if (t->columns == p->width || p->masks) {
        p->tile(t);
        return;
    }
    char part[LNT_NUMBER_ROWS * LNT_NUMBER_PANEL_BYTES_MAX], *y = t->y;
    const int64_t row = t->row_y * p->size, part_row = p->width * p->size;
    const size_t bytes = (size_t)(t->columns * p->size);
    lnt_number_tile of = *t;
    of.y = part;
    of.row_y = p->width;
    for (int64_t at = 0; at < t->rows; at += of.rows, y += of.rows * row) {
        of.rows = lnt_least(LNT_NUMBER_ROWS, t->rows - at);
        of.a = (const char *)t->a + at * t->row_a * p->size;
        if (t->accumulate)
            memset(part, 0, sizeof part);
        for (int64_t i = 0; t->accumulate && i < of.rows; i++)
            memcpy(part + i * part_row, y + i * row, bytes);
        p->tile(&of);
        for (int64_t i = 0; i < of.rows; i++)
            memcpy(y + i * row, part + i * part_row, bytes);
    }
}

/* Rows of a panel from column `first` on that are wholly within B; behind its last column they hold those of others. */
static int64_t rows_within(const number_product *p, int64_t first)
{
    const int64_t left = p->m.p.K * p->m.p.N - first - p->width;
    return p->packs || left < 0 ? 0 : left / p->m.p.N + 1;
}

/* Rows [row, end) of an entry of the batch, columns of one panel. */
static void multiply_panel(const number_call *call, int64_t entry, int64_t row, int64_t end, int64_t panel,
                           char *packed)
{
    const number_product *p = call->p;
    const lnt_matmul *m = &p->m;
    const int64_t first = panel * p->width, columns = lnt_least(p->width, m->p.N - first);
    const int64_t within = rows_within(p, first);
    const char *b = call->b + ((int64_t)m->offset_b[entry] + first * m->column_b) * p->size;
    int64_t e = 0;
    do {
        const bool in_place = e < within;
        lnt_number_tile t = {.a = call->a +
                                  ((int64_t)m->offset_a[entry] + row * m->row_a + e * m->column_a) * p->size,
                             .b = b + e * m->row_b * p->size,
                             .y = call->y + ((entry * m->p.M + row) * m->p.N + first) * p->size,
                             .rows = end - row,
                             .columns = columns,
                             .row_a = m->row_a,
                             .column_a = m->column_a,
                             .row_b = m->row_b,
                             .row_y = m->p.N,
                             .depth = lnt_least(DEPTH, (in_place ? within : m->p.K) - e),
                             .accumulate = e > 0};
        if (!in_place) {
            pack_panel(p, t.b, columns, t.depth, packed);
            t.b = packed;
            t.row_b = p->width;
        }
        run_tile(p, &t);
        e += t.depth;
    } while (e < m->p.K);
}

static int64_t row_blocks(const lnt_matmul *m)
{
    return (m->p.M + BLOCK_ROWS - 1) / BLOCK_ROWS;
}

static lnt_status multiply_panels(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const number_call *call = arg;
    const number_product *p = call->p;
    const int64_t blocks = row_blocks(&p->m);
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item / p->panels % blocks * BLOCK_ROWS;
        multiply_panel(call, item / p->panels / blocks, row, lnt_least(row + BLOCK_ROWS, p->m.p.M),
                       item % p->panels, call->packed + thread * p->panel_bytes);
    }
    return LNT_OK;
}

static lnt_status blend_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const number_call *call = arg;
    const lnt_matmul *m = &call->p->m;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++)
        call->p->blend(m, call->c, i % m->p.M, call->y + i * m->p.N * call->p->size);
    return LNT_OK;
}

static lnt_status run_number(lnt_kernel *k, const lnt_step *s)
{
    const number_product *p = s->params;
    const lnt_matmul *m = &p->m;
    number_call call = {.p = p,
                        .a = lnt_in(k, s, 0),
                        .b = lnt_in(k, s, 1),
                        .c = m->has_c ? lnt_in(k, s, 2) : NULL,
                        .y = lnt_out(k, s, 0),
                        .packed = lnt_scratch(k, s)};
    const int64_t blocks = row_blocks(m), rows = m->batch * m->p.M;
    if (rows * m->p.N == 0)
        return LNT_OK;
    LNT_TRY(lnt_parallel(k, m->batch * blocks * p->panels,
                         1 + GRAIN / (lnt_least(m->p.M, BLOCK_ROWS) * m->p.K * p->width + 1), multiply_panels,
                         &call));
    return p->blend ? lnt_parallel(k, rows, 1 + GRAIN / m->p.N, blend_rows, &call) : LNT_OK;
}

#ifdef LNT_OPENBLAS
enum { BLAS_ROWS = 64 /* of Y in one call */ };

static lnt_status blas_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    const number_call *r = arg;
    const lnt_matmul *m = &r->p->m;
    const int64_t blocks = (m->p.M + BLAS_ROWS - 1) / BLAS_ROWS, N = m->p.N;
    const double *a = (const double *)(const void *)r->a, *b = (const double *)(const void *)r->b;
    const double *c = (const double *)(const void *)r->c;
    for (int64_t item = begin; item < end; item++) {
        const int64_t entry = item / blocks, row = item % blocks * BLAS_ROWS;
        const lnt_blas_call call = {.trans_a = m->p.trans_a,
                                    .trans_b = m->p.trans_b,
                                    .M = m->p.M - row < BLAS_ROWS ? m->p.M - row : BLAS_ROWS,
                                    .N = N,
                                    .K = m->p.K,
                                    .lda = m->p.trans_a ? m->p.M : m->p.K,
                                    .ldb = m->p.trans_b ? m->p.K : N,
                                    .alpha = (double)m->p.alpha,
                                    .beta = m->has_c ? (double)m->p.beta : 0};
        double *y = (double *)(void *)r->y + (entry * m->p.M + row) * N;
        for (int64_t i = 0; m->has_c && i < call.M; i++)
            for (int64_t j = 0; j < N; j++)
                y[i * N + j] = c[(row + i) * m->stride_c[0] + j * m->stride_c[1]];
        lnt_blas_f64(&call, a + m->offset_a[entry] + row * m->row_a, b + m->offset_b[entry], y);
    }
    return LNT_OK;
}

static lnt_status run_blas(lnt_kernel *k, const lnt_step *s)
{
    const number_product *p = s->params;
    const lnt_matmul *m = &p->m;
    number_call r = {
        p, lnt_in(k, s, 0), lnt_in(k, s, 1), m->has_c ? lnt_in(k, s, 2) : NULL, lnt_out(k, s, 0), NULL};
    return lnt_parallel(k, m->batch * ((m->p.M + BLAS_ROWS - 1) / BLAS_ROWS),
                        1 + 16384 / (BLAS_ROWS * m->p.K * m->p.N + 1), blas_rows, &r);
}

/* Extents of 32 bits, none of them 0. */
static bool blas_takes(const lnt_site *site, const lnt_matmul *m)
{
    const lnt_matrices *p = &m->p;
    return site->in[0]->dtype == LNT_DOUBLE && p->M > 0 && p->N > 0 && p->K > 0 && p->M <= INT32_MAX &&
           p->N <= INT32_MAX && p->K <= INT32_MAX;
}
#endif

static lnt_status choose_kernels(lnt_site *site, number_product *p)
{
    const lnt_number_kernels *kernels = site->kernels->number;
    const lnt_dtype type = (lnt_dtype)site->in[0]->dtype;
    const bool plain = p->m.p.alpha == 1.0f && !p->m.has_c;
    p->size = (int64_t)lnt_dtype_size(type);
    switch (type) {
    case LNT_DOUBLE:
        p->tile = kernels->f64;
        p->blend = plain ? NULL : blend_f64;
        break;
    case LNT_INT32:
    case LNT_UINT32:
        p->tile = kernels->i32;
        p->blend = plain ? NULL : blend_i32;
        break;
    case LNT_INT64:
    case LNT_UINT64:
        p->tile = kernels->i64;
        p->blend = plain ? NULL : blend_i64;
        break;
    default: return lnt_bind_unsupported_type(site, type);
    }
    p->masks = kernels->masks;
    p->width = (int64_t)kernels->panel_bytes / p->size;
    p->panels = (p->m.p.N + p->width - 1) / p->width;
    return LNT_OK;
}

/* Does B go into panels? What few rows meet, for its extent, is read in place, but for its last rows: these are a pass
 * of their own. */
static void plan_panels(lnt_site *site, number_product *p)
{
    const lnt_matmul *m = &p->m;
    p->packs = m->column_b != 1 || (m->p.M >= PACKED_ROWS && (m->p.N > p->width || m->p.K < 2 * m->p.M));
    p->panel_bytes =
        p->packs || m->p.N % p->width != 0 ? (size_t)(lnt_least(m->p.K, DEPTH) * p->width * p->size) : 0;
    lnt_bind_scratch(site, p->panel_bytes * site->threads);
}

lnt_status lnt_bind_matmul_number(lnt_site *site)
{
    lnt_matmul *m;
    LNT_TRY(lnt_matmul_begin(site, &m));
    lnt_matmul_scale_offsets(m, (size_t)(m->p.K * m->p.N));
    if (!LNT_TRIMMED && lnt_bind_outer_double(site, m))
        return LNT_OK;
    m->row_a = m->p.trans_a ? 1 : m->p.K;
    m->column_a = m->p.trans_a ? m->p.M : 1;
    m->row_b = m->p.trans_b ? 1 : m->p.N;
    m->column_b = m->p.trans_b ? m->p.K : 1;
    number_product *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    *p = (number_product){.m = *m};
    LNT_TRY(choose_kernels(site, p));
    plan_panels(site, p);
    site->step->run = run_number;
#ifdef LNT_OPENBLAS
    if (blas_takes(site, m))
        site->step->run = run_blas;
#endif
    return LNT_OK;
}
