/* quantize_trial.c — what quantized layers cost and gain, measured on runs of the model.
 *
 * The graph is emitted as it stands, loaded as a user would load it, and run on samples, or on seeded inputs
 * where there are none. What the layers read in the float run is kept, so that each can be computed by itself
 * in both forms; the outputs of the float run judge the model as a whole. */
#include "convert/quantize/quantize_rounding.h"
#include "convert/quantize/quantize_samples.h"
#include "convert/quantize/quantize_trial.h"

#include "convert/graph/edit.h"
#include "formats/tensor_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_US = 60000000 };

/* ---- running the graph ---- */

typedef struct trial {
    lnt_graph *g;
    const lnt_quantize_options *options;
    lnt_qlayers *layers;
    lnt_report *report;
    lnt_error *err;
    lnt_samples samples;
    uint32_t n_outputs;
    lnt_tensor *want;   /* [samples][outputs] of the float model, copies */
    lnt_noise *noise;   /* [outputs] of the last run */
    lnt_seen *seen;     /* [values] in the samples that calibrate; NULL unless static */
    size_t done, total; /* of the work, as far as it is foreseen */
} trial;

typedef struct running {
    void *image;
    lnt_model *model;
    lnt_session *session;
} running;

static void expect(trial *t, size_t steps)
{
    t->total += steps;
}

static void advance(trial *t)
{
    t->done++;
    if (t->options->progress)
        t->options->progress(t->options->arg, t->done, t->total);
}

/* Is sample i one that outputs are measured on? Of inputs that are calibrated on every fourth, or the last of
 * a few, is kept out for it; a single one has to do for both. */
static bool is_fresh(const trial *t, size_t i)
{
    enum { SHARE = 4 };
    if (t->samples.n == 1)
        return true;
    return t->samples.n < SHARE ? i == t->samples.n - 1 : i % SHARE == SHARE - 1;
}

static bool calibrates(const trial *t, size_t i)
{
    return t->options->n_samples && (t->samples.n == 1 || !is_fresh(t, i));
}

static void stop(trial *t, running *r)
{
    lnt_session_destroy(&r->session);
    lnt_model_close(&r->model);
    lnt_free(t->g->memory.allocator, r->image);
    *r = (running){0};
}

static lnt_status start(trial *t, running *r)
{
    const lnt_session_options options = {.struct_bytes = sizeof options,
                                         .intra_op_num_threads = 1,
                                         .memory_limit = t->options->n_samples ? 0 : LNT_TRIAL_MEMORY};
    lnt_report quiet;
    size_t size = 0;
    *r = (running){0};
    lnt_report_init(&quiet);
    lnt_status status = lnt_graph_infer(t->g);
    if (status == LNT_OK) {
        lnt_graph_forget_symbols(t->g);
        status = lnt_emit(t->g, &quiet, NULL, &r->image, &size);
    }
    lnt_report_free(&quiet);
    if (status == LNT_OK)
        status = lnt_load_own(t->g->memory.allocator, r->image, size, &r->model, t->err);
    if (status == LNT_OK)
        status = lnt_session_create(r->model, &options, &r->session, t->err);
    if (r->session)
        lnt_set_deadline(r->session, t->options->n_samples ? SAMPLE_US : lnt_trial_deadline(t->g));
    return status;
}

/* Keeps the outputs of the float run, or adds up how far the present ones are from them. */
static lnt_status take_outputs(trial *t, running *r, size_t sample, bool keep)
{
    for (uint32_t i = 0; i < t->n_outputs; i++) {
        lnt_tensor out, *want = &t->want[sample * t->n_outputs + i];
        LNT_TRY(lnt_get_output(r->session, i, &out, t->err));
        if (out.dtype != LNT_FLOAT)
            continue;
        if (keep) {
            lnt_tensor_free(t->g->memory.allocator, want);
            LNT_TRY(lnt_tensor_alloc(t->g->memory.allocator, out.dtype, out.rank, out.dims, want, t->err));
            memcpy(want->data, out.data, out.bytes);
        } else if (want->bytes == out.bytes) {
            lnt_noise_add(&t->noise[i], want->data, out.data, (int64_t)(out.bytes / sizeof(float)));
        } else {
            t->noise[i].error = NAN;
        }
    }
    return LNT_OK;
}

/* ---- the model as a whole ---- */

static lnt_status prepare_samples(trial *t, running *r)
{
    LNT_TRY(lnt_samples_read(&t->samples, r->model, SIZE_MAX, t->err));
    LNT_TRY(lnt_samples_find_states(&t->samples, r->model, r->session, t->err));
    t->n_outputs = lnt_model_output_count(r->model);
    t->want = lnt_alloc_zero(t->g->memory.allocator, t->samples.n * t->n_outputs, sizeof *t->want, t->err);
    t->noise = lnt_alloc_zero(t->g->memory.allocator, t->n_outputs, sizeof *t->noise, t->err);
    return t->want && t->noise ? LNT_OK : LNT_E_MEMORY;
}

/* ---- what is seen of samples ---- */

static void look(trial *t, uint32_t v, const lnt_tensor *x, bool count)
{
    lnt_seen *seen = t->seen;
    const int64_t n = (int64_t)(x->bytes / sizeof(float));
    if (x->dtype != LNT_FLOAT)
        return;
    if (count && seen[v].bin)
        lnt_seen_count(&seen[v], x->data, n);
    if (count)
        return;
    lnt_seen_bounds(&seen[v], x->data, n);
    lnt_static_look_at_channels(&t->layers->fixed->value[v], x, t->samples.n);
}

static lnt_status look_at_values(trial *t, running *r, bool count)
{
    lnt_static *st = t->layers->fixed;
    for (uint32_t v = 0; st && v < st->n_values; v++) {
        lnt_tensor x;
        if (!st->value[v].observed)
            continue;
        LNT_TRY(lnt_get_value(r->session, t->g->value[v].name, &x, t->err));
        look(t, v, &x, count);
    }
    return LNT_OK;
}

/* For rounding weights. */
static lnt_status look_at_inputs(trial *t, running *r)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        const lnt_qlayer *l = &t->layers->layer[i];
        lnt_tensor x;
        if (!l->rounding)
            continue;
        LNT_TRY(lnt_get_value(r->session, t->g->value[l->plain.in[0]].name, &x, t->err));
        LNT_TRY(lnt_rounding_look(t->g, &l->plain, l->rounding, &x, t->samples.n));
    }
    return LNT_OK;
}

/* Runs the samples that calibrate and looks at all values that may become bytes; a second time to count how
 * often they come. */
static lnt_status look_at_samples(trial *t, running *r, bool count)
{
    for (size_t i = 0; i < t->samples.n; i++) {
        if (!calibrates(t, i) && !lnt_samples_go_on(&t->samples, i))
            continue;
        LNT_TRY(lnt_samples_run(&t->samples, r->session, i, t->err));
        if (!calibrates(t, i))
            continue;
        LNT_TRY(look_at_values(t, r, count));
        if (!count)
            LNT_TRY(look_at_inputs(t, r));
        advance(t);
    }
    return LNT_OK;
}

static lnt_status make_bins(trial *t)
{
    lnt_seen *seen = t->seen;
    for (uint32_t v = 0; v < t->layers->fixed->n_values; v++)
        if (seen[v].any && !(seen[v].bin = lnt_alloc_zero(t->g->memory.allocator, LNT_SEEN_BINS,
                                                          sizeof *seen[v].bin, t->err)))
            return LNT_E_MEMORY;
    return LNT_OK;
}

/* Ranges of the values; those that were not finite, or never seen, stay floats. */
static lnt_status set_ranges(trial *t, lnt_range_method method)
{
    lnt_static *st = t->layers->fixed;
    for (uint32_t v = 0; v < st->n_values; v++) {
        float low, high;
        if (!t->seen[v].any || t->seen[v].not_finite)
            continue;
        lnt_seen_range(&t->seen[v], method, &low, &high);
        lnt_static_set_range(st, v, low, high);
    }
    return lnt_static_trim_ranges(st);
}

/* ---- rounding ---- */

static bool is_product(const lnt_gnode *n)
{
    return lnt_is(n, Conv) || lnt_is(n, MatMul) || lnt_is(n, Gemm) || lnt_is(n, FusedMatMul);
}

/* Does no other layer have the same bytes? */
static bool has_own_weights(const lnt_qlayers *layers, const lnt_qlayer *l)
{
    for (size_t i = 0; i < layers->n; i++)
        for (unsigned k = 0; k < layers->layer[i].plain.n_in && k < 2; k++)
            if (&layers->layer[i] != l && layers->layer[i].plain.in[k] == l->plain.in[1])
                return false;
    return true;
}

static lnt_status prepare_rounding(trial *t)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        lnt_qlayer *l = &t->layers->layer[i];
        if (!l->formless && l->measured.before && l->plain.subgraph == 0 && is_product(&l->plain) &&
            has_own_weights(t->layers, l))
            LNT_TRY(lnt_rounding_make(t->g, &l->plain, t->options->n_samples, &l->rounding));
    }
    return LNT_OK;
}

/* Rounds the weights of dynamic layers; static ones, whose weights hang on what is chosen, are told how. */
static lnt_status round_all(trial *t)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        const lnt_qlayer *l = &t->layers->layer[i];
        const bool conv = lnt_is(&l->plain, Conv);
        if (!l->rounding)
            continue;
        lnt_rounding_solve(l->rounding);
        if (!l->fixed)
            LNT_TRY(lnt_round_weights(t->g, l->rounding, lnt_ginfo(t->g, l->plain.in[1]),
                                      !conv && !lnt_gnode_int(&l->plain, "transB", 0), l->quantized.in[2],
                                      conv ? 1 : lnt_gnode_float(&l->plain, "alpha", 1), NULL,
                                      l->quantized.in[1]));
        advance(t);
    }
    lnt_static *st = t->layers->fixed;
    for (uint32_t i = 0; st && i < st->n_sites; i++)
        if (st->site[i].layer != LNT_NONE)
            st->site[i].product.rounding = t->layers->layer[st->site[i].layer].rounding;
    return LNT_OK;
}

static void forget_rounding(trial *t)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        lnt_rounding_free(t->g, t->layers->layer[i].rounding);
        t->layers->layer[i].rounding = NULL;
    }
}

/* ---- ranges and rounding ---- */

static lnt_status calibrate_ranges(trial *t, running *r)
{
    if (t->options->method != LNT_RANGE_MINMAX) {
        LNT_TRY(make_bins(t));
        LNT_TRY(look_at_samples(t, r, true));
    }
    LNT_TRY(set_ranges(t, t->options->method == LNT_RANGE_BEST ? LNT_RANGE_MINMAX : t->options->method));
    return lnt_static_balance(t->layers->fixed);
}

static lnt_status calibrate(trial *t, running *r)
{
    const lnt_static *st = t->layers->fixed;
    if (!t->options->n_samples)
        return LNT_OK;
    if (st && !(t->seen = lnt_alloc_zero(t->g->memory.allocator, st->n_values, sizeof *t->seen, t->err)))
        return LNT_E_MEMORY;
    LNT_TRY(prepare_rounding(t));
    LNT_TRY(look_at_samples(t, r, false));
    LNT_TRY(round_all(t));
    return st ? calibrate_ranges(t, r) : LNT_OK;
}

/* ---- the float model ---- */

static lnt_status fetch_values(trial *t, running *r)
{
    const lnt_static *st = t->layers->fixed;
    for (size_t i = 0; i < t->layers->n; i++)
        LNT_TRY(lnt_fetch_layer(t->g, r->session, &t->layers->layer[i], t->err));
    for (uint32_t v = 0; st && v < st->n_values; v++)
        if (st->value[v].observed)
            LNT_TRY(lnt_fetch(r->session, t->g->value[v].name, t->err));
    return LNT_OK;
}

static lnt_status measure_layers(trial *t, running *r)
{
    lnt_qlayers *layers = t->layers;
    for (size_t i = 0; i < layers->n; i++) {
        if (lnt_can_measure(layers, &layers->layer[i]))
            LNT_TRY(lnt_measure_layer(t->g, layers, r->session, &layers->layer[i], t->err));
        advance(t);
    }
    return LNT_OK;
}

/* Runs the samples that are measured on, and keeps what the float model gives. */
static lnt_status run_samples(trial *t, running *r)
{
    for (size_t i = 0; i < t->samples.n; i++) {
        if (!is_fresh(t, i) && !lnt_samples_go_on(&t->samples, i))
            continue;
        LNT_TRY(lnt_samples_run_first(&t->samples, r->model, r->session, i, t->err));
        if (!is_fresh(t, i))
            continue;
        LNT_TRY(take_outputs(t, r, i, true));
        advance(t);
    }
    return LNT_OK;
}

/* ---- the model with the layers that are chosen ---- */

static lnt_status put_forms(const lnt_qlayers *layers)
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

/* The lowest SNR of the outputs. */
static lnt_status run_chosen(trial *t, double *snr)
{
    running r;
    memset(t->noise, 0, t->n_outputs * sizeof *t->noise);
    LNT_TRY(put_forms(t->layers));
    t->g->small = true;
    lnt_status status = start(t, &r);
    for (size_t i = 0; i < t->samples.n && status == LNT_OK; i++) {
        if (!is_fresh(t, i) && !lnt_samples_go_on(&t->samples, i))
            continue;
        status = lnt_samples_run(&t->samples, r.session, i, t->err);
        if (status == LNT_OK && is_fresh(t, i))
            status = take_outputs(t, &r, i, false);
    }
    stop(t, &r);
    advance(t);
    *snr = LNT_SNR_MOST;
    for (uint32_t i = 0; i < t->n_outputs; i++)
        *snr = fmin(*snr, lnt_noise_snr(&t->noise[i]));
    return status;
}

/* How far the outputs of the last run are below the bound, all together. */
static double missing_db(const trial *t)
{
    const double bound = t->options->min_snr > 0 ? t->options->min_snr : LNT_INT8_SNR;
    double missing = 0;
    for (uint32_t i = 0; i < t->n_outputs; i++)
        missing += fmax(0, bound - lnt_noise_snr(&t->noise[i]));
    return missing;
}

/* The way to make ranges by which the outputs are nearest to the bound, or farthest above it. */
static lnt_status choose_method(trial *t)
{
    lnt_range_method best = LNT_RANGE_MINMAX;
    double least = INFINITY, snr;
    for (lnt_range_method m = LNT_RANGE_MINMAX; m < LNT_RANGE_BEST; m++) {
        LNT_TRY(set_ranges(t, m));
        LNT_TRY(run_chosen(t, &snr));
        const double score = missing_db(t) - snr / LNT_SNR_MOST;
        if (score < least)
            best = m;
        least = fmin(least, score);
    }
    return set_ranges(t, best);
}

/* Ranges, the outputs wanted, and each layer by itself on what the last run has left. */
static lnt_status run_float(trial *t)
{
    running r;
    lnt_status status = start(t, &r);
    if (status == LNT_OK)
        status = prepare_samples(t, &r);
    if (status == LNT_OK)
        status = fetch_values(t, &r);
    expect(t, t->samples.n * (t->options->method == LNT_RANGE_MINMAX ? 1 : 2) + t->layers->n);
    if (status == LNT_OK)
        status = calibrate(t, &r);
    if (status == LNT_OK)
        status = run_samples(t, &r);
    if (status == LNT_OK && t->layers->fixed && t->options->method == LNT_RANGE_BEST)
        status = choose_method(t);
    if (status == LNT_OK)
        status = put_forms(t->layers);
    if (status == LNT_OK)
        status = measure_layers(t, &r);
    stop(t, &r);
    return status;
}

/* ---- choosing ---- */

typedef struct ranked {
    size_t layer;
    double cost, gain; /* of having it in float; gain for its cost */
} ranked;

static int by_gain(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->gain > y->gain ? -1 : x->gain < y->gain ? 1 : x->layer < y->layer ? -1 : 1;
}

static int by_cost(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->cost > y->cost ? -1 : x->cost < y->cost ? 1 : by_gain(a, b);
}

static int by_need(const void *a, const void *b)
{
    return by_gain(b, a);
}

/* Is it in bytes, as things stand, by its own choice? */
static bool in_bytes(const trial *t, const lnt_qlayer *l)
{
    return l->chosen && (!l->fixed || lnt_static_is_on(t->layers->fixed, l->node));
}

/* What it costs to have the layer in float: its part of the multiplications or of the weights, whichever is
 * more, and a little for each. */
static double cost_of(const trial *t, const lnt_qlayer *l)
{
    const double least = 0.01;
    double products = 1, bytes = 1;
    for (size_t i = 0; i < t->layers->n; i++) {
        products += fmax(0, t->layers->layer[i].measured.multiplications);
        bytes += (double)t->layers->layer[i].measured.before;
    }
    return least + fmax(fmax(0, l->measured.multiplications) / products, (double)l->measured.before / bytes);
}

/* The layers in bytes by what the outputs gain, for what it costs, when one of them alone is float. */
static lnt_status rank_layers(trial *t, ranked *rank, size_t *n)
{
    const double missing = missing_db(t);
    double snr;
    *n = 0;
    for (size_t i = 0; i < t->layers->n; i++)
        if (in_bytes(t, &t->layers->layer[i]))
            rank[(*n)++].layer = i;
    expect(t, *n);
    for (size_t i = 0; i < *n; i++) {
        lnt_qlayer *l = &t->layers->layer[rank[i].layer];
        l->chosen = false;
        const lnt_status status = run_chosen(t, &snr);
        l->chosen = true;
        LNT_TRY(status);
        rank[i].cost = cost_of(t, l);
        rank[i].gain = (missing - missing_db(t)) / rank[i].cost;
    }
    qsort(rank, *n, sizeof *rank, by_gain);
    return LNT_OK;
}

static void keep_in_float(trial *t, const ranked *rank, size_t n, size_t dropped)
{
    for (size_t i = 0; i < n; i++)
        t->layers->layer[rank[i].layer].chosen = i >= dropped;
}

/* How many of the first must be float. */
static lnt_status find_enough(trial *t, const ranked *rank, size_t n, size_t *enough)
{
    size_t low = 0;
    for (*enough = n; low < *enough;) {
        const size_t middle = (low + *enough) / 2;
        double snr;
        keep_in_float(t, rank, n, middle);
        LNT_TRY(run_chosen(t, &snr));
        if (snr >= t->options->min_snr)
            *enough = middle;
        else
            low = middle + 1;
    }
    keep_in_float(t, rank, n, *enough);
    return LNT_OK;
}

typedef int (*order)(const void *, const void *);

/* Puts back in bytes what the bound turns out not to need, in that order; the cost of what stays in float. */
static lnt_status give_back(trial *t, ranked *rank, size_t dropped, order in_order, double *cost)
{
    qsort(rank, dropped, sizeof *rank, in_order);
    keep_in_float(t, rank, dropped, dropped);
    *cost = 0;
    for (size_t i = 0; i < dropped; i++) {
        lnt_qlayer *l = &t->layers->layer[rank[i].layer];
        double snr;
        l->chosen = true;
        LNT_TRY(run_chosen(t, &snr));
        l->chosen = snr >= t->options->min_snr;
        l->unfit = !l->chosen;
        l->why = l->chosen ? NULL : "the outputs' SNR";
        *cost += l->chosen ? 0 : rank[i].cost;
    }
    return LNT_OK;
}

/* Neither order is always the better one: what costs most first, or what is least needed. */
static lnt_status give_back_most(trial *t, ranked *rank, size_t dropped)
{
    double one, other;
    expect(t, 2 * dropped);
    LNT_TRY(give_back(t, rank, dropped, by_cost, &one));
    LNT_TRY(give_back(t, rank, dropped, by_need, &other));
    return one < other ? give_back(t, rank, dropped, by_cost, &one) : LNT_OK;
}

/* Takes back as few layers as the bound needs, the most harmful for their cost first. */
static lnt_status meet_bound(trial *t)
{
    double snr;
    size_t n = 0, dropped = 0;
    LNT_TRY(run_chosen(t, &snr));
    if (t->options->min_snr <= 0 || snr >= t->options->min_snr)
        return LNT_OK;
    ranked *rank = lnt_alloc_zero(t->g->memory.allocator, t->layers->n, sizeof *rank, t->err);
    if (!rank)
        return LNT_E_MEMORY;
    lnt_status status = rank_layers(t, rank, &n);
    if (status == LNT_OK)
        status = find_enough(t, rank, n, &dropped);
    if (status == LNT_OK)
        status = give_back_most(t, rank, dropped);
    lnt_free(t->g->memory.allocator, rank);
    return status == LNT_OK ? run_chosen(t, &snr) : status;
}

/* Is time what decides on the layer? Of what works on bytes of fixed meaning only products: the others go
 * where their neighbors are. A few rows of a table take no time, but the table much memory. */
static bool goes_by_time(const lnt_qlayer *l)
{
    return !l->formless && !l->narrow && l->plain.op->id != LNT_ID_Gather &&
           (!l->fixed || l->measured.before);
}

static void drop_slow(trial *t)
{
    const double most = t->options->at_most;
    for (size_t i = 0; i < t->layers->n && most > 0; i++) {
        lnt_qlayer *l = &t->layers->layer[i];
        if (goes_by_time(l) && l->measured.int8_us > most * l->measured.plain_us) {
            l->chosen = false;
            l->why = t->options->costs ? "slower there" : "slower here";
        }
    }
}

/* From the form in bytes, once it has been measured, to floats with weights that are no finer. */
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

static lnt_status tell_errors(trial *t)
{
    lnt_report *r = t->report;
    const lnt_gsubgraph *model = &t->g->sub[0];
    size_t fresh = 0;
    while (!is_fresh(t, fresh))
        fresh++;
    r->trial_inputs = !t->options->n_samples ? "seeded inputs"
                      : t->samples.n == 1    ? "the input that was calibrated on"
                                             : "recorded inputs that were not calibrated on";
    for (size_t i = 0; i < t->samples.n; i++) {
        r->calibrated_on += calibrates(t, i);
        r->measured_on += is_fresh(t, i);
    }
    r->output_error = lnt_bump_alloc(&r->memory, t->n_outputs * sizeof *r->output_error, t->err);
    if (!r->output_error)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < t->n_outputs && i < model->n_out; i++) {
        if (t->want[fresh * t->n_outputs + i].dtype != LNT_FLOAT)
            continue;
        lnt_output_error *e = &r->output_error[r->n_output_errors++];
        *e = (lnt_output_error){lnt_report_text(r, "%s", t->g->value[model->out[i]].name),
                                lnt_noise_snr(&t->noise[i]), t->noise[i].worst, t->noise[i].largest};
        if (!e->output)
            return LNT_E_MEMORY;
    }
    return LNT_OK;
}

/* What was chosen but stands between layers that were not. */
static void drop_lonely(trial *t)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        lnt_qlayer *l = &t->layers->layer[i];
        if (!l->chosen || in_bytes(t, l))
            continue;
        l->chosen = false;
        l->why = lnt_static_why(t->layers->fixed, l->node);
    }
}

/* Floats are float16 in the file if the bound allows it: beside the weights, and weights of float layers. */
static lnt_status try_halves(trial *t)
{
    double snr;
    t->g->halves = true;
    LNT_TRY(run_chosen(t, &snr));
    if (t->options->min_snr <= 0 || snr >= t->options->min_snr)
        return LNT_OK;
    t->g->halves = false;
    return run_chosen(t, &snr);
}

static lnt_status try_all(trial *t)
{
    LNT_TRY(run_float(t));
    LNT_TRY(widen_narrow(t->g, t->layers));
    drop_slow(t);
    expect(t, 2);
    LNT_TRY(meet_bound(t));
    LNT_TRY(try_halves(t));
    drop_lonely(t);
    return tell_errors(t);
}

/* Without samples a model that seeded inputs do not run is quantized unmeasured, unless a bound was asked
 * for. */
static lnt_status judge(trial *t, lnt_status status, const lnt_error *why)
{
    const lnt_quantize_options *o = t->options;
    if (status == LNT_OK)
        return LNT_OK;
    LNT_REQUIRE(status != LNT_E_MEMORY, t->g->err, status, "%s", why->message);
    LNT_REQUIRE(!o->n_samples, t->g->err, status, "--calibrate: %s", why->message);
    LNT_REQUIRE(o->min_snr <= 0 && o->at_most <= 0, t->g->err, status,
                "--int8: the model does not run on seeded inputs (%s): record some, with --calibrate",
                why->message);
    t->report->trial_failure = lnt_report_text(t->report, "%s", why->message);
    return t->report->trial_failure ? LNT_OK : LNT_E_MEMORY;
}

lnt_status lnt_quantize_trial(lnt_graph *g, const lnt_quantize_options *options, lnt_qlayers *layers,
                              lnt_report *report)
{
    lnt_error why = {0}, *outer = g->err;
    trial t = {.g = g,
               .samples = {.options = options, .graph = g},
               .options = options,
               .layers = layers,
               .report = report,
               .err = &why};
    LNT_REQUIRE(options->mode != LNT_INT8_STATIC || options->n_samples, g->err, LNT_E_ARGUMENT,
                "--int8 static needs recorded inputs: give some with --calibrate");
    if (!layers->n)
        return LNT_OK;
    g->err = &why; /* a trial that fails is no failure yet */
    lnt_status status = try_all(&t);
    g->err = outer;
    for (uint32_t v = 0; t.seen && v < layers->fixed->n_values; v++)
        lnt_free(g->memory.allocator, t.seen[v].bin);
    for (size_t i = 0; t.want && i < t.samples.n * t.n_outputs; i++)
        lnt_tensor_free(g->memory.allocator, &t.want[i]);
    lnt_samples_free(&t.samples);
    lnt_free(g->memory.allocator, t.seen);
    lnt_free(g->memory.allocator, t.want);
    lnt_free(g->memory.allocator, t.noise);
    status = judge(&t, status, &why);
    if (status == LNT_OK)
        status = widen_narrow(g, layers);
    if (status == LNT_OK)
        status = put_forms(layers);
    g->small = true;
    forget_rounding(&t);
    return status;
}
