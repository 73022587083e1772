/* random_range.h — random elements between two bounds: `--range NAME=LOW:HIGH`. */
#ifndef LNT_CLI_DATA_RANDOM_RANGE_H
#define LNT_CLI_DATA_RANDOM_RANGE_H

#include "cli/shell/args.h"

#include "base/error.h"

#include <stdbool.h>

typedef struct lnt_range {
    double low, high; /* low <= x < high; whole numbers of at most 2^53 for types of whole numbers */
} lnt_range;

/* The range that ranges, NAME=LOW:HIGH each, give to name; *found: there is one. LNT_E_ARGUMENT for what is none. */
lnt_status lnt_range_of(const lnt_texts *ranges, const char *name, lnt_range *range, bool *found,
                        lnt_error *err);
/* Fills data with count elements, a function of seed and position alone. LNT_E_ARGUMENT where the type cannot hold
 * the range. name: of the input, for the message. */
lnt_status lnt_range_fill(const lnt_range *range, uint64_t seed, lnt_dtype dtype, const char *name,
                          size_t count, void *data, lnt_error *err);

#endif
