/* simd_ordered.h — loads and multiply-adds of NEON on 64-bit ARM that are issued in the order of the source, for cores
 * that run in order (Cortex-A53, A55) and for loops that a compiler orders badly: each is a volatile asm.
 *
 * On these cores a vector load of 128 bits holds up multiply-adds for two cycles, one of 64 bits for one, in which an
 * insertion of 64 bits into another vector is free, as are loads into general registers beside multiply-adds ("ARM
 * A53/A55 dual issue", ncnn's documentation). So a vector comes by halves: the first by ordered_first, the second by
 * ordered_pair into a general register and by ordered_insert, while the load of another vector issues. */
#ifndef LNT_OPS_SIMD_SIMD_ORDERED_H
#define LNT_OPS_SIMD_SIMD_ORDERED_H

#include "ops/simd/simd.h"

typedef uint64_t two_floats __attribute__((may_alias, aligned(4)));
typedef uint32_t one_float __attribute__((may_alias));

LNT_INLINE void ordered_load(vf *x, const void *from)
{
    __asm__ volatile("ldr %q0, %1" : "=w"(*x) : "m"(*(const vf_unaligned *)from));
}

LNT_INLINE void ordered_pair(uint64_t *x, const void *from)
{
    __asm__ volatile("ldr %x0, %1" : "=r"(*x) : "m"(*(const two_floats *)from));
}

/* What x is made of is computed by here. */
LNT_INLINE size_t ordered_value(size_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x;
}

LNT_INLINE const void *ordered_pointer(const void *p)
{
    __asm__ volatile("" : "+r"(p));
    return p;
}

LNT_INLINE float *ordered_result(float *p)
{
    __asm__ volatile("" : "+r"(p));
    return p;
}

LNT_INLINE void ordered_index(uint64_t *x, const uint32_t *from)
{
    __asm__ volatile("ldr %w0, %1" : "=r"(*x) : "m"(*from));
}

LNT_INLINE void ordered_float(uint64_t *x, const void *from)
{
    __asm__ volatile("ldr %w0, %1" : "=r"(*x) : "m"(*(const one_float *)from));
}

/* Two floats of a register each into one. */
LNT_INLINE void ordered_join(uint64_t *first, uint64_t second)
{
    __asm__ volatile("orr %x0, %x0, %x1, lsl #32" : "+r"(*first) : "r"(second));
}

/* The first half of *x; the second is 0. */
LNT_INLINE void ordered_first(vf *x, const void *from)
{
    __asm__ volatile("ldr %d0, %1" : "=w"(*x) : "m"(*(const two_floats *)from));
}

LNT_INLINE void ordered_first_of(vf *x, uint64_t pair)
{
    __asm__ volatile("fmov %d0, %x1" : "=w"(*x) : "r"(pair));
}

LNT_INLINE void ordered_insert(vf *x, const bool second, uint64_t pair)
{
    if (second)
        __asm__ volatile("ins %0.d[1], %x1" : "+w"(*x) : "r"(pair));
    else
        __asm__ volatile("ins %0.d[0], %x1" : "+w"(*x) : "r"(pair));
}

LNT_INLINE void ordered_copy(vf *x, vf from)
{
    __asm__ volatile("mov %0.16b, %1.16b" : "=w"(*x) : "w"(from));
}

/* *c += a * b */
LNT_INLINE void ordered_fma(vf *c, vf a, vf b)
{
    __asm__ volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(*c) : "w"(a), "w"(b));
}

/* *c += b * x[lane] */
LNT_INLINE void ordered_fma_lane(vf *c, vf b, vf x, const unsigned lane)
{
    if (lane == 0)
        __asm__ volatile("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(*c) : "w"(b), "w"(x));
    else if (lane == 1)
        __asm__ volatile("fmla %0.4s, %1.4s, %2.s[1]" : "+w"(*c) : "w"(b), "w"(x));
    else if (lane == 2)
        __asm__ volatile("fmla %0.4s, %1.4s, %2.s[2]" : "+w"(*c) : "w"(b), "w"(x));
    else
        __asm__ volatile("fmla %0.4s, %1.4s, %2.s[3]" : "+w"(*c) : "w"(b), "w"(x));
}

#endif
