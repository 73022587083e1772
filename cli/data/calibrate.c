/* calibrate.c — finding and reading recorded inputs. */
#include "cli/data/calibrate.h"

#include "base/checked.h"
#include "cli/data/audio.h"
#include "cli/data/cases.h"
#include "cli/data/compare.h"
#include "cli/data/folder.h"
#include "cli/data/inputs.h"
#include "formats/tensor_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const lnt_allocator *const heap = &lnt_malloc_allocator;

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool is_sample(const char *name)
{
    return lnt_ends_with(name, ".npz") || lnt_ends_with(name, ".npy") || lnt_ends_with(name, ".pb") ||
           lnt_sound_name(name);
}

/* The folder itself if it is a case, else the cases in it, else the samples. */
static lnt_status find_in_folder(const char *folder, lnt_texts *paths, lnt_error *err)
{
    lnt_texts names = {0};
    bool is_case = false, holds_cases = false;
    LNT_TRY(lnt_folder_names(folder, &names, err));
    for (size_t i = 0; i < names.n; i++) {
        is_case |= strcmp(names.item[i], "input_0.pb") == 0;
        holds_cases |= lnt_is_case_folder(names.item[i]);
    }
    if (is_case)
        lnt_texts_add(paths, folder);
    for (size_t i = 0; i < names.n && !is_case; i++)
        if (holds_cases ? lnt_is_case_folder(names.item[i]) : is_sample(names.item[i]))
            lnt_texts_add(paths, lnt_cli_text("%s/%s", folder, names.item[i]));
    return LNT_OK;
}

lnt_status lnt_calibration_find(const lnt_texts *words, lnt_calibration *c, lnt_error *err)
{
    for (size_t i = 0; i < words->n; i++) {
        const size_t before = c->paths.n;
        if (is_folder(words->item[i]))
            LNT_TRY(find_in_folder(words->item[i], &c->paths, err));
        else
            lnt_texts_add(&c->paths, words->item[i]);
        LNT_REQUIRE(c->paths.n > before, err, LNT_E_NOT_FOUND,
                    "--calibrate %s: there is no .npz, .npy, .pb, sound or test_data_set_N in it",
                    words->item[i]);
    }
    return LNT_OK;
}

/* A state that nobody recorded. */
static lnt_status zeros(const lnt_value_info *info, lnt_tensor *t, lnt_error *err)
{
    int64_t dims[LNT_MAX_RANK];
    LNT_REQUIRE(info->rank <= LNT_MAX_RANK, err, LNT_E_SHAPE, "state '%s' has no rank", info->name);
    for (uint32_t i = 0; i < info->rank; i++)
        dims[i] = info->dims[i] < 0 ? 1 : info->dims[i];
    LNT_TRY(lnt_tensor_alloc(heap, info->dtype, info->rank, dims, t, err));
    memset(t->data, 0, t->bytes);
    return LNT_OK;
}

/* Does it fit what the model says of its input? */
static lnt_status check(const char *path, const lnt_value_info *info, const lnt_tensor *t, lnt_error *err)
{
    bool fits = t->dtype == info->dtype && (info->rank > LNT_MAX_RANK || t->rank == info->rank);
    char dims[128];
    for (uint32_t i = 0; i < info->rank && i < LNT_MAX_RANK && fits; i++)
        fits = info->dims[i] < 0 || t->dims[i] == info->dims[i];
    LNT_REQUIRE(fits, err, LNT_E_SHAPE, "%s: %s %s does not fit input '%s'", path, lnt_dtype_text(t->dtype),
                lnt_dims_text(t->rank, t->dims, dims), info->name);
    LNT_REQUIRE(t->bytes > 0, err, LNT_E_SHAPE, "%s: input '%s' is empty", path, info->name);
    return LNT_OK;
}

/* Input k of the model, out of a sample's file or folder; alone: no other is read from there. */
static lnt_status read_input(const char *path, const lnt_value_info *info, uint32_t k, bool alone,
                             lnt_tensor *t, lnt_error *err)
{
    uint32_t rate;
    if (is_folder(path))
        return lnt_tensor_read(lnt_cli_text("%s/input_%u.pb", path, k), heap, t, err);
    if (lnt_ends_with(path, ".npz"))
        return lnt_tensor_read(lnt_cli_text("%s:%s", path, info->name), heap, t, err);
    LNT_REQUIRE(alone, err, LNT_E_ARGUMENT, "%s: the model has several inputs; give an .npz with all of them",
                path);
    return lnt_input_read(path, info, 0, t, &rate, err);
}

/* The one input that is no state, or -1. */
static int only_input(const lnt_model *m)
{
    int found = -1;
    lnt_value_info info;
    for (uint32_t k = 0; k < lnt_model_input_count(m); k++)
        if (lnt_model_input(m, k, &info) == LNT_OK && !info.is_state) {
            if (found >= 0)
                return -1;
            found = (int)k;
        }
    return found;
}

/* ---- sounds in frames ---- */

/* Elements of an input whose extents are all known; 0 where they are not. */
static int64_t frame_length(const lnt_value_info *info)
{
    int64_t n = info->rank <= LNT_MAX_RANK ? 1 : 0;
    for (uint32_t i = 0; i < info->rank && n; i++)
        n = info->dims[i] < 0 || __builtin_mul_overflow(n, info->dims[i], &n) ? 0 : n;
    return n;
}

static lnt_status read_sound(lnt_calibration *c, size_t path, lnt_error *err)
{
    lnt_sound sound;
    if (c->sound.data && c->sound_of == path)
        return LNT_OK;
    lnt_tensor_free(heap, &c->sound);
    LNT_TRY(lnt_sound_read(c->paths.item[path], 0, &sound, err));
    c->sound = (lnt_tensor){.dtype = LNT_FLOAT, .rank = 1, .dims = {(int64_t)sound.n}};
    c->sound.data = sound.samples;
    c->sound.bytes = sound.n * sizeof(float);
    c->sound_of = path;
    return LNT_OK;
}

lnt_status lnt_calibration_count(void *arg, const lnt_model *m, size_t *n, lnt_error *err)
{
    enum { FRAMES_MOST = 256 };
    lnt_calibration *c = arg;
    lnt_value_info info;
    const int only = only_input(m);
    int64_t length = 0;
    if (only >= 0) {
        LNT_TRY(lnt_model_input(m, (uint32_t)only, &info));
        length = info.dtype == LNT_FLOAT ? frame_length(&info) : 0;
    }
    c->frames = lnt_cli_alloc(c->paths.n * sizeof *c->frames);
    *n = 0;
    for (size_t i = 0; i < c->paths.n; i++) {
        c->frames[i] = 1;
        if (length > 1 && lnt_sound_name(c->paths.item[i])) {
            LNT_TRY(read_sound(c, i, err));
            LNT_REQUIRE(c->sound.dims[0] >= length, err, LNT_E_SHAPE,
                        "%s: shorter than the %lld of input '%s'", c->paths.item[i], (long long)length,
                        info.name);
            const int64_t frames = c->sound.dims[0] / length;
            c->frames[i] = (size_t)(frames < FRAMES_MOST ? frames : FRAMES_MOST);
        }
        *n += c->frames[i];
    }
    return LNT_OK;
}

void lnt_calibration_free(lnt_calibration *c)
{
    lnt_tensor_free(heap, &c->sound);
}

static lnt_status read_frame(lnt_calibration *c, size_t path, size_t frame, const lnt_value_info *info,
                             lnt_tensor *t, lnt_error *err)
{
    int64_t dims[LNT_MAX_RANK];
    LNT_TRY(read_sound(c, path, err));
    for (uint32_t i = 0; i < info->rank; i++)
        dims[i] = info->dims[i];
    LNT_TRY(lnt_tensor_alloc(heap, LNT_FLOAT, info->rank, dims, t, err));
    memcpy(t->data, (const char *)c->sound.data + frame * t->bytes, t->bytes);
    return LNT_OK;
}

/* ---- samples ---- */

static lnt_status read_all(lnt_calibration *c, const lnt_model *m, size_t path, lnt_tensor *inputs,
                           lnt_error *err)
{
    const char *name = c->paths.item[path];
    const int only = only_input(m);
    lnt_value_info info;
    for (uint32_t k = 0; k < lnt_model_input_count(m); k++) {
        LNT_TRY(lnt_model_input(m, k, &info));
        lnt_error why = {0};
        lnt_status status = read_input(name, &info, k, (int)k == only, &inputs[k], &why);
        if (status != LNT_OK && info.is_state)
            status = zeros(&info, &inputs[k], &why);
        LNT_REQUIRE(status == LNT_OK, err, status, "%s", why.message);
        LNT_TRY(check(name, &info, &inputs[k], err));
    }
    return LNT_OK;
}

lnt_status lnt_calibration_read(void *arg, const lnt_model *m, size_t i, lnt_tensor *inputs, lnt_error *err)
{
    lnt_calibration *c = arg;
    size_t path = 0;
    for (; i >= c->frames[path]; path++)
        i -= c->frames[path];
    if (c->frames[path] == 1)
        return read_all(c, m, path, inputs, err);
    const int only = only_input(m);
    lnt_value_info info;
    for (uint32_t k = 0; k < lnt_model_input_count(m); k++) {
        LNT_TRY(lnt_model_input(m, k, &info));
        if ((int)k == only)
            LNT_TRY(read_frame(c, path, i, &info, &inputs[k], err));
        else if (i == 0)
            LNT_TRY(zeros(&info, &inputs[k], err));
    }
    return LNT_OK;
}
