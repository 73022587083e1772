/* random_kernels.h — the kernel table of random floats.
 *
 * The stream of a key is the same at every level: numbers come in groups of LNT_RANDOM_GROUP, made of 16 blocks of
 * Philox4x32-10. Element 16 c + i of group g has word c of block 16 g + i; of normal numbers words 0 and 1, and words 2
 * and 3, make two. */
#ifndef LNT_OPS_DATA_RANDOM_KERNELS_H
#define LNT_OPS_DATA_RANDOM_KERNELS_H

#include "ops/kernels.h"

#include <stdbool.h>
#include <stdint.h>

enum { LNT_RANDOM_GROUP = 64 };

/* base + scale * x of `groups` whole groups, x normal or else uniform. Uniform x are (k + 1/2) / 2^23, k < 2^23. */
typedef struct lnt_random_kernels {
    void (*draw)(uint64_t key, int64_t group, int64_t groups, bool normal, float base, float scale, float *out);
} lnt_random_kernels;

#endif
