/* sweep.h — a model measured at every combination of some extents: `bench --sweep batch=1,2,4 --sweep length=16,64`. */
#ifndef LNT_CLI_MEASURE_SWEEP_H
#define LNT_CLI_MEASURE_SWEEP_H

#include "cli/shell/args.h"

#include "base/error.h"

#include <stdio.h>

enum { LNT_SWEEP_AXES = 4, LNT_SWEEP_ROWS = 10000 };

typedef struct lnt_sweep_axis {
    const char *name;
    int64_t *value;
    size_t n;
} lnt_sweep_axis;

typedef struct lnt_sweep_times { /* seconds of a run */
    double mean, std, p50, min;
} lnt_sweep_times;

/* One combination; error is NULL where it was measured. */
typedef struct lnt_sweep_row {
    int64_t extent[LNT_SWEEP_AXES];
    const char *error;
    lnt_sweep_times linnet, ort;
    int64_t rows; /* a run's: the first extent of the first input */
    uint64_t arena_bytes;
    double ratio, low, high; /* of --vs: as lnt_paired has them */
    bool agree;
} lnt_sweep_row;

typedef struct lnt_sweep {
    lnt_sweep_axis axis[LNT_SWEEP_AXES];
    size_t n_axes;
    lnt_sweep_row *row; /* the last axis changes first */
    size_t n_rows;
    bool paired; /* with onnxruntime's times */
} lnt_sweep;

/* axes: "NAME=N,N,..." each. */
lnt_status lnt_sweep_parse(const lnt_texts *axes, lnt_sweep *s, lnt_error *err);
/* "batch=2, length=64" of a row. */
const char *lnt_sweep_text(const lnt_sweep *s, const lnt_sweep_row *row);
/* LNT_E_ARGUMENT where path ends as nothing that a sweep can be saved as: .csv .json .svg. */
lnt_status lnt_sweep_takes(const char *path, lnt_error *err);
void lnt_sweep_print(const lnt_sweep *s, bool json);
/* Whole or not at all. */
lnt_status lnt_sweep_save(const lnt_sweep *s, const char *path, lnt_error *err);
/* A chart of the rows a second over the last axis, a line for each combination of the others. */
void lnt_sweep_chart(const lnt_sweep *s, FILE *out);

#endif
