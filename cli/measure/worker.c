/* worker.c — one side of the paired benchmark. */
#include "cli/measure/worker.h"

#include "cli/data/model.h"
#include "cli/measure/ort.h"

#include <dirent.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct worker worker;

typedef struct engine {
    lnt_status (*open)(worker *w, lnt_error *err);
    lnt_status (*run)(worker *w, lnt_error *err);
    size_t (*outputs)(const worker *w);
    lnt_status (*output)(worker *w, size_t i, lnt_named *out, lnt_error *err);
} engine;

struct worker {
    const lnt_worker_options *options;
    const engine *engine;
    lnt_named *in;
    size_t n_in;
    lnt_opened opened; /* Linnet's */
    lnt_session *session;
    lnt_ort *ort; /* the other's */
    uint64_t base_dirty;
    lnt_reply reply;
};

static int add_segments(struct dl_phdr_info *object, size_t size, void *arg)
{
    lnt_reply *reply = arg;
    const bool ort = strstr(object->dlpi_name, "libonnxruntime") != NULL;
    (void)size;
    if (ort != (reply->library > 0) || (!ort && *object->dlpi_name))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD)
            reply->library_bytes += object->dlpi_phdr[i].p_filesz;
    return 0;
}

/* ---- Linnet ---- */

static lnt_status open_linnet(worker *w, lnt_error *err)
{
    const lnt_session_options how = {
        .struct_bytes = sizeof how, .intra_op_num_threads = w->options->threads, .level = w->options->level};
    lnt_session_info info = {.struct_bytes = sizeof info};
    const double start = lnt_now();
    LNT_TRY(lnt_opened_open(w->options->model, NULL, 0, &w->opened, err));
    LNT_TRY(lnt_session_create(w->opened.model, &how, &w->session, err));
    for (size_t i = 0; i < w->n_in; i++) {
        const int k = lnt_model_find_input(w->opened.model, w->in[i].name);
        LNT_TRY(lnt_set_input(w->session, (uint32_t)k, &w->in[i].tensor, err));
    }
    LNT_TRY(lnt_bind(w->session, err));
    w->reply.load = lnt_now() - start;
    LNT_TRY(lnt_session_get_info(w->session, &info, err));
    w->reply.arena = info.arena_bytes;
    snprintf(w->reply.version, sizeof w->reply.version, "%s", lnt_version());
    snprintf(w->reply.level, sizeof w->reply.level, "%s", info.level);
    return LNT_OK;
}

static lnt_status run_linnet(worker *w, lnt_error *err)
{
    return lnt_run(w->session, err);
}

static size_t linnet_outputs(const worker *w)
{
    return lnt_model_output_count(w->opened.model);
}

static lnt_status linnet_output(worker *w, size_t i, lnt_named *out, lnt_error *err)
{
    lnt_value_info info;
    LNT_TRY(lnt_model_output(w->opened.model, (uint32_t)i, &info));
    *out = (lnt_named){.name = info.name};
    return lnt_get_output(w->session, (uint32_t)i, &out->tensor, err);
}

/* ---- ONNX Runtime ---- */

static lnt_status open_ort(worker *w, lnt_error *err)
{
    const bool optimize = strcmp(w->options->engine, "onnxruntime") == 0;
    const double start = lnt_now();
    LNT_TRY(lnt_ort_load(w->options->library, &w->ort, err));
    w->reply.library = lnt_now() - start;
    LNT_TRY(lnt_ort_open(w->ort, w->options->model, w->options->threads, optimize, err));
    w->reply.load = lnt_now() - start - w->reply.library;
    snprintf(w->reply.version, sizeof w->reply.version, "%s", lnt_ort_version(w->ort));
    return lnt_ort_set_inputs(w->ort, w->in, w->n_in, err);
}

static lnt_status run_ort(worker *w, lnt_error *err)
{
    return lnt_ort_run(w->ort, err);
}

static size_t ort_outputs(const worker *w)
{
    return lnt_ort_output_count(w->ort);
}

static lnt_status ort_output(worker *w, size_t i, lnt_named *out, lnt_error *err)
{
    return lnt_ort_output(w->ort, i, out, err);
}

static const engine linnet = {open_linnet, run_linnet, linnet_outputs, linnet_output};
static const engine onnxruntime = {open_ort, run_ort, ort_outputs, ort_output};

/* ---- the process ---- */

/* The number behind key in one of the files the kernel keeps on this process, in KiB; 0 if it is not there. */
static uint64_t own_kib(const char *file, const char *key)
{
    FILE *f = fopen(file, "r");
    char line[256];
    uint64_t kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), "%" SCNu64, &kib);
    if (f)
        fclose(f);
    return kib;
}

static uint64_t dirty_kib(void)
{
    return own_kib("/proc/self/smaps_rollup", "Private_Dirty:");
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The state the kernel shows of a thread of this process: 'R' running or ready, 'S' asleep; 0 if it is gone. */
static char thread_state(const char *tid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.16s/stat", tid);
    FILE *f = fopen(path, "r");
    const char *name_end = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    if (f)
        fclose(f);
    return name_end && name_end[1] ? name_end[2] : 0;
}

static bool others_run(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool run = false;
    for (const struct dirent *e; tasks && !run && (e = readdir(tasks));) {
        const long tid = strtol(e->d_name, NULL, 10);
        run = tid > 0 && tid != getpid() && thread_state(e->d_name) == 'R';
    }
    if (tasks)
        closedir(tasks);
    return run;
}

/* Waits until the engine's own threads have stopped spinning, or a second is over: they would take the cores
 * that the other side is measured on. Processor time would not tell: that of a thread that goes on running is
 * counted a few milliseconds late. */
static void settle(void)
{
    enum { PAUSES = 2000, PAUSE_NS = 500 * 1000 };
    for (int i = 0; i < PAUSES && others_run(); i++)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static lnt_status work(worker *w, const lnt_request *r, lnt_error *err)
{
    if (r->what == LNT_WORK_OUTPUTS)
        return LNT_OK;
    if (r->what == LNT_WORK_LOAD)
        return w->engine->open(w, err);
    if (r->what == LNT_WORK_RUN && r->lead)
        LNT_TRY(w->engine->run(w, err));
    const double cpu = cpu_seconds(), start = lnt_now();
    for (uint32_t i = 0; i < r->runs; i++)
        LNT_TRY(w->engine->run(w, err));
    w->reply.done = lnt_now();
    w->reply.time = w->reply.done - start;
    w->reply.cpu = cpu_seconds() - cpu;
    return LNT_OK;
}

static bool send_outputs(worker *w, int to)
{
    const size_t n = w->engine->outputs(w);
    lnt_named *out = lnt_cli_alloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        if (w->engine->output(w, i, &out[i], NULL) != LNT_OK)
            out[i].tensor = (lnt_tensor){0};
    return lnt_wire_put(to, out, n);
}

static bool answer(worker *w, const lnt_request *r, int to)
{
    lnt_error_clear(&w->reply.error);
    const lnt_status status = work(w, r, &w->reply.error);
    if (w->options->threads != 1 && r->what == LNT_WORK_RUN)
        settle();
    if (r->memory) {
        const uint64_t dirty = dirty_kib();
        w->reply.dirty = dirty > w->base_dirty ? dirty - w->base_dirty : 0;
        w->reply.resident = own_kib("/proc/self/status", "VmRSS:");
        w->reply.peak = own_kib("/proc/self/status", "VmHWM:");
        w->reply.library_bytes = 0;
        dl_iterate_phdr(add_segments, &w->reply);
    }
    if (!lnt_wire_write(to, &w->reply, sizeof w->reply))
        return false;
    return status != LNT_OK || r->what != LNT_WORK_OUTPUTS || send_outputs(w, to);
}

int lnt_worker(const lnt_worker_options *options)
{
    worker w = {.options = options,
                .engine = strcmp(options->engine, "linnet") == 0 ? &linnet : &onnxruntime};
    const int from = STDIN_FILENO, to = dup(STDOUT_FILENO);
    const double start = lnt_now();
    lnt_request r;
    if (to < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || !lnt_wire_get(from, &w.in, &w.n_in))
        return LNT_EXIT_RESOURCE;
    w.reply.base = own_kib("/proc/self/status", "VmRSS:");
    w.base_dirty = dirty_kib();
    w.reply.waited = lnt_now() - start;
    while (lnt_wire_read(from, &r, sizeof r) && answer(&w, &r, to))
        ;
    _exit(LNT_EXIT_OK); /* the other side's library would take its time to end */
}
