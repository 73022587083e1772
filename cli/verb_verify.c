/* verb_verify.c — `linnet verify`: does a model compute what its cases say? */
#include "cli/shell/json.h"
#include "cli/data/suite.h"
#include "cli/shell/table.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <string.h>

/* Of the largest magnitude of an output: what nobody notices there, though it is much of an element near zero. */
static const double SHARE = 1e-5;

static struct {
    const char *suite, *names, *level;
    double rtol, atol, max_rel;
    int opt, bake;
    int64_t threads, jobs;
    lnt_texts dims;
    bool json;
} given = {.rtol = -1, .atol = -1, .opt = LNT_OPT_ALL, .bake = LNT_BAKE_NONE, .threads = 1, .jobs = 1};

static const lnt_option options[] = {
    {"--rtol", "R", LNT_OPTION_NUMBER, &given.rtol, "relative error allowed (1e-3)"},
    {"--atol", "A", LNT_OPTION_NUMBER, &given.atol, "absolute error allowed beside it (1e-7)"},
    {"--max-rel", "X", LNT_OPTION_NUMBER, &given.max_rel,
     "instead: error allowed as a share of the output's largest finite magnitude"},
    {"--threads", "N", LNT_OPTION_COUNT, &given.threads, "threads (1); 0: as many as the machine gives"},
    {"--level", "L", LNT_OPTION_TEXT, &given.level, "kernels of this level: scalar, avx2, neon, ... (best)"},
#ifdef LNT_CONVERTER
    {"--opt", "none|basic|all", LNT_OPTION_CHOICE, &given.opt, "how much an .onnx is optimized (all)"},
    {"--bake", "rest|all", LNT_OPTION_CHOICE, &given.bake,
     "make inputs constants before converting an .onnx: all but the first, or all"},
    {"--suite", "DIR", LNT_OPTION_TEXT, &given.suite,
     "every case folder below DIR (model.onnx, test_data_set_*)"},
    {"--names", "FILE", LNT_OPTION_TEXT, &given.names,
     "with --suite: only the cases named in FILE, one a line"},
    {"--jobs", "N", LNT_OPTION_COUNT, &given.jobs, "with --suite: cases at a time (1)"},
#endif
    {"--json", NULL, LNT_OPTION_FLAG, &given.json, "print JSON"},
};

/* Collects what is printed at the end. */
typedef struct sheet {
    lnt_table table;
    lnt_json json;
} sheet;

static void to_table(lnt_table *t, const lnt_case *c, const char *output, const lnt_tensor *got,
                     const lnt_comparison *r)
{
    char dims[128];
    lnt_table_cell(t, "%s", c->name);
    lnt_table_cell(t, "%s", output);
    lnt_table_cell(t, "%s %s", lnt_dtype_text(got->dtype), lnt_dims_text(got->rank, got->dims, dims));
    lnt_table_cell(t, "%.2e", r->error);
    lnt_table_cell(t, "%.2e", r->relative);
    lnt_table_cell(t, r->ulp < 1e5 ? "%.1f" : "%.1e", r->ulp);
    lnt_table_cell(t, "%.9f", r->cosine);
    lnt_table_cell(t, "%s", r->same_argmax ? "same" : "differs");
    if (r->pass && r->by_share)
        lnt_table_cell(t, "pass, %" PRId64 " within %g of the largest", r->by_share, SHARE);
    else
        lnt_table_cell(t, r->pass ? "pass" : "FAIL: %s", r->reason);
}

static void to_json(lnt_json *how, const lnt_case *c, const char *output, const lnt_tensor *got,
                    const lnt_comparison *r)
{
    lnt_json_begin(how, NULL, '{');
    lnt_json_text(how, "case", c->name);
    lnt_json_text(how, "output", output);
    lnt_json_text(how, "dtype", lnt_dtype_text(got->dtype));
    lnt_json_ints(how, "dims", got->dims, got->rank);
    lnt_json_bool(how, "pass", r->pass);
    lnt_json_int(how, "elements", r->count);
    lnt_json_int(how, "wrong", r->wrong);
    lnt_json_int(how, "passed_by_share", r->by_share);
    lnt_json_int(how, "worst_element", r->worst);
    lnt_json_number(how, "worst_got", r->got);
    lnt_json_number(how, "worst_expected", r->want);
    lnt_json_number(how, "max_abs", r->error);
    lnt_json_number(how, "max_rel", r->relative);
    lnt_json_number(how, "max_ulp", r->ulp);
    lnt_json_number(how, "cosine", r->cosine);
    lnt_json_bool(how, "same_argmax", r->same_argmax);
    lnt_json_text(how, "reason", r->pass ? NULL : r->reason);
    lnt_json_end(how, '}');
}

static void note(void *arg, const lnt_case *c, const char *output, const lnt_tensor *got,
                 const lnt_comparison *r)
{
    sheet *s = arg;
    if (given.json)
        to_json(&s->json, c, output, got, r);
    else
        to_table(&s->table, c, output, got, r);
}

/* The suite has its own rule; so has who gives one. */
static lnt_rule rule_from_words(void)
{
    lnt_rule rule = LNT_RULE_SUITE;
    if (given.rtol < 0 && given.atol < 0 && !given.suite)
        rule.share = SHARE;
    rule.rtol = given.rtol < 0 ? rule.rtol : given.rtol;
    rule.atol = given.atol < 0 ? rule.atol : given.atol;
    rule.max_rel = given.max_rel;
    return rule;
}

static lnt_verify_options options_from_words(void)
{
    return (lnt_verify_options){.rule = rule_from_words(),
                                .convert = {.opt = (lnt_opt)given.opt},
                                .bake = (lnt_bake)given.bake,
                                .case_extents = given.suite != NULL,
                                .threads = (uint32_t)given.threads,
                                .level = given.level};
}

static lnt_status verify_lnt(const lnt_verify_options *how, const char *path, const lnt_texts *folders,
                             lnt_cases *cases, lnt_verdict *verdict, char reason[256], lnt_error *err)
{
    lnt_opened o;
    LNT_TRY(lnt_opened_open(path, NULL, LNT_LOAD_FULL, &o, err));
    lnt_status status = lnt_opened_file(&o, err);
    if (status == LNT_OK)
        status = folders->n ? lnt_cases_read(folders, cases, err) : lnt_cases_golden(&o, cases, err);
    if (status == LNT_OK && !cases->n)
        status = lnt_fail(err, LNT_E_NOT_FOUND, "%s has no golden vectors; name case folders", path);
    if (status == LNT_OK)
        status = lnt_verify_cases(how, &o, cases, verdict, reason, err);
    lnt_opened_close(&o);
    return status;
}

static lnt_status verify_onnx(const lnt_verify_options *how, const char *path, lnt_texts *folders,
                              lnt_cases *cases, lnt_verdict *verdict, char reason[256], lnt_error *err)
{
    if (!folders->n) {
        const char *slash = strrchr(path, '/');
        LNT_TRY(
            lnt_case_folders(slash ? lnt_cli_text("%.*s", (int)(slash - path), path) : ".", folders, err));
    }
    if (!folders->n) { /* of two mistakes the file itself is told first */
        lnt_opened o;
        LNT_TRY(lnt_opened_open(path, &how->convert, 0, &o, err));
        lnt_opened_close(&o);
        return lnt_fail(err, LNT_E_NOT_FOUND, "no test_data_set_* beside %s; name case folders", path);
    }
    LNT_TRY(lnt_cases_read(folders, cases, err));
    return lnt_verify_onnx(how, path, cases, verdict, reason, err);
}

static void begin_sheet(sheet *s)
{
    static const char *const heads[] = {"case", "output", "type",   "worst error", "of largest",
                                        "ULP",  "cosine", "argmax", "verdict"};
    lnt_table_begin(&s->table, "lllrrrrll", heads);
    s->json.out = stdout;
    if (given.json) {
        lnt_json_begin(&s->json, NULL, '{');
        lnt_json_begin(&s->json, "outputs", '[');
    }
}

static void end_sheet(sheet *s, lnt_status status, lnt_verdict verdict)
{
    if (!given.json) {
        lnt_table_print(&s->table, stdout);
        return;
    }
    lnt_json_end(&s->json, ']');
    lnt_json_bool(&s->json, "pass", status == LNT_OK && verdict == LNT_VERDICT_PASS);
    lnt_json_end(&s->json, '}');
}

static int run(const lnt_texts *words)
{
    lnt_verify_options verify = options_from_words();
    if (given.suite) {
        if (words->n)
            return lnt_usage_error(&lnt_verb_verify, "--suite takes no further words");
        return lnt_suite_run(&lnt_verb_verify, &verify, given.suite, given.names, (unsigned)given.jobs);
    }
    if (!words->n)
        return lnt_usage_error(&lnt_verb_verify, "which model?");

    sheet s = {0};
    lnt_error err = {0};
    lnt_cases cases = {0};
    lnt_texts folders = {0};
    lnt_verdict verdict = LNT_VERDICT_PASS;
    char reason[256] = "";
    for (size_t i = 1; i < words->n; i++)
        lnt_texts_add(&folders, words->item[i]);
    verify.report = note;
    verify.arg = &s;
    begin_sheet(&s);
    const lnt_status status =
        lnt_names_onnx(words->item[0])
            ? verify_onnx(&verify, words->item[0], &folders, &cases, &verdict, reason, &err)
            : verify_lnt(&verify, words->item[0], &folders, &cases, &verdict, reason, &err);
    end_sheet(&s, status, verdict);
    lnt_cases_free(&cases);
    if (status != LNT_OK)
        return lnt_failed(&lnt_verb_verify, &err);
    return verdict == LNT_VERDICT_PASS ? LNT_EXIT_OK : LNT_EXIT_MISMATCH;
}

const lnt_verb lnt_verb_verify = {
    .name = "verify",
    .summary = "does a model compute what it should?",
    .usage = "M(.onnx|.lnt) [CASE_DIR ...] [options]"
#ifdef LNT_CONVERTER
             "   |   --suite DIR [--names FILE] [options]"
#endif
    ,
    .text =
        "Runs recorded inputs through a model and compares what comes out with what was recorded.\n"
        "A case is a folder with input_K.pb and output_K.pb, as in the ONNX suite; how long sequences of an\n"
        ".onnx are is read there, with the counts and conditions that it depends on. Without folders these "
        "are\n"
        "the test_data_set_* beside an .onnx, or the golden vectors inside an .lnt: so a device can check\n"
        "itself with nothing but the model file. The whole file's hashes are checked, too.\n"
        "An element passes within atol + rtol * |expected| or, where neither is given, within 1e-5 of the\n"
        "largest finite magnitude of its output (the verdict tells how many); with --max-rel X within X\n"
        "times that magnitude and not otherwise; of the suite, whose rule is ONNX's, within 2^-24 of it, "
        "and\nthe line tells so. NaN passes only against NaN, an infinity only against the\n"
        "same one; integers and bools must be equal. Old suites cut bfloat16, which they keep as uint16: one\n"
        "more in the last place passes. Exit code 1: something differs; 2: nothing to compare with.",
    .examples = "linnet verify model.lnt\n"
                "linnet verify model.lnt --level scalar --threads 2\n"
                "linnet verify model.onnx --opt none --max-rel 1e-4\n"
                "linnet verify model.onnx recorded/case1 recorded/case2 --json"
#ifdef LNT_CONVERTER
                "\nlinnet verify --suite onnx/backend/test/data/node --bake rest --jobs 2"
#endif
    ,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_model = true,
    .run = run,
};
