/* cast_kernels.inc.h — the steps that casts are made of, for the table that typed_kernels.inc.h defines. */
#include "base/half.h"

#define STEP(how, name, type, to_type, value)                                                                \
    how static void cast_##name(void *to, const void *from, int64_t n)                                       \
    {                                                                                                        \
        const type *m = from;                                                                                \
        to_type *p = to;                                                                                     \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const type x = m[i];                                                                             \
            p[i] = (to_type)(value);                                                                         \
        }                                                                                                    \
    }
#define OFTEN

/* ---- integers: the sign of the result makes no difference, nor that of the source where it is cut ---- */

STEP(OFTEN, u8_16, uint8_t, uint16_t, x)
STEP(OFTEN, u8_32, uint8_t, uint32_t, x)
STEP(OFTEN, u16_32, uint16_t, uint32_t, x)
STEP(OFTEN, i8_16, int8_t, uint16_t, x)
STEP(OFTEN, i8_32, int8_t, uint32_t, x)
STEP(OFTEN, i16_32, int16_t, uint32_t, x)
STEP(OFTEN, 16_8, uint16_t, uint8_t, x)
STEP(OFTEN, 32_8, uint32_t, uint8_t, x)
STEP(OFTEN, 64_8, uint64_t, uint8_t, x)
STEP(OFTEN, 32_16, uint32_t, uint16_t, x)
STEP(OFTEN, 64_16, uint64_t, uint16_t, x)
STEP(OFTEN, 64_32, uint64_t, uint32_t, x)

/* ---- to 64 bits: of 8 and 16 in one step at levels that have one, else by way of 32 ---- */

#if defined(__AVX2__)
/* widened: of the bits of four. */
#define STEP_64(name, type, to_type, four_type, widened)                                                     \
    RARE static void cast_##name(void *to, const void *from, int64_t n)                                      \
    {                                                                                                        \
        const type *m = from;                                                                                \
        to_type *p = to;                                                                                     \
        int64_t i = 0;                                                                                       \
        for (four_type four; i + 4 <= n; i += 4) {                                                           \
            memcpy(&four, m + i, sizeof four);                                                               \
            _mm256_storeu_si256((__m256i *)(void *)(p + i), (__m256i)(widened));                             \
        }                                                                                                    \
        for (; i < n; i++)                                                                                   \
            p[i] = (to_type)m[i];                                                                            \
    }
STEP_64(u8_64, uint8_t, int64_t, int32_t, _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four)))
STEP_64(i8_64, int8_t, int64_t, int32_t, _mm256_cvtepi8_epi64(_mm_cvtsi32_si128(four)))
STEP_64(u16_64, uint16_t, int64_t, int64_t, _mm256_cvtepu16_epi64(_mm_cvtsi64_si128(four)))
STEP_64(i16_64, int16_t, int64_t, int64_t, _mm256_cvtepi16_epi64(_mm_cvtsi64_si128(four)))
STEP_64(u32_64, uint32_t, int64_t, __m128i, _mm256_cvtepu32_epi64(four))
STEP_64(i32_64, int32_t, int64_t, __m128i, _mm256_cvtepi32_epi64(four))
STEP_64(u8_f64, uint8_t, double, int32_t, _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four))))
STEP_64(i8_f64, int8_t, double, int32_t, _mm256_cvtepi32_pd(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four))))
STEP_64(u16_f64, uint16_t, double, int64_t, _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(_mm_cvtsi64_si128(four))))
STEP_64(i16_f64, int16_t, double, int64_t, _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(_mm_cvtsi64_si128(four))))
STEP_64(i32_f64, int32_t, double, __m128i, _mm256_cvtepi32_pd(four))
STEP_64(f32_f64, float, double, __m128, _mm256_cvtps_pd(four))

/* Both halves as the last bits of a double: 2**84 and the high one, its sign turned over, in units of 2**32, and 2**52
 * and the low one. All but the last sum is exact. */
RARE static inline __m256d sum_of_halves(__m256i x)
{
    const __m256i high = _mm256_srli_epi64(x, 32) ^ _mm256_set1_epi64x(0x4530000080000000),
                  low = _mm256_blend_epi32(x, _mm256_set1_epi64x(0x4330000000000000), 0xaa);
    return (__m256d)high - _mm256_set1_pd(0x1p84 + 0x1p63 + 0x1p52) + (__m256d)low;
}
STEP_64(i64_f64, int64_t, double, __m256i, sum_of_halves(four))
#else
#define cast_u8_64 ((lnt_convert_fn)NULL)
#define cast_i8_64 ((lnt_convert_fn)NULL)
#define cast_u16_64 ((lnt_convert_fn)NULL)
#define cast_i16_64 ((lnt_convert_fn)NULL)
#define cast_u8_f64 ((lnt_convert_fn)NULL)
#define cast_i8_f64 ((lnt_convert_fn)NULL)
#define cast_u16_f64 ((lnt_convert_fn)NULL)
#define cast_i16_f64 ((lnt_convert_fn)NULL)
STEP(OFTEN, u32_64, uint32_t, uint64_t, x)
STEP(OFTEN, i32_64, int32_t, uint64_t, x)
STEP(OFTEN, i32_f64, int32_t, double, x)
STEP(OFTEN, f32_f64, float, double, x)
STEP(RARE, i64_f64, int64_t, double, x)
#endif

STEP(OFTEN, 8_bool, uint8_t, uint8_t, x != 0)
STEP(OFTEN, 16_bool, uint16_t, uint8_t, x != 0)
STEP(OFTEN, 32_bool, uint32_t, uint8_t, x != 0)
STEP(OFTEN, 64_bool, uint64_t, uint8_t, x != 0)
STEP(OFTEN, f32_bool, float, uint8_t, x != 0)
STEP(OFTEN, f64_bool, double, uint8_t, x != 0)

/* ---- to floating point ---- */

/* To float with the last bit set where inexact ("round to odd"): rounding that to a half is right. */
static inline float narrow_odd(double x)
{
    const float f = (float)x;
    const uint32_t bits = lnt_float_bits(f);
    const double given = fabs(x), found = fabs((double)f);
    const uint32_t even = ~bits & 1;
    return lnt_bits_float(bits + (found < given ? even : 0) - (found > given ? even : 0));
}

/* A whole number of more than 24 bits with what is below nine put into the highest of them, which no half reaches:
 * exact as a float. */
static inline uint32_t shortened(uint32_t x)
{
    return (x & ~0x1ffu) | (((x & 0x1ff) + 0x1ff) >> 1 & 0x100);
}

static inline int32_t narrow_signed(int32_t x)
{
    const int32_t head = (int32_t)shortened((uint32_t)x);
    return x >= -(1 << 24) && x <= 1 << 24 ? x : head;
}

static inline uint32_t narrow_unsigned(uint32_t x)
{
    const uint32_t head = shortened(x);
    return x <= 1 << 24 ? x : head;
}

STEP(OFTEN, i32_odd, int32_t, float, narrow_signed(x))
STEP(OFTEN, u32_odd, uint32_t, float, narrow_unsigned(x))
STEP(OFTEN, f64_odd, double, float, narrow_odd(x))
STEP(OFTEN, f64_f32, double, float, x)
STEP(OFTEN, u32_f32, uint32_t, float, x)
STEP(OFTEN, u32_f64, uint32_t, double, x)
STEP(RARE, u64_f32, uint64_t, float, x)
STEP(RARE, u64_f64, uint64_t, double, x)

/* ---- floating point to integers: out of range is defined ---- */

static inline int32_t cut_i32(double x)
{
    return (int32_t)(((x > -2147483649.0) & (x < 2147483648.0)) ? x : INT32_MIN);
}

static inline int64_t cut_i64(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

static inline uint64_t cut_u64(double x)
{
    return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)cut_i64(x);
}

#if defined(__AVX__)
/* Its instruction has the same idea of what is out of range. */
static void cast_f64_i32(void *to, const void *from, int64_t n)
{
    const double *m = from;
    int32_t *p = to;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        _mm_storeu_si128((__m128i *)(void *)(p + i), _mm256_cvttpd_epi32(_mm256_loadu_pd(m + i)));
    for (; i < n; i++)
        p[i] = cut_i32(m[i]);
}
#else
STEP(OFTEN, f64_i32, double, int32_t, cut_i32(x))
#endif

/* To less, of whatever sign: what is cut to int32 is cut again. */
#if defined(__AVX2__)
/* bytes: those of a vector that are kept, of four elements of to_type each. */
#define STEP_CUT(name, to_type, bytes)                                                                       \
    RARE static void cast_##name(void *to, const void *from, int64_t n)                                      \
    {                                                                                                        \
        const double *m = from;                                                                              \
        to_type *p = to;                                                                                     \
        int64_t i = 0;                                                                                       \
        for (; i + 4 <= n; i += 4) {                                                                         \
            const __m128i four = _mm_shuffle_epi8(_mm256_cvttpd_epi32(_mm256_loadu_pd(m + i)), bytes);       \
            memcpy(p + i, &four, 4 * sizeof *p);                                                             \
        }                                                                                                    \
        for (; i < n; i++)                                                                                   \
            p[i] = (to_type)cut_i32(m[i]);                                                                   \
    }
STEP_CUT(f64_8, uint8_t, _mm_set1_epi32(0x0c080400))
STEP_CUT(f64_16, uint16_t, _mm_set1_epi64x(0x0d0c090805040100))
#else
#define cast_f64_8 ((lnt_convert_fn)NULL)
#define cast_f64_16 ((lnt_convert_fn)NULL)
#endif
STEP(RARE, f64_i64, double, int64_t, cut_i64(x))
STEP(RARE, f64_u64, double, uint64_t, cut_u64(x))

/* ---- numbers that int32 holds ---- */

#define FITS(name, type, bits, beyond)                                                                       \
    static bool fits_##name(const void *from, int64_t n)                                                     \
    {                                                                                                        \
        const type *m = from;                                                                                \
        bits bad = 0;                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const type x = m[i];                                                                             \
            bad |= beyond;                                                                                   \
        }                                                                                                    \
        return bad == 0;                                                                                     \
    }
FITS(i64, uint64_t, uint64_t, (x + 0x80000000u) >> 32)
FITS(u64, uint64_t, uint64_t, x >> 31)
FITS(f32, float, uint32_t, !(fabsf(x) < 0x1p31f))
FITS(f64, double, uint64_t, !(fabs(x) < 0x1p31))

/* Without these operators nothing but typed_real.c asks, for floats and bool. */
enum {
    WITH_CAST = LNT_HAS_Cast || LNT_HAS_CastLike || LNT_HAS_Pow || LNT_HAS_ReduceMean || LNT_HAS_ReduceL2 ||
                LNT_HAS_ReduceLogSum || LNT_HAS_ReduceLogSumExp
};

#define X(name, always) [LNT_CAST_##name] = WITH_CAST || (always) ? cast_##name : NULL,
#define CAST_TABLE                                                                                           \
    {                                                                                                        \
        .step = {LNT_CAST_STEP_LIST(X)}, .i64_fits = WITH_CAST ? fits_i64 : NULL,                            \
        .u64_fits = WITH_CAST ? fits_u64 : NULL, .f32_fits = WITH_CAST ? fits_f32 : NULL,                    \
        .f64_fits = WITH_CAST ? fits_f64 : NULL,                                                             \
    }
