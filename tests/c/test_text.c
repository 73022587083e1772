/* test_text.c — text in sessions: what goes in comes out, words of runs before go away, numbers of no word are refused,
 * memory that is short leaves the session usable. */
#include "model_builder.h"

#include "base/memory.h"
#include "base/word_table.h"

#include <stdio.h>

/* y = a + b, words joined; z: numbers that are fed, given out as words. The model knows "one" and "two". */
static lnt_model *make_model(void **image, size_t *size)
{
    static const char *const known[] = {"one", "two"};
    builder b;
    builder_begin(&b);
    const uint32_t a = builder_input(&b, "a", LNT_INT64, 1, (int64_t[]){-2});
    const uint32_t c = builder_input(&b, "b", LNT_INT64, 1, (int64_t[]){-2});
    const uint32_t n = builder_input(&b, "n", LNT_INT64, 1, (int64_t[]){2});
    const uint32_t y = builder_node(&b, "StringConcat", "y", 2, (uint32_t[]){a, c});
    const uint32_t z = builder_node(&b, "Neg", "z", 1, &n);
    b.g.value[a].text = b.g.value[c].text = b.g.value[y].text = b.g.value[z].text = true;
    for (size_t i = 0; i < 2; i++) {
        must(LNT_GROW(&lnt_malloc_allocator, b.g.words.word, b.g.word_capacity, i, &b.err), &b.err);
        b.g.words.word[b.g.words.n++] = known[i];
    }
    builder_output(&b, y);
    builder_output(&b, z);
    lnt_model *model = builder_end(&b, LNT_OPT_NONE, image);
    *size = ((const lnt_rec_header *)*image)->file_bytes;
    return model;
}

static lnt_tensor text(const char *const *word, int64_t n)
{
    return (lnt_tensor){LNT_STRING, 1, {n}, (void *)(uintptr_t)word, (size_t)n * sizeof *word};
}

static lnt_status run_with(lnt_session *s, const char *const *a, const char *const *b, int64_t count,
                           int64_t *n, lnt_error *err)
{
    const lnt_tensor first = text(a, count), second = text(b, count), numbers = {LNT_INT64, 1, {2}, n, 16};
    LNT_TRY(lnt_set_input(s, 0, &first, err));
    LNT_TRY(lnt_set_input(s, 1, &second, err));
    LNT_TRY(lnt_set_input(s, 2, &numbers, err));
    return lnt_run(s, err);
}

static void expect(lnt_session *s, uint32_t output, size_t i, const char *word)
{
    lnt_error err = {0};
    lnt_tensor t;
    must(lnt_get_output(s, output, &t, &err), &err);
    assert_int_equal(t.dtype, LNT_STRING);
    assert_true(i < t.bytes / sizeof(char *));
    assert_string_equal(((const char *const *)t.data)[i], word);
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
    lnt_error err = {0};
    f = (fixture){0};
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

static void test_runs(void **state)
{
    fixture *f = *state;
    lnt_error err = {0};
    int64_t n[2] = {0, -1};
    must(
        run_with(f->session, (const char *[]){"x", "", "one"}, (const char *[]){"y", "\xff", ""}, 3, n, &err),
        &err);
    expect(f->session, 0, 0, "xy");
    expect(f->session, 0, 1, "\xff");
    expect(f->session, 0, 2, "one");
    expect(f->session, 1, 0, "one");
    expect(f->session, 1, 1, "two");
    lnt_value_info info;
    assert_int_equal(lnt_model_input(f->model, 0, &info), LNT_OK);
    assert_int_equal(info.dtype, LNT_STRING);
    assert_int_equal(lnt_model_input(f->model, 2, &info), LNT_OK);
    assert_int_equal(info.dtype, LNT_INT64);
}

/* What comes out is what goes in next. */
static void test_output_as_input(void **state)
{
    fixture *f = *state;
    lnt_error err = {0};
    lnt_tensor y;
    int64_t n[2] = {0};
    must(run_with(f->session, (const char *[]){"a"}, (const char *[]){"b"}, 1, n, &err), &err);
    for (size_t i = 2; i < 40; i++) {
        must(lnt_get_output(f->session, 0, &y, &err), &err);
        must(lnt_set_input(f->session, 0, &y, &err), &err);
        must(lnt_run(f->session, &err), &err);
        must(lnt_get_output(f->session, 0, &y, &err), &err);
        assert_int_equal(strlen(*(const char *const *)y.data), i + 1);
    }
}

/* Words of inputs given before, and of runs before, go away in the end. */
static void test_growth(void **state)
{
    fixture *f = *state;
    lnt_error err = {0};
    lnt_session_info info = {.struct_bytes = sizeof info};
    char a[2][32], joined[64];
    int64_t n[2] = {0};
    uint64_t held = 0;
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(a[0], sizeof a[0], "left %u", i);
        snprintf(a[1], sizeof a[1], "right %u", i);
        must(run_with(f->session, (const char *[]){a[0]}, (const char *[]){a[1]}, 1, n, &err), &err);
        snprintf(joined, sizeof joined, "%s%s", a[0], a[1]);
        expect(f->session, 0, 0, joined);
        must(lnt_session_get_info(f->session, &info, &err), &err);
        held = i == 5000 ? info.held_bytes : held;
    }
    assert_true(info.held_bytes <= held + held / 4);
}

static void refused(lnt_status status, lnt_status expected, lnt_error *err, const char *words)
{
    if (status != expected || !strstr(err->message, words))
        fail_msg("%s: %s", lnt_status_text(status), err->message);
    *err = (lnt_error){0};
}

static void test_misuse(void **state)
{
    fixture *f = *state;
    lnt_error err = {0};
    int64_t n[2] = {0};
    const char *const word[] = {"x", "y"}, *const hole[] = {"x", NULL};
    lnt_tensor t = {LNT_INT64, 1, {2}, n, sizeof n}, y;
    refused(lnt_set_input(f->session, 0, &t, &err), LNT_E_TYPE, &err, "takes string, not int64");
    t = text(word, 2);
    refused(lnt_set_input(f->session, 2, &t, &err), LNT_E_TYPE, &err, "takes int64, not string");
    t.bytes = 15;
    refused(lnt_set_input(f->session, 0, &t, &err), LNT_E_SHAPE, &err, "pointers to text");
    t = text(hole, 2);
    refused(lnt_set_input(f->session, 0, &t, &err), LNT_E_ARGUMENT, &err, "element 1 is NULL");
    t = text(word, -1);
    refused(lnt_set_input(f->session, 0, &t, &err), LNT_E_SHAPE, &err, "takes string");
    refused(lnt_set_output(f->session, 0, n, sizeof n, &err), LNT_E_ARGUMENT, &err, "only lnt_get_output");
    must(run_with(f->session, word, word, 2, n, &err), &err);
    expect(f->session, 0, 1, "yy");
    for (int64_t wrong = 1; wrong < 3; wrong++) {
        n[1] = wrong == 1 ? INT64_MIN + 1 : 1;
        must(run_with(f->session, word, word, 2, n, &err), &err);
        refused(lnt_get_output(f->session, 1, &y, &err), LNT_E_VALUE, &err, "the number of no word");
    }
}

/* ---- memory ---- */

typedef struct host {
    unsigned left; /* allocations that succeed */
    int held;
} host;

static void *allocate(void *user, size_t bytes)
{
    host *h = user;
    if (!h->left)
        return NULL;
    h->left--;
    void *block = lnt_malloc_allocator.allocate(NULL, bytes);
    h->held += block != NULL;
    return block;
}

static void release(void *user, void *block)
{
    host *h = user;
    h->held -= block != NULL;
    lnt_malloc_allocator.release(NULL, block);
}

/* True once all succeeds. */
static bool try_with(const fixture *f, host *h)
{
    const lnt_host memory = {
        .struct_bytes = sizeof memory, .allocate = allocate, .release = release, .user = h};
    const lnt_model_options options = {.struct_bytes = sizeof options, .host = &memory};
    const lnt_session_options one = {.struct_bytes = sizeof one, .intra_op_num_threads = 1};
    static const char *const word[] = {"x", "a longer word"};
    lnt_model *m = NULL;
    lnt_session *s = NULL;
    lnt_error err = {0};
    lnt_tensor y;
    int64_t n[2] = {0};
    lnt_status status = lnt_model_create_from_memory(f->image, f->size, &options, &m, &err);
    if (status == LNT_OK)
        status = lnt_session_create(m, &one, &s, &err);
    for (unsigned i = 0; i < 2 && status == LNT_OK; i++)
        status = run_with(s, word, word, 2, n, &err);
    if (status == LNT_OK)
        status = lnt_get_output(s, 0, &y, &err);
    if (status != LNT_OK)
        assert_int_equal(status, LNT_E_MEMORY);
    if (s && status != LNT_OK) { /* it can go on */
        h->left = UINT32_MAX;
        err = (lnt_error){0};
        must(run_with(s, word, word, 2, n, &err), &err);
        expect(s, 0, 0, "xx");
    }
    lnt_session_destroy(&s);
    lnt_model_destroy(&m);
    assert_int_equal(h->held, 0);
    return status == LNT_OK;
}

static void test_failing_allocator(void **state)
{
    const fixture *f = *state;
    bool done = false;
    for (unsigned left = 0; left < 500 && !done; left++) {
        host h = {.left = left};
        done = try_with(f, &h);
    }
    assert_true(done);
}

static void test_limit(void **state)
{
    fixture *f = *state;
    const lnt_session_options limited = {
        .struct_bytes = sizeof limited, .intra_op_num_threads = 1, .memory_limit = 200000};
    lnt_session *s = NULL;
    lnt_error err = {0};
    int64_t n[2] = {0};
    char *large = malloc(1000001);
    assert_non_null(large);
    memset(large, 'x', 1000000);
    large[1000000] = '\0';
    must(lnt_session_create(f->model, &limited, &s, &err), &err);
    const lnt_status status = run_with(s, (const char *[]){large}, (const char *[]){"y"}, 1, n, &err);
    refused(status, LNT_E_MEMORY, &err, "memory_limit");
    must(run_with(s, (const char *[]){"x"}, (const char *[]){"y"}, 1, n, &err), &err);
    expect(s, 0, 0, "xy");
    lnt_session_destroy(&s);
    free(large);
}

/* ---- the table by itself ---- */

static void test_table(void **state)
{
    (void)state;
    lnt_error err = {0};
    lnt_text *t = lnt_text_make(&lnt_malloc_allocator, &err);
    lnt_chars word;
    int64_t number;
    char name[16];
    assert_non_null(t);
    for (int round = 0; round < 3; round++) {
        for (int i = round * 100; i < 1000; i++) {
            const int length = snprintf(name, sizeof name, "%d", i);
            const lnt_chars parts[] = {{name, 1}, {name + 1, (size_t)length - 1}};
            must(lnt_text_put(t, parts, 2, &number, &err), &err);
            assert_int_equal(number, i);
            if (i == round * 100 + 99)
                lnt_text_mark(t);
        }
        lnt_text_rewind(t);
        assert_int_equal(lnt_text_count(t), (round + 1) * 100);
    }
    must(lnt_text_get(t, 299, &word, &err), &err);
    assert_string_equal(word.at, "299");
    assert_int_equal(lnt_text_get(t, 300, &word, &err), LNT_E_VALUE);
    lnt_text_free(&t);
    assert_null(t);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_runs),
        TEST(test_output_as_input),
        TEST(test_growth),
        TEST(test_misuse),
        TEST(test_limit),
        TEST(test_failing_allocator),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
