/* element.c — conversions between stored element types and the types kernels compute in. */
#include "ops/element.h"

#include "base/half.h"

#include <string.h>

/* X(type number, C type): stored types that C converts by itself. */
#define INTEGERS(X)                                                                                          \
    X(UINT8, uint8_t)                                                                                        \
    X(INT8, int8_t)                                                                                          \
    X(UINT16, uint16_t)                                                                                      \
    X(INT16, int16_t)                                                                                        \
    X(INT32, int32_t)                                                                                        \
    X(UINT32, uint32_t)                                                                                      \
    X(INT64, int64_t)                                                                                        \
    X(UINT64, uint64_t)

#define EACH(from_type, to_type, expression)                                                                 \
    {                                                                                                        \
        const from_type *from_ = src;                                                                        \
        to_type *to_ = dst;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const from_type x = from_[i];                                                                    \
            to_[i] = (to_type)(expression);                                                                  \
        }                                                                                                    \
        break;                                                                                               \
    }

#define READ_INTEGER(name, type)                                                                             \
    case LNT_##name:                                                                                         \
        EACH(type, TO, x)

#define DEFINE_READ(name)                                                                                    \
    void lnt_elements_to_##name(lnt_dtype from, const void *src, TO *dst, int64_t n)                         \
    {                                                                                                        \
        switch (from) {                                                                                      \
            INTEGERS(READ_INTEGER)                                                                           \
        case LNT_FLOAT: EACH(float, TO, OF_REAL(x))                                                          \
        case LNT_DOUBLE: EACH(double, TO, OF_REAL(x))                                                        \
        case LNT_FLOAT16: EACH(uint16_t, TO, OF_REAL(lnt_f16_to_float(x)))                                   \
        case LNT_BFLOAT16: EACH(uint16_t, TO, OF_REAL(lnt_bf16_to_float(x)))                                 \
        case LNT_BOOL: EACH(uint8_t, TO, x != 0)                                                             \
        default: break;                                                                                      \
        }                                                                                                    \
    }

#define OF_REAL(x) (x)
#define TO float
DEFINE_READ(float)
#undef TO
#define TO double
DEFINE_READ(double)
#undef TO
#undef OF_REAL
#define OF_REAL(x) lnt_saturate((double)(x), INT64_MIN, INT64_MAX)
#define TO int64_t
DEFINE_READ(int64)
#undef TO
#undef OF_REAL

static inline uint64_t saturate_unsigned(double x, uint64_t high)
{
    return !(x > 0) ? 0 : x >= (double)high ? high : (uint64_t)x;
}

#define WRITE_REAL(FROM)                                                                                     \
    case LNT_UINT8: EACH(FROM, uint8_t, saturate_unsigned((double)x, UINT8_MAX))                             \
    case LNT_INT8: EACH(FROM, int8_t, lnt_saturate((double)x, INT8_MIN, INT8_MAX))                           \
    case LNT_UINT16: EACH(FROM, uint16_t, saturate_unsigned((double)x, UINT16_MAX))                          \
    case LNT_INT16: EACH(FROM, int16_t, lnt_saturate((double)x, INT16_MIN, INT16_MAX))                       \
    case LNT_INT32: EACH(FROM, int32_t, lnt_saturate((double)x, INT32_MIN, INT32_MAX))                       \
    case LNT_UINT32: EACH(FROM, uint32_t, saturate_unsigned((double)x, UINT32_MAX))                          \
    case LNT_INT64: EACH(FROM, int64_t, lnt_saturate((double)x, INT64_MIN, INT64_MAX))                       \
    case LNT_UINT64: EACH(FROM, uint64_t, saturate_unsigned((double)x, UINT64_MAX))                          \
    case LNT_FLOAT: EACH(FROM, float, x)                                                                     \
    case LNT_DOUBLE: EACH(FROM, double, x)                                                                   \
    case LNT_FLOAT16: EACH(FROM, uint16_t, lnt_float_to_f16((float)x))                                       \
    case LNT_BFLOAT16: EACH(FROM, uint16_t, lnt_float_to_bf16((float)x))                                     \
    case LNT_BOOL: EACH(FROM, uint8_t, x != 0)                                                               \
    default: break;

void lnt_elements_from_float(lnt_dtype to, const float *src, void *dst, int64_t n)
{
    switch (to) {
        WRITE_REAL(float)
    }
}

void lnt_elements_from_double(lnt_dtype to, const double *src, void *dst, int64_t n)
{
    switch (to) {
        WRITE_REAL(double)
    }
}

#define WRITE_INTEGER(name, type)                                                                            \
    case LNT_##name: EACH(int64_t, type, x)

void lnt_elements_from_int64(lnt_dtype to, const int64_t *src, void *dst, int64_t n)
{
    switch (to) {
        INTEGERS(WRITE_INTEGER)
    case LNT_FLOAT: EACH(int64_t, float, x)
    case LNT_DOUBLE: EACH(int64_t, double, x)
    case LNT_FLOAT16: EACH(int64_t, uint16_t, lnt_float_to_f16((float)x))
    case LNT_BFLOAT16: EACH(int64_t, uint16_t, lnt_float_to_bf16((float)x))
    case LNT_BOOL: EACH(int64_t, uint8_t, x != 0)
    default: break;
    }
}
