/* fastest.c — --int8 auto: a model is made in several forms, and the fastest is taken.
 *
 * Layers are measured by themselves when a form is made, and those that int8 makes slower are left in float.
 * What stands between the layers shows only in the whole model, as the file will hold it. So each form is run
 * as a user would run it, in turns with the others, on one thread and on all. Where a cost table speaks for
 * another machine, what it says of the layers is added up. */
#include "convert/fastest.h"

#include "base/clock.h"
#include "convert/emit/emit.h"
#include "convert/emit/own_model.h"
#include "convert/quantize/quantize_samples.h"

#include <math.h>

enum { FORMS = LNT_FORMS_MOST, TEAMS = LNT_FORM_TEAMS };

/* at_most: of a layer's time in float, as measured and by a cost table, which does not know what stands around it.
 * Products that gain little by themselves may not gain enough for that; of those with static quantization each gains
 * by its neighbors. */
static const struct {
    const char *name;
    lnt_int8_mode mode;
    double at_most, by_costs;
} kind[FORMS] = {{"float", LNT_INT8_OFF, 0, 0},
                 {"dynamic", LNT_INT8_DYNAMIC, 1, 0.8},
                 {"dynamic, where it gains most", LNT_INT8_DYNAMIC, 0.6, 0.6},
                 {"static", LNT_INT8_STATIC, 0, 0}};

typedef struct form {
    unsigned kind;
    bool made;
    lnt_graph g;
    lnt_report report;
    void *image;
    lnt_model *model;
    lnt_session *session[TEAMS];
    double us[TEAMS]; /* of the fastest run */
    double saved;     /* by the cost table, of the layers' time in float */
} form;

/* ---- making forms ---- */

static lnt_status load(form *f, lnt_error *err)
{
    lnt_report quiet;
    size_t size = 0;
    lnt_report_init(&quiet);
    lnt_status status = lnt_emit(&f->g, &quiet, NULL, &f->image, &size);
    lnt_report_free(&quiet);
    if (status == LNT_OK)
        status = lnt_load_own(f->g.memory.allocator, f->image, size, &f->model, err);
    for (unsigned i = 0; i < TEAMS && status == LNT_OK; i++) {
        const lnt_session_options options = {.struct_bytes = sizeof options, .intra_op_num_threads = i == 0};
        status = lnt_session_create(f->model, &options, &f->session[i], err);
        f->us[i] = INFINITY;
    }
    return status;
}

/* Of the time in float of the layers that can be int8. */
static double saved_part(const lnt_report *r)
{
    double all = 0, saved = 0;
    for (size_t i = 0; i < r->n_quantized; i++) {
        const lnt_quantized *q = &r->quantized[i];
        all += fmax(0, q->plain_us);
        saved += q->int8 ? q->plain_us - q->int8_us : -q->borders_us;
    }
    return all > 0 ? saved / all : 0;
}

static lnt_status make(const lnt_original *source, form *f, lnt_error *err)
{
    const lnt_quantize_options *asked = source->options->quantize;
    f->made = true;
    lnt_graph_init(&f->g, source->memory, err);
    lnt_report_init(&f->report);
    lnt_quantize_options *how = lnt_bump_alloc(&f->g.memory, sizeof *how, err);
    if (!how)
        return LNT_E_MEMORY;
    *how = *asked;
    how->mode = kind[f->kind].mode;
    how->at_most = asked->costs ? kind[f->kind].by_costs : kind[f->kind].at_most;
    LNT_TRY(lnt_make_graph(source, how, &f->g, &f->report));
    f->saved = saved_part(&f->report);
    return asked->costs ? LNT_OK : load(f, err);
}

static void unload(form *f)
{
    for (unsigned i = 0; i < TEAMS; i++)
        lnt_session_destroy(&f->session[i]);
    lnt_model_destroy(&f->model);
    lnt_free(f->g.memory.allocator, f->image);
    f->image = NULL;
}

/* ---- time ---- */

static lnt_status time_once(form *f, unsigned team, lnt_samples *samples, lnt_error *err)
{
    const double begin = lnt_now();
    LNT_TRY(lnt_samples_run(samples, f->session[team], 0, err));
    f->us[team] = fmin(f->us[team], (lnt_now() - begin) * 1e6);
    return LNT_OK;
}

static lnt_status time_in_turns(form *forms, lnt_samples *samples, lnt_error *err)
{
    enum { LEAST = 5, MOST = 1000 };
    const double enough = 1;
    for (unsigned team = 0; team < TEAMS; team++) {
        const double end = lnt_now() + enough;
        for (unsigned round = 0; round < MOST && (round < LEAST || lnt_now() < end); round++)
            for (unsigned i = 0; i < FORMS; i++)
                if (forms[i].made)
                    LNT_TRY(time_once(&forms[i], team, samples, err));
    }
    return LNT_OK;
}

/* Runs the forms on the first sample. Extents that a sample which is made up may have show in the float form. */
static lnt_status time_forms(const lnt_original *source, form *forms, lnt_error *err)
{
    lnt_samples samples = {.options = source->options->quantize, .graph = &forms[0].g};
    lnt_status status = lnt_samples_read(&samples, forms->model, 1, err);
    if (status == LNT_OK)
        status = lnt_samples_run_first(&samples, forms->model, forms->session[0], 0, err);
    if (status == LNT_OK)
        status = time_in_turns(forms, &samples, err);
    lnt_samples_free(&samples);
    return status;
}

/* ---- choosing ---- */

/* A form's time as part of that in float, where it compares worst, or that of its layers by a cost table. */
static double part_of(const form *f, const form *floats, bool by_costs)
{
    double worst = 0;
    for (unsigned i = 0; i < TEAMS && !by_costs; i++)
        worst = fmax(worst, f->us[i] / floats->us[i]);
    return by_costs ? 1 - f->saved : worst;
}

/* What is to be told of the float form: the layers of `other`, which are not int8 for the sake of all. */
static lnt_status tell_of_layers(form *floats, const form *other, lnt_error *err)
{
    lnt_report *r = &floats->report;
    r->quantized = lnt_bump_alloc(&r->memory, other->report.n_quantized * sizeof *r->quantized, err);
    if (!r->quantized)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < other->report.n_quantized; i++) {
        lnt_quantized *q = &r->quantized[r->n_quantized++];
        *q = other->report.quantized[i];
        q->why = q->int8 ? "the model is slower with it" : q->why;
        q->int8 = false;
        q->node = lnt_report_text(r, "%s", q->node);
        if (!q->node)
            return LNT_E_MEMORY;
    }
    r->trial_inputs = other->report.trial_inputs;
    return LNT_OK;
}

static void tell_times(const form *forms, const form *best, lnt_report *r)
{
    for (unsigned i = 0; i < FORMS; i++) {
        if (!forms[i].made)
            continue;
        lnt_form_time *t = &r->form[r->n_forms++];
        *t = (lnt_form_time){.form = kind[i].name, .chosen = &forms[i] == best};
        for (unsigned k = 0; k < TEAMS; k++)
            t->us[k] = forms[i].us[k];
    }
}

/* Quantized forms are less exact: not taken unless they are faster. */
static lnt_status choose(form *forms, bool by_costs, lnt_error *err, form **best)
{
    const double gain = 0.95; /* of the time in float: more than the clock errs */
    double least = by_costs ? 1 : gain;
    const form *nearest = NULL;
    *best = forms;
    for (form *f = forms + 1; f < forms + FORMS; f++) {
        if (!f->made)
            continue;
        const double part = part_of(f, forms, by_costs);
        if (part < least)
            *best = f;
        if (!nearest || part < part_of(nearest, forms, by_costs))
            nearest = f;
        least = fmin(least, part);
    }
    if (*best == forms)
        LNT_TRY(tell_of_layers(forms, nearest, err));
    if (!by_costs)
        tell_times(forms, *best, &(*best)->report);
    return LNT_OK;
}

static lnt_status make_all(const lnt_original *source, form *forms, lnt_error *err)
{
    const bool recorded = source->options->quantize->n_samples > 0;
    for (unsigned i = 0; i < FORMS; i++) {
        forms[i].kind = i;
        if (kind[i].mode != LNT_INT8_STATIC || recorded)
            LNT_TRY(make(source, &forms[i], err));
    }
    return LNT_OK;
}

lnt_status lnt_make_fastest_graph(const lnt_original *source, lnt_graph *g, lnt_report *report)
{
    const bool by_costs = source->options->quantize->costs != NULL;
    lnt_error *err = g->err;
    form *forms = lnt_alloc_zero(source->memory, FORMS, sizeof *forms, err), *best = forms;
    if (!forms)
        return LNT_E_MEMORY;
    lnt_status status = make_all(source, forms, err);
    if (status == LNT_OK && !by_costs)
        status = time_forms(source, forms, err);
    if (status == LNT_OK)
        status = choose(forms, by_costs, err, &best);
    /* What failed is told by the float form, which is the first to be made. */
    lnt_graph_free(g);
    lnt_report_free(report);
    *g = best->g;
    *report = best->report;
    for (form *f = forms; f < forms + FORMS && f->made; f++) {
        unload(f);
        if (f == best)
            continue;
        lnt_graph_free(&f->g);
        lnt_report_free(&f->report);
    }
    lnt_free(source->memory, forms);
    return status;
}
