/* small.c — small element types: what their codes mean, how numbers are rounded to them, how ONNX packs them. */
#include "base/small.h"

#include "base/half.h"
#include "base/lnt_assert.h"

#include <math.h>

/* Which codes of a float are no numbers. */
typedef enum specials {
    NO_SPECIALS,
    ALL_ONES,   /* NaN */
    MINUS_ZERO, /* the code that would be -0 is NaN */
    IEEE        /* the highest exponent: infinity, or NaN with a mantissa */
} specials;

typedef struct format {
    uint8_t bits, exponent, mantissa, bias; /* exponent 0: an integer */
    bool is_signed;
    specials specials;
} format;

static format format_of(lnt_dtype t)
{
    static const format formats[] = {
        [LNT_FLOAT8E4M3FN - LNT_FLOAT8E4M3FN] = {8, 4, 3, 7, true, ALL_ONES},
        [LNT_FLOAT8E4M3FNUZ - LNT_FLOAT8E4M3FN] = {8, 4, 3, 8, true, MINUS_ZERO},
        [LNT_FLOAT8E5M2 - LNT_FLOAT8E4M3FN] = {8, 5, 2, 15, true, IEEE},
        [LNT_FLOAT8E5M2FNUZ - LNT_FLOAT8E4M3FN] = {8, 5, 2, 16, true, MINUS_ZERO},
        [LNT_UINT4 - LNT_FLOAT8E4M3FN] = {4, 0, 0, 0, false, NO_SPECIALS},
        [LNT_INT4 - LNT_FLOAT8E4M3FN] = {4, 0, 0, 0, true, NO_SPECIALS},
        [LNT_FLOAT4E2M1 - LNT_FLOAT8E4M3FN] = {4, 2, 1, 1, true, NO_SPECIALS},
        [LNT_FLOAT8E8M0 - LNT_FLOAT8E4M3FN] = {8, 8, 0, 127, false, ALL_ONES},
        [LNT_UINT2 - LNT_FLOAT8E4M3FN] = {2, 0, 0, 0, false, NO_SPECIALS},
        [LNT_INT2 - LNT_FLOAT8E4M3FN] = {2, 0, 0, 0, true, NO_SPECIALS},
    };
    LNT_ASSERT(lnt_is_small(t));
    return formats[t - LNT_FLOAT8E4M3FN];
}

unsigned lnt_small_bits(lnt_dtype t)
{
    return format_of(t).bits;
}

static unsigned low_bits(unsigned n)
{
    return (1u << n) - 1;
}

/* ---- floats ---- */

static float decode(format f, unsigned code)
{
    const unsigned magnitude = code & low_bits(f.bits - f.is_signed),
                   sign = code >> (f.bits - f.is_signed) & 1;
    const unsigned e = magnitude >> f.mantissa, m = magnitude & low_bits(f.mantissa);
    if ((f.specials == ALL_ONES && magnitude == low_bits(f.bits - f.is_signed)) ||
        (f.specials == MINUS_ZERO && sign && !magnitude) ||
        (f.specials == IEEE && e == low_bits(f.exponent) && m))
        return sign ? -NAN : NAN;
    if (f.specials == IEEE && e == low_bits(f.exponent))
        return sign ? -INFINITY : INFINITY;
    const bool normal = e > 0 || f.mantissa == 0; /* without a mantissa there is no 0 */
    const float value =
        ldexpf((float)(normal ? m + (1u << f.mantissa) : m), (normal ? (int)e : 1) - f.bias - f.mantissa);
    return sign ? -value : value;
}

/* The code of the highest finite magnitude. */
static unsigned highest(format f)
{
    const unsigned all = low_bits(f.bits - f.is_signed);
    return f.specials == ALL_ONES ? all - 1 : f.specials == IEEE ? all - (1u << f.mantissa) : all;
}

static unsigned nan_code(format f, unsigned sign)
{
    const unsigned top = 1u << (f.bits - 1);
    switch (f.specials) {
    case ALL_ONES: return low_bits(f.bits - 1) | (sign * top);
    case MINUS_ZERO: return top;
    case IEEE: return (highest(f) + 1) | 1u << (f.mantissa - 1) | (sign * top);
    default: return sign ? 0 : top; /* none: a zero */
    }
}

/* What lies beyond the highest and is not saturated. */
static unsigned beyond(format f, unsigned sign)
{
    return f.specials == IEEE ? (highest(f) + 1) | sign << (f.bits - 1) : nan_code(f, sign);
}

/* Rounded to nearest, halves to even. A code is exponent and mantissa side by side, so that the magnitude in units of
 * the last place, added to what the exponent is worth, carries into it by itself. */
static unsigned encode(format f, float x, bool saturate)
{
    const uint32_t bits = lnt_float_bits(x), sign = bits >> 31;
    const float size = fabsf(x);
    const int least = 1 - f.bias, given = (int)(bits >> 23 & 0xff) - 127, e = given < least ? least : given;
    saturate |= f.specials == NO_SPECIALS;
    if (isnan(x))
        return nan_code(f, sign);
    const unsigned most = highest(f);
    const bool large = e >= least + (1 << f.exponent); /* out of the range of codes */
    const unsigned units = large ? 0 : (unsigned)lrintf(ldexpf(size, f.mantissa - e));
    const unsigned code = large ? most + 1 : ((unsigned)(e - least) << f.mantissa) + units;
    if (code > most)
        return saturate ? most | sign << (f.bits - 1) : beyond(f, sign);
    return f.specials == MINUS_ZERO && !code ? 0 : code | sign << (f.bits - 1);
}

/* The exponent of x, whose sign does not count (TensorProto.FLOAT8E8M0, as onnx.numpy_helper.to_float8e8m0 has it). */
static unsigned encode_e8m0(float x, lnt_small_rounding how)
{
    enum { NO_NUMBER = 0xff, HALF = 0x400000 };
    const uint32_t bits = lnt_float_bits(x), e = bits >> 23 & 0xff, rest = bits & 0x7fffff;
    /* Of two powers as near as one another the higher, but for what lies below the lowest. */
    const bool more =
        how.e8m0 == LNT_ROUND_UP ? rest > 0 : how.e8m0 == LNT_ROUND_NEAREST && rest >= HALF + (e == 0);
    return e == NO_NUMBER || !more || (how.saturate && e == NO_NUMBER - 1) ? e : e + 1;
}

void lnt_small_to_float(lnt_dtype t, const uint8_t *code, float *out, int64_t n)
{
    const format f = format_of(t);
    LNT_ASSERT(f.exponent > 0);
    for (int64_t i = 0; i < n; i++)
        out[i] = decode(f, code[i] & low_bits(f.bits));
}

void lnt_small_from_float(lnt_dtype t, const float *x, uint8_t *code, int64_t n, lnt_small_rounding how)
{
    const format f = format_of(t);
    LNT_ASSERT(f.exponent > 0);
    for (int64_t i = 0; i < n; i++)
        code[i] = (uint8_t)(t == LNT_FLOAT8E8M0 ? encode_e8m0(x[i], how) : encode(f, x[i], how.saturate));
}

uint8_t lnt_small_nearest(lnt_dtype t, float x)
{
    uint8_t code;
    lnt_small_from_float(t, &x, &code, 1, (lnt_small_rounding){.saturate = true, .e8m0 = LNT_ROUND_NEAREST});
    return code;
}

/* ---- integers ---- */

/* The low bits, the highest of which is the sign where there is one. */
static uint8_t extended(format f, unsigned bits)
{
    const unsigned sign = f.is_signed ? 1u << (f.bits - 1) : 0;
    return (uint8_t)(((bits & low_bits(f.bits)) ^ sign) - sign);
}

void lnt_small_from_int32(lnt_dtype t, const int32_t *x, uint8_t *out, int64_t n)
{
    const format f = format_of(t);
    LNT_ASSERT(f.exponent == 0);
    for (int64_t i = 0; i < n; i++)
        out[i] = extended(f, (unsigned)x[i]);
}

/* ---- packed ---- */

size_t lnt_small_packed_bytes(lnt_dtype t, size_t n)
{
    const size_t each = 8 / format_of(t).bits;
    return n / each + (n % each != 0);
}

void lnt_small_unpack(lnt_dtype t, const uint8_t *packed, size_t n, uint8_t *out)
{
    const format f = format_of(t);
    const size_t each = 8 / f.bits;
    for (size_t i = n; i-- > 0;) { /* an element's byte is not before its packed place */
        const unsigned bits = (unsigned)packed[i / each] >> i % each * f.bits & low_bits(f.bits);
        out[i] = f.exponent ? (uint8_t)bits : extended(f, bits);
    }
}

void lnt_small_pack(lnt_dtype t, const uint8_t *bytes, size_t n, uint8_t *out)
{
    const format f = format_of(t);
    const size_t each = 8 / f.bits;
    for (size_t i = 0; i < n; i += each) {
        unsigned packed = 0;
        for (size_t k = 0; k < each && i + k < n; k++)
            packed |= (bytes[i + k] & low_bits(f.bits)) << k * f.bits;
        out[i / each] = (uint8_t)packed;
    }
}
