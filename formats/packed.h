/* packed.h — weights packed for the kernels.
 *
 * A packed constant keeps its ONNX extents in its value record; this record says how its bytes lie. One
 * function gives the size to writer, verifier and kernels (lnt_packed_bytes), one packs, one gives back
 * ONNX order. Layout numbers are part of the file format (FORMAT.md): a new layout is a new number. */
#ifndef LNT_FORMATS_PACKED_H
#define LNT_FORMATS_PACKED_H

#include "base/error.h"
#include "base/operand.h"

enum { LNT_PANEL = 16 }; /* columns in a panel, at every level */

typedef enum lnt_layout {
    LNT_LAYOUT_PANEL_F32 = 1,      /* [groups][phases][N/16][K][16], K = taps x channels, zero-padded columns */
    LNT_LAYOUT_DEPTHWISE_F32 = 2,  /* [taps][C padded to 16] */
    LNT_LAYOUT_GATES_F32 = 3       /* [direction][H/16][gate][K][16], recurrent weights */
} lnt_layout;

/* Which ONNX operand the bytes came from: how (k, n) map to its extents. */
typedef enum lnt_source {
    LNT_SOURCE_KN = 1,     /* MatMul B, Gemm B: [..., K, N]; leading axes are groups */
    LNT_SOURCE_NK = 2,     /* Gemm B with transB: [N, K] */
    LNT_SOURCE_CONV = 3,   /* Conv W: [M, C/group, kernel...], k runs [tap][c] */
    LNT_SOURCE_CONVT = 4,  /* ConvTranspose W: [C, M/group, kernel...], one panel set per phase */
    LNT_SOURCE_GATES = 5   /* LSTM/GRU/RNN W or R: [directions, gates*hidden, K] */
} lnt_source;

struct lnt_packed { /* 64 bytes, stored as it is, little-endian */
    uint16_t layout;   /* lnt_layout */
    uint16_t source;   /* lnt_source */
    uint32_t groups;   /* independent products: convolution groups, batch of a MatMul B, directions */
    uint32_t phases;   /* of a transposed convolution, else 1 */
    uint32_t taps;     /* kernel positions, else 1 */
    uint32_t K;        /* inner length of one product, taps included */
    uint32_t N;        /* columns of one product (for gates: hidden size) */
    uint32_t gates;    /* 4 LSTM, 3 GRU, 1 RNN, else 1 */
    uint32_t kernel[3];  /* extents of the kernel, 1 where there is no such axis */
    uint32_t stride[3];  /* of a transposed convolution, else 1 */
    uint32_t dilation[3];
};

_Static_assert(sizeof(lnt_packed) == 64, "stored as it is");

/* Bytes of the packed data; false if the record is nonsense or overflows. */
bool lnt_packed_bytes(const lnt_packed *p, size_t *bytes);
/* NULL if p fits a constant of these ONNX extents, else what is wrong. */
const char *lnt_packed_check(const lnt_packed *p, unsigned rank, const int64_t *dims);
/* Packs ONNX-ordered floats; dst has lnt_packed_bytes, aligned to 64. */
void lnt_pack(const lnt_packed *p, const float *src, float *dst);
/* Gives back ONNX order. */
void lnt_unpack(const lnt_packed *p, const float *src, float *dst);

#endif
