/* simd_lanes.h — loops over vectors that the compiler is to unroll, and the last vector of a row, some of whose lanes
 * are not wanted. Included after ops/simd/simd.h by the files of micro-kernels. */
#ifndef LNT_OPS_SIMD_SIMD_LANES_H
#define LNT_OPS_SIMD_SIMD_LANES_H

#include "ops/simd/simd.h"

/* Pointers of arguments that are declared float, to what a vector consists of. */
#define ELEMS(p) ((const elem *)(const void *)(p))
#define ELEMS_OUT(p) ((elem *)(void *)(p))

/* for (...), unrolled n times: UNROLL_FOR(4, unsigned j = 0; j < vectors; j++) */
#define UNROLL_FOR(n, ...) UNROLL_PRAGMA(n) for (__VA_ARGS__)
#define UNROLL_PRAGMA(n) _Pragma(UNROLL_TEXT(GCC unroll n))
#define UNROLL_TEXT(text) #text

/* Do tiles of so many rows and vectors compute the last LNT_VL / 2 columns or fewer with half a vector? Worth it from 5
 * rows on where both halves of a vector have a port of their own. Of one vector or two, half ones wait for each other:
 * whole loads beside them close one of the ports. */
#ifdef LNT_SIMD_AVX512
#define HALVES(rows, vectors) ((rows) >= 5 && (vectors) > 2)
#else
#define HALVES(rows, vectors) 0
#endif

/* Where lanes can be masked for nothing the last vector needs no other way than the rest. */
#ifdef LNT_SIMD_AVX512
enum { MASKS = 1 };
#else
enum { MASKS = 0 };
#endif

LNT_INLINE vf load_lanes(const elem *p, const bool some, unsigned lanes)
{
    return some ? v_load_n(p, lanes) : v_load(p);
}

LNT_INLINE unsigned lanes_left(size_t n)
{
    return n < LNT_VL ? (unsigned)n : LNT_VL;
}

LNT_INLINE void store_lanes(elem *p, vf x, const bool some, unsigned lanes)
{
    if (some)
        v_store_n(p, x, lanes);
    else
        v_store(p, x);
}

/* A compile-time constant left == LNT_VL makes these plain loads and stores. */
LNT_INLINE vf load(const elem *p, unsigned left)
{
    return left == LNT_VL ? v_load(p) : v_load_n(p, left);
}

LNT_INLINE void store(elem *p, vf v, unsigned left)
{
    if (left == LNT_VL)
        v_store(p, v);
    else
        v_store_n(p, v, left);
}

#endif
