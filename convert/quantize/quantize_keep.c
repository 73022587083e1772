/* quantize_keep.c — layers that stay in float whatever a trial says: those that the user names, and fixed bases as the
 * DFT's where nothing shows what they cost.
 *
 * A transform takes one range of its input to many coefficients, weak ones beside strong ones, and back. The steps of 8
 * bits are noise as strong in all of them, in which the weak ones drown, and no training has come to terms with that.
 *
 * What was trained is not orthogonal: of n vectors of K independent numbers the squared cosines of one with the others
 * come to (n - 1) / K. */
#include "convert/quantize/quantize.h"

#include "base/lnt_assert.h"
#include "base/nearest.h"
#include "convert/graph/edit.h"

#include <fnmatch.h>
#include <string.h>

/* ---- by name ---- */

/* Does a pattern name the layer? A name may hold what means something in patterns. */
static bool is_named(const lnt_qlayer *l, const char *pattern)
{
    return strcmp(l->measured.node, pattern) == 0 || fnmatch(pattern, l->measured.node, 0) == 0;
}

static void keep_float(lnt_qlayer *l, const char *why)
{
    LNT_ASSERT(why);
    l->unfit = true;
    l->chosen = false;
    l->why = l->formless ? l->why : why;
}

static lnt_status keep_named(const lnt_qlayers *layers, const char *pattern, lnt_error *err)
{
    lnt_nearest nearest = {.wanted = pattern};
    bool any = false;
    for (size_t i = 0; i < layers->n; i++) {
        lnt_nearest_add(&nearest, layers->layer[i].measured.node);
        if (!is_named(&layers->layer[i], pattern))
            continue;
        any = true;
        keep_float(&layers->layer[i], "--float");
    }
    LNT_REQUIRE(any || !lnt_nearest_name(&nearest), err, LNT_E_NOT_FOUND,
                "--float: no layer is called '%s'; did you mean '%s'?", pattern, nearest.name);
    LNT_REQUIRE(any, err, LNT_E_NOT_FOUND, "--float: no layer is called '%s'", pattern);
    return LNT_OK;
}

lnt_status lnt_qlayers_keep_named(const lnt_qlayers *layers, const lnt_quantize_options *options,
                                  lnt_error *err)
{
    for (size_t i = 0; i < options->n_in_float; i++)
        LNT_TRY(keep_named(layers, options->in_float[i], err));
    return LNT_OK;
}

/* ---- fixed bases ---- */

enum { SIDE_LEAST = 16, LOOKED_AT = 16 /* vectors */ };

/* count vectors of length elements. */
typedef struct vectors {
    const float *x;
    int64_t count, length, stride, step; /* stride: between vectors; step: between their elements */
    const double *scale;                 /* [length] of the squares of elements; or NULL */
} vectors;

static double dot(const vectors *v, int64_t a, int64_t b)
{
    LNT_ASSERT(a >= 0 && b >= 0 && a < v->count && b < v->count);
    double sum = 0;
    for (int64_t i = 0; i < v->length; i++)
        sum += (double)v->x[a * v->stride + i * v->step] * (double)v->x[b * v->stride + i * v->step] *
               (v->scale ? v->scale[i] : 1);
    return sum;
}

/* Squared cosines of vector a with the others, over what independent numbers have; 0 for one of zeros. */
static double likeness(const vectors *v, int64_t a)
{
    const double own = dot(v, a, a);
    double sum = 0;
    for (int64_t b = 0; b < v->count && own > 0; b++) {
        const double other = b == a ? 0 : dot(v, b, b), both = other > 0 ? dot(v, a, b) : 0;
        sum += other > 0 ? both * both / (own * other) : 0;
    }
    return sum * (double)v->length / (double)(v->count - 1);
}

/* Of some of the vectors, from first to last: one that is like others ends it. */
static bool are_orthogonal(const vectors *v)
{
    const double most = 0.05;
    double sum = 0;
    for (int64_t i = 0; i < LOOKED_AT; i++) {
        sum += likeness(v, i * (v->count - 1) / (LOOKED_AT - 1));
        if (sum > most * LOOKED_AT)
            return false;
    }
    return true;
}

/* Are most elements no zeros? Moves of elements lose nothing but in rounding. */
static bool is_dense(const float *x, int64_t n)
{
    const double least = 0.1; /* of the mean magnitude's square in the mean square; of a sinusoid 0.81 */
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] < 0 ? -(double)x[i] : (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    return sum * sum > least * squares * (double)n;
}

/* Rows once a window is taken out of them that is the same for all. */
static lnt_status without_window(lnt_graph *g, vectors rows, bool *orthogonal)
{
    double *scale = lnt_alloc_zero(g->memory.allocator, (size_t)rows.length, sizeof *scale, g->err);
    if (!scale)
        return LNT_E_MEMORY;
    const vectors columns = {rows.x, rows.length, rows.count, rows.step, rows.stride, NULL};
    for (int64_t i = 0; i < rows.length; i++) {
        const double squares = dot(&columns, i, i);
        scale[i] = squares > 0 ? 1 / squares : 0;
    }
    rows.scale = scale;
    *orthogonal = are_orthogonal(&rows);
    lnt_free(g->memory.allocator, scale);
    return LNT_OK;
}

/* Are the weights of n, a product, a fixed basis? */
static lnt_status is_transform(lnt_graph *g, const lnt_gnode *n, bool *is)
{
    int64_t count;
    const float *x = n->n_in > 1 ? lnt_constant_floats(g, n->in[1], &count) : NULL;
    *is = false;
    if (!x || lnt_is(n, Gather) || lnt_ginfo(g, n->in[1])->rank < 2)
        return LNT_OK;
    const int64_t rows = lnt_ginfo(g, n->in[1])->dims[0], columns = count / rows;
    if (rows < SIDE_LEAST || columns < SIDE_LEAST || !is_dense(x, count))
        return LNT_OK;
    const vectors as_rows = {x, rows, columns, columns, 1, NULL},
                  as_columns = {x, columns, rows, 1, columns, NULL};
    *is = are_orthogonal(rows < columns ? &as_rows : &as_columns);
    return *is || rows > columns ? LNT_OK : without_window(g, as_rows, is);
}

lnt_status lnt_qlayers_keep_transforms(lnt_graph *g, const lnt_qlayers *layers)
{
    for (size_t i = 0; i < layers->n; i++) {
        lnt_qlayer *l = &layers->layer[i];
        bool fixed = false;
        if (l->chosen && !l->narrow && l->measured.before)
            LNT_TRY(is_transform(g, &l->plain, &fixed));
        if (fixed)
            keep_float(l, "a fixed transform");
    }
    return LNT_OK;
}
