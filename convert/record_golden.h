/* record_golden.h — golden vectors: inputs and outputs that a file carries along, recorded from case folders or
 * from a run of the model. */
#ifndef LNT_CONVERT_RECORD_GOLDEN_H
#define LNT_CONVERT_RECORD_GOLDEN_H

#include "convert/emit/emit.h"
#include "convert/graph/options.h"

/* A model for golden vectors, its graph (or one with the same inputs), and how long it may run. */
typedef struct lnt_golden_model {
    void *image;
    size_t size;
    const lnt_graph *graph;
    uint64_t deadline; /* microseconds */
} lnt_golden_model;

/* Records the cases of the options, or the reference run, or one of `own` unless that is NULL, in at most `budget`
 * bytes; g is the model's graph. */
lnt_status lnt_record_golden(const lnt_graph *g, const void *onnx, size_t onnx_size, const char *folder,
                             const lnt_convert_options *options, const lnt_golden_model *own, size_t budget,
                             lnt_report *report, lnt_golden_set *set, lnt_error *err);

#endif
