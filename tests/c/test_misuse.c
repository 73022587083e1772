/* test_misuse.c — every call of the public API with what it must refuse: the right code, and words that help. */
#include "model_builder.h"

#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* The call, which takes err, must fail with this status and, unless words is NULL, a message that holds
 * words. */
#define REFUSED(call, expected, words)                                                                       \
    do {                                                                                                     \
        lnt_error own_ = {0}, *err = &own_;                                                                  \
        const lnt_status status_ = (call);                                                                   \
        const char *words_ = (words);                                                                        \
        if (status_ != (expected) || (words_ && (own_.code != (expected) || !strstr(own_.message, words_)))) \
            fail_msg("%s: %s: %s", #call, lnt_status_text(status_), own_.message);                           \
    } while (0)
#define ACCEPTED(call)                                                                                       \
    do {                                                                                                     \
        lnt_error own_ = {0}, *err = &own_;                                                                  \
        must((call), err);                                                                                   \
    } while (0)

/* kept = x + w, y = softmax(kept); next = -total is a state. */
static lnt_model *make_model(void **image, size_t *size)
{
    static const float w[4] = {1, 2, 3, 4};
    builder b;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 2, (int64_t[]){-2, 4});
    const uint32_t total = builder_input(&b, "total", LNT_FLOAT, 1, (int64_t[]){4});
    const uint32_t k = lnt_graph_add_constant(&b.g, "w", LNT_FLOAT, 1, (int64_t[]){4}, w, sizeof w);
    const uint32_t kept = builder_node(&b, "Add", "kept", 2, (uint32_t[]){x, k});
    b.g.value[kept].keep = true;
    builder_output(&b, builder_node(&b, "Softmax", "y", 1, &kept));
    builder_output(&b, builder_node(&b, "Neg", "next", 1, &total));
    must(LNT_GROW(&lnt_malloc_allocator, b.g.state, b.g.state_capacity, 0, &b.err), &b.err);
    b.g.state[0] = (lnt_gstate){.output = 1, .input = 1};
    b.g.n_states = 1;
    lnt_model *model = builder_end(&b, LNT_OPT_NONE, image);
    *size = ((const lnt_rec_header *)*image)->file_bytes;
    return model;
}

typedef struct fixture {
    void *image;
    size_t size;
    lnt_model *model;
    lnt_session *session;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){0};
    lnt_error err = {0};
    f.model = make_model(&f.image, &f.size);
    must(lnt_session_create(f.model, NULL, &f.session, &err), &err);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    lnt_session_destroy(&f->session);
    lnt_model_destroy(&f->model);
    lnt_free(&lnt_malloc_allocator, f->image);
    return 0;
}

static float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static const lnt_tensor two_rows = {LNT_FLOAT, 2, {2, 4}, numbers, sizeof numbers};

/* A tensor of two axes, if rank does not say otherwise; two_rows is FLOATS(2, 2, 4, numbers, 32). */
#define TENSOR(dtype, rank, d0, d1, data, bytes)                                                             \
    &(lnt_tensor)                                                                                            \
    {                                                                                                        \
        (dtype), (rank), {(d0), (d1)}, (data), (bytes)                                                       \
    }
#define FLOATS(rank, d0, d1, data, bytes) TENSOR(LNT_FLOAT, rank, d0, d1, data, bytes)

/* ---- models ---- */

static void test_files_that_are_no_models(void **state)
{
    const fixture *f = *state;
    lnt_model *m;
    char path[] = "/tmp/linnet-misuse-XXXXXX";
    const int file = mkstemp(path);
    REFUSED(lnt_model_create(NULL, NULL, &m, err), LNT_E_ARGUMENT, "path");
    REFUSED(lnt_model_create(path, NULL, NULL, err), LNT_E_ARGUMENT, "model");
    REFUSED(lnt_model_create("/nonexistent/m.lnt", NULL, &m, err), LNT_E_IO, "/nonexistent/m.lnt");
    REFUSED(lnt_model_create("/tmp", NULL, &m, err), LNT_E_IO, "not a regular file");
    REFUSED(lnt_model_create("tests/data/models/rich.onnx", NULL, &m, err), LNT_E_FILE, "must be converted");
    for (uint32_t flags = 0; flags < 4; flags++) {
        const lnt_model_options how = {.struct_bytes = sizeof how, .flags = flags};
        assert_int_equal(ftruncate(file, 0), 0);
        REFUSED(lnt_model_create(path, &how, &m, err), LNT_E_FILE, "empty");
        assert_int_equal(pwrite(file, f->image, f->size - 64, 0), (ssize_t)f->size - 64);
        REFUSED(lnt_model_create(path, &how, &m, err), LNT_E_FILE, "truncated");
        assert_int_equal(pwrite(file, f->image, f->size, 0), (ssize_t)f->size);
        assert_int_equal(pwrite(file, "????", 4, 200), 4);
        REFUSED(lnt_model_create(path, &how, &m, err), LNT_E_FILE, path);
        assert_null(m);
    }
    close(file);
    unlink(path);
    REFUSED(lnt_model_create_from_memory(NULL, 100, NULL, &m, err), LNT_E_ARGUMENT, "bytes");
    REFUSED(lnt_model_create_from_memory(f->image, 0, NULL, &m, err), LNT_E_FILE, "0 bytes");
    REFUSED(lnt_model_create_from_memory(f->image, 40, NULL, &m, err), LNT_E_FILE, "40 bytes");
    REFUSED(lnt_model_create_from_memory("\xff\xd8\xff\xe0 a photo", 12, NULL, &m, err), LNT_E_FILE,
            "too few");
    assert_int_equal(lnt_model_create("/nonexistent/m.lnt", NULL, &m, NULL), LNT_E_IO); /* err may be NULL */
}

static lnt_status some_rule(lnt_custom_call *call)
{
    (void)call;
    return LNT_OK;
}

static void test_model_options(void **state)
{
    const fixture *f = *state;
    lnt_model *m;
    const lnt_host half = {.struct_bytes = sizeof half, .allocate = lnt_malloc_allocator.allocate};
    const lnt_custom_op lacking[] = {{.name = "n", .shape = some_rule, .run = some_rule},
                                     {.domain = "host", .shape = some_rule, .run = some_rule},
                                     {.domain = "host", .name = "n", .run = some_rule},
                                     {.domain = "host", .name = "n", .shape = some_rule}};
    const lnt_model_options wrong[] = {
        {.struct_bytes = sizeof wrong[0], .flags = 0x80},
        {.struct_bytes = sizeof wrong[0], .host = &half},
        {.struct_bytes = sizeof wrong[0], .n_custom = 1},
        {.struct_bytes = sizeof wrong[0], .custom = &lacking[0], .n_custom = 1},
        {.struct_bytes = sizeof wrong[0], .custom = &lacking[1], .n_custom = 1},
        {.struct_bytes = sizeof wrong[0], .custom = &lacking[2], .n_custom = 1},
        {.struct_bytes = sizeof wrong[0], .custom = &lacking[3], .n_custom = 1},
    };
    static const char *const words[] = {"flags 0x80",   "release",         "custom is NULL",
                                        "needs domain", "needs domain, n", "name, shape and",
                                        "shape and run"};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        REFUSED(lnt_model_create_from_memory(f->image, f->size, &wrong[i], &m, err), LNT_E_ARGUMENT,
                words[i]);
        REFUSED(lnt_model_create("unread", &wrong[i], &m, err), LNT_E_ARGUMENT, words[i]);
    }
    const lnt_model_options sizeless = {.flags = LNT_LOAD_FULL},
                            host_sizeless = {.struct_bytes = sizeof sizeless, .host = &(lnt_host){0}};
    REFUSED(lnt_model_create("unread", &sizeless, &m, err), LNT_E_ARGUMENT, "sizeof(lnt_model_options)");
    REFUSED(lnt_model_create_from_memory(f->image, f->size, &sizeless, &m, err), LNT_E_ARGUMENT,
            "sizeof(lnt_model_options)");
    REFUSED(lnt_model_create_from_memory(f->image, f->size, &host_sizeless, &m, err), LNT_E_ARGUMENT,
            "sizeof(lnt_host)");
    assert_null(m);
    REFUSED(lnt_model_create_from_memory(f->image, f->size, NULL, NULL, err), LNT_E_ARGUMENT, "model");
    struct {
        lnt_host known;
        void *coming; /* of a later version */
    } host = {{.struct_bytes = sizeof host}, NULL};
    const lnt_model_options later = {.struct_bytes = sizeof later, .host = &host.known};
    lnt_error err = {0};
    must(lnt_model_create_from_memory(f->image, f->size, &later, &m, &err), &err);
    lnt_model_destroy(&m);
}

static void test_questions_to_a_model(void **state)
{
    const fixture *f = *state;
    lnt_value_info info;
    const char *key, *text;
    assert_int_equal(lnt_model_input(f->model, 2, &info), LNT_E_ARGUMENT);
    assert_int_equal(lnt_model_output(f->model, 2, &info), LNT_E_ARGUMENT);
    assert_int_equal(lnt_model_input(f->model, 0, NULL), LNT_E_ARGUMENT);
    assert_int_equal(lnt_model_input(NULL, 0, &info), LNT_E_ARGUMENT);
    assert_int_equal(lnt_model_output(NULL, 0, &info), LNT_E_ARGUMENT);
    assert_int_equal(lnt_model_find_input(f->model, "y"), -1);
    assert_int_equal(lnt_model_find_output(f->model, "x"), -1);
    assert_int_equal(lnt_model_find_input(f->model, NULL), -1);
    assert_int_equal(lnt_model_find_output(NULL, "y"), -1);
    assert_int_equal(lnt_model_metadata(f->model, 1000, &key, &text), LNT_E_ARGUMENT);
    assert_int_equal(lnt_model_metadata(NULL, 0, &key, &text), LNT_E_ARGUMENT);
    assert_int_equal(lnt_model_input_count(NULL) + lnt_model_output_count(NULL), 0);
    assert_int_equal(lnt_model_metadata_count(NULL), 0);
    lnt_model_destroy(NULL);
    lnt_model_destroy(&(lnt_model *){NULL});
}

/* ---- pools and sessions ---- */

static void test_session_options(void **state)
{
    const fixture *f = *state;
    lnt_session *s;
    const lnt_config_entry misspelt = {"session.intra_op.allow_spining", "0"}, empty = {NULL, "0"};
    const size_t size = sizeof(lnt_session_options);
    const struct {
        lnt_session_options options;
        const char *words;
    } wrong[] = {
        {{.level = "mmx"}, "no level mmx"},
        {{.execution_mode = (lnt_execution_mode)7}, "execution mode 7"},
        {{.arena = (char *)f->image + 8, .arena_bytes = 64}, "aligned to 64"},
        {{.n_config = 1}, "config is NULL"},
        {{.config = &misspelt, .n_config = 1}, "allow_spining"},
        {{.config = &empty, .n_config = 1}, "key"},
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        lnt_session_options o = wrong[i].options;
        o.struct_bytes = size;
        REFUSED(lnt_session_create(f->model, &o, &s, err), LNT_E_ARGUMENT, wrong[i].words);
        assert_null(s);
    }
    const lnt_session_options sizeless = {.intra_op_num_threads = 1};
    REFUSED(lnt_session_create(f->model, &sizeless, &s, err), LNT_E_ARGUMENT, "sizeof(lnt_session_options)");
    assert_null(s);
    REFUSED(lnt_session_create(NULL, NULL, &s, err), LNT_E_ARGUMENT, "model");
    REFUSED(lnt_session_create(f->model, NULL, NULL, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_pool_create(1, NULL, err), LNT_E_ARGUMENT, "pool");
    lnt_session_destroy(NULL);
    lnt_pool_destroy(NULL);
    lnt_pool_destroy(&(lnt_pool *){NULL});
}

static void test_no_session(void **state)
{
    (void)state;
    lnt_tensor t;
    lnt_trace_step step;
    lnt_session_info info = {.struct_bytes = sizeof info};
    REFUSED(lnt_set_bound(NULL, "s0", 1, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_keep_value(NULL, "y", err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_select_outputs(NULL, NULL, 0, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_set_value(NULL, "y", &two_rows, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_set_input(NULL, 0, &two_rows, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_set_output(NULL, 0, numbers, 4, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_bind(NULL, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_run(NULL, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_get_output(NULL, 0, &t, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_get_value(NULL, "y", &t, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_state_reset(NULL, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_state_set(NULL, 0, &two_rows, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_state_get(NULL, 0, &t, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_session_get_info(NULL, &info, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_session_trim(NULL, err), LNT_E_ARGUMENT, "session");
    REFUSED(lnt_trace_write(NULL, "/dev/null", err), LNT_E_ARGUMENT, "session");
    assert_int_equal(lnt_trace_get(NULL, 0, &step), LNT_E_ARGUMENT);
    assert_int_equal(lnt_trace_count(NULL) + lnt_state_count(NULL), 0);
    lnt_cancel(NULL);
    lnt_set_deadline(NULL, 1);
    lnt_set_seed(NULL, 1);
}

/* ---- tensors ---- */

static void test_inputs(void **state)
{
    const fixture *f = *state;
    lnt_session *s = f->session;
    REFUSED(lnt_run(s, err), LNT_E_ARGUMENT, "x is not set");
    REFUSED(lnt_set_input(s, 2, &two_rows, err), LNT_E_ARGUMENT, "no input 2");
    REFUSED(lnt_set_input(s, 0, NULL, err), LNT_E_ARGUMENT, "input 0");
    REFUSED(lnt_set_input(s, 0, TENSOR(LNT_DOUBLE, 2, 2, 4, numbers, 32), err), LNT_E_TYPE,
            "x takes float, not double");
    REFUSED(lnt_set_input(s, 0, TENSOR((lnt_dtype)99, 2, 2, 4, numbers, 32), err), LNT_E_TYPE,
            "unknown type");
    REFUSED(lnt_set_input(s, 0, TENSOR(LNT_UNDEFINED, 2, 2, 4, numbers, 32), err), LNT_E_TYPE, "undefined");
    REFUSED(lnt_set_input(s, 0, FLOATS(1, 2, 4, numbers, 32), err), LNT_E_SHAPE, ", not float 2");
    REFUSED(lnt_set_input(s, 0, FLOATS(9, 2, 4, numbers, 32), err), LNT_E_SHAPE, "rank 9");
    REFUSED(lnt_set_input(s, 0, FLOATS(UINT32_MAX, 2, 4, numbers, 32), err), LNT_E_SHAPE, "rank");
    REFUSED(lnt_set_input(s, 0, FLOATS(2, 2, 5, numbers, 32), err), LNT_E_SHAPE, ", not float 2x5");
    REFUSED(lnt_set_input(s, 0, FLOATS(2, -1, 4, numbers, 32), err), LNT_E_SHAPE, ", not float -1x4");
    REFUSED(lnt_set_input(s, 0, FLOATS(2, INT64_MIN, 4, numbers, 32), err), LNT_E_SHAPE,
            "-9223372036854775808x4");
    REFUSED(lnt_set_input(s, 0, FLOATS(2, INT64_MAX, 4, numbers, 32), err), LNT_E_SHAPE, "address space");
    REFUSED(lnt_set_input(s, 0, FLOATS(2, INT64_C(1) << 62, 4, numbers, 32), err), LNT_E_SHAPE,
            "address space");
    REFUSED(lnt_set_input(s, 0, FLOATS(2, 2, 4, numbers, 31), err), LNT_E_SHAPE,
            "needs 32 bytes, 31 are given");
    ACCEPTED(lnt_set_input(s, 0, FLOATS(2, 2, 4, NULL, 32), err));
    REFUSED(lnt_run(s, err), LNT_E_ARGUMENT, "x has a shape but no data");
    ACCEPTED(lnt_set_input(s, 0, FLOATS(2, INT64_C(1) << 40, 4, NULL, 32), err));
    REFUSED(lnt_bind(s, err), LNT_E_LIMIT, "free on this machine");
    ACCEPTED(lnt_set_input(s, 0, &two_rows, err));
    ACCEPTED(lnt_run(s, err));
}

static void test_outputs(void **state)
{
    const fixture *f = *state;
    lnt_session *s = f->session;
    lnt_tensor t;
    float y[8];
    REFUSED(lnt_get_output(s, 0, &t, err), LNT_E_ARGUMENT, "run the session");
    ACCEPTED(lnt_set_input(s, 0, &two_rows, err));
    REFUSED(lnt_set_output(s, 2, y, sizeof y, err), LNT_E_ARGUMENT, "no output 2");
    REFUSED(lnt_set_output(s, 1, y, sizeof y, err), LNT_E_ARGUMENT, "state");
    REFUSED(lnt_set_output(s, 0, (char *)y + 1, 16, err), LNT_E_ARGUMENT, "aligned");
    ACCEPTED(lnt_set_output(s, 0, y, 31, err));
    REFUSED(lnt_run(s, err), LNT_E_LIMIT, "32");
    ACCEPTED(lnt_set_output(s, 0, y, sizeof y, err));
    ACCEPTED(lnt_run(s, err));
    REFUSED(lnt_get_output(s, 2, &t, err), LNT_E_ARGUMENT, "no output 2");
    REFUSED(lnt_get_output(s, 0, NULL, err), LNT_E_ARGUMENT, "output");
    REFUSED(lnt_select_outputs(s, (uint32_t[]){0, 2}, 2, err), LNT_E_ARGUMENT, "no output 2");
    ACCEPTED(lnt_select_outputs(s, (uint32_t[]){1}, 1, err));
    ACCEPTED(lnt_run(s, err));
    REFUSED(lnt_get_output(s, 0, &t, err), LNT_E_ARGUMENT, "not selected");
}

/* Of outputs that begin in one another's memory a run would write one into the other while it is read. */
static void test_outputs_have_memory_each(void **state)
{
    (void)state;
    builder b;
    void *image;
    lnt_session *s = NULL;
    float data[4] = {1, -2, 3, -4}, y[12];
    int64_t places[8];
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2});
    builder_output(&b, builder_node(&b, "Exp", "y", 1, &x));
    builder_output(&b, builder_node(&b, "Neg", "z", 1, &x));
    builder_output(&b, builder_node(&b, "NonZero", "where", 1, &x));
    lnt_model *model = builder_end(&b, LNT_OPT_NONE, &image);
    ACCEPTED(lnt_session_create(model, NULL, &s, err));
    ACCEPTED(lnt_set_input(s, 0, FLOATS(1, 4, 1, data, sizeof data), err));
    ACCEPTED(lnt_set_output(s, 0, y, sizeof y, err));
    ACCEPTED(lnt_set_output(s, 1, y + 4, 4 * sizeof *y, err));
    ACCEPTED(lnt_run(s, err));
    assert_true(y[4] == -1 && y[7] == 4);
    ACCEPTED(lnt_set_output(s, 1, y + 3, 4 * sizeof *y, err));
    REFUSED(lnt_run(s, err), LNT_E_ARGUMENT, "outputs y and z are given the same memory");
    ACCEPTED(lnt_set_output(s, 0, y + 7, 4 * sizeof *y, err));
    ACCEPTED(lnt_run(s, err));
    assert_true(y[3] == -1 && y[6] == 4);
    ACCEPTED(lnt_set_output(s, 0, places, 4 * sizeof *y, err));
    ACCEPTED(lnt_set_output(s, 2, places, sizeof places, err));
    REFUSED(lnt_run(s, err), LNT_E_ARGUMENT, "outputs y and where are given the same memory");
    ACCEPTED(lnt_set_output(s, 2, places + 2, sizeof places - 2 * sizeof *places, err));
    ACCEPTED(lnt_run(s, err));
    lnt_session_destroy(&s);
    lnt_model_destroy(&model);
    lnt_free(&lnt_malloc_allocator, image);
}

/* An output made before binding has to wait for data is checked before it is written, and one made after it. */
static void test_outputs_of_extents_that_data_decides(void **state)
{
    (void)state;
    for (int mode = LNT_SEQUENTIAL; mode <= LNT_PARALLEL; mode++) {
        builder b;
        void *image;
        lnt_session *s = NULL;
        lnt_tensor t;
        float data[64] = {1, 2, 3};
        float *small = malloc(sizeof *small);
        int64_t *places = malloc(3 * sizeof *places), far_too_small;
        const lnt_session_options options = {.struct_bytes = sizeof options,
                                             .execution_mode = (lnt_execution_mode)mode,
                                             .inter_op_num_threads = 2};
        builder_begin(&b);
        const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2});
        builder_output(&b, builder_node(&b, "Exp", "y", 1, &x));
        const uint32_t where = builder_node(&b, "NonZero", "where", 1, &x);
        builder_output(&b, builder_node(&b, "Neg", "z", 1, &where));
        lnt_model *model = builder_end(&b, LNT_OPT_NONE, &image);
        ACCEPTED(lnt_session_create(model, &options, &s, err));
        ACCEPTED(lnt_set_input(s, 0, &(lnt_tensor){LNT_FLOAT, 1, {64}, data, sizeof data}, err));
        ACCEPTED(lnt_set_output(s, 0, small, sizeof *small, err));
        REFUSED(lnt_run(s, err), LNT_E_LIMIT, "output y needs 256 bytes, 4 are given");
        ACCEPTED(lnt_set_output(s, 0, NULL, 0, err));
        ACCEPTED(lnt_set_output(s, 1, &far_too_small, sizeof far_too_small, err));
        REFUSED(lnt_run(s, err), LNT_E_LIMIT, "output z needs 24 bytes, 8 are given");
        REFUSED(lnt_get_output(s, 1, &t, err), LNT_E_LIMIT, "output 1 needs 24 bytes, 8 are given");
        ACCEPTED(lnt_set_output(s, 1, places, 3 * sizeof *places, err));
        ACCEPTED(lnt_set_bound(s, "where:1", 64, err));
        ACCEPTED(lnt_run(s, err));
        ACCEPTED(lnt_get_output(s, 1, &t, err));
        assert_true(t.data == places && t.dims[1] == 3 && places[2] == -2);
        ACCEPTED(lnt_get_output(s, 0, &t, err));
        assert_true(((const float *)t.data)[63] == 1);
        lnt_session_destroy(&s);
        lnt_model_destroy(&model);
        lnt_free(&lnt_malloc_allocator, image);
        free(places);
        free(small);
    }
}

static void test_values_by_name(void **state)
{
    const fixture *f = *state;
    lnt_session *s = f->session;
    lnt_tensor t;
    ACCEPTED(lnt_set_input(s, 0, &two_rows, err));
    REFUSED(lnt_set_bound(s, "q", 1, err), LNT_E_NOT_FOUND, "called q");
    REFUSED(lnt_set_bound(s, NULL, 1, err), LNT_E_ARGUMENT, "name");
    REFUSED(lnt_keep_value(s, "q", err), LNT_E_NOT_FOUND, "--keep q");
    REFUSED(lnt_keep_value(s, NULL, err), LNT_E_ARGUMENT, "name");
    REFUSED(lnt_get_value(s, "kept", &t, err), LNT_E_ARGUMENT, "lnt_keep_value");
    REFUSED(lnt_get_value(s, "q", &t, err), LNT_E_NOT_FOUND, "q");
    REFUSED(lnt_get_value(s, NULL, &t, err), LNT_E_ARGUMENT, "name");
    ACCEPTED(lnt_keep_value(s, "kept", err));
    REFUSED(lnt_get_value(s, "kept", &t, err), LNT_E_ARGUMENT, "run the session");
    REFUSED(lnt_get_value(s, "kept", NULL, err), LNT_E_ARGUMENT, "tensor");
    REFUSED(lnt_set_value(s, "q", &two_rows, err), LNT_E_NOT_FOUND, "q");
    REFUSED(lnt_set_value(s, NULL, &two_rows, err), LNT_E_ARGUMENT, "name");
    REFUSED(lnt_set_value(s, "x", &two_rows, err), LNT_E_ARGUMENT, "lnt_set_input");
    REFUSED(lnt_set_value(s, "w", &two_rows, err), LNT_E_ARGUMENT, "constant");
    REFUSED(lnt_set_value(s, "kept", FLOATS(2, 2, 4, NULL, 32), err), LNT_E_ARGUMENT, "without data");
    REFUSED(lnt_set_value(s, "kept", TENSOR(LNT_INT32, 2, 2, 4, numbers, 32), err), LNT_E_TYPE,
            "kept is float");
    REFUSED(lnt_set_value(s, "kept", FLOATS(3, 2, 4, numbers, 32), err), LNT_E_SHAPE, "rank 2, not 3");
    REFUSED(lnt_set_value(s, "kept", FLOATS(9, 2, 4, numbers, 32), err), LNT_E_SHAPE, "not 9");
    REFUSED(lnt_set_value(s, "kept", FLOATS(2, 2, 3, numbers, 32), err), LNT_E_SHAPE,
            "4 along axis 1, not 3");
    REFUSED(lnt_set_value(s, "kept", FLOATS(2, -2, 4, numbers, 32), err), LNT_E_SHAPE, "kept");
    REFUSED(lnt_set_value(s, "kept", FLOATS(2, INT64_C(1) << 62, 4, numbers, 32), err), LNT_E_SHAPE, "kept");
    REFUSED(lnt_set_value(s, "kept", FLOATS(2, 2, 4, numbers, 31), err), LNT_E_SHAPE, "shorter");
    ACCEPTED(lnt_run(s, err));
    ACCEPTED(lnt_get_value(s, "kept", &t, err));
    assert_int_equal(t.bytes, sizeof numbers);
}

static void test_states(void **state)
{
    const fixture *f = *state;
    lnt_session *s = f->session;
    lnt_tensor t, four = {LNT_FLOAT, 1, {4}, numbers, 16};
    REFUSED(lnt_state_get(s, 0, &t, err), LNT_E_ARGUMENT, "before bind");
    REFUSED(lnt_state_get(s, 1, &t, err), LNT_E_ARGUMENT, "no state 1");
    REFUSED(lnt_state_set(s, 1, &four, err), LNT_E_ARGUMENT, "no state 1");
    REFUSED(lnt_state_set(s, 0, NULL, err), LNT_E_ARGUMENT, "state 0");
    REFUSED(lnt_state_set(s, 0, &two_rows, err), LNT_E_SHAPE, "takes float 4, not float 2x4");
    four.dims[0] = 5;
    REFUSED(lnt_state_set(s, 0, &four, err), LNT_E_SHAPE, "not float 5");
    four.dims[0] = 4;
    four.dtype = LNT_INT32;
    REFUSED(lnt_state_set(s, 0, &four, err), LNT_E_TYPE, "not int32");
    four.dtype = LNT_FLOAT;
    four.data = NULL;
    REFUSED(lnt_state_set(s, 0, &four, err), LNT_E_ARGUMENT, "needs data");
}

static void test_information(void **state)
{
    const fixture *f = *state;
    lnt_session *s = f->session;
    lnt_trace_step step;
    struct {
        lnt_session_info info;
        char behind;
    } older = {.info.struct_bytes = offsetof(lnt_session_info, threads), .info.threads = 77};
    REFUSED(lnt_session_get_info(s, NULL, err), LNT_E_ARGUMENT, "info");
    REFUSED(lnt_session_get_info(s, &(lnt_session_info){0}, err), LNT_E_ARGUMENT, "sizeof(lnt_session_info)");
    ACCEPTED(lnt_session_get_info(s, &older.info, err));
    assert_int_equal(older.info.threads, 77); /* a field the caller does not know is left alone */
    REFUSED(lnt_trace_write(s, "/dev/null", err), LNT_E_ARGUMENT, "enable_profiling");
    assert_int_equal(lnt_trace_get(s, 0, &step), LNT_E_ARGUMENT);
    lnt_session *traced;
    ACCEPTED(lnt_session_create(
        f->model,
        &(lnt_session_options){.struct_bytes = sizeof(lnt_session_options), .enable_profiling = true},
        &traced, err));
    REFUSED(lnt_trace_write(traced, "/nonexistent/trace.json", err), LNT_E_IO, "/nonexistent/trace.json");
    REFUSED(lnt_trace_write(traced, NULL, err), LNT_E_ARGUMENT, "path");
    lnt_session_destroy(&traced);
}

/* ---- integers ---- */

/* 0, 1, the last but one and the last of its type. */
#define ENDS(max)                                                                                            \
    {                                                                                                        \
        0, 1, (max)-1, (max)                                                                                 \
    }

static void test_ends_of_indices(void **state)
{
    const fixture *f = *state;
    const uint32_t ends[] = ENDS(UINT32_MAX);
    lnt_session *s = f->session;
    lnt_value_info info;
    lnt_trace_step step;
    lnt_tensor t;
    const char *key, *text;
    ACCEPTED(lnt_set_input(s, 0, &two_rows, err));
    ACCEPTED(lnt_run(s, err));
    for (int i = 0; i < 4; i++) {
        const lnt_status here = i < 2 ? LNT_OK : LNT_E_ARGUMENT;
        assert_int_equal(lnt_model_input(f->model, ends[i], &info), here);
        assert_int_equal(lnt_model_output(f->model, ends[i], &info), here);
        assert_int_equal(lnt_get_output(s, ends[i], &t, NULL), here);
        assert_int_equal(lnt_state_get(s, ends[i], &t, NULL), i ? LNT_E_ARGUMENT : LNT_OK);
        assert_int_equal(lnt_trace_get(s, ends[i], &step), LNT_E_ARGUMENT);
        if (i < 2)
            continue;
        assert_int_equal(lnt_model_metadata(f->model, ends[i], &key, &text), LNT_E_ARGUMENT);
        REFUSED(lnt_set_input(s, ends[i], &two_rows, err), LNT_E_ARGUMENT, "no input 429496729");
        REFUSED(lnt_set_output(s, ends[i], numbers, 4, err), LNT_E_ARGUMENT, "no output 429496729");
        REFUSED(lnt_state_set(s, ends[i], &two_rows, err), LNT_E_ARGUMENT, "no state 429496729");
        REFUSED(lnt_select_outputs(s, &ends[0], ends[i], err), LNT_E_ARGUMENT, "a model that has 2");
        ACCEPTED(lnt_select_outputs(s, NULL, ends[i], err));
        ACCEPTED(lnt_run(s, err));
    }
}

static void test_ends_of_tensors(void **state)
{
    const fixture *f = *state;
    const int64_t extents[] = ENDS(INT64_MAX);
    const uint32_t ranks[] = ENDS(UINT32_MAX);
    const size_t bytes[] = ENDS(SIZE_MAX);
    lnt_session *s = f->session;
    ACCEPTED(lnt_keep_value(s, "kept", err));
    for (int i = 0; i < 4; i++) {
        const int64_t n = extents[i];
        const lnt_status fits = i < 2 ? LNT_OK : LNT_E_SHAPE;
        assert_int_equal(lnt_set_input(s, 0, FLOATS(2, n, 4, numbers, 32), NULL), fits);
        assert_int_equal(lnt_set_input(s, 0, FLOATS(2, n, 4, NULL, 0), NULL), fits);
        assert_int_equal(lnt_set_value(s, "kept", FLOATS(2, n, 4, numbers, 32), NULL), fits);
        REFUSED(lnt_set_input(s, 0, FLOATS(ranks[i], 2, 4, numbers, 32), err), LNT_E_SHAPE, "input x");
        REFUSED(lnt_set_value(s, "kept", FLOATS(ranks[i], 2, 4, numbers, 32), err), LNT_E_SHAPE, "rank 2");
        REFUSED(lnt_set_input(s, 0, TENSOR((lnt_dtype)n, 2, 2, 4, numbers, 32), err),
                (lnt_dtype)n == LNT_FLOAT ? LNT_OK : LNT_E_TYPE, NULL);
    }
    ACCEPTED(lnt_set_value(s, "kept", NULL, err));
    for (int i = 0; i < 4; i++) {
        const lnt_status enough = i < 2 ? LNT_E_SHAPE : LNT_OK;
        assert_int_equal(lnt_set_input(s, 0, FLOATS(2, 2, 4, numbers, bytes[i]), NULL), enough);
        assert_int_equal(lnt_set_value(s, "kept", FLOATS(2, 2, 4, numbers, bytes[i]), NULL), enough);
    }
    ACCEPTED(lnt_set_value(s, "kept", NULL, err));
    for (int i = 0; i < 4; i++) {
        float y[8];
        ACCEPTED(lnt_set_output(s, 0, y, bytes[i], err));
        REFUSED(lnt_run(s, err), i < 2 ? LNT_E_LIMIT : LNT_OK, NULL);
    }
}

static void test_ends_of_settings(void **state)
{
    const fixture *f = *state;
    const uint64_t ends[] = ENDS(UINT64_MAX);
    const int64_t bounds[] = {INT64_MIN, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    lnt_session *s = f->session;
    for (int i = 0; i < 6; i++) {
        ACCEPTED(lnt_set_input(s, 0, &two_rows, err));
        ACCEPTED(lnt_set_bound(s, "s0", bounds[i], err));
        REFUSED(lnt_run(s, err), i == 2 || i == 3 ? LNT_E_LIMIT : LNT_OK, NULL);
    }
    for (int i = 0; i < 4; i++) {
        struct {
            lnt_session_info info;
            uint64_t behind;
        } told = {.info.struct_bytes = (size_t)ends[i], .behind = 7};
        lnt_set_deadline(s, ends[i]);
        lnt_set_seed(s, ends[i]);
        const lnt_status status = lnt_run(s, NULL);
        assert_true(status == LNT_OK || (i == 1 && status == LNT_E_DEADLINE));
        REFUSED(lnt_session_get_info(s, &told.info, err), i ? LNT_OK : LNT_E_ARGUMENT, NULL);
        assert_int_equal(told.behind, 7);
    }
}

static void test_ends_of_options(void **state)
{
    const fixture *f = *state;
    const uint32_t threads[] = ENDS(UINT32_MAX);
    const uint64_t ends[] = ENDS(UINT64_MAX);
    const lnt_config_entry sleep = {"session.intra_op.allow_spinning", "0"};
    const lnt_custom_op op = {"host", "op", .shape = some_rule, .run = some_rule};
    const int modes[] = {0, 1, INT_MAX - 1, INT_MAX};
    for (int i = 0; i < 4; i++) {
        const size_t size = (size_t)ends[i];
        lnt_session_options o = {.struct_bytes = sizeof o, .seed = ends[i]};
        const lnt_model_options many = {.struct_bytes = sizeof many, .custom = &op, .n_custom = size};
        const lnt_model_options flags = {.struct_bytes = sizeof flags, .flags = threads[i]};
        lnt_session_info info = {.struct_bytes = sizeof info};
        lnt_session *s = NULL;
        lnt_model *m = NULL;
        lnt_pool *pool = NULL;
        o.intra_op_num_threads = o.inter_op_num_threads = threads[i];
        ACCEPTED(lnt_session_create(f->model, &o, &s, err));
        ACCEPTED(lnt_session_get_info(s, &info, err));
        assert_true(i ? info.threads == (i == 1 ? 1 : 64) : info.threads > 0);
        lnt_session_destroy(&s);
        ACCEPTED(lnt_pool_create(threads[i], &pool, err));
        lnt_pool_destroy(&pool);
        o = (lnt_session_options){.struct_bytes = sizeof o, .config = &sleep, .n_config = size};
        REFUSED(lnt_session_create(f->model, &o, &s, err), i < 2 ? LNT_OK : LNT_E_ARGUMENT, NULL);
        lnt_session_destroy(&s);
        o = (lnt_session_options){.struct_bytes = sizeof o, .execution_mode = (lnt_execution_mode)modes[i]};
        REFUSED(lnt_session_create(f->model, &o, &s, err), i < 2 ? LNT_OK : LNT_E_ARGUMENT, NULL);
        lnt_session_destroy(&s);
        o = (lnt_session_options){
            .struct_bytes = sizeof o, .arena = f->image, .arena_bytes = i < 2 ? size : 0};
        o.log_severity_level = modes[i];
        ACCEPTED(lnt_session_create(f->model, &o, &s, err));
        ACCEPTED(lnt_set_input(s, 0, &two_rows, err));
        REFUSED(lnt_run(s, err), LNT_E_LIMIT, "arena");
        lnt_session_destroy(&s);
        REFUSED(lnt_model_create_from_memory(f->image, f->size, &many, &m, err),
                i < 2 ? LNT_OK : LNT_E_ARGUMENT, NULL);
        lnt_model_destroy(&m);
        REFUSED(lnt_model_create_from_memory(f->image, f->size, &flags, &m, err),
                i < 2 ? LNT_OK : LNT_E_ARGUMENT, NULL);
        lnt_model_destroy(&m);
        REFUSED(lnt_model_create_from_memory(f->image, size, NULL, &m, err),
                i < 2 ? LNT_E_FILE : LNT_E_ARGUMENT, NULL);
    }
}

static void test_ends_of_struct_bytes(void **state)
{
    const fixture *f = *state;
    const size_t ends[] = {1, SIZE_MAX - 1, SIZE_MAX};
    for (int i = 0; i < 3; i++) {
        const lnt_session_options o = {.struct_bytes = ends[i], .intra_op_num_threads = 1};
        const lnt_host host = {.struct_bytes = ends[i]};
        const lnt_model_options how = {.struct_bytes = ends[i], .host = &host};
        lnt_session *s = NULL;
        lnt_model *m = NULL;
        ACCEPTED(lnt_session_create(f->model, &o, &s, err));
        lnt_session_destroy(&s);
        ACCEPTED(lnt_model_create_from_memory(f->image, f->size, &how, &m, err));
        lnt_model_destroy(&m);
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_files_that_are_no_models),
        TEST(test_model_options),
        TEST(test_questions_to_a_model),
        TEST(test_session_options),
        TEST(test_no_session),
        TEST(test_inputs),
        TEST(test_outputs),
        cmocka_unit_test(test_outputs_have_memory_each),
        cmocka_unit_test(test_outputs_of_extents_that_data_decides),
        TEST(test_values_by_name),
        TEST(test_states),
        TEST(test_information),
        TEST(test_ends_of_indices),
        TEST(test_ends_of_tensors),
        TEST(test_ends_of_settings),
        TEST(test_ends_of_options),
        TEST(test_ends_of_struct_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
