/* matmul.h — what the files of MatMul and Gemm share: the product of a site. */
#ifndef LNT_OPS_GEMM_MATMUL_H
#define LNT_OPS_GEMM_MATMUL_H

#include "ops/copy.h"
#include "ops/elementwise/typed_kernels.h"
#include "ops/gemm/gemm_driver.h"
#include "ops/gemm/gemm_store.h"
#include "ops/rows/row.h"

/* The product as three matrices per batch entry. Extents may be unknown (negative) in shape rules. */
typedef struct lnt_matrices {
    int64_t M, K, N;
    bool trans_a, trans_b;
    bool vector_a, vector_b; /* rank 1: its axis of length 1 does not show in the output */
    float alpha, beta;
} lnt_matrices;

/* What a bound product knows. */
typedef struct lnt_matmul {
    lnt_matrices p;
    unsigned a, b; /* inputs of the node */
    bool row_bias; /* store.bias is of rows, those of matrices_a products one after the other */
    int64_t matrices_a, matrices_b;
    int64_t batch;          /* products to compute, after merging */
    size_t *offset_a, *offset_b; /* [batch] elements from A to its matrix, and from B */
    int64_t row_a, column_a; /* strides of op(A), in elements */
    int64_t row_b, column_b;
    int64_t stride_c[2]; /* of Gemm's C over rows and columns; 0 where it broadcasts */
    bool has_c;
    bool column_c; /* C is a bias of rows */
    bool pack_b, transpose_a, expand_c;
    lnt_packed packed;                                      /* of B, where it is packed at run time */
    size_t scratch_b, scratch_a, scratch_c, scratch_gather; /* offsets into scratch memory */
    lnt_store store;
    lnt_copy transpose;         /* of A, where it is transposed */
    const lnt_row_kernels *row; /* of a few rows times a B that is not packed */
    int64_t outer; /* so many rows are products of their own, of one element each with the same B; else 1 */
    lnt_typed_fn scale; /* of these, where they are double; or NULL */
    lnt_gemm_plan plan;
} lnt_matmul;

/* The site's parameters, with extents, batch and C found; offsets of B are still in matrices. */
lnt_status lnt_matmul_begin(lnt_site *site, lnt_matmul **out);
/* Once it is known how B is stored: elements in one of its matrices. */
void lnt_matmul_scale_offsets(const lnt_matmul *m, size_t elements);

/* Plans the product of floats, or halves, that *m describes but for what is in scratch memory; bytes of that are
 * taken. */
lnt_status lnt_matmul_plan(lnt_site *site, lnt_matmul *m, size_t bytes);
lnt_status lnt_matmul_run(lnt_kernel *k, const lnt_step *s);

/* A batch of rows, input `row` of the node, each times a matrix of floats that is the other input's and not packed. */
lnt_status lnt_bind_row_products(lnt_site *site, unsigned row, const lnt_matrices *p, int64_t batch);

/* Of doubles, with offsets of B in elements: if each sum is one product, and there is a kernel for such. */
bool lnt_bind_outer_double(lnt_site *site, lnt_matmul *m);

/* Products of double, int32, uint32, int64 and uint64 (matmul_number.c). */
lnt_status lnt_bind_matmul_number(lnt_site *site);

#endif
