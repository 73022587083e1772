/* duel.c — Linnet against ONNX Runtime on one model.
 *
 * Each engine lives in a process of its own and the two take turns, a block of runs each. In one process
 * their allocators and thread pools would share what is measured, and onnxruntime's threads spin for a while
 * after a run: on two cores they would take one from Linnet's next block. So a worker answers only when its
 * threads have gone to sleep, and the first run of a block, which wakes them up and fills the caches again,
 * is not timed unless it takes so long that neither matters. What is compared is the state that both like
 * best: one run after another. Who begins changes from round to round. */
#include "cli/measure/duel.h"

#include "base/file.h"
#include "cli/data/model.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const double BLOCK = 4e-3;  /* seconds of a block, at least */
static const double LEAD = 20e-3;  /* runs shorter than that are led by one not timed */
static const double WARMUP = 0.05; /* seconds, at least, before the first block */
enum { LEAST_WARMUP = 2 };

/* ---- workers ---- */

typedef struct peer {
    pid_t pid;
    int to, from;
    double born;
    lnt_reply reply; /* the last one */
} peer;

/* This program again, as `linnet bench MODEL --worker ENGINE ...`. */
static void become_worker(const lnt_paired_options *o, const char *engine, const int to[2], const int from[2])
{
    const bool own = strcmp(engine, "linnet") == 0;
    char threads[16];
    const char *argv[14] = {"linnet",    "bench", own ? o->lnt : o->onnx, "--worker", engine,
                            "--threads", threads};
    size_t n = 7;
    snprintf(threads, sizeof threads, "%" PRIu32, o->threads);
    if (own && o->level)
        argv[n++] = "--level", argv[n++] = o->level;
    if (!own && o->library)
        argv[n++] = "--ort-lib", argv[n++] = o->library;
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (int i = 0; i < 2; i++) {
        close(to[i]);
        close(from[i]);
    }
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(LNT_EXIT_RESOURCE);
}

static lnt_status start(const lnt_paired_options *o, const char *engine, const lnt_named *in, size_t n_in,
                        peer *p, lnt_error *err)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    *p = (peer){.pid = -1, .born = lnt_now()};
    if (pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0)
        p->pid = fork();
    if (p->pid == 0)
        become_worker(o, engine, to, from);
    close(to[0]);
    close(from[1]);
    p->to = to[1];
    p->from = from[0];
    LNT_REQUIRE(p->pid > 0, err, LNT_E_IO, "cannot start a process: %s", strerror(errno));
    LNT_REQUIRE(lnt_wire_put(p->to, in, n_in), err, LNT_E_IO, "the process of %s ended", engine);
    return LNT_OK;
}

static void stop(peer *p)
{
    if (p->pid <= 0)
        return;
    close(p->to);
    close(p->from);
    waitpid(p->pid, NULL, 0);
    *p = (peer){.pid = -1};
}

static lnt_status ask(peer *p, lnt_request request, lnt_error *err)
{
    LNT_REQUIRE(lnt_wire_write(p->to, &request, sizeof request) &&
                    lnt_wire_read(p->from, &p->reply, sizeof p->reply),
                err, LNT_E_IO, "a process of the benchmark ended before it answered");
    if (p->reply.error.code != LNT_OK && err)
        *err = p->reply.error;
    return p->reply.error.code;
}

static lnt_status load(peer *p, lnt_error *err)
{
    return ask(p, (lnt_request){.what = LNT_WORK_LOAD}, err);
}

static lnt_status run(peer *p, uint32_t runs, bool lead, lnt_error *err)
{
    return ask(p, (lnt_request){.what = LNT_WORK_RUN, .runs = runs, .lead = lead}, err);
}

/* ---- figures of samples ---- */

static double median(double *v, size_t n)
{
    lnt_sort_figures(v, n);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

static void find_ratio(double *ratio, size_t processes, size_t rounds, lnt_paired *d)
{
    const size_t n = processes * rounds;
    double least = INFINITY, most = 0;
    for (size_t k = 0; k < processes; k++) {
        const double m = median(ratio + k * rounds, rounds);
        least = fmin(least, m);
        most = fmax(most, m);
    }
    d->ratio = median(ratio, n);
    /* The number of rounds below the true median is binomial: these ranks hold it with 95 %. */
    const double below = floor(0.5 * (double)n - 0.98 * sqrt((double)n));
    const size_t rank = below > 0 ? (size_t)below : 0;
    d->low = fmin(ratio[rank], least);
    d->high = fmax(ratio[n - 1 - rank], most);
}

/* ---- starting ---- */

/* Drops the file from the page cache, as far as the kernel follows the advice. */
static void forget(const char *path)
{
    int fd;
    size_t bytes;
    if (lnt_open_regular(path, 0, &fd, &bytes, NULL) != LNT_OK)
        return;
    (void)fdatasync(fd);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

typedef struct starts {
    double *library, *load, *first, *ready; /* one of each start */
} starts;

/* Start number i: a process, its load and first run, and what these cost it. */
static lnt_status start_once(const lnt_paired_options *o, const char *engine, const lnt_named *in,
                             size_t n_in, bool cold, size_t i, starts *s, lnt_reply *reply, lnt_error *err)
{
    peer p;
    if (cold)
        forget(strcmp(engine, "linnet") == 0 ? o->lnt : o->onnx);
    lnt_status status = start(o, engine, in, n_in, &p, err);
    if (status == LNT_OK)
        status = load(&p, err);
    if (status == LNT_OK)
        status = run(&p, 1, false, err);
    if (status == LNT_OK) {
        s->library[i] = p.reply.library;
        s->load[i] = p.reply.load;
        s->first[i] = p.reply.time;
        s->ready[i] = p.reply.done - p.born - p.reply.waited;
        status = ask(&p, (lnt_request){.what = LNT_WORK_RUN, .runs = 1, .memory = true}, err);
    }
    *reply = p.reply;
    stop(&p);
    return status;
}

static starts make_starts(size_t n)
{
    double *all = lnt_cli_alloc(4 * n * sizeof *all);
    return (starts){all, all + n, all + 2 * n, all + 3 * n};
}

static lnt_status measure_starts(const lnt_paired_options *o, const lnt_named *in, size_t n_in, lnt_paired *d,
                                 lnt_error *err)
{
    static const char *const name[2] = {"linnet", "onnxruntime"};
    lnt_paired_side *const side[2] = {&d->linnet, &d->ort};
    const size_t n = (size_t)o->starts;
    if (!n)
        return LNT_OK;
    starts warm[2] = {make_starts(n), make_starts(n)}, cold[2] = {make_starts(n), make_starts(n)};
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            LNT_TRY(start_once(o, name[k], in, n_in, true, i, &cold[k], &side[k]->reply, err));
            LNT_TRY(start_once(o, name[k], in, n_in, false, i, &warm[k], &side[k]->reply, err));
        }
    for (int k = 0; k < 2; k++) {
        side[k]->library = median(warm[k].library, n);
        side[k]->load = median(warm[k].load, n);
        side[k]->first = median(warm[k].first, n);
        side[k]->start = median(warm[k].ready, n);
        side[k]->load_cold = median(cold[k].load, n);
        side[k]->start_cold = median(cold[k].ready, n);
    }
    return LNT_OK;
}

/* ---- the same outputs? ---- */

/* Runs an engine as often as the other and gives its outputs. */
static lnt_status outputs_of(const lnt_paired_options *o, const char *engine, const lnt_named *in,
                             size_t n_in, uint32_t runs, lnt_named **out, size_t *n_out, lnt_error *err)
{
    peer p;
    lnt_status status = start(o, engine, in, n_in, &p, err);
    if (status == LNT_OK)
        status = load(&p, err);
    if (status == LNT_OK)
        status = run(&p, runs, false, err);
    if (status == LNT_OK)
        status = ask(&p, (lnt_request){.what = LNT_WORK_OUTPUTS}, err);
    if (status == LNT_OK && !lnt_wire_get(p.from, out, n_out))
        status = lnt_fail(err, LNT_E_IO, "the process of %s ended before it gave its outputs", engine);
    stop(&p);
    return status;
}

static void compare(const lnt_paired_options *o, const lnt_named *got, const lnt_named *all, size_t n,
                    lnt_comparison *c)
{
    const lnt_rule rule = {.max_rel = o->max_rel};
    *c = (lnt_comparison){.worst = -1, .reason = "onnxruntime has no output of this name"};
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, got->name) == 0)
            lnt_compare(&rule, &got->tensor, &all[i].tensor, c);
}

/* After one run; where there are states, after some, so that what they carry counts. */
static lnt_status compare_outputs(const lnt_paired_options *o, const lnt_named *in, size_t n_in,
                                  lnt_paired *d, lnt_error *err)
{
    lnt_named *own, *plain, *optimized;
    size_t n, n_plain, n_optimized;
    uint32_t runs = 1;
    for (size_t i = 0; i < n_in; i++)
        if (in[i].state)
            runs = 3;
    LNT_TRY(outputs_of(o, "linnet", in, n_in, runs, &own, &n, err));
    LNT_TRY(outputs_of(o, "onnxruntime-plain", in, n_in, runs, &plain, &n_plain, err));
    LNT_TRY(outputs_of(o, "onnxruntime", in, n_in, runs, &optimized, &n_optimized, err));
    d->n_outputs = (uint32_t)n;
    d->output = lnt_cli_alloc(n * sizeof *d->output);
    d->agree = true;
    for (size_t i = 0; i < n; i++) {
        d->output[i].name = own[i].name;
        compare(o, &own[i], plain, n_plain, &d->output[i].plain);
        compare(o, &own[i], optimized, n_optimized, &d->output[i].optimized);
        d->agree &= d->output[i].plain.pass;
    }
    return LNT_OK;
}

/* ---- rounds ---- */

/* Warms the engine up, by ever more runs in one go, and finds how many make a block. */
static lnt_status prepare(peer *p, lnt_request *block, lnt_error *err)
{
    double each = INFINITY, spent = 0;
    LNT_TRY(load(p, err));
    for (uint32_t runs = 1; runs <= LEAST_WARMUP || spent < WARMUP; runs *= 2) {
        LNT_TRY(run(p, runs, false, err));
        spent += p->reply.time;
        each = fmin(each, p->reply.time / runs);
    }
    const double runs = ceil(BLOCK / fmax(each, 1e-8));
    *block = (lnt_request){.what = LNT_WORK_RUN, .runs = (uint32_t)fmax(runs, 1), .lead = each < LEAD};
    return LNT_OK;
}

typedef struct samples { /* one of each round */
    double *time, *cpu;
} samples;

static lnt_status take_turns(peer side[2], size_t rounds, const samples taken[2], size_t first,
                             lnt_error *err)
{
    lnt_request block[2];
    for (int k = 0; k < 2; k++)
        LNT_TRY(prepare(&side[k], &block[k], err));
    for (size_t i = 0; i < rounds; i++)
        for (size_t turn = 0; turn < 2; turn++) {
            const size_t k = (i + turn) % 2;
            LNT_TRY(ask(&side[k], block[k], err));
            taken[k].time[first + i] = side[k].reply.time / block[k].runs;
            taken[k].cpu[first + i] = side[k].reply.cpu / block[k].runs;
        }
    return LNT_OK;
}

static void find_times(const samples *taken, size_t n, lnt_paired_side *side)
{
    side->p50 = median(taken->time, n);
    side->min = taken->time[0];
    side->p95 = taken->time[(size_t)(0.95 * (double)(n - 1) + 0.5)];
    lnt_mean_of(taken->time, n, &side->mean, &side->std);
    side->cpu = median(taken->cpu, n);
}

static lnt_status measure_rounds(const lnt_paired_options *o, const lnt_named *in, size_t n_in, lnt_paired *d,
                                 lnt_error *err)
{
    const size_t rounds = (size_t)o->rounds, n = (size_t)o->processes * rounds;
    samples taken[2];
    double *ratio = lnt_cli_alloc(n * sizeof *ratio);
    for (int k = 0; k < 2; k++)
        taken[k] = (samples){lnt_cli_alloc(n * sizeof(double)), lnt_cli_alloc(n * sizeof(double))};
    for (size_t k = 0; k < (size_t)o->processes; k++) {
        peer side[2] = {{.pid = -1}, {.pid = -1}};
        lnt_status status = start(o, "linnet", in, n_in, &side[0], err);
        if (status == LNT_OK)
            status = start(o, "onnxruntime", in, n_in, &side[1], err);
        if (status == LNT_OK)
            status = take_turns(side, rounds, taken, k * rounds, err);
        if (!o->starts) {
            d->linnet.reply = side[0].reply;
            d->ort.reply = side[1].reply;
        }
        stop(&side[0]);
        stop(&side[1]);
        LNT_TRY(status);
    }
    for (size_t i = 0; i < n; i++)
        ratio[i] = taken[1].time[i] / taken[0].time[i];
    find_ratio(ratio, (size_t)o->processes, rounds, d);
    for (size_t i = 0; i < n; i++)
        ratio[i] = taken[1].cpu[i] / taken[0].cpu[i];
    d->cpu_ratio = median(ratio, n);
    find_times(&taken[0], n, &d->linnet);
    find_times(&taken[1], n, &d->ort);
    return LNT_OK;
}

static lnt_status file_bytes(const char *path, uint64_t *bytes, lnt_error *err)
{
    int fd;
    size_t size;
    LNT_TRY(lnt_open_regular(path, 0, &fd, &size, err));
    close(fd);
    *bytes = size;
    return LNT_OK;
}

lnt_status lnt_paired_run(const lnt_paired_options *o, const lnt_named *in, size_t n_in, lnt_paired *d,
                          lnt_error *err)
{
    *d = (lnt_paired){0};
    signal(SIGPIPE, SIG_IGN); /* a process that ended is an error of what was asked of it */
    LNT_TRY(file_bytes(o->lnt, &d->linnet.model_bytes, err));
    LNT_TRY(file_bytes(o->onnx, &d->ort.model_bytes, err));
    LNT_TRY(compare_outputs(o, in, n_in, d, err));
    LNT_TRY(measure_starts(o, in, n_in, d, err));
    return measure_rounds(o, in, n_in, d, err);
}
