/* trial_run.c — runs of a trial: the graph emitted, loaded and run on samples; its outputs kept or compared. */
#include "convert/quantize/trial.h"

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
        LNT_TRY(lnt_get_output(r->session, i, &out, t->err));
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

lnt_status lnt_trial_prepare(lnt_trial *t, lnt_trial_model *r)
{
    LNT_TRY(lnt_samples_read(&t->samples, r->model, SIZE_MAX, t->err));
    LNT_TRY(lnt_samples_find_states(&t->samples, r->model, r->session, t->err));
    t->n_outputs = lnt_model_output_count(r->model);
    t->want = lnt_alloc_zero(t->g->memory.allocator, t->samples.n * t->n_outputs, sizeof *t->want, t->err);
    t->noise = lnt_alloc_zero(t->g->memory.allocator, t->n_outputs, sizeof *t->noise, t->err);
    return t->want && t->noise ? LNT_OK : LNT_E_MEMORY;
}

lnt_status lnt_trial_run_reference(lnt_trial *t, lnt_trial_model *r)
{
    for (size_t i = 0; i < t->samples.n; i++) {
        if (!lnt_trial_is_held_out(t, i) && !lnt_samples_go_on(&t->samples, i))
            continue;
        LNT_TRY(lnt_samples_run_first(&t->samples, r->model, r->session, i, t->err));
        if (!lnt_trial_is_held_out(t, i))
            continue;
        LNT_TRY(take_outputs(t, r, i, true));
        lnt_trial_advance(t);
    }
    return LNT_OK;
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

static lnt_status run_held_out(lnt_trial *t, lnt_trial_model *r)
{
    LNT_TRY(lnt_trial_start(t, r));
    for (size_t i = 0; i < t->samples.n; i++) {
        if (!lnt_trial_is_held_out(t, i) && !lnt_samples_go_on(&t->samples, i))
            continue;
        LNT_TRY(lnt_samples_run(&t->samples, r->session, i, t->err));
        if (lnt_trial_is_held_out(t, i))
            LNT_TRY(take_outputs(t, r, i, false));
    }
    return LNT_OK;
}

lnt_status lnt_trial_run_chosen(lnt_trial *t, double *snr)
{
    lnt_trial_model r;
    memset(t->noise, 0, t->n_outputs * sizeof *t->noise);
    LNT_TRY(lnt_trial_put_forms(t->layers));
    t->g->small = true;
    const lnt_status status = run_held_out(t, &r);
    lnt_trial_stop(t, &r);
    lnt_trial_advance(t);
    *snr = LNT_SNR_MOST;
    for (uint32_t i = 0; i < t->n_outputs; i++)
        *snr = fmin(*snr, lnt_noise_snr(&t->noise[i]));
    return status;
}

double lnt_trial_missing_db(const lnt_trial *t)
{
    const double bound = t->options->min_snr > 0 ? t->options->min_snr : LNT_INT8_SNR;
    double missing = 0;
    for (uint32_t i = 0; i < t->n_outputs; i++)
        missing += fmax(0, bound - lnt_noise_snr(&t->noise[i]));
    return missing;
}
