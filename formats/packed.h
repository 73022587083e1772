/* packed.h — weights packed for the kernels.
 *
 * A packed constant keeps its ONNX extents in its value record; this record says how its bytes are arranged. One
 * function gives the size to writer, verifier and kernels (lnt_packed_bytes), one packs, one gives back
 * ONNX order. Layout numbers are part of the file format (FORMAT.md): a new layout is a new number. */
#ifndef LNT_FORMATS_PACKED_H
#define LNT_FORMATS_PACKED_H

#include "base/error.h"
#include "base/operand.h"

/* 0: a library trimmed to files without weights of 16 bits (boards/trim.py), which knows no layout of them. */
#ifndef LNT_HAS_HALVES
#define LNT_HAS_HALVES 1
#endif

/* 0: one trimmed to files without convolutions whose weights are in ONNX order: such weights are packed by each run. */
#ifndef LNT_HAS_PLAIN_CONV
#define LNT_HAS_PLAIN_CONV 1
#endif

/* 1: a library trimmed to a model, for size. */
#ifndef LNT_TRIMMED
#define LNT_TRIMMED 0
#endif

/* Columns in a panel, at every level; all panels derive from these. */
enum {
    LNT_PANEL = 16, /* of floats; and the units whose gates are side by side */
    LNT_QPANEL = 16 /* of int8, whose tiles have so many lanes */
};
_Static_assert(LNT_PANEL % 16 == 0 && LNT_PANEL % LNT_QPANEL == 0,
               "panels of floats are whole panels of int8");

/* Numbers of layouts in panels of 16; those in panels of 32 are 32 more, and so on: a file packed for another width
 * is refused. */
enum { LNT_LAYOUT_WIDTHS = 32, LNT_LAYOUT_WIDTH = (LNT_PANEL / 16 - 1) * LNT_LAYOUT_WIDTHS };

/* A panel is [K][16], 16 standing for LNT_PANEL, or LNT_QPANEL of int8: 16 columns side by side for each k; columns
 * past N are zero. */
typedef enum lnt_layout {
    LNT_LAYOUT_PANEL_F32 = LNT_LAYOUT_WIDTH + 1, /* [groups][phases][N/16][K of the phase][16] */
    LNT_LAYOUT_DEPTHWISE_F32 =
        LNT_LAYOUT_WIDTH + 2,                    /* [K][groups * N padded to 16]: few channels per group */
    LNT_LAYOUT_GATES_F32 = LNT_LAYOUT_WIDTH + 3, /* [directions][N/16][gates][K][16], recurrent weights */
    /* Panels of int8, [groups][N/16][gates][taps][channels/4][16][4], the channels of a tap padded with zeros
     * to whole quads; behind all panels the sums of their columns, int32 [groups][N/16][gates][16]. Elements
     * of an uint8 constant are moved by -128. Gates are arranged as those of floats, in panels of int8 each. */
    LNT_LAYOUT_PANEL_I8 = LNT_LAYOUT_WIDTH + 4,
    LNT_LAYOUT_PANEL_I8_FULL = LNT_LAYOUT_WIDTH + 5, /* the same, and -128 is among the elements */
    /* [taps][groups * N padded to 16] int8, then int32 sums over the taps [groups * N padded] */
    LNT_LAYOUT_DEPTHWISE_I8 = LNT_LAYOUT_WIDTH + 6,
    /* As PANEL_I8, of a Conv without groups whose channels are no whole quads: those of all taps along the
     * last axis are side by side, [N/16][other taps][last axis * channels/4][16][4], padded once. */
    LNT_LAYOUT_LINES_I8 = LNT_LAYOUT_WIDTH + 16,
    /* The layouts of floats, of constants of floats still: each element is rounded to 16 bits. */
    LNT_LAYOUT_PANEL_F16 = LNT_LAYOUT_WIDTH + 7,
    LNT_LAYOUT_DEPTHWISE_F16 = LNT_LAYOUT_WIDTH + 8,
    LNT_LAYOUT_GATES_F16 = LNT_LAYOUT_WIDTH + 9,
    LNT_LAYOUT_PANEL_BF16 = LNT_LAYOUT_WIDTH + 10,
    LNT_LAYOUT_DEPTHWISE_BF16 = LNT_LAYOUT_WIDTH + 11,
    LNT_LAYOUT_GATES_BF16 = LNT_LAYOUT_WIDTH + 12
} lnt_layout;

/* Which ONNX operand the bytes came from: how (k, n) map to its extents.
 *
 * The inner index k of a convolution runs [tap][channel], taps in row-major order of the kernel. A transposed
 * convolution falls apart into phases, one for each remainder r of (output + pad) modulo the stride, in
 * row-major order of r; phase r has the taps t with t * dilation = r modulo stride along every axis, so that
 * its K is its taps x channels, and the phases of one group have K = all taps x channels together. */
typedef enum lnt_source {
    LNT_SOURCE_KN = 1, /* MatMul B, Gemm B: [..., K, N]; leading axes are groups */
    LNT_SOURCE_NK = 2, /* the same transposed: [..., N, K] */
    LNT_SOURCE_CONV =
        3, /* Conv W: [groups * N, channels, kernel...]; ConvTranspose W of one channel per group */
    LNT_SOURCE_CONVT = 4, /* ConvTranspose W: [groups * channels, N, kernel...] */
    LNT_SOURCE_GATES = 5  /* LSTM, GRU, RNN W or R: [directions, gates * N, K] */
} lnt_source;

struct lnt_packed {       /* 64 bytes, stored as it is, little-endian */
    uint16_t layout;      /* lnt_layout */
    uint16_t source;      /* lnt_source */
    uint32_t groups;      /* independent products: convolution groups, batch of a MatMul B, directions */
    uint32_t phases;      /* of a transposed convolution: product of stride; else 1 */
    uint32_t taps;        /* product of kernel */
    uint32_t K;           /* inner length of one product: taps x channels, all phases together */
    uint32_t N;           /* columns of one product (for gates: hidden size) */
    uint32_t gates;       /* 4 LSTM, 3 GRU, 1 RNN, else 1 */
    uint32_t kernel[3];   /* extents of the kernel, filled from the front; 1 where there is no such axis */
    uint32_t stride[3];   /* of a transposed convolution, else 1 */
    uint32_t dilation[3]; /* of a transposed convolution, else 1 */
};

_Static_assert(sizeof(lnt_packed) == 64, "stored as it is");

/* A record of one product [K][N] per group, no taps, no phases: the caller changes what differs. */
lnt_packed lnt_packed_panels(lnt_source source, uint32_t groups, uint32_t K, uint32_t N);

/* Columns in the panels that the record's layout is for: LNT_PANEL, or it is of another library. */
static inline unsigned lnt_packed_width(const lnt_packed *p)
{
    return 16u * (p->layout / LNT_LAYOUT_WIDTHS + 1);
}

/* Bytes of the packed data; false if the record is nonsense or overflows. */
bool lnt_packed_bytes(const lnt_packed *p, size_t *bytes);
/* NULL if p fits a constant of this type and these ONNX extents, else what is wrong. */
const char *lnt_packed_check(const lnt_packed *p, lnt_dtype type, unsigned rank, const int64_t *dims);
/* What its elements are: LNT_FLOAT, LNT_FLOAT16, LNT_BFLOAT16 or LNT_INT8. The constant's own type is another where
 * floats are packed as 16 bits. */
lnt_dtype lnt_packed_element(const lnt_packed *p);
/* A record of floats with elements of 32 or 16 bits instead, arranged alike. */
lnt_packed lnt_packed_as(const lnt_packed *p, lnt_dtype element);
/* Are they panels of floats of 32 or 16 bits, LNT_LAYOUT_PANEL_...? */
bool lnt_packed_is_floats(const lnt_packed *p);
/* Can who wants a record a read b? Whether -128 is among bytes, or how many bits floats have, does not matter. */
bool lnt_packed_alike(const lnt_packed *a, const lnt_packed *b);

/* Packs ONNX-ordered elements of a type; dst has lnt_packed_bytes, aligned to 64. Floats are rounded to the record's
 * elements, to nearest even. */
void lnt_pack(const lnt_packed *p, lnt_dtype type, const void *src, void *dst);
/* Gives back ONNX order, in the constant's type. */
void lnt_unpack(const lnt_packed *p, lnt_dtype type, const void *src, void *dst);

/* The same for panels [begin, end) of all lnt_packed_panel_count, for packing on several threads. */
size_t lnt_packed_panel_count(const lnt_packed *p);
void lnt_pack_panels(const lnt_packed *p, lnt_dtype type, const void *src, void *dst, size_t begin,
                     size_t end);

/* ---- int8 layouts ---- */

bool lnt_packed_is_int8(const lnt_packed *p);
/* Bytes of one panel, LNT_QPANEL times those of a row it is multiplied with: whole quads of every tap, or line of
 * taps. */
size_t lnt_packed_panel_bytes(const lnt_packed *p);
/* Where the sums of columns begin. */
size_t lnt_packed_sums_at(const lnt_packed *p);

#endif
