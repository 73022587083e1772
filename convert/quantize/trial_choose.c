/* trial_choose.c — which layers stay in INT8: those that are fast enough, as many as the outputs allow.
 *
 * For the bound on the outputs' SNR layers are ranked by what one alone in float gains for what it costs. A
 * binary search finds how many of the first must be float; each of these is then tried in INT8 again. */
#include "convert/quantize/trial.h"

#include <math.h>
#include <stdlib.h>

/* ---- time ---- */

/* Is time what decides on the layer? Of static layers only of products: the others go where their neighbors
 * are. A few rows of a table take no time, but the table much memory. */
static bool goes_by_time(const lnt_qlayer *l)
{
    return !l->formless && !l->narrow && l->plain.op->id != LNT_ID_Gather &&
           (!l->fixed || l->measured.before);
}

static void drop_slow(lnt_trial *t)
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

/* ---- the bound on the outputs' SNR ---- */

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

/* Is it in INT8, as things stand, by its own choice? */
static bool in_int8(const lnt_trial *t, const lnt_qlayer *l)
{
    return l->chosen && (!l->fixed || lnt_static_is_on(t->layers->fixed, l->node));
}

/* What it costs to have the layer in float: its part of the multiplications or of the weights, whichever is
 * more, and a little for each. */
static double cost_of(const lnt_trial *t, const lnt_qlayer *l)
{
    const double least = 0.01;
    double products = 1, bytes = 1;
    for (size_t i = 0; i < t->layers->n; i++) {
        products += fmax(0, t->layers->layer[i].measured.multiplications);
        bytes += (double)t->layers->layer[i].measured.before;
    }
    return least + fmax(fmax(0, l->measured.multiplications) / products, (double)l->measured.before / bytes);
}

/* The layers in INT8 by what the outputs gain, for what it costs, when one of them alone is float. */
static lnt_status rank_layers(lnt_trial *t, ranked *rank, size_t *n)
{
    const double missing = lnt_trial_missing_db(t);
    double snr;
    *n = 0;
    for (size_t i = 0; i < t->layers->n; i++)
        if (in_int8(t, &t->layers->layer[i]))
            rank[(*n)++].layer = i;
    lnt_trial_expect(t, *n);
    for (size_t i = 0; i < *n; i++) {
        lnt_qlayer *l = &t->layers->layer[rank[i].layer];
        l->chosen = false;
        const lnt_status status = lnt_trial_run_chosen(t, &snr);
        l->chosen = true;
        LNT_TRY(status);
        rank[i].cost = cost_of(t, l);
        rank[i].gain = (missing - lnt_trial_missing_db(t)) / rank[i].cost;
    }
    qsort(rank, *n, sizeof *rank, by_gain);
    return LNT_OK;
}

static void keep_in_float(lnt_trial *t, const ranked *rank, size_t n, size_t dropped)
{
    for (size_t i = 0; i < n; i++)
        t->layers->layer[rank[i].layer].chosen = i >= dropped;
}

/* How many of the first must be float. */
static lnt_status find_enough(lnt_trial *t, const ranked *rank, size_t n, size_t *enough)
{
    size_t low = 0;
    for (*enough = n; low < *enough;) {
        const size_t middle = (low + *enough) / 2;
        double snr;
        keep_in_float(t, rank, n, middle);
        LNT_TRY(lnt_trial_run_chosen(t, &snr));
        if (snr >= t->options->min_snr)
            *enough = middle;
        else
            low = middle + 1;
    }
    keep_in_float(t, rank, n, *enough);
    return LNT_OK;
}

typedef int (*order)(const void *, const void *);

/* Puts back in INT8 what the bound turns out not to need, in that order; the cost of what stays in float. */
static lnt_status give_back(lnt_trial *t, ranked *rank, size_t dropped, order in_order, double *cost)
{
    qsort(rank, dropped, sizeof *rank, in_order);
    keep_in_float(t, rank, dropped, dropped);
    *cost = 0;
    for (size_t i = 0; i < dropped; i++) {
        lnt_qlayer *l = &t->layers->layer[rank[i].layer];
        double snr;
        l->chosen = true;
        LNT_TRY(lnt_trial_run_chosen(t, &snr));
        l->chosen = snr >= t->options->min_snr;
        l->unfit = !l->chosen;
        l->why = l->chosen ? NULL : "the outputs' SNR";
        *cost += l->chosen ? 0 : rank[i].cost;
    }
    return LNT_OK;
}

/* Neither order is always the better one: what costs most first, or what is least needed. */
static lnt_status give_back_most(lnt_trial *t, ranked *rank, size_t dropped)
{
    double one, other;
    lnt_trial_expect(t, 2 * dropped);
    LNT_TRY(give_back(t, rank, dropped, by_cost, &one));
    LNT_TRY(give_back(t, rank, dropped, by_need, &other));
    return one < other ? give_back(t, rank, dropped, by_cost, &one) : LNT_OK;
}

static lnt_status drop_harmful(lnt_trial *t, ranked *rank)
{
    size_t n = 0, dropped = 0;
    LNT_TRY(rank_layers(t, rank, &n));
    LNT_TRY(find_enough(t, rank, n, &dropped));
    return give_back_most(t, rank, dropped);
}

/* Takes back to float as few layers as the bound needs. */
static lnt_status meet_bound(lnt_trial *t)
{
    double snr;
    LNT_TRY(lnt_trial_run_chosen(t, &snr));
    if (t->options->min_snr <= 0 || snr >= t->options->min_snr)
        return LNT_OK;
    ranked *rank = lnt_alloc_zero(t->g->memory.allocator, t->layers->n, sizeof *rank, t->err);
    if (!rank)
        return LNT_E_MEMORY;
    const lnt_status status = drop_harmful(t, rank);
    lnt_free(t->g->memory.allocator, rank);
    LNT_TRY(status);
    return lnt_trial_run_chosen(t, &snr);
}

/* ---- what is left ---- */

/* What was chosen but stands between layers that were not. */
static void drop_lonely(lnt_trial *t)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        lnt_qlayer *l = &t->layers->layer[i];
        if (!l->chosen || in_int8(t, l))
            continue;
        l->chosen = false;
        l->why = lnt_static_why(t->layers->fixed, l->node);
    }
}

/* What stays float in the file, weights of float layers included, is stored as float16 if the bound allows it. */
static lnt_status try_halves(lnt_trial *t)
{
    double snr;
    if (t->options->mode == LNT_INT8_OFF)
        return LNT_OK; /* they have been layers */
    t->g->halves = true;
    LNT_TRY(lnt_trial_run_chosen(t, &snr));
    if (t->options->min_snr <= 0 || snr >= t->options->min_snr)
        return LNT_OK;
    t->g->halves = false;
    return lnt_trial_run_chosen(t, &snr);
}

lnt_status lnt_trial_choose(lnt_trial *t)
{
    drop_slow(t);
    lnt_trial_expect(t, 2);
    LNT_TRY(meet_bound(t));
    LNT_TRY(try_halves(t));
    drop_lonely(t);
    return LNT_OK;
}
