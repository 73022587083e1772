/* convert.c — the whole way from an ONNX model to an image. */
#include "convert/fastest.h"

#include "convert/record_golden.h"
#include "convert/emit/own_model.h"
#include "convert/emit/padding.h"
#include "convert/graph/edit.h"
#include "convert/import/foreign.h"
#include "convert/import/import.h"
#include "convert/import/text_model.h"
#include "convert/passes/passes.h"
#include "formats/lnt_file.h"
#include "ops/nbits/nbits_kernels.h"
#include "runtime/resources.h"

#include <string.h>

/* --dim for extents that are not the inputs' own: an upper bound of a data-dependent symbol. */
static lnt_status bound_symbols(lnt_graph *g, const lnt_convert_options *options)
{
    for (size_t i = 0; i < options->n_dims; i++) {
        bool known = lnt_names_find(&g->fixed_dims, options->dim[i].name) != LNT_NAMES_NONE;
        for (size_t k = 0; k < g->n_symbols; k++)
            if (strcmp(g->symbol[k].name, options->dim[i].name) == 0) {
                g->symbol[k].bound = options->dim[i].value;
                known = true;
            }
        LNT_REQUIRE(
            known, g->err, LNT_E_NOT_FOUND,
            "--dim: the model has no extent '%s' (`linnet info` lists them; INPUT:AXIS is one's place)",
            options->dim[i].name);
    }
    return LNT_OK;
}

static bool rounds_to_int8(const lnt_gnode *n)
{
    static const unsigned rounding[] = {
        LNT_ID_QuantizeLinear, LNT_ID_DynamicQuantizeLinear, LNT_ID_DynamicQuantizeMatMul,
        LNT_ID_DynamicMatMul,  LNT_ID_DynamicConv,           LNT_ID_DynamicLSTM,
        LNT_ID_DynamicGRU};
    if (lnt_is(n, MatMulNBits))
        return lnt_gnode_int(n, "accuracy_level", 0) == LNT_NBITS_INT8;
    for (size_t k = 0; k < sizeof rounding / sizeof rounding[0]; k++)
        if (n->op->id == rounding[k])
            return true;
    return false;
}

static lnt_status emit_anew(lnt_graph *g, lnt_report *report, const lnt_golden_set *golden, void **image,
                            size_t *size)
{
    lnt_free(g->memory.allocator, *image);
    *image = NULL;
    return lnt_emit(g, report, golden, image, size);
}

/* An image that is too large is emitted again without the worst padding; equal constants, of which one is stored, may
 * take a second time. */
static lnt_status leave_out_padding(lnt_graph *g, lnt_report *report, const lnt_golden_set *golden,
                                    void **image, size_t *size)
{
    for (bool changed = true; changed;) {
        LNT_TRY(lnt_leave_out_padding(g, report, &changed));
        if (changed)
            LNT_TRY(emit_anew(g, report, golden, image, size));
    }
    return LNT_OK;
}

/* The graph's image, with golden vectors if they are asked for: of 64 KB or 1 % of the file. */
static lnt_status emit(lnt_graph *g, const void *onnx, size_t onnx_size, const char *folder,
                       const lnt_convert_options *options, lnt_report *report, void **image, size_t *size)
{
    enum { LEAST = 64 << 10, SHARE = 100 };
    *image = NULL;
    LNT_TRY(emit_anew(g, report, NULL, image, size));
    if (!options->n_golden && !options->reference_golden)
        return leave_out_padding(g, report, NULL, image, size);
    report->rounds_to_int8 = lnt_graph_any(g, rounds_to_int8);
    const size_t budget = *size / SHARE > LEAST ? *size / SHARE : LEAST;
    lnt_golden_set golden = {.heap = g->memory.allocator};
    const lnt_golden_model own = {*image, *size, g, lnt_trial_deadline(g)};
    const bool is_static = g->quantize && g->quantize->mode == LNT_INT8_STATIC;
    lnt_status status = lnt_record_golden(g, onnx, onnx_size, folder, options, is_static ? &own : NULL,
                                          budget, report, &golden, g->err);
    if (status == LNT_OK)
        status = emit_anew(g, report, &golden, image, size);
    if (status == LNT_OK)
        status = leave_out_padding(g, report, &golden, image, size);
    lnt_golden_set_free(&golden);
    return status;
}

lnt_status lnt_make_graph(const lnt_original *source, const lnt_quantize_options *how, lnt_graph *g,
                          lnt_report *report)
{
    const lnt_convert_options *o = source->options;
    LNT_REQUIRE(o->winograd_budget <= 0 || o->opt == LNT_OPT_ALL, g->err, LNT_E_ARGUMENT,
                "--winograd and --winograd-budget belong to --opt all");
    LNT_TRY(lnt_import(g, source->onnx, source->size, source->folder, o, report));
    g->quantize = how;
    if (o->precision != LNT_PRECISION_MODEL)
        g->precision = o->precision;
    g->winograd_budget = o->winograd_budget;
    g->stream_at = o->stream;
    LNT_TRY(lnt_run_passes(g, o->opt, report));
    return bound_symbols(g, o);
}

static lnt_status convert(lnt_graph *g, const lnt_original *source, lnt_report *report, void **image,
                          size_t *size)
{
    const lnt_convert_options *o = source->options;
    LNT_REQUIRE(
        o->precision <= LNT_PRECISION_FLOAT32 || !o->quantize || o->quantize->mode == LNT_INT8_OFF, g->err,
        LNT_E_ARGUMENT,
        "--precision excludes --int8 and --int4: what is left of floats beside these is float16 anyway");
    if (o->quantize && o->quantize->mode == LNT_INT8_AUTO)
        LNT_TRY(lnt_make_fastest_graph(source, g, report));
    else
        LNT_TRY(lnt_make_graph(source, o->quantize, g, report));
    const lnt_status status = emit(g, source->onnx, source->size, source->folder, o, report, image, size);
    if (status != LNT_OK) {
        lnt_free(g->memory.allocator, *image);
        *image = NULL;
    }
    return status;
}

/* The image is the caller's, who knows of no budget. */
static lnt_status hand_over(const lnt_budget *budget, void **image, size_t size, lnt_error *err)
{
    void *own = *image;
    *image = lnt_alloc(budget->from, size, err);
    if (*image)
        memcpy(*image, own, size);
    lnt_free(&budget->allocator, own);
    return *image ? LNT_OK : LNT_E_MEMORY;
}

static void begin_budget(lnt_budget *b, uint64_t limit)
{
    const uint64_t half = lnt_available_memory() / 2;
    if (limit)
        lnt_budget_init(b, &lnt_malloc_allocator, limit, "--memory-limit");
    else
        lnt_budget_init(b, &lnt_malloc_allocator, half, "--memory-limit (half of what is free)");
}

/* text: the model is in protobuf's text form. */
static lnt_status convert_bytes(const void *onnx, size_t onnx_size, bool text, const char *folder,
                                const lnt_convert_options *options, lnt_report *report, void **image,
                                size_t *size, lnt_error *err)
{
    lnt_error own = {0};
    lnt_graph g;
    lnt_budget budget;
    lnt_original source = {onnx, onnx_size, folder, options, &budget.allocator};
    void *binary = NULL;
    lnt_status status = LNT_OK;
    begin_budget(&budget, options->memory_limit);
    lnt_graph_init(&g, source.memory, err ? err : &own);
    if (text) {
        status = lnt_text_model_parse(onnx, onnx_size, source.memory, &binary, &source.size, g.err);
        source.onnx = binary;
    }
    if (status == LNT_OK)
        status = convert(&g, &source, report, image, size);
    lnt_graph_free(&g);
    lnt_free(source.memory, binary);
    if (status == LNT_OK)
        status = hand_over(&budget, image, *size, g.err);
    if (status == LNT_E_MEMORY) /* the report fails without words */
        lnt_fail(g.err, status, "no memory for the conversion");
    return status;
}

lnt_status lnt_convert_memory(const void *onnx, size_t onnx_size, const char *folder,
                              const lnt_convert_options *options, lnt_report *report, void **image,
                              size_t *size, lnt_error *err)
{
    return convert_bytes(onnx, onnx_size, lnt_text_model(onnx, onnx_size), folder, options, report, image,
                         size, err);
}

size_t lnt_onnx_ending(const char *path)
{
    const size_t n = strlen(path), length = strlen(".onnx");
    return n >= length && strcmp(path + n - length, ".onnx") == 0 ? length : lnt_text_model_ending(path);
}

/* By its contents or, where these are not known to be anything else, by its name. */
static bool is_text(const char *path, const lnt_blob *onnx)
{
    return lnt_text_model(onnx->bytes, onnx->size) ||
           (onnx->size && lnt_text_model_ending(path) && !lnt_foreign_file(onnx->bytes, onnx->size));
}

lnt_status lnt_convert_file(const char *path, const lnt_convert_options *options, lnt_report *report,
                            void **image, size_t *size, lnt_error *err)
{
    lnt_blob onnx;
    LNT_TRY(lnt_blob_open(path, false, &lnt_malloc_allocator, &onnx, err));
    const char *slash = strrchr(path, '/');
    char *folder = lnt_alloc_zero(&lnt_malloc_allocator, strlen(path) + 2, 1, err);
    if (folder)
        memcpy(folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    const lnt_status status = folder ? convert_bytes(onnx.bytes, onnx.size, is_text(path, &onnx), folder,
                                                     options, report, image, size, err)
                                     : LNT_E_MEMORY;
    if (status != LNT_OK)
        lnt_error_prefix(err, "%s: ", path);
    lnt_free(&lnt_malloc_allocator, folder);
    lnt_blob_close(&onnx);
    return status;
}
