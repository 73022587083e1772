/* nibble_kernels.h — the kernel table of products of int8 with weights of 4 or 8 bits in blocks.
 *
 * Rows of A are quantized symmetrically, a group of numbers with one scale: GROUP, or a block of 16; sums over a
 * group are exact, and become floats with the scales of both. Groups are taken by chunks of as many as the level's
 * vectors have lanes, a chunk by steps (ops/simd/simd_nibbles.h). */
#ifndef LNT_OPS_NBITS_NIBBLE_KERNELS_H
#define LNT_OPS_NBITS_NIBBLE_KERNELS_H

#include "ops/kernels.h"
#include "ops/nbits/nbits_kernels.h"

#include <stddef.h>
#include <stdint.h>

enum {
    LNT_NIBBLE_GROUP_LOG2 = 5,
    LNT_NIBBLE_GROUP = 1 << LNT_NIBBLE_GROUP_LOG2,
    LNT_NIBBLE_COLUMNS = 4,     /* that are prepared at a time */
    LNT_NIBBLE_PANEL_LANES = 4, /* in a row that meets panels */
    LNT_NIBBLE_UNPACKED = 16,   /* bytes of each column of these at a time */
    LNT_NIBBLE_LANES_MOST = 4   /* where columns are prepared */
};

/* Columns of weights: (number - zero of its block) * scale of its block. */
typedef struct lnt_nibbles {
    const uint8_t *weights; /* [N][blocks][block * bits / 8], the number with the lower k in the lower bits */
    const float *scales;    /* [N][blocks] */
    const uint8_t *zeros;   /* [N][(blocks * bits + 7) / 8] as the weights, or NULL: half of their range */
    int64_t blocks;
    unsigned block_log2, bits;
} lnt_nibbles;

typedef struct lnt_nibble_job {
    lnt_nibbles w;
    const char *rows; /* [M][chunks of groups], as quantize makes them */
    int64_t chunks;
    unsigned lanes;      /* of the kernels, or LNT_NIBBLE_PANEL_LANES */
    unsigned group_log2; /* a group is 2 ** this numbers, a block 2 ** shift groups */
    unsigned shift;
    int64_t numbers_bytes, row_bytes; /* of a row its numbers, and these with two floats for each group */
    int64_t column_bytes;
    int64_t M, N;      /* what columns and panels are of: y is [M][N], */
    const float *bias; /* [N], or NULL */
    float *y;
} lnt_nibble_job;

/* Columns ready for any rows: fewer than LNT_NIBBLE_COLUMNS are filled up with the last. */
typedef struct lnt_nibble_block {
    const uint8_t *weights[LNT_NIBBLE_COLUMNS];
    /* Of a chunk that ends behind the column, with zeros behind it. */
    uint8_t end[LNT_NIBBLE_COLUMNS][LNT_NIBBLE_LANES_MOST * LNT_NIBBLE_GROUP / 2];
    /* Of groups, [chunks][lanes]; `offsets` behind them these times an 8th of their zero points. */
    const float *scales[LNT_NIBBLE_COLUMNS];
    int64_t offsets;
    int64_t whole; /* chunks that do not */
    int64_t next;  /* bytes from these columns to those behind them */
} lnt_nibble_block;

typedef struct lnt_nibble_kernels {
    unsigned lanes; /* groups in a chunk */
    bool bytes;     /* are there kernels for 8 bits, and panels for blocks shorter than LNT_NIBBLE_GROUP? */
    /* A row of K floats, as row_bytes. Magnitudes that round to nothing of the group's largest become 0, as do groups
     * of none above 2**-100; NaN and infinity make NaN of the row. */
    void (*quantize)(const lnt_nibble_job *j, const float *a, int64_t K, char *row);
    /* Columns [begin, end) of all rows; or NULL, then `prepare` and `tile`, for blocks of LNT_NIBBLE_GROUP or
     * more. */
    void (*columns)(const lnt_nibble_job *j, int64_t begin, int64_t end);
    /* Columns from n on; room: for scales. */
    void (*prepare)(const lnt_nibble_job *j, int64_t n, unsigned columns, float *room, lnt_nibble_block *b);
    /* Of row m. */
    void (*tile)(const lnt_nibble_job *j, const lnt_nibble_block *b, int64_t m,
                 float sums[LNT_NIBBLE_COLUMNS]);
    /* LNT_PANEL columns or fewer from n on, this panel, of all rows; room: for a byte of each number. Columns are of
     * whole LNT_NIBBLE_UNPACKED bytes. Or NULL. */
    void (*panel)(const lnt_nibble_job *j, const lnt_nbits_panel *p, int64_t n, unsigned columns,
                  float *room);
} lnt_nibble_kernels;

/* What follows from weights and lanes, of rows of K numbers. */
void lnt_nibble_measure(lnt_nibble_job *j, int64_t K);

/* Functions of a level that another has, too; quantize of avx2 for any lanes. */
#define LNT_NIBBLE_FUNCTIONS(suffix)                                                                         \
    void lnt_nibble_quantize_##suffix(const lnt_nibble_job *j, const float *a, int64_t K, char *row);        \
    void lnt_nibble_prepare_##suffix(const lnt_nibble_job *j, int64_t n, unsigned columns, float *room,      \
                                     lnt_nibble_block *b);
LNT_NIBBLE_FUNCTIONS(scalar)
LNT_NIBBLE_FUNCTIONS(avx2)
LNT_NIBBLE_FUNCTIONS(neon)

/* Row m of y from column n on: these sums, with the bias. */
void lnt_nibble_end_avx2(const lnt_nibble_job *j, int64_t m, int64_t n, unsigned columns, const float *sums);
/* The panel's numbers: of 4 bits [groups][even, odd][LNT_NIBBLE_GROUP / 8][LNT_PANEL][4], of 8 as they come. */
void lnt_nibble_unpack_avx2(const lnt_nibble_job *j, const lnt_nbits_panel *p, int32_t *to);

#endif
