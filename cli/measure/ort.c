/* ort.c — ONNX Runtime through the few functions of ort_api.h. */
#include "cli/measure/ort.h"

#include "cli/shell/args.h"
#include "cli/shell/library.h"
#include "cli/measure/ort_api.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct lnt_ort {
    lnt_ort_functions api;
    const char *version;
    void *env, *session, *memory, *allocator;
    size_t n_in, n_out;
    const char **in_name, **out_name;
    const void **in_value;
    void **out_value; /* NULL before the first run */
    size_t *state;    /* per input: number of the output that becomes it; SIZE_MAX: none */
};

/* Turns a status of theirs into one of ours. */
static lnt_status check(const lnt_ort *ort, void *status, const char *what, lnt_error *err)
{
    if (!status)
        return LNT_OK;
    lnt_fail(err, LNT_E_UNSUPPORTED, "onnxruntime, %s: %s", what, ort->api.GetErrorMessage(status));
    ort->api.ReleaseStatus(status);
    return LNT_E_UNSUPPORTED;
}

#define ORT_TRY(what, call) LNT_TRY(check(ort, ort->api.call, what, err))

/* The first file of a pattern; NULL if there is none. */
static const char *first_match(const char *folder, const char *pattern)
{
    glob_t found;
    const char *path = NULL;
    if (glob(lnt_cli_text("%s/%s", folder, pattern), 0, NULL, &found) == 0)
        path = lnt_cli_text("%s", found.gl_pathv[0]);
    globfree(&found);
    return path;
}

const char *lnt_ort_find(const char *given)
{
    static const char pattern[] =
        ".deps/venv/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*";
    char program[4096] = "";
    if (given)
        return given;
    const char *path = first_match(".", pattern);
    if (path || readlink("/proc/self/exe", program, sizeof program - 1) <= 0)
        return path;
    for (int up = 0; up < 3 && !path; up++) { /* build/linnet, build/BOARD/linnet */
        char *slash = strrchr(program, '/');
        if (!slash)
            return NULL;
        *slash = '\0';
        path = first_match(program, pattern);
    }
    return path;
}

/* The one function the library shows. */
static lnt_status find_base(const char *path, void **symbol, lnt_error *err)
{
    static const char *const system[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
    static const char name[] = "OrtGetApiBase";
    lnt_status status = LNT_E_NOT_FOUND;
    if (path)
        status = lnt_library_symbol(path, name, symbol, err);
    for (size_t i = 0; !path && i < sizeof system / sizeof *system && status == LNT_E_NOT_FOUND; i++) {
        lnt_error_clear(err);
        status = lnt_library_symbol(system[i], name, symbol, err);
    }
    if (status == LNT_E_NOT_FOUND)
        lnt_error_prefix(err, "onnxruntime is not installed (`make deps-test` does; or give --ort-lib, the "
                              "libonnxruntime.so of the package from PyPI): ");
    return status;
}

/* Takes the functions out of the library's table. */
static lnt_status take_functions(lnt_ort *ort, void *symbol, lnt_error *err)
{
    const lnt_ort_base *(*get_base)(void) = NULL;
    int minor = -1;
    memcpy(&get_base, &symbol, sizeof get_base);
    ort->version = get_base()->version();
    LNT_REQUIRE(sscanf(ort->version, "1.%d.", &minor) == 1 && minor >= LNT_ORT_OLDEST_MINOR, err,
                LNT_E_UNSUPPORTED, "onnxruntime %s: versions 1.%d and later of release 1 are understood",
                ort->version, LNT_ORT_OLDEST_MINOR);
    const void *const *table = get_base()->table(LNT_ORT_API_VERSION);
    LNT_REQUIRE(table, err, LNT_E_UNSUPPORTED, "onnxruntime %s has no interface of version %d", ort->version,
                LNT_ORT_API_VERSION);
#define X(place, result, name, parameters) memcpy(&ort->api.name, &table[place], sizeof ort->api.name);
    LNT_ORT_FUNCTIONS(X)
#undef X
    return LNT_OK;
}

lnt_status lnt_ort_load(const char *path, lnt_ort **made, lnt_error *err)
{
    lnt_ort *ort = lnt_cli_alloc(sizeof *ort);
    void *symbol = NULL;
    LNT_TRY(find_base(path, &symbol, err));
    LNT_TRY(take_functions(ort, symbol, err));
    ORT_TRY("environment", CreateEnv(LNT_ORT_LOG_ERRORS, "linnet", &ort->env));
    ORT_TRY("memory", CreateCpuMemoryInfo(LNT_ORT_ARENA_ALLOCATOR, LNT_ORT_DEFAULT_MEMORY, &ort->memory));
    ORT_TRY("memory", GetAllocatorWithDefaultOptions(&ort->allocator));
    *made = ort;
    return LNT_OK;
}

const char *lnt_ort_version(const lnt_ort *ort)
{
    return ort->version;
}

static lnt_status set_options(lnt_ort *ort, void *options, uint32_t threads, bool optimize, lnt_error *err)
{
    ORT_TRY("options",
            SetSessionGraphOptimizationLevel(options, optimize ? LNT_ORT_OPTIMIZED : LNT_ORT_PLAIN));
    ORT_TRY("options", SetIntraOpNumThreads(options, (int)threads));
    ORT_TRY("options", SetInterOpNumThreads(options, 1));
    /* As Linnet does; without it a fading state makes some runs many times slower. */
    ORT_TRY("options", AddSessionConfigEntry(options, "session.set_denormal_as_zero", "1"));
    return LNT_OK;
}

static lnt_status read_names(lnt_ort *ort, lnt_error *err)
{
    ORT_TRY("inputs", SessionGetInputCount(ort->session, &ort->n_in));
    ORT_TRY("outputs", SessionGetOutputCount(ort->session, &ort->n_out));
    ort->state = lnt_cli_alloc(ort->n_in * sizeof *ort->state);
    ort->in_name = lnt_cli_alloc(ort->n_in * sizeof *ort->in_name);
    ort->in_value = lnt_cli_alloc(ort->n_in * sizeof *ort->in_value);
    ort->out_name = lnt_cli_alloc(ort->n_out * sizeof *ort->out_name);
    ort->out_value = lnt_cli_alloc(ort->n_out * sizeof *ort->out_value);
    for (size_t i = 0; i < ort->n_in; i++)
        ORT_TRY("inputs", SessionGetInputName(ort->session, i, ort->allocator, (char **)&ort->in_name[i]));
    for (size_t i = 0; i < ort->n_out; i++)
        ORT_TRY("outputs", SessionGetOutputName(ort->session, i, ort->allocator, (char **)&ort->out_name[i]));
    return LNT_OK;
}

lnt_status lnt_ort_open(lnt_ort *ort, const char *onnx, uint32_t threads, bool optimize, lnt_error *err)
{
    void *options;
    ORT_TRY("options", CreateSessionOptions(&options));
    lnt_status status = set_options(ort, options, threads, optimize, err);
    if (status == LNT_OK)
        status = check(ort, ort->api.CreateSession(ort->env, onnx, options, &ort->session), onnx, err);
    ort->api.ReleaseSessionOptions(options);
    return status == LNT_OK ? read_names(ort, err) : status;
}

static lnt_status find_state(const lnt_ort *ort, const char *output, size_t *state, lnt_error *err)
{
    for (*state = 0; *state < ort->n_out; ++*state)
        if (strcmp(ort->out_name[*state], output) == 0)
            return LNT_OK;
    return lnt_fail(err, LNT_E_NOT_FOUND, "onnxruntime: the model has no output %s", output);
}

static lnt_status set_input(lnt_ort *ort, size_t i, const lnt_named *given, size_t n, lnt_error *err)
{
    static char nothing[64]; /* where an input without elements points */
    for (size_t k = 0; k < n; k++) {
        const lnt_tensor *t = &given[k].tensor;
        if (strcmp(given[k].name, ort->in_name[i]) != 0)
            continue;
        ort->state[i] = SIZE_MAX;
        if (given[k].state)
            LNT_TRY(find_state(ort, given[k].state, &ort->state[i], err));
        ORT_TRY(given[k].name,
                CreateTensorWithDataAsOrtValue(ort->memory, t->bytes ? t->data : nothing, t->bytes, t->dims,
                                               t->rank, (int)t->dtype, (void **)&ort->in_value[i]));
        return LNT_OK;
    }
    return lnt_fail(err, LNT_E_NOT_FOUND, "onnxruntime: the .lnt has no input %s", ort->in_name[i]);
}

lnt_status lnt_ort_set_inputs(lnt_ort *ort, const lnt_named *in, size_t n, lnt_error *err)
{
    for (size_t i = 0; i < ort->n_in; i++)
        LNT_TRY(set_input(ort, i, in, n, err));
    return LNT_OK;
}

lnt_status lnt_ort_run(lnt_ort *ort, lnt_error *err)
{
    ORT_TRY("run", Run(ort->session, NULL, ort->in_name, ort->in_value, ort->n_in, ort->out_name, ort->n_out,
                       ort->out_value));
    for (size_t i = 0; i < ort->n_in; i++)
        if (ort->state[i] != SIZE_MAX) {
            void *before = (void *)(uintptr_t)ort->in_value[i];
            ort->in_value[i] = ort->out_value[ort->state[i]];
            ort->out_value[ort->state[i]] = before;
        }
    return LNT_OK;
}

size_t lnt_ort_output_count(const lnt_ort *ort)
{
    return ort->n_out;
}

/* Where the last run left output i: states have become inputs. */
static void *last_value(const lnt_ort *ort, size_t i)
{
    for (size_t k = 0; k < ort->n_in; k++)
        if (ort->state[k] == i)
            return (void *)(uintptr_t)ort->in_value[k];
    return ort->out_value[i];
}

static lnt_status read_shape(const lnt_ort *ort, const void *shape, lnt_tensor *t, lnt_error *err)
{
    size_t rank;
    int dtype;
    ORT_TRY("shape", GetDimensionsCount(shape, &rank));
    LNT_REQUIRE(rank <= LNT_MAX_RANK, err, LNT_E_LIMIT, "onnxruntime: an output of rank %zu", rank);
    ORT_TRY("shape", GetDimensions(shape, t->dims, rank));
    ORT_TRY("shape", GetTensorElementType(shape, &dtype));
    t->rank = (uint32_t)rank;
    t->dtype = (lnt_dtype)dtype;
    t->bytes = lnt_dtype_size(t->dtype);
    for (size_t d = 0; d < rank; d++)
        t->bytes *= (size_t)t->dims[d];
    return LNT_OK;
}

lnt_status lnt_ort_output(lnt_ort *ort, size_t i, lnt_named *out, lnt_error *err)
{
    void *value = last_value(ort, i), *shape;
    *out = (lnt_named){.name = ort->out_name[i]};
    ORT_TRY("output", GetTensorTypeAndShape(value, &shape));
    const lnt_status status = read_shape(ort, shape, &out->tensor, err);
    ort->api.ReleaseTensorTypeAndShapeInfo(shape);
    LNT_TRY(status);
    ORT_TRY("output", GetTensorMutableData(value, &out->tensor.data));
    return LNT_OK;
}

bool lnt_ort_saturates(void)
{
#if defined(__x86_64__)
    enum { AVX512_VNNI = 1 << 11, AVX_VNNI = 1 << 4 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && c & AVX512_VNNI)
        return false;
    return !(__get_cpuid_count(7, 1, &a, &b, &c, &d) && a & AVX_VNNI);
#else
    return false;
#endif
}
