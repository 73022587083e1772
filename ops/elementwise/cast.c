/* cast.c — conversion between all element types, a block at a time through int64, uint64 or double: whichever
 * holds the source exactly, so that the result is rounded once. */
#include "ops/elementwise/typed.h"

#include "base/half.h"
#include "base/lnt_assert.h"

#include <string.h>

enum { CHUNK = 128 };

/* The middle form of a source type. */
typedef enum form { FORM_I64, FORM_U64, FORM_F64, FORM_COUNT } form;

typedef union middle {
    int64_t i[CHUNK];
    uint64_t u[CHUNK];
    double f[CHUNK];
} middle;

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

#define LOAD(name, type, field, value)                                                                       \
    static void load_##name(middle *m, const char *p, int64_t stride, int64_t n)                             \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++, p += stride) {                                                       \
            const type x = *(const type *)(const void *)p;                                                   \
            m->field[i] = value;                                                                             \
        }                                                                                                    \
    }
LOAD(f32, float, f, (double)x)
LOAD(f64, double, f, x)
LOAD(f16, uint16_t, f, (double)lnt_f16_to_float(x))
LOAD(bf16, uint16_t, f, (double)lnt_bf16_to_float(x))
LOAD(i8, int8_t, i, x)
LOAD(i16, int16_t, i, x)
LOAD(i32, int32_t, i, x)
LOAD(i64, int64_t, i, x)
LOAD(u8, uint8_t, i, x)
LOAD(u16, uint16_t, i, x)
LOAD(u32, uint32_t, i, x)
LOAD(u64, uint64_t, u, x)
LOAD(b8, uint8_t, i, x != 0)

#define STORE_FROM(name, type, field, middle_type, value)                                                    \
    static void store_##name##_##field(const middle *m, char *p, int64_t stride, int64_t n)                  \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++, p += stride) {                                                       \
            const middle_type x = m->field[i];                                                               \
            *(type *)(void *)p = (type)(value);                                                              \
        }                                                                                                    \
    }
#define STORE(name, type, from_integer, from_real)                                                           \
    STORE_FROM(name, type, i, int64_t, from_integer)                                                         \
    STORE_FROM(name, type, u, uint64_t, from_integer)                                                        \
    STORE_FROM(name, type, f, double, from_real)
STORE(f32, float, x, x)
STORE(f64, double, x, x)
STORE(f16, uint16_t, lnt_float_to_f16(narrow_odd((double)x)), lnt_float_to_f16(narrow_odd(x)))
STORE(bf16, uint16_t, lnt_float_to_bf16(narrow_odd((double)x)), lnt_float_to_bf16(narrow_odd(x)))
STORE(i8, int8_t, x, cut_i32(x))
STORE(i16, int16_t, x, cut_i32(x))
STORE(i32, int32_t, x, cut_i32(x))
STORE(i64, int64_t, x, cut_i64(x))
STORE(u8, uint8_t, x, cut_i32(x))
STORE(u16, uint16_t, x, cut_i32(x))
STORE(u32, uint32_t, x, cut_i64(x))
STORE(u64, uint64_t, x, cut_u64(x))
STORE(b8, uint8_t, x != 0, x != 0)

static const struct {
    form form;
    void (*load)(middle *m, const char *p, int64_t stride, int64_t n);
    void (*store[FORM_COUNT])(const middle *m, char *p, int64_t stride, int64_t n);
} types[LNT_DTYPE_COUNT] = {
#define TYPE(dtype, name, form)                                                                              \
    [LNT_##dtype] = {form, load_##name, {store_##name##_i, store_##name##_u, store_##name##_f}},
    TYPE(FLOAT, f32, FORM_F64) TYPE(DOUBLE, f64, FORM_F64) TYPE(FLOAT16, f16, FORM_F64)
        TYPE(BFLOAT16, bf16, FORM_F64) TYPE(INT8, i8, FORM_I64) TYPE(INT16, i16, FORM_I64)
            TYPE(INT32, i32, FORM_I64) TYPE(INT64, i64, FORM_I64) TYPE(UINT8, u8, FORM_I64)
                TYPE(UINT16, u16, FORM_I64) TYPE(UINT32, u32, FORM_I64) TYPE(UINT64, u64, FORM_U64)
                    TYPE(BOOL, b8, FORM_I64)
#undef TYPE
};

bool lnt_can_cast(lnt_dtype dtype)
{
    return dtype < LNT_DTYPE_COUNT && types[dtype].load;
}

/* ---- dense runs of the pairs that models are full of ---- */

#define DENSE(name, from, to, value)                                                                         \
    static void dense_##name(const void *src, void *dst, int64_t n)                                          \
    {                                                                                                        \
        const from *p = src;                                                                                 \
        to *q = dst;                                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const from x = p[i];                                                                             \
            q[i] = (to)(value);                                                                              \
        }                                                                                                    \
    }
DENSE(i64_f32, int64_t, float, x)
DENSE(i64_i32, int64_t, int32_t, x)
DENSE(i32_i64, int32_t, int64_t, x)
DENSE(bool_i64, uint8_t, int64_t, x != 0)
DENSE(i64_bool, int64_t, uint8_t, x != 0)
DENSE(f32_f64, float, double, x)
DENSE(f64_f32, double, float, x)

static const struct {
    uint8_t from, to;
    void (*run)(const void *src, void *dst, int64_t n);
} dense[] = {
    {LNT_INT64, LNT_FLOAT, dense_i64_f32},  {LNT_INT64, LNT_INT32, dense_i64_i32},
    {LNT_INT32, LNT_INT64, dense_i32_i64},  {LNT_BOOL, LNT_INT64, dense_bool_i64},
    {LNT_INT64, LNT_BOOL, dense_i64_bool},  {LNT_FLOAT, LNT_DOUBLE, dense_f32_f64},
    {LNT_DOUBLE, LNT_FLOAT, dense_f64_f32},
};

static bool cast_dense(const void *src, lnt_dtype from, void *dst, lnt_dtype to, int64_t n)
{
    for (unsigned i = 0; i < sizeof dense / sizeof dense[0]; i++)
        if (dense[i].from == from && dense[i].to == to) {
            dense[i].run(src, dst, n);
            return true;
        }
    return false;
}

void lnt_cast(const void *src, lnt_dtype from, int64_t src_stride, void *dst, lnt_dtype to,
              int64_t dst_stride, int64_t n)
{
    LNT_ASSERT(lnt_can_cast(from) && lnt_can_cast(to));
    LNT_ASSERT(src_stride >= 0 && n >= 0 && (dst_stride > 0 || n <= 1));
    LNT_ASSERT(lnt_is_aligned(src, lnt_dtype_size(from)) && lnt_is_aligned(dst, lnt_dtype_size(to)));
    if (src_stride == (int64_t)lnt_dtype_size(from) && dst_stride == (int64_t)lnt_dtype_size(to) &&
        cast_dense(src, from, dst, to, n))
        return;
    middle m;
    const char *p = src;
    char *q = dst;
    for (int64_t i = 0; i < n; i += CHUNK, p += CHUNK * src_stride, q += CHUNK * dst_stride) {
        const int64_t some = n - i < CHUNK ? n - i : CHUNK;
        types[from].load(&m, p, src_stride, some);
        types[to].store[types[from].form](&m, q, dst_stride, some);
    }
}
