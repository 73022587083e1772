/* fold.h — rows of elements of any type down to one, by the loop that makes one row of two (ops/elementwise). */
#ifndef LNT_OPS_ROWS_FOLD_H
#define LNT_OPS_ROWS_FOLD_H

#include "ops/elementwise/typed_kernels.h"

enum { LNT_FOLD_WIDTH = 128 /* elements that a long row is folded to first */ };

/* What has been folded so far: `width` elements; 0: nothing yet. */
typedef struct lnt_folded {
    _Alignas(16) char bytes[LNT_FOLD_WIDTH * sizeof(int64_t)];
    int64_t width;
} lnt_folded;

/* Takes in a row of n elements of `size` bytes, n > 0; all rows of one fold are as long. */
void lnt_fold_row(lnt_typed_fn loop, size_t size, const void *x, int64_t n, lnt_folded *f);
/* The one element that is left, at f->bytes. */
void lnt_fold_to_one(lnt_typed_fn loop, size_t size, lnt_folded *f);

#endif
