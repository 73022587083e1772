/* test_import.c — ONNX models that are damaged, or converted while memory fails. Run from the tree's top
 * folder; IMPORT_TRIALS and IMPORT_FIRST choose how many damaged models and which. */
#include "convert/convert.h"
#include "formats/lnt_file.h"

#include <setjmp.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- memory that fails ---- */

static unsigned long allocations_left = ULONG_MAX;

/* Takes libc's place for the allocator of base/memory.c. */
int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (allocations_left == 0)
        return 12;
    allocations_left--;
    *block = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    return *block ? 0 : 12;
}

/* ---- models ---- */

typedef struct model {
    uint8_t *bytes;
    size_t size;
} model;

static model read_model(const char *name)
{
    char path[128];
    lnt_blob file;
    lnt_error err = {0};
    snprintf(path, sizeof path, "tests/data/models/%s.onnx", name);
    if (lnt_blob_open(path, false, &lnt_malloc_allocator, &file, &err) != LNT_OK)
        fail_msg("%s", err.message);
    model m = {malloc(file.size), file.size};
    assert_non_null(m.bytes);
    memcpy(m.bytes, file.bytes, file.size);
    lnt_blob_close(&file);
    return m;
}

/* Converts; an image that comes out must pass the verifier. */
static lnt_status try_convert(const void *bytes, size_t size, lnt_opt opt, lnt_error *err)
{
    const lnt_convert_options options = {.opt = opt};
    lnt_report report;
    void *image = NULL;
    size_t image_size = 0;
    lnt_report_init(&report);
    const lnt_status status =
        lnt_convert_memory(bytes, size, NULL, &options, &report, &image, &image_size, err);
    if (status == LNT_OK) {
        lnt_file file;
        lnt_error why = {0};
        allocations_left = ULONG_MAX;
        if (lnt_file_check(image, image_size, true, &file, &why) != LNT_OK)
            fail_msg("the image is unsound: %s", why.message);
    } else if (!err->message[0]) {
        allocations_left = ULONG_MAX;
        fail_msg("status %d without a message", (int)status);
    }
    lnt_free(&lnt_malloc_allocator, image);
    lnt_report_free(&report);
    return status;
}

/* Every allocation fails once: always E_MEMORY, never a crash or a leak (run with a sanitizer). */
static void failing_memory_is_reported(void **state)
{
    const model m = read_model(*state);
    for (unsigned long n = 0;; n++) {
        lnt_error err = {0};
        allocations_left = n;
        const lnt_status status = try_convert(m.bytes, m.size, LNT_OPT_ALL, &err);
        allocations_left = ULONG_MAX;
        if (status == LNT_OK)
            break;
        if (status != LNT_E_MEMORY || err.code != LNT_E_MEMORY)
            fail_msg("allocation %lu failed: status %d, %s", n, (int)status, err.message);
        assert_true(n < 100000);
    }
    free(m.bytes);
}

/* ---- damaged models ---- */

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* A few bytes changed, sometimes the end cut off, sometimes a part doubled. */
static size_t damage(uint8_t *bytes, size_t size, uint64_t *seed)
{
    for (uint64_t n = 1 + next_random(seed) % 4; n > 0; n--)
        bytes[next_random(seed) % size] = (uint8_t)next_random(seed);
    const uint64_t kind = next_random(seed) % 8;
    const size_t at = next_random(seed) % size, count = next_random(seed) % (size - at) + 1;
    if (kind == 0)
        return at + 1;
    if (kind == 1) {
        memmove(bytes + at, bytes + at + count, size - at - count);
        return size - count ? size - count : 1;
    }
    if (kind == 2)
        memcpy(bytes + size, bytes + at, count);
    return kind == 2 ? size + count : size;
}

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void damaged_models_are_safe(void **state)
{
    const model m = read_model(*state);
    uint8_t *bytes = malloc(2 * m.size);
    assert_non_null(bytes);
    const unsigned first = setting("IMPORT_FIRST", 1), n = setting("IMPORT_TRIALS", 1000);
    unsigned converted = 0;
    for (unsigned trial = first; trial < first + n; trial++) {
        uint64_t seed = trial;
        lnt_error err = {0};
        memcpy(bytes, m.bytes, m.size);
        const size_t size = damage(bytes, m.size, &seed);
        if (getenv("IMPORT_VERBOSE"))
            print_message("%s: trial %u\n", (const char *)*state, trial);
        const lnt_status status = try_convert(bytes, size, trial % 2 ? LNT_OPT_ALL : LNT_OPT_NONE, &err);
        if (status == LNT_E_INTERNAL)
            fail_msg("trial %u: %s", trial, err.message);
        converted += status == LNT_OK;
    }
    print_message("%s: %u of %u damaged models were converted\n", (const char *)*state, converted, n);
    free(bytes);
    free(m.bytes);
}

int main(void)
{
#define TEST(function, model_name)                                                                           \
    {                                                                                                        \
#function " " model_name, function, NULL, NULL, (void *)(uintptr_t)(model_name)                      \
    }
    const struct CMUnitTest tests[] = {
        TEST(failing_memory_is_reported, "rich"),    TEST(failing_memory_is_reported, "image"),
        TEST(failing_memory_is_reported, "control"), TEST(damaged_models_are_safe, "rich"),
        TEST(damaged_models_are_safe, "shapes"),     TEST(damaged_models_are_safe, "control"),
        TEST(damaged_models_are_safe, "image"),      TEST(damaged_models_are_safe, "attention")};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
