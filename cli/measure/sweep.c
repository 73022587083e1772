/* sweep.c — the combinations of a sweep, and what was measured of them as a table, JSON and CSV. */
#include "cli/measure/sweep.h"

#include "cli/data/model.h"
#include "cli/data/target.h"
#include "cli/shell/json.h"
#include "cli/shell/table.h"
#include "formats/lnt_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "1,2,4" as numbers; false for what is no such list. */
static bool read_values(const char *text, lnt_sweep_axis *axis)
{
    size_t room = 1;
    for (const char *c = text; *c; c++)
        room += *c == ',';
    axis->value = lnt_cli_alloc(room * sizeof *axis->value);
    for (axis->n = 0; axis->n < room; axis->n++) {
        char *end;
        errno = 0;
        axis->value[axis->n] = strtoll(text, &end, 10);
        if (end == text || *text < '0' || *text > '9' || errno || *end != (axis->n + 1 < room ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

static lnt_status read_axis(const char *text, lnt_sweep *s, lnt_error *err)
{
    const char *rest;
    lnt_sweep_axis *axis = &s->axis[s->n_axes];
    LNT_REQUIRE(s->n_axes < LNT_SWEEP_AXES, err, LNT_E_LIMIT, "--sweep: at most %d axes", LNT_SWEEP_AXES);
    LNT_REQUIRE(lnt_split_pair(text, true, &axis->name, &rest) && read_values(rest, axis), err,
                LNT_E_ARGUMENT, "--sweep NAME=N,N,..., not '%s'", text);
    for (size_t i = 0; i < s->n_axes; i++)
        LNT_REQUIRE(strcmp(s->axis[i].name, axis->name) != 0, err, LNT_E_ARGUMENT,
                    "--sweep: %s is there twice", axis->name);
    s->n_axes++;
    LNT_REQUIRE(axis->n <= LNT_SWEEP_ROWS / s->n_rows, err, LNT_E_LIMIT, "--sweep: more than %d combinations",
                LNT_SWEEP_ROWS);
    s->n_rows *= axis->n;
    return LNT_OK;
}

lnt_status lnt_sweep_parse(const lnt_texts *axes, lnt_sweep *s, lnt_error *err)
{
    *s = (lnt_sweep){.n_rows = 1};
    for (size_t i = 0; i < axes->n; i++)
        LNT_TRY(read_axis(axes->item[i], s, err));
    s->row = lnt_cli_alloc(s->n_rows * sizeof *s->row);
    for (size_t i = 0; i < s->n_rows; i++) {
        size_t rest = i;
        for (size_t k = s->n_axes; k-- > 0; rest /= s->axis[k].n)
            s->row[i].extent[k] = s->axis[k].value[rest % s->axis[k].n];
    }
    return LNT_OK;
}

const char *lnt_sweep_text(const lnt_sweep *s, const lnt_sweep_row *row)
{
    const char *text = "";
    for (size_t k = 0; k < s->n_axes; k++)
        text = lnt_cli_text("%s%s%s=%" PRId64, text, k ? ", " : "", s->axis[k].name, row->extent[k]);
    return text;
}

static double throughput(const lnt_sweep_row *row, const lnt_sweep_times *t)
{
    return t->mean > 0 ? (double)row->rows / t->mean : 0;
}

/* ---- a table ---- */

static void cell_times(lnt_table *t, const lnt_sweep_times *times)
{
    char mean[24], std[24];
    lnt_table_cell(t, "%s", lnt_time_text(times->mean, mean));
    lnt_table_cell(t, "%s", lnt_time_text(times->std, std));
}

static void cells_of_row(lnt_table *t, const lnt_sweep *s, const lnt_sweep_row *row)
{
    char text[24];
    for (size_t k = 0; k < s->n_axes; k++)
        lnt_table_cell(t, "%" PRId64, row->extent[k]);
    if (row->error) {
        for (unsigned k = (unsigned)s->n_axes; k < t->columns; k++)
            lnt_table_cell(t, "-");
        return;
    }
    lnt_table_cell(t, "%.1f", throughput(row, &row->linnet));
    cell_times(t, &row->linnet);
    if (s->paired) {
        cell_times(t, &row->ort);
        lnt_table_cell(t, "%.2f", row->ratio);
        lnt_table_cell(t, "%.2f - %.2f%s", row->low, row->high, row->agree ? "" : ", outputs differ");
        return;
    }
    lnt_table_cell(t, "%s", lnt_time_text(row->linnet.p50, text));
    lnt_table_cell(t, "%s", lnt_time_text(row->linnet.min, text));
    lnt_table_cell(t, "%s", lnt_size_text(row->arena_bytes, text));
}

static void print_table(const lnt_sweep *s)
{
    static const char *const alone[] = {"rows/s", "mean", "deviation", "median", "fastest", "arena"},
                             *const paired[] = {"rows/s",    "linnet", "deviation", "onnxruntime",
                                                "deviation", "ratio",  "95 %"};
    const char *const *rest = s->paired ? paired : alone;
    const size_t n = s->paired ? sizeof paired / sizeof *paired : sizeof alone / sizeof *alone;
    const char *heads[LNT_TABLE_COLUMNS];
    char align[LNT_TABLE_COLUMNS + 1] = {0};
    lnt_table t;
    for (size_t k = 0; k < s->n_axes + n; k++) {
        heads[k] = k < s->n_axes ? s->axis[k].name : rest[k - s->n_axes];
        align[k] = 'r';
    }
    lnt_table_begin(&t, align, heads);
    for (size_t i = 0; i < s->n_rows; i++)
        cells_of_row(&t, s, &s->row[i]);
    lnt_table_print(&t, stdout);
}

/* ---- JSON ---- */

static void json_times(lnt_json *j, const char *key, const lnt_sweep_row *row, const lnt_sweep_times *t)
{
    lnt_json_begin(j, key, '{');
    lnt_json_number(j, "rows_per_second", throughput(row, t));
    lnt_json_number(j, "mean_us", t->mean * 1e6);
    lnt_json_number(j, "std_us", t->std * 1e6);
    lnt_json_number(j, "p50_us", t->p50 * 1e6);
    lnt_json_number(j, "min_us", t->min * 1e6);
    lnt_json_end(j, '}');
}

static void json_row(lnt_json *j, const lnt_sweep *s, const lnt_sweep_row *row)
{
    lnt_json_begin(j, NULL, '{');
    lnt_json_begin(j, "extents", '{');
    for (size_t k = 0; k < s->n_axes; k++)
        lnt_json_int(j, s->axis[k].name, row->extent[k]);
    lnt_json_end(j, '}');
    lnt_json_text(j, "error", row->error);
    if (!row->error) {
        lnt_json_int(j, "rows", row->rows);
        json_times(j, "linnet", row, &row->linnet);
        lnt_json_int(j, "arena_bytes", (int64_t)row->arena_bytes);
    }
    if (!row->error && s->paired) {
        json_times(j, "onnxruntime", row, &row->ort);
        lnt_json_number(j, "ratio", row->ratio);
        lnt_json_number(j, "ratio_low", row->low);
        lnt_json_number(j, "ratio_high", row->high);
        lnt_json_bool(j, "agree", row->agree);
    }
    lnt_json_end(j, '}');
}

static void write_json(const lnt_sweep *s, FILE *out)
{
    lnt_json j = {.out = out};
    lnt_json_begin(&j, NULL, '[');
    for (size_t i = 0; i < s->n_rows; i++)
        json_row(&j, s, &s->row[i]);
    lnt_json_end(&j, ']');
}

void lnt_sweep_print(const lnt_sweep *s, bool json)
{
    json ? write_json(s, stdout) : print_table(s);
}

/* ---- CSV (RFC 4180) ---- */

static void csv_text(const char *text, FILE *out)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void csv_times(const lnt_sweep_row *row, const lnt_sweep_times *t, FILE *out)
{
    if (row->error)
        fputs(",,,,,", out);
    else
        fprintf(out, ",%.9g,%.9g,%.9g,%.9g,%.9g", throughput(row, t), t->mean * 1e6, t->std * 1e6,
                t->p50 * 1e6, t->min * 1e6);
}

static void write_csv(const lnt_sweep *s, FILE *out)
{
    for (size_t k = 0; k < s->n_axes; k++) {
        csv_text(s->axis[k].name, out);
        fputc(',', out);
    }
    fputs("rows,rows_per_second,mean_us,std_us,p50_us,min_us", out);
    if (s->paired)
        fputs(",ort_rows_per_second,ort_mean_us,ort_std_us,ort_p50_us,ort_min_us,ratio,ratio_low,ratio_high,"
              "agree",
              out);
    fputs(",arena_bytes,error\r\n", out);
    for (size_t i = 0; i < s->n_rows; i++) {
        const lnt_sweep_row *row = &s->row[i];
        for (size_t k = 0; k < s->n_axes; k++)
            fprintf(out, "%" PRId64 ",", row->extent[k]);
        if (!row->error)
            fprintf(out, "%" PRId64, row->rows);
        csv_times(row, &row->linnet, out);
        if (s->paired)
            csv_times(row, &row->ort, out);
        if (s->paired && row->error)
            fputs(",,,,", out);
        else if (s->paired)
            fprintf(out, ",%.6g,%.6g,%.6g,%d", row->ratio, row->low, row->high, row->agree);
        fputc(',', out);
        if (!row->error)
            fprintf(out, "%" PRIu64, row->arena_bytes);
        fputc(',', out);
        csv_text(row->error ? row->error : "", out);
        fputs("\r\n", out);
    }
}

/* ---- files ---- */

static void save_csv(const void *s, FILE *out)
{
    write_csv(s, out);
}

static void save_json(const void *s, FILE *out)
{
    write_json(s, out);
}

static void save_chart(const void *s, FILE *out)
{
    lnt_sweep_chart(s, out);
}

static lnt_writer *writer_of(const char *path)
{
    static const struct {
        const char *ending;
        lnt_writer *write;
    } kind[] = {{".csv", save_csv}, {".json", save_json}, {".svg", save_chart}};
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        if (lnt_ends_with(path, kind[i].ending))
            return kind[i].write;
    return NULL;
}

lnt_status lnt_sweep_takes(const char *path, lnt_error *err)
{
    LNT_REQUIRE(writer_of(path), err, LNT_E_ARGUMENT, "--save %s: a sweep is saved as .csv, .json or .svg",
                path);
    return LNT_OK;
}

lnt_status lnt_sweep_save(const lnt_sweep *s, const char *path, lnt_error *err)
{
    return lnt_target_write(path, writer_of(path), s, err);
}
