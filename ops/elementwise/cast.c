/* cast.c — conversion between all element types, in the steps that a level has loops for. */
#include "ops/elementwise/typed.h"

#include "base/lnt_assert.h"
#include "ops/cells.h"
#include "ops/element.h"

#include <string.h>

enum { CHUNK = 512 };

typedef lnt_cast_type type;

static bool is_integer(type t)
{
    return t <= LNT_CAST_I64;
}

static size_t bytes_of(type t)
{
    static const uint8_t bytes[LNT_CAST_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 1, 2, 2, 4, 8, 4};
    return bytes[t];
}

/* What cells hold of t; LNT_CELL_F32: nothing. */
static lnt_cell cell_of(type t)
{
    static const uint8_t cells[LNT_CAST_TYPES] = {
        [LNT_CAST_U8] = LNT_CELL_U8,   [LNT_CAST_I8] = LNT_CELL_I8,    [LNT_CAST_U16] = LNT_CELL_U16,
        [LNT_CAST_I16] = LNT_CELL_I16, [LNT_CAST_I32] = LNT_CELL_I32,  [LNT_CAST_I64] = LNT_CELL_I64,
        [LNT_CAST_F16] = LNT_CELL_F16, [LNT_CAST_BF16] = LNT_CELL_BF16};
    return (lnt_cell)cells[t];
}

/* All of it in one step; false if there is none. */
static bool step(const lnt_kernels *k, const void *src, type from, void *dst, type to, int64_t n)
{
    const lnt_convert_fn loop = k->typed->cast.step[from][to];
    if (loop)
        loop(dst, src, n);
    else if (from == to || (is_integer(from) && is_integer(to) && bytes_of(from) == bytes_of(to)))
        memmove(dst, src, (size_t)n * bytes_of(to));
    else if (to == LNT_CAST_F32 && cell_of(from) != LNT_CELL_F32)
        k->cells->load[cell_of(from)](dst, src, 1, n);
    else if ((from == LNT_CAST_F32 || from == LNT_CAST_ODD) && cell_of(to) != LNT_CELL_F32)
        k->cells->store[cell_of(to)](src, dst, 1, n);
    else
        return false;
    return true;
}

/* Where no step leads from one to the other: what lies between, as wide as it must be to round once. */
static type middle_of(type from, type to)
{
    switch (from) {
    case LNT_CAST_BOOL: return LNT_CAST_U8;
    case LNT_CAST_F16:
    case LNT_CAST_BF16: return LNT_CAST_F32;
    case LNT_CAST_F32: return to == LNT_CAST_U32 ? LNT_CAST_I64 : LNT_CAST_F64;
    case LNT_CAST_F64:
        return !is_integer(to) ? LNT_CAST_ODD : to == LNT_CAST_U32 ? LNT_CAST_I64 : LNT_CAST_I32;
    default: break;
    }
    if (to == LNT_CAST_F64)
        return LNT_CAST_I32;
    if (to == LNT_CAST_F16 ||
        from <= LNT_CAST_I16) /* whole numbers of more than 24 bits are beyond float16 */
        return LNT_CAST_F32;
    return bytes_of(from) == 4 ? LNT_CAST_ODD : LNT_CAST_F64;
}

/* CPUs hardly have vectors for integers of 8 bytes, or without sign, and floating point: numbers that an int32 holds go
 * by it. */
static bool may_go_by_int32(type from, type to)
{
    switch (from) {
    case LNT_CAST_I64: return to == LNT_CAST_F64 || to == LNT_CAST_BF16; /* cells see to the others */
    case LNT_CAST_U64: return to >= LNT_CAST_F16;
    case LNT_CAST_F32: return to == LNT_CAST_U32 || to == LNT_CAST_U64;
    case LNT_CAST_F64: return to == LNT_CAST_U32 || to == LNT_CAST_U64 || to == LNT_CAST_I64;
    default: return false;
    }
}

/* At most CHUNK elements. */
static void convert(const lnt_kernels *k, const void *src, type from, void *dst, type to, int64_t n)
{
    int64_t middle[CHUNK];
    const bool by_int32 = may_go_by_int32(from, to) && k->typed->cast.fits[from](src, n);
    const type same_bits = by_int32 && to == LNT_CAST_U32 ? LNT_CAST_I32 : to;
    if ((!by_int32 || same_bits != to) && step(k, src, from, dst, same_bits, n))
        return;
    const type between = by_int32 ? LNT_CAST_I32 : middle_of(from, to);
    const bool done = step(k, src, from, middle, between, n);
    LNT_ASSERT(done), (void)done;
    convert(k, middle, between, dst, to, n);
}

static type type_of(lnt_dtype dtype)
{
    static const uint8_t types[LNT_DTYPE_COUNT] = {
        [LNT_UINT8] = LNT_CAST_U8,    [LNT_INT8] = LNT_CAST_I8,       [LNT_UINT16] = LNT_CAST_U16,
        [LNT_INT16] = LNT_CAST_I16,   [LNT_UINT32] = LNT_CAST_U32,    [LNT_INT32] = LNT_CAST_I32,
        [LNT_UINT64] = LNT_CAST_U64,  [LNT_INT64] = LNT_CAST_I64,     [LNT_BOOL] = LNT_CAST_BOOL,
        [LNT_FLOAT16] = LNT_CAST_F16, [LNT_BFLOAT16] = LNT_CAST_BF16, [LNT_FLOAT] = LNT_CAST_F32,
        [LNT_DOUBLE] = LNT_CAST_F64};
    return (type)types[dtype];
}

bool lnt_can_cast(lnt_dtype dtype)
{
    return lnt_is_floating(dtype) || lnt_is_integer(dtype) || dtype == LNT_BOOL;
}

void lnt_cast(const lnt_kernels *kernels, const void *src, lnt_dtype from, void *dst, lnt_dtype to, int64_t n)
{
    LNT_ASSERT(lnt_can_cast(from) && lnt_can_cast(to) && n >= 0);
    LNT_ASSERT(lnt_is_aligned(src, lnt_dtype_size(from)) && lnt_is_aligned(dst, lnt_dtype_size(to)));
    const type a = type_of(from), b = type_of(to);
    if (!may_go_by_int32(a, b) && step(kernels, src, a, dst, b, n))
        return;
    for (int64_t i = 0; i < n; i += CHUNK)
        convert(kernels, lnt_element_at(src, from, i), a, lnt_element_at(dst, to, i), b,
                n - i < CHUNK ? n - i : CHUNK);
}
