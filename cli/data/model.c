/* model.c — opening the model a verb was given, and what statuses mean to the shell. */
#include "cli/data/model.h"

#include "cli/pictures/image_decoder.h"
#include "cli/shell/suggest.h"
#include "runtime/resources.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void lnt_sort_figures(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
}

void lnt_mean_of(const double *v, size_t n, double *mean, double *std)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - *mean) * (v[i] - *mean);
    *std = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

lnt_status lnt_read_text(const char *path, char **text, lnt_error *err)
{
    lnt_blob file;
    LNT_TRY(lnt_blob_open(path, true, &lnt_malloc_allocator, &file, err));
    *text = memcpy(lnt_cli_alloc(file.size + 1), file.bytes, file.size);
    (*text)[file.size] = '\0';
    lnt_blob_close(&file);
    return LNT_OK;
}

bool lnt_ends_with(const char *text, const char *end)
{
    const size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

lnt_status lnt_room_for(uint64_t bytes, const char *what, lnt_error *err)
{
    const uint64_t room = lnt_available_memory();
    LNT_REQUIRE(bytes <= room, err, LNT_E_LIMIT, "%s: has %" PRIu64 " bytes, the machine %" PRIu64, what,
                bytes, room);
    return LNT_OK;
}

int lnt_exit_code(lnt_status status)
{
    switch (status) {
    case LNT_OK: return LNT_EXIT_OK;
    case LNT_E_INTERNAL: return LNT_EXIT_MISMATCH;
    case LNT_E_ARGUMENT:
    case LNT_E_NOT_FOUND:
    case LNT_E_SHAPE:
    case LNT_E_TYPE:
    case LNT_E_VALUE: return LNT_EXIT_USAGE;
    case LNT_E_FILE:
    case LNT_E_MODEL:
    case LNT_E_IO: return LNT_EXIT_FILE;
    case LNT_E_UNSUPPORTED: return LNT_EXIT_UNSUPPORTED;
    case LNT_E_MEMORY:
    case LNT_E_LIMIT:
    case LNT_E_BUSY:
    case LNT_E_CANCELLED:
    case LNT_E_DEADLINE: return LNT_EXIT_RESOURCE;
    }
    return LNT_EXIT_MISMATCH;
}

int lnt_failed(const lnt_verb *verb, const lnt_error *err)
{
    fprintf(stderr, "linnet %s: %s: %s\n", verb->name, lnt_status_text(err->code), err->message);
    return lnt_exit_code(err->code);
}

static bool same_fault(const lnt_unsupported *a, const lnt_unsupported *b)
{
    return strcmp(a->op, b->op) == 0 && strcmp(a->domain, b->domain) == 0 &&
           strcmp(a->reason, b->reason) == 0;
}

void lnt_unsupported_text(const lnt_report *report, char *buffer, size_t bytes)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < report->n_unsupported && used < bytes; i++) {
        const lnt_unsupported *u = &report->unsupported[i];
        size_t times = 0, first = i;
        for (size_t k = report->n_unsupported; k-- > 0;)
            if (same_fault(u, &report->unsupported[k]))
                times++, first = k;
        if (first < i)
            continue;
        const int n = snprintf(buffer + used, bytes - used, "%s%s%s%s: %s", i ? "; " : "", u->domain,
                               *u->domain ? "." : "", u->op, u->reason);
        used += n > 0 ? (size_t)n : 0;
        if (times > 1 && used < bytes)
            used += (size_t)snprintf(buffer + used, bytes - used, " (%zu nodes)", times);
    }
}

/* What the program itself brings: its workstations' build. */
#ifdef LNT_CONVERTER
static const lnt_custom_op *const own_operators = &lnt_image_decoder;
enum { OWN_OPERATORS = 1 };
#else
static const lnt_custom_op *const own_operators = NULL;
enum { OWN_OPERATORS = 0 };
#endif

lnt_status lnt_opened_image(void *image, size_t bytes, lnt_opened *o, lnt_error *err)
{
    const lnt_model_options options = {.struct_bytes = sizeof options,
                                       .flags = LNT_LOAD_FULL,
                                       .custom = own_operators,
                                       .n_custom = OWN_OPERATORS};
    const double start = lnt_now();
    *o = (lnt_opened){.image = image, .image_bytes = bytes};
    const lnt_status status = lnt_model_create_from_memory(image, bytes, &options, &o->model, err);
    o->load_seconds = lnt_now() - start;
    if (status != LNT_OK)
        lnt_opened_close(o);
    return status;
}

#ifdef LNT_CONVERTER
bool lnt_names_onnx(const char *path)
{
    return lnt_onnx_ending(path) > 0;
}

static lnt_status convert_and_open(const char *path, const lnt_convert_options *options, lnt_opened *o,
                                   lnt_error *err)
{
    static const lnt_convert_options defaults = {.opt = LNT_OPT_ALL};
    lnt_report report;
    void *image = NULL;
    size_t bytes = 0;

    lnt_report_init(&report);
    const lnt_status status =
        lnt_convert_file(path, options ? options : &defaults, &report, &image, &bytes, err);
    if (status == LNT_E_UNSUPPORTED && report.n_unsupported && err)
        lnt_unsupported_text(&report, err->message, sizeof err->message);
    lnt_report_free(&report);
    return status == LNT_OK ? lnt_opened_image(image, bytes, o, err) : status;
}
#else
bool lnt_names_onnx(const char *path)
{
    return lnt_ends_with(path, ".onnx");
}

static lnt_status convert_and_open(const char *path, const lnt_convert_options *options, lnt_opened *o,
                                   lnt_error *err)
{
    (void)options;
    (void)o;
    return lnt_fail(err, LNT_E_UNSUPPORTED, "%s: this build has no converter; convert it on a workstation",
                    path);
}
#endif

lnt_status lnt_opened_open(const char *path, const lnt_convert_options *options, uint32_t flags,
                           lnt_opened *o, lnt_error *err)
{
    const lnt_model_options how = {
        .struct_bytes = sizeof how, .flags = flags, .custom = own_operators, .n_custom = OWN_OPERATORS};
    if (lnt_names_onnx(path))
        return convert_and_open(path, options, o, err);
    const double start = lnt_now();
    *o = (lnt_opened){.path = path};
    LNT_TRY(lnt_model_create(path, &how, &o->model, err));
    o->load_seconds = lnt_now() - start;
    return LNT_OK;
}

static const char *text_attr(const lnt_file *f, const lnt_rec_node *n, const char *name)
{
    for (const lnt_rec_attr *a = f->attrs + n->first_attr; a < f->attrs + n->first_attr + n->n_attrs; a++)
        if (a->type == LNT_ATTR_STRING && strcmp(f->strings + a->name, name) == 0)
            return f->strings + a->data;
    return "";
}

bool lnt_custom_node(const lnt_file *f, const lnt_rec_node *n, const char **domain, const char **name)
{
    *domain = text_attr(f, n, "custom_domain");
    *name = text_attr(f, n, "custom_name");
    return n->op == LNT_ID_Custom;
}

static lnt_status nobody_brings(lnt_custom_call *call)
{
    const lnt_custom_op *op = call->user;
    return lnt_fail(call->err, LNT_E_UNSUPPORTED, "the custom operator %s.%s is the host program's",
                    op->domain, op->name);
}

/* The operators that the file's nodes need of a host, each once. */
static size_t stand_ins_of(const lnt_file *f, lnt_custom_op *op, size_t most)
{
    size_t n = 0;
    for (uint32_t i = 0; i < f->n_nodes && n < most; i++) {
        size_t k = 0;
        const char *domain, *name;
        if (!lnt_custom_node(f, &f->nodes[i], &domain, &name))
            continue;
        while (k < n && (strcmp(op[k].domain, domain) != 0 || strcmp(op[k].name, name) != 0))
            k++;
        if (k == n)
            op[n++] = (lnt_custom_op){
                .domain = domain, .name = name, .shape = nobody_brings, .run = nobody_brings, .user = &op[k]};
    }
    return n;
}

lnt_status lnt_opened_look(const char *path, uint32_t flags, lnt_opened *o, lnt_error *err)
{
    enum { MOST = 256 };
    lnt_model_options how = {.struct_bytes = sizeof how, .flags = flags};
    if (lnt_names_onnx(path))
        return lnt_opened_open(path, NULL, flags, o, err);
    *o = (lnt_opened){.path = path};
    LNT_TRY(lnt_opened_file(o, err));
    lnt_custom_op *op = lnt_cli_alloc(MOST * sizeof *op);
    how.custom = op;
    how.n_custom = stand_ins_of(&o->file, op, MOST);
    return lnt_model_create(path, &how, &o->model, err);
}

const char *lnt_suggest_input(const lnt_opened *o, const char *typed)
{
    lnt_texts names = {0};
    lnt_value_info info;
    for (uint32_t i = 0; i < lnt_model_input_count(o->model); i++)
        if (lnt_model_input(o->model, i, &info) == LNT_OK)
            lnt_texts_add(&names, info.name);
    return lnt_suggest(typed, &names);
}

const char *lnt_suggest_output(const lnt_opened *o, const char *typed)
{
    lnt_texts names = {0};
    lnt_value_info info;
    for (uint32_t i = 0; i < lnt_model_output_count(o->model); i++)
        if (lnt_model_output(o->model, i, &info) == LNT_OK)
            lnt_texts_add(&names, info.name);
    return lnt_suggest(typed, &names);
}

lnt_status lnt_opened_file(lnt_opened *o, lnt_error *err)
{
    if (o->have_file)
        return LNT_OK;
    if (!o->image)
        LNT_TRY(lnt_blob_open(o->path, false, &lnt_malloc_allocator, &o->blob, err));
    const lnt_status status = lnt_file_check(o->image ? o->image : o->blob.bytes,
                                             o->image ? o->image_bytes : o->blob.size, false, &o->file, err);
    o->have_file = status == LNT_OK;
    if (status != LNT_OK)
        lnt_error_prefix(err, "%s: ", o->path);
    return status;
}

void lnt_opened_close(lnt_opened *o)
{
    lnt_model_destroy(&o->model);
    lnt_free(&lnt_malloc_allocator, o->image);
    if (o->blob.bytes)
        lnt_blob_close(&o->blob);
    *o = (lnt_opened){0};
}
