/* check.c — what the checkers share: noting failures, measuring a core. */
#include "ops/check/check.h"

#include "ops/gemm.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void lnt_check_fail(lnt_check_report *r, const char *format, ...)
{
    if (r->failures++)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(r->first, sizeof r->first, format, args);
    va_end(args);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double lnt_check_peak(lnt_level level, double seconds)
{
    enum { ROUNDS = 20000 };
    const lnt_gemm_kernels *kernels = lnt_kernels_of(level)->gemm;
    double best = 1e30;
    const double begin = seconds_now();
    for (double from = begin; from - begin < seconds; from = seconds_now()) {
        float sink[LNT_PANEL]; /* no lane may fade into denormals, nor grow */
        for (unsigned i = 0; i < LNT_PANEL; i++)
            sink[i] = 0.25f;
        kernels->fma(ROUNDS, sink);
        const double to = seconds_now();
        if (to - from < best)
            best = to - from;
    }
    return 2.0 * ROUNDS * kernels->fma_lanes / best / 1e9;
}
