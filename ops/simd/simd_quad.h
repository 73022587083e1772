/* simd_quad.h — four bytes widened to int16 side by side, and their products, for levels whose vectors do not do that:
 * two to a register where ARM's 32-bit registers hold pairs (ARMv6, ARMv7 without NEON). */
#ifndef LNT_OPS_SIMD_SIMD_QUAD_H
#define LNT_OPS_SIMD_SIMD_QUAD_H

#include "ops/simd/simd.h"

#if defined(__ARM_FEATURE_SIMD32)

#include <arm_acle.h>

typedef struct quad {
    uint32_t even, odd; /* elements 0 and 2, 1 and 3 */
} __attribute__((aligned(8))) quad;

/* In one instruction. */
LNT_INLINE quad quad_load(const quad *p)
{
    uint64_t both;
    memcpy(&both, p, sizeof both);
    return (quad){(uint32_t)both, (uint32_t)(both >> 32)};
}

/* p[i] ^ flip */
LNT_INLINE quad quad_of_u8(const uint8_t *p, uint8_t flip)
{
    uint32_t four;
    quad x;
    memcpy(&four, p, sizeof four);
    four ^= flip * 0x01010101u;
    __asm__("uxtb16 %0, %1" : "=r"(x.even) : "r"(four));
    __asm__("uxtb16 %0, %1, ror #8" : "=r"(x.odd) : "r"(four));
    return x;
}

LNT_INLINE quad quad_of_i8(const int8_t *p)
{
    uint32_t four;
    quad x;
    memcpy(&four, p, sizeof four);
    __asm__("sxtb16 %0, %1" : "=r"(x.even) : "r"(four));
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(x.odd) : "r"(four));
    return x;
}

LNT_INLINE quad quad_of(const int32_t p[4])
{
    return (quad){(uint32_t)p[0] % 0x10000 | (uint32_t)p[2] << 16,
                  (uint32_t)p[1] % 0x10000 | (uint32_t)p[3] << 16};
}

/* sum + a[0] b[0] + ... + a[3] b[3] */
LNT_INLINE uint32_t quad_dot(uint32_t sum, quad a, quad b)
{
    sum = (uint32_t)__smlad((int16x2_t)a.even, (int16x2_t)b.even, (int32_t)sum);
    return (uint32_t)__smlad((int16x2_t)a.odd, (int16x2_t)b.odd, (int32_t)sum);
}

/* sum[i] += a[i] b[i]. Spelled out as these wrap, and set no flag that is read. */
LNT_INLINE void quad_multiply_add(uint32_t sum[4], quad a, quad b)
{
    __asm__("smlabb %0, %1, %2, %0" : "+r"(sum[0]) : "r"(a.even), "r"(b.even));
    __asm__("smlabb %0, %1, %2, %0" : "+r"(sum[1]) : "r"(a.odd), "r"(b.odd));
    __asm__("smlatt %0, %1, %2, %0" : "+r"(sum[2]) : "r"(a.even), "r"(b.even));
    __asm__("smlatt %0, %1, %2, %0" : "+r"(sum[3]) : "r"(a.odd), "r"(b.odd));
}

#else

typedef struct quad {
    int16_t v[4];
} quad;

LNT_INLINE quad quad_load(const quad *p)
{
    return *p;
}

LNT_INLINE quad quad_of_u8(const uint8_t *p, uint8_t flip)
{
    return (quad){{p[0] ^ flip, p[1] ^ flip, p[2] ^ flip, p[3] ^ flip}};
}

LNT_INLINE quad quad_of_i8(const int8_t *p)
{
    return (quad){{p[0], p[1], p[2], p[3]}};
}

LNT_INLINE quad quad_of(const int32_t p[4])
{
    return (quad){{(int16_t)p[0], (int16_t)p[1], (int16_t)p[2], (int16_t)p[3]}};
}

LNT_INLINE uint32_t quad_dot(uint32_t sum, quad a, quad b)
{
    return sum + (uint32_t)(a.v[0] * b.v[0] + a.v[1] * b.v[1] + a.v[2] * b.v[2] + a.v[3] * b.v[3]);
}

LNT_INLINE void quad_multiply_add(uint32_t sum[4], quad a, quad b)
{
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++)
        sum[i] += (uint32_t)(a.v[i] * b.v[i]);
}

#endif

#endif
