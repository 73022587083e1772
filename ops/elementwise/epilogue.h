/* epilogue.h — the program behind a GEMM-like operator, run on each tile right after it was computed.
 *
 * The operator's output 0 is seen as a matrix: its last axis in storage order gives the columns (channels,
 * N), all axes before it the rows. Operands of the program are the node's last n_program_in inputs; each
 * broadcasts against output 0, in whatever storage order it has. */
#ifndef LNT_OPS_ELEMENTWISE_EPILOGUE_H
#define LNT_OPS_ELEMENTWISE_EPILOGUE_H

#include "ops/op.h"

typedef struct lnt_epilogue lnt_epilogue;

/* For bind functions: *out is NULL where the node carries no program. */
lnt_status lnt_bind_epilogue(lnt_site *site, const lnt_epilogue **out);

/* Runs the program in place over rows [row, row + rows) and columns [col, col + cols) of output 0. tile holds
 * those values, floats, or halves if it was bound for a kernel of these, ld elements from row to row; it may be the
 * output's own memory. Worth calling with some
 * hundred values or more at a time. Any thread. */
void lnt_epilogue_run(const lnt_epilogue *e, const lnt_kernel *k, const lnt_step *s, float *tile, int64_t ld,
                      int64_t row, int64_t rows, int64_t col, int64_t cols);

#endif
