/* halves.inc.h — what kernels of half arithmetic are given of a checker's bench; included behind the type, which has
 *
 *     bool half;        kernels are such
 *     uint16_t *halves; element i stands for the i-th float of the bench */
#include "base/half.h"

/* The halves that stand for floats of the bench. */
static uint16_t *halves_of(bench *t, const float *p)
{
    return t->halves + ((const char *)p - (const char *)t) / (ptrdiff_t)sizeof *p;
}

/* The same as an argument of kernels. */
static float *given(bench *t, const float *p)
{
    return t->half && p ? (float *)(void *)halves_of(t, p) : (float *)(uintptr_t)p;
}

static void set(bench *t, float *p, float x)
{
    *p = x;
    if (!t->half)
        return;
    *halves_of(t, p) = lnt_float_to_f16(x);
    *p = lnt_f16_to_float(*halves_of(t, p));
}

/* Results of a kernel back among the floats. */
static void take_results(bench *t, float *p, size_t n)
{
    for (size_t i = 0; t->half && i < n; i++)
        p[i] = lnt_f16_to_float(halves_of(t, p)[i]);
}
