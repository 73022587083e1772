/* duel_report.c — results of the paired benchmark, as tables or JSON, and into files. */
#include "cli/measure/duel.h"

#include "cli/data/model.h"
#include "cli/data/target.h"
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

static void write_json(const lnt_paired_options *o, const lnt_paired *d, FILE *out)
{
    lnt_json j = {.out = out};
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

static void put_row(lnt_paired_row *row, const char *what, bool size, double linnet, double ort)
{
    *row = (lnt_paired_row){what, size, linnet, ort};
}

static void put_time(lnt_paired_rows *r, const char *what, double linnet, double ort)
{
    put_row(&r->row[r->n++], what, false, linnet, ort);
}

static void put_size(lnt_paired_rows *r, const char *what, uint64_t linnet, uint64_t ort)
{
    put_row(&r->row[r->n++], what, true, (double)linnet, (double)ort);
}

/* What the processes tell that are started for it. */
static void put_starts(lnt_paired_rows *r, const lnt_paired_side *a, const lnt_paired_side *b)
{
    put_time(r, "open library", a->library, b->library);
    put_time(r, "load", a->load, b->load);
    put_time(r, "load, cold", a->load_cold, b->load_cold);
    put_time(r, "first run", a->first, b->first);
    put_time(r, "start to output", a->start, b->start);
    put_time(r, "start, cold", a->start_cold, b->start_cold);
}

static void put_memory(lnt_paired_rows *r, const lnt_paired_side *a, const lnt_paired_side *b)
{
    put_size(r, "peak memory", a->reply.peak * 1024, b->reply.peak * 1024);
    put_size(r, "without process", (a->reply.peak - a->reply.base) * 1024,
             (b->reply.peak - b->reply.base) * 1024);
    put_size(r, "private dirty", a->reply.dirty * 1024, b->reply.dirty * 1024);
}

const char *lnt_paired_text(const lnt_paired_row *row, double value, char text[24])
{
    return row->size ? lnt_size_text((uint64_t)value, text) : lnt_time_text(value, text);
}

void lnt_paired_list(const lnt_paired_options *o, const lnt_paired *d, lnt_paired_rows *r)
{
    const lnt_paired_side *a = &d->linnet, *b = &d->ort;
    r->n = 0;
    put_size(r, "model", a->model_bytes, b->model_bytes);
    put_size(r, "code and data", a->reply.library_bytes, b->reply.library_bytes);
    if (o->starts)
        put_starts(r, a, b);
    put_time(r, "fastest", a->min, b->min);
    put_time(r, "median", a->p50, b->p50);
    put_time(r, "95 %", a->p95, b->p95);
    put_time(r, "processor time", a->cpu, b->cpu);
    if (o->starts)
        put_memory(r, a, b);
    put_size(r, "arena", a->reply.arena, b->reply.arena);
}

static void print_outputs(const lnt_paired *d)
{
    static const char *const heads[] = {"output", "largest error", "cosine", "", "optimized", "cosine", ""};
    lnt_table t;
    lnt_table_begin(&t, "lrrlrrl", heads);
    for (uint32_t i = 0; i < d->n_outputs; i++) {
        const lnt_comparison *c[2] = {&d->output[i].plain, &d->output[i].optimized};
        lnt_table_cell(&t, "%s", d->output[i].name);
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
    lnt_paired_rows r;
    lnt_paired_list(o, d, &r);
    lnt_table_begin(&t, "lrrr", heads);
    for (size_t i = 0; i < r.n; i++) {
        const lnt_paired_row *row = &r.row[i];
        char text[24];
        lnt_table_cell(&t, "%s", row->what);
        lnt_table_cell(&t, "%s", lnt_paired_text(row, row->linnet, text));
        lnt_table_cell(&t, "%s", lnt_paired_text(row, row->ort, text));
        if (row->linnet > 0 && row->ort > 0)
            lnt_table_cell(&t, "%.2f", row->ort / row->linnet);
        else
            lnt_table_cell(&t, "-");
    }
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
    json ? write_json(o, d, stdout) : print_tables(o, d);
}

/* ---- files ---- */

typedef struct result {
    const lnt_paired_options *options;
    const lnt_paired *paired;
} result;

static void save_json(const void *what, FILE *out)
{
    const result *r = what;
    write_json(r->options, r->paired, out);
}

static void save_chart(const void *what, FILE *out)
{
    const result *r = what;
    lnt_paired_chart(r->options, r->paired, out);
}

lnt_status lnt_paired_takes(const char *path, lnt_error *err)
{
    LNT_REQUIRE(lnt_ends_with(path, ".json") || lnt_ends_with(path, ".svg"), err, LNT_E_ARGUMENT,
                "--save %s: a comparison is saved as .json or .svg, a sweep of it as .csv, too", path);
    return LNT_OK;
}

lnt_status lnt_paired_save(const lnt_paired_options *o, const lnt_paired *d, const char *path, lnt_error *err)
{
    return lnt_target_write(path, lnt_ends_with(path, ".svg") ? save_chart : save_json, &(result){o, d}, err);
}
