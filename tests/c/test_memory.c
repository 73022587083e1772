/* test_memory.c — a budget counts what is held, refuses what is beyond it and says so; a session's holds all
 * that the session does. Run from the top of the tree. */
#include "model_builder.h"

#include "base/memory.h"

#include <pthread.h>

enum { LIMIT = 1 << 20, BLOCK = 1000, TAKEN = BLOCK + LNT_ALIGN };

static void test_a_budget_counts_what_is_held(void **state)
{
    (void)state;
    lnt_budget b;
    lnt_error err = {0};
    lnt_budget_init(&b, &lnt_malloc_allocator, LIMIT, "memory_limit");
    char *first = lnt_alloc(&b.allocator, BLOCK, &err), *second = lnt_alloc(&b.allocator, 0, &err);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_equal((uintptr_t)first % LNT_ALIGN, 0);
    assert_int_equal((uintptr_t)second % LNT_ALIGN, 0);
    memset(first, 1, BLOCK);
    assert_int_equal(b.used, TAKEN + LNT_ALIGN);
    lnt_free(&b.allocator, first);
    assert_int_equal(b.used, LNT_ALIGN);
    lnt_free(&b.allocator, second);
    assert_int_equal(b.used, 0);
}

static void test_a_budget_refuses_one_byte_too_many(void **state)
{
    (void)state;
    lnt_budget b;
    lnt_error err = {0};
    lnt_budget_init(&b, &lnt_malloc_allocator, 2 * TAKEN, "memory_limit");
    void *first = lnt_alloc(&b.allocator, BLOCK, &err);
    assert_false(lnt_budget_refused(&b.allocator));
    assert_null(lnt_alloc(&b.allocator, BLOCK + 1, &err));
    assert_true(lnt_budget_refused(&b.allocator));
    assert_int_equal(err.code, LNT_E_MEMORY);
    assert_string_equal(err.message,
                        "no memory for 1001 bytes: 1064 of the 2128 that memory_limit allows are taken");
    void *second = lnt_alloc(&b.allocator, BLOCK, &err);
    assert_non_null(second);
    b.limit = TAKEN; /* less than is held: nothing more */
    assert_null(lnt_alloc(&b.allocator, 0, &err));
    lnt_free(&b.allocator, first);
    lnt_free(&b.allocator, second);
    assert_int_equal(b.used, 0);
}

static void test_sizes_near_the_end_of_the_address_space_are_refused(void **state)
{
    (void)state;
    lnt_budget b;
    lnt_budget_init(&b, &lnt_malloc_allocator, UINT64_MAX, "memory_limit");
    for (size_t less = 0; less < 2 * LNT_ALIGN; less++) {
        assert_null(lnt_alloc(&b.allocator, SIZE_MAX - less, NULL));
        assert_null(b.allocator.allocate(b.allocator.host, SIZE_MAX - less));
    }
    assert_int_equal(b.used, 0);
}

static void *allocate_nothing(void *host, size_t bytes)
{
    (void)host;
    (void)bytes;
    return NULL;
}

static void test_what_the_source_refuses_is_not_counted(void **state)
{
    (void)state;
    const lnt_allocator none = {allocate_nothing, NULL, NULL};
    lnt_budget b;
    lnt_error err = {0};
    lnt_budget_init(&b, &none, LIMIT, "memory_limit");
    assert_null(lnt_alloc(&b.allocator, BLOCK, &err));
    assert_string_equal(err.message, "no memory for 1000 bytes");
    assert_false(lnt_budget_refused(&b.allocator));
    assert_int_equal(b.used, 0);
}

/* Takes and gives back until it has had a block often enough; with four threads and room for two, many are
 * refused. */
static void *take_often(void *arg)
{
    lnt_budget *b = arg;
    for (unsigned had = 0; had < 5000;) {
        void *block = lnt_alloc(&b->allocator, BLOCK, NULL);
        had += block != NULL;
        lnt_free(&b->allocator, block);
    }
    return NULL;
}

static void test_a_budget_is_shared_by_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    lnt_budget b;
    lnt_budget_init(&b, &lnt_malloc_allocator, 2 * TAKEN, "memory_limit");
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_often, &b), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(b.used, 0);
}

/* Counts what a host gives a session. */
typedef struct host_memory {
    size_t held, most;
} host_memory;

static void *host_allocate(void *user, size_t bytes)
{
    host_memory *h = user;
    char *block = lnt_malloc_allocator.allocate(NULL, bytes + LNT_ALIGN);
    if (!block)
        return NULL;
    memcpy(block, &bytes, sizeof bytes);
    h->held += bytes;
    h->most = h->held > h->most ? h->held : h->most;
    return block + LNT_ALIGN;
}

static void host_release(void *user, void *block)
{
    host_memory *h = user;
    size_t bytes;
    memcpy(&bytes, (char *)block - LNT_ALIGN, sizeof bytes);
    h->held -= bytes;
    lnt_malloc_allocator.release(NULL, (char *)block - LNT_ALIGN);
}

/* A loop stacks 32 KB a turn: turn by turn it holds more, and what it holds never exceeds the limit. */
static void test_what_a_loop_stacks_counts_against_the_limit(void **state)
{
    (void)state;
    enum { ELEMENTS = 4096, SPARE = 64 * 1024 };
    static float ones[ELEMENTS];
    int64_t turns = 1000;
    host_memory held = {0, 0};
    const lnt_host host = {sizeof host, host_allocate, host_release, NULL, &held};
    const lnt_model_options how = {.struct_bytes = sizeof how, .host = &host};
    const lnt_session_options options = {
        .struct_bytes = sizeof options, .intra_op_num_threads = 1, .memory_limit = 8 << 20};
    lnt_report report;
    lnt_error err = {0};
    lnt_model *model = NULL;
    lnt_session *s = NULL;
    void *image;
    size_t size;
    lnt_report_init(&report);
    assert_int_equal(lnt_convert_file("tests/data/models/loop_branches.onnx", &(lnt_convert_options){0},
                                      &report, &image, &size, &err),
                     LNT_OK);
    lnt_report_free(&report);
    assert_int_equal(lnt_model_create_from_memory(image, size, &how, &model, &err), LNT_OK);
    const size_t of_the_model = held.held;
    assert_int_equal(lnt_session_create(model, &options, &s, &err), LNT_OK);
    const lnt_tensor n = {LNT_INT64, 0, {0}, &turns, sizeof turns},
                     x = {LNT_FLOAT, 1, {ELEMENTS}, ones, sizeof ones};
    assert_int_equal(lnt_set_input(s, (uint32_t)lnt_model_find_input(model, "n"), &n, &err), LNT_OK);
    assert_int_equal(lnt_set_input(s, (uint32_t)lnt_model_find_input(model, "x"), &x, &err), LNT_OK);
    assert_int_equal(lnt_run(s, &err), LNT_E_MEMORY);
    assert_non_null(strstr(err.message, "that memory_limit allows"));
    assert_in_range(held.most - of_the_model, options.memory_limit / 4, options.memory_limit + SPARE);
    turns = 3;
    assert_int_equal(lnt_session_trim(s, &err), LNT_OK);
    assert_int_equal(lnt_run(s, &err), LNT_OK);
    lnt_session_destroy(&s);
    assert_int_equal(held.held, of_the_model);
    lnt_model_destroy(&model);
    assert_int_equal(held.held, 0);
    lnt_free(&lnt_malloc_allocator, image);
}

/* How many distinct rows there are is counted before anything is bound: within the limit, and no longer than the
 * deadline allows. */
static void test_counting_for_an_extent_is_bounded(void **state)
{
    (void)state;
    enum { ROWS = 1 << 18, COLUMNS = 8 };
    static uint8_t data[ROWS * COLUMNS];
    const lnt_session_options options = {
        .struct_bytes = sizeof options, .intra_op_num_threads = 1, .memory_limit = 4 << 20};
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_UINT8, 2, (int64_t[]){-2, COLUMNS});
    const uint32_t y = builder_node(&b, "Unique", "y", 1, &x);
    must(lnt_gnode_set_int(&b.g, b.g.value[y].producer, "axis", 0), &b.err);
    builder_output(&b, y);
    built_as_is(&t, &b);
    must(built_set(&t, 0, LNT_UINT8, 2, (int64_t[]){ROWS, COLUMNS}, data), &t.err);
    lnt_set_deadline(t.session, 1);
    assert_int_equal(lnt_run(t.session, &t.err), LNT_E_DEADLINE);
    lnt_session_destroy(&t.session);
    must(lnt_session_create(t.model, &options, &t.session, &t.err), &t.err);
    must(built_set(&t, 0, LNT_UINT8, 2, (int64_t[]){ROWS, COLUMNS}, data), &t.err);
    expect_refused(&t, lnt_run(t.session, &t.err), LNT_E_MEMORY, "y (Unique)", "that memory_limit allows");
    built_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_budget_counts_what_is_held),
        cmocka_unit_test(test_a_budget_refuses_one_byte_too_many),
        cmocka_unit_test(test_sizes_near_the_end_of_the_address_space_are_refused),
        cmocka_unit_test(test_what_the_source_refuses_is_not_counted),
        cmocka_unit_test(test_a_budget_is_shared_by_threads),
        cmocka_unit_test(test_what_a_loop_stacks_counts_against_the_limit),
        cmocka_unit_test(test_counting_for_an_extent_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
