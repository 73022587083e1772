/* duel_report.c — results of the paired benchmark, as tables or JSON. */
#include "cli/measure/duel.h"
#include "cli/shell/json.h"
#include "cli/shell/table.h"

#include <inttypes.h>

static void json_comparison(lnt_json *j, const char *key, const lnt_comparison *c)
{
    lnt_json_begin(j, key, '{');
    lnt_json_bool(j, "pass", c->pass);
    lnt_json_number(j, "max_rel", c->relative);
    lnt_json_number(j, "cosine", c->cosine);
    lnt_json_text(j, "reason", *c->reason ? c->reason : NULL);
    lnt_json_end(j, '}');
}

static void json_side(lnt_json *j, const char *key, const lnt_paired_side *s)
{
    lnt_json_begin(j, key, '{');
    lnt_json_text(j, "version", s->reply.version);
    lnt_json_int(j, "model_bytes", (int64_t)s->model_bytes);
    lnt_json_int(j, "library_bytes", (int64_t)s->reply.library_bytes);
    lnt_json_number(j, "library_us", s->library * 1e6);
    lnt_json_number(j, "load_us", s->load * 1e6);
    lnt_json_number(j, "load_cold_us", s->load_cold * 1e6);
    lnt_json_number(j, "first_us", s->first * 1e6);
    lnt_json_number(j, "start_us", s->start * 1e6);
    lnt_json_number(j, "start_cold_us", s->start_cold * 1e6);
    lnt_json_number(j, "min_us", s->min * 1e6);
    lnt_json_number(j, "p50_us", s->p50 * 1e6);
    lnt_json_number(j, "p95_us", s->p95 * 1e6);
    lnt_json_number(j, "mean_us", s->mean * 1e6);
    lnt_json_number(j, "std_us", s->std * 1e6);
    lnt_json_number(j, "cpu_us", s->cpu * 1e6);
    lnt_json_int(j, "base_kib", (int64_t)s->reply.base);
    lnt_json_int(j, "rss_kib", (int64_t)s->reply.peak);
    lnt_json_int(j, "dirty_kib", (int64_t)s->reply.dirty);
    lnt_json_int(j, "arena_bytes", (int64_t)s->reply.arena);
    lnt_json_end(j, '}');
}

static void print_json(const lnt_paired_options *o, const lnt_paired *d)
{
    lnt_json j = {.out = stdout};
    lnt_json_begin(&j, NULL, '{');
    lnt_json_number(&j, "ratio", d->ratio);
    lnt_json_number(&j, "ratio_low", d->low);
    lnt_json_number(&j, "ratio_high", d->high);
    lnt_json_number(&j, "cpu_ratio", d->cpu_ratio);
    lnt_json_bool(&j, "agree", d->agree);
    lnt_json_int(&j, "threads", o->threads);
    lnt_json_text(&j, "level", d->linnet.reply.level);
    lnt_json_int(&j, "rounds", o->rounds);
    lnt_json_int(&j, "processes", o->processes);
    json_side(&j, "linnet", &d->linnet);
    json_side(&j, "onnxruntime", &d->ort);
    lnt_json_begin(&j, "outputs", '[');
    for (uint32_t i = 0; i < d->n_outputs; i++) {
        lnt_json_begin(&j, NULL, '{');
        lnt_json_text(&j, "output", d->output[i].name);
        json_comparison(&j, "plain", &d->output[i].plain);
        json_comparison(&j, "optimized", &d->output[i].optimized);
        lnt_json_end(&j, '}');
    }
    lnt_json_end(&j, ']');
    lnt_json_end(&j, '}');
}

static void row_head(lnt_table *t, const char *what)
{
    lnt_table_cell(t, "%s", what);
}

static void row_ratio(lnt_table *t, double linnet, double ort)
{
    if (linnet > 0 && ort > 0)
        lnt_table_cell(t, "%.2f", ort / linnet);
    else
        lnt_table_cell(t, "-");
}

static void row_time(lnt_table *t, const char *what, double linnet, double ort)
{
    char text[24];
    row_head(t, what);
    lnt_table_cell(t, "%s", lnt_time_text(linnet, text));
    lnt_table_cell(t, "%s", lnt_time_text(ort, text));
    row_ratio(t, linnet, ort);
}

static void row_size(lnt_table *t, const char *what, uint64_t linnet, uint64_t ort)
{
    char text[24];
    row_head(t, what);
    lnt_table_cell(t, "%s", lnt_size_text(linnet, text));
    lnt_table_cell(t, "%s", lnt_size_text(ort, text));
    row_ratio(t, (double)linnet, (double)ort);
}

/* What the processes tell that are started for it. */
static void row_starts(lnt_table *t, const lnt_paired_side *a, const lnt_paired_side *b)
{
    row_time(t, "open library", a->library, b->library);
    row_time(t, "load", a->load, b->load);
    row_time(t, "load, cold", a->load_cold, b->load_cold);
    row_time(t, "first run", a->first, b->first);
    row_time(t, "start to output", a->start, b->start);
    row_time(t, "start, cold", a->start_cold, b->start_cold);
}

static void row_memory(lnt_table *t, const lnt_paired_side *a, const lnt_paired_side *b)
{
    row_size(t, "peak memory", a->reply.peak * 1024, b->reply.peak * 1024);
    row_size(t, "without process", (a->reply.peak - a->reply.base) * 1024,
             (b->reply.peak - b->reply.base) * 1024);
    row_size(t, "private dirty", a->reply.dirty * 1024, b->reply.dirty * 1024);
}

static void print_outputs(const lnt_paired *d)
{
    static const char *const heads[] = {"output", "largest error", "cosine", "", "optimized", "cosine", ""};
    lnt_table t;
    lnt_table_begin(&t, "lrrlrrl", heads);
    for (uint32_t i = 0; i < d->n_outputs; i++) {
        const lnt_comparison *c[2] = {&d->output[i].plain, &d->output[i].optimized};
        row_head(&t, d->output[i].name);
        for (int k = 0; k < 2; k++) {
            lnt_table_cell(&t, "%.1e", c[k]->relative);
            lnt_table_cell(&t, "%.9f", c[k]->cosine);
            lnt_table_cell(&t, "%s", c[k]->pass ? "agrees" : c[k]->reason);
        }
    }
    fputc('\n', stdout);
    lnt_table_print(&t, stdout);
}

static void print_tables(const lnt_paired_options *o, const lnt_paired *d)
{
    const lnt_paired_side *a = &d->linnet, *b = &d->ort;
    const char *const heads[] = {"", lnt_cli_text("linnet %s", a->reply.version),
                                 lnt_cli_text("onnxruntime %s", b->reply.version), "ratio"};
    lnt_table t;
    lnt_table_begin(&t, "lrrr", heads);
    row_size(&t, "model", a->model_bytes, b->model_bytes);
    row_size(&t, "code and data", a->reply.library_bytes, b->reply.library_bytes);
    if (o->starts)
        row_starts(&t, a, b);
    row_time(&t, "fastest", a->min, b->min);
    row_time(&t, "median", a->p50, b->p50);
    row_time(&t, "95 %", a->p95, b->p95);
    row_time(&t, "processor time", a->cpu, b->cpu);
    if (o->starts)
        row_memory(&t, a, b);
    row_size(&t, "arena", a->reply.arena, b->reply.arena);
    lnt_table_print(&t, stdout);
    print_outputs(d);
    printf("\nratio %.3f, 95 %% interval %.3f to %.3f: %s (%" PRId64 " processes of %" PRId64
           " rounds, %" PRIu32 " threads, %s)\n",
           d->ratio, d->low, d->high,
           d->low > 1    ? "linnet is faster"
           : d->high < 1 ? "onnxruntime is faster"
                         : "no difference shown",
           o->processes, o->rounds, o->threads, a->reply.level);
}

void lnt_paired_print(const lnt_paired_options *o, const lnt_paired *d, bool json)
{
    json ? print_json(o, d) : print_tables(o, d);
}
