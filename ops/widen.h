/* widen.h — operators written for float and double, run on every other type.
 *
 * The bind function of such an operator chooses its kernel and parameters as usual (the kernel asks for
 * lnt_real_operand's type), asks for its scratch memory, and ends with
 *
 *     return lnt_bind_widened(site, inputs, outputs);
 *
 * where the masks name the real-valued operands. If they are already all float or all double nothing more
 * happens; otherwise the step converts them into scratch memory, runs the kernel there and rounds once. */
#ifndef LNT_OPS_WIDEN_H
#define LNT_OPS_WIDEN_H

#include "ops/op.h"

enum { LNT_WIDEN_MAX = 12 }; /* operands a widened operator may have */

/* Fails with E_UNSUPPORTED if a named operand is not numeric. Operands with other types than the first
 * input's are brought to the type it is computed in. */
lnt_status lnt_bind_widened(lnt_site *site, uint32_t inputs, uint32_t outputs);

/* float or double: what the kernel of this site will be given for the operands named to lnt_bind_widened. */
lnt_dtype lnt_site_real_type(const lnt_site *site);

#endif
