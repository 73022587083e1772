/* judge.h — the instructions of elementwise programs in wider arithmetic, and their bounds. */
#ifndef LNT_OPS_CHECK_JUDGE_H
#define LNT_OPS_CHECK_JUDGE_H

#include <float.h>
#include <stdbool.h>

/* What judges compute in: long double where the processor has it, else double. */
#if LDBL_MANT_DIG == 64
typedef long double lnt_wide;
#else
typedef double lnt_wide;
#endif

/* 32-bit NEON takes denormals for zero and gives zero for them. */
#if defined(__arm__)
#define LNT_FLUSHES true
#else
#define LNT_FLUSHES false
#endif

/* What judges in double may be off by, in units of a float's last place, where errors count: libm's few units
 * of a double's last place are 2**-27 of a float's, and cancellation takes at most twenty bits more. */
#define LNT_QUICK_ULPS 0x1p-6

typedef struct lnt_judged {
    lnt_wide (*judge)(lnt_wide a, lnt_wide b, lnt_wide c, lnt_wide p, lnt_wide q);
    double (*quick)(double a, double b, double c, double p, double q); /* the same but LNT_QUICK_ULPS */
    const char *name, *sources; /* as in ops/elementwise/program_list.h; NULL where a number is no instruction */
    char result;
} lnt_judged;

/* By instruction number. */
extern const lnt_judged lnt_judged_instrs[];
extern const unsigned lnt_judged_count;

/* Units in the last place allowed, and what is allowed beside: errors below tiny do not count. */
typedef struct lnt_bound {
    double ulps, tiny;
} lnt_bound;

/* For the first source and the immediates; nowhere narrower than at 0. */
lnt_bound lnt_bound_of(unsigned op, double a, double p, double q);

/* |got - want| in units of want's last place as a float. */
double lnt_ulps_between(float got, lnt_wide want);

#endif
