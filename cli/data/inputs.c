/* inputs.c — where a session's inputs come from when nobody recorded them. */
#include "cli/data/inputs.h"

#include "base/checked.h"
#include "base/small.h"
#include "cli/data/audio.h"
#include "cli/data/literal.h"
#include "cli/data/random_range.h"
#include "cli/shell/suggest.h"
#include "formats/golden.h"
#include "formats/tensor_file.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const lnt_allocator *const memory = &lnt_malloc_allocator;

lnt_tensor lnt_tensor_as(const lnt_tensor *t, lnt_dtype type)
{
    lnt_tensor as = *t;
    const bool byte = t->dtype == LNT_UINT8 || t->dtype == LNT_INT8;
    if ((type == LNT_BFLOAT16 && t->dtype == LNT_UINT16) || (lnt_is_small(type) && byte))
        as.dtype = type;
    return as;
}

/* Fits a run of `count` elements to the extents wanted: at most one of them unknown, or, where all unknown
 * ones but the last are 1, that one. */
static lnt_status fit(const char *path, const lnt_value_info *like, int64_t count, lnt_tensor *t,
                      lnt_error *err)
{
    int64_t known = 1;
    int open = -1;
    LNT_REQUIRE(like->rank <= LNT_MAX_RANK, err, LNT_E_SHAPE, "%s: input %s has no rank; give an .npy", path,
                like->name);
    t->rank = like->rank;
    for (uint32_t i = 0; i < like->rank; i++) {
        t->dims[i] = like->dims[i] < 0 ? 1 : like->dims[i];
        if (like->dims[i] < 0)
            open = (int)i;
        known *= t->dims[i];
    }
    if (open >= 0 && known > 0 && count % known == 0)
        t->dims[open] = count / known;
    int64_t n;
    LNT_REQUIRE(lnt_count(t->dims, t->rank, &n) && n == count, err, LNT_E_SHAPE,
                "%s: %" PRId64 " elements do not fit input %s", path, count, like->name);
    return LNT_OK;
}

/* Raw little-endian elements: the type is the input's, the extents fit(). */
static lnt_status read_raw(const char *path, const lnt_value_info *like, lnt_tensor *out, lnt_error *err)
{
    const size_t size = lnt_dtype_size(like->dtype);
    lnt_blob file;
    LNT_TRY(lnt_blob_open(path, true, memory, &file, err));
    *out = (lnt_tensor){.dtype = like->dtype, .bytes = file.size};
    lnt_status status = LNT_OK;
    if (!size || file.size % size)
        status = lnt_fail(err, LNT_E_SHAPE, "%s: %zu bytes are no whole number of %s", path, file.size,
                          lnt_dtype_text(like->dtype));
    if (status == LNT_OK)
        status = fit(path, like, (int64_t)(file.size / size), out, err);
    if (status == LNT_OK && !(out->data = lnt_alloc(memory, file.size, err)))
        status = LNT_E_MEMORY;
    if (status == LNT_OK)
        memcpy(out->data, file.bytes, file.size);
    lnt_blob_close(&file);
    return status;
}

static lnt_status read_sound(const char *path, const lnt_value_info *like, uint32_t want_rate,
                             lnt_tensor *out, uint32_t *rate, lnt_error *err)
{
    lnt_sound sound;
    LNT_REQUIRE(like->dtype == LNT_FLOAT, err, LNT_E_TYPE, "%s: input %s is %s; sound is float", path,
                like->name, lnt_dtype_text(like->dtype));
    LNT_TRY(lnt_sound_read(path, want_rate, &sound, err));
    *rate = sound.rate;
    *out = (lnt_tensor){.dtype = LNT_FLOAT, .data = sound.samples, .bytes = sound.n * sizeof(float)};
    const lnt_status status = fit(path, like, (int64_t)sound.n, out, err);
    if (status != LNT_OK)
        lnt_tensor_free(memory, out);
    return status;
}

/* What is typed instead of a file: the type is the input's, the extents fit(). */
static lnt_status read_literal(const char *text, const lnt_value_info *like, lnt_tensor *out, lnt_error *err)
{
    size_t n, bytes;
    LNT_TRY(lnt_literal_elements(text, like->dtype, NULL, &n, err));
    *out = (lnt_tensor){.dtype = like->dtype};
    LNT_REQUIRE(lnt_mul_size(n, lnt_dtype_size(like->dtype), &bytes), err, LNT_E_LIMIT, "too many elements");
    LNT_TRY(fit(text, like, (int64_t)n, out, err));
    out->bytes = bytes;
    out->data = lnt_alloc(memory, bytes, err);
    return out->data ? lnt_literal_elements(text, like->dtype, out->data, &n, err) : LNT_E_MEMORY;
}

/* Words that are typed: one, or a list in brackets; each may be in double quotes. */
static lnt_status read_words(const char *text, const lnt_value_info *like, lnt_tensor *out, lnt_error *err)
{
    const size_t length = strlen(text);
    const bool list = text[0] == '[' && text[length - 1] == ']';
    size_t n = 1, bytes;
    for (const char *c = text; list && *c; c++)
        n += *c == ',';
    n = list && text[1 + strspn(text + 1, " ")] == ']' ? 0 : n;
    LNT_REQUIRE(lnt_mul_size(n, sizeof(char *), &bytes), err, LNT_E_LIMIT, "too many words");
    *out = (lnt_tensor){.dtype = LNT_STRING, .bytes = bytes};
    LNT_TRY(fit(text, like, (int64_t)n, out, err));
    const char **word = out->data = lnt_alloc(memory, bytes + length + 1, err);
    if (!word)
        return LNT_E_MEMORY;
    char *c = (char *)out->data + bytes;
    memcpy(c, text, length + 1);
    if (list)
        c[length - 1] = '\0';
    c += list;
    for (size_t i = 0; i < n; i++) {
        char *comma = list ? strchr(c, ',') : NULL, *next = comma ? comma + 1 : c + strlen(c);
        char *end = comma ? comma : next;
        for (c += list ? strspn(c, " ") : 0; list && end > c && end[-1] == ' ';)
            end--;
        const bool quoted = end - c >= 2 && *c == '"' && end[-1] == '"';
        end[quoted ? -1 : 0] = '\0';
        word[i] = c + quoted;
        c = next;
    }
    return LNT_OK;
}

lnt_status lnt_input_read(const char *path, const lnt_value_info *like, uint32_t want_rate, lnt_tensor *out,
                          uint32_t *rate, lnt_error *err)
{
    const bool file = access(path, F_OK) == 0;
    if (like->dtype == LNT_STRING && !file && !lnt_ends_with(path, ".pb") && path[0])
        return read_words(path, like, out, err);
    if (!file && lnt_is_literal(path))
        return read_literal(path, like, out, err);
    if (lnt_sound_name(path))
        return read_sound(path, like, want_rate, out, rate, err);
    if (!lnt_ends_with(path, ".npy") && !lnt_ends_with(path, ".pb") && !strstr(path, ".npz"))
        return read_raw(path, like, out, err);
    LNT_TRY(lnt_tensor_read(path, memory, out, err));
    *out = lnt_tensor_as(out, like->dtype);
    return LNT_OK;
}

static lnt_status read_files(const lnt_opened *o, const lnt_inputs_options *how, lnt_inputs *inputs,
                             lnt_error *err)
{
    for (size_t i = 0; how->files && i < how->files->n; i++) {
        const char *name, *path;
        lnt_value_info info;
        LNT_REQUIRE(lnt_split_pair(how->files->item[i], false, &name, &path), err, LNT_E_ARGUMENT,
                    "--input NAME=FILE, not '%s'", how->files->item[i]);
        const int input = lnt_model_find_input(o->model, name);
        LNT_REQUIRE(input >= 0, err, LNT_E_NOT_FOUND, "no input called %s%s", name,
                    lnt_suggest_input(o, name));
        LNT_TRY(lnt_model_input(o->model, (uint32_t)input, &info));
        LNT_REQUIRE(!inputs->tensor[input].dtype, err, LNT_E_ARGUMENT, "--input: %s is given twice", name);
        LNT_TRY(lnt_input_read(path, &info, how->rate, &inputs->tensor[input], &inputs->rate, err));
    }
    return LNT_OK;
}

/* The extent --dim gives to name; -1 if none. */
static int64_t dim_given(const lnt_texts *dims, const char *name)
{
    for (size_t i = 0; name && dims && i < dims->n; i++) {
        const char *key;
        int64_t value;
        if (lnt_split_count(dims->item[i], &key, &value) && strcmp(key, name) == 0)
            return value;
    }
    return -1;
}

static bool floating(lnt_dtype dtype)
{
    return dtype == LNT_FLOAT || dtype == LNT_DOUBLE || dtype == LNT_FLOAT16 || dtype == LNT_BFLOAT16;
}

/* Does anyone look at the numbers of input i? */
static bool has_contents(const lnt_opened *o, const lnt_inputs_options *how, uint32_t i)
{
    const uint32_t value = o->file.operands[o->file.subgraphs[0].first_operand + i];
    return how->rest != LNT_INPUTS_SHAPE || o->file.values[value].flags & LNT_VALUE_FEEDS_SHAPES;
}

/* count empty words. */
static lnt_status empty_words(int64_t count, lnt_tensor *t, lnt_error *err)
{
    LNT_REQUIRE(lnt_mul_size((size_t)count, sizeof(char *), &t->bytes), err, LNT_E_LIMIT, "too many words");
    LNT_TRY(lnt_room_for(t->bytes, "text", err));
    const char **word = t->data = lnt_alloc(memory, t->bytes, err);
    for (int64_t i = 0; word && i < count; i++)
        word[i] = "";
    return word ? LNT_OK : LNT_E_MEMORY;
}

/* Makes up input i. */
static lnt_status make_up(const lnt_opened *o, const lnt_inputs_options *how, const lnt_value_info *info,
                          uint32_t i, lnt_tensor *t, lnt_error *err)
{
    int64_t count;
    lnt_range range;
    bool in_range;
    *t = (lnt_tensor){.dtype = info->dtype, .rank = info->rank};
    LNT_REQUIRE(info->rank <= LNT_MAX_RANK, err, LNT_E_SHAPE, "input %s has no rank: give it with --input",
                info->name);
    LNT_REQUIRE(how->rest != LNT_INPUTS_REQUIRED, err, LNT_E_ARGUMENT,
                "input %s is missing: give it with --input %s=FILE", info->name, info->name);
    LNT_REQUIRE(how->rest != LNT_INPUTS_RANDOM || info->dtype != LNT_STRING, err, LNT_E_ARGUMENT,
                "input %s is text, which is not made up: give it with --input %s='[\"a\", \"b\"]' or %s=FILE",
                info->name, info->name, info->name);
    LNT_TRY(lnt_range_of(how->ranges, info->name, &range, &in_range, err));
    const bool drawn = floating(info->dtype) || in_range;
    LNT_REQUIRE(how->rest != LNT_INPUTS_RANDOM || drawn, err, LNT_E_ARGUMENT,
                "input %s is %s, for which random numbers make no sense without bounds: give it with --input "
                "%s=FILE or --range %s=LOW:HIGH",
                info->name, lnt_dtype_text(info->dtype), info->name, info->name);
    for (uint32_t k = 0; k < info->rank; k++) {
        t->dims[k] = info->dims[k] >= 0 ? info->dims[k] : dim_given(how->dims, info->dim_names[k]);
        LNT_REQUIRE(t->dims[k] >= 0, err, LNT_E_ARGUMENT,
                    "input %s: extent %s is open: give it with --dim %s=N", info->name,
                    info->dim_names[k] ? info->dim_names[k] : "?",
                    info->dim_names[k] ? info->dim_names[k] : "NAME");
    }
    LNT_REQUIRE(lnt_count(t->dims, t->rank, &count) &&
                    lnt_mul_size((size_t)count, lnt_dtype_size(t->dtype), &t->bytes),
                err, LNT_E_LIMIT, "input %s is too large", info->name);
    if (!has_contents(o, how, i))
        return LNT_OK;
    if (t->dtype == LNT_STRING)
        return empty_words(count, t, err);
    LNT_TRY(lnt_room_for(t->bytes, info->name, err));
    t->data = lnt_alloc_zero(memory, t->bytes, 1, err);
    if (!t->data)
        return LNT_E_MEMORY;
    if (in_range)
        return lnt_range_fill(&range, how->seed + i, t->dtype, info->name, (size_t)count, t->data, err);
    if (how->rest == LNT_INPUTS_RANDOM)
        lnt_golden_fill(how->seed + i, t->dtype, (size_t)count, t->data);
    return LNT_OK;
}

/* Where extents depend on numbers, those of the file's first golden case serve better than zeros. */
static void take_golden(const lnt_opened *o, lnt_inputs *inputs)
{
    const lnt_rec_golden *g = o->file.golden;
    for (const lnt_rec_golden *end = g + o->file.n_golden; g < end && g->test == o->file.golden->test; g++) {
        lnt_tensor from, *to = g->role == LNT_GOLDEN_INPUT ? &inputs->tensor[g->index] : NULL;
        if (!to || !to->data || g->dtype != (uint32_t)to->dtype || g->rank != to->rank ||
            (to->rank &&
             memcmp(lnt_golden_extents(&o->file, g), to->dims, to->rank * sizeof *to->dims) != 0) ||
            lnt_golden_tensor(&o->file, g, memory, &from, NULL) != LNT_OK)
            continue;
        if (from.bytes == to->bytes)
            memcpy(to->data, from.data, from.bytes);
        lnt_tensor_free(memory, &from);
    }
}

static bool names_an_extent(const lnt_opened *o, const char *name)
{
    lnt_value_info info;
    for (uint32_t i = 0; i < lnt_model_input_count(o->model); i++)
        if (lnt_model_input(o->model, i, &info) == LNT_OK && info.rank <= LNT_MAX_RANK)
            for (uint32_t k = 0; k < info.rank; k++)
                if (info.dim_names[k] && strcmp(info.dim_names[k], name) == 0)
                    return true;
    return false;
}

/* A name that --dim gives is an extent of an input's, or a symbol of the model's. */
static lnt_status check_extent(const lnt_opened *o, const char *name, lnt_error *err)
{
    lnt_texts names = {0};
    for (uint32_t i = 0; i < o->file.n_symbols; i++)
        lnt_texts_add(&names, o->file.strings + o->file.symbols[i].name);
    for (size_t i = 0; i < names.n; i++)
        if (strcmp(names.item[i], name) == 0)
            return LNT_OK;
    LNT_REQUIRE(names_an_extent(o, name), err, LNT_E_NOT_FOUND,
                "--dim: the model has no variable extent called %s%s", name, lnt_suggest(name, &names));
    return LNT_OK;
}

static lnt_status make_inputs(lnt_opened *o, const lnt_inputs_options *how, lnt_inputs *inputs,
                              lnt_error *err)
{
    for (size_t i = 0; how->dims && i < how->dims->n; i++) {
        const char *name;
        int64_t value;
        LNT_REQUIRE(lnt_split_count(how->dims->item[i], &name, &value), err, LNT_E_ARGUMENT,
                    "--dim NAME=N, not '%s'", how->dims->item[i]);
        LNT_TRY(lnt_opened_file(o, err));
        LNT_TRY(check_extent(o, name, err));
    }
    for (size_t i = 0; how->ranges && i < how->ranges->n; i++) {
        const char *name, *rest;
        LNT_REQUIRE(!lnt_split_pair(how->ranges->item[i], true, &name, &rest) ||
                        lnt_model_find_input(o->model, name) >= 0,
                    err, LNT_E_NOT_FOUND, "--range: no input called %s%s", name, lnt_suggest_input(o, name));
    }
    LNT_TRY(lnt_opened_file(o, err));
    LNT_TRY(read_files(o, how, inputs, err));
    for (uint32_t i = 0; i < inputs->n; i++) {
        lnt_value_info info;
        LNT_TRY(lnt_model_input(o->model, i, &info));
        if (!inputs->tensor[i].data && !info.is_state && how->rest != LNT_INPUTS_LEAVE)
            LNT_TRY(make_up(o, how, &info, i, &inputs->tensor[i], err));
    }
    if (how->rest == LNT_INPUTS_SHAPE)
        take_golden(o, inputs);
    return LNT_OK;
}

lnt_status lnt_inputs_make(lnt_opened *o, const lnt_inputs_options *how, lnt_inputs *inputs, lnt_error *err)
{
    *inputs = (lnt_inputs){.n = lnt_model_input_count(o->model)};
    inputs->tensor = lnt_cli_alloc(inputs->n * sizeof *inputs->tensor);
    const lnt_status status = make_inputs(o, how, inputs, err);
    if (status != LNT_OK)
        lnt_inputs_free(inputs);
    return status;
}

lnt_status lnt_inputs_set(const lnt_opened *o, const lnt_inputs_options *how, const lnt_inputs *inputs,
                          lnt_session *s, lnt_error *err)
{
    for (size_t i = 0; how->dims && i < how->dims->n; i++) {
        const char *name;
        int64_t value;
        if (!lnt_split_count(how->dims->item[i], &name, &value))
            continue;
        const lnt_status status = lnt_set_bound(s, name, value, err);
        if (status != LNT_OK && !names_an_extent(o, name)) /* INPUT:AXIS is an extent, and no symbol */
            return status;
        lnt_error_clear(err);
    }
    for (uint32_t i = 0; i < inputs->n; i++)
        if (inputs->tensor[i].dtype)
            LNT_TRY(lnt_set_input(s, i, &inputs->tensor[i], err));
    return LNT_OK;
}

void lnt_inputs_free(lnt_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->n; i++)
        lnt_tensor_free(memory, &inputs->tensor[i]);
    *inputs = (lnt_inputs){0};
}
