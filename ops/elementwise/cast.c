/* cast.c — conversion between all element types, in the steps that a level has loops for. */
#include "ops/elementwise/typed.h"

#include "base/lnt_assert.h"
#include "ops/cells.h"
#include "ops/element.h"

#include <string.h>

enum { CHUNK = 512 };

/* Is i64_f64 fast, whatever the numbers are? */
#if defined(__x86_64__)
enum { I64_F64 = true };
#else
enum { I64_F64 = false };
#endif

/* Element types; integers come first, by width. */
typedef enum type { U8, I8, U16, I16, U32, I32, U64, I64, BOOL, F16, BF16, F32, F64, ODD, TYPES } type;

static bool is_integer(type t)
{
    return t <= I64;
}

static size_t bytes_of(type t)
{
    static const uint8_t bytes[TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 1, 2, 2, 4, 8, 4};
    return bytes[t];
}

/* What cells hold of t; LNT_CELL_F32: nothing. */
static lnt_cell cell_of(type t)
{
    static const uint8_t cells[TYPES] = {
        [U8] = LNT_CELL_U8,   [I8] = LNT_CELL_I8,   [U16] = LNT_CELL_U16, [I16] = LNT_CELL_I16,
        [I32] = LNT_CELL_I32, [I64] = LNT_CELL_I64, [F16] = LNT_CELL_F16, [BF16] = LNT_CELL_BF16};
    return (lnt_cell)cells[t];
}

/* clang-format off */
#define TO_8(step) [U8] = LNT_CAST_##step, [I8] = LNT_CAST_##step,
#define TO_16(step) [U16] = LNT_CAST_##step, [I16] = LNT_CAST_##step,
#define TO_32(step) [U32] = LNT_CAST_##step, [I32] = LNT_CAST_##step,
#define TO_64(step) [U64] = LNT_CAST_##step, [I64] = LNT_CAST_##step,
#define TO(type, step) [type] = LNT_CAST_##step,
static const uint8_t steps[TYPES][TYPES] = {
    [U8] = {TO_16(u8_16) TO_32(u8_32) TO_64(u8_64) TO(F64, u8_f64) TO(BOOL, 8_bool)},
    [I8] = {TO_16(i8_16) TO_32(i8_32) TO_64(i8_64) TO(F64, i8_f64) TO(BOOL, 8_bool)},
    [U16] = {TO_8(16_8) TO_32(u16_32) TO_64(u16_64) TO(F64, u16_f64) TO(BOOL, 16_bool)},
    [I16] = {TO_8(16_8) TO_32(i16_32) TO_64(i16_64) TO(F64, i16_f64) TO(BOOL, 16_bool)},
    [U32] = {TO_8(32_8) TO_16(32_16) TO_64(u32_64) TO(BOOL, 32_bool) TO(ODD, u32_odd) TO(F32, u32_f32) TO(F64, u32_f64)},
    [I32] = {TO_8(32_8) TO_16(32_16) TO_64(i32_64) TO(BOOL, 32_bool) TO(ODD, i32_odd) TO(F64, i32_f64)},
    [U64] = {TO_8(64_8) TO_16(64_16) TO_32(64_32) TO(BOOL, 64_bool) TO(F32, u64_f32) TO(F64, u64_f64)},
    [I64] = {TO_8(64_8) TO_16(64_16) TO_32(64_32) TO(BOOL, 64_bool) TO(F64, i64_f64)},
    [BOOL] = {TO_8(8_bool)},
    [F32] = {TO(BOOL, f32_bool) TO(F64, f32_f64)},
    [F64] = {TO_8(f64_8) TO_16(f64_16) TO(I32, f64_i32) TO(I64, f64_i64) TO(U64, f64_u64) TO(BOOL, f64_bool) TO(F32, f64_f32) TO(ODD, f64_odd)},
};
/* clang-format on */

/* All of it in one step; false if there is none. */
static bool step(const lnt_kernels *k, const void *src, type from, void *dst, type to, int64_t n)
{
    const lnt_convert_fn loop = k->typed->cast.step[steps[from][to]];
    if (loop)
        loop(dst, src, n);
    else if (from == to || (is_integer(from) && is_integer(to) && bytes_of(from) == bytes_of(to)))
        memmove(dst, src, (size_t)n * bytes_of(to));
    else if (to == F32 && cell_of(from) != LNT_CELL_F32)
        k->cells->load[cell_of(from)](dst, src, 1, n);
    else if ((from == F32 || from == ODD) && cell_of(to) != LNT_CELL_F32)
        k->cells->store[cell_of(to)](src, dst, 1, n);
    else
        return false;
    return true;
}

/* Where no step leads from one to the other: what lies between, as wide as it must be to round once. */
static type middle_of(type from, type to)
{
    switch (from) {
    case BOOL: return U8;
    case F16:
    case BF16: return F32;
    case F32: return to == U32 ? I64 : F64;
    case F64: return !is_integer(to) ? ODD : to == U32 ? I64 : I32;
    default: break;
    }
    if (is_integer(to))
        return from == U8 || from == U16 ? U32 : I32;
    if (to == F64)
        return I32;
    if (to == F16 || from <= I16) /* whole numbers of more than 24 bits are beyond float16 */
        return F32;
    return bytes_of(from) == 4 ? ODD : F64;
}

/* CPUs hardly have vectors for integers of 8 bytes, or without sign, and floating point: numbers that an int32 holds go
 * by it. */
static lnt_fits_fn test_of_int32(const lnt_cast_kernels *k, type from, type to)
{
    switch (from) {
    case I64: return (to == F64 && !I64_F64) || to == BF16 ? k->i64_fits : NULL; /* cells see to the others */
    case U64: return to >= F16 ? k->u64_fits : NULL;
    case F32: return to == U32 || to == U64 ? k->f32_fits : NULL;
    case F64: return to == U32 || to == U64 || to == I64 ? k->f64_fits : NULL;
    default: return NULL;
    }
}

/* At most CHUNK elements. */
static void convert(const lnt_kernels *k, const void *src, type from, void *dst, type to, int64_t n)
{
    int64_t middle[CHUNK];
    const lnt_fits_fn fits = test_of_int32(&k->typed->cast, from, to);
    const bool by_int32 = fits && fits(src, n);
    const type same_bits = by_int32 && to == U32 ? I32 : to;
    if ((!by_int32 || same_bits != to) && step(k, src, from, dst, same_bits, n))
        return;
    const type between = by_int32 ? I32 : middle_of(from, to);
    const bool done = step(k, src, from, middle, between, n);
    LNT_ASSERT(done), (void)done;
    convert(k, middle, between, dst, to, n);
}

static type type_of(lnt_dtype dtype)
{
    static const uint8_t types[LNT_DTYPE_COUNT] = {
        [LNT_UINT8] = U8,      [LNT_INT8] = I8,    [LNT_UINT16] = U16, [LNT_INT16] = I16, [LNT_UINT32] = U32,
        [LNT_INT32] = I32,     [LNT_UINT64] = U64, [LNT_INT64] = I64,  [LNT_BOOL] = BOOL, [LNT_FLOAT16] = F16,
        [LNT_BFLOAT16] = BF16, [LNT_FLOAT] = F32,  [LNT_DOUBLE] = F64};
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
    if (!test_of_int32(&kernels->typed->cast, a, b) && step(kernels, src, a, dst, b, n))
        return;
    for (int64_t i = 0; i < n; i += CHUNK)
        convert(kernels, lnt_element_at(src, from, i), a, lnt_element_at(dst, to, i), b,
                n - i < CHUNK ? n - i : CHUNK);
}
