/* cast.c — conversion between all element types by the kernels of a level. */
#include "ops/elementwise/typed.h"

#include "base/lnt_assert.h"
#include "ops/element.h"

enum { CHUNK = 256 };

bool lnt_can_cast(lnt_dtype dtype)
{
    return lnt_is_floating(dtype) || lnt_is_integer(dtype) || dtype == LNT_BOOL;
}

void lnt_cast(const lnt_typed_kernels *kernels, const void *src, lnt_dtype from, void *dst, lnt_dtype to,
              int64_t n)
{
    LNT_ASSERT(lnt_can_cast(from) && lnt_can_cast(to) && n >= 0);
    LNT_ASSERT(lnt_is_aligned(src, lnt_dtype_size(from)) && lnt_is_aligned(dst, lnt_dtype_size(to)));
    const lnt_cast_form *f = &kernels->cast[from];
    const lnt_convert_fn load = f->load, store = kernels->cast[to].store[f->form];
    union {
        int32_t i32[CHUNK];
        int64_t i64[CHUNK];
        float f32[CHUNK];
    } middle;
    if (!load) {
        store(dst, src, n);
        return;
    }
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t some = n - i < CHUNK ? n - i : CHUNK;
        load(&middle, lnt_element_at(src, from, i), some);
        store(lnt_element_at(dst, to, i), &middle, some);
    }
}
