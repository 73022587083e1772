/* qgemm_driver.h — int8 GEMM: products of uint8 rows with packed int8 weights; blocking, threads, stores.
 *
 * The counterpart of ops/gemm/gemm_driver.h. int32 accumulators are exact, so that no blocking changes a result.
 * Callbacks say where rows of A are and how the accumulators of a tile are stored. */
#ifndef LNT_OPS_QUANT_QGEMM_DRIVER_H
#define LNT_OPS_QUANT_QGEMM_DRIVER_H

#include "ops/elementwise/epilogue.h"
#include "ops/quant/qgemm.h"
#include "ops/rows/int8_rows.h"
#include "ops/rows/row.h"

enum {
    LNT_QROWS_BLOCK = 64,     /* rows that are multiplied by a panel in one go */
    LNT_QITEM_WORK = 1 << 19, /* int8 multiply-adds that are worth a slice of their own */
    LNT_QSTORE_WORK = 64      /* as many take as long as a result that is stored */
};

typedef struct lnt_qgemm_plan lnt_qgemm_plan;
typedef struct lnt_qgemm_call lnt_qgemm_call;

typedef struct lnt_qrow_set {
    int64_t first; /* row of the product */
    unsigned n;
    const uint8_t *a[LNT_QROWS_BLOCK];
    int64_t out[LNT_QROWS_BLOCK]; /* elements from the start of output and residual to the row */
    float scale[LNT_QROWS_BLOCK]; /* quantization parameters: real = (quantized - zero) * scale */
    int32_t zero[LNT_QROWS_BLOCK];
    int32_t sum[LNT_QROWS_BLOCK]; /* of the row's elements, if the store needs it */
} lnt_qrow_set;

/* Describes rows [set->first, set->first + set->n). */
typedef void (*lnt_qrows_fn)(const lnt_qgemm_call *call, int64_t product, lnt_qrow_set *set);

/* Stores accumulators [n][16] of rows [from, from + n) of set with a panel of the product. */
typedef void (*lnt_qstore_fn)(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from, unsigned n,
                              int64_t product, int64_t panel, int32_t *acc);

/* The requantization of set's rows with columns [0, columns) from the start of a panel, if the result is int8 or
 * uint8 and is stored row by row; else false, and the store has it. acc and out
 * are not set. */
typedef bool (*lnt_qrequantize_fn)(const lnt_qgemm_call *call, const lnt_qrow_set *set, int64_t product,
                                   int64_t panel, unsigned columns, lnt_requantize_tile *to);

/* The same of results that are int32, or float where the kernels dequantize. */
typedef bool (*lnt_qintegers_fn)(const lnt_qgemm_call *call, const lnt_qrow_set *set, int64_t product,
                                 int64_t panel, unsigned columns, lnt_integer_tile *to);

struct lnt_qgemm_plan {
    const lnt_row_kernels *row;
    const lnt_int8_kernels *int8;
    const lnt_qgemm_kernels *kernels;
    lnt_qrows_fn rows_of;
    const void *rows_arg;
    lnt_qstore_fn store;
    lnt_qrequantize_fn requantize_of; /* or NULL */
    lnt_qintegers_fn integers_of;     /* or NULL */
    int64_t products, rows, columns;
    int64_t row_bytes, panels;
    const int64_t *b_product;    /* [products] numbers of their weights; NULL: their own */
    const ptrdiff_t *run_offset; /* [runs]: rows are as many contiguous runs (ops/quant/qgemm.h) */
    int64_t runs;
    size_t sums_at;    /* bytes from the weights to the sums of their columns */
    bool full;         /* -128 may be among the weights */
    bool moved;        /* rows are int8, less by 128: lnt_qproduct */
    /* Of float outputs. */
    float low, high;
    const lnt_epilogue *epilogue;                /* NULL, or a program for every block after it is computed */
    int64_t epilogue_rows, epilogue_columns, ld; /* as in lnt_gemm_plan */
};

/* What differs from run to run. */
struct lnt_qgemm_call {
    const lnt_qgemm_plan *plan;
    const lnt_step *step;
    const int8_t *b;     /* packed weights */
    const float *scales; /* [products * columns] */
    const float *bias;   /* the same, or NULL */
    float *c;
    const float *residual; /* laid out as c, or NULL */
    const void *arg;       /* for the callbacks */
};

/* The plan for weights b of a record: sets all that follows from these. rows, callbacks and store are the
 * caller's. */
void lnt_qgemm_plan_weights(lnt_qgemm_plan *p, const lnt_packed *record, const lnt_operand *b);
/* Rows of A are runs of equal length at these offsets from a[]. */
void lnt_qgemm_plan_runs(lnt_qgemm_plan *p, const ptrdiff_t *offset, int64_t runs);

/* The sum of the elements of a row of A: runs of so many at these offsets. */
int32_t lnt_qrow_sum(const lnt_int8_kernels *kernels, const uint8_t *row, const ptrdiff_t *offset,
                     int64_t runs, int64_t bytes);

/* to = from ^ flip: 0x80 converts int8 to uint8 by adding 128. */
void lnt_qflip_bytes(const uint8_t *from, int64_t n, uint8_t flip, uint8_t *to);
/* The same of rows of n bytes, each padded with zeros to whole quads. */
void lnt_qflip_rows(const uint8_t *from, int64_t rows, int64_t n, uint8_t flip, uint8_t *to);

/* Dequantizes accumulators: (acc - zero * column's sum) * scale * column's scale + bias + residual, clamped. */
void lnt_qstore_floats(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from, unsigned n,
                       int64_t product, int64_t panel, int32_t *acc);

lnt_status lnt_qgemm_run(lnt_kernel *k, const lnt_qgemm_call *call);

#endif
