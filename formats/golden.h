/* golden.h — golden vectors: cases an .lnt carries to prove itself on the device.
 *
 * One case is a run of records with the same `test` number: its inputs, then its outputs. Large
 * floating-point inputs are stored as a seed and the rule below, large outputs as every stride-th element. */
#ifndef LNT_FORMATS_GOLDEN_H
#define LNT_FORMATS_GOLDEN_H

#include "formats/lnt_file.h"

/* The rule of seeded inputs: element e is uniform in [-1, 1), a function of seed and e alone (splitmix64:
 * Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014), rounded to dtype: float, double,
 * float16 or bfloat16. False for any other type. */
bool lnt_golden_fill(uint64_t seed, lnt_dtype dtype, size_t count, void *out);

/* The tensor of a raw or seeded record, with the record's extents; for a sampled one a tensor of rank 1 with
 * the stored elements. out->data is one lnt_alloc block. */
lnt_status lnt_golden_tensor(const lnt_file *file, const lnt_rec_golden *record, const lnt_allocator *a,
                             lnt_tensor *out, lnt_error *err);

#endif
