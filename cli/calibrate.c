/* calibrate.c — finding and reading recorded inputs. */
#include "cli/calibrate.h"

#include "base/checked.h"
#include "cli/audio.h"
#include "cli/cases.h"
#include "cli/compare.h"
#include "cli/feed.h"
#include "formats/tensor_file.h"

#include <dirent.h>
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

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_inputs(const char *folder)
{
    struct stat s;
    return stat(lnt_cli_text("%s/input_0.pb", folder), &s) == 0;
}

static void find_in_folder(const char *folder, lnt_texts *paths)
{
    const size_t first = paths->n;
    if (has_inputs(folder)) {
        lnt_texts_add(paths, folder);
        return;
    }
    lnt_case_folders(folder, paths);
    DIR *d = paths->n == first ? opendir(folder) : NULL;
    for (const struct dirent *e; d && (e = readdir(d));)
        if (is_sample(e->d_name))
            lnt_texts_add(paths, lnt_cli_text("%s/%s", folder, e->d_name));
    if (d)
        closedir(d);
    if (paths->n > first)
        qsort(paths->item + first, paths->n - first, sizeof *paths->item, by_name);
}

lnt_status lnt_calibration_find(const lnt_texts *words, lnt_calibration *c, lnt_error *err)
{
    for (size_t i = 0; i < words->n; i++) {
        const size_t before = c->paths.n;
        if (is_folder(words->item[i]))
            find_in_folder(words->item[i], &c->paths);
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
    return lnt_feed_file(path, info, 0, t, &rate, err);
}

lnt_status lnt_calibration_read(void *arg, const lnt_model *m, size_t i, lnt_tensor *inputs, lnt_error *err)
{
    const lnt_calibration *c = arg;
    const char *path = c->paths.item[i];
    const uint32_t n = lnt_model_input_count(m);
    uint32_t fed = 0;
    lnt_value_info info;
    for (uint32_t k = 0; k < n; k++) {
        LNT_TRY(lnt_model_input(m, k, &info));
        fed += !info.is_state;
    }
    for (uint32_t k = 0; k < n; k++) {
        LNT_TRY(lnt_model_input(m, k, &info));
        lnt_error why = {0};
        lnt_status status = read_input(path, &info, k, fed == 1 && !info.is_state, &inputs[k], &why);
        if (status != LNT_OK && info.is_state)
            status = zeros(&info, &inputs[k], &why);
        LNT_REQUIRE(status == LNT_OK, err, status, "%s", why.message);
        LNT_TRY(check(path, &info, &inputs[k], err));
    }
    return LNT_OK;
}
