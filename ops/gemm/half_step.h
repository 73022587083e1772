/* half_step.h — steps that compute with halves (ops/half_kernels.h). */
#ifndef LNT_OPS_GEMM_HALF_STEP_H
#define LNT_OPS_GEMM_HALF_STEP_H

#include "ops/half_kernels.h"

/* Is input `weights` a constant packed as float16, of an operator that computes with floats, at a level that
 * computes with halves? */
bool lnt_has_half_weights(const lnt_site *site, unsigned weights);

/* Calls bind with site->half set: for a kernel whose operands named in `inputs`, and whose output 0, are halves. Those
 * that are float are converted in scratch memory by the step itself. */
lnt_status lnt_bind_half(lnt_site *site, uint32_t inputs, lnt_bind_fn bind);

#endif
