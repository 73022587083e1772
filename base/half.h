/* half.h — float16 and bfloat16 as stored types; arithmetic is done in float. Round to nearest even. */
#ifndef LNT_BASE_HALF_H
#define LNT_BASE_HALF_H

#include <stdint.h>
#include <string.h>

#define LNT_F16_MAX 65504.0f /* the largest finite half */

static inline uint32_t lnt_float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float lnt_bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float lnt_bf16_to_float(uint16_t h)
{
    return lnt_bits_float((uint32_t)h << 16);
}

static inline uint16_t lnt_float_to_bf16(float x)
{
    uint32_t u = lnt_float_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40u); /* keep NaN a NaN */
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/* 64-bit ARM has instructions for it. */
#if defined(__aarch64__)
static inline float lnt_f16_to_float(uint16_t h)
{
    __fp16 x;
    memcpy(&x, &h, sizeof x);
    return (float)x;
}

static inline uint16_t lnt_float_to_f16(float x)
{
    const __fp16 rounded = (__fp16)x;
    uint16_t h;
    memcpy(&h, &rounded, sizeof h);
    return h;
}
#else
static inline float lnt_f16_to_float(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u)
        return lnt_bits_float(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
    if (rest >= 0x400u)
        return lnt_bits_float(sign | ((rest << 13) + 0x38000000u));
    const float subnormal = (float)rest * 0x1p-24f;
    return lnt_bits_float(sign | lnt_float_bits(subnormal));
}

static inline uint16_t lnt_float_to_f16(float x)
{
    const uint32_t u = lnt_float_bits(x), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: a multiple of 2^-24, rounded by float addition */
        const float shifted = lnt_bits_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (lnt_float_bits(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
}
#endif

#endif
