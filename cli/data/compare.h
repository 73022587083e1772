/* compare.h — when two tensors agree, and how far apart they are. */
#ifndef LNT_CLI_DATA_COMPARE_H
#define LNT_CLI_DATA_COMPARE_H

#include "base/linnet_types.h"

#include <stdbool.h>

/* A floating-point element passes within atol + rtol * |expected| or within share times the largest finite
 * magnitude expected in the whole tensor; if max_rel > 0, within max_rel times that magnitude and by no other
 * rule. NaN passes only against NaN, an infinity only against the same. Floats of 8 bits and fewer, integers and
 * bools must be equal. */
typedef struct lnt_rule {
    double rtol, atol, max_rel, share;
    bool cut; /* expected are bfloat16 whose reference cut floats: those rounded to one more in the last place pass */
} lnt_rule;

/* The ONNX suite's own, and what the last bit of a float cannot tell of the largest magnitude: reference noise of that
 * size, as in dft_inverse's zeros, is not asked for. */
#define LNT_RULE_SUITE ((lnt_rule){.rtol = 1e-3, .atol = 1e-7, .share = 0x1p-24})

typedef struct lnt_comparison {
    bool pass;
    int64_t count, wrong; /* elements; those that do not pass */
    int64_t by_share;     /* those that pass by the rule's share alone */
    int64_t worst; /* element with the largest error, the first that does not pass before others; -1 none */
    double got, want; /* there */
    double error;     /* |got - want| there */
    double relative;  /* the largest error over the largest finite magnitude expected */
    double ulp;       /* the largest error in units in the last place of the expected element */
    double cosine;    /* of the two tensors as vectors; 1 where both are zero */
    bool same_argmax; /* the first largest element is the same one */
    char reason[160]; /* why not; empty if it passes */
} lnt_comparison;

void lnt_compare(const lnt_rule *rule, const lnt_tensor *got, const lnt_tensor *want, lnt_comparison *c);

/* Element i as a number; exact for all types but 64-bit integers beyond 2^53. */
double lnt_element(const lnt_tensor *t, int64_t i);
/* "1x3x224x224", "scalar". */
const char *lnt_dims_text(unsigned rank, const int64_t *dims, char buffer[128]);

#endif
