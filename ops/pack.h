/* pack.h — which constants the gemm family wants packed, and how. */
#ifndef LNT_OPS_PACK_H
#define LNT_OPS_PACK_H

#include "formats/packed.h"
#include "ops/op.h"

/* True if input `input` of node, a float constant in[input] with known extents, should be stored packed:
 * fills *record for lnt_packed_bytes and lnt_pack. in[0 .. node->n_in) are the node's operands (NULL where
 * skipped); extents of the others may be unknown. The converter asks for constants only; MatMul, Gemm,
 * FusedMatMul, Conv, ConvTranspose, LSTM, GRU and RNN answer. */
bool lnt_pack_wanted(const lnt_node *node, const lnt_operand *const *in, unsigned input, lnt_packed *record);

#endif
