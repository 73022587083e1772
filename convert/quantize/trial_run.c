/* trial_run.c — runs of a trial: the graph emitted, loaded and run on samples; its outputs kept or compared. */
#include "convert/quantize/trial.h"

#include "base/lnt_assert.h"
#include "convert/emit/emit.h"
#include "convert/emit/own_model.h"
#include "formats/tensor_file.h"

#include <math.h>
#include <string.h>

enum { SAMPLE_US = 60000000 };

void lnt_trial_expect(lnt_trial *t, size_t steps)
{
    t->total += steps;
}

void lnt_trial_advance(lnt_trial *t)
{
    t->done++;
    if (t->options->progress)
        t->options->progress(t->options->arg, t->done, t->total);
}

bool lnt_trial_is_held_out(const lnt_trial *t, size_t i)
{
    enum { SHARE = 4 };
    if (t->samples.n == 1)
        return true;
    return t->samples.n < SHARE ? i == t->samples.n - 1 : i % SHARE == SHARE - 1;
}

bool lnt_trial_calibrates_on(const lnt_trial *t, size_t i)
{
    return t->options->n_samples && (t->samples.n == 1 || !lnt_trial_is_held_out(t, i));
}

/* ---- the graph as a model ---- */

static lnt_status emit_graph(lnt_graph *g, lnt_report *report, void **image, size_t *size)
{
    LNT_TRY(lnt_graph_infer(g));
    lnt_graph_forget_symbols(g);
    return lnt_emit(g, report, NULL, image, size);
}

lnt_status lnt_trial_start(lnt_trial *t, lnt_trial_model *r)
{
    const lnt_session_options options = {.struct_bytes = sizeof options,
                                         .intra_op_num_threads = 1,
                                         .memory_limit = t->options->n_samples ? 0 : LNT_TRIAL_MEMORY};
    lnt_report quiet;
    size_t size = 0;
    *r = (lnt_trial_model){0};
    lnt_report_init(&quiet);
    const lnt_status status = emit_graph(t->g, &quiet, &r->image, &size);
    lnt_report_free(&quiet);
    LNT_TRY(status);
    LNT_TRY(lnt_load_own(t->g->memory.allocator, r->image, size, &r->model, t->err));
    LNT_TRY(lnt_session_create(r->model, &options, &r->session, t->err));
    lnt_set_deadline(r->session, t->options->n_samples ? SAMPLE_US : lnt_trial_deadline(t->g));
    for (size_t v = 0; v < t->g->n_values; v++)
        if (t->g->value[v].measured)
            LNT_TRY(lnt_keep_value(r->session, t->g->value[v].name, t->err));
    return LNT_OK;
}

void lnt_trial_stop(lnt_trial *t, lnt_trial_model *r)
{
    lnt_session_destroy(&r->session);
    lnt_model_destroy(&r->model);
    lnt_free(t->g->memory.allocator, r->image);
    *r = (lnt_trial_model){0};
}

/* ---- outputs ---- */

static lnt_status get_output(const lnt_trial *t, lnt_trial_model *r, uint32_t i, lnt_tensor *out)
{
    if (!t->inner)
        return lnt_get_output(r->session, i, out, t->err);
    LNT_TRY(lnt_get_value(r->session, t->name[i], out, t->err));
    LNT_REQUIRE(out->dtype == LNT_FLOAT, t->err, LNT_E_TYPE, "--measure: '%s' is %s, not float", t->name[i],
                lnt_dtype_text(out->dtype));
    return LNT_OK;
}

static lnt_status keep_output(lnt_trial *t, const lnt_tensor *out, lnt_tensor *want)
{
    lnt_tensor_free(t->g->memory.allocator, want);
    LNT_TRY(lnt_tensor_alloc(t->g->memory.allocator, out->dtype, out->rank, out->dims, want, t->err));
    memcpy(want->data, out->data, out->bytes);
    return LNT_OK;
}

static void compare_output(const lnt_tensor *want, const lnt_tensor *out, lnt_noise *noise)
{
    if (want->bytes == out->bytes)
        lnt_noise_add(noise, want->data, out->data, (int64_t)(out->bytes / sizeof(float)));
    else
        noise->error = NAN;
}

/* Of the run that was: keeps the outputs as the float model's, or adds up how far they are from these. */
static lnt_status take_outputs(lnt_trial *t, lnt_trial_model *r, size_t sample, bool keep)
{
    for (uint32_t i = 0; i < t->n_outputs; i++) {
        lnt_tensor out, *want = &t->want[sample * t->n_outputs + i];
        LNT_TRY(get_output(t, r, i, &out));
        if (out.dtype != LNT_FLOAT)
            continue;
        if (keep)
            LNT_TRY(keep_output(t, &out, want));
        else
            compare_output(want, &out, &t->noise[i]);
    }
    return LNT_OK;
}

/* ---- the float model ---- */

/* What is to be measured: the inner values that are named, or all outputs. */
static lnt_status name_outputs(lnt_trial *t)
{
    const lnt_graph *g = t->g;
    for (size_t v = 0; v < g->n_values; v++)
        t->n_outputs += g->value[v].measured;
    t->inner = t->n_outputs;
    t->n_outputs = t->inner ? t->n_outputs : g->sub[0].n_out;
    t->name = lnt_alloc_zero(g->memory.allocator, t->n_outputs, sizeof *t->name, t->err);
    if (!t->name)
        return LNT_E_MEMORY;
    uint32_t n = 0;
    for (size_t v = 0; v < g->n_values; v++)
        if (g->value[v].measured)
            t->name[n++] = g->value[v].name;
    for (; n < t->n_outputs; n++)
        t->name[n] = g->value[g->sub[0].out[n]].name;
    return LNT_OK;
}

lnt_status lnt_trial_prepare(lnt_trial *t, lnt_trial_model *r)
{
    LNT_TRY(lnt_samples_read(&t->samples, r->model, SIZE_MAX, t->err));
    LNT_TRY(lnt_samples_find_states(&t->samples, r->model, r->session, t->err));
    LNT_TRY(name_outputs(t));
    t->want = lnt_alloc_zero(t->g->memory.allocator, t->samples.n * t->n_outputs, sizeof *t->want, t->err);
    t->noise = lnt_alloc_zero(t->g->memory.allocator, t->n_outputs, sizeof *t->noise, t->err);
    t->flaw = lnt_alloc_zero(t->g->memory.allocator, t->n_outputs, sizeof *t->flaw, t->err);
    return t->want && t->noise && t->flaw ? LNT_OK : LNT_E_MEMORY;
}

/* Runs the held-out samples, and those whose states they go on with. */
static lnt_status run_held_out(lnt_trial *t, lnt_trial_model *r, bool keep)
{
    for (size_t i = 0; i < t->samples.n; i++) {
        if (!lnt_trial_is_held_out(t, i) && !lnt_samples_go_on(&t->samples, i))
            continue;
        LNT_TRY(keep ? lnt_samples_run_first(&t->samples, r->model, r->session, i, t->err)
                     : lnt_samples_run(&t->samples, r->session, i, t->err));
        if (!lnt_trial_is_held_out(t, i))
            continue;
        LNT_TRY(take_outputs(t, r, i, keep));
        if (keep)
            lnt_trial_advance(t);
    }
    return LNT_OK;
}

/* Of output i in all samples. */
static lnt_flaw flaw_of(const lnt_trial *t, uint32_t i)
{
    LNT_ASSERT(i < t->n_outputs);
    size_t n = 0, zeros = 0, alike = 0;
    float first = 0;
    for (size_t s = 0; s < t->samples.n; s++) {
        const lnt_tensor *want = &t->want[s * t->n_outputs + i];
        const float *x = want->data;
        for (size_t e = 0; e < want->bytes / sizeof *x; e++, n++) {
            if (!isfinite(x[e]))
                return isnan(x[e]) ? LNT_FLAW_NAN : LNT_FLAW_INFINITE;
            first = n ? first : x[e];
            zeros += x[e] == 0;
            alike += x[e] == first;
        }
    }
    return !n                    ? LNT_FLAW_EMPTY
           : zeros == n          ? LNT_FLAW_ZERO
           : n > 1 && alike == n ? LNT_FLAW_CONSTANT
                                 : LNT_FLAW_NONE;
}

/* Outputs that are others with another seed. Where all nodes have seeds of their own, other forms of the model draw the
 * same numbers. */
static lnt_status find_noise(lnt_trial *t, lnt_trial_model *r)
{
    enum { LIKE = 60 }; /* dB between two seeds */
    if (!lnt_graph_unseeded(t->g))
        return LNT_OK;
    memset(t->noise, 0, t->n_outputs * sizeof *t->noise);
    lnt_set_seed(r->session, 1);
    const lnt_status status = run_held_out(t, r, false);
    lnt_set_seed(r->session, 0);
    for (uint32_t i = 0; i < t->n_outputs; i++)
        if ((!t->flaw[i] || t->flaw[i] > LNT_FLAW_NOISE) && lnt_noise_snr(&t->noise[i]) < LIKE)
            t->flaw[i] = LNT_FLAW_NOISE;
    return status;
}

lnt_status lnt_trial_run_reference(lnt_trial *t, lnt_trial_model *r)
{
    LNT_TRY(run_held_out(t, r, true));
    for (uint32_t i = 0; i < t->n_outputs; i++)
        t->flaw[i] = flaw_of(t, i);
    LNT_TRY(find_noise(t, r));
    bool floats = false, judged = false;
    for (uint32_t i = 0; i < t->n_outputs; i++) {
        floats |= t->flaw[i] != LNT_FLAW_EMPTY;
        judged |= lnt_trial_can_judge(t, i);
    }
    t->blind = floats && !judged;
    return LNT_OK;
}

bool lnt_trial_can_judge(const lnt_trial *t, uint32_t i)
{
    return !t->flaw[i] || t->flaw[i] > LNT_FLAW_NOISE;
}

/* ---- the model with the layers that are chosen ---- */

lnt_status lnt_trial_put_forms(const lnt_qlayers *layers)
{
    for (size_t i = 0; i < layers->n; i++) {
        const lnt_qlayer *l = &layers->layer[i];
        if (!l->fixed)
            *l->node = l->chosen ? l->quantized : l->plain;
    }
    if (!layers->fixed)
        return LNT_OK;
    lnt_static_plan(layers->fixed, layers);
    return lnt_static_lower(layers->fixed);
}

lnt_status lnt_trial_run_chosen(lnt_trial *t, double *snr)
{
    lnt_trial_model r;
    memset(t->noise, 0, t->n_outputs * sizeof *t->noise);
    LNT_TRY(lnt_trial_put_forms(t->layers));
    t->g->small = true;
    lnt_status status = lnt_trial_start(t, &r);
    if (status == LNT_OK)
        status = run_held_out(t, &r, false);
    lnt_trial_stop(t, &r);
    lnt_trial_advance(t);
    *snr = LNT_SNR_MOST;
    for (uint32_t i = 0; i < t->n_outputs; i++)
        if (lnt_trial_can_judge(t, i))
            *snr = fmin(*snr, lnt_noise_snr(&t->noise[i]));
    return status;
}

double lnt_trial_missing_db(const lnt_trial *t)
{
    const double bound = t->options->min_snr > 0               ? t->options->min_snr
                         : t->options->mode == LNT_INT4_BLOCKS ? LNT_INT4_SNR
                                                               : LNT_INT8_SNR;
    double missing = 0;
    for (uint32_t i = 0; i < t->n_outputs; i++)
        if (lnt_trial_can_judge(t, i))
            missing += fmax(0, bound - lnt_noise_snr(&t->noise[i]));
    return missing;
}
