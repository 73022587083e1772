/* check.h — the kernel checker: every kernel of a level against the scalar reference and a judge in double.
 *
 * One function per kernel family. `linnet doctor` and the tests call lnt_check_all; a failure names the
 * kernel, the shape, the first differing element and the seed that brings it back. */
#ifndef LNT_OPS_CHECK_H
#define LNT_OPS_CHECK_H

#include "base/cpu.h"
#include "base/error.h"

typedef struct lnt_check_report {
    uint64_t cases, failures;
    double worst;    /* largest error seen, in units of the case's tolerance */
    char first[256]; /* the first failure; empty if there is none */
} lnt_check_report;

/* X(family): lnt_status lnt_check_FAMILY(level, seed, report). */
#define LNT_CHECK_LIST(X) X(gemm) X(winograd) X(plane) X(row) X(program) X(qgemm) X(qconv) X(attend) X(nbits)

/* Each adds to *r, which the caller zeroes, and returns E_INTERNAL if a kernel of the level is wrong,
 * E_MEMORY if there is too little to test with. A level the CPU lacks must not be asked for. Kernels that a
 * trimmed library lacks count no cases. */
#define X(family) lnt_status lnt_check_##family(lnt_level level, uint64_t seed, lnt_check_report *r);
LNT_CHECK_LIST(X)
#undef X

/* What became of one function at one level. */
typedef struct lnt_float_row {
    const char *name;
    lnt_level level;
    uint64_t cases, failures;
    double worst,
        allowed; /* units in the last place, and the bound there; errors that do not count left out */
    float at[2]; /* its arguments */
} lnt_float_row;

typedef void (*lnt_float_row_fn)(void *arg, const lnt_float_row *row);

typedef struct lnt_floats_options {
    lnt_level best;   /* levels up to it */
    uint32_t stride;  /* each stride-th of all floats; 1: all */
    const char *only; /* one function, by its name in ops/elementwise/program_list.h; NULL: all */
    unsigned threads;
    void (*progress)(size_t done, size_t total); /* of equal pieces of the work; on any thread; or NULL */
} lnt_floats_options;

/* Whether there is such a function to ask for. */
bool lnt_has_float_check(const char *only);

/* Every function of one number that elementwise programs have, over floats, and pow over a grid of as many
 * pairs. The judge is long double where the processor has it: the same formulas in double only set aside what
 * cannot be the largest error nor more than is allowed. */
lnt_status lnt_check_floats(const lnt_floats_options *how, lnt_float_row_fn each, void *arg);

/* Notes a failure; the first one's text is kept. */
void lnt_check_fail(lnt_check_report *r, const char *format, ...) LNT_PRINTF(2, 3);

/* Counts a case; false unless it is off by no more than error. */
static inline bool lnt_check_within(lnt_check_report *r, double off, double error)
{
    r->cases++;
    if (!(off <= error))
        return false;
    if (error > 0 && off / error > r->worst)
        r->worst = off / error;
    return true;
}

/* xorshift64*: a small generator for test data; *state must not be 0. */
static inline uint64_t lnt_check_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

/* Uniform in [-1, 1). */
static inline float lnt_check_float(uint64_t *state)
{
    return (float)(int32_t)(lnt_check_random(state) >> 32) * 0x1p-31f;
}

/* Peak single-precision multiply-add rate of one core at this level, in GFLOP/s, over about `seconds`. */
double lnt_check_peak(lnt_level level, double seconds);
/* Rates of one core at this level over about `seconds`, all operands in the first-level cache: products of
 * floats and of bytes, in 1e9 multiplications and additions a second; bringing floats to bytes, in 1e9 floats
 * a second. */
double lnt_check_float_rate(lnt_level level, double seconds);
double lnt_check_byte_rate(lnt_level level, double seconds);
double lnt_check_quantize_rate(lnt_level level, double seconds);
/* 1e9 bytes a second that one core reads from `bytes` of memory, again and again; 0 if memory is short. */
double lnt_check_read_rate(lnt_level level, size_t bytes, double seconds);

#endif
