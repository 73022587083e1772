/* fold.c — rows down to one element. */
#include "ops/rows/fold.h"

#include "base/checked.h"

#include <string.h>

void lnt_fold_row(lnt_typed_fn loop, size_t size, const void *x, int64_t n, lnt_folded *f)
{
    const char *from = x;
    int64_t i = 0;
    LNT_ASSERT(n > 0);
    if (f->width == 0) {
        i = f->width = lnt_least(n, LNT_FOLD_WIDTH);
        memcpy(f->bytes, from, (size_t)i * size);
    }
    for (; i < n; i += f->width)
        loop(&(lnt_typed_args){
            .out = f->bytes, .in = {f->bytes, from + (size_t)i * size}, .n = lnt_least(f->width, n - i)});
}

void lnt_fold_to_one(lnt_typed_fn loop, size_t size, lnt_folded *f)
{
    while (f->width > 1) {
        const int64_t half = (f->width + 1) / 2;
        loop(&(lnt_typed_args){
            .out = f->bytes, .in = {f->bytes, f->bytes + (size_t)half * size}, .n = f->width - half});
        f->width = half;
    }
}
