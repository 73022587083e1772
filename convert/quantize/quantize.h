/* quantize.h — INT8 for models that come in float: which layers, how exact, how fast.
 *
 * The pass (passes/quantize.c) finds layers whose weights are constant and forms each one's quantized node;
 * a trial (trial.h) measures what that costs in exactness and gains in time; then the layers that pass are
 * exchanged. */
#ifndef LNT_CONVERT_QUANTIZE_QUANTIZE_H
#define LNT_CONVERT_QUANTIZE_QUANTIZE_H

#include "convert/quantize/quantize_ranges.h"
#include "convert/graph/report.h"
#include "formats/costs.h"
#include "runtime/linnet.h"

typedef enum lnt_int8_mode {
    LNT_INT8_OFF,
    LNT_INT8_DYNAMIC, /* weights per channel, activations in each run */
    LNT_INT8_AUTO,    /* whichever of the others is fastest, measured on the whole model (convert.c) */
    LNT_INT8_STATIC,  /* weights per channel, activations at conversion */
    LNT_INT4_BLOCKS /* weights of products in blocks of 4 bits, activations in each run; tables as DYNAMIC */
} lnt_int8_mode;

/* dB that outputs should keep where nothing else is asked for: others like those that were recorded have 30. A layer
 * of 4 bits has about 20 by itself. */
enum { LNT_INT8_SNR = 31, LNT_INT4_SNR = 15 };

typedef struct lnt_quantize_options {
    lnt_int8_mode mode;
    int64_t block;           /* of INT4: numbers with one scale, a power of 2 */
    lnt_range_method method; /* of static ranges */
    double at_most;          /* of a layer's time in float, or it stays in float; 0: no bound */
    const lnt_costs *costs;  /* of the machine whose time counts; NULL: this one's, by the clock */
    double min_snr;          /* dB that every output must keep; 0: no bound */
    bool may_be_unmeasured;  /* that bound does not hold where outputs cannot be measured */
    const char *const *in_float; /* patterns (fnmatch) of names of layers that stay in float */
    size_t n_in_float;
    /* Recorded inputs; n_samples 0: seeded ones. Reads sample i into inputs[], zeroed, by
     * lnt_malloc_allocator: they then belong to the caller; a state whose data stay NULL goes on from the
     * sample before. count_samples, unless NULL, says how many there are once the model is known. */
    size_t n_samples;
    lnt_status (*count_samples)(void *arg, const lnt_model *m, size_t *n, lnt_error *err);
    lnt_status (*read_sample)(void *arg, const lnt_model *m, size_t i, lnt_tensor *inputs, lnt_error *err);
    void *arg;
    /* Told how much of the work is done; may be NULL. */
    void (*progress)(void *arg, size_t done, size_t total);
} lnt_quantize_options;

/* The pass: exchanges layers by the options of the graph (lnt_graph.quantize); nothing without. */
lnt_status lnt_pass_quantize(lnt_graph *g, lnt_report *report);

/* One layer and its two forms. */
typedef struct lnt_qlayer {
    lnt_gnode *node;
    lnt_gnode plain, quantized;
    bool chosen;
    bool fixed;                    /* static: quantization parameters are constants (quantize_static.h) */
    bool formless;                 /* products that have no int8 form: counted only */
    bool unfit;                    /* not chosen for the sake of the outputs */
    bool narrow;                   /* chosen, it computes in float, with weights that are int8 in the file */
    const char *why;               /* not chosen */
    float largest[2];              /* of weights in float16: what it reads and gives, as far as it was seen */
    struct lnt_rounding *rounding; /* during the trial; or NULL */
    lnt_quantized measured;
} lnt_qlayer;

typedef struct lnt_qlayers {
    lnt_qlayer *layer;
    size_t n, capacity;
    struct lnt_static *fixed; /* NULL unless static */
} lnt_qlayers;

/* Adds node n, chosen, with its int8 weights; its quantized form is still the plain one. */
lnt_status lnt_qlayers_add(lnt_qlayers *layers, lnt_graph *g, lnt_gnode *n, size_t weights);

/* Takes back to float (quantize_keep.c) what options->in_float names. E_NOT_FOUND: a pattern that no layer matches. */
lnt_status lnt_qlayers_keep_named(const lnt_qlayers *layers, const lnt_quantize_options *options,
                                  lnt_error *err);
/* Takes back to float transforms of a fixed basis, as the DFT's. */
lnt_status lnt_qlayers_keep_transforms(lnt_graph *g, const lnt_qlayers *layers);
/* Measures every layer by itself and the model as a whole, and takes layers back until the bounds hold. The
 * graph's nodes are in the chosen form afterwards. */
lnt_status lnt_quantize_trial(lnt_graph *g, const lnt_quantize_options *options, lnt_qlayers *layers,
                              lnt_report *report);

/* An int8 constant with one scale per channel, in +-127, of the float constant: its channels run along
 * axis `axis` (0 <= axis < rank), or along the first `axes` axes together. Scales times factor, none below
 * least[] (may be NULL) where that is not 0. LNT_NONE as *weights where an element is not finite. */
lnt_status lnt_quantize_weights(lnt_graph *g, const char *name, const lnt_operand *value, unsigned axis,
                                unsigned axes, float factor, const float *least, uint32_t *weights,
                                uint32_t *scale);
/* A float constant of int8 weights with a scale for each place along the first axis, which the file holds as
 * these; LNT_NONE if there is no memory for it. */
uint32_t lnt_widened_weights(lnt_graph *g, uint32_t weights, uint32_t scale);

#endif
