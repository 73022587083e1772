/* verb_convert.c — `linnet convert`: an ONNX model becomes an .lnt. */
#include "cli/data/calibrate.h"
#include "cli/measure/measure_costs.h"
#include "cli/shell/json.h"
#include "cli/data/model.h"
#include "cli/data/target.h"
#include "cli/shell/table.h"
#include "cli/verbs.h"
#include "convert/quantize/quantize_blocks.h"
#ifdef LNT_SPEECH
#include "speech/read_json.h"
#include "speech/voice_config.h"
#endif

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *output, *report, *board, *memory_limit, *config, *stream;
    int opt, int8, method, precision;
    double min_snr, winograd_budget;
    int64_t block;
    lnt_texts dims, lengths, states, keep, overridable, custom, golden, meta, attach, calibrate, in_float,
        measure;
    bool json, winograd, int4;
} given = {.opt = LNT_OPT_ALL, .method = LNT_RANGE_BEST, .min_snr = -1, .winograd_budget = -1, .block = -1};

static const lnt_option options[] = {
    {"-o", "M.lnt", LNT_OPTION_TEXT, &given.output, "file to write (the model's name with .lnt)"},
    {"--opt", "none|basic|all", LNT_OPTION_CHOICE, &given.opt, "how much to optimize (all)"},
    {"--dim", "NAME=N", LNT_OPTION_TEXTS, &given.dims,
     "fix an extent, or bound a data-dependent one; INPUT:AXIS=N where it\nhas no name"},
    {"--length", "NAME=N", LNT_OPTION_TEXTS, &given.lengths,
     "an input that is a sequence is N tensors, NAME.0 and on; `none`: an optional\n"
     "holds nothing; a count or condition that sequences depend on is N"},
    {"--state", "OUT=IN", LNT_OPTION_TEXTS, &given.states,
     "output OUT is input IN of the next run; the runtime carries it over"},
    {"--keep", "NAME|all", LNT_OPTION_TEXTS, &given.keep, "keep a value, so that `run --fetch` can print it"},
    {"--overridable", "NAME", LNT_OPTION_TEXTS, &given.overridable,
     "an initializer that becomes an input, listed among the model's or not"},
    {"--custom", "DOMAIN.OP", LNT_OPTION_TEXTS, &given.custom, "an operator that the host program brings"},
    {"--golden", "CASE_DIR", LNT_OPTION_TEXTS, &given.golden,
     "record this case (input_K.pb, output_K.pb) in the file; otherwise the\nunoptimized model is run on "
     "seeded inputs, and where\nthat fails a warning says why"},
    {"--int8", "off|dynamic|auto|static", LNT_OPTION_CHOICE, &given.int8,
     "quantize: weights per channel, activations in each run; static: activations\nover ranges found at "
     "conversion; auto: whichever makes the whole model\nfaster on this machine, or float"},
    {"--int4", NULL, LNT_OPTION_FLAG, &given.int4,
     "quantize: weights of MatMul and Gemm in blocks of 4 bits, activations to 8\nbits in each run; tables "
     "per row"},
    {"--block", "N", LNT_OPTION_COUNT, &given.block,
     "with --int4: weights that share a scale and a zero point, 16, 32, 64, 128\nor 256 (32)"},
    {"--precision", "model|float32|float16|bfloat16|auto", LNT_OPTION_CHOICE, &given.precision,
     "what the file holds weights in; between operators floats stay float32\n(model: what the model's are, "
     "as far "
     "as nothing is rounded; auto: float16 where\nit is worth it)"},
    {"--board", "NAME|FILE", LNT_OPTION_TEXT, &given.board,
     "with --int8 auto: what is faster on this board, by its cost table\n(`linnet doctor --calibrate` makes "
     "one)"},
    {"--min-snr", "DB", LNT_OPTION_NUMBER, &given.min_snr,
     "keep layers in float until every output has this signal-to-noise ratio\n(40 with --precision; with "
     "--int8 31 and with --int4 15 where there are\nrecorded inputs; 0: whatever comes out)"},
    {"--calibrate", "FILE|DIR", LNT_OPTION_TEXTS, &given.calibrate,
     "inputs to find ranges and to measure on: an .npz, .npy, .pb or sound, or a\nfolder of them or of "
     "test_data_set_N"},
    {"--calibration", "minmax|percentile|entropy|mse|best", LNT_OPTION_CHOICE, &given.method,
     "static ranges: all that was seen; without the outermost of ten\nthousand elements; of the least KL "
     "divergence; of the least squared\nerror; what serves the outputs best (best)"},
    {"--float", "NAME", LNT_OPTION_TEXTS, &given.in_float,
     "with --int8, --int4 and --precision: layers of this name stay in float; a pattern,\nas '*/dw/*'"},
    {"--measure", "NAME", LNT_OPTION_TEXTS, &given.measure,
     "with --int8, --int4 and --precision: measure on this inner value, not on outputs"},
    {"--winograd-budget", "PERCENT", LNT_OPTION_NUMBER, &given.winograd_budget,
     "convolutions of 3x3 taps, or of 3 to 16 in a line, by Winograd's transform,\n"
     "those first that save most time for a byte: their weights are up to four\n"
     "times as large, results differ in the sixth digit; until the file has grown\n"
     "by so much (15; 0 with --int8, and then none); other 3x3 taps are\n"
     "transformed in each run, where that is sooner"},
    {"--winograd", NULL, LNT_OPTION_FLAG, &given.winograd, "all of them that are sooner so"},
    {"--memory-limit", "BYTES[K|M|G]", LNT_OPTION_TEXT, &given.memory_limit,
     "memory for the conversion (half of what the machine has to spare)"},
    {"--meta", "K=V", LNT_OPTION_TEXTS, &given.meta, "metadata"},
    {"--attach", "NAME=FILE", LNT_OPTION_TEXTS, &given.attach,
     "put a file in, as a lexicon=FILE of `make lexicon` for a voice"},
#ifdef LNT_SPEECH
    {"--config", "FILE", LNT_OPTION_TEXT, &given.config,
     "of a voice of Piper's, its .onnx.json: `say` needs no other file then"},
#endif
    {"--stream", "NAME|off", LNT_OPTION_TEXT, &given.stream,
     "of a voice or vocoder: the value that the sound is computed from piece by piece\n(found)"},
    {"--report", "F.json", LNT_OPTION_TEXT, &given.report, "write the report as JSON, too"},
    {"--json", NULL, LNT_OPTION_FLAG, &given.json, "print the report as JSON"},
};

/* NAME=N pairs; false after printing what is wrong. */
static bool take_dims(lnt_convert_options *o)
{
    lnt_named_int *dim = lnt_cli_alloc(given.dims.n * sizeof *dim);
    for (size_t i = 0; i < given.dims.n; i++)
        if (!lnt_split_count(given.dims.item[i], &dim[i].name, &dim[i].value)) {
            lnt_usage_error(&lnt_verb_convert, "--dim NAME=N, not '%s'", given.dims.item[i]);
            return false;
        }
    o->dim = dim;
    o->n_dims = given.dims.n;
    return true;
}

/* NAME=N and NAME=none pairs; false after printing what is wrong. */
static bool take_lengths(lnt_convert_options *o)
{
    lnt_named_int *length = lnt_cli_alloc(given.lengths.n * sizeof *length);
    for (size_t i = 0; i < given.lengths.n; i++) {
        const char *rest;
        if (lnt_split_count(given.lengths.item[i], &length[i].name, &length[i].value))
            continue;
        if (!lnt_split_pair(given.lengths.item[i], true, &length[i].name, &rest) ||
            strcmp(rest, "none") != 0) {
            lnt_usage_error(&lnt_verb_convert, "--length NAME=N, not '%s'", given.lengths.item[i]);
            return false;
        }
        length[i].value = LNT_LENGTH_NONE;
    }
    o->length = length;
    o->n_lengths = given.lengths.n;
    return true;
}

static bool take_pairs(const lnt_texts *texts, const char *option, const lnt_named_text **pairs, size_t *n)
{
    lnt_named_text *pair = lnt_cli_alloc(texts->n * sizeof *pair);
    for (size_t i = 0; i < texts->n; i++)
        if (!lnt_split_pair(texts->item[i], false, &pair[i].name, &pair[i].text)) {
            lnt_usage_error(&lnt_verb_convert, "%s, not '%s'", option, texts->item[i]);
            return false;
        }
    *pairs = pair;
    *n = texts->n;
    return true;
}

/* A number of bytes with a unit or without; false after printing what is wrong. */
static bool take_limit(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMG";
    char *end = NULL;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (*text < '0' || *text > '9' || errno || !n || (*end && (!unit || end[1])) || n > UINT64_MAX >> shift) {
        lnt_usage_error(&lnt_verb_convert, "--memory-limit BYTES[K|M|G], not '%s'", text);
        return false;
    }
    *bytes = (uint64_t)n << shift;
    return true;
}

/* Of lnt_convert_options. */
static double winograd_budget(void)
{
    if (given.winograd)
        return INFINITY;
    const double percent = given.winograd_budget;
    return percent < 0 ? 0 : percent > 0 ? percent : -1;
}

#ifdef LNT_SPEECH
/* Adds a voice's configuration to the metadata; one that `say` could not use is an error here. */
static lnt_status take_config(lnt_convert_options *o, lnt_error *err)
{
    lnt_named_text *meta = lnt_cli_alloc((o->n_meta + 1) * sizeof *meta);
    lnt_bump memory;
    lnt_voice_config config;
    char *text;
    if (!given.config)
        return LNT_OK;
    LNT_TRY(lnt_read_text(given.config, &text, err));
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    const lnt_status status = lnt_voice_config_read(text, strlen(text), &memory, &config, err);
    lnt_bump_free(&memory);
    if (status != LNT_OK)
        lnt_error_prefix(err, "%s: ", given.config);
    LNT_TRY(status);
    text[lnt_json_squeeze(text, strlen(text))] = '\0';
    if (o->n_meta)
        memcpy(meta, o->meta, o->n_meta * sizeof *meta);
    meta[o->n_meta++] = (lnt_named_text){LNT_VOICE_CONFIG_KEY, text};
    o->meta = meta;
    return LNT_OK;
}
#else
static lnt_status take_config(lnt_convert_options *o, lnt_error *err)
{
    (void)o;
    (void)err;
    return LNT_OK;
}
#endif

/* The files stay mapped as long as the program runs. */
static lnt_status take_attachments(lnt_convert_options *o, lnt_error *err)
{
    const size_t n = given.attach.n;
    lnt_named_text *pair = lnt_cli_alloc(n * sizeof *pair);
    lnt_named_bytes *to = lnt_cli_alloc(n * sizeof *to);
    for (size_t i = 0; i < n; i++)
        LNT_REQUIRE(lnt_split_pair(given.attach.item[i], false, &pair[i].name, &pair[i].text), err,
                    LNT_E_ARGUMENT, "--attach NAME=FILE, not '%s'", given.attach.item[i]);
    for (size_t i = 0; i < n; i++) {
        lnt_blob blob;
        for (size_t k = 0; k < i; k++)
            LNT_REQUIRE(strcmp(pair[k].name, pair[i].name) != 0, err, LNT_E_ARGUMENT, "--attach %s twice",
                        pair[i].name);
        LNT_TRY(lnt_blob_open(pair[i].text, false, &lnt_malloc_allocator, &blob, err));
        to[i] = (lnt_named_bytes){pair[i].name, blob.bytes, blob.size};
    }
    o->attach = to;
    o->n_attach = n;
    return LNT_OK;
}

static bool take_options(lnt_convert_options *o)
{
    *o = (lnt_convert_options){.opt = (lnt_opt)given.opt,
                               .measure = given.measure.item,
                               .n_measure = given.measure.n,
                               .overridable = given.overridable.item,
                               .n_overridable = given.overridable.n,
                               .custom = given.custom.item,
                               .n_custom = given.custom.n,
                               .golden = given.golden.item,
                               .precision = (lnt_precision)given.precision,
                               .winograd_budget = winograd_budget(),
                               .stream = given.stream,
                               .reference_golden = true,
                               .n_golden = given.golden.n};
    const char **keep = lnt_cli_alloc(given.keep.n * sizeof *keep);
    for (size_t i = 0; i < given.keep.n; i++)
        if (strcmp(given.keep.item[i], "all") == 0)
            o->keep_all = true;
        else
            keep[o->n_keep++] = given.keep.item[i];
    o->keep = keep;
    if (given.memory_limit && !take_limit(given.memory_limit, &o->memory_limit))
        return false;
    return take_dims(o) && take_lengths(o) &&
           take_pairs(&given.states, "--state OUT=IN", &o->state, &o->n_states) &&
           take_pairs(&given.meta, "--meta K=V", &o->meta, &o->n_meta);
}

/* A figure that was measured, or null. */
static void json_measured(lnt_json *j, const char *name, double x)
{
    lnt_json_number(j, name, x < 0 ? NAN : x);
}

/* Of the layers' multiplications, those in int8; negative where nothing was counted. */
static double share_of_int8(const lnt_report *r)
{
    double all = 0, int8 = 0;
    for (size_t i = 0; i < r->n_quantized; i++) {
        const double n = fmax(r->quantized[i].multiplications, 0);
        all += n;
        int8 += r->quantized[i].int8 ? n : 0;
    }
    return all > 0 ? int8 / all : -1;
}

/* Bytes of the layer's weights; those of float ones may be half as many in the file. */
static uint64_t bytes_now(const lnt_quantized *q)
{
    return q->int8 || q->narrow || q->half ? q->after : q->before;
}

static void json_outputs(lnt_json *j, const lnt_report *r)
{
    lnt_json_begin(j, "outputs", '[');
    for (size_t i = 0; i < r->n_output_errors; i++) {
        const lnt_output_error *e = &r->output_error[i];
        lnt_json_begin(j, NULL, '{');
        lnt_json_text(j, "output", e->output);
        lnt_json_text(j, "not_measurable", e->unmeasurable);
        lnt_json_number(j, "snr_db", e->unmeasurable ? NAN : e->snr);
        lnt_json_number(j, "max_error", e->unmeasurable ? NAN : e->max_error);
        lnt_json_number(j, "largest", e->largest);
        lnt_json_end(j, '}');
    }
    lnt_json_end(j, ']');
}

static void json_precision(lnt_json *j, const lnt_report *r)
{
    lnt_json_begin(j, "precision", '{');
    lnt_json_text(j, "type", lnt_dtype_text(r->precision));
    lnt_json_text(j, "measured_on", r->trial_inputs ? r->trial_inputs : "");
    json_outputs(j, r);
    lnt_json_begin(j, "layers", '[');
    for (size_t i = 0; i < r->n_quantized; i++) {
        const lnt_quantized *q = &r->quantized[i];
        lnt_json_begin(j, NULL, '{');
        lnt_json_text(j, "node", q->node);
        lnt_json_text(j, "op", q->op);
        lnt_json_text(j, "weights", lnt_dtype_text(q->half ? r->precision : LNT_FLOAT));
        lnt_json_text(j, "why", q->why ? q->why : "");
        lnt_json_int(j, "bytes_before", (int64_t)q->before);
        lnt_json_int(j, "bytes_after", (int64_t)bytes_now(q));
        lnt_json_end(j, '}');
    }
    lnt_json_end(j, ']');
    lnt_json_end(j, '}');
}

static void json_layer(lnt_json *j, const lnt_quantized *q)
{
    lnt_json_begin(j, NULL, '{');
    lnt_json_text(j, "node", q->node);
    lnt_json_text(j, "op", q->op);
    if (given.int4)
        lnt_json_int(j, "bits", q->bits ? q->bits : 32);
    else
        lnt_json_bool(j, "int8", q->int8);
    lnt_json_text(j, "why", q->why ? q->why : "");
    lnt_json_int(j, "bytes_before", (int64_t)q->before);
    lnt_json_int(j, "bytes_after", (int64_t)bytes_now(q));
    json_measured(j, "multiplications", q->multiplications);
    json_measured(j, "snr_db", q->snr);
    json_measured(j, "float_us", q->plain_us);
    json_measured(j, given.int4 ? "int4_us" : "int8_us", q->int8_us);
    lnt_json_end(j, '}');
}

static void json_quantized(lnt_json *j, const lnt_report *r)
{
    lnt_json_begin(j, given.int4 ? "int4" : "int8", '{');
    lnt_json_text(j, "measured_on", r->trial_inputs ? r->trial_inputs : "");
    lnt_json_int(j, "inputs_measured", (int64_t)r->measured_on);
    lnt_json_int(j, "inputs_calibrated", (int64_t)r->calibrated_on);
    json_measured(j, "multiplications_in_int8", share_of_int8(r));
    json_outputs(j, r);
    lnt_json_begin(j, "forms", '[');
    for (size_t i = 0; i < r->n_forms; i++) {
        lnt_json_begin(j, NULL, '{');
        lnt_json_text(j, "form", r->form[i].form);
        lnt_json_bool(j, "chosen", r->form[i].chosen);
        lnt_json_number(j, "one_thread_us", r->form[i].us[0]);
        lnt_json_number(j, "all_threads_us", r->form[i].us[1]);
        lnt_json_end(j, '}');
    }
    lnt_json_end(j, ']');
    lnt_json_begin(j, "layers", '[');
    for (size_t i = 0; i < r->n_quantized; i++)
        json_layer(j, &r->quantized[i]);
    lnt_json_end(j, ']');
    lnt_json_end(j, '}');
}

static void report_json(const lnt_report *r, FILE *out)
{
    lnt_json j = {.out = out};
    lnt_json_begin(&j, NULL, '{');
    lnt_json_int(&j, "onnx_bytes", (int64_t)r->onnx_bytes);
    lnt_json_int(&j, "lnt_bytes", (int64_t)r->lnt_bytes);
    lnt_json_int(&j, "constant_bytes", (int64_t)r->constant_bytes);
    lnt_json_int(&j, "packed_bytes", (int64_t)r->packed_bytes);
    lnt_json_int(&j, "winograd_bytes", (int64_t)r->winograd_bytes);
    lnt_json_number(&j, "winograd_error_bound", r->winograd_error_bound);
    lnt_json_int(&j, "duplicated_bytes", (int64_t)r->duplicated_bytes);
    lnt_json_int(&j, "nodes_before", r->nodes_before);
    lnt_json_int(&j, "nodes_after", r->nodes_after);
    lnt_json_int(&j, "relayouts", r->relayouts);
    lnt_json_text(&j, "no_golden_vectors", r->no_golden);
    lnt_json_text(&j, "stream", r->stream);
    lnt_json_begin(&j, "passes", '[');
    for (size_t i = 0; i < r->n_passes; i++) {
        lnt_json_begin(&j, NULL, '{');
        lnt_json_text(&j, "pass", r->pass[i].pass);
        lnt_json_text(&j, "what", r->pass[i].what);
        lnt_json_int(&j, "count", r->pass[i].count);
        lnt_json_end(&j, '}');
    }
    lnt_json_end(&j, ']');
    if (r->precision)
        json_precision(&j, r);
    else if (r->n_quantized)
        json_quantized(&j, r);
    lnt_json_begin(&j, "unsupported", '[');
    for (size_t i = 0; i < r->n_unsupported; i++) {
        const lnt_unsupported *u = &r->unsupported[i];
        lnt_json_begin(&j, NULL, '{');
        lnt_json_text(&j, "node", u->node);
        lnt_json_text(&j, "domain", u->domain);
        lnt_json_text(&j, "op", u->op);
        lnt_json_int(&j, "opset", u->opset);
        lnt_json_text(&j, "reason", u->reason);
        lnt_json_end(&j, '}');
    }
    lnt_json_end(&j, ']');
    lnt_json_end(&j, '}');
}

static void print_unsupported(const lnt_report *r)
{
    static const char *const heads[] = {"node", "operator", "opset", "reason"};
    lnt_table t;
    lnt_table_begin(&t, "llrl", heads);
    for (size_t i = 0; i < r->n_unsupported; i++) {
        const lnt_unsupported *u = &r->unsupported[i];
        lnt_table_cell(&t, "%s", u->node);
        lnt_table_cell(&t, "%s%s%s", u->domain, *u->domain ? "." : "", u->op);
        lnt_table_cell(&t, "%" PRId64, u->opset);
        lnt_table_cell(&t, "%s", u->reason);
    }
    fprintf(stderr, "%zu node%s not supported:\n", r->n_unsupported, r->n_unsupported == 1 ? " is" : "s are");
    lnt_table_print(&t, stderr);
}

/* A figure that was measured, or a dash. */
static void measured_cell(lnt_table *t, const char *format, double x)
{
    if (x < 0)
        lnt_table_cell(t, "-");
    else
        lnt_table_cell(t, format, x);
}

/* Weights before and after, what is computed in int8, and from how many samples. */
static void print_sums(const lnt_report *r)
{
    char a[24], b[24];
    uint64_t before = 0, after = 0;
    const double share = share_of_int8(r);
    for (size_t i = 0; i < r->n_quantized; i++) {
        before += r->quantized[i].before;
        after += bytes_now(&r->quantized[i]);
    }
    printf("\nweights %s, before %s", lnt_size_text(after, a), lnt_size_text(before, b));
    if (share >= 0)
        printf("; %.1f %% of their multiplications in INT8", 100 * share);
    putchar('\n');
    if (r->calibrated_on)
        printf("ranges from %zu input%s, measured on %zu\n", r->calibrated_on,
               r->calibrated_on == 1 ? "" : "s", r->measured_on);
}

static void print_outputs(const lnt_report *r)
{
    size_t blind = 0;
    for (size_t i = 0; i < r->n_output_errors; i++) {
        const lnt_output_error *e = &r->output_error[i];
        printf("%s %s", e->inner ? "value" : "output", e->output);
        if (e->unmeasurable)
            printf(" %s: not measurable, on %s\n", e->unmeasurable, r->trial_inputs);
        else
            printf(": SNR %.1f dB, largest error %.3g of values up to %.3g, on %s\n", e->snr, e->max_error,
                   e->largest, r->trial_inputs);
        blind += e->unmeasurable != NULL;
    }
    if (blind && blind == r->n_output_errors)
        printf("nothing that could be measured: name inner values with --measure%s\n",
               given.calibrate.n ? "" : ", record inputs with --calibrate");
}

static void print_precision(const lnt_report *r)
{
    static const char *const heads[] = {"layer", "operator", "weights in", "bytes now", "kept in float for"};
    lnt_table t;
    char text[24];
    putchar('\n');
    lnt_table_begin(&t, "lllrl", heads);
    for (size_t i = 0; i < r->n_quantized; i++) {
        const lnt_quantized *q = &r->quantized[i];
        lnt_table_cell(&t, "%s", q->node);
        lnt_table_cell(&t, "%s", q->op);
        lnt_table_cell(&t, "%s", lnt_dtype_text(q->half ? r->precision : LNT_FLOAT));
        lnt_table_cell(&t, "%s", lnt_size_text(bytes_now(q), text));
        lnt_table_cell(&t, "%s", q->why ? q->why : "");
    }
    lnt_table_print(&t, stdout);
    if (!r->trial_inputs)
        printf(
            "\nthe rounding was not measured: the model does not run on seeded inputs (%s); give some with "
            "--calibrate\n",
            r->trial_failure);
    print_sums(r);
    print_outputs(r);
}

/* The whole model in the forms that --int8 auto has tried. */
static void print_forms(const lnt_report *r)
{
    static const char *const heads[] = {"whole model", "one thread us", "all threads us", ""};
    lnt_table t;
    putchar('\n');
    lnt_table_begin(&t, "lrrl", heads);
    for (size_t i = 0; i < r->n_forms; i++) {
        lnt_table_cell(&t, "%s", r->form[i].form);
        lnt_table_cell(&t, "%.1f", r->form[i].us[0]);
        lnt_table_cell(&t, "%.1f", r->form[i].us[1]);
        lnt_table_cell(&t, "%s", r->form[i].chosen ? "taken" : "");
    }
    lnt_table_print(&t, stdout);
}

static void print_quantized(const lnt_report *r)
{
    const char *const heads[] = {"layer",       "operator",         "in",
                                 "weights now", "SNR dB",           given.int4 ? "4 bits us" : "INT8 us",
                                 "float us",    "kept in float for"};
    lnt_table t;
    char text[24];
    putchar('\n');
    lnt_table_begin(&t, "lllrrrrl", heads);
    for (size_t i = 0; i < r->n_quantized; i++) {
        const lnt_quantized *q = &r->quantized[i];
        lnt_table_cell(&t, "%s", q->node);
        lnt_table_cell(&t, "%s", q->op);
        lnt_table_cell(&t, "%s", q->bits == 4 ? "4 bits" : q->int8 ? "INT8" : "float");
        lnt_table_cell(&t, "%s", lnt_size_text(bytes_now(q), text));
        measured_cell(&t, "%.1f", q->snr);
        measured_cell(&t, "%.1f", q->int8_us);
        measured_cell(&t, "%.1f", q->plain_us);
        lnt_table_cell(&t, "%s", q->why ? q->why : "");
    }
    lnt_table_print(&t, stdout);
    if (!r->trial_inputs)
        printf(
            "\n%s not measured: the model does not run on seeded inputs (%s); give some with --calibrate\n",
            given.int4 ? "4 bits were" : "INT8 was", r->trial_failure);
    print_sums(r);
    if (r->n_forms)
        print_forms(r);
    print_outputs(r);
}

static void print_report(const lnt_report *r, const char *path)
{
    char a[24], b[24];
    lnt_table t;
    printf("%s: %s, from %s of ONNX; %" PRIu32 " operators, from %" PRIu32 "\n", path,
           lnt_size_text(r->lnt_bytes, a), lnt_size_text(r->onnx_bytes, b), r->nodes_after, r->nodes_before);
    printf("constants %s, packed %s", lnt_size_text(r->constant_bytes, a), lnt_size_text(r->packed_bytes, b));
    if (r->winograd_bytes)
        printf(", of it by Winograd's transform %s instead of %s", lnt_size_text(r->winograd_bytes, a),
               lnt_size_text(r->taps_bytes, b));
    if (r->winograd_error_bound > 0)
        printf(", Winograd's convolutions at worst %.1e of sums of magnitudes off", r->winograd_error_bound);
    if (r->duplicated_bytes)
        printf(", stored twice %s", lnt_size_text(r->duplicated_bytes, a));
    printf("; relayouts %" PRIu32 "\n", r->relayouts);
    if (r->stream)
        printf("sound by pieces: %s\n", r->stream);
    if (!r->n_passes)
        return;
    static const char *const heads[] = {"pass", "what", "count"};
    putchar('\n');
    lnt_table_begin(&t, "llr", heads);
    for (size_t i = 0; i < r->n_passes; i++) {
        lnt_table_cell(&t, "%s", r->pass[i].pass);
        lnt_table_cell(&t, "%s", r->pass[i].what);
        lnt_table_cell(&t, "%u", r->pass[i].count);
    }
    lnt_table_print(&t, stdout);
    if (r->precision)
        print_precision(r);
    else if (r->n_quantized)
        print_quantized(r);
}

static lnt_status write_report(const lnt_report *r, lnt_error *err)
{
    lnt_json_memory m;
    lnt_status status = lnt_json_open(&m);
    if (status == LNT_OK) {
        report_json(r, m.json.out);
        status = lnt_json_close(&m);
    }
    *err = m.err;
    if (status == LNT_OK)
        status = lnt_write_atomic(given.report, m.text, m.bytes, err);
    lnt_json_free(&m);
    return status;
}

static int finish(lnt_report *report, lnt_status status, const char *output, lnt_error *err)
{
    lnt_error late = {0};
    const bool tell = status == LNT_OK || report->n_unsupported;
    if (tell && given.report && write_report(report, &late) != LNT_OK && status == LNT_OK) {
        *err = late;
        status = late.code;
    }
    if (tell && given.json)
        report_json(report, stdout);
    else if (status == LNT_OK)
        print_report(report, output);
    if (status == LNT_OK && report->no_golden)
        fprintf(stderr,
                "linnet convert: warning: %s has no golden vectors, so `verify` needs cases: the unoptimized "
                "model does not run on seeded inputs (%s); --golden CASE_DIR records a case of yours\n",
                output, report->no_golden);
    if (status == LNT_OK)
        return LNT_EXIT_OK;
    if (report->n_unsupported && !given.json)
        print_unsupported(report);
    return lnt_failed(&lnt_verb_convert, err);
}

/* "dir/model.onnx" gives "dir/model.lnt". */
static const char *default_output(const char *input)
{
    const size_t length = strlen(input) - lnt_onnx_ending(input);
    return lnt_cli_text("%.*s.lnt", (int)length, input);
}

/* Neither the model nor the report may take the place of what is read, or of each other. */
static lnt_status check_targets(const char *model, const char *output, lnt_error *err)
{
    const char *const read[] = {model, output, given.board};
    LNT_REQUIRE(!lnt_names_onnx(output), err, LNT_E_ARGUMENT,
                "-o %s: an .lnt is written, which nobody should take for ONNX", output);
    LNT_TRY(lnt_target_is_new("-o", output, read, 1, err));
    if (!given.report)
        return LNT_OK;
    LNT_REQUIRE(strcmp(given.report, output) != 0, err, LNT_E_ARGUMENT, "--report and -o are both %s",
                output);
    return lnt_target_is_new("--report", given.report, read, 3, err);
}

static void show_progress(void *arg, size_t done, size_t total)
{
    (void)arg;
    lnt_progress_bar("quantizing", done, total);
}

/* Noise that nobody recorded says too little to keep layers in float for it. */
static double min_snr(void)
{
    return given.min_snr >= 0   ? given.min_snr
           : !given.calibrate.n ? 0
           : given.int4         ? LNT_INT4_SNR
                                : LNT_INT8_SNR;
}

static bool is_block(int64_t n)
{
    return n >= LNT_BLOCK_LEAST && n <= LNT_BLOCK_MOST && (n & (n - 1)) == 0;
}

/* What is wrong with the options together; NULL: nothing. */
static const char *misfit(void)
{
    const bool rounds = given.int8 || given.int4 || given.precision > LNT_PRECISION_FLOAT32;
    if (given.int4 && given.int8)
        return "--int4 and --int8 exclude each other";
    if (given.block >= 0 && (!given.int4 || !is_block(given.block)))
        return "--block 16, 32, 64, 128 or 256 belongs to --int4";
    if ((given.min_snr > 0 || given.calibrate.n || given.in_float.n || given.measure.n) && !rounds)
        return "--min-snr, --calibrate, --float and --measure belong to --int8, --int4 and --precision";
    if (given.int8 == LNT_INT8_STATIC && !given.calibrate.n)
        return "--int8 static finds ranges on recorded inputs: --calibrate FILE|DIR";
    if (given.method != LNT_RANGE_BEST && given.int8 != LNT_INT8_STATIC && given.int8 != LNT_INT8_AUTO)
        return "--calibration belongs to --int8 static and auto";
    return given.board && given.int8 != LNT_INT8_AUTO ? "--board belongs to --int8 auto" : NULL;
}

static int run(const lnt_texts *words)
{
    lnt_convert_options how;
    lnt_quantize_options quantize = {.mode = given.int4 ? LNT_INT4_BLOCKS : (lnt_int8_mode)given.int8,
                                     .block = given.block < 0 ? LNT_BLOCK : given.block,
                                     .method = (lnt_range_method)given.method,
                                     .min_snr = given.int8 || given.int4 ? min_snr() : given.min_snr,
                                     .may_be_unmeasured = given.min_snr < 0,
                                     .in_float = given.in_float.item,
                                     .n_in_float = given.in_float.n,
                                     .progress = isatty(STDERR_FILENO) ? show_progress : NULL};
    lnt_calibration samples = {0};
    lnt_costs costs;
    lnt_report report;
    lnt_error err = {0};
    void *image = NULL;
    size_t size = 0;

    if (words->n != 1)
        return words->n == 2 && !lnt_names_onnx(words->item[1])
                   ? lnt_usage_error(&lnt_verb_convert, "what is written is named by -o: -o %s",
                                     words->item[1])
                   : lnt_usage_error(&lnt_verb_convert, words->n ? "one model at a time" : "which model?");
    if (!take_options(&how))
        return LNT_EXIT_USAGE;
    const char *output = given.output ? given.output : default_output(words->item[0]);
    const char *wrong = misfit();
    if (wrong)
        return lnt_usage_error(&lnt_verb_convert, "%s", wrong);
    if (given.board && lnt_costs_of_board(given.board, &costs, &err) != LNT_OK)
        return lnt_failed(&lnt_verb_convert, &err);
    quantize.costs = given.board ? &costs : NULL;
    how.quantize = &quantize;
    lnt_report_init(&report);
    lnt_status status = check_targets(words->item[0], output, &err);
    if (status == LNT_OK)
        status = take_config(&how, &err);
    if (status == LNT_OK)
        status = take_attachments(&how, &err);
    if (status == LNT_OK)
        status = lnt_calibration_find(&given.calibrate, &samples, &err);
    quantize.n_samples = samples.paths.n;
    quantize.read_sample = lnt_calibration_read;
    quantize.count_samples = lnt_calibration_count;
    quantize.arg = &samples;
    if (status == LNT_OK)
        status = lnt_convert_file(words->item[0], &how, &report, &image, &size, &err);
    if (status == LNT_OK)
        status = lnt_write_atomic(output, image, size, &err);
    lnt_free(&lnt_malloc_allocator, image);
    lnt_calibration_free(&samples);
    const int code = finish(&report, status, output, &err);
    lnt_report_free(&report);
    return code;
}

const lnt_verb lnt_verb_convert = {
    .name = "convert",
    .summary = "turn an ONNX model into an .lnt",
    .usage = "M.onnx [-o M.lnt] [options]",
    .text = "Reads an ONNX model, as protobuf's text too, optimizes it, packs its weights for the kernels "
            "and writes\n"
            "one file that any CPU Linnet runs on can map and run. All decisions that need only the model "
            "are taken here.\n"
            "Extents without a number stay open: fix them with --dim where you know them, for smaller memory "
            "and\n"
            "faster binding. An unsupported operator is an error that lists all of them; no file is written "
            "then.",
    .examples = "linnet convert model.onnx -o model.lnt\n"
                "linnet convert voice.onnx --dim T=512 --meta language=en\n"
                "linnet convert vad.onnx -o vad.lnt --state stateN=state --dim input:0=1 --dim input:1=576\n"
                "linnet convert model.onnx --int8 dynamic --min-snr 30 --calibrate recorded.npz\n"
                "linnet convert model.onnx --int8 static --calibrate pictures/\n"
                "linnet convert llm.onnx --int4\n"
                "linnet convert model.onnx --precision float16\n"
                "linnet convert model.onnx --winograd\n"
                "linnet convert model.onnx --golden test_data_set_0 --report report.json",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
