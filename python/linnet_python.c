/* linnet_python.c — what the Python package calls besides linnet.h: conversion in memory, with plain
 * arguments.
 *
 * Settings come as text, one a line: "opt all", "dim N=3", "state OUT=IN", "keep NAME", "keep_all 1",
 * "winograd_budget PERCENT", "precision TYPE", "memory_limit BYTES", "overridable NAME", "custom DOMAIN.OP",
 * "meta KEY=TEXT". And runs in one call. */
#include "convert/convert.h"
#include "formats/lnt_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    char *text;
    lnt_convert_options options;
    lnt_named_int *dim;
    lnt_named_text *state, *meta;
    const char **keep, **overridable, **custom;
} settings;

/* Converts the model at path, or in memory where path is NULL. *image is freed with lnt_python_free.
 * *unsupported, freed with free, is NULL or one line for each node at fault: node, domain, operator, opset,
 * reason, by tabs. */
LNT_API lnt_status lnt_python_convert(const char *path, const void *onnx, size_t onnx_size, const char *text,
                                      void **image, size_t *size, char **unsupported, lnt_error *err);
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
/* Writes the image to a file, all of it or nothing. */
LNT_API lnt_status lnt_python_write(const char *path, const void *image, size_t size, lnt_error *err);
LNT_API void lnt_python_free(void *image);
LNT_API void lnt_python_free_text(char *text);

static char *list_unsupported(const lnt_report *r)
{
    char *text = NULL;
    size_t size;
    FILE *f = r->n_unsupported ? open_memstream(&text, &size) : NULL;
    for (size_t i = 0; f && i < r->n_unsupported; i++) {
        const lnt_unsupported *u = &r->unsupported[i];
        fprintf(f, "%s\t%s\t%s\t%lld\t%s\n", u->node, u->domain, u->op, (long long)u->opset, u->reason);
    }
    if (f)
        fclose(f);
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

static lnt_status take_precision(const char *value, lnt_precision *precision, lnt_error *err)
{
    static const char *const names[] = {"model", "float32", "float16", "bfloat16", "auto"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(value, names[i]) == 0) {
            *precision = (lnt_precision)i;
            return LNT_OK;
        }
    return lnt_fail(err, LNT_E_ARGUMENT, "precision must be float32, float16, bfloat16 or auto, is %s",
                    value);
}

static lnt_status take(settings *s, char *key, char *value, lnt_error *err)
{
    lnt_convert_options *o = &s->options;
    char *right = NULL;
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
        return take_precision(value, &o->precision, err);
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
    s->state = calloc(n, sizeof *s->state);
    s->meta = calloc(n, sizeof *s->meta);
    s->keep = calloc(n, sizeof *s->keep);
    s->overridable = calloc(n, sizeof *s->overridable);
    s->custom = calloc(n, sizeof *s->custom);
    if (!s->text || !s->dim || !s->state || !s->meta || !s->keep || !s->overridable || !s->custom)
        return lnt_fail(err, LNT_E_MEMORY, "no memory for the settings");
    s->options = (lnt_convert_options){.opt = LNT_OPT_ALL,
                                       .dim = s->dim,
                                       .state = s->state,
                                       .meta = s->meta,
                                       .keep = s->keep,
                                       .overridable = s->overridable,
                                       .custom = s->custom};
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
    free(s->state);
    free(s->meta);
    free(s->keep);
    free(s->overridable);
    free(s->custom);
}

lnt_status lnt_python_convert(const char *path, const void *onnx, size_t onnx_size, const char *text,
                              void **image, size_t *size, char **unsupported, lnt_error *err)
{
    settings s = {0};
    lnt_report report;
    *image = NULL;
    *unsupported = NULL;
    lnt_error_clear(err);
    lnt_report_init(&report);
    lnt_status status = read_settings(&s, text, err);
    if (status == LNT_OK)
        status = path ? lnt_convert_file(path, &s.options, &report, image, size, err)
                      : lnt_convert_memory(onnx, onnx_size, NULL, &s.options, &report, image, size, err);
    *unsupported = list_unsupported(&report);
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
