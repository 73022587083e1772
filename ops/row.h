/* row.h — the kernel table of the row family. */
#ifndef LNT_OPS_ROW_H
#define LNT_OPS_ROW_H

#include "ops/kernels.h"

typedef struct lnt_row_kernels lnt_row_kernels;

extern const lnt_row_kernels lnt_row_scalar, lnt_row_avx2, lnt_row_neon;

#endif
