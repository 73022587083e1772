/* gemm.h — the micro-kernels that matrix products, convolutions and recurrent layers share.
 *
 * One tile is a few rows of A times panels of B (formats/packed.h) giving as many rows of C:
 *
 *     C[i][n] = clamp(scale * sum over taps t, k < depth of A[i][tap_offset[t] + k] * B[t * depth + k][n]
 *                     + bias[n] + residual[i][n], low, high)
 *
 * A is only row pointers, so that a row may be a row of a matrix, the neighborhood of a pixel of a
 * channels-last image (taps), or a row gathered into scratch memory. C is row pointers too.
 *
 * Floats are halves in the tables of half arithmetic (lnt_gemm_kernels.element): all that is pointed to but the bias.
 * B is b_half there. */
#ifndef LNT_OPS_GEMM_GEMM_H
#define LNT_OPS_GEMM_GEMM_H

#include "formats/packed.h"
#include "ops/gemm/gemm_blocks.h"
#include "ops/kernels.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct lnt_tile {
    const float *const *a;        /* [rows] */
    float *const *c;              /* [rows] */
    const float *const *residual; /* [rows], or NULL */
    const ptrdiff_t *tap_offset;  /* [taps], in floats from a[i] */
    size_t taps, depth;
    size_t
        before; /* elements of K that come before: what is added up where follows from the place in the whole sum */
    const float *b;         /* the panel of column b_column */
    const uint16_t *b_half; /* or that, of a kernel for elements of 16 bits */
    size_t b_column;        /* a multiple of 16 */
    size_t b_row;           /* elements from row to row of B: 16 in a panel, more where B is read in place */
    size_t b_panel;         /* elements from panel to panel */
    size_t first, columns;  /* columns [first, columns) are computed; first is a multiple of 16, the pointers
                              are to column 0 */
    const float *bias;      /* [columns], or NULL */
    float scale, low, high;
    bool
        accumulate; /* the sum goes on from what is in C, unscaled; never in halves, which would be rounded there */
    bool b_is_far;   /* B is more than LNT_FAR_FLOATS: it will not come from a second-level cache */
    /* Fetched meanwhile for later calls: so many lines for every LNT_FETCH_STEP elements of K of a part, so
     * many floats apart. */
    const float *ahead;
    unsigned ahead_lines;
    size_t ahead_step;
} lnt_tile;

/* Few columns leave much of a vector empty: then each column of B is stored by itself, [columns][b_panel] with its
 * taps * depth elements one after the other, and b_row is not used. At most LNT_TILE_ROWS_MAX rows. */
typedef void (*lnt_narrow_fn)(const lnt_tile *t, unsigned rows);

typedef void (*lnt_tile_fn)(const lnt_tile *t);

/* Any number of rows, LNT_THIN_ROWS or more, each some floats behind the one before: the first are a[0], c[0] and
 * residual[0], which is not c[0], for some rows may be computed twice. One tap, nothing accumulated. Sums are those of
 * a tile of the most rows; what a scaled one and its bias make is rounded once. */
#if defined(__x86_64__)
enum { LNT_HAS_THIN_TILES = !LNT_TRIMMED };
#else
enum { LNT_HAS_THIN_TILES = false };
#endif
typedef void (*lnt_thin_fn)(const lnt_tile *t, size_t rows, size_t a_step, size_t c_step);

/* Do tiles of a few rows widen B in registers? */
#if defined(__x86_64__)
enum { LNT_HAS_WIDENING_TILES = LNT_HAS_HALVES && !LNT_TRIMMED };
#else
enum { LNT_HAS_WIDENING_TILES = false };
#endif

/* What elements of B are, as the file has them: others than floats are widened on the way. */
typedef enum lnt_b_form { LNT_B_F32, LNT_B_F16, LNT_B_BF16, LNT_B_FORMS } lnt_b_form;

typedef struct lnt_gemm_kernels {
    unsigned element;     /* bytes of an element: 4, or 2 where A, B, C and residuals are halves */
    unsigned tile_rows;   /* most rows of a tile at this level */
    unsigned tile_panels; /* panels it takes at once, at least 1 */
    unsigned depth_block; /* length of K after which a panel should be left to be used again */
    unsigned tall_rows;   /* most rows where columns are LNT_TALL_COLUMNS or fewer: tile_rows, or more */
    lnt_tile_fn tile[LNT_TILE_ROWS_MAX + 1]; /* by rows, 1 .. tall_rows */
    lnt_narrow_fn narrow;                    /* NULL: few columns go as others do */
    lnt_thin_fn thin;                        /* NULL: short rows go as others do */
    /* By the form of B, LNT_B_F32 being NULL. A tile of one row from b_half; and elements, a multiple of 16 of them. */
    lnt_tile_fn row[LNT_B_FORMS];
    /* NULL, or a tile of tile_rows or fewer from b_half, which is float16 in panels. */
    lnt_narrow_fn widening;
    void (*widen[LNT_B_FORMS])(const uint16_t *from, float *to, size_t n);
    unsigned lanes; /* elements in a vector */
    bool fetches;   /* tiles fetch what lnt_tile says is ahead */
    /* For measuring, of floats alone: `rounds` times fma_lanes independent multiply-adds, the results summed into
     * *sink. */
    void (*fma)(size_t rounds, float *sink);
    unsigned fma_lanes;
} lnt_gemm_kernels;

static inline lnt_b_form lnt_b_form_of(const lnt_operand *b)
{
    const lnt_dtype element = LNT_HAS_HALVES && b->packed ? lnt_packed_element(b->packed) : LNT_FLOAT;
    return element == LNT_FLOAT16 ? LNT_B_F16 : element == LNT_BFLOAT16 ? LNT_B_BF16 : LNT_B_F32;
}

static inline bool lnt_b_is_half(lnt_b_form form)
{
    return LNT_HAS_HALVES && form != LNT_B_F32;
}

/* So many elements on in B. */
static inline const void *lnt_b_at(lnt_b_form form, const void *b, size_t elements)
{
    return (const char *)b + elements * (lnt_b_is_half(form) ? sizeof(uint16_t) : sizeof(float));
}

/* Are `columns` sums over taps * depth elements of so many rows, one at least, had sooner along K than side by side in
 * vectors? Along K each of them costs some additions across a vector besides; and columns are laid out first. */
static inline bool lnt_is_narrow(const lnt_gemm_kernels *kernels, int64_t rows, int64_t columns, int64_t taps,
                                 int64_t depth)
{
    enum { ACROSS = 5 /* vectors' worth */, LAID_OUT = 2 /* elements in the time of one */ };
    const int64_t lanes = kernels->lanes, vectors = (depth + lanes - 1) / lanes;
    const int64_t saved = (columns + lanes - 1) / lanes * taps * depth - columns * (taps * vectors + ACROSS);
    const int64_t laid_out = LNT_TRIMMED ? 0 : columns * taps * depth / (LAID_OUT * rows);
    return kernels->narrow && columns <= LNT_NARROW_COLUMNS && saved > laid_out;
}

#endif
