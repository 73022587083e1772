/* trial_calibrate.c — calibration on runs of the float model: ranges of activations, rounding of weights.
 *
 * Calibration samples are run once for the bounds of every activation that may become INT8, for the channels
 * that may be equalized, and for the products of inputs by which weights are rounded. Methods other than min-max
 * need histograms within these bounds: a second time. */
#include "convert/quantize/quantize_rounding.h"
#include "convert/quantize/trial.h"

#include "convert/graph/edit.h"

#include <math.h>

/* ---- what is seen of samples ---- */

/* Looks at x, which a run gave as value v: its bounds, or to count it in a histogram. */
static void look(lnt_trial *t, uint32_t v, const lnt_tensor *x, bool count)
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

static lnt_status look_at_values(lnt_trial *t, lnt_trial_model *r, bool count)
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

/* What layers read, for rounding their weights. */
static lnt_status look_at_inputs(lnt_trial *t, lnt_trial_model *r)
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

/* Runs the calibration samples and looks at all values that may become INT8: at their bounds, or, a second
 * time, to count their histograms. */
static lnt_status look_at_samples(lnt_trial *t, lnt_trial_model *r, bool count)
{
    for (size_t i = 0; i < t->samples.n; i++) {
        if (!lnt_trial_calibrates_on(t, i) && !lnt_samples_go_on(&t->samples, i))
            continue;
        LNT_TRY(lnt_samples_run(&t->samples, r->session, i, t->err));
        if (!lnt_trial_calibrates_on(t, i))
            continue;
        LNT_TRY(look_at_values(t, r, count));
        if (!count)
            LNT_TRY(look_at_inputs(t, r));
        lnt_trial_advance(t);
    }
    return LNT_OK;
}

static lnt_status make_bins(lnt_trial *t)
{
    lnt_seen *seen = t->seen;
    for (uint32_t v = 0; v < t->layers->fixed->n_values; v++)
        if (seen[v].any && !(seen[v].bin = lnt_alloc_zero(t->g->memory.allocator, LNT_SEEN_BINS,
                                                          sizeof *seen[v].bin, t->err)))
            return LNT_E_MEMORY;
    return LNT_OK;
}

/* Ranges of the values by that method; those that were not finite, or never seen, stay float. */
static lnt_status set_ranges(lnt_trial *t, lnt_range_method method)
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

/* Does no other layer have the same weights? */
static bool has_own_weights(const lnt_qlayers *layers, const lnt_qlayer *l)
{
    for (size_t i = 0; i < layers->n; i++)
        for (unsigned k = 0; k < layers->layer[i].plain.n_in && k < 2; k++)
            if (&layers->layer[i] != l && layers->layer[i].plain.in[k] == l->plain.in[1])
                return false;
    return true;
}

static lnt_status prepare_rounding(lnt_trial *t)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        lnt_qlayer *l = &t->layers->layer[i];
        if (!l->formless && t->options->mode != LNT_INT4_BLOCKS && l->measured.before &&
            l->plain.subgraph == 0 && is_product(&l->plain) && has_own_weights(t->layers, l))
            LNT_TRY(lnt_rounding_make(t->g, &l->plain, t->options->n_samples, &l->rounding));
    }
    return LNT_OK;
}

/* Rounds the weights of dynamic layers. Those of static layers depend on which are chosen: their sites are told
 * how. */
static lnt_status round_all(lnt_trial *t)
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
        lnt_trial_advance(t);
    }
    lnt_static *st = t->layers->fixed;
    for (uint32_t i = 0; st && i < st->n_sites; i++)
        if (st->site[i].layer != LNT_NONE)
            st->site[i].product.rounding = t->layers->layer[st->site[i].layer].rounding;
    return LNT_OK;
}

void lnt_trial_forget_rounding(lnt_trial *t)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        lnt_rounding_free(t->g, t->layers->layer[i].rounding);
        t->layers->layer[i].rounding = NULL;
    }
}

/* ---- both ---- */

static lnt_status calibrate_ranges(lnt_trial *t, lnt_trial_model *r)
{
    if (t->options->method != LNT_RANGE_MINMAX) {
        LNT_TRY(make_bins(t));
        LNT_TRY(look_at_samples(t, r, true));
    }
    LNT_TRY(set_ranges(t, t->options->method == LNT_RANGE_BEST ? LNT_RANGE_MINMAX : t->options->method));
    return lnt_static_equalize(t->layers->fixed);
}

lnt_status lnt_trial_calibrate(lnt_trial *t, lnt_trial_model *r)
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

lnt_status lnt_trial_choose_method(lnt_trial *t)
{
    lnt_range_method best = LNT_RANGE_MINMAX;
    double least = INFINITY, snr;
    for (lnt_range_method m = LNT_RANGE_MINMAX; m < LNT_RANGE_BEST; m++) {
        LNT_TRY(set_ranges(t, m));
        LNT_TRY(lnt_trial_run_chosen(t, &snr));
        const double score = lnt_trial_missing_db(t) - snr / LNT_SNR_MOST;
        if (score < least)
            best = m;
        least = fmin(least, score);
    }
    return set_ranges(t, best);
}
