/* qgemm_driver.h — whole products of byte rows with packed byte weights: blocking, threads, stores.
 *
 * The counterpart of ops/gemm/gemm_driver.h. Sums are exact in int32, so that no blocking changes a result. Where
 * rows lie and what becomes of a tile's sums is said by callbacks. */
#ifndef LNT_OPS_QUANT_QGEMM_DRIVER_H
#define LNT_OPS_QUANT_QGEMM_DRIVER_H

#include "ops/elementwise/epilogue.h"
#include "ops/quant/qgemm.h"
#include "ops/rows/int8_rows.h"
#include "ops/rows/row.h"

enum { LNT_QROWS_BLOCK = 64 }; /* rows that meet a panel in one go */

typedef struct lnt_qgemm_plan lnt_qgemm_plan;
typedef struct lnt_qgemm_call lnt_qgemm_call;

typedef struct lnt_qrow_set {
    int64_t first; /* row of the product */
    unsigned n;
    const uint8_t *a[LNT_QROWS_BLOCK];
    int64_t out[LNT_QROWS_BLOCK]; /* elements from the start of output and residual to the row */
    float scale[LNT_QROWS_BLOCK]; /* real = (byte - zero) * scale */
    int32_t zero[LNT_QROWS_BLOCK];
    int32_t sum[LNT_QROWS_BLOCK]; /* of the row's bytes, where the store asks for it */
} lnt_qrow_set;

/* Describes rows [set->first, set->first + set->n). */
typedef void (*lnt_qrows_fn)(const lnt_qgemm_call *call, int64_t product, lnt_qrow_set *set);

/* Stores raw sums [n][16], n <= LNT_QROWS_MAX, of rows [from, from + n) of set with a panel of the product. */
typedef void (*lnt_qstore_fn)(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from, unsigned n,
                              int64_t product, int64_t panel, int32_t *sums);

/* What is to become of the sums of set's rows with columns [0, columns) of a panel and those behind it, if
 * that is bytes and nothing but what a tile can make of them. acc and out are left alone. */
typedef bool (*lnt_qbytes_fn)(const lnt_qgemm_call *call, const lnt_qrow_set *set, int64_t product,
                              int64_t panel, unsigned columns, lnt_qbytes *to);

struct lnt_qgemm_plan {
    const lnt_row_kernels *row;
    const lnt_int8_kernels *int8;
    const lnt_qgemm_kernels *kernels;
    lnt_qrows_fn rows_of;
    const void *rows_arg;
    lnt_qstore_fn store;
    lnt_qbytes_fn bytes_of; /* or NULL */
    int64_t products, rows, columns;
    int64_t row_bytes, panels;
    const int64_t *b_product;    /* [products] numbers of their weights; NULL: their own */
    const ptrdiff_t *run_offset; /* [runs]: rows are as many runs of bytes (ops/quant/qgemm.h); one unless said */
    int64_t runs;
    size_t sums_at; /* bytes from the weights to the columns' sums */
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
    const float *residual; /* lies as c does, or NULL */
    const void *arg;       /* for the callbacks */
};

/* The plan for weights of a record: sets all that follows from it. rows, callbacks and store are the
 * caller's. */
void lnt_qgemm_plan_weights(lnt_qgemm_plan *p, const lnt_packed *record);
/* Rows of A come in runs of equal length, which lie at these offsets from a[]. */
void lnt_qgemm_plan_runs(lnt_qgemm_plan *p, const ptrdiff_t *offset, int64_t runs);

/* The sum of the bytes of a row of A: runs of so many at these offsets. */
int32_t lnt_qsum_bytes(const uint8_t *row, const ptrdiff_t *offset, int64_t runs, int64_t bytes);

/* to = from ^ flip: 0x80 turns int8 into uint8 of the same order. */
void lnt_qflip_bytes(const uint8_t *from, int64_t n, uint8_t flip, uint8_t *to);

/* Stores floats: (sum - zero * column's sum) * scale * column's scale + bias + residual, clamped. */
void lnt_qstore_floats(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from, unsigned n,
                       int64_t product, int64_t panel, int32_t *sums);

lnt_status lnt_qgemm_run(lnt_kernel *k, const lnt_qgemm_call *call);

#endif
