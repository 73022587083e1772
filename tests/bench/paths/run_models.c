/* run_models.c — runs many models in one process, for a counter of instructions.
 *
 *     run_models LEVEL LIST
 *
 * LIST names an .lnt file and a file with the bytes of its inputs, one after another, on each line. Models run on
 * one thread of the level: once to bind and warm up, then once between two calls of getppid, by which the counter
 * knows what to count. For each a line is printed: "ok" and the elements of its outputs, or "failed" and why. */
#include "runtime/linnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INPUTS = 16, PATH = 1024 };

/* Gives each input its extents and bytes of f; NULL where the bytes do not suffice. */
static const char *set_inputs(lnt_model *model, lnt_session *s, FILE *f, void *memory[INPUTS], lnt_error *err)
{
    const uint32_t n = lnt_model_input_count(model);
    for (uint32_t i = 0; i < n; i++) {
        lnt_value_info info;
        if (i >= INPUTS || lnt_model_input(model, i, &info))
            return "too many inputs";
        lnt_tensor t = {.dtype = info.dtype, .rank = info.rank, .bytes = lnt_dtype_size(info.dtype)};
        for (uint32_t k = 0; k < info.rank; k++) {
            t.dims[k] = info.dims[k];
            t.bytes *= (size_t)info.dims[k];
        }
        t.data = memory[i] = aligned_alloc(64, (t.bytes + 127) / 64 * 64);
        if (!t.data || fread(t.data, 1, t.bytes, f) != t.bytes)
            return "its inputs are not as long as they should be";
        if (lnt_set_input(s, i, &t, err))
            return err->message;
    }
    return NULL;
}

static const char *run_between_marks(lnt_session *s, lnt_error *err)
{
    if (lnt_run(s, err))
        return err->message;
    syscall(SYS_getppid);
    const lnt_status status = lnt_run(s, err);
    syscall(SYS_getppid);
    return status ? err->message : NULL;
}

static void print_outputs(lnt_model *model, lnt_session *s)
{
    printf("ok");
    for (uint32_t i = 0; i < lnt_model_output_count(model); i++) {
        lnt_tensor t;
        if (!lnt_get_output(s, i, &t, NULL))
            printf(" %zu", t.bytes / lnt_dtype_size(t.dtype));
    }
    printf("\n");
}

static void run_model(const char *path, const char *inputs, const char *level)
{
    lnt_error err = {0};
    lnt_model *model = NULL;
    lnt_session *s = NULL;
    void *memory[INPUTS] = {0};
    const lnt_session_options options = {
        .struct_bytes = sizeof options, .intra_op_num_threads = 1, .level = level};
    FILE *f = fopen(inputs, "rb");
    const char *why = !f ? "its inputs cannot be read" : NULL;
    if (!why && (lnt_model_create(path, NULL, &model, &err) || lnt_session_create(model, &options, &s, &err)))
        why = err.message;
    if (!why)
        why = set_inputs(model, s, f, memory, &err);
    if (!why)
        why = run_between_marks(s, &err);
    if (why)
        printf("failed %s\n", why);
    else
        print_outputs(model, s);
    lnt_session_destroy(&s);
    lnt_model_destroy(&model);
    for (int i = 0; i < INPUTS; i++)
        free(memory[i]);
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    char path[PATH], inputs[PATH];
    FILE *list = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (!list) {
        fprintf(stderr, "run_models LEVEL LIST\n");
        return 2;
    }
    while (fscanf(list, "%1023s %1023s", path, inputs) == 2)
        run_model(path, inputs, argv[1]);
    fclose(list);
    return 0;
}
