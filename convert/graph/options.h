/* options.h — what a caller of the converter may ask for. */
#ifndef LNT_CONVERT_GRAPH_OPTIONS_H
#define LNT_CONVERT_GRAPH_OPTIONS_H

#include "runtime/linnet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum lnt_opt { LNT_OPT_NONE, LNT_OPT_BASIC, LNT_OPT_ALL } lnt_opt;

enum { LNT_WINOGRAD_BUDGET = 15, LNT_LENGTH_NONE = -1 };

/* What the file holds floats of weights in. */
typedef enum lnt_precision {
    LNT_PRECISION_MODEL, /* the model's own: float16 or bfloat16 where weights are elements of what it has */
    LNT_PRECISION_FLOAT32,
    LNT_PRECISION_FLOAT16,
    LNT_PRECISION_BFLOAT16,
    LNT_PRECISION_AUTO /* float16 where it is worth it */
} lnt_precision;

typedef struct lnt_named_int {
    const char *name;
    int64_t value;
} lnt_named_int;

typedef struct lnt_named_text {
    const char *name, *text;
} lnt_named_text;

typedef struct lnt_named_bytes {
    const char *name;
    const void *bytes;
    size_t size;
} lnt_named_bytes;

/* A graph input that becomes an initializer: by its position among the inputs that have no initializer. */
typedef struct lnt_baked {
    uint32_t input;
    const lnt_tensor *tensor;
} lnt_baked;

typedef struct lnt_convert_options {
    lnt_opt opt;
    const lnt_named_int
        *dim; /* --dim: fixes an input's extent (dim_param or INPUT:AXIS) or bounds a symbol */
    size_t n_dims;
    /* --length: an input that is a sequence is so many tensors, NAME.0 and on; LNT_LENGTH_NONE: an optional holds
     * nothing; an integer or a bool of one element is this number. */
    const lnt_named_int *length;
    size_t n_lengths;
    const lnt_named_text *state; /* --state OUT=IN */
    size_t n_states;
    const char *const *keep; /* value names */
    size_t n_keep;
    bool keep_all;
    const char *const *measure; /* value names: kept until quantized layers have been chosen, and measured */
    size_t n_measure;
    const char *const *overridable; /* initializers that stay inputs */
    size_t n_overridable;
    const char *const *custom; /* DOMAIN.OP the host will register */
    size_t n_custom;
    const lnt_named_text *meta;
    size_t n_meta;
    const lnt_named_bytes *attach; /* --attach NAME=FILE: no two of one name */
    size_t n_attach;
    const char *const *golden; /* case folders (input_K.pb, output_K.pb) to carry along */
    size_t n_golden;
    const struct lnt_quantize_options *quantize; /* convert/quantize/quantize.h; NULL: not */
    lnt_precision precision;                     /* FLOAT32 or MODEL where it is quantized */
    /* Percent that the file may grow by for convolutions by Winograd's transform, where that is sooner. 0:
     * LNT_WINOGRAD_BUDGET with LNT_OPT_ALL, but nothing where it is quantized; below 0: none; INFINITY: all. Where
     * there is one, taps of 3x3 without room are transformed in each run, which takes none. */
    double winograd_budget;
    const char *stream;    /* the value that a sound is computed from by pieces; NULL: found; "off": none */
    bool reference_golden; /* without case folders: carry a run of the unoptimized model on seeded inputs */
    /* Baking of suite cases: graph inputs that become initializers (verify --bake). */
    const lnt_baked *bake;
    size_t n_bake;
    /* Likewise by position: how many tensors the case has for an input that is a sequence, LNT_LENGTH_NONE: its
     * optional holds nothing. Of no account where the input is a tensor. Positions of `bake` are those of tensors
     * then. */
    const int64_t *case_length;
    size_t n_case_lengths;
    /* Bytes of all that the conversion holds at once, its runs of the model among them; 0: half of what the
     * machine has to spare. The ONNX model itself and recorded inputs are apart. */
    uint64_t memory_limit;
} lnt_convert_options;

#endif
