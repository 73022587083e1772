/* compare.c — when two tensors agree, and how far apart they are. */
#include "cli/data/compare.h"

#include "base/half.h"
#include "base/small.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double small_float(lnt_dtype dtype, uint8_t code)
{
    float x;
    lnt_small_to_float(dtype, &code, &x, 1);
    return x;
}

double lnt_element(const lnt_tensor *t, int64_t i)
{
    const void *d = t->data;
    const lnt_dtype dtype = lnt_small_as_byte(t->dtype);
    if (lnt_is_small(dtype))
        return small_float(dtype, ((const uint8_t *)d)[i]);
    switch (dtype) {
    case LNT_FLOAT: return ((const float *)d)[i];
    case LNT_DOUBLE: return ((const double *)d)[i];
    case LNT_FLOAT16: return lnt_f16_to_float(((const uint16_t *)d)[i]);
    case LNT_BFLOAT16: return lnt_bf16_to_float(((const uint16_t *)d)[i]);
    case LNT_INT8: return ((const int8_t *)d)[i];
    case LNT_INT16: return ((const int16_t *)d)[i];
    case LNT_INT32: return ((const int32_t *)d)[i];
    case LNT_INT64: return (double)((const int64_t *)d)[i];
    case LNT_UINT8:
    case LNT_BOOL: return ((const uint8_t *)d)[i];
    case LNT_UINT16: return ((const uint16_t *)d)[i];
    case LNT_UINT32: return ((const uint32_t *)d)[i];
    case LNT_UINT64: return (double)((const uint64_t *)d)[i];
    default: return NAN;
    }
}

/* Bits of the fraction and the least exponent of a floating-point type; false for the others. */
static bool float_format(lnt_dtype dtype, int *fraction, int *least)
{
    switch (dtype) {
    case LNT_FLOAT: *fraction = FLT_MANT_DIG - 1, *least = FLT_MIN_EXP - 1; return true;
    case LNT_DOUBLE: *fraction = DBL_MANT_DIG - 1, *least = DBL_MIN_EXP - 1; return true;
    case LNT_FLOAT16: *fraction = 10, *least = -14; return true;
    case LNT_BFLOAT16: *fraction = 7, *least = -126; return true;
    default: return false;
    }
}

/* |got - want| in units of the last place that want has in its type. */
static double ulps(double error, double want, int fraction, int least)
{
    const int exponent = want == 0 ? least : ilogb(want);
    return error / ldexp(1, (exponent < least ? least : exponent) - fraction);
}

const char *lnt_dims_text(unsigned rank, const int64_t *dims, char buffer[128])
{
    size_t used = 0;
    snprintf(buffer, 128, "scalar");
    for (unsigned i = 0; i < rank && used < 100; i++)
        used += (size_t)snprintf(buffer + used, 128 - used, "%s%" PRId64, i ? "x" : "", dims[i]);
    return buffer;
}

static bool same_form(const lnt_tensor *got, const lnt_tensor *want, lnt_comparison *c)
{
    char a[128], b[128];
    if (got->dtype == want->dtype && got->rank == want->rank &&
        (!got->rank || memcmp(got->dims, want->dims, got->rank * sizeof *got->dims) == 0))
        return true;
    snprintf(c->reason, sizeof c->reason, "gives %s %.60s, expected %s %.60s", lnt_dtype_text(got->dtype),
             lnt_dims_text(got->rank, got->dims, a), lnt_dtype_text(want->dtype),
             lnt_dims_text(want->rank, want->dims, b));
    return false;
}

/* What the tensors are as vectors, gathered over their finite elements. */
typedef struct sums {
    double gg, ww, gw, largest;
    double best_got, best_want;
    int64_t at_got, at_want;
} sums;

static sums gather(const lnt_tensor *got, const lnt_tensor *want, int64_t n)
{
    sums s = {.best_got = -INFINITY, .best_want = -INFINITY};
    for (int64_t i = 0; i < n; i++) {
        const double g = lnt_element(got, i), w = lnt_element(want, i);
        if (g > s.best_got)
            s.best_got = g, s.at_got = i;
        if (w > s.best_want)
            s.best_want = w, s.at_want = i;
        if (isfinite(w) && fabs(w) > s.largest)
            s.largest = fabs(w);
        if (isfinite(g) && isfinite(w))
            s.gg += g * g, s.ww += w * w, s.gw += g * w;
    }
    return s;
}

static double cosine_of(const sums *s)
{
    if (s->gg == 0 || s->ww == 0)
        return s->gg == s->ww ? 1 : 0;
    return s->gw / (sqrt(s->gg) * sqrt(s->ww));
}

/* The distance of one element: 0 for the same NaN or infinity, infinite for a different one. */
static double distance(double got, double want)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : INFINITY;
    return got == want ? 0 : fabs(got - want);
}

/* Of a type that has to be equal: the same bytes, or two NaN of a small float. */
static bool is_same(const lnt_tensor *got, const lnt_tensor *want, int64_t i, double error)
{
    const size_t size = lnt_dtype_size(want->dtype), at = (size_t)i * size;
    return memcmp((const char *)got->data + at, (const char *)want->data + at, size) == 0 ||
           (lnt_is_small(want->dtype) && isnan(lnt_element(want, i)) && error == 0);
}

static bool is_rounded_from_cut(const lnt_tensor *got, const lnt_tensor *want, int64_t i)
{
    const uint16_t g = ((const uint16_t *)got->data)[i], w = ((const uint16_t *)want->data)[i];
    return g == w + 1 && isfinite(lnt_element(got, i));
}

/* Notes the element if its error is worse than any before, a wrong element counting for more than a right
 * one. */
static void note(lnt_comparison *c, int64_t i, double got, double want, double error, bool right)
{
    const bool first_wrong = !right && c->wrong == 0;
    c->wrong += !right;
    if (c->worst >= 0 && !first_wrong && (error <= c->error || (right && c->wrong)))
        return;
    c->worst = i;
    c->got = got;
    c->want = want;
    c->error = error;
}

/* Text is equal or it is not. */
static void compare_words(const lnt_tensor *got, const lnt_tensor *want, lnt_comparison *c)
{
    const char *const *g = got->data, *const *w = want->data;
    for (int64_t i = 0; i < c->count; i++)
        if (strcmp(g[i], w[i]) != 0 && c->wrong++ == 0)
            c->worst = i;
    c->pass = c->wrong == 0;
    if (!c->pass)
        snprintf(c->reason, sizeof c->reason,
                 "%" PRId64 " of %" PRId64 " elements differ, element %" PRId64
                 " is '%.40s', expected '%.40s'",
                 c->wrong, c->count, c->worst, g[c->worst], w[c->worst]);
}

void lnt_compare(const lnt_rule *rule, const lnt_tensor *got, const lnt_tensor *want, lnt_comparison *c)
{
    int fraction = 0, least = 0;

    *c = (lnt_comparison){.worst = -1, .cosine = 1, .same_argmax = true};
    if (!same_form(got, want, c))
        return;
    c->count = 1;
    for (unsigned i = 0; i < want->rank; i++)
        c->count *= want->dims[i];
    if (want->dtype == LNT_STRING) {
        compare_words(got, want, c);
        return;
    }

    const bool real = float_format(want->dtype, &fraction, &least);
    const sums s = gather(got, want, c->count);
    double largest_error = 0;
    for (int64_t i = 0; i < c->count; i++) {
        const double g = lnt_element(got, i), w = lnt_element(want, i), error = distance(g, w);
        const double near = rule->max_rel > 0 ? rule->max_rel * s.largest : rule->atol + rule->rtol * fabs(w),
                     allowed = rule->max_rel > 0 ? near : fmax(near, rule->share * s.largest);
        const bool right = real ? error == 0 || (isfinite(error) && error <= allowed) ||
                                      (rule->cut && is_rounded_from_cut(got, want, i))
                                : is_same(got, want, i, error);
        note(c, i, g, w, error, right);
        c->by_share += real && right && error > near;
        largest_error = error > largest_error ? error : largest_error;
        if (real && error > 0 && isfinite(w))
            c->ulp = fmax(c->ulp, ulps(error, w, fraction, least));
    }
    c->relative = largest_error == 0 ? 0 : largest_error / s.largest;
    c->cosine = cosine_of(&s);
    c->same_argmax = s.at_got == s.at_want;
    c->pass = c->wrong == 0;
    if (!c->pass)
        snprintf(c->reason, sizeof c->reason,
                 "%" PRId64 " of %" PRId64 " elements differ, element %" PRId64 " is %.9g, expected %.9g",
                 c->wrong, c->count, c->worst, c->got, c->want);
}
