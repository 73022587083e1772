/* convert.h — from an ONNX model to the bytes of a .lnt file. */
#ifndef LNT_CONVERT_CONVERT_H
#define LNT_CONVERT_CONVERT_H

#include "convert/quantize/quantize.h"
#include "formats/lnt_format.h"
#include "runtime/linnet.h"

typedef struct lnt_named_int {
    const char *name;
    int64_t value;
} lnt_named_int;

typedef struct lnt_named_text {
    const char *name, *text;
} lnt_named_text;

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
    const lnt_named_text *state; /* --state OUT=IN */
    size_t n_states;
    const char *const *keep; /* value names */
    size_t n_keep;
    bool keep_all;
    const char *const *overridable; /* initializers that stay inputs */
    size_t n_overridable;
    const char *const *custom; /* DOMAIN.OP the host will register */
    size_t n_custom;
    const lnt_named_text *meta;
    size_t n_meta;
    const char *const *golden; /* case folders (input_K.pb, output_K.pb) to carry along */
    size_t n_golden;
    const lnt_quantize_options *quantize; /* NULL: not */
    bool winograd;                        /* convolutions by Winograd's transform, where that is sooner */
    bool reference_golden; /* without case folders: carry a run of the unoptimized model on seeded inputs */
    /* Baking of suite cases: graph inputs that become initializers (verify --bake). */
    const lnt_baked *bake;
    size_t n_bake;
    /* Bytes of all that the conversion holds at once, its runs of the model among them; 0: half of what the
     * machine has to spare. The ONNX model itself and recorded inputs are apart. */
    uint64_t memory_limit;
} lnt_convert_options;

/* Reads path (and external data inside its folder) and converts. On success *image, freed with lnt_free and
 * lnt_malloc_allocator, holds the file. E_UNSUPPORTED: report lists every node at fault and there is no
 * image. */
lnt_status lnt_convert_file(const char *path, const lnt_convert_options *options, lnt_report *report,
                            void **image, size_t *size, lnt_error *err);
/* The same for a model in memory; folder (may be NULL) is where external data may lie. */
lnt_status lnt_convert_memory(const void *onnx, size_t onnx_size, const char *folder,
                              const lnt_convert_options *options, lnt_report *report, void **image,
                              size_t *size, lnt_error *err);

/* The parts, in order (import/, passes/, emit/). */
lnt_status lnt_import(lnt_graph *g, const void *onnx, size_t size, const char *folder,
                      const lnt_convert_options *options, lnt_report *report);
lnt_status lnt_run_passes(lnt_graph *g, lnt_opt opt, lnt_report *report);
/* Records of golden vectors; their data fields count from the start of `data`. */
typedef struct lnt_golden_set {
    const lnt_allocator *heap;
    lnt_rec_golden *record;
    size_t n, capacity;
    uint8_t *data;
    size_t data_bytes, data_capacity;
} lnt_golden_set;

/* A model for golden vectors, its graph (or one with the same inputs), and how long it may run. */
typedef struct lnt_golden_model {
    void *image;
    size_t size;
    const lnt_graph *graph;
    uint64_t deadline; /* microseconds */
} lnt_golden_model;

/* Records the cases of the options, or the reference run (emit/record_golden.c), or one of `own` unless that is NULL, in
 * at most `budget` bytes; g is the model's graph. */
lnt_status lnt_record_golden(const lnt_graph *g, const void *onnx, size_t onnx_size, const char *folder,
                             const lnt_convert_options *options, const lnt_golden_model *own, size_t budget,
                             lnt_report *report, lnt_golden_set *set, lnt_error *err);
void lnt_golden_set_free(lnt_golden_set *set);

/* A model in bytes that stay; its memory, and that of its sessions, is the heap's. */
lnt_status lnt_load_own(const lnt_allocator *heap, const void *image, size_t size, lnt_model **m,
                        lnt_error *err);
/* Input i of m, made up for a run of a model that is not known: floats by the rule of golden vectors with
 * seed i + 1, integers 1; but one integer that the graph g compares with a constant is that constant. In g's
 * memory. An extent that is open becomes `extent`, but the first axis is taken for a batch of 1. */
lnt_status lnt_seeded_input(const lnt_graph *g, const lnt_model *m, uint32_t i, int64_t extent, lnt_tensor *t,
                            lnt_error *err);
/* Which extents a model can take is not known beforehand: the first of these that runs. */
enum { LNT_TRIAL_EXTENTS = 4 };
extern const int64_t lnt_trial_extents[LNT_TRIAL_EXTENTS];

/* Bytes that a run on such inputs may need. */
enum { LNT_TRIAL_MEMORY = 1 << 30 };
/* Microseconds that it may take: little, if the model has loops, which may never end. */
uint64_t lnt_trial_deadline(const lnt_graph *g);

/* golden may be NULL. The image is in g's memory, freed with lnt_free. */
lnt_status lnt_emit(lnt_graph *g, lnt_report *report, const lnt_golden_set *golden, void **image,
                    size_t *size);

#endif
