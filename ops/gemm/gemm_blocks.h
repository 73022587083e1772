/* gemm_blocks.h — how large the tiles and blocks of matrix products are, at every level. The order in which an
 * element's products are added follows from these: another size gives other bits. */
#ifndef LNT_OPS_GEMM_GEMM_BLOCKS_H
#define LNT_OPS_GEMM_GEMM_BLOCKS_H

/* Tiles, which are made of what registers there are. A level's file says SHAPE; ops/gemm/gemm_tile.inc.h reads it.
 *
 *     TILE_ROWS       rows of the largest tile
 *     TALL_ROWS       rows of the largest tile that is only two vectors wide
 *     TILE_VECTORS    vectors across; they may span one panel, a part of one, or two
 *     SUMS_MIN        sums (accumulators) that hide the latency of a multiply-add
 *     DEPTH_BLOCK     rows of K after which partial sums go to C, and a panel should be left to be used again */
/* clang-format off */
/*                          TILE_ROWS  TALL_ROWS  TILE_VECTORS  SUMS_MIN  DEPTH_BLOCK */
#define LNT_SHAPE_SCALAR         4,         4,            2,        6,         256
#define LNT_SHAPE_SINGLE         6,         6,            4,       16,         256 /* 24 of 32, of a number each */
#define LNT_SHAPE_AVX2           6,         6,            2,        8,         384 /* 12 of 16 registers are sums */
#define LNT_SHAPE_AVX512         6,        10,            4,       16,         768 /* 24, or 20, of 32 */
#define LNT_SHAPE_AARCH64        6,         6,            4,        8,         256 /* 24 of 32 */
#define LNT_SHAPE_ARMV7          4,         4,            2,        6,         256 /* 8 of 16 */
/* clang-format on */

/* What all levels' tiles keep to. */
enum {
    LNT_TILE_ROWS_MAX = 10,
    LNT_TALL_COLUMNS = 32,       /* tiles of as many or fewer are tall */
    LNT_FETCH_STEP = 4,          /* elements of K for which a tile fetches ahead once */
    LNT_FAR_FLOATS = 256 * 1024, /* more will not come from a second-level cache */
    LNT_NARROW_COLUMNS = 12,     /* as many or fewer: see lnt_narrow_fn */
    LNT_NARROW_ROWS = 8,         /* go well together there */
    LNT_HALF_ROWS = 4,           /* of the smaller tile that widens halves of B in registers; */
    LNT_HALF_DEPTH_MIN = 200,    /* as many products make up for sums that begin and end in memory */
    LNT_THIN_ROWS = 8,           /* go together where rows are short, see lnt_thin_fn: of */
    LNT_THIN_DEPTH = 96          /* as many elements or fewer */
};

/* Tiles of halves (ops/gemm/gemm_fp16.c): sums of so many products are halves, one after the other rounded to 2**-12 of
 * what they have come to; then they are carried to float. Each costs about sqrt(run / 6) * 2**-11 of a sum of random
 * signs, 54 dB below it. Partial sums never wait in C, which would round them once more. */
enum { LNT_HALF_RUN = 192, LNT_HALF_DEPTH_BLOCK = 1 << 30 };

/* Blocks of the driver (ops/gemm/gemm_driver.c). */
enum {
    LNT_BLOCK_TILES = 48,          /* at most, in a block of rows */
    LNT_BLOCK_ROWS = 192,          /* tiles that share one reading of B from the second-level cache */
    LNT_PANEL_BYTES = 24 * 1024,   /* of panels used at once, beside a tile's rows in the first-level cache */
    LNT_WIDENED_BYTES = 20 * 1024, /* of those that are widened for a tile or two */
    LNT_ITEM_WORK_MIN = 32 * 1024, /* multiply-adds worth a thread's while */
    LNT_ITEM_WORK_MAX = 4096 * 1024, /* as many take well under a millisecond */
    LNT_ITEMS_WANTED = 32,
    LNT_SHARED_WORK = 144 * 1024, /* as many are done by one thread before another has come to help, */
    LNT_FEW_ROWS = 4,             /* but of fewer rows B comes slower than it is multiplied, */
    LNT_FEW_COLUMNS = 8,          /* of fewer columns A */
    LNT_BIAS_COLUMNS = 64,        /* of a bias of rows, as many as the widest tile has */
    LNT_WIDE_ROWS = 16,
    LNT_WIDE_COLUMNS = 128 /* of a block: they pay for gathering rows, and for starting on a row of C */
};

#endif
