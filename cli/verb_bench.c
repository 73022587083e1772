/* verb_bench.c — `linnet bench`: how fast is a model here? */
#include "cli/measure/duel.h"
#include "cli/data/inputs.h"
#include "cli/shell/json.h"
#include "cli/data/judge_cases.h"
#include "cli/measure/kernel_bench.h"
#include "cli/data/target.h"
#include "cli/measure/ort.h"
#include "cli/measure/sweep.h"
#include "cli/shell/table.h"
#include "cli/verbs.h"
#include "ops/check/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RUNS_MOST = 100000000 }; /* a time of 8 bytes is kept of each */

static struct {
    lnt_texts dims, inputs, ranges, sweep, save;
    const char *data, *level, *onnx, *ort_lib, *worker, *trace;
    int64_t threads, runs, warmup, seed, rounds, processes, starts;
    double max_rel;
    int vs;
    bool trust, kernels, json;
} given = {.threads = 1,
           .runs = 100,
           .warmup = 10,
           .rounds = 31,
           .processes = 3,
           .starts = 5,
           .max_rel = 1e-4,
           .vs = -1};

static const lnt_option options[] = {
    {"--data", "CASE_DIR", LNT_OPTION_TEXT, &given.data, "inputs (and expected outputs) of this case folder"},
    {"--input", "NAME=FILE", LNT_OPTION_TEXTS, &given.inputs, "an input from a file, as in `run`"},
    {"--dim", "NAME=N", LNT_OPTION_TEXTS, &given.dims, "an open extent; floats are random then"},
    {"--range", "NAME=LOW:HIGH", LNT_OPTION_TEXTS, &given.ranges,
     "an input without a file is random in LOW <= x < HIGH, whole numbers too"},
    {"--sweep", "NAME=N,N,...", LNT_OPTION_TEXTS, &given.sweep,
     "measure at each of these extents; given again, at every combination"},
    {"--save", "FILE", LNT_OPTION_TEXTS, &given.save,
     "of --vs and --sweep: also as .json or .svg, a chart;\na sweep as .csv, too"},
    {"--threads", "N", LNT_OPTION_COUNT, &given.threads, "threads (1); 0: as many as the machine gives"},
    {"--level", "L", LNT_OPTION_TEXT, &given.level, "kernels of this level (best)"},
    {"--runs", "N", LNT_OPTION_COUNT, &given.runs, "timed runs (100)"},
    {"--warmup", "N", LNT_OPTION_COUNT, &given.warmup, "runs before that (10)"},
    {"--seed", "S", LNT_OPTION_COUNT, &given.seed, "of random inputs (0)"},
    {"--trust", NULL, LNT_OPTION_FLAG, &given.trust,
     "do not compare the first run with the recorded outputs"},
    {"--trace", "[FILE.json]", LNT_OPTION_FLAG_FILE, &given.trace,
     "the operators that took longest in the last run; the rate of products;\nto a file as a Chrome trace"},
    {"--kernels", NULL, LNT_OPTION_FLAG, &given.kernels,
     "no model but single operators against this machine's peak; --level all: each level"},
    {"--vs", "onnxruntime", LNT_OPTION_CHOICE, &given.vs, "compare with this runtime, taking turns"},
    {"--onnx", "M.onnx", LNT_OPTION_TEXT, &given.onnx, "the model M.lnt was made from, for --vs"},
    {"--ort-lib", "FILE", LNT_OPTION_TEXT, &given.ort_lib,
     "libonnxruntime.so; otherwise that in .deps/venv or the system's"},
    {"--rounds", "N", LNT_OPTION_COUNT, &given.rounds, "of --vs: each times both once (31)"},
    {"--processes", "N", LNT_OPTION_COUNT, &given.processes, "of --vs: rounds are begun anew in so many (3)"},
    {"--starts", "N", LNT_OPTION_COUNT, &given.starts,
     "of --vs: processes that time load and first run (5); 0: none"},
    {"--max-rel", "R", LNT_OPTION_NUMBER, &given.max_rel,
     "of --vs: largest difference, over the largest magnitude of the output (1e-4)"},
    {"--worker", "ENGINE", LNT_OPTION_TEXT, &given.worker,
     "be one side of --vs, which starts itself with this"},
    {"--json", NULL, LNT_OPTION_FLAG, &given.json, "print one flat JSON object; kernels: a list"},
};

typedef struct figures {
    double load, bind, first, min, p50, p95, mean, std; /* seconds */
    uint64_t rss_kib;
    lnt_session_info session;
    uint64_t multiply_adds; /* of a run; 0 if it is not traced */
    double peak;            /* multiplications and additions a second that one core comes to */
    double relayout;        /* seconds of a traced run that went to changes of storage order alone */
} figures;

/* q in [0, 1]; the nearest rank of sorted times. */
static double quantile(const double *sorted, size_t n, double q)
{
    return sorted[(size_t)(q * (double)(n - 1) + 0.5)];
}

static void summarize(double *times, size_t n, figures *f)
{
    lnt_sort_figures(times, n);
    lnt_mean_of(times, n, &f->mean, &f->std);
    f->min = times[0];
    f->p50 = quantile(times, n, 0.5);
    f->p95 = quantile(times, n, 0.95);
}

static uint64_t peak_rss_kib(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss : 0;
}

/* Where the inputs come from: a case (a folder's or the first golden one), or files and options. */
typedef struct source {
    lnt_cases cases;
    lnt_inputs inputs;
    lnt_inputs_options how;
} source;

static lnt_status find_inputs(lnt_opened *o, source *from, lnt_error *err)
{
    lnt_texts folder = {0};
    LNT_TRY(lnt_opened_file(o, err));
    if (given.data) {
        lnt_texts_add(&folder, given.data);
        return lnt_cases_read(&folder, &from->cases, err);
    }
    if (!given.inputs.n && !given.dims.n && !given.ranges.n && o->file.n_golden) {
        LNT_TRY(lnt_cases_golden(o, &from->cases, err));
        return LNT_OK;
    }
    from->how = (lnt_inputs_options){.dims = &given.dims,
                                     .files = &given.inputs,
                                     .ranges = &given.ranges,
                                     .rest = LNT_INPUTS_RANDOM,
                                     .seed = (uint64_t)given.seed};
    return lnt_inputs_make(o, &from->how, &from->inputs, err);
}

static lnt_status set_inputs(const lnt_opened *o, const source *from, lnt_session *s, lnt_error *err)
{
    return from->cases.n ? lnt_case_set_inputs(o, s, &from->cases.item[0], err)
                         : lnt_inputs_set(o, &from->how, &from->inputs, s, err);
}

/* The case's outputs must come out right before their speed means anything. */
static lnt_status check_case(lnt_opened *o, const source *from, lnt_error *err)
{
    /* Golden vectors carry a tolerance of their own. */
    const lnt_verify_options verify = {.rule = {.rtol = 1e-3, .atol = 1e-7, .max_rel = given.data ? 1e-3 : 0},
                                       .threads = (uint32_t)given.threads,
                                       .level = given.level};
    const lnt_cases one = {.item = from->cases.item, .n = from->cases.n ? 1 : 0};
    lnt_verdict verdict = LNT_VERDICT_PASS;
    char reason[256];
    LNT_TRY(lnt_verify_cases(&verify, o, &one, &verdict, reason, err));
    LNT_REQUIRE(verdict == LNT_VERDICT_PASS, err, LNT_E_INTERNAL, "wrong result: %s", reason);
    return LNT_OK;
}

static lnt_status measure(lnt_opened *o, const source *from, lnt_session *s, figures *f, lnt_error *err)
{
    const bool progress = isatty(STDERR_FILENO);
    double *times = lnt_cli_alloc((size_t)given.runs * sizeof *times), start = lnt_now();
    lnt_status status = set_inputs(o, from, s, err);
    if (status == LNT_OK)
        status = lnt_bind(s, err);
    f->bind = lnt_now() - start;
    start = lnt_now();
    if (status == LNT_OK)
        status = lnt_run(s, err);
    f->first = lnt_now() - start;
    for (int64_t i = -given.warmup; i < given.runs && status == LNT_OK; i++) {
        start = lnt_now();
        status = lnt_run(s, err);
        if (i >= 0)
            times[i] = lnt_now() - start;
        if (progress && i % 16 == 0)
            fprintf(stderr, "\r%" PRId64 " of %" PRId64, i < 0 ? 0 : i, given.runs);
    }
    if (progress)
        fputs("\r\x1b[K", stderr);
    if (status == LNT_OK)
        summarize(times, (size_t)given.runs, f);
    f->rss_kib = peak_rss_kib();
    f->session.struct_bytes = sizeof f->session;
    return status == LNT_OK ? lnt_session_get_info(s, &f->session, err) : status;
}

/* What the products of the last run come to, and the machine's limit for them. */
static void add_work(const lnt_session *s, figures *f)
{
    lnt_trace_step step;
    lnt_level level;
    for (uint32_t i = 0; lnt_trace_get(s, i, &step) == LNT_OK; i++) {
        f->multiply_adds += step.multiply_adds;
        if (strcmp(step.op, "Relayout") == 0)
            f->relayout += 1e-9 * (double)step.duration_ns;
    }
    if (f->multiply_adds && lnt_level_from_text(f->session.level, &level))
        f->peak = 1e9 * lnt_check_peak(level, 0.05);
}

/* Operations a second of the products in a run that takes so long. */
static double rate(uint64_t multiply_adds, double seconds)
{
    return seconds > 0 ? 2 * (double)multiply_adds / seconds : 0;
}

static void print_json(const figures *f)
{
    lnt_json j = {.out = stdout};
    lnt_json_begin(&j, NULL, '{');
    lnt_json_number(&j, "load_us", f->load * 1e6);
    lnt_json_number(&j, "bind_us", f->bind * 1e6);
    lnt_json_number(&j, "first_us", f->first * 1e6);
    lnt_json_number(&j, "min_us", f->min * 1e6);
    lnt_json_number(&j, "p50_us", f->p50 * 1e6);
    lnt_json_number(&j, "p95_us", f->p95 * 1e6);
    lnt_json_number(&j, "mean_us", f->mean * 1e6);
    lnt_json_number(&j, "std_us", f->std * 1e6);
    lnt_json_int(&j, "rss_kib", (int64_t)f->rss_kib);
    lnt_json_int(&j, "arena_bytes", (int64_t)f->session.arena_bytes);
    lnt_json_int(&j, "threads", f->session.threads);
    lnt_json_text(&j, "level", f->session.level);
    if (given.trace) {
        lnt_json_int(&j, "multiply_adds", (int64_t)f->multiply_adds);
        lnt_json_number(&j, "gflops", 1e-9 * rate(f->multiply_adds, f->p50));
        lnt_json_number(&j, "peak_gflops", 1e-9 * f->peak);
        lnt_json_number(&j, "relayout_us", f->relayout * 1e6);
    }
    lnt_json_end(&j, '}');
}

static void print_table(const figures *f)
{
    const struct {
        const char *what;
        double seconds;
    } row[] = {{"load", f->load},  {"bind", f->bind}, {"first run", f->first}, {"fastest", f->min},
               {"median", f->p50}, {"95 %", f->p95},  {"mean", f->mean},       {"deviation", f->std}};
    char text[24];
    lnt_table t;
    lnt_table_begin(&t, "lr", NULL);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        lnt_table_cell(&t, "%s", row[i].what);
        lnt_table_cell(&t, "%s", lnt_time_text(row[i].seconds, text));
    }
    lnt_table_cell(&t, "peak memory");
    lnt_table_cell(&t, "%s", lnt_size_text(f->rss_kib * 1024, text));
    lnt_table_cell(&t, "arena");
    lnt_table_cell(&t, "%s", lnt_size_text(f->session.arena_bytes, text));
    lnt_table_cell(&t, "threads");
    lnt_table_cell(&t, "%" PRIu32, f->session.threads);
    lnt_table_cell(&t, "level");
    lnt_table_cell(&t, "%s", f->session.level);
    if (f->peak > 0) {
        lnt_table_cell(&t, "products");
        lnt_table_cell(&t, "%.1f GFLOP/s", 1e-9 * rate(f->multiply_adds, f->p50));
        lnt_table_cell(&t, "of a core's float peak");
        lnt_table_cell(&t, "%.0f %%", 100 * rate(f->multiply_adds, f->p50) / f->peak);
    }
    lnt_table_print(&t, stdout);
}

static int by_duration(const void *a, const void *b)
{
    const lnt_trace_step *x = a, *y = b;
    return (x->duration_ns < y->duration_ns) - (x->duration_ns > y->duration_ns);
}

static void print_trace(const lnt_session *s)
{
    static const char *const heads[] = {"node", "operator", "time", "share", "GFLOP/s", "output"};
    enum { MOST = 25 };
    const uint32_t n = lnt_trace_count(s);
    lnt_trace_step *step = lnt_cli_alloc(n * sizeof *step);
    uint64_t total = 0;
    lnt_table t;
    for (uint32_t i = 0; i < n; i++)
        if (lnt_trace_get(s, i, &step[i]) == LNT_OK)
            total += step[i].duration_ns;
    if (n)
        qsort(step, n, sizeof *step, by_duration);
    lnt_table_begin(&t, "llrrrr", heads);
    for (uint32_t i = 0; i < n && i < MOST; i++) {
        char text[24];
        lnt_table_cell(&t, "%s", step[i].node);
        lnt_table_cell(&t, "%s", step[i].op);
        lnt_table_cell(&t, "%s", lnt_time_text(1e-9 * (double)step[i].duration_ns, text));
        lnt_table_cell(&t, "%.1f %%", total ? 100. * (double)step[i].duration_ns / (double)total : 0.);
        if (step[i].multiply_adds)
            lnt_table_cell(&t, "%.1f",
                           1e-9 * rate(step[i].multiply_adds, 1e-9 * (double)step[i].duration_ns));
        else
            lnt_table_cell(&t, "%s", "");
        lnt_table_cell(&t, "%s", lnt_size_text(step[i].out_bytes, text));
    }
    fputc('\n', stdout);
    lnt_table_print(&t, stdout);
}

/* Binds and runs the model with the inputs that are given now. *s has the last run, and is the caller's to destroy. */
static lnt_status bench(lnt_opened *o, source *from, lnt_session **s, figures *f, lnt_error *err)
{
    const lnt_session_options how = {.struct_bytes = sizeof how,
                                     .intra_op_num_threads = (uint32_t)given.threads,
                                     .level = given.level,
                                     .enable_profiling = given.trace != NULL};
    LNT_TRY(find_inputs(o, from, err));
    if (!given.trust)
        LNT_TRY(check_case(o, from, err));
    LNT_TRY(lnt_session_create(o->model, &how, s, err));
    return measure(o, from, *s, f, err);
}

static lnt_status tell(const lnt_session *s, figures *f, lnt_error *err)
{
    if (given.trace)
        add_work(s, f);
    given.json ? print_json(f) : print_table(f);
    if (given.trace && !given.json)
        print_trace(s);
    return given.trace && *given.trace ? lnt_trace_write(s, given.trace, err) : LNT_OK;
}

static void free_inputs(source *from)
{
    lnt_cases_free(&from->cases);
    lnt_inputs_free(&from->inputs);
}

/* ---- against another runtime ---- */

/* All inputs of the model under their names, states as they are before the first run, in memory of their own. */
static lnt_status name_inputs(const lnt_opened *o, const source *from, lnt_session *s, lnt_named *in,
                              lnt_error *err)
{
    LNT_TRY(set_inputs(o, from, s, err));
    LNT_TRY(lnt_bind(s, err));
    for (uint32_t i = 0; i < lnt_model_input_count(o->model); i++) {
        lnt_value_info info;
        LNT_TRY(lnt_model_input(o->model, i, &info));
        in[i].name = lnt_cli_text("%s", info.name);
        in[i].tensor = from->cases.n ? from->cases.item[0].in[i] : from->inputs.tensor[i];
    }
    for (uint32_t k = 0; k < o->file.n_states; k++) {
        const lnt_rec_state *state = &o->file.states[k];
        lnt_value_info info;
        LNT_TRY(lnt_model_output(o->model, state->output, &info));
        in[state->input].state = lnt_cli_text("%s", info.name);
        LNT_TRY(lnt_state_get(s, k, &in[state->input].tensor, err));
    }
    for (uint32_t i = 0; i < lnt_model_input_count(o->model); i++) {
        lnt_tensor *t = &in[i].tensor;
        void *copy = lnt_cli_alloc(t->bytes);
        LNT_REQUIRE(t->data || !t->bytes, err, LNT_E_NOT_FOUND, "no tensor for input %s", in[i].name);
        if (t->bytes)
            memcpy(copy, t->data, t->bytes);
        t->data = copy;
    }
    return LNT_OK;
}

static bool multiplies_int8(const lnt_file *f)
{
    for (uint32_t i = 0; i < f->n_nodes; i++)
        if (lnt_op_by_id(f->nodes[i].op)->flags & LNT_OP_INT8)
            return true;
    return false;
}

/* The model is closed afterwards: a file that is mapped does not leave the page cache. */
/* What goes from process to process has no pointers in it. */
static lnt_status refuse_text(const lnt_opened *o, lnt_error *err)
{
    const uint32_t n_in = lnt_model_input_count(o->model), n_out = lnt_model_output_count(o->model);
    for (uint32_t i = 0; i < n_in + n_out; i++) {
        lnt_value_info info;
        LNT_TRY(i < n_in ? lnt_model_input(o->model, i, &info) : lnt_model_output(o->model, i - n_in, &info));
        LNT_REQUIRE(info.dtype != LNT_STRING, err, LNT_E_UNSUPPORTED,
                    "--vs: %s is text, which is not compared", info.name);
    }
    return LNT_OK;
}

static lnt_status read_inputs(const char *path, lnt_named **in, size_t *n, bool *int8, lnt_error *err)
{
    const lnt_session_options how = {
        .struct_bytes = sizeof how, .level = given.level, .intra_op_num_threads = 1};
    lnt_opened o = {0};
    source from = {0};
    lnt_session *s = NULL;
    lnt_status status = lnt_opened_open(path, NULL, 0, &o, err);
    if (status == LNT_OK)
        status = lnt_opened_file(&o, err);
    if (status == LNT_OK)
        status = refuse_text(&o, err);
    if (status == LNT_OK)
        status = find_inputs(&o, &from, err);
    if (status == LNT_OK)
        status = lnt_session_create(o.model, &how, &s, err);
    if (status == LNT_OK) {
        *int8 = multiplies_int8(&o.file);
        *n = lnt_model_input_count(o.model);
        *in = lnt_cli_alloc(*n * sizeof **in);
        status = name_inputs(&o, &from, s, *in, err);
    }
    lnt_session_destroy(&s);
    free_inputs(&from);
    lnt_opened_close(&o);
    return status;
}

static lnt_paired_options how_paired(const char *path)
{
    return (lnt_paired_options){.lnt = path,
                                .onnx = given.onnx,
                                .library = lnt_ort_find(given.ort_lib),
                                .level = given.level,
                                .threads = (uint32_t)given.threads,
                                .rounds = given.rounds,
                                .processes = given.processes,
                                .starts = given.starts,
                                .max_rel = given.max_rel};
}

/* Exit code of what --vs cannot do; LNT_EXIT_OK. */
static int check_paired(const char *path)
{
    if (!given.onnx || !lnt_ends_with(path, ".lnt"))
        return lnt_usage_error(&lnt_verb_bench,
                               "--vs wants an .lnt and, as --onnx, the model it was made from");
    if (given.rounds < 1 || given.processes < 1 || given.threads < 1)
        return lnt_usage_error(&lnt_verb_bench, "--rounds, --processes and --threads must be at least 1");
    return LNT_EXIT_OK;
}

/* takes: of the ending. */
static lnt_status check_save(const char *path, lnt_status (*takes)(const char *path, lnt_error *err),
                             lnt_error *err)
{
    const char *const read[] = {path, given.onnx};
    for (size_t i = 0; i < given.save.n; i++) {
        LNT_TRY(takes(given.save.item[i], err));
        LNT_TRY(lnt_target_is_new("--save", given.save.item[i], read, 2, err));
    }
    return LNT_OK;
}

static int run_paired(const char *path)
{
    const lnt_paired_options how = how_paired(path);
    lnt_named *in = NULL;
    size_t n = 0;
    bool int8 = false;
    lnt_paired paired;
    lnt_error err = {0};
    const int code = check_paired(path);
    if (code != LNT_EXIT_OK)
        return code;
    lnt_status status = check_save(path, lnt_paired_takes, &err);
    if (status == LNT_OK)
        status = read_inputs(path, &in, &n, &int8, &err);
    if (status == LNT_OK)
        status = lnt_paired_run(&how, in, n, &paired, &err);
    if (status == LNT_OK)
        lnt_paired_print(&how, &paired, given.json);
    for (size_t i = 0; status == LNT_OK && i < given.save.n; i++)
        status = lnt_paired_save(&how, &paired, given.save.item[i], &err);
    if (status != LNT_OK)
        return lnt_failed(&lnt_verb_bench, &err);
    if (!paired.agree && int8 && lnt_ort_saturates())
        fprintf(
            stderr,
            "linnet bench: this CPU has no VNNI: onnxruntime adds products of uint8 by int8 in pairs "
            "there, which saturate at int16; where %s is quantized so, it may be its outputs that are off "
            "(docs/cli.md)\n",
            given.onnx);
    return paired.agree || given.trust ? LNT_EXIT_OK : LNT_EXIT_MISMATCH;
}

/* ---- sweeps ---- */

/* Rows of a run with this first input. */
static int64_t rows_of(const lnt_tensor *first)
{
    return first && first->rank ? first->dims[0] : 1;
}

static lnt_status sweep_alone(lnt_opened *o, lnt_sweep_row *row, lnt_error *err)
{
    source from = {0};
    figures f = {0};
    lnt_session *s = NULL;
    const lnt_status status = bench(o, &from, &s, &f, err);
    row->linnet = (lnt_sweep_times){f.mean, f.std, f.p50, f.min};
    row->arena_bytes = f.session.arena_bytes;
    row->rows = rows_of(from.cases.n ? from.cases.item[0].in : from.inputs.n ? from.inputs.tensor : NULL);
    lnt_session_destroy(&s);
    free_inputs(&from);
    return status;
}

static lnt_status sweep_paired(const char *path, lnt_sweep_row *row, lnt_error *err)
{
    const lnt_paired_options how = how_paired(path);
    lnt_named *in = NULL;
    size_t n = 0;
    bool int8;
    lnt_paired paired;
    LNT_TRY(read_inputs(path, &in, &n, &int8, err));
    LNT_TRY(lnt_paired_run(&how, in, n, &paired, err));
    const lnt_paired_side *a = &paired.linnet, *b = &paired.ort;
    row->linnet = (lnt_sweep_times){a->mean, a->std, a->p50, a->min};
    row->ort = (lnt_sweep_times){b->mean, b->std, b->p50, b->min};
    row->arena_bytes = a->reply.arena;
    row->rows = rows_of(n ? &in[0].tensor : NULL);
    row->ratio = paired.ratio;
    row->low = paired.low;
    row->high = paired.high;
    row->agree = paired.agree;
    return LNT_OK;
}

/* Measures a combination. */
static lnt_status measure_row(const char *path, lnt_opened *o, const lnt_sweep *s, lnt_sweep_row *row,
                              lnt_error *err)
{
    const lnt_texts dims = given.dims;
    given.dims = (lnt_texts){0};
    for (size_t i = 0; i < dims.n; i++)
        lnt_texts_add(&given.dims, dims.item[i]);
    for (size_t k = 0; k < s->n_axes; k++)
        lnt_texts_add(&given.dims, lnt_cli_text("%s=%" PRId64, s->axis[k].name, row->extent[k]));
    const lnt_status status = s->paired ? sweep_paired(path, row, err) : sweep_alone(o, row, err);
    given.dims = dims;
    return status;
}

/* Measures a combination; what is wrong with it alone is told at once and kept. *code: its exit code. */
static lnt_status sweep_row(const char *path, lnt_opened *o, const lnt_sweep *s, lnt_sweep_row *row,
                            int *code, lnt_error *err)
{
    const lnt_status status = measure_row(path, o, s, row, err);
    *code = s->paired && !row->agree && !given.trust ? LNT_EXIT_MISMATCH : LNT_EXIT_OK;
    if (status == LNT_OK || status == LNT_E_NOT_FOUND) /* a name is wrong in all of them */
        return status;
    row->error = lnt_cli_text("%s", err->message);
    *code = lnt_exit_code(status);
    fprintf(stderr, "linnet bench: %s: %s: %s\n", lnt_sweep_text(s, row), lnt_status_text(status),
            err->message);
    lnt_error_clear(err);
    return LNT_OK;
}

static lnt_status prepare_sweep(const char *path, lnt_sweep *s, lnt_error *err)
{
    LNT_TRY(lnt_sweep_parse(&given.sweep, s, err));
    s->paired = given.vs >= 0;
    return check_save(path, lnt_sweep_takes, err);
}

static int run_sweep(const char *path)
{
    lnt_opened o = {0};
    lnt_sweep s;
    lnt_error err = {0};
    int code = given.vs >= 0 ? check_paired(path) : LNT_EXIT_OK;
    if (code != LNT_EXIT_OK)
        return code;
    lnt_status status = prepare_sweep(path, &s, &err);
    if (status == LNT_OK && !s.paired)
        status = lnt_opened_open(path, NULL, 0, &o, &err);
    for (size_t i = 0; status == LNT_OK && i < s.n_rows; i++) {
        int one;
        status = sweep_row(path, &o, &s, &s.row[i], &one, &err);
        code = code == LNT_EXIT_OK ? one : code;
    }
    if (status == LNT_OK)
        lnt_sweep_print(&s, given.json);
    for (size_t i = 0; status == LNT_OK && i < given.save.n; i++)
        status = lnt_sweep_save(&s, given.save.item[i], &err);
    lnt_opened_close(&o);
    return status == LNT_OK ? code : lnt_failed(&lnt_verb_bench, &err);
}

static int run_alone(const char *path)
{
    lnt_opened o = {0};
    source from = {0};
    figures f = {0};
    lnt_session *s = NULL;
    lnt_error err = {0};
    lnt_status status = given.trace ? lnt_target_is_new("--trace", given.trace, &path, 1, &err) : LNT_OK;
    if (status == LNT_OK)
        status = lnt_opened_open(path, NULL, 0, &o, &err);
    f.load = o.load_seconds;
    if (status == LNT_OK)
        status = bench(&o, &from, &s, &f, &err);
    if (status == LNT_OK)
        status = tell(s, &f, &err);
    lnt_session_destroy(&s);
    free_inputs(&from);
    lnt_opened_close(&o);
    return status == LNT_OK ? LNT_EXIT_OK : lnt_failed(&lnt_verb_bench, &err);
}

/* What goes together. */
static int check_sweep(void)
{
    if (given.save.n && !given.sweep.n && given.vs < 0)
        return lnt_usage_error(&lnt_verb_bench, "--save belongs to --vs and --sweep");
    if (given.sweep.n && given.data)
        return lnt_usage_error(&lnt_verb_bench, "--sweep and --data exclude each other");
    if (given.sweep.n && given.trace)
        return lnt_usage_error(&lnt_verb_bench, "--sweep and --trace exclude each other");
    return LNT_EXIT_OK;
}

static int run(const lnt_texts *words)
{
    if (given.kernels)
        return lnt_bench_kernels(&lnt_verb_bench, words, given.level, given.json);
    if (words->n != 1)
        return lnt_usage_error(&lnt_verb_bench, words->n ? "one model at a time" : "which model?");
    const int code = check_sweep();
    if (code != LNT_EXIT_OK)
        return code;
    if (given.worker)
        return lnt_worker(&(lnt_worker_options){.engine = given.worker,
                                                .model = words->item[0],
                                                .library = given.ort_lib,
                                                .level = given.level,
                                                .threads = (uint32_t)given.threads});
    if (given.runs < 1 || given.runs > RUNS_MOST)
        return lnt_usage_error(&lnt_verb_bench, "--runs must be from 1 to 100000000");
    if (given.sweep.n)
        return run_sweep(words->item[0]);
    if (given.vs >= 0)
        return run_paired(words->item[0]);
    return run_alone(words->item[0]);
}

const lnt_verb lnt_verb_bench = {
    .name = "bench",
    .summary = "how fast is a model here?",
    .usage = "M.lnt [options] | --kernels [WORD...]",
    .text =
        "Loads, binds and runs a model and prints how long each took, and the memory it needed.\n"
        "Inputs are those of the golden vectors in the file, or of a case folder, or files; with --dim "
        "floats\n"
        "are seeded random numbers and all other inputs have to be given. Where expected outputs are "
        "known the\n"
        "first run is compared with them, for a fast wrong answer is none (--trust leaves that out).\n"
        "With --vs, both runtimes in processes of their own take turns on the same inputs; the ratio is the "
        "other's\n"
        "time over Linnet's, with the interval that holds it at 95 %. Outputs that differ from those of the "
        "other\n"
        "without its optimizations end with exit code 1.\n"
        "With --sweep, alone or with --vs, extents are tried one after the other, by name; rows/s counts "
        "the\n"
        "rows of the first input. A combination that cannot be measured is told and left out.\n"
        "With --kernels, operators by themselves on one thread: all, or those whose line in the table holds "
        "one\n"
        "of the words. The limit is the peak of multiply-adds (four times that for bytes), or copying as "
        "much.",
    .examples = "linnet bench model.lnt\n"
                "linnet bench model.lnt --threads 2 --runs 1000 --json\n"
                "linnet bench model.lnt --dim T=200 --trace\n"
                "linnet bench model.lnt --sweep batch=1,2,4,8 --sweep length=64,256 --range ids=0:30000\n"
                "linnet bench model.lnt --data test_data_set_0 --level scalar\n"
                "linnet bench model.lnt --vs onnxruntime --onnx model.onnx --threads 2 --save ratios.svg\n"
                "linnet bench --kernels conv pool --level avx2",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_model = true,
    .run = run,
};
