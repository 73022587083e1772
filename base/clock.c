/* clock.c — the system's monotonic clock. */
#include "base/clock.h"

#include <time.h>

uint64_t lnt_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double lnt_now(void)
{
    return 1e-9 * (double)lnt_now_ns();
}
