/* test_tamper.c — a file changed on purpose, its hashes repaired, is refused or computes wrong numbers; it
 * never crashes, hangs or reads outside (run it with SAN=-fsanitize=address,undefined). Run from the top of
 * the tree.
 *
 *   TAMPER_TRIALS=N    trials for each model (300)
 *   TAMPER_FIRST=N     number of the first one; each trial's changes follow from its number alone
 *   TAMPER_VERBOSE=1   names each trial before it starts
 *
 * `test_tamper MODEL.onnx` tries that model instead of the ones in tests/data. */
#include "convert/convert.h"
#include "formats/lnt_file.h"
#include "tests/c/changes.h"
#include "tests/c/try_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct image {
    uint8_t *bytes;
    size_t size;
} image;

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static image convert(const char *path, lnt_precision precision)
{
    const lnt_convert_options options = {.opt = LNT_OPT_ALL, .precision = precision};
    lnt_report report;
    lnt_error err = {0};
    void *bytes = NULL;
    image file = {0};
    lnt_report_init(&report);
    if (lnt_convert_file(path, &options, &report, &bytes, &file.size, &err) != LNT_OK)
        fail_msg("%s: %s", path, err.message);
    lnt_report_free(&report);
    file.bytes = bytes;
    return file;
}

static void change(image *file, uint64_t *seed)
{
    const file_change c = change_number(file->bytes, seed);
    if (c.width && setting("TAMPER_VERBOSE", 0))
        print_message("  %s + %#zx: %#llx becomes %#llx (%u bytes)\n", lnt_section_text(c.section), c.at,
                      (unsigned long long)c.before, (unsigned long long)c.after, c.width);
}

static bool try_once(const image *file, unsigned number)
{
    image copy = {lnt_alloc(&lnt_malloc_allocator, file->size, NULL), file->size};
    uint64_t seed = number;
    lnt_error err = {0};
    assert_non_null(copy.bytes);
    memcpy(copy.bytes, file->bytes, file->size);
    for (unsigned n = 1 + next_random(&seed) % 2; n > 0; n--)
        change(&copy, &seed);
    const uint64_t any = (uint64_t)next_random(&seed) << 32 | next_random(&seed);
    assert_int_equal(lnt_file_rehash(copy.bytes, copy.size, &err), LNT_OK);
    const lnt_status status = try_model(copy.bytes, copy.size, number % 2 ? any : 0, &err);
    if (setting("TAMPER_VERBOSE", 0))
        print_message("  status %d %s\n", status, err.message);
    if (status == LNT_E_INTERNAL || (status != LNT_OK && status != LNT_E_LIMIT && !err.message[0]))
        fail_msg("trial %u: status %d \"%s\"", number, status, err.message);
    lnt_free(&lnt_malloc_allocator, copy.bytes);
    return status == LNT_OK;
}

/* The file as it is has to run; on a busy machine once in many times within the deadline. */
static lnt_status run_whole(const image *file, lnt_error *err)
{
    enum { TIMES = 50 };
    lnt_status status = LNT_E_DEADLINE;
    for (unsigned i = 0; i < TIMES && status == LNT_E_DEADLINE; i++)
        status = try_model(file->bytes, file->size, 0, err);
    return status;
}

static void try_tampered(const char *path, lnt_precision precision)
{
    lnt_error err = {0};
    image file = convert(path, precision);
    if (run_whole(&file, &err) != LNT_OK)
        fail_msg("%s: %s", path, err.message);
    const unsigned first = setting("TAMPER_FIRST", 1), n = setting("TAMPER_TRIALS", 300);
    unsigned ran = 0;
    for (unsigned number = first; number < first + n; number++) {
        if (setting("TAMPER_VERBOSE", 0))
            print_message("%s: trial %u\n", path, number);
        ran += try_once(&file, number);
    }
    print_message("%s: %u of %u changed files ran\n", path, ran, n);
    lnt_free(&lnt_malloc_allocator, file.bytes);
}

static void tampered_model_is_safe(void **state)
{
    try_tampered(*state, LNT_PRECISION_MODEL);
}

/* With weights of 16 bits. */
static void tampered_halves_are_safe(void **state)
{
    try_tampered(*state, LNT_PRECISION_FLOAT16);
    try_tampered(*state, LNT_PRECISION_BFLOAT16);
}

/* Every byte of a small file in turn, hashes repaired. */
static void every_byte_is_safe(void **state)
{
    static const uint8_t changes[] = {0x01, 0x80, 0xff};
    lnt_error err = {0};
    (void)state;
    image file = convert("tests/data/models/shapes.onnx", LNT_PRECISION_MODEL);
    uint8_t *copy = lnt_alloc(&lnt_malloc_allocator, file.size, &err);
    size_t ran = 0;
    assert_non_null(copy);
    for (size_t at = 0; at < file.size; at++)
        for (unsigned c = 0; c < sizeof changes; c++) {
            memcpy(copy, file.bytes, file.size);
            copy[at] ^= changes[c];
            lnt_error_clear(&err);
            if (lnt_file_rehash(copy, file.size, &err) == LNT_OK)
                ran += try_model(copy, file.size, 0, &err) == LNT_OK;
        }
    print_message("%zu of %zu changed files ran\n", ran, file.size * sizeof changes);
    assert_in_range(ran, 1, file.size * sizeof changes - 1);
    lnt_free(&lnt_malloc_allocator, copy);
    lnt_free(&lnt_malloc_allocator, file.bytes);
}

/* A test called by its model's path. */
static struct CMUnitTest test_of(char *path)
{
    return (struct CMUnitTest){path, tampered_model_is_safe, NULL, NULL, path};
}

static struct CMUnitTest halves_of(char *path)
{
    return (struct CMUnitTest){path, tampered_halves_are_safe, NULL, NULL, path};
}

int main(int argc, char **argv)
{
    static char image_path[] = "tests/data/models/image.onnx",
                sequence_path[] = "tests/data/models/sequence.onnx",
                shapes_path[] = "tests/data/models/shapes.onnx",
                control_path[] = "tests/data/models/control.onnx",
                attention_path[] = "tests/data/models/attention.onnx";
    const struct CMUnitTest tests[] = {test_of(image_path),      test_of(sequence_path),
                                       test_of(shapes_path),     test_of(control_path),
                                       test_of(attention_path),  halves_of(image_path),
                                       halves_of(sequence_path), cmocka_unit_test(every_byte_is_safe)};
    const struct CMUnitTest asked[] = {test_of(argc > 1 ? argv[1] : NULL)};
    return argc > 1 ? cmocka_run_group_tests(asked, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
