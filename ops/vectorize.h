/* vectorize.h — for files of plain loops that the compiler is to make vectors of, included before them. */
#ifndef LNT_OPS_VECTORIZE_H
#define LNT_OPS_VECTORIZE_H

/* Before a loop: what one turn writes no other turn reads. A result may still be exactly an operand's memory. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("tree-loop-vectorize", "vect-cost-model=dynamic")
#define LNT_INDEPENDENT _Pragma("GCC ivdep")
#else
#pragma clang diagnostic ignored "-Wpass-failed" /* what no vectors can be made of stays as it is */
#define LNT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#endif

#endif
