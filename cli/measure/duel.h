/* duel.h — the paired benchmark, `linnet bench --vs onnxruntime`: both engines on the same inputs, taking turns. */
#ifndef LNT_CLI_MEASURE_DUEL_H
#define LNT_CLI_MEASURE_DUEL_H

#include "cli/data/compare.h"
#include "cli/measure/worker.h"

#include <stdio.h>

typedef struct lnt_paired_options {
    const char *lnt, *onnx;
    const char *library; /* onnxruntime's; NULL: the system's */
    const char *level;
    uint32_t threads;
    int64_t rounds, processes, starts;
    double max_rel;
} lnt_paired_options;

typedef struct lnt_paired_side {
    lnt_reply reply; /* of the process that was measured for memory */
    uint64_t model_bytes;
    double library, load, first;                /* medians over processes, warm page cache */
    double start, start_cold;                   /* from the start of the process to the first output */
    double load_cold, min, p50, p95, mean, std; /* of a run, over all rounds */
    double cpu;                                 /* the median of a run's time on all processors */
} lnt_paired_side;

typedef struct lnt_paired_output {
    const char *name;
    lnt_comparison plain, optimized; /* with onnxruntime's output, its optimizations off and on */
} lnt_paired_output;

/* The ratio is onnxruntime's time over Linnet's: the median over the rounds of all processes. Its interval
 * holds the true median with 95 % (order statistics of the rounds, no distribution assumed), widened to hold
 * the median of each process by itself. */
typedef struct lnt_paired {
    lnt_paired_side linnet, ort;
    double ratio, low, high;
    double cpu_ratio; /* of processor time: other work hardly disturbs it; with several threads it has
                       * spinning in it */
    lnt_paired_output *output;
    uint32_t n_outputs;
    bool agree; /* all outputs with the plain one */
} lnt_paired;

lnt_status lnt_paired_run(const lnt_paired_options *options, const lnt_named *in, size_t n_in,
                          lnt_paired *paired, lnt_error *err);
void lnt_paired_print(const lnt_paired_options *options, const lnt_paired *paired, bool json);

/* The table's rows: seconds, or bytes. 0: not measured. */
typedef struct lnt_paired_row {
    const char *what;
    bool size;
    double linnet, ort;
} lnt_paired_row;

typedef struct lnt_paired_rows {
    lnt_paired_row row[16];
    size_t n;
} lnt_paired_rows;

void lnt_paired_list(const lnt_paired_options *options, const lnt_paired *paired, lnt_paired_rows *rows);
/* One of the row's values as the table has it; text, which holds it. */
const char *lnt_paired_text(const lnt_paired_row *row, double value, char text[24]);

/* LNT_E_ARGUMENT where path ends as nothing that a comparison can be saved as: .json .svg. */
lnt_status lnt_paired_takes(const char *path, lnt_error *err);
/* Whole or not at all. */
lnt_status lnt_paired_save(const lnt_paired_options *options, const lnt_paired *paired, const char *path,
                           lnt_error *err);
/* A chart of the ratios, a bar for each row of the table, on a logarithmic scale. */
void lnt_paired_chart(const lnt_paired_options *options, const lnt_paired *paired, FILE *out);

#endif
