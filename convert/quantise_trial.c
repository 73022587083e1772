/* quantise_trial.c — what quantised layers cost and gain, measured on runs of the model.
 *
 * The graph is emitted as it stands, loaded as a user would load it, and run on samples, or on seeded inputs
 * where there are none. What the layers read in the float run is kept, so that each can be computed by itself
 * in both forms; the outputs of the float run judge the model as a whole. */
#include "convert/convert.h"

#include "formats/tensor_file.h"
#include "ops/pack.h"
#include "runtime/linnet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SNR_MOST = 200, SAMPLE_US = 60000000 };

static const lnt_allocator *const heap = &lnt_malloc_allocator;

/* Signal and noise, summed up. */
typedef struct noise {
    double signal, error, worst, largest;
} noise;

static void add_noise(noise *n, const float *want, const float *got, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double w = want[i], d = w == got[i] ? 0 : (double)got[i] - w;
        n->signal += w * w;
        n->error += d * d;
        n->worst = fabs(d) <= n->worst ? n->worst : fabs(d); /* NaN stays */
        n->largest = fmax(n->largest, fabs(w));
    }
}

/* dB; 0 where the noise is no number. */
static double snr_of(const noise *n)
{
    if (n->error == 0)
        return SNR_MOST;
    const double snr = n->signal > 0 ? 10 * log10(n->signal / n->error) : 0;
    return isfinite(snr) ? fmin(snr, SNR_MOST) : 0;
}

/* ---- running the graph ---- */

typedef struct trial {
    lnt_graph *g;
    const lnt_quantise_options *options;
    lnt_qlayers *layers;
    lnt_report *report;
    lnt_error *err;
    size_t n_samples;
    lnt_tensor *input; /* [samples][inputs] */
    uint32_t n_inputs, n_outputs;
    lnt_tensor *want; /* [samples][outputs] of the float model, copies */
    noise *noise;     /* [outputs] of the last run */
    int64_t extent;   /* of the seeded inputs */
} trial;

typedef struct running {
    void *image;
    lnt_model *model;
    lnt_session *session;
} running;

static void stop(running *r)
{
    lnt_session_destroy(&r->session);
    lnt_model_close(&r->model);
    lnt_free(heap, r->image);
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
        status = lnt_model_from_memory(r->image, size, NULL, &r->model, t->err);
    if (status == LNT_OK)
        status = lnt_session_create(r->model, &options, &r->session, t->err);
    if (r->session)
        lnt_set_deadline(r->session, t->options->n_samples ? SAMPLE_US : lnt_trial_deadline(t->g));
    return status;
}

static lnt_status run_sample(trial *t, running *r, size_t i)
{
    for (uint32_t k = 0; k < t->n_inputs; k++)
        LNT_TRY(lnt_set_input(r->session, k, &t->input[i * t->n_inputs + k], t->err));
    return lnt_run(r->session, t->err);
}

static lnt_status make_seeded(trial *t, running *r, int64_t extent)
{
    for (uint32_t i = 0; i < t->n_inputs; i++) {
        lnt_value_info info;
        lnt_tensor_free(heap, &t->input[i]);
        LNT_TRY(lnt_model_input(r->model, i, &info));
        LNT_TRY(lnt_seeded_input(&info, extent, i + 1, &t->input[i], t->err));
    }
    return LNT_OK;
}

static lnt_status read_samples(trial *t, running *r)
{
    for (size_t i = 0; i < t->options->n_samples; i++) {
        lnt_tensor *input = t->input + i * t->n_inputs;
        LNT_TRY(t->options->read_sample(t->options->arg, r->model, i, input, t->err));
        for (uint32_t k = 0; k < t->n_inputs; k++) {
            const float *x = input[k].data;
            for (size_t e = 0; input[k].dtype == LNT_FLOAT && e < input[k].bytes / sizeof *x; e++)
                LNT_REQUIRE(isfinite(x[e]), t->err, LNT_E_ARGUMENT,
                            "sample %zu: element %zu of input %u is %g", i, e, k, (double)x[e]);
        }
    }
    return LNT_OK;
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
            lnt_tensor_free(heap, want);
            LNT_TRY(lnt_tensor_alloc(heap, out.dtype, out.rank, out.dims, want, t->err));
            memcpy(want->data, out.data, out.bytes);
        } else if (want->bytes == out.bytes) {
            add_noise(&t->noise[i], want->data, out.data, (int64_t)(out.bytes / sizeof(float)));
        } else {
            t->noise[i].error = NAN;
        }
    }
    return LNT_OK;
}

/* ---- one layer ---- */

/* A node by itself, with constants packed. */
typedef struct alone {
    lnt_bump memory;
    lnt_node node;
    lnt_operand *in[16], *out[8];
    lnt_operand operand[24];
    void *out_data[8];
    lnt_solo solo;
} alone;

static lnt_status pack_operand(trial *t, alone *a, unsigned i)
{
    lnt_operand *o = a->in[i];
    lnt_packed record;
    size_t bytes;
    memset(&record, 0, sizeof record);
    if (!o->constant || !lnt_pack_wanted(&a->node, i, o, &record) || !lnt_packed_bytes(&record, &bytes))
        return LNT_OK;
    lnt_packed *kept = lnt_bump_alloc(&a->memory, sizeof *kept, t->err);
    void *packed = lnt_bump_alloc(&a->memory, bytes, t->err);
    if (!kept || !packed)
        return LNT_E_MEMORY;
    *kept = record;
    lnt_pack(kept, (lnt_dtype)o->dtype, o->data, packed);
    o->data = packed;
    o->packed = kept;
    return LNT_OK;
}

/* Operands of the node: constants of the graph, everything else out of the session. */
static lnt_status find_operands(trial *t, running *r, const lnt_gnode *n, alone *a)
{
    lnt_operand *next = a->operand;
    LNT_REQUIRE(n->n_in <= 16 && n->n_out <= 8, t->err, LNT_E_UNSUPPORTED, "too many operands");
    lnt_gnode_view(n, &a->node);
    for (unsigned i = 0; i < n->n_in; i++) {
        if (n->in[i] == LNT_NONE)
            continue;
        const lnt_gvalue *v = &t->g->value[n->in[i]];
        a->in[i] = next;
        *next = v->info;
        next->constant = v->constant;
        if (!v->constant) {
            lnt_tensor x;
            LNT_TRY(lnt_get_value(r->session, v->name, &x, t->err));
            void *data = lnt_bump_alloc(&a->memory, x.bytes + 1, t->err);
            if (!data)
                return LNT_E_MEMORY;
            memcpy(data, x.data, x.bytes);
            next->rank = (uint8_t)x.rank;
            memcpy(next->dims, x.dims, x.rank * sizeof *x.dims);
            next->data = data;
        }
        next++;
    }
    for (unsigned i = 0; i < n->n_out; i++)
        if (n->out[i] != LNT_NONE) {
            *next = (lnt_operand){0};
            a->out[i] = next++;
        }
    return LNT_OK;
}

static lnt_status prepare(trial *t, running *r, const lnt_gnode *n, alone *a)
{
    *a = (alone){0};
    lnt_bump_init(&a->memory, heap);
    LNT_TRY(find_operands(t, r, n, a));
    lnt_site site = {
        .node = &a->node, .in = a->in, .out = a->out, .n_in = n->n_in, .n_out = n->n_out, .err = t->err};
    LNT_TRY(lnt_site_shape(&site));
    for (unsigned i = 0; i < n->n_in; i++)
        if (a->in[i])
            LNT_TRY(pack_operand(t, a, i));
    for (unsigned i = 0; i < n->n_out; i++) {
        if (!a->out[i])
            continue;
        const int64_t count = lnt_operand_count(a->out[i]);
        a->out_data[i] = lnt_bump_alloc(&a->memory, (size_t)count * sizeof(double) + 1, t->err);
        if (!a->out_data[i])
            return LNT_E_MEMORY;
    }
    return lnt_solo_bind(&a->solo, &a->memory, &a->node, a->in, a->out, a->out_data, lnt_cpu_best_level(),
                         t->err);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Convolutions stand between others: their images are channels-last then. Elements change places, which does
 * not matter for the time. */
static lnt_status bind_for_time(trial *t, alone *a)
{
    if (!(a->node.op->flags & LNT_OP_CL) || a->in[0]->rank < 3)
        return LNT_OK;
    a->in[0]->order = a->out[0]->order = LNT_ORDER_CHANNELS_LAST;
    return lnt_solo_bind(&a->solo, &a->memory, &a->node, a->in, a->out, a->out_data, lnt_cpu_best_level(),
                         t->err);
}

/* Microseconds of the fastest runs of both, taken in turns. */
static lnt_status time_both(alone *a, alone *b, double *a_us, double *b_us)
{
    enum { ROUNDS = 200 };
    const double enough = 0.02, end = now() + enough;
    *a_us = *b_us = 1e30;
    for (int i = 0; i < ROUNDS && (i < 3 || now() < end); i++) {
        const double t0 = now();
        LNT_TRY(lnt_solo_run(&a->solo));
        const double t1 = now();
        LNT_TRY(lnt_solo_run(&b->solo));
        const double t2 = now();
        *a_us = fmin(*a_us, (t1 - t0) * 1e6);
        *b_us = fmin(*b_us, (t2 - t1) * 1e6);
    }
    return LNT_OK;
}

/* Each weight counts once per position it meets. */
static double multiplications(const trial *t, const lnt_qlayer *l, const alone *a)
{
    if (l->plain.op->id == LNT_ID_Gather)
        return 0;
    const lnt_operand *w = lnt_ginfo(t->g, l->plain.in[1]);
    if (l->plain.op->id == LNT_ID_LSTM || l->plain.op->id == LNT_ID_GRU) {
        const lnt_operand *r = lnt_ginfo(t->g, l->plain.in[2]);
        return (double)(a->in[0]->dims[0] * a->in[0]->dims[1]) *
               (double)(lnt_operand_count(w) + lnt_operand_count(r));
    }
    const double weights = (double)lnt_operand_count(w), y = (double)lnt_operand_count(a->out[0]);
    if (l->plain.op->id == LNT_ID_Conv)
        return y * weights / (double)w->dims[0];
    return y * (double)a->in[0]->dims[a->in[0]->rank - 1];
}

static lnt_status compare_forms(trial *t, alone *plain, alone *bytes, lnt_qlayer *l)
{
    noise n = {0};
    LNT_TRY(lnt_solo_run(&plain->solo));
    LNT_TRY(lnt_solo_run(&bytes->solo));
    for (unsigned i = 0; i < l->plain.n_out; i++)
        if (plain->out[i])
            add_noise(&n, plain->out_data[i], bytes->out_data[i], lnt_operand_count(plain->out[i]));
    l->measured.snr = snr_of(&n);
    l->measured.multiplications = multiplications(t, l, plain);
    LNT_TRY(bind_for_time(t, plain));
    LNT_TRY(bind_for_time(t, bytes));
    return time_both(plain, bytes, &l->measured.plain_us, &l->measured.int8_us);
}

/* In subgraphs what a layer reads cannot be fetched: it stays unmeasured. */
static bool can_measure(const lnt_qlayer *l)
{
    return l->plain.subgraph == 0;
}

static lnt_status measure_layer(trial *t, running *r, lnt_qlayer *l)
{
    alone *both = lnt_alloc_zero(heap, 2, sizeof *both, t->err);
    if (!both)
        return LNT_E_MEMORY;
    lnt_status status = prepare(t, r, &l->plain, &both[0]);
    if (status == LNT_OK)
        status = prepare(t, r, &l->quantised, &both[1]);
    if (status == LNT_OK)
        status = compare_forms(t, &both[0], &both[1], l);
    lnt_bump_free(&both[0].memory);
    lnt_bump_free(&both[1].memory);
    lnt_free(heap, both);
    return status;
}

/* ---- the model as a whole ---- */

static lnt_status fetch_inputs(trial *t, running *r)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        const lnt_qlayer *l = &t->layers->layer[i];
        for (unsigned k = 0; k < l->plain.n_in && can_measure(l); k++)
            if (l->plain.in[k] != LNT_NONE && !t->g->value[l->plain.in[k]].constant)
                LNT_TRY(lnt_fetch(r->session, t->g->value[l->plain.in[k]].name, t->err));
    }
    return LNT_OK;
}

/* The first of a few extents that the model runs with. */
static lnt_status run_seeded(trial *t, running *r)
{
    static const int64_t extents[] = {16, 128, 1024, 1};
    lnt_status status = LNT_OK;
    for (unsigned i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        lnt_error_clear(t->err);
        status = make_seeded(t, r, extents[i]);
        if (status == LNT_OK)
            status = run_sample(t, r, 0);
        if (status == LNT_OK || status == LNT_E_MEMORY || status == LNT_E_DEADLINE)
            break;
    }
    return status;
}

static lnt_status prepare_samples(trial *t, running *r)
{
    t->n_inputs = lnt_model_input_count(r->model);
    t->n_outputs = lnt_model_output_count(r->model);
    t->n_samples = t->options->n_samples ? t->options->n_samples : 1;
    t->input = lnt_alloc_zero(heap, t->n_samples * t->n_inputs, sizeof *t->input, t->err);
    t->want = lnt_alloc_zero(heap, t->n_samples * t->n_outputs, sizeof *t->want, t->err);
    t->noise = lnt_alloc_zero(heap, t->n_outputs, sizeof *t->noise, t->err);
    return t->input && t->want && t->noise ? read_samples(t, r) : LNT_E_MEMORY;
}

/* The float model: its outputs, and each layer by itself on the first sample. */
static lnt_status run_float(trial *t)
{
    running r;
    lnt_status status = start(t, &r);
    if (status == LNT_OK)
        status = prepare_samples(t, &r);
    if (status == LNT_OK)
        status = fetch_inputs(t, &r);
    for (size_t i = t->n_samples;
         status == LNT_OK && i-- > 0;) { /* the first one last: its values are kept */
        status = t->options->n_samples ? run_sample(t, &r, i) : run_seeded(t, &r);
        if (status == LNT_OK)
            status = take_outputs(t, &r, i, true);
    }
    for (size_t i = 0; i < t->layers->n && status == LNT_OK; i++)
        if (can_measure(&t->layers->layer[i]))
            status = measure_layer(t, &r, &t->layers->layer[i]);
    stop(&r);
    return status;
}

static void put_forms(const lnt_qlayers *layers)
{
    for (size_t i = 0; i < layers->n; i++) {
        const lnt_qlayer *l = &layers->layer[i];
        *l->node = l->chosen ? l->quantised : l->plain;
    }
}

/* The model with the layers that are chosen: the lowest SNR of its outputs. */
static lnt_status run_chosen(trial *t, double *snr)
{
    running r;
    put_forms(t->layers);
    memset(t->noise, 0, t->n_outputs * sizeof *t->noise);
    lnt_status status = start(t, &r);
    for (size_t i = 0; i < t->n_samples && status == LNT_OK; i++) {
        status = run_sample(t, &r, i);
        if (status == LNT_OK)
            status = take_outputs(t, &r, i, false);
    }
    stop(&r);
    *snr = SNR_MOST;
    for (uint32_t i = 0; i < t->n_outputs; i++)
        *snr = fmin(*snr, snr_of(&t->noise[i]));
    return status;
}

/* ---- choosing ---- */

typedef struct ranked {
    size_t layer;
    double snr;
} ranked;

static int by_snr(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->snr < y->snr ? -1 : x->snr > y->snr ? 1 : x->layer < y->layer ? -1 : 1;
}

/* What each chosen layer alone does to the outputs, the worst first. */
static lnt_status rank_layers(trial *t, ranked *rank, size_t *n)
{
    bool *chosen = lnt_alloc_zero(heap, t->layers->n, sizeof *chosen, t->err);
    lnt_status status = chosen ? LNT_OK : LNT_E_MEMORY;
    *n = 0;
    for (size_t i = 0; i < t->layers->n && chosen; i++) {
        chosen[i] = t->layers->layer[i].chosen;
        t->layers->layer[i].chosen = false;
    }
    for (size_t i = 0; i < t->layers->n && status == LNT_OK; i++) {
        if (!chosen[i])
            continue;
        t->layers->layer[i].chosen = true;
        rank[*n].layer = i;
        status = run_chosen(t, &rank[(*n)++].snr);
        t->layers->layer[i].chosen = false;
    }
    for (size_t i = 0; i < t->layers->n && chosen; i++)
        t->layers->layer[i].chosen = chosen[i];
    lnt_free(heap, chosen);
    if (status == LNT_OK)
        qsort(rank, *n, sizeof *rank, by_snr);
    return status;
}

static void keep_in_float(trial *t, const ranked *rank, size_t n, size_t dropped)
{
    for (size_t i = 0; i < n; i++) {
        lnt_qlayer *l = &t->layers->layer[rank[i].layer];
        l->chosen = i >= dropped;
        l->why = l->chosen ? NULL : "the outputs' SNR";
    }
}

/* Takes back as few layers as the bound needs, the most harmful first. */
static lnt_status meet_bound(trial *t)
{
    double snr;
    size_t n, low = 0, high;
    LNT_TRY(run_chosen(t, &snr));
    if (t->options->min_snr <= 0 || snr >= t->options->min_snr)
        return LNT_OK;
    ranked *rank = lnt_alloc_zero(heap, t->layers->n, sizeof *rank, t->err);
    if (!rank)
        return LNT_E_MEMORY;
    lnt_status status = rank_layers(t, rank, &n);
    for (high = n; low < high && status == LNT_OK;) { /* `high` dropped is enough */
        const size_t middle = (low + high) / 2;
        keep_in_float(t, rank, n, middle);
        status = run_chosen(t, &snr);
        if (snr >= t->options->min_snr)
            high = middle;
        else
            low = middle + 1;
    }
    keep_in_float(t, rank, n, high);
    lnt_free(heap, rank);
    return status == LNT_OK ? run_chosen(t, &snr) : status;
}

static void drop_slow(trial *t)
{
    for (size_t i = 0; i < t->layers->n; i++) {
        lnt_qlayer *l = &t->layers->layer[i];
        if (t->options->mode == LNT_INT8_AUTO && l->measured.int8_us > l->measured.plain_us) {
            l->chosen = false;
            l->why = "slower here";
        }
    }
}

static lnt_status tell_errors(trial *t)
{
    lnt_report *r = t->report;
    const lnt_gsubgraph *model = &t->g->sub[0];
    r->trial_inputs = t->options->n_samples ? "recorded inputs" : "seeded inputs";
    r->output_error = lnt_bump_alloc(&r->memory, t->n_outputs * sizeof *r->output_error, t->err);
    if (!r->output_error)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < t->n_outputs && i < model->n_out; i++) {
        if (t->want[i].dtype != LNT_FLOAT)
            continue;
        lnt_output_error *e = &r->output_error[r->n_output_errors++];
        *e = (lnt_output_error){lnt_report_text(r, "%s", t->g->value[model->out[i]].name),
                                snr_of(&t->noise[i]), t->noise[i].worst, t->noise[i].largest};
        if (!e->output)
            return LNT_E_MEMORY;
    }
    return LNT_OK;
}

static lnt_status try_all(trial *t)
{
    LNT_TRY(run_float(t));
    drop_slow(t);
    LNT_TRY(meet_bound(t));
    return tell_errors(t);
}

/* Without samples a model that seeded inputs do not run is quantised unmeasured, unless a bound was asked
 * for. */
static lnt_status judge(trial *t, lnt_status status, const lnt_error *why)
{
    const lnt_quantise_options *o = t->options;
    if (status == LNT_OK)
        return LNT_OK;
    LNT_REQUIRE(status != LNT_E_MEMORY, t->g->err, status, "%s", why->message);
    LNT_REQUIRE(!o->n_samples, t->g->err, status, "--calibrate: %s", why->message);
    LNT_REQUIRE(o->min_snr <= 0 && o->mode != LNT_INT8_AUTO, t->g->err, status,
                "--int8: the model does not run on seeded inputs (%s): record some, with --calibrate",
                why->message);
    t->report->trial_failure = lnt_report_text(t->report, "%s", why->message);
    return t->report->trial_failure ? LNT_OK : LNT_E_MEMORY;
}

lnt_status lnt_quantise_trial(lnt_graph *g, const lnt_quantise_options *options, lnt_qlayers *layers,
                              lnt_report *report)
{
    lnt_error why = {0}, *outer = g->err;
    trial t = {.g = g, .options = options, .layers = layers, .report = report, .err = &why};
    if (!layers->n)
        return LNT_OK;
    g->err = &why; /* a trial that fails is no failure yet */
    lnt_status status = try_all(&t);
    g->err = outer;
    for (size_t i = 0; t.input && i < t.n_samples * t.n_inputs; i++)
        lnt_tensor_free(heap, &t.input[i]);
    for (size_t i = 0; t.want && i < t.n_samples * t.n_outputs; i++)
        lnt_tensor_free(heap, &t.want[i]);
    lnt_free(heap, t.input);
    lnt_free(heap, t.want);
    lnt_free(heap, t.noise);
    status = judge(&t, status, &why);
    put_forms(layers);
    return status;
}
