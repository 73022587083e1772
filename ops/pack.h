/* pack.h — which constants the gemm family wants packed, and how. */
#ifndef LNT_OPS_PACK_H
#define LNT_OPS_PACK_H

#include "formats/packed.h"
#include "ops/op.h"

/* True if o, a float or byte constant with known extents and input `input` of node, should be stored packed:
 * fills *record for lnt_packed_bytes and lnt_pack. The converter asks for constants only; MatMul, Gemm,
 * FusedMatMul, Conv, WinogradConv, ConvTranspose, LSTM, GRU, RNN and the products of bytes answer. A constant
 * packed in any other way is none of theirs. */
bool lnt_pack_wanted(const lnt_node *node, unsigned input, const lnt_operand *o, lnt_packed *record);

#endif
