/* tensor_parts.h — what the readers and writers of tensor files share. */
#ifndef LNT_FORMATS_TENSOR_PARTS_H
#define LNT_FORMATS_TENSOR_PARTS_H

#include "formats/tensor_file.h"

/* Kernels rely on 0 and 1 in bool tensors; files may hold any byte for true. */
void lnt_tensor_clean_bools(lnt_tensor *t);
/* NumPy's letters for an element type ("f4"; bfloat16 as the u2 that stands in for it); NULL if it has none. */
const char *lnt_npy_type(lnt_dtype dtype);

#endif
