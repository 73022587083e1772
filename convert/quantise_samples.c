/* quantise_samples.c — see quantise_samples.h. */
#include "convert/quantise_samples.h"

#include "convert/convert.h"
#include "formats/tensor_file.h"

#include <math.h>

static const lnt_allocator *const heap = &lnt_malloc_allocator;

/* Sample i, all of whose floats must be numbers. */
static lnt_status read_sample(lnt_samples *s, const lnt_model *m, size_t i, lnt_error *err)
{
    lnt_tensor *input = s->input + i * s->n_inputs;
    LNT_TRY(s->options->read_sample(s->options->arg, m, i, input, err));
    for (uint32_t k = 0; k < s->n_inputs; k++) {
        const float *x = input[k].data;
        for (size_t e = 0; input[k].dtype == LNT_FLOAT && e < input[k].bytes / sizeof *x; e++)
            LNT_REQUIRE(isfinite(x[e]), err, LNT_E_ARGUMENT, "sample %zu: element %zu of input %u is %g", i,
                        e, k, (double)x[e]);
    }
    return LNT_OK;
}

lnt_status lnt_samples_read(lnt_samples *s, const lnt_model *m, size_t most, lnt_error *err)
{
    const lnt_quantise_options *o = s->options;
    s->n_inputs = lnt_model_input_count(m);
    s->n = o->n_samples ? o->n_samples : 1;
    if (o->n_samples && o->count_samples)
        LNT_TRY(o->count_samples(o->arg, m, &s->n, err));
    s->n = s->n < most ? s->n : most;
    s->input = lnt_alloc_zero(heap, s->n * s->n_inputs, sizeof *s->input, err);
    if (!s->input)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < s->n && o->n_samples; i++)
        LNT_TRY(read_sample(s, m, i, err));
    return LNT_OK;
}

void lnt_samples_free(lnt_samples *s)
{
    for (size_t i = 0; s->input && i < s->n * s->n_inputs; i++)
        lnt_tensor_free(heap, &s->input[i]);
    lnt_free(heap, s->input);
    s->input = NULL;
}

bool lnt_samples_go_on(const lnt_samples *s, size_t i)
{
    bool go_on = false;
    for (uint32_t k = 0; k < s->n_inputs && i + 1 < s->n; k++)
        go_on |= !s->input[(i + 1) * s->n_inputs + k].data;
    return go_on;
}

lnt_status lnt_samples_run(lnt_samples *s, lnt_session *session, size_t i, lnt_error *err)
{
    for (uint32_t k = 0; k < s->n_inputs; k++)
        if (s->input[i * s->n_inputs + k].data)
            LNT_TRY(lnt_set_input(session, k, &s->input[i * s->n_inputs + k], err));
    return lnt_run(session, err);
}

static lnt_status make_up(lnt_samples *s, const lnt_model *m, int64_t extent, lnt_error *err)
{
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        lnt_tensor_free(heap, &s->input[i]);
        LNT_TRY(lnt_seeded_input(s->graph, m, i, extent, &s->input[i], err));
    }
    return LNT_OK;
}

/* Are there elements in every output? */
static bool gives_something(const lnt_model *m, lnt_session *session)
{
    lnt_tensor out;
    for (uint32_t i = 0; i < lnt_model_output_count(m); i++)
        if (lnt_get_output(session, i, &out, NULL) != LNT_OK || !out.bytes)
            return false;
    return true;
}

static lnt_status run_with(lnt_samples *s, const lnt_model *m, lnt_session *session, int64_t extent,
                           lnt_error *err)
{
    lnt_error_clear(err);
    LNT_TRY(make_up(s, m, extent, err));
    return lnt_samples_run(s, session, 0, err);
}

lnt_status lnt_samples_run_first(lnt_samples *s, const lnt_model *m, lnt_session *session, size_t i,
                                 lnt_error *err)
{
    int64_t ran = 0; /* with this extent, but outputs were empty */
    lnt_status status = LNT_OK;
    if (s->options->n_samples)
        return lnt_samples_run(s, session, i, err);
    for (unsigned e = 0; e < LNT_TRIAL_EXTENTS; e++) {
        status = run_with(s, m, session, lnt_trial_extents[e], err);
        if (status == LNT_E_MEMORY || status == LNT_E_DEADLINE ||
            (status == LNT_OK && gives_something(m, session)))
            return status;
        ran = status == LNT_OK && !ran ? lnt_trial_extents[e] : ran;
    }
    return ran ? run_with(s, m, session, ran, err) : status;
}
