/* trial.c — the stages of a trial in order, and what is said of it (trial.h). */
#include "convert/quantize/trial.h"

#include "base/half.h"
#include "convert/graph/edit.h"
#include "convert/quantize/half_range.h"
#include "convert/quantize/quantize_layer.h"
#include "formats/packed.h"
#include "formats/tensor_file.h"
#include "ops/product.h"

#include <math.h>
#include <string.h>

/* ---- the float model ---- */

static lnt_status fetch_values(lnt_trial *t, lnt_trial_model *r)
{
    const lnt_static *st = t->layers->fixed;
    for (size_t i = 0; i < t->layers->n; i++)
        LNT_TRY(lnt_fetch_layer(t->g, r->session, &t->layers->layer[i], t->err));
    for (uint32_t v = 0; st && v < st->n_values; v++)
        if (st->value[v].observed)
            LNT_TRY(lnt_keep_value(r->session, t->g->value[v].name, t->err));
    return LNT_OK;
}

static lnt_status measure_layers(lnt_trial *t, lnt_trial_model *r)
{
    lnt_qlayers *layers = t->layers;
    for (size_t i = 0; i < layers->n; i++) {
        if (lnt_can_measure(layers, &layers->layer[i]))
            LNT_TRY(lnt_measure_layer(t->g, layers, r->session, &layers->layer[i], t->err));
        lnt_trial_advance(t);
    }
    return LNT_OK;
}

/* ---- layers of float16 weights ---- */

/* A level of half arithmetic has what such a product reads and gives as halves. */
static bool computes_halves(const lnt_graph *g, const lnt_qlayer *l)
{
    bool halves = false;
    for (unsigned i = 0; i < l->quantized.n_in; i++)
        halves |= l->quantized.in[i] != LNT_NONE &&
                  lnt_multiplies_halves(l->plain.op, &g->value[l->quantized.in[i]].info);
    return halves && l->plain.subgraph == 0 && l->plain.in[0] != LNT_NONE && l->plain.out[0] != LNT_NONE;
}

/* The largest magnitude of a value of the run before; 0 where it cannot be seen. */
static float largest_of(const lnt_graph *g, lnt_session *s, uint32_t value)
{
    lnt_tensor x;
    float largest = 0;
    if (lnt_get_value(s, g->value[value].name, &x, NULL) != LNT_OK || x.dtype != LNT_FLOAT)
        return 0;
    for (size_t i = 0; i < x.bytes / sizeof(float); i++)
        largest = fmaxf(largest, fabsf(((const float *)x.data)[i]));
    return largest;
}

/* Where values come near the largest half, 65504, or might with other inputs, the layer stays in float. */
static void keep_large_in_float(const lnt_trial *t, lnt_session *s)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        lnt_qlayer *l = &t->layers->layer[i];
        if (!computes_halves(t->g, l))
            continue;
        l->largest[0] = largest_of(t->g, s, l->plain.in[0]);
        l->largest[1] = largest_of(t->g, s, l->plain.out[0]);
        if (fmaxf(l->largest[0], l->largest[1]) > LNT_HALF_AT_MOST) {
            l->chosen = false;
            l->why = "its values come near the largest half";
        }
    }
}

static lnt_status round_floats(lnt_trial *t, lnt_trial_model *r)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        const lnt_qlayer *l = &t->layers->layer[i];
        if (!computes_halves(t->g, l))
            continue;
        (void)lnt_keep_value(r->session, t->g->value[l->plain.in[0]].name, NULL);
        (void)lnt_keep_value(r->session, t->g->value[l->plain.out[0]].name, NULL);
    }
    lnt_trial_expect(t, t->samples.n);
    LNT_TRY(lnt_trial_run_reference(t, r));
    keep_large_in_float(t, r->session);
    return LNT_OK;
}

/* Where no output can be measured, nothing shows what a transform in INT8 would cost, unless nobody minds. */
static lnt_status keep_transforms(const lnt_trial *t)
{
    const bool minds = t->options->min_snr > 0 || t->options->may_be_unmeasured;
    return minds && t->options->mode != LNT_INT8_OFF ? lnt_qlayers_keep_transforms(t->g, t->layers) : LNT_OK;
}

static lnt_status use_float(lnt_trial *t, lnt_trial_model *r)
{
    LNT_TRY(lnt_trial_start(t, r));
    LNT_TRY(lnt_trial_prepare(t, r));
    if (t->options->mode == LNT_INT8_OFF) /* floats of fewer bits: no layer is another operator */
        return round_floats(t, r);
    LNT_TRY(fetch_values(t, r));
    lnt_trial_expect(t, t->samples.n * (t->options->method == LNT_RANGE_MINMAX ? 1 : 2) + t->layers->n);
    LNT_TRY(lnt_trial_calibrate(t, r));
    LNT_TRY(lnt_trial_run_reference(t, r));
    if (t->blind)
        LNT_TRY(keep_transforms(t));
    if (t->layers->fixed && t->options->method == LNT_RANGE_BEST)
        LNT_TRY(lnt_trial_choose_method(t));
    LNT_TRY(lnt_trial_put_forms(t->layers));
    return measure_layers(t, r);
}

static lnt_status run_float(lnt_trial *t)
{
    lnt_trial_model r;
    const lnt_status status = use_float(t, &r);
    lnt_trial_stop(t, &r);
    return status;
}

/* ---- layers that compute in float with INT8 weights ---- */

/* Once the INT8 form has been measured: the float form, its weights dequantized from the INT8 ones. */
static lnt_status widen_narrow(lnt_graph *g, const lnt_qlayers *layers)
{
    for (size_t i = 0; i < layers->n; i++) {
        lnt_qlayer *l = &layers->layer[i];
        if (!l->narrow || l->quantized.op == l->plain.op)
            continue;
        const uint32_t wide = lnt_widened_weights(g, l->quantized.in[1], l->quantized.in[2]);
        uint32_t *in = lnt_bump_alloc(&g->memory, l->plain.n_in * sizeof *in, g->err);
        if (!in || wide == LNT_NONE)
            return LNT_E_MEMORY;
        memcpy(in, l->plain.in, l->plain.n_in * sizeof *in);
        in[1] = wide;
        l->quantized = l->plain;
        l->quantized.in = in;
    }
    return LNT_OK;
}

/* ---- the report ---- */

/* The first sample that outputs were kept of. */
static size_t first_held_out(const lnt_trial *t)
{
    size_t i = 0;
    while (!lnt_trial_is_held_out(t, i))
        i++;
    return i;
}

/* Why the figures of output i say nothing; NULL: they do. */
static const char *why_unmeasurable(const lnt_trial *t, uint32_t i)
{
    static const char *const text[] = {[LNT_FLAW_EMPTY] = "is empty",
                                       [LNT_FLAW_NAN] = "holds NaN",
                                       [LNT_FLAW_INFINITE] = "holds infinities",
                                       [LNT_FLAW_NOISE] = "is noise, other random numbers with each seed",
                                       [LNT_FLAW_ZERO] = "is all zero",
                                       [LNT_FLAW_CONSTANT] = "is constant"};
    const lnt_noise *n = &t->noise[i];
    const bool fits = !isnan(n->error) || isnan(n->worst); /* compare_output */
    return fits || t->flaw[i] ? text[t->flaw[i]] : "has other extents than in float";
}

static lnt_status tell_errors(lnt_trial *t)
{
    lnt_report *r = t->report;
    const lnt_tensor *want = &t->want[first_held_out(t) * t->n_outputs];
    r->trial_inputs = !t->options->n_samples ? "seeded inputs"
                      : t->samples.n == 1    ? "the input that was calibrated on"
                                             : "recorded inputs that were not calibrated on";
    r->n_output_errors = r->calibrated_on = r->measured_on = 0;
    for (size_t i = 0; i < t->samples.n; i++) {
        r->calibrated_on += lnt_trial_calibrates_on(t, i);
        r->measured_on += lnt_trial_is_held_out(t, i);
    }
    r->output_error = lnt_bump_alloc(&r->memory, t->n_outputs * sizeof *r->output_error, t->err);
    if (!r->output_error)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < t->n_outputs; i++) {
        if (want[i].dtype != LNT_FLOAT)
            continue;
        lnt_output_error *e = &r->output_error[r->n_output_errors++];
        *e = (lnt_output_error){.output = lnt_report_text(r, "%s", t->name[i]),
                                .inner = t->inner,
                                .unmeasurable = why_unmeasurable(t, i),
                                .snr = lnt_noise_snr(&t->noise[i]),
                                .max_error = t->noise[i].worst,
                                .largest = t->noise[i].largest};
        if (!e->output)
            return LNT_E_MEMORY;
    }
    return LNT_OK;
}

/* ---- the whole ---- */

static lnt_status run_stages(lnt_trial *t)
{
    LNT_TRY(run_float(t));
    LNT_TRY(widen_narrow(t->g, t->layers));
    LNT_TRY(lnt_trial_choose(t));
    return tell_errors(t);
}

/* Everything but the rounding, which forms of static layers that are yet to be written need. */
static void free_runs(lnt_trial *t)
{
    const lnt_allocator *heap = t->g->memory.allocator;
    for (uint32_t v = 0; t->seen && v < t->layers->fixed->n_values; v++)
        lnt_free(heap, t->seen[v].bin);
    for (size_t i = 0; t->want && i < t->samples.n * t->n_outputs; i++)
        lnt_tensor_free(heap, &t->want[i]);
    lnt_samples_free(&t->samples);
    lnt_free(heap, t->seen);
    lnt_free(heap, t->want);
    lnt_free(heap, t->noise);
    lnt_free(heap, t->flaw);
    lnt_free(heap, t->name);
}

/* Without samples a model that seeded inputs do not run is quantized unmeasured, unless a bound was asked
 * for. */
static lnt_status judge(lnt_trial *t, lnt_status status, const lnt_error *why)
{
    const lnt_quantize_options *o = t->options;
    if (status == LNT_OK)
        return LNT_OK;
    LNT_REQUIRE(status != LNT_E_MEMORY, t->g->err, status, "%s", why->message);
    LNT_REQUIRE(!o->n_samples, t->g->err, status, "--calibrate: %s", why->message);
    LNT_REQUIRE((o->min_snr <= 0 || o->may_be_unmeasured) && o->at_most <= 0, t->g->err, status,
                "--min-snr: the model does not run on seeded inputs (%s): record some, with --calibrate",
                why->message);
    t->report->trial_failure = lnt_report_text(t->report, "%s", why->message);
    return t->report->trial_failure ? LNT_OK : LNT_E_MEMORY;
}

static lnt_status try_and_settle(lnt_trial *t)
{
    lnt_error why = {0}, *outer = t->g->err;
    t->g->err = t->err = &why; /* a trial that fails is no failure yet */
    const lnt_status status = run_stages(t);
    t->g->err = t->err = outer;
    free_runs(t);
    LNT_TRY(judge(t, status, &why));
    LNT_REQUIRE(
        !t->blind || t->options->min_snr <= 0 || t->options->may_be_unmeasured, t->g->err, LNT_E_ARGUMENT,
        "--min-snr: no output can be measured, as each is noise, NaN or infinite: name inner values, with "
        "--measure");
    LNT_TRY(widen_narrow(t->g, t->layers));
    return lnt_trial_put_forms(t->layers);
}

lnt_status lnt_quantize_trial(lnt_graph *g, const lnt_quantize_options *options, lnt_qlayers *layers,
                              lnt_report *report)
{
    lnt_trial t = {.g = g,
                   .samples = {.options = options, .graph = g},
                   .options = options,
                   .layers = layers,
                   .report = report};
    LNT_REQUIRE(options->mode != LNT_INT8_STATIC || options->n_samples, g->err, LNT_E_ARGUMENT,
                "--int8 static needs recorded inputs: give some with --calibrate");
    if (!layers->n)
        return LNT_OK;
    const lnt_status status = try_and_settle(&t);
    g->small = true;
    lnt_trial_forget_rounding(&t);
    return status;
}
