/* clock.h — time that never goes back. */
#ifndef LNT_BASE_CLOCK_H
#define LNT_BASE_CLOCK_H

#include <stdint.h>

/* Since some moment of the past: only differences mean something. */
uint64_t lnt_now_ns(void);
/* The same in seconds. */
double lnt_now(void);

#endif
