/* cells.h — elements in memory to and from floats, at the level's speed.
 *
 * A table per level, which elementwise programs read and write memory with (ops/elementwise/program_kernels.inc.h
 * defines it); operators that compute in float use it for halves and narrow integers. */
#ifndef LNT_OPS_CELLS_H
#define LNT_OPS_CELLS_H

#include "base/linnet_types.h"

/* What is in memory. Integers become floats, and floats integers as Cast has it; bool becomes a mask of 0 or all
 * bits. */
typedef enum lnt_cell {
    LNT_CELL_F32,
    LNT_CELL_F16,
    LNT_CELL_BF16,
    LNT_CELL_BOOL,
    LNT_CELL_U8,
    LNT_CELL_I8,
    LNT_CELL_U16,
    LNT_CELL_I16,
    LNT_CELL_I32,
    LNT_CELL_I64,
    LNT_CELL_COUNT
} lnt_cell;

typedef struct lnt_cells {
    /* n elements, stride elements apart (0: all the same), from or to memory aligned to its element only. In half
     * arithmetic cells without a form are NULL. */
    void (*load[LNT_CELL_COUNT])(float *reg, const void *memory, int64_t stride, int64_t n);
    void (*store[LNT_CELL_COUNT])(const float *reg, void *memory, int64_t stride, int64_t n);
} lnt_cells;

/* n elements side by side, as lnt_elements_to_float and lnt_elements_from_float convert them (ops/element.h). */
void lnt_cells_to_float(const lnt_cells *c, lnt_dtype from, const void *src, float *dst, int64_t n);
void lnt_cells_from_float(const lnt_cells *c, lnt_dtype to, const float *src, void *dst, int64_t n);

/* x half to even, for integers of at most 16 bits: above those it is only near. */
void lnt_cells_round(float *x, int64_t n);

#endif
