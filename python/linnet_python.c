/* linnet_python.c — what the Python package calls besides linnet.h: conversion in memory, with plain
 * arguments.
 *
 * Settings come as text, one a line: "opt all", "dim N=3", "state OUT=IN", "keep NAME", "keep_all 1",
 * "winograd_budget PERCENT", "precision TYPE", "memory_limit BYTES", "overridable NAME", "custom DOMAIN.OP",
 * "meta KEY=TEXT"; and for quantized models "int8 MODE", "int4 BLOCK", "min_snr DB", "calibration METHOD",
 * "float PATTERN", "measure NAME". And runs in one call, and attributes of custom operators by number. */
#include "convert/convert.h"
#include "convert/quantize/quantize_blocks.h"
#include "formats/lnt_file.h"
#include "formats/tensor_file.h"
#include "ops/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    char *text;
    lnt_convert_options options;
    lnt_quantize_options quantize;
    lnt_named_int *dim, *length;
    lnt_named_text *state, *meta;
    const char **keep, **overridable, **custom, **in_float, **measure;
} settings;

/* Recorded inputs to calibrate and to measure on. */
typedef struct lnt_python_samples {
    size_t n, n_inputs;
    const char *const *name;  /* [n_inputs] */
    const lnt_tensor *tensor; /* [n][n_inputs] */
} lnt_python_samples;

/* Converts the model at path, or in memory where path is NULL; samples may be NULL. *image is freed with
 * lnt_python_free. *told, freed with lnt_python_free_text, is NULL or has a line for each node at fault, or of a
 * quantized model for each layer, by tabs: "unsupported", node, domain, operator, opset, reason; "layer", node,
 * operator, "int8", "int4" or "float", why; "output", name, dB or why that is not known. */
LNT_API lnt_status lnt_python_convert(const char *path, const void *onnx, size_t onnx_size, const char *text,
                                      const lnt_python_samples *samples, void **image, size_t *size,
                                      char **told, lnt_error *err);
/* Tensors of a run. */
typedef struct lnt_python_call {
    uint32_t n_in, n_out;
    const uint32_t *input;    /* [n_in]: their numbers */
    const lnt_tensor *tensor; /* [n_in] */
    const uint32_t *output;   /* [n_out]: their numbers */
    void *const *memory;      /* [n_out]; NULL: the session's own */
    const size_t *bytes;      /* [n_out]: of it */
} lnt_python_call;

/* Sets inputs and outputs, and runs: one call instead of many, as each takes ctypes longer than a small
 * model. */
LNT_API lnt_status lnt_python_run(lnt_session *s, const lnt_python_call *call, lnt_error *err);
/* An attribute of a node; kind is an lnt_attr_type, or 0 where it is a subgraph. data: what lnt_attr points to;
 * tensor: of LNT_ATTR_TENSOR, with its data. */
typedef struct lnt_python_attribute_info {
    const char *name;
    uint32_t kind, count;
    const void *data;
    lnt_tensor tensor;
} lnt_python_attribute_info;

/* Attribute k of the node of an lnt_custom_call; false if it has fewer. */
LNT_API bool lnt_python_attribute(const void *node, uint32_t k, lnt_python_attribute_info *info);
/* Writes the image to a file, all of it or nothing. */
LNT_API lnt_status lnt_python_write(const char *path, const void *image, size_t size, lnt_error *err);
LNT_API void lnt_python_free(void *image);
LNT_API void lnt_python_free_text(char *text);

static void tell_of_report(const lnt_report *r, FILE *f)
{
    for (size_t i = 0; i < r->n_unsupported; i++) {
        const lnt_unsupported *u = &r->unsupported[i];
        fprintf(f, "unsupported\t%s\t%s\t%s\t%lld\t%s\n", u->node, u->domain, u->op, (long long)u->opset,
                u->reason);
    }
    for (size_t i = 0; i < r->n_quantized; i++) {
        const lnt_quantized *q = &r->quantized[i];
        fprintf(f, "layer\t%s\t%s\t%s\t%s\n", q->node, q->op,
                q->bits == 4         ? "int4"
                : q->bits || q->int8 ? "int8"
                                     : "float",
                q->why ? q->why : "");
    }
    for (size_t i = 0; i < r->n_output_errors; i++) {
        const lnt_output_error *e = &r->output_error[i];
        if (e->unmeasurable)
            fprintf(f, "output\t%s\t%s\n", e->output, e->unmeasurable);
        else
            fprintf(f, "output\t%s\t%.1f\n", e->output, e->snr);
    }
}

static char *text_of_report(const lnt_report *r)
{
    char *text = NULL;
    size_t size;
    FILE *f = r->n_unsupported + r->n_quantized ? open_memstream(&text, &size) : NULL;
    if (f) {
        tell_of_report(r, f);
        fclose(f);
    }
    return text;
}

/* "NAME=VALUE" cut at its last '=' (names may hold one); NULL if there is none. */
static char *cut(char *pair)
{
    char *equals = strrchr(pair, '=');
    if (equals)
        *equals++ = '\0';
    return equals;
}

/* The position of value among names, "one|two|three". */
static lnt_status take_choice(const char *key, const char *names, const char *value, unsigned *choice,
                              lnt_error *err)
{
    const char *at = names;
    for (*choice = 0; *at; ++*choice) {
        const size_t length = strcspn(at, "|");
        if (strlen(value) == length && memcmp(at, value, length) == 0)
            return LNT_OK;
        at += length + (at[length] == '|');
    }
    return lnt_fail(err, LNT_E_ARGUMENT, "%s must be one of %s, is %s", key, names, value);
}

static lnt_status take_number(const char *key, const char *value, double *number, lnt_error *err)
{
    char *end = NULL;
    *number = strtod(value, &end);
    LNT_REQUIRE(end != value && !*end, err, LNT_E_ARGUMENT, "%s must be a number, is %s", key, value);
    return LNT_OK;
}

/* Of quantized models; *mine: the key is one of theirs. */
static lnt_status take_quantized(settings *s, const char *key, const char *value, bool *mine, lnt_error *err)
{
    lnt_quantize_options *q = &s->quantize;
    unsigned choice = 0;
    double number;
    *mine = true;
    if (strcmp(key, "int8") == 0) {
        LNT_TRY(take_choice(key, "off|dynamic|auto|static", value, &choice, err));
        q->mode = (lnt_int8_mode)choice;
    } else if (strcmp(key, "int4") == 0) {
        LNT_TRY(take_number(key, value, &number, err));
        LNT_REQUIRE(number >= LNT_BLOCK_LEAST && number <= LNT_BLOCK_MOST &&
                        ((int64_t)number & ((int64_t)number - 1)) == 0,
                    err, LNT_E_ARGUMENT, "int4 must be a block of 16, 32, 64, 128 or 256, is %s", value);
        q->mode = LNT_INT4_BLOCKS;
        q->block = (int64_t)number;
    } else if (strcmp(key, "min_snr") == 0) {
        return take_number(key, value, &q->min_snr, err);
    } else if (strcmp(key, "calibration") == 0) {
        LNT_TRY(take_choice(key, "minmax|percentile|entropy|mse|best", value, &choice, err));
        q->method = (lnt_range_method)choice;
    } else if (strcmp(key, "float") == 0) {
        s->in_float[q->n_in_float++] = value;
    } else if (strcmp(key, "measure") == 0) {
        s->measure[s->options.n_measure++] = value;
    } else {
        *mine = false;
    }
    return LNT_OK;
}

static lnt_status take(settings *s, char *key, char *value, lnt_error *err)
{
    lnt_convert_options *o = &s->options;
    char *right = NULL;
    unsigned choice = 0;
    bool taken;
    LNT_TRY(take_quantized(s, key, value, &taken, err));
    if (taken)
        return LNT_OK;
    if (strcmp(key, "opt") == 0) {
        o->opt = strcmp(value, "none") == 0    ? LNT_OPT_NONE
                 : strcmp(value, "basic") == 0 ? LNT_OPT_BASIC
                                               : LNT_OPT_ALL;
    } else if (strcmp(key, "keep") == 0) {
        s->keep[o->n_keep++] = value;
    } else if (strcmp(key, "keep_all") == 0) {
        o->keep_all = true;
    } else if (strcmp(key, "winograd_budget") == 0) {
        o->winograd_budget = strtod(value, &right);
        LNT_REQUIRE(right != value && !*right, err, LNT_E_ARGUMENT,
                    "winograd must be a bool or a number, is %s", value);
    } else if (strcmp(key, "precision") == 0) {
        LNT_TRY(take_choice(key, "model|float32|float16|bfloat16|auto", value, &choice, err));
        o->precision = (lnt_precision)choice;
    } else if (strcmp(key, "memory_limit") == 0) {
        const long long bytes = strtoll(value, &right, 10);
        LNT_REQUIRE(bytes > 0 && !*right, err, LNT_E_ARGUMENT, "memory_limit must be positive, is %s", value);
        o->memory_limit = (uint64_t)bytes;
    } else if (strcmp(key, "overridable") == 0) {
        s->overridable[o->n_overridable++] = value;
    } else if (strcmp(key, "custom") == 0) {
        s->custom[o->n_custom++] = value;
    } else if ((right = cut(value)) && strcmp(key, "dim") == 0) {
        s->dim[o->n_dims++] = (lnt_named_int){value, strtoll(right, NULL, 10)};
    } else if (right && strcmp(key, "length") == 0) {
        const bool none = strcmp(right, "none") == 0;
        s->length[o->n_lengths++] = (lnt_named_int){value, none ? LNT_LENGTH_NONE : strtoll(right, NULL, 10)};
    } else if (right && strcmp(key, "state") == 0) {
        s->state[o->n_states++] = (lnt_named_text){value, right};
    } else if (right && strcmp(key, "meta") == 0) {
        s->meta[o->n_meta++] = (lnt_named_text){value, right};
    } else {
        return lnt_fail(err, LNT_E_ARGUMENT, "setting %s %s is not understood", key, value);
    }
    return LNT_OK;
}

static size_t count_lines(const char *text)
{
    size_t n = 1;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static lnt_status read_settings(settings *s, const char *text, lnt_error *err)
{
    const size_t n = count_lines(text);
    s->text = strdup(text);
    s->dim = calloc(n, sizeof *s->dim);
    s->length = calloc(n, sizeof *s->length);
    s->state = calloc(n, sizeof *s->state);
    s->meta = calloc(n, sizeof *s->meta);
    s->keep = calloc(n, sizeof *s->keep);
    s->overridable = calloc(n, sizeof *s->overridable);
    s->custom = calloc(n, sizeof *s->custom);
    s->in_float = calloc(n, sizeof *s->in_float);
    s->measure = calloc(n, sizeof *s->measure);
    if (!s->text || !s->dim || !s->length || !s->state || !s->meta || !s->keep || !s->overridable ||
        !s->custom || !s->in_float || !s->measure)
        return lnt_fail(err, LNT_E_MEMORY, "no memory for the settings");
    s->options = (lnt_convert_options){.opt = LNT_OPT_ALL,
                                       .dim = s->dim,
                                       .length = s->length,
                                       .state = s->state,
                                       .meta = s->meta,
                                       .keep = s->keep,
                                       .overridable = s->overridable,
                                       .custom = s->custom,
                                       .measure = s->measure};
    s->quantize = (lnt_quantize_options){
        .block = LNT_BLOCK, .method = LNT_RANGE_BEST, .min_snr = -1, .in_float = s->in_float};
    char *rest = NULL;
    for (char *line = strtok_r(s->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, ' ');
        LNT_REQUIRE(value, err, LNT_E_ARGUMENT, "setting %s has no value", line);
        *value++ = '\0';
        LNT_TRY(take(s, line, value, err));
    }
    return LNT_OK;
}

static void free_settings(settings *s)
{
    free(s->text);
    free(s->dim);
    free(s->length);
    free(s->state);
    free(s->meta);
    free(s->keep);
    free(s->overridable);
    free(s->custom);
    free(s->in_float);
    free(s->measure);
}

/* Sample i, as lnt_quantize_options.read_sample asks for it. */
static lnt_status read_sample(void *arg, const lnt_model *m, size_t i, lnt_tensor *inputs, lnt_error *err)
{
    const lnt_python_samples *samples = arg;
    for (size_t k = 0; k < samples->n_inputs; k++) {
        const lnt_tensor *from = &samples->tensor[i * samples->n_inputs + k];
        const int input = lnt_model_find_input(m, samples->name[k]);
        LNT_REQUIRE(input >= 0, err, LNT_E_NOT_FOUND, "calibrate: the model has no input %s",
                    samples->name[k]);
        LNT_TRY(lnt_tensor_alloc(&lnt_malloc_allocator, from->dtype, from->rank, from->dims, &inputs[input],
                                 err));
        LNT_REQUIRE(inputs[input].bytes == from->bytes, err, LNT_E_SHAPE,
                    "calibrate: input %s is not contiguous", samples->name[k]);
        memcpy(inputs[input].data, from->data, from->bytes);
    }
    return LNT_OK;
}

/* Samples, and what holds where nobody says how exact outputs must be: as in `linnet convert`. */
static void complete_quantize(settings *s, const lnt_python_samples *samples)
{
    lnt_quantize_options *q = &s->quantize;
    if (samples && samples->n) {
        q->n_samples = samples->n;
        q->read_sample = read_sample;
        q->arg = (void *)(uintptr_t)samples;
    }
    q->may_be_unmeasured = q->min_snr < 0;
    if (q->min_snr < 0 && q->mode != LNT_INT8_OFF)
        q->min_snr = !q->n_samples ? 0 : q->mode == LNT_INT4_BLOCKS ? LNT_INT4_SNR : LNT_INT8_SNR;
    s->options.quantize = q;
}

lnt_status lnt_python_convert(const char *path, const void *onnx, size_t onnx_size, const char *text,
                              const lnt_python_samples *samples, void **image, size_t *size, char **told,
                              lnt_error *err)
{
    settings s = {0};
    lnt_report report;
    *image = NULL;
    *told = NULL;
    lnt_error_clear(err);
    lnt_report_init(&report);
    lnt_status status = read_settings(&s, text, err);
    complete_quantize(&s, samples);
    if (status == LNT_OK)
        status = path ? lnt_convert_file(path, &s.options, &report, image, size, err)
                      : lnt_convert_memory(onnx, onnx_size, NULL, &s.options, &report, image, size, err);
    *told = text_of_report(&report);
    lnt_report_free(&report);
    free_settings(&s);
    return status;
}

lnt_status lnt_python_run(lnt_session *s, const lnt_python_call *call, lnt_error *err)
{
    for (uint32_t i = 0; i < call->n_in; i++)
        LNT_TRY(lnt_set_input(s, call->input[i], &call->tensor[i], err));
    for (uint32_t i = 0; i < call->n_out; i++)
        LNT_TRY(lnt_set_output(s, call->output[i], call->memory[i], call->bytes[i], err));
    return lnt_run(s, err);
}

bool lnt_python_attribute(const void *node, uint32_t k, lnt_python_attribute_info *info)
{
    const lnt_node *n = node;
    if (k >= n->n_attr)
        return false;
    const lnt_attr *a = &n->attr[k];
    *info = (lnt_python_attribute_info){.name = a->name, .kind = a->type, .count = a->count, .data = a->i};
    if (a->type == LNT_ATTR_GRAPH || (a->type == LNT_ATTR_TENSOR && !a->tensor->data))
        info->kind = 0;
    if (a->type == LNT_ATTR_TENSOR) {
        info->tensor = (lnt_tensor){.dtype = (lnt_dtype)a->tensor->dtype,
                                    .rank = a->tensor->rank,
                                    .data = (void *)(uintptr_t)a->tensor->data,
                                    .bytes = lnt_known_bytes(a->tensor)};
        memcpy(info->tensor.dims, a->tensor->dims, sizeof info->tensor.dims);
    }
    return true;
}

lnt_status lnt_python_write(const char *path, const void *image, size_t size, lnt_error *err)
{
    lnt_error_clear(err);
    return lnt_write_atomic(path, image, size, err);
}

void lnt_python_free(void *image)
{
    lnt_free(&lnt_malloc_allocator, image);
}

void lnt_python_free_text(char *text)
{
    free(text);
}
