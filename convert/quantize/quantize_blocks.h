/* quantize_blocks.h — `--int4`: float weights of a product as numbers of 4 bits in blocks along K (MatMulNBits).
 *
 * Each block has the scale and the zero point of least squared error among these: clipping ranges of a grid (Choukroun,
 * Kravchik, Yang and Kisilev, "Low-bit Quantization of Neural Networks for Efficient Inference", 2019), from each of
 * which rounding and the scale of least squares alternate (Lloyd, "Least Squares Quantization in PCM", 1982). */
#ifndef LNT_CONVERT_QUANTIZE_QUANTIZE_BLOCKS_H
#define LNT_CONVERT_QUANTIZE_QUANTIZE_BLOCKS_H

#include "convert/graph/graph.h"

enum { LNT_BLOCK = 32, LNT_BLOCK_LEAST = 16, LNT_BLOCK_MOST = 256 }; /* numbers; powers of 2 */

/* Operands of MatMulNBits: uint8 [N][blocks][block / 2]; float [N * blocks]; uint8 [N][(blocks + 1) / 2], or LNT_NONE
 * where every zero point is 8. */
typedef struct lnt_blocks {
    uint32_t weights, scales, zeros;
} lnt_blocks;

/* Of a constant [K, N], or `turned` [N, K], times factor. weights LNT_NONE where an element is not finite. Scales are
 * halves, and stored as such, unless one of them is too small or large for it. */
lnt_status lnt_quantize_blocks(lnt_graph *g, const char *name, const lnt_operand *value, bool turned,
                               float factor, int64_t block, lnt_blocks *made);

#endif
