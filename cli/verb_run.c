/* verb_run.c — `linnet run`: files in, files out. */
#include "cli/data/audio.h"
#include "cli/data/compare.h"
#include "cli/data/inputs.h"
#include "cli/data/target.h"
#include "cli/shell/json.h"
#include "cli/shell/table.h"
#include "cli/verbs.h"
#include "formats/tensor_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct {
    lnt_texts inputs, outputs, fetches, resumes, dims;
    const char *folder, *level;
    int64_t threads, seed, rate, deadline;
    bool only, json;
} given;

static const lnt_option options[] = {
    {"--input", "NAME=FILE", LNT_OPTION_TEXTS, &given.inputs,
     ".npy, .npz (or .npz:MEMBER), .pb, raw bytes; sound (.wav .flac .ogg)\nfor a float input whose other "
     "extents are 1; or what stands there:\n16000, true, [1,2,3], [\"red\", \"blue\"]"},
    {"--output", "NAME=FILE", LNT_OPTION_TEXTS, &given.outputs,
     "write this output: .npy, .pb, sound, raw (.bin, .raw, no ending)"},
    {"--output-dir", "DIR", LNT_OPTION_TEXT, &given.folder, "write all outputs there as .npy"},
    {"--fetch", "NAME=FILE", LNT_OPTION_TEXTS, &given.fetches,
     "write an intermediate value (see convert --keep)"},
    {"--resume", "NAME=FILE", LNT_OPTION_TEXTS, &given.resumes,
     "take this value, as --fetch wrote it, instead of computing it; inputs that\nonly lead to it may be "
     "left out"},
    {"--only", NULL, LNT_OPTION_FLAG, &given.only, "compute no more than --output and --fetch ask for"},
    {"--dim", "NAME=N", LNT_OPTION_TEXTS, &given.dims, "upper bound of a data-dependent extent"},
    {"--threads", "N", LNT_OPTION_COUNT, &given.threads, "threads (as many as the machine gives)"},
    {"--level", "L", LNT_OPTION_TEXT, &given.level, "kernels of this level (best)"},
    {"--seed", "S", LNT_OPTION_COUNT, &given.seed, "of random operators: same seed, same result (0)"},
    {"--rate", "HZ", LNT_OPTION_COUNT, &given.rate,
     "sound is brought to this rate when read and has it when written\n(as in the file; 16000 for output "
     "alone)"},
    {"--deadline", "MS", LNT_OPTION_COUNT, &given.deadline, "give up after this many milliseconds (never)"},
    {"--json", NULL, LNT_OPTION_FLAG, &given.json, "print JSON"},
};

static lnt_status write_value(const char *path, const lnt_tensor *t, uint32_t rate, lnt_error *err)
{
    if (!lnt_sound_name(path))
        return lnt_tensor_write(path, t, err);
    LNT_REQUIRE(t->dtype == LNT_FLOAT, err, LNT_E_TYPE, "%s: sound is float, the value is %s", path,
                lnt_dtype_text(t->dtype));
    return lnt_sound_write(path, t->data, t->bytes / sizeof(float), rate, err);
}

static lnt_status write_outputs(lnt_session *s, const lnt_opened *o, uint32_t rate, lnt_error *err)
{
    for (size_t i = 0; i < given.outputs.n; i++) {
        const char *name, *path;
        lnt_tensor t;
        lnt_split_pair(given.outputs.item[i], false, &name, &path);
        LNT_TRY(lnt_get_output(s, (uint32_t)lnt_model_find_output(o->model, name), &t, err));
        LNT_TRY(write_value(path, &t, rate, err));
    }
    for (size_t i = 0; i < given.fetches.n; i++) {
        const char *name, *path;
        lnt_tensor t;
        lnt_split_pair(given.fetches.item[i], false, &name, &path);
        LNT_TRY(lnt_get_value(s, name, &t, err));
        LNT_TRY(write_value(path, &t, rate, err));
    }
    return LNT_OK;
}

/* A file name from a value's: anything that is no letter, digit, '.', '-' or '_' becomes '_'. */
static char *file_for(const char *folder, const char *name)
{
    char *path = lnt_cli_text("%s/%s.npy", folder, name);
    for (char *c = path + strlen(folder) + 1; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *c))
            *c = '_';
    return path;
}

/* Does the run compute output i? */
static bool is_computed(const lnt_opened *o, uint32_t i)
{
    const char *name, *path;
    for (size_t k = 0; given.only && k < given.outputs.n; k++)
        if (lnt_split_pair(given.outputs.item[k], false, &name, &path) &&
            lnt_model_find_output(o->model, name) == (int)i)
            return true;
    return !given.only;
}

static lnt_status write_folder(lnt_session *s, const lnt_opened *o, lnt_error *err)
{
    if (!given.folder)
        return LNT_OK;
    mkdir(given.folder, 0777);
    for (uint32_t i = 0; i < lnt_model_output_count(o->model); i++) {
        lnt_value_info info;
        lnt_tensor t;
        if (!is_computed(o, i))
            continue;
        LNT_TRY(lnt_model_output(o->model, i, &info));
        LNT_TRY(lnt_get_output(s, i, &t, err));
        LNT_TRY(lnt_tensor_write(file_for(given.folder, info.name), &t, err));
    }
    return LNT_OK;
}

typedef struct range {
    double least, mean, largest;
    int64_t n;
} range;

/* NaN where there is no number. */
static range range_of(const lnt_tensor *t)
{
    range r = {NAN, 0, NAN, 1};
    for (uint32_t i = 0; i < t->rank; i++)
        r.n *= t->dims[i];
    for (int64_t i = 0; i < r.n; i++) {
        const double x = lnt_element(t, i);
        r.least = fmin(r.least, x);
        r.largest = fmax(r.largest, x);
        r.mean += x;
    }
    r.mean /= (double)r.n;
    return r;
}

static void put_figure(lnt_table *t, double x, int64_t n)
{
    if (n)
        lnt_table_cell(t, "%.6g", x);
    else
        lnt_table_cell(t, "-");
}

/* The first words of an output of text. */
static void print_words(const char *name, const lnt_tensor *t)
{
    enum { SHOWN = 16 };
    const char *const *word = t->data;
    const size_t n = t->bytes / sizeof *word;
    printf("%s:", name);
    for (size_t i = 0; i < n && i < SHOWN; i++)
        printf("%s '%s'", i ? "," : "", word[i]);
    puts(n > SHOWN ? ", …" : "");
}

static void put_words(lnt_json *j, const lnt_tensor *t)
{
    const char *const *word = t->data;
    lnt_json_begin(j, "words", '[');
    for (size_t i = 0; i < t->bytes / sizeof *word; i++)
        lnt_json_text(j, NULL, word[i]);
    lnt_json_end(j, ']');
}

static lnt_status print_outputs(lnt_session *s, const lnt_opened *o, lnt_error *err)
{
    static const char *const heads[] = {"output", "type", "extents", "least", "mean", "largest"};
    lnt_json j = {.out = stdout};
    lnt_table t;
    if (given.json) {
        lnt_json_begin(&j, NULL, '{');
        lnt_json_begin(&j, "outputs", '[');
    }
    lnt_table_begin(&t, "lllrrr", heads);
    for (uint32_t i = 0; i < lnt_model_output_count(o->model); i++) {
        lnt_value_info info;
        lnt_tensor v;
        char dims[128];
        if (!is_computed(o, i))
            continue;
        LNT_TRY(lnt_model_output(o->model, i, &info));
        LNT_TRY(lnt_get_output(s, i, &v, err));
        const range r = range_of(&v);
        if (given.json) {
            lnt_json_begin(&j, NULL, '{');
            lnt_json_text(&j, "name", info.name);
            lnt_json_text(&j, "dtype", lnt_dtype_text(v.dtype));
            lnt_json_ints(&j, "dims", v.dims, v.rank);
            if (v.dtype == LNT_STRING) {
                put_words(&j, &v);
            } else {
                lnt_json_number(&j, "min", r.least);
                lnt_json_number(&j, "mean", r.mean);
                lnt_json_number(&j, "max", r.largest);
            }
            lnt_json_end(&j, '}');
            continue;
        }
        if (v.dtype == LNT_STRING) {
            print_words(info.name, &v);
            continue;
        }
        lnt_table_cell(&t, "%s", info.name);
        lnt_table_cell(&t, "%s", lnt_dtype_text(v.dtype));
        lnt_table_cell(&t, "%s", lnt_dims_text(v.rank, v.dims, dims));
        put_figure(&t, r.least, r.n);
        put_figure(&t, r.mean, r.n);
        put_figure(&t, r.largest, r.n);
    }
    if (given.json) {
        lnt_json_end(&j, ']');
        lnt_json_end(&j, '}');
    }
    lnt_table_print(&t, given.json ? stderr : stdout);
    return LNT_OK;
}

/* The files that the run reads: model, inputs, values to resume from. */
static const char **read_files(const char *model, size_t *n)
{
    const char **read = lnt_cli_alloc((1 + given.inputs.n + given.resumes.n) * sizeof *read), *name;
    read[0] = model;
    *n = 1;
    for (size_t i = 0; i < given.inputs.n; i++)
        *n += lnt_split_pair(given.inputs.item[i], false, &name, &read[*n]);
    for (size_t i = 0; i < given.resumes.n; i++)
        *n += lnt_split_pair(given.resumes.item[i], false, &name, &read[*n]);
    return read;
}

/* Can the tensors that option names be written where it says? */
static lnt_status check_targets(const char *option, const lnt_texts *pairs, const char *model, lnt_error *err)
{
    size_t n;
    const char **read = read_files(model, &n), *name, *path;
    for (size_t i = 0; i < pairs->n; i++) {
        LNT_REQUIRE(lnt_split_pair(pairs->item[i], false, &name, &path), err, LNT_E_ARGUMENT,
                    "%s NAME=FILE, not '%s'", option, pairs->item[i]);
        LNT_TRY(lnt_target_takes_tensor(option, path, err));
        LNT_TRY(lnt_target_is_new(option, path, read, n, err));
        for (size_t k = 0; k < i; k++) {
            const char *other;
            lnt_split_pair(pairs->item[k], false, &name, &other);
            LNT_REQUIRE(strcmp(path, other) != 0, err, LNT_E_ARGUMENT, "%s: two values to one file, %s",
                        option, path);
        }
    }
    return LNT_OK;
}

/* Names that are wrong should not cost a run. */
static lnt_status check_names(const lnt_opened *o, const char *model, lnt_error *err)
{
    const char *name, *path;
    LNT_TRY(check_targets("--output", &given.outputs, model, err));
    LNT_TRY(check_targets("--fetch", &given.fetches, model, err));
    if (given.folder)
        LNT_TRY(lnt_target_folder("--output-dir", given.folder, err));
    for (size_t i = 0; i < given.outputs.n; i++) {
        lnt_split_pair(given.outputs.item[i], false, &name, &path);
        LNT_REQUIRE(lnt_model_find_output(o->model, name) >= 0, err, LNT_E_NOT_FOUND, "no output called %s%s",
                    name, lnt_suggest_output(o, name));
    }
    for (size_t i = 0; i < given.resumes.n; i++)
        LNT_REQUIRE(lnt_split_pair(given.resumes.item[i], false, &name, &path), err, LNT_E_ARGUMENT,
                    "--resume NAME=FILE, not '%s'", given.resumes.item[i]);
    return LNT_OK;
}

static lnt_status resume(lnt_session *s, const char *pair, lnt_error *err)
{
    const char *name, *path;
    lnt_tensor t;
    lnt_split_pair(pair, false, &name, &path);
    LNT_TRY(lnt_tensor_read(path, &lnt_malloc_allocator, &t, err));
    const lnt_status status = lnt_set_value(s, name, &t, err);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
    return status;
}

/* The part of the model that is to be computed. */
static lnt_status choose_part(lnt_session *s, const lnt_opened *o, lnt_error *err)
{
    uint32_t *output = lnt_cli_alloc((given.outputs.n + 1) * sizeof *output);
    uint32_t n = 0;
    for (uint32_t i = 0; given.only && i < lnt_model_output_count(o->model); i++)
        if (is_computed(o, i))
            output[n++] = i;
    if (given.only)
        LNT_TRY(lnt_select_outputs(s, output, n, err));
    for (size_t i = 0; i < given.resumes.n; i++)
        LNT_TRY(resume(s, given.resumes.item[i], err));
    return LNT_OK;
}

static lnt_status run_session(lnt_session *s, lnt_opened *o, const lnt_inputs_options *how,
                              lnt_inputs *inputs, lnt_error *err)
{
    for (size_t i = 0; i < given.fetches.n; i++) {
        const char *name, *path;
        lnt_split_pair(given.fetches.item[i], false, &name, &path);
        LNT_TRY(lnt_keep_value(s, name, err));
    }
    LNT_TRY(choose_part(s, o, err));
    LNT_TRY(lnt_inputs_set(o, how, inputs, s, err));
    lnt_set_deadline(s, (uint64_t)given.deadline * 1000);
    LNT_TRY(lnt_run(s, err));
    LNT_TRY(write_outputs(s, o,
                          given.rate     ? (uint32_t)given.rate
                          : inputs->rate ? inputs->rate
                                         : 16000,
                          err));
    LNT_TRY(write_folder(s, o, err));
    return print_outputs(s, o, err);
}

/* A sound at another rate than a model was trained on is a pitch and a tempo that it does not know. */
static void warn_of_rate(const lnt_inputs *inputs)
{
    if (inputs->rate && !given.rate)
        fprintf(stderr,
                "linnet run: warning: the sound has %u Hz, and nothing says that the model takes it so: "
                "--rate HZ brings it "
                "to the model's rate\n",
                inputs->rate);
}

static int run(const lnt_texts *words)
{
    const lnt_inputs_options how = {.dims = &given.dims,
                                    .files = &given.inputs,
                                    .rest = given.only || given.resumes.n ? LNT_INPUTS_LEAVE
                                                                          : LNT_INPUTS_REQUIRED,
                                    .rate = (uint32_t)given.rate};
    const lnt_session_options options_ = {.struct_bytes = sizeof options_,
                                          .intra_op_num_threads = (uint32_t)given.threads,
                                          .level = given.level,
                                          .seed = (uint64_t)given.seed};
    lnt_opened o = {0};
    lnt_inputs inputs = {0};
    lnt_session *s = NULL;
    lnt_error err = {0};

    if (words->n != 1)
        return lnt_usage_error(&lnt_verb_run, words->n ? "one model at a time" : "which model?");
    lnt_status status = lnt_opened_open(words->item[0], NULL, 0, &o, &err);
    if (status == LNT_OK)
        status = check_names(&o, words->item[0], &err);
    if (status == LNT_OK)
        status = lnt_inputs_make(&o, &how, &inputs, &err);
    if (status == LNT_OK) {
        warn_of_rate(&inputs);
        status = lnt_session_create(o.model, &options_, &s, &err);
    }
    if (status == LNT_OK)
        status = run_session(s, &o, &how, &inputs, &err);
    lnt_session_destroy(&s);
    lnt_inputs_free(&inputs);
    lnt_opened_close(&o);
    return status == LNT_OK ? LNT_EXIT_OK : lnt_failed(&lnt_verb_run, &err);
}

const lnt_verb lnt_verb_run = {
    .name = "run",
    .summary = "run a model once, files in, files out",
    .usage = "M.lnt --input NAME=FILE ... [options]",
    .text =
        "Runs a model once on tensors from files and writes what comes out. Without --output it prints the\n"
        "outputs' types, extents and ranges. States begin at zero unless they are given as inputs.\n"
        "`linnet info M.lnt` lists the names of inputs and outputs.",
    .examples = "linnet run model.lnt --input x=x.npy --output y=y.npy\n"
                "linnet run denoise.lnt --input audio=noisy.wav --output clean=clean.wav --rate 16000\n"
                "linnet run voice.lnt --input ids=ids.pb --output wav=hello.wav --rate 22050 --seed 7\n"
                "linnet run model.lnt --input x=all.npz:x --fetch /conv1/out=conv1.npy --output-dir out\n"
                "linnet run model.lnt --input x=x.npy --only --fetch cut=cut.npy\n"
                "linnet run model.lnt --resume cut=cut.npy --output y=y.npy",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_model = true,
    .run = run,
};
