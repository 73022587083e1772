/* test_system.c — the C API on a system that fails: the n-th open, read, map, write, ... of a whole use is
 * refused, for every n. The call that met it says so, or makes it again; nothing is left open, nor beside a
 * target, which is as it was or whole. */
#include "fault.h"
#include "subjects.h"

#include "base/error.h"
#include "formats/lnt_file.h"

#include <dirent.h>

static const char old[] = "what was there before";

static const struct {
    const char *class, *kind;
    bool harmless;
} faults[] = {
    {"open", "fail", false},   {"open", "again", true},  {"read", "fail", false},  {"read", "short", true},
    {"read", "again", true},   {"write", "fail", false}, {"write", "full", false}, {"write", "short", true},
    {"write", "again", true},  {"stat", "fail", false},  {"map", "fail", false},   {"sync", "fail", false},
    {"sync", "again", true},   {"close", "fail", false}, {"close", "again", true}, {"rename", "fail", false},
    {"thread", "fail", false},
};

static unsigned count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    unsigned n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Opens path, runs twice with other extents, its state taken out and put back between, and writes a trace to target. */
static lnt_status run(lnt_session *s, const char *target, lnt_error *err)
{
    static float x[9 * 2], saved[3];
    lnt_tensor t = {.dtype = LNT_FLOAT, .rank = 3, .dims = {3, 1, 2}, .data = x, .bytes = 3 * 2 * sizeof *x};
    LNT_TRY(lnt_set_input(s, 0, &t, err));
    LNT_TRY(lnt_run(s, err));
    lnt_tensor kept;
    LNT_TRY(lnt_state_get(s, 0, &kept, err));
    assert_int_equal(kept.bytes, sizeof saved);
    memcpy(saved, kept.data, sizeof saved);
    kept.data = saved;
    LNT_TRY(lnt_state_set(s, 0, &kept, err));
    t.dims[0] = 9;
    t.bytes = sizeof x;
    LNT_TRY(lnt_set_input(s, 0, &t, err));
    LNT_TRY(lnt_run(s, err));
    LNT_TRY(lnt_session_trim(s, err));
    LNT_TRY(lnt_run(s, err));
    return lnt_trace_write(s, target, err);
}

static lnt_status use(const char *path, uint32_t flags, const char *target, lnt_error *err)
{
    const lnt_model_options how = {.struct_bytes = sizeof how, .flags = flags};
    const lnt_session_options options = {
        .struct_bytes = sizeof options, .intra_op_num_threads = 2, .enable_profiling = true};
    lnt_model *model = NULL;
    lnt_session *session = NULL;
    lnt_status status = lnt_model_create(path, &how, &model, err);
    if (status == LNT_OK)
        status = lnt_session_create(model, &options, &session, err);
    if (status == LNT_OK)
        status = run(session, target, err);
    lnt_session_destroy(&session);
    lnt_model_destroy(&model);
    return status;
}

/* target: written whole, or as it was. */
static void expect_whole(const char *target, lnt_status status)
{
    lnt_blob file;
    assert_int_equal(lnt_blob_open(target, true, &lnt_malloc_allocator, &file, NULL), LNT_OK);
    const char *text = file.bytes;
    const bool as_it_was = file.size == sizeof old && memcmp(text, old, sizeof old) == 0;
    const bool whole = file.size > 4 && text[0] == '[' && memcmp(text + file.size - 3, "\n]\n", 3) == 0;
    assert_true(status == LNT_OK ? whole : as_it_was || whole);
    lnt_blob_close(&file);
}

/* Uses path with every call of the fault's class refused, one after the other; how many there were. */
static unsigned meet(unsigned fault, const char *path, uint32_t flags, const char *target)
{
    for (unsigned n = 1;; n++) {
        lnt_error err = {0};
        assert_int_equal(lnt_write_atomic(target, old, sizeof old, NULL), LNT_OK);
        const unsigned before = count_entries("/proc/self/fd");
        fault_arm(faults[fault].class, faults[fault].kind, n);
        const lnt_status status = use(path, flags, target, &err);
        const bool happened = fault_disarm();
        if (status != err.code ||
            (status != LNT_OK && (!happened || faults[fault].harmless || !err.message[0])))
            fail_msg("%s %s %u: status %d, %s", faults[fault].class, faults[fault].kind, n, (int)status,
                     err.message);
        expect_whole(target, status);
        assert_int_equal(count_entries("/proc/self/fd"), before);
        if (!happened)
            return n - 1;
    }
}

static void sequence_model(const char *path)
{
    const lnt_named_text carried = {"next", "state"};
    const lnt_convert_options how = {.opt = LNT_OPT_ALL, .state = &carried, .n_states = 1};
    lnt_error err = {0};
    lnt_report report;
    void *image;
    size_t size;
    lnt_report_init(&report);
    if (lnt_convert_file("tests/data/models/sequence.onnx", &how, &report, &image, &size, &err) != LNT_OK)
        fail_msg("%s", err.message);
    lnt_report_free(&report);
    assert_int_equal(lnt_write_atomic(path, image, size, NULL), LNT_OK);
    lnt_free(&lnt_malloc_allocator, image);
}

static void a_failing_system_is_reported(void **state)
{
    (void)state;
    char folder[] = "/tmp/lnt-test-XXXXXX", model[64], target[64];
    assert_non_null(mkdtemp(folder));
    snprintf(model, sizeof model, "%s/m.lnt", folder);
    snprintf(target, sizeof target, "%s/trace", folder);
    sequence_model(model);
    for (uint32_t copy = 0; copy < 2; copy++)
        for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
            const unsigned met = meet(i, model, copy ? LNT_LOAD_COPY : 0, target);
            assert_true(met > 0 || (copy && strcmp(faults[i].class, "map") == 0));
        }
    assert_int_equal(unlink(model), 0);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left behind */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_failing_system_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
