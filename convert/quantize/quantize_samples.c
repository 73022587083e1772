/* quantize_samples.c — see quantize_samples.h. */
#include "convert/quantize/quantize_samples.h"

#include "convert/emit/own_model.h"
#include "convert/quantize/quantize_noise.h"
#include "formats/tensor_file.h"

#include <math.h>
#include <string.h>

/* Recorded inputs are the caller's, who reads them. */
static const lnt_allocator *heap_of_inputs(const lnt_samples *s)
{
    return s->options->n_samples ? &lnt_malloc_allocator : s->graph->memory.allocator;
}

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
    const lnt_quantize_options *o = s->options;
    s->n_inputs = lnt_model_input_count(m);
    s->n = o->n_samples ? o->n_samples : 1;
    if (o->n_samples && o->count_samples)
        LNT_TRY(o->count_samples(o->arg, m, &s->n, err));
    s->n = s->n < most ? s->n : most;
    s->input = lnt_alloc_zero(s->graph->memory.allocator, s->n * s->n_inputs, sizeof *s->input, err);
    if (!s->input)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < s->n && o->n_samples; i++)
        LNT_TRY(read_sample(s, m, i, err));
    return LNT_OK;
}

void lnt_samples_free(lnt_samples *s)
{
    for (size_t i = 0; s->input && i < s->n * s->n_inputs; i++)
        lnt_tensor_free(heap_of_inputs(s), &s->input[i]);
    for (size_t i = 0; s->last && i < 2 * (size_t)s->n_outputs; i++)
        lnt_tensor_free(s->graph->memory.allocator, &s->last[i]);
    lnt_free(s->graph->memory.allocator, s->input);
    lnt_free(s->graph->memory.allocator, s->last);
    lnt_free(s->graph->memory.allocator, s->from);
    *s = (lnt_samples){.options = s->options, .graph = s->graph};
}

/* The output of the sample before that input k of sample i was, or LNT_NONE. */
static uint32_t source_of(const lnt_samples *s, size_t i, uint32_t k)
{
    return s->from ? s->from[i * s->n_inputs + k] : LNT_NONE;
}

bool lnt_samples_go_on(const lnt_samples *s, size_t i)
{
    bool go_on = false;
    for (uint32_t k = 0; k < s->n_inputs && i + 1 < s->n; k++)
        go_on |= !s->input[(i + 1) * s->n_inputs + k].data || source_of(s, i + 1, k) != LNT_NONE;
    return go_on;
}

/* Keeps the outputs that come back. */
static lnt_status keep_states(lnt_samples *s, lnt_session *session, lnt_error *err)
{
    s->turn = !s->turn;
    for (uint32_t j = 0; j < s->n_outputs; j++) {
        lnt_tensor out, *kept = &s->last[s->turn * s->n_outputs + j];
        if (!kept->data)
            continue;
        LNT_TRY(lnt_get_output(session, j, &out, err));
        LNT_REQUIRE(out.bytes == kept->bytes, err, LNT_E_SHAPE, "state %u changes its size", j);
        memcpy(kept->data, out.data, out.bytes);
    }
    return LNT_OK;
}

lnt_status lnt_samples_run(lnt_samples *s, lnt_session *session, size_t i, lnt_error *err)
{
    for (uint32_t k = 0; k < s->n_inputs; k++) {
        const uint32_t from = source_of(s, i, k);
        const lnt_tensor *x =
            from == LNT_NONE ? &s->input[i * s->n_inputs + k] : &s->last[s->turn * s->n_outputs + from];
        if (x->data)
            LNT_TRY(lnt_set_input(session, k, x, err));
    }
    LNT_TRY(lnt_run(session, err));
    return s->from ? keep_states(s, session, err) : LNT_OK;
}

/* ---- states ---- */

/* Does x hold what the output does, and not only zeros? Others computed it, perhaps. */
static bool is_output(const lnt_tensor *x, const lnt_tensor *out)
{
    enum { LIKE = 60 }; /* dB */
    lnt_noise n = {0};
    if (!x->data || x->dtype != LNT_FLOAT || out->dtype != LNT_FLOAT || x->bytes != out->bytes ||
        x->rank != out->rank || memcmp(x->dims, out->dims, x->rank * sizeof *x->dims) != 0)
        return false;
    lnt_noise_add(&n, out->data, x->data, (int64_t)(x->bytes / sizeof(float)));
    return n.signal > 0 && lnt_noise_snr(&n) >= LIKE;
}

static lnt_status keep_from_now(lnt_samples *s, uint32_t output, const lnt_tensor *like, lnt_error *err)
{
    for (unsigned half = 0; half < 2; half++) {
        lnt_tensor *t = &s->last[half * s->n_outputs + output];
        if (!t->data)
            LNT_TRY(
                lnt_tensor_alloc(s->graph->memory.allocator, like->dtype, like->rank, like->dims, t, err));
    }
    return LNT_OK;
}

/* Notes which inputs of the sample behind i are what i has just given. */
static lnt_status find_states_behind(lnt_samples *s, lnt_session *session, size_t i, lnt_error *err)
{
    for (uint32_t j = 0; j < s->n_outputs; j++) {
        lnt_tensor out;
        LNT_TRY(lnt_get_output(session, j, &out, err));
        for (uint32_t k = 0; k < s->n_inputs; k++) {
            const size_t at = (i + 1) * s->n_inputs + k;
            if (s->from[at] != LNT_NONE || !is_output(&s->input[at], &out))
                continue;
            s->from[at] = j;
            LNT_TRY(keep_from_now(s, j, &out, err));
        }
    }
    return LNT_OK;
}

lnt_status lnt_samples_find_states(lnt_samples *s, const lnt_model *m, lnt_session *session, lnt_error *err)
{
    enum { LOOKED_AT = 8 }; /* samples without a state: there are none */
    bool any = false;
    if (!s->options->n_samples || s->n < 2)
        return LNT_OK;
    s->n_outputs = lnt_model_output_count(m);
    s->from = lnt_alloc_zero(s->graph->memory.allocator, s->n * s->n_inputs, sizeof *s->from, err);
    s->last = lnt_alloc_zero(s->graph->memory.allocator, 2 * (size_t)s->n_outputs, sizeof *s->last, err);
    if (!s->from || !s->last)
        return LNT_E_MEMORY;
    memset(s->from, 0xff, s->n * s->n_inputs * sizeof *s->from);
    for (size_t i = 0; i + 1 < s->n && (any || i < LOOKED_AT); i++) {
        LNT_TRY(lnt_samples_run(s, session, i, err));
        LNT_TRY(find_states_behind(s, session, i, err));
        any |= lnt_samples_go_on(s, i);
    }
    return LNT_OK;
}

static lnt_status make_up(lnt_samples *s, const lnt_model *m, int64_t extent, lnt_error *err)
{
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        lnt_tensor_free(heap_of_inputs(s), &s->input[i]);
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
