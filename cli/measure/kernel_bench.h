/* kernel_bench.h — `linnet bench --kernels`: single operators at the shapes that matter, against the machine. */
#ifndef LNT_CLI_MEASURE_KERNEL_BENCH_H
#define LNT_CLI_MEASURE_KERNEL_BENCH_H

#include "cli/shell/args.h"

/* One line: an operator, its inputs and attributes as text.
 *
 * inputs are separated by spaces:
 *     1x64x56x56    random floats        =64x64x3x3   a constant, packed where the operator wants that
 *     (1,1,2,2)     these floats         [2,-1]       these int64
 *     1x64x56x56:u8 random bytes         [128]:u8     these bytes; :i8 are signed
 *     -             skipped
 * attributes are NAME=VALUE, separated by spaces: 2 is an integer, 1,1 integers (a list of one: "1,"), 0.5 a
 * number, any other word a string. */
typedef struct lnt_kernel_row {
    const char *family, *op, *inputs, *attributes;
    bool in_last, out_last; /* channels-last: input 0, output 0 */
} lnt_kernel_row;

extern const lnt_kernel_row lnt_kernel_rows[];
extern const size_t lnt_kernel_row_count;

/* Measures all rows whose family, operator or shape holds one of the words; all if there are none. level:
 * NULL for the best of this machine, "all" for each. */
int lnt_bench_kernels(const lnt_verb *verb, const lnt_texts *words, const char *level, bool json);

#endif
