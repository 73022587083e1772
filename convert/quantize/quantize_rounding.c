/* quantize_rounding.c — see quantize_rounding.h. */
#include "convert/quantize/quantize_rounding.h"

#include "base/lnt_assert.h"
#include "convert/graph/edit.h"
#include "ops/conv/conv.h"

#include <math.h>
#include <string.h>

lnt_status lnt_rounding_make(const lnt_graph *g, const lnt_gnode *n, size_t samples, lnt_rounding **out)
{
    enum { TERMS_MOST = 1280, SUMS_MOST = 1 << 24 };
    const lnt_operand *w = lnt_ginfo(g, n->in[1]);
    int64_t groups = 1, terms = 1;
    *out = NULL;
    if (lnt_is(n, Conv)) {
        groups = lnt_gnode_int(n, "group", 1);
        for (unsigned i = 1; i < w->rank; i++)
            terms *= w->dims[i];
    } else if (w->rank == 2) {
        terms = w->dims[lnt_gnode_int(n, "transB", 0) != 0];
    }
    if (!samples || terms < 2 || terms > TERMS_MOST || groups < 1 || groups > SUMS_MOST / (terms * terms))
        return LNT_OK;
    lnt_rounding *r = *out = lnt_alloc_zero(g->memory.allocator, 1, sizeof *r, g->err);
    if (!r)
        return LNT_E_MEMORY;
    *r = (lnt_rounding){.terms = terms, .groups = groups};
    r->sums = lnt_alloc_zero(g->memory.allocator, (size_t)(groups * terms * terms), sizeof *r->sums, g->err);
    r->input = lnt_alloc_zero(g->memory.allocator, (size_t)terms, sizeof *r->input, g->err);
    return r->sums && r->input ? LNT_OK : LNT_E_MEMORY;
}

void lnt_rounding_free(const lnt_graph *g, lnt_rounding *r)
{
    if (!r)
        return;
    lnt_free(g->memory.allocator, r->sums);
    lnt_free(g->memory.allocator, r->input);
    lnt_free(g->memory.allocator, r);
}

/* ---- looking ---- */

/* y[i] += a * x[i] */
static void add_scaled(float *y, const float *x, float a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

/* Adds the products of r->input with itself, of the upper half. */
static void add_products(lnt_rounding *r, int64_t group)
{
    const int64_t n = r->terms;
    float *h = r->sums + group * n * n;
    for (int64_t i = 0; i < n; i++)
        if (r->input[i] != 0)
            add_scaled(h + i * n + i, r->input + i, r->input[i], n - i);
    r->any = true;
}

/* Of so many places where columns meet inputs one in how many is looked at. */
static int64_t places_apart(const lnt_rounding *r, int64_t places, size_t samples)
{
    const double products = 4e8, most = 8192; /* of a layer; and places */
    const double wanted =
        fmin(products / ((double)r->terms * (double)r->terms / 2 * (double)r->groups), most);
    const double apart = (double)places * (double)samples / fmax(wanted, 1);
    return apart < 1 ? 1 : (int64_t)fmin(ceil(apart), (double)places) | 1;
}

/* The inputs that a filter of the group meets at an output of an image. */
static void take_window(const lnt_conv *c, const float *image, int64_t group, int64_t at, float *to)
{
    const lnt_window *w = &c->w;
    const int64_t x = at % w->out[2], y = at / w->out[2] % w->out[1], z = at / w->out[2] / w->out[1];
    for (int64_t channel = group * c->channels; channel < (group + 1) * c->channels; channel++)
        for (int64_t tz = 0; tz < w->kernel[0]; tz++)
            for (int64_t ty = 0; ty < w->kernel[1]; ty++)
                for (int64_t tx = 0; tx < w->kernel[2]; tx++) {
                    const int64_t iz = lnt_window_at(w, 0, z, tz), iy = lnt_window_at(w, 1, y, ty),
                                  ix = lnt_window_at(w, 2, x, tx);
                    const bool inside =
                        iz >= 0 && iz < w->in[0] && iy >= 0 && iy < w->in[1] && ix >= 0 && ix < w->in[2];
                    *to++ = inside ? image[((channel * w->in[0] + iz) * w->in[1] + iy) * w->in[2] + ix] : 0;
                }
}

static lnt_status look_at_windows(const lnt_graph *g, const lnt_gnode *n, lnt_rounding *r,
                                  const lnt_tensor *x, size_t samples)
{
    lnt_node view;
    lnt_conv c = {0};
    lnt_operand image = {.dtype = LNT_FLOAT, .rank = (uint8_t)x->rank}, weights = *lnt_ginfo(g, n->in[1]);
    lnt_operand *in[] = {&image, &weights};
    memcpy(image.dims, x->dims, x->rank * sizeof *x->dims);
    lnt_gnode_view(n, &view);
    view.n_in = 2;
    const lnt_site site = {.node = &view, .in = in, .n_in = 2, .err = g->err};
    LNT_TRY(lnt_conv_of(&site, &c));
    const int64_t plane = lnt_volume(c.w.out), places = c.batch * plane;
    const int64_t size = c.groups * c.channels * lnt_volume(c.w.in);
    for (int64_t at = 0; at < places; at += places_apart(r, places, samples))
        for (int64_t group = 0; group < c.groups; group++) {
            take_window(&c, (const float *)x->data + at / plane * size, group, at % plane, r->input);
            add_products(r, group);
        }
    return LNT_OK;
}

lnt_status lnt_rounding_look(const lnt_graph *g, const lnt_gnode *n, lnt_rounding *r, const lnt_tensor *x,
                             size_t samples)
{
    const int64_t count = (int64_t)(x->bytes / sizeof(float)), rows = count / r->terms;
    if (x->dtype != LNT_FLOAT || !count)
        return LNT_OK;
    if (lnt_is(n, Conv))
        return look_at_windows(g, n, r, x, samples);
    for (int64_t at = 0; at < rows; at += places_apart(r, rows, samples)) {
        memcpy(r->input, (const float *)x->data + at * r->terms, (size_t)r->terms * sizeof(float));
        add_products(r, 0);
    }
    return LNT_OK;
}

/* ---- solving ---- */

/* R of H + d I by Cholesky, d a hundredth of what the diagonal is on average: what was seen is not all there
 * is. */
static void factor(float *h, int64_t n)
{
    LNT_ASSERT(n > 0);
    double trace = 0;
    for (int64_t i = 0; i < n; i++)
        trace += (double)h[i * n + i];
    const float more = (float)(0.01 * trace / (double)n);
    for (int64_t i = 0; i < n; i++)
        h[i * n + i] += more > 0 ? more : 1;
    for (int64_t k = 0; k < n; k++) {
        float *row = h + k * n;
        const float root = sqrtf(fmaxf(row[k], more > 0 ? more * 1e-3f : 1e-3f));
        for (int64_t j = k; j < n; j++)
            row[j] = j == k ? root : row[j] / root;
        for (int64_t i = k + 1; i < n; i++)
            if (row[i] != 0)
                add_scaled(h + i * n + i, row + i, -row[i], n - i);
    }
}

void lnt_rounding_solve(lnt_rounding *r)
{
    if (!r || !r->any || r->solved)
        return;
    for (int64_t group = 0; group < r->groups; group++)
        factor(r->sums + group * r->terms * r->terms, r->terms);
    r->solved = true;
}

/* ---- rounding ---- */

static float product(const float *x, const float *y, int64_t n)
{
    enum { LANES = 8 };
    float sum[LANES] = {0}, all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            sum[k] += x[i + k] * y[i + k];
    for (; i < n; i++)
        sum[0] += x[i] * y[i];
    for (int k = 0; k < LANES; k++)
        all += sum[k];
    return all;
}

/* A column's weights, `step` apart, and what its inputs are divided by. */
typedef struct column {
    const float *R, *w, *divided;
    int64_t terms, step;
    float scale;
    float *error; /* [terms] of the weights as the inputs meet them */
} column;

/* Rounds term k, to the nearest integer or for those behind it, whose error is known; the part of |R error| it
 * settles. */
static float round_term(const column *c, int64_t k, bool nearest, int8_t *rounded)
{
    enum { MOST = 127 };
    const float *row = c->R + k * c->terms, by = c->divided ? c->divided[k] : 1, w = c->w[k * c->step];
    const float behind = product(row + k + 1, c->error + k + 1, c->terms - k - 1);
    const float wanted = nearest ? w : w + behind / row[k] * by;
    const float q = fmaxf(-MOST, fminf(MOST, rintf(wanted / c->scale)));
    *rounded = (int8_t)q;
    c->error[k] = (w - q * c->scale) / by;
    return row[k] * c->error[k] + behind;
}

/* From the last term to the first; |R error|^2. */
static double round_column(const column *c, bool nearest, int8_t *rounded)
{
    double all = 0;
    for (int64_t k = c->terms - 1; k >= 0; k--) {
        const double part = (double)round_term(c, k, nearest, &rounded[k * c->step]);
        all += part * part;
    }
    return all;
}

lnt_status lnt_round_weights(lnt_graph *g, const lnt_rounding *r, const lnt_operand *w, bool across,
                             uint32_t scale, float factor, const float *divided, uint32_t rounded)
{
    if (!r || !r->solved)
        return LNT_OK;
    const int64_t columns = lnt_operand_count(w) / r->terms, in_group = columns / r->groups;
    const float *scales = g->value[scale].info.data;
    int8_t *to = (int8_t *)g->value[rounded].info.data; /* the graph's own copy */
    column c = {.terms = r->terms, .step = across ? columns : 1};
    c.error = lnt_alloc_zero(g->memory.allocator, (size_t)r->terms, sizeof *c.error, g->err);
    if (!c.error)
        return LNT_E_MEMORY;
    for (int64_t n = 0; n < columns; n++) {
        const int64_t group = n / in_group, at = across ? n : n * r->terms;
        c.R = r->sums + group * r->terms * r->terms;
        c.w = (const float *)w->data + at;
        c.scale = scales[n] / factor;
        c.divided = divided ? divided + group * r->terms : NULL;
        /* A weight that is clipped cannot make up for the error of others. */
        if (c.scale > 0 && round_column(&c, true, to + at) > round_column(&c, false, to + at))
            continue;
        if (c.scale > 0)
            round_column(&c, true, to + at);
    }
    lnt_free(g->memory.allocator, c.error);
    return LNT_OK;
}
