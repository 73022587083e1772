/* cast_kernels.inc.h — conversions between element types through a middle form, for the table that
 * typed_kernels.inc.h defines: int32, int64, uint64, float or double, the smallest that holds the source exactly, so
 * that the result is rounded once. */
#include "base/half.h"

/* ---- out of range is defined ---- */

static int64_t cut_i64(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

static int32_t cut_i32(double x)
{
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}

static uint64_t cut_u64(double x)
{
    return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)cut_i64(x);
}

/* To float with the last bit set where inexact ("round to odd"): rounding that to a half is right. */
static float narrow_odd(double x)
{
    const float f = (float)x;
    const uint32_t bits = lnt_float_bits(f);
    if (!((double)f < x || (double)f > x) || (bits & 1))
        return f;
    const bool grew = (double)f > x ? f > 0 : f < 0;
    return lnt_bits_float(grew ? bits - 1 : bits + 1);
}

/* ---- loads and stores ---- */

/* n elements to the middle form. */
#define LOAD(name, type, middle, value)                                                                      \
    static void load_##name(void *to, const void *from, int64_t n)                                           \
    {                                                                                                        \
        const type *p = from;                                                                                \
        middle *m = to;                                                                                      \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const type x = p[i];                                                                             \
            m[i] = value;                                                                                    \
        }                                                                                                    \
    }
LOAD(f16, uint16_t, float, lnt_f16_to_float(x))
LOAD(bf16, uint16_t, float, lnt_bf16_to_float(x))
LOAD(i8, int8_t, int32_t, x)
LOAD(i16, int16_t, int32_t, x)
LOAD(u8, uint8_t, int32_t, x)
LOAD(u16, uint16_t, int32_t, x)
LOAD(u32, uint32_t, int64_t, x)
LOAD(b8, uint8_t, int32_t, x != 0)

#define STORE_FROM(how, name, type, form, middle, value)                                                     \
    how static void store_##name##_##form(void *to, const void *from, int64_t n)                                 \
    {                                                                                                        \
        const middle *m = from;                                                                              \
        type *p = to;                                                                                        \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const middle x = m[i];                                                                           \
            p[i] = (type)(value);                                                                            \
        }                                                                                                    \
    }
#define STORE(how, name, type, from_integer, from_float, from_double)                                        \
    STORE_FROM(how, name, type, i32, int32_t, from_integer)                                                  \
    STORE_FROM(how, name, type, i64, int64_t, from_integer)                                                  \
    STORE_FROM(RARE, name, type, u64, uint64_t, from_integer)                                                \
    STORE_FROM(how##_F32, name, type, f32, float, from_float)                                                \
    STORE_FROM(how, name, type, f64, double, from_double)
/* Floats are cut, and become halves, in registers (elementwise.c). */
#define OFTEN
#define OFTEN_F32
#define CUT
#define CUT_F32 RARE
#define RARE_F32 RARE
STORE(OFTEN, f32, float, x, x, x)
STORE(OFTEN, f64, double, x, x, x)
STORE(RARE, f16, uint16_t, lnt_float_to_f16(narrow_odd((double)x)), lnt_float_to_f16(x),
      lnt_float_to_f16(narrow_odd(x)))
STORE(RARE, bf16, uint16_t, lnt_float_to_bf16(narrow_odd((double)x)), lnt_float_to_bf16(x),
      lnt_float_to_bf16(narrow_odd(x)))
STORE(CUT, 8, uint8_t, x, cut_i32((double)x), cut_i32(x))
STORE(CUT, 16, uint16_t, x, cut_i32((double)x), cut_i32(x))
STORE(CUT, i32, uint32_t, x, cut_i32((double)x), cut_i32(x))
STORE(CUT, i64, int64_t, x, cut_i64((double)x), cut_i64(x))
STORE(OFTEN, u32, uint32_t, x, cut_i64((double)x), cut_i64(x))
STORE(OFTEN, u64, uint64_t, x, cut_u64((double)x), cut_u64(x))
STORE(OFTEN, b8, uint8_t, x != 0, x != 0, x != 0)

/* Without these operators nothing but typed_real.c asks, for floats and bool. */
enum { WITH_CAST = LNT_HAS_Cast || LNT_HAS_CastLike || LNT_HAS_Pow };
#define REAL_CAST(dtype, load, form, store)                                                                  \
    [LNT_##dtype] = {LNT_FORM_##form,                                                                        \
                     load,                                                                                   \
                     {WITH_CAST ? store##_i32 : NULL, WITH_CAST ? store##_i64 : NULL,                        \
                      WITH_CAST ? store##_u64 : NULL, store##_f32, store##_f64}},
#define CAST(dtype, load, form, store)                                                                       \
    [LNT_##dtype] = {LNT_FORM_##form,                                                                        \
                     WITH_CAST ? load : NULL,                                                                \
                     {WITH_CAST ? store##_i32 : NULL, WITH_CAST ? store##_i64 : NULL,                        \
                      WITH_CAST ? store##_u64 : NULL, WITH_CAST ? store##_f32 : NULL,                        \
                      WITH_CAST ? store##_f64 : NULL}},
#define CAST_TABLE                                                                                           \
    REAL_CAST(FLOAT, NULL, F32, store_f32)                                                                   \
    REAL_CAST(DOUBLE, NULL, F64, store_f64)                                                                  \
    REAL_CAST(FLOAT16, load_f16, F32, store_f16)                                                             \
    REAL_CAST(BFLOAT16, load_bf16, F32, store_bf16)                                                          \
    REAL_CAST(BOOL, load_b8, I32, store_b8)                                                                  \
    CAST(INT8, load_i8, I32, store_8)                                                                        \
    CAST(INT16, load_i16, I32, store_16)                                                                     \
    CAST(INT32, NULL, I32, store_i32)                                                                        \
    CAST(INT64, NULL, I64, store_i64)                                                                        \
    CAST(UINT8, load_u8, I32, store_8)                                                                       \
    CAST(UINT16, load_u16, I32, store_16)                                                                    \
    CAST(UINT32, load_u32, I64, store_u32)                                                                   \
    CAST(UINT64, NULL, U64, store_u64)
