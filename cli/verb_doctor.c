/* verb_doctor.c — `linnet doctor`: what this machine has, and whether every kernel computes right on it. */
#include "cli/measure/measure_costs.h"
#include "cli/shell/json.h"
#include "cli/data/model.h"
#include "cli/shell/table.h"
#include "cli/verbs.h"
#include "ops/check/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int64_t seed, floats;
    const char *function;
    bool quick, json, calibrate;
} given = {.seed = 1};

static const lnt_option options[] = {
    {"--seed", "S", LNT_OPTION_COUNT, &given.seed, "of the test data (1)"},
    {"--floats", "N", LNT_OPTION_COUNT, &given.floats,
     "functions over each N-th float instead; 1: all 2^32, about an hour (0: no)"},
    {"--function", "NAME", LNT_OPTION_TEXT, &given.function, "with --floats: this one only, as EXP"},
    {"--quick", NULL, LNT_OPTION_FLAG, &given.quick, "what the machine is, without testing kernels"},
    {"--calibrate", NULL, LNT_OPTION_FLAG, &given.calibrate,
     "measure this machine and print its cost table, some seconds; nothing else"},
    {"--json", NULL, LNT_OPTION_FLAG, &given.json, "print JSON"},
};

static const struct {
    const char *name;
    lnt_status (*check)(lnt_level level, uint64_t seed, lnt_check_report *r);
} checks[] = {
#define X(family) {#family, lnt_check_##family},
    LNT_CHECK_LIST(X)
#undef X
        {NULL, NULL}};

static const char *byte_order(void)
{
    const uint16_t one = 1;
    return *(const uint8_t *)&one ? "little-endian" : "big-endian";
}

typedef struct machine {
    char cpu[128];
    long page;
    uint32_t threads;
    lnt_level best, chosen;
    bool in_order;
} machine;

static machine look(void)
{
    machine m = {.page = sysconf(_SC_PAGESIZE),
                 .threads = lnt_default_threads(),
                 .best = lnt_cpu_best_level(),
                 .chosen = lnt_cpu_level(),
                 .in_order = lnt_cpu_in_order()};
    lnt_cpu_name(m.cpu, sizeof m.cpu);
    return m;
}

static void describe(const machine *m, lnt_json *j)
{
    if (!given.json) {
        printf("linnet %s\ncpu      %s\nthreads  %" PRIu32 "\npages    %ld bytes, %s\nlevels   ",
               lnt_version(), m->cpu, m->threads, m->page, byte_order());
        for (unsigned i = 0; i < LNT_LEVEL_COUNT; i++)
            printf("%s%s", lnt_level_text((lnt_level)i), lnt_cpu_has((lnt_level)i) ? " " : " (not on this CPU) ");
        printf("\nchosen   %s%s%s\n", lnt_level_text(m->chosen),
               m->in_order ? ", for cores that run in order" : "",
               getenv("LINNET_LEVEL") ? " (LINNET_LEVEL is set)" : "");
        return;
    }
    lnt_json_text(j, "version", lnt_version());
    lnt_json_text(j, "cpu", m->cpu);
    lnt_json_int(j, "threads", m->threads);
    lnt_json_int(j, "page_bytes", m->page);
    lnt_json_text(j, "byte_order", byte_order());
    lnt_json_begin(j, "levels", '[');
    for (unsigned i = 0; i <= m->best; i++)
        if (lnt_cpu_has((lnt_level)i))
            lnt_json_text(j, NULL, lnt_level_text((lnt_level)i));
    lnt_json_end(j, ']');
    lnt_json_text(j, "chosen", lnt_level_text(m->chosen));
    lnt_json_bool(j, "in_order", m->in_order);
}

static void check_row(lnt_table *t, lnt_json *j, const char *kernels, lnt_level level,
                      const lnt_check_report *r, lnt_status status)
{
    const char *verdict = status == LNT_OK ? "pass" : r->first[0] ? r->first : lnt_status_text(status);
    if (!given.json) {
        lnt_table_cell(t, "%s", kernels);
        lnt_table_cell(t, "%s", lnt_level_text(level));
        lnt_table_cell(t, "%" PRIu64, r->cases);
        lnt_table_cell(t, "%.3f", r->worst);
        lnt_table_cell(t, "%s%s", status == LNT_OK ? "" : "FAIL: ", verdict);
        return;
    }
    lnt_json_begin(j, NULL, '{');
    lnt_json_text(j, "kernels", kernels);
    lnt_json_text(j, "level", lnt_level_text(level));
    lnt_json_int(j, "cases", (int64_t)r->cases);
    lnt_json_int(j, "failures", (int64_t)r->failures);
    lnt_json_number(j, "worst", r->worst);
    lnt_json_bool(j, "pass", status == LNT_OK);
    lnt_json_text(j, "first_failure", r->first[0] ? r->first : NULL);
    lnt_json_end(j, '}');
}

/* Every kernel family at every level the CPU has; the worst exit code of all. */
static int check_kernels(const machine *m, lnt_json *j)
{
    static const char *const heads[] = {"kernels", "level", "cases", "worst/allowed", "verdict"};
    int code = LNT_EXIT_OK;
    lnt_table t;
    lnt_table_begin(&t, "llrrl", heads);
    for (size_t i = 0; checks[i].name; i++)
        for (unsigned level = 0; level <= m->best; level++) {
            if (!lnt_cpu_has((lnt_level)level))
                continue;
            lnt_check_report r = {0};
            const lnt_status status = checks[i].check((lnt_level)level, (uint64_t)given.seed, &r);
            check_row(&t, j, checks[i].name, (lnt_level)level, &r, status);
            if (status != LNT_OK)
                code = status == LNT_E_MEMORY ? LNT_EXIT_RESOURCE : LNT_EXIT_MISMATCH;
        }
    if (!given.json)
        putchar('\n');
    lnt_table_print(&t, given.json ? stderr : stdout);
    return code;
}

typedef struct float_rows {
    lnt_table *table;
    lnt_json *json;
} float_rows;

static void float_row(void *arg, const lnt_float_row *r)
{
    const float_rows *out = arg;
    char at[64];
    snprintf(at, sizeof at, strcmp(r->name, "POW") == 0 ? "%.9g, %.9g" : "%.9g", (double)r->at[0],
             (double)r->at[1]);
    if (!given.json) {
        lnt_table_cell(out->table, "%s", r->name);
        lnt_table_cell(out->table, "%s", lnt_level_text(r->level));
        lnt_table_cell(out->table, "%" PRIu64, r->cases);
        lnt_table_cell(out->table, "%.2f", r->worst);
        lnt_table_cell(out->table, "%.2f", r->allowed);
        lnt_table_cell(out->table, "%s", r->worst > 0 ? at : "");
        lnt_table_cell(out->table, r->failures ? "FAIL: %" PRIu64 : "pass", r->failures);
        return;
    }
    lnt_json_begin(out->json, NULL, '{');
    lnt_json_text(out->json, "function", r->name);
    lnt_json_text(out->json, "level", lnt_level_text(r->level));
    lnt_json_int(out->json, "cases", (int64_t)r->cases);
    lnt_json_int(out->json, "failures", (int64_t)r->failures);
    lnt_json_number(out->json, "worst", r->worst);
    lnt_json_number(out->json, "allowed", r->allowed);
    lnt_json_text(out->json, "at", at);
    lnt_json_bool(out->json, "pass", r->failures == 0);
    lnt_json_end(out->json, '}');
}

static void show_progress(size_t done, size_t total)
{
    lnt_progress_bar("checking", done, total);
}

/* Every function at every level the CPU has, against long double. */
static int check_floats(const machine *m, lnt_json *j)
{
    static const char *const heads[] = {"function", "level", "floats", "worst ulp",
                                        "allowed",  "at",    "verdict"};
    const lnt_floats_options how = {.best = m->best,
                                    .stride = (uint32_t)given.floats,
                                    .only = given.function,
                                    .threads = m->threads,
                                    .progress = isatty(STDERR_FILENO) ? show_progress : NULL};
    lnt_table t;
    lnt_table_begin(&t, "llrrrll", heads);
    const lnt_status status = lnt_check_floats(&how, float_row, &(float_rows){&t, j});
    if (!given.json)
        putchar('\n');
    lnt_table_print(&t, given.json ? stderr : stdout);
    return status == LNT_OK ? LNT_EXIT_OK : status == LNT_E_MEMORY ? LNT_EXIT_RESOURCE : LNT_EXIT_MISMATCH;
}

static int calibrate(void)
{
    lnt_costs costs;
    if (given.json)
        return lnt_usage_error(&lnt_verb_doctor, "--calibrate prints a table, not JSON");
    lnt_costs_measure(&costs);
    lnt_costs_print(&costs, stdout);
    return LNT_EXIT_OK;
}

static int run(const lnt_texts *words)
{
    const machine m = look();
    lnt_json j = {.out = stdout};
    int code = LNT_EXIT_OK;
    if (words->n)
        return lnt_usage_error(&lnt_verb_doctor, "takes no words, only options");
    if (given.floats > UINT32_MAX)
        return lnt_usage_error(&lnt_verb_doctor, "--floats %" PRIi64 ": there are 2^32 floats", given.floats);
    if (given.function && !lnt_has_float_check(given.function))
        return lnt_usage_error(&lnt_verb_doctor,
                               "--function %s is none of ops/elementwise/program_list.h's, of one number, or POW",
                               given.function);
    if (given.calibrate)
        return calibrate();
    if (given.json)
        lnt_json_begin(&j, NULL, '{');
    describe(&m, &j);
    if (given.json)
        lnt_json_begin(&j, given.floats > 0 ? "functions" : "checks", '[');
    if (!given.quick)
        code = given.floats > 0 ? check_floats(&m, &j) : check_kernels(&m, &j);
    if (given.json) {
        lnt_json_end(&j, ']');
        lnt_json_bool(&j, "pass", code == LNT_EXIT_OK);
        lnt_json_end(&j, '}');
    }
    return code;
}

const lnt_verb lnt_verb_doctor = {
    .name = "doctor",
    .summary = "what this machine has, and do all kernels compute right on it?",
    .usage = "[options]",
    .text =
        "Prints the CPU, the instruction-set levels this build holds and the one it would choose, then runs\n"
        "every kernel of every level the CPU has against the scalar reference. The environment variable\n"
        "LINNET_LEVEL lowers the level chosen; nothing raises it past what the CPU has.\n"
        "With --floats it holds every function against long double instead, in units in the last place.\n"
        "--calibrate measures products of floats and bytes at each level, reading from each cache, and what\n"
        "threads cost, for `convert --int8 auto --board FILE` and `make BOARD=NAME COSTS=FILE`.",
    .examples = "linnet doctor\n"
                "linnet doctor --quick\n"
                "linnet doctor --calibrate > my-board.costs\n"
                "LINNET_LEVEL=scalar linnet doctor --json",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
