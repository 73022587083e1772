/* record_golden.c — golden vectors: cases that a file carries so that `verify` can prove it on a device.
 *
 * Recorded cases come from folders of the ONNX suite's form. Without any, the model is converted again
 * without optimization, loaded as a user would load it, and run on seeded inputs. */
#include "convert/record_golden.h"

#include "base/checked.h"
#include "convert/emit/own_model.h"
#include "convert/import/import.h"
#include "convert/passes/passes.h"
#include "formats/golden.h"
#include "formats/tensor_file.h"
#include "runtime/linnet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Errors between CPU levels and orders of summation, relative to the largest magnitude. */
static float tolerance_of(lnt_dtype dtype)
{
    switch (dtype) {
    case LNT_FLOAT:
    case LNT_DOUBLE: return 1e-3f;
    case LNT_FLOAT16:
    case LNT_BFLOAT16: return 2e-2f;
    default: return 0;
    }
}

/* ---- records ---- */

static lnt_rec_golden record_of(const lnt_tensor *t, uint32_t test, uint32_t origin, uint16_t role,
                                uint32_t index)
{
    lnt_rec_golden r = {.test = test,
                        .origin = origin,
                        .role = role,
                        .index = index,
                        .dtype = (uint16_t)t->dtype,
                        .rank = (uint16_t)t->rank,
                        .tolerance = role == LNT_GOLDEN_OUTPUT ? tolerance_of(t->dtype) : 0,
                        .stride = 1};
    return r;
}

/* t: whose extents they are. */
static lnt_status add_record(lnt_golden_set *set, const lnt_rec_golden *r, const lnt_tensor *t,
                             lnt_error *err)
{
    LNT_TRY(LNT_GROW(set->heap, set->record, set->capacity, set->n, err));
    LNT_TRY(LNT_GROW(set->heap, set->extents, set->extents_capacity, set->n, err));
    memcpy(set->extents[set->n], t->dims, sizeof t->dims);
    set->record[set->n++] = *r;
    return LNT_OK;
}

/* Appends every stride-th element, the run aligned to 8 bytes. */
static lnt_status add_elements(lnt_golden_set *set, const lnt_tensor *t, lnt_rec_golden *r, lnt_error *err)
{
    const size_t size = lnt_dtype_size(t->dtype);
    LNT_REQUIRE(size, err, LNT_E_UNSUPPORTED, "golden vectors cannot hold %s", lnt_dtype_text(t->dtype));
    const size_t total = t->bytes / size;
    r->data = (set->data_bytes + 7) / 8 * 8;
    r->count = (uint32_t)((total + r->stride - 1) / r->stride);
    const size_t end = (size_t)r->data + r->count * size;
    if (end > set->data_capacity) {
        uint8_t *wider = lnt_alloc_zero(set->heap, end + 4096, 2, err);
        if (!wider)
            return LNT_E_MEMORY;
        if (set->data_bytes)
            memcpy(wider, set->data, set->data_bytes);
        lnt_free(set->heap, set->data);
        set->data = wider;
        set->data_capacity = (end + 4096) * 2;
    }
    for (size_t i = 0; i < r->count; i++)
        memcpy(set->data + r->data + i * size, (const char *)t->data + i * r->stride * size, size);
    set->data_bytes = end;
    return LNT_OK;
}

/* Output `index`, sampled so that it takes at most `share` bytes. */
static lnt_status add_output(lnt_golden_set *set, const lnt_tensor *t, uint32_t test, uint32_t origin,
                             uint32_t index, size_t share, lnt_error *err)
{
    lnt_rec_golden r = record_of(t, test, origin, LNT_GOLDEN_OUTPUT, index);
    if (t->bytes > share) {
        r.encoding = LNT_GOLDEN_SAMPLED;
        r.stride = (t->bytes + share - 1) / share | 1; /* odd: it visits all places of a row */
    }
    LNT_TRY(add_elements(set, t, &r, err));
    return add_record(set, &r, t, err);
}

static lnt_status add_raw_input(lnt_golden_set *set, const lnt_tensor *t, uint32_t test, uint32_t origin,
                                uint32_t index, lnt_error *err)
{
    lnt_rec_golden r = record_of(t, test, origin, LNT_GOLDEN_INPUT, index);
    LNT_TRY(add_elements(set, t, &r, err));
    return add_record(set, &r, t, err);
}

/* ---- recorded cases ---- */

/* FOLDER/KIND_K.pb, freed with lnt_free; NULL if memory is short. */
static char *file_name(const lnt_allocator *heap, const char *folder, const char *kind, uint32_t k,
                       lnt_error *err)
{
    const size_t room = strlen(folder) + 32;
    char *path = lnt_alloc(heap, room, err);
    if (path)
        snprintf(path, room, "%s/%s_%u.pb", folder, kind, k);
    return path;
}

/* Files of that kind in folder, numbered from 0. */
static lnt_status count_files(const lnt_allocator *heap, const char *folder, const char *kind, uint32_t *n,
                              lnt_error *err)
{
    for (*n = 0;; ++*n) {
        char *path = file_name(heap, folder, kind, *n, err);
        if (!path)
            return LNT_E_MEMORY;
        const bool there = access(path, R_OK) == 0;
        lnt_free(heap, path);
        if (!there)
            return LNT_OK;
    }
}

static lnt_status read_file(const lnt_allocator *heap, const char *folder, const char *kind, uint32_t k,
                            lnt_tensor *t, lnt_error *err)
{
    char *path = file_name(heap, folder, kind, k, err);
    const lnt_status status = path ? lnt_tensor_read(path, heap, t, err) : LNT_E_MEMORY;
    lnt_free(heap, path);
    return status;
}

static lnt_status record_inputs(const char *folder, uint32_t test, lnt_golden_set *set, lnt_error *err)
{
    uint32_t n;
    LNT_TRY(count_files(set->heap, folder, "input", &n, err));
    for (uint32_t i = 0; i < n; i++) {
        lnt_tensor t;
        LNT_TRY(read_file(set->heap, folder, "input", i, &t, err));
        const lnt_status status = add_raw_input(set, &t, test, LNT_GOLDEN_RECORDED, i, err);
        lnt_tensor_free(set->heap, &t);
        LNT_TRY(status);
    }
    return LNT_OK;
}

static lnt_status record_outputs(const char *folder, uint32_t test, size_t budget, lnt_golden_set *set,
                                 lnt_error *err)
{
    uint32_t n;
    LNT_TRY(count_files(set->heap, folder, "output", &n, err));
    LNT_REQUIRE(n > 0, err, LNT_E_NOT_FOUND, "--golden %s: there is no output_0.pb", folder);
    for (uint32_t i = 0; i < n; i++) {
        lnt_tensor t;
        LNT_TRY(read_file(set->heap, folder, "output", i, &t, err));
        const lnt_status status = add_output(set, &t, test, LNT_GOLDEN_RECORDED, i, budget / n | 8, err);
        lnt_tensor_free(set->heap, &t);
        LNT_TRY(status);
    }
    return LNT_OK;
}

/* Whoever names a case wants it whole, however large its inputs are; outputs share what they leave, or half. */
static lnt_status record_cases(const lnt_convert_options *o, size_t budget, lnt_golden_set *set,
                               lnt_error *err)
{
    const size_t per_case = budget / o->n_golden;
    for (size_t i = 0; i < o->n_golden; i++) {
        const size_t before = set->data_bytes;
        LNT_TRY(record_inputs(o->golden[i], (uint32_t)i, set, err));
        const size_t used = set->data_bytes - before;
        LNT_TRY(record_outputs(o->golden[i], (uint32_t)i,
                               used < per_case / 2 ? per_case - used : per_case / 2, set, err));
    }
    return LNT_OK;
}

/* ---- the reference run ---- */

static lnt_status feed(lnt_model *m, const lnt_graph *g, lnt_session *s, int64_t extent, lnt_tensor *in,
                       lnt_golden_set *set, lnt_error *err)
{
    for (uint32_t i = 0; i < lnt_model_input_count(m); i++) {
        LNT_TRY(lnt_seeded_input(g, m, i, extent, &in[i], err));
        LNT_TRY(lnt_set_input(s, i, &in[i], err));
        lnt_rec_golden r = record_of(&in[i], 0, LNT_GOLDEN_REFERENCE, LNT_GOLDEN_INPUT, i);
        if (tolerance_of(in[i].dtype) > 0) {
            r.encoding = LNT_GOLDEN_SEEDED;
            r.data = i + 1;
            LNT_TRY(add_record(set, &r, &in[i], err));
        } else {
            LNT_TRY(add_raw_input(set, &in[i], 0, LNT_GOLDEN_REFERENCE, i, err));
        }
    }
    return LNT_OK;
}

/* Of outputs a kilobyte or so of samples tells whether a device computes what it should; recorded cases may
 * take the whole budget. */
static lnt_status collect(lnt_model *m, lnt_session *s, size_t budget, lnt_golden_set *set, lnt_error *err)
{
    enum { SAMPLES = 1024, LEAST = 256 }; /* bytes of all outputs, and of one */
    const uint32_t n = lnt_model_output_count(m);
    LNT_REQUIRE(set->data_bytes <= budget / 2, err, LNT_E_LIMIT,
                "integer inputs are too large to be recorded");
    const size_t room = n ? (budget - set->data_bytes) / n : 0;
    const size_t wanted = n && SAMPLES / n > LEAST ? SAMPLES / n : LEAST,
                 share = wanted < room ? wanted : room;
    LNT_REQUIRE(!n || share >= 64, err, LNT_E_LIMIT, "%u outputs are too many to be recorded", n);
    for (uint32_t i = 0; i < n; i++) {
        lnt_tensor out;
        LNT_TRY(lnt_get_output(s, i, &out, err));
        LNT_TRY(add_output(set, &out, 0, LNT_GOLDEN_REFERENCE, i, share, err));
    }
    return LNT_OK;
}

static lnt_status run_once(lnt_model *m, const lnt_golden_model *r, int64_t extent, size_t budget,
                           lnt_golden_set *set, lnt_error *err)
{
    const lnt_session_options options = {.struct_bytes = sizeof options, .intra_op_num_threads = 1};
    const uint32_t n = lnt_model_input_count(m);
    lnt_tensor *in = lnt_alloc_zero(set->heap, n, sizeof *in, err);
    lnt_session *s = NULL;
    lnt_status status = in ? lnt_session_create(m, &options, &s, err) : LNT_E_MEMORY;
    if (status == LNT_OK) {
        lnt_set_deadline(s, r->deadline);
        status = feed(m, r->graph, s, extent, in, set, err);
    }
    if (status == LNT_OK)
        status = lnt_run(s, err);
    if (status == LNT_OK)
        status = collect(m, s, budget, set, err);
    lnt_session_destroy(&s);
    for (uint32_t i = 0; in && i < n; i++)
        lnt_tensor_free(set->heap, &in[i]);
    lnt_free(set->heap, in);
    return status;
}

static lnt_status run_reference(const lnt_golden_model *r, size_t budget, lnt_golden_set *set, lnt_error *err)
{
    lnt_model *m = NULL;
    lnt_budget budget_of_run;
    lnt_budget_init(&budget_of_run, set->heap, LNT_TRIAL_MEMORY, "a run for golden vectors");
    lnt_status status = lnt_load_own(&budget_of_run.allocator, r->image, r->size, &m, err);
    for (unsigned i = 0; m && i < LNT_TRIAL_EXTENTS; i++) {
        lnt_golden_set_free(set);
        lnt_error_clear(err);
        status = run_once(m, r, lnt_trial_extents[i], budget, set, err);
        if (status == LNT_OK || status == LNT_E_MEMORY || status == LNT_E_DEADLINE)
            break;
    }
    if (status == LNT_E_DEADLINE)
        lnt_error_prefix(err, "a run of more than %g s was given up: ", (double)r->deadline / 1e6);
    lnt_model_destroy(&m);
    return status == LNT_E_MEMORY && lnt_budget_refused(&budget_of_run.allocator) ? LNT_E_LIMIT : status;
}

static lnt_status make_reference(lnt_graph *g, const void *onnx, size_t onnx_size, const char *folder,
                                 const lnt_convert_options *options, lnt_golden_model *r)
{
    lnt_convert_options plain = *options;
    plain.n_states = plain.n_keep = 0;
    plain.keep_all = false;
    lnt_report report;
    lnt_report_init(&report);
    lnt_status status = lnt_import(g, onnx, onnx_size, folder, &plain, &report);
    const lnt_gnode *random = status == LNT_OK ? lnt_graph_unseeded(g) : NULL;
    if (random)
        status = lnt_fail(g->err, LNT_E_UNSUPPORTED, "node '%s' (%s) draws random numbers and has no seed",
                          random->name, lnt_op_name(random->op));
    if (status == LNT_OK)
        status = lnt_run_passes(g, LNT_OPT_NONE, &report);
    if (status == LNT_OK)
        status = lnt_emit(g, &report, NULL, &r->image, &r->size);
    r->deadline = lnt_trial_deadline(g);
    lnt_report_free(&report);
    return status;
}

static lnt_status record_reference(const lnt_graph *g, const void *onnx, size_t onnx_size, const char *folder,
                                   const lnt_convert_options *options, size_t budget, lnt_golden_set *set,
                                   lnt_error *err)
{
    lnt_graph plain;
    lnt_golden_model r = {.graph = g};
    lnt_graph_init(&plain, g->memory.allocator, err);
    lnt_status status = make_reference(&plain, onnx, onnx_size, folder, options, &r);
    lnt_graph_free(&plain);
    if (status == LNT_OK)
        status = run_reference(&r, budget, set, err);
    lnt_free(set->heap, r.image);
    return status;
}

/* Outputs of a quantized model are not those of the float one that were recorded: as far off as they were in the trial,
 * and as far again. In its own run, and in a model that was quantized before, a float that falls between two levels is
 * rounded one way or the other, and the layers behind it see another value. With weights of 16 bits outputs may be as
 * far off as those of a level that computes in these. */
static void widen_tolerance(lnt_golden_set *set, const lnt_report *report, bool own)
{
    const double unmeasured = 0.25, least = 0.01, imported = 0.05;
    const bool halves = (report->precision || report->was_half) && !report->rounds_to_int8;
    double tolerance = halves                        ? tolerance_of(LNT_FLOAT16)
                       : own || !report->n_quantized ? imported
                       : report->trial_inputs        ? least
                                                     : unmeasured;
    for (size_t i = 0; i < report->n_output_errors && !own; i++) {
        const lnt_output_error *e = &report->output_error[i];
        tolerance = fmax(tolerance, !e->inner && e->largest > 0 ? 2 * e->max_error / e->largest : unmeasured);
    }
    for (size_t i = 0; i < set->n; i++)
        if (set->record[i].tolerance > 0)
            set->record[i].tolerance = fmaxf(set->record[i].tolerance, (float)tolerance);
}

/* The model's own run: where ranges are fixed, seeded inputs lie outside of them, and the float model says
 * nothing about what comes out. */
static lnt_status record_own(const lnt_golden_model *m, size_t budget, lnt_golden_set *set, lnt_error *err)
{
    LNT_TRY(run_reference(m, budget, set, err));
    for (size_t i = 0; i < set->n; i++)
        set->record[i].origin = LNT_GOLDEN_OWN;
    return LNT_OK;
}

lnt_status lnt_record_golden(const lnt_graph *g, const void *onnx, size_t onnx_size, const char *folder,
                             const lnt_convert_options *options, const lnt_golden_model *own, size_t budget,
                             lnt_report *report, lnt_golden_set *set, lnt_error *err)
{
    lnt_error why = {0};
    const lnt_status status = options->n_golden ? record_cases(options, budget, set, err)
                              : own
                                  ? record_own(own, budget, set, &why)
                                  : record_reference(g, onnx, onnx_size, folder, options, budget, set, &why);
    if (status == LNT_OK && (report->n_quantized || report->rounds_to_int8 || report->was_half))
        widen_tolerance(set, report, own != NULL);
    if (status == LNT_OK || options->n_golden)
        return status;
    /* A model that cannot be run without knowing it is still a good model. */
    lnt_golden_set_free(set);
    const bool none_left = status == LNT_E_MEMORY && !lnt_budget_refused(set->heap);
    /* No input makes types fit, or a disk readable. */
    const bool hopeless = none_left || status == LNT_E_TYPE || status == LNT_E_IO;
    LNT_REQUIRE(!hopeless, err, status, "%s", why.message);
    report->no_golden = lnt_report_text(report, "%s", why.message);
    LNT_REQUIRE(report->no_golden, err, LNT_E_MEMORY, "no memory for the report");
    return LNT_OK;
}
