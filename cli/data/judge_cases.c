/* judge_cases.c — running cases and comparing what comes out. */
#include "cli/data/judge_cases.h"

#include "cli/data/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Picks the elements of got that a sampled expectation holds; false if got has other extents. */
static bool sample(const lnt_tensor *got, const lnt_case_output *want, lnt_tensor *picked)
{
    const size_t size = lnt_dtype_size(got->dtype);
    const int64_t n = want->tensor.dims[0];
    if (got->rank != want->rank || got->dtype != want->tensor.dtype ||
        memcmp(got->dims, want->dims, got->rank * sizeof *got->dims) != 0)
        return false;
    *picked = (lnt_tensor){.dtype = got->dtype, .rank = 1, .dims = {n}, .bytes = (size_t)n * size};
    picked->data = lnt_cli_alloc(picked->bytes);
    for (int64_t i = 0; i < n && ((uint64_t)i * want->stride + 1) * size <= got->bytes; i++)
        memcpy((char *)picked->data + (size_t)i * size, (char *)got->data + (uint64_t)i * want->stride * size,
               size);
    return true;
}

static void compare_output(const lnt_verify_options *how, const lnt_tensor *got, const lnt_case_output *want,
                           lnt_comparison *c)
{
    lnt_rule rule = how->rule;
    lnt_tensor picked;
    if (want->tolerance > 0 && rule.max_rel == 0)
        rule.max_rel = want->tolerance;
    if (!want->stride) {
        const lnt_tensor whole = lnt_tensor_as(&want->tensor, (lnt_dtype)got->dtype);
        rule.cut = whole.dtype == LNT_BFLOAT16 && want->tensor.dtype != LNT_BFLOAT16;
        lnt_compare(&rule, got, &whole, c);
    } else if (sample(got, want, &picked)) {
        lnt_compare(&rule, &picked, &want->tensor, c);
    } else {
        *c = (lnt_comparison){.worst = -1, .reason = "type or extents differ from the sampled output's"};
    }
}

/* Is this the name of an element at such a place of a sequence? */
static bool is_element(const char *name, int64_t place)
{
    const char *dot = strrchr(name, '.');
    return place < 0 || (dot && strcmp(dot + 1, lnt_cli_text("%" PRId64, place)) == 0);
}

static lnt_status verify_outputs(const lnt_verify_options *how, const lnt_opened *o, lnt_session *s,
                                 const lnt_case *c, lnt_verdict *verdict, char reason[256], lnt_error *err)
{
    const uint32_t n = lnt_model_output_count(o->model);
    LNT_REQUIRE(c->n_out == n, err, LNT_E_NOT_FOUND, "%s: %" PRIu32 " outputs, the model has %" PRIu32,
                c->name, c->n_out, n);
    for (uint32_t i = 0; i < n; i++) {
        lnt_value_info info;
        lnt_tensor got;
        lnt_comparison result;
        LNT_TRY(lnt_model_output(o->model, i, &info));
        LNT_REQUIRE(c->out[i].tensor.data, err, LNT_E_NOT_FOUND, "%s: no expected output %s", c->name,
                    info.name);
        LNT_REQUIRE(is_element(info.name, c->out[i].element), err, LNT_E_NOT_FOUND,
                    "%s: element %" PRId64 " of a sequence is expected, not output %s", c->name,
                    c->out[i].element, info.name);
        LNT_TRY(lnt_get_output(s, i, &got, err));
        compare_output(how, &got, &c->out[i], &result);
        if (how->report)
            how->report(how->arg, c, info.name, &got, &result);
        if (result.pass && result.by_share && !*reason)
            snprintf(reason, 256, "%.40s: %.40s %" PRId64 " elements within %g of the largest alone", c->name,
                     info.name, result.by_share, how->rule.share);
        if (result.pass)
            continue;
        if (*verdict == LNT_VERDICT_PASS)
            snprintf(reason, 256, "%.40s: %.40s %s", c->name, info.name, result.reason);
        *verdict = LNT_VERDICT_MISMATCH;
    }
    return LNT_OK;
}

lnt_status lnt_verify_cases(const lnt_verify_options *how, lnt_opened *o, const lnt_cases *cases,
                            lnt_verdict *verdict, char reason[256], lnt_error *err)
{
    const lnt_session_options options = {
        .struct_bytes = sizeof options, .intra_op_num_threads = how->threads, .level = how->level};
    lnt_session *session = NULL;
    LNT_TRY(lnt_session_create(o->model, &options, &session, err));
    lnt_status status = LNT_OK;
    for (size_t i = 0; i < cases->n && status == LNT_OK; i++) {
        const lnt_case *c = &cases->item[i];
        status = lnt_case_set_inputs(o, session, c, err);
        if (status == LNT_OK)
            status = lnt_run(session, err);
        if (status == LNT_OK)
            status = verify_outputs(how, o, session, c, verdict, reason, err);
    }
    lnt_session_destroy(&session);
    return status;
}

#ifdef LNT_CONVERTER
/* Can it say how often a loop turns, or which branch is taken? */
static bool is_count(const lnt_tensor *t)
{
    return (t->dtype == LNT_INT64 || t->dtype == LNT_INT32 || t->dtype == LNT_BOOL) &&
           t->bytes == lnt_dtype_size(t->dtype);
}

/* Has the case other extents than the model declares? */
static bool is_other_form(const lnt_opened *declared, const lnt_case *c, uint32_t i)
{
    lnt_value_info info;
    const lnt_tensor *t = &c->in[i];
    if (!t->data || lnt_model_input(declared->model, i, &info) != LNT_OK || info.rank > LNT_MAX_RANK)
        return false;
    bool other = info.rank != t->rank;
    for (uint32_t k = 0; k < info.rank && !other; k++)
        other = info.dims[k] >= 0 && info.dims[k] != t->dims[k];
    return other;
}

static bool has_other_forms(const lnt_opened *declared, const lnt_case *c)
{
    bool other = false;
    for (uint32_t i = 0; i < c->n_in && i < lnt_model_input_count(declared->model); i++)
        other |= is_other_form(declared, c, i);
    return other;
}

/* What becomes constant besides what is asked for. */
typedef struct baked_also {
    bool counts;
    const lnt_opened *declared; /* inputs of other extents than this model declares, unless NULL */
} baked_also;

/* Converts for one case, whose tensors are baked as asked; *left has those that are not. */
static lnt_status open_for_case(const lnt_verify_options *how, const char *path, const lnt_case *c,
                                baked_also also, lnt_case *left, lnt_opened *o, lnt_error *err)
{
    lnt_convert_options options = how->convert;
    lnt_baked *baked = lnt_cli_alloc(c->n_in * sizeof *baked);
    *left = *c;
    left->in = lnt_cli_alloc(c->n_in * sizeof *left->in);
    left->n_in = 0;
    for (uint32_t i = 0; i < c->n_in; i++)
        if (how->bake == LNT_BAKE_ALL || (how->bake == LNT_BAKE_REST && i > 0) ||
            (also.counts && is_count(&c->in[i])) || (also.declared && is_other_form(also.declared, c, i)))
            baked[options.n_bake++] = (lnt_baked){.input = i, .tensor = &c->in[i]};
        else
            left->in[left->n_in++] = c->in[i];
    options.bake = baked;
    options.case_length = c->length;
    options.n_case_lengths = c->n_lengths;
    return lnt_opened_open(path, &options, LNT_LOAD_FULL, o, err);
}

/* Where sequences depend on counts and conditions that are inputs, these are fixed, too; and what the case has in
 * other extents than its model declares: these are not to be fed, and the case says what comes out. */
static lnt_status verify_case(const lnt_verify_options *how, const char *path, const lnt_case *c,
                              lnt_verdict *verdict, char reason[256], lnt_error *err)
{
    lnt_opened o;
    lnt_case left;
    lnt_status status = open_for_case(how, path, c, (baked_also){0}, &left, &o, err);
    if (status == LNT_E_UNSUPPORTED && c->has_lists) {
        const lnt_error first = *err;
        lnt_error_clear(err);
        if (open_for_case(how, path, c, (baked_also){.counts = true}, &left, &o, err) == LNT_OK)
            status = LNT_OK;
        else
            *err = first;
    }
    LNT_TRY(status);
    if (how->case_extents && left.n_in == c->n_in && has_other_forms(&o, c)) {
        lnt_opened declared = o;
        status = open_for_case(how, path, c, (baked_also){.declared = &declared}, &left, &o, err);
        lnt_opened_close(&declared);
        LNT_TRY(status);
        snprintf(reason, 256, "%.40s: inputs of other extents than the model declares are constants", c->name);
    }
    const lnt_cases one = {.item = &left, .n = 1};
    status = lnt_verify_cases(how, &o, &one, verdict, reason, err);
    lnt_opened_close(&o);
    return status;
}

lnt_status lnt_verify_onnx(const lnt_verify_options *how, const char *path, const lnt_cases *cases,
                           lnt_verdict *verdict, char reason[256], lnt_error *err)
{
    bool together = how->bake == LNT_BAKE_NONE;
    lnt_opened o = {0};
    for (size_t i = 0; i < cases->n; i++)
        together &= !cases->item[i].has_lists;
    if (together)
        LNT_TRY(lnt_opened_open(path, &how->convert, LNT_LOAD_FULL, &o, err));
    for (size_t i = 0; i < cases->n && o.model && how->case_extents; i++)
        together &= !has_other_forms(&o, &cases->item[i]);
    lnt_status status = together ? lnt_verify_cases(how, &o, cases, verdict, reason, err) : LNT_OK;
    for (size_t i = 0; i < cases->n && !together && status == LNT_OK; i++)
        status = verify_case(how, path, &cases->item[i], verdict, reason, err);
    if (o.model)
        lnt_opened_close(&o);
    return status;
}
#else
lnt_status lnt_verify_onnx(const lnt_verify_options *how, const char *path, const lnt_cases *cases,
                           lnt_verdict *verdict, char reason[256], lnt_error *err)
{
    (void)how;
    (void)cases;
    (void)verdict;
    (void)reason;
    return lnt_fail(err, LNT_E_UNSUPPORTED, "%s: this build has no converter; verify an .lnt", path);
}
#endif
