/* test_states.c — a cache carried from run to run: whether it has room behind its planes or not, is bounded,
 * read, set or reset in between, each run gives what the cache fed by hand gives. Run from the top of the tree. */
#include "convert/convert.h"
#include "runtime/linnet.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { HEADS = 2, SIZE = 4, MOST = 64, STEPS = 9 };

static const int64_t new_rows[STEPS] = {3, 1, 1, 1, 5, 1, 1, 12, 1};

typedef struct fixture {
    void *image;
    size_t size;
    lnt_model *model;
    lnt_error err;
} fixture;

static void must(lnt_status status, const lnt_error *err)
{
    if (status != LNT_OK)
        fail_msg("%s: %s", lnt_status_text(status), err->message);
}

static fixture open_model(bool carried)
{
    static const lnt_named_text states[] = {{"present_k", "past_k"}, {"present_v", "past_v"}};
    static const char *const kept[] = {"past_k"};
    const lnt_convert_options how = {
        .opt = LNT_OPT_ALL, .state = states, .n_states = carried ? 2 : 0, .keep = kept, .n_keep = 1};
    fixture f = {.size = 0};
    lnt_report report;
    lnt_report_init(&report);
    must(lnt_convert_file("tests/data/models/cache.onnx", &how, &report, &f.image, &f.size, &f.err), &f.err);
    lnt_report_free(&report);
    must(lnt_model_create_from_memory(f.image, f.size, NULL, &f.model, &f.err), &f.err);
    return f;
}

static void close_model(fixture *f)
{
    lnt_model_destroy(&f->model);
    lnt_free(&lnt_malloc_allocator, f->image);
}

static void give(fixture *f, lnt_session *s, const char *name, int64_t rows, const float *data)
{
    const lnt_tensor t = {LNT_FLOAT, 4, {1, HEADS, rows, SIZE}, (void *)(uintptr_t)data,
                          (size_t)(HEADS * rows * SIZE) * sizeof(float)};
    must(lnt_set_input(s, (uint32_t)lnt_model_find_input(f->model, name), &t, &f->err), &f->err);
}

/* q, k and v of one step. */
static void give_step(fixture *f, lnt_session *s, unsigned step)
{
    static float x[3][HEADS * MOST * SIZE];
    static const char *const names[] = {"q", "k", "v"};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned e = 0; e < HEADS * MOST * SIZE; e++)
            x[i][e] = sinf((float)(e + 1) * 0.7f + (float)(step * 3 + i));
        give(f, s, names[i], new_rows[step], x[i]);
    }
}

static lnt_tensor output(fixture *f, lnt_session *s, const char *name)
{
    lnt_tensor t;
    must(lnt_get_output(s, (uint32_t)lnt_model_find_output(f->model, name), &t, &f->err), &f->err);
    return t;
}

typedef struct expected {
    float y[STEPS][HEADS * MOST * SIZE], k[STEPS][HEADS * MOST * SIZE], v[STEPS][HEADS * MOST * SIZE];
    int64_t rows[STEPS]; /* of the cache after the step */
} expected;

/* The cache as inputs and outputs. */
static void by_hand(expected *e)
{
    fixture f = open_model(false);
    lnt_session *s;
    must(lnt_session_create(f.model, NULL, &s, &f.err), &f.err);
    for (unsigned step = 0; step < STEPS; step++) {
        give_step(&f, s, step);
        give(&f, s, "past_k", step ? e->rows[step - 1] : 0, step ? e->k[step - 1] : e->k[0]);
        give(&f, s, "past_v", step ? e->rows[step - 1] : 0, step ? e->v[step - 1] : e->v[0]);
        must(lnt_run(s, &f.err), &f.err);
        const lnt_tensor y = output(&f, s, "y"), k = output(&f, s, "present_k"), v = output(&f, s, "present_v");
        memcpy(e->y[step], y.data, y.bytes);
        memcpy(e->k[step], k.data, k.bytes);
        memcpy(e->v[step], v.data, v.bytes);
        e->rows[step] = k.dims[2];
    }
    lnt_session_destroy(&s);
    close_model(&f);
}

static void same(const float *a, const float *b, size_t n, const char *what, unsigned step)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-6f))
            fail_msg("%s of step %u: element %zu is %g, not %g", what, step, i, (double)a[i], (double)b[i]);
}

/* Step `step` of a session whose cache is a state. */
static void take_step(fixture *f, lnt_session *s, const expected *e, unsigned step)
{
    give_step(f, s, step);
    must(lnt_run(s, &f->err), &f->err);
    same(output(f, s, "y").data, e->y[step], (size_t)(HEADS * new_rows[step] * SIZE), "y", step);
}

/* What the host reads of both states, and that it may be set again. */
static void read_states(fixture *f, lnt_session *s, const expected *e, unsigned step, bool set)
{
    for (uint32_t k = 0; k < lnt_state_count(s); k++) {
        lnt_tensor t;
        must(lnt_state_get(s, k, &t, &f->err), &f->err);
        assert_int_equal(t.dims[2], e->rows[step]);
        const float *want = k == 0 ? e->k[step] : e->v[step];
        same(t.data, want, t.bytes / sizeof(float), "a state", step);
        t.data = (void *)(uintptr_t)want;
        if (set)
            must(lnt_state_set(s, k, &t, &f->err), &f->err);
    }
}

typedef enum way { PLAIN, BOUNDED, TIGHT, KEPT, READ, SET, WAYS } way;

static void prepare(fixture *f, lnt_session *s, way w)
{
    if (w == BOUNDED || w == TIGHT)
        must(lnt_set_bound(s, "past", w == TIGHT ? 5 : MOST, &f->err), &f->err);
}

static void test_a_cache_in_every_way(void **state)
{
    (void)state;
    static expected e;
    by_hand(&e);
    fixture f = open_model(true);
    for (way w = PLAIN; w < WAYS; w++) {
        lnt_session *s;
        must(lnt_session_create(f.model, NULL, &s, &f.err), &f.err);
        assert_int_equal(lnt_state_count(s), 2);
        prepare(&f, s, w);
        for (unsigned round = 0; round < 2; round++, must(lnt_state_reset(s, &f.err), &f.err))
            for (unsigned step = 0; step < (w == TIGHT ? 4 : STEPS); step++) {
                if (w == KEPT && step == 3) /* from here on somebody else reads it */
                    must(lnt_keep_value(s, "past_k", &f.err), &f.err);
                take_step(&f, s, &e, step);
                if (w >= READ && step % 2)
                    read_states(&f, s, &e, step, w == SET);
            }
        lnt_session_destroy(&s);
    }
    close_model(&f);
}

/* Beyond the bound it is refused, and the session goes on after a reset. */
static void test_beyond_the_bound(void **state)
{
    (void)state;
    static expected e;
    by_hand(&e);
    fixture f = open_model(true);
    lnt_session *s;
    must(lnt_session_create(f.model, NULL, &s, &f.err), &f.err);
    prepare(&f, s, TIGHT);
    for (unsigned step = 0; step < 4; step++)
        take_step(&f, s, &e, step);
    give_step(&f, s, 4);
    assert_int_equal(lnt_run(s, &f.err), LNT_E_LIMIT);
    must(lnt_state_reset(s, &f.err), &f.err);
    take_step(&f, s, &e, 0);
    lnt_session_destroy(&s);
    close_model(&f);
}

static void test_states_that_do_not_fit(void **state)
{
    (void)state;
    static float data[3 * MOST * SIZE];
    fixture f = open_model(true);
    lnt_session *s;
    must(lnt_session_create(f.model, NULL, &s, &f.err), &f.err);
    lnt_tensor t = {LNT_FLOAT, 4, {1, 3, 2, SIZE}, data, sizeof(float) * 3 * 2 * SIZE};
    assert_int_equal(lnt_state_set(s, 0, &t, &f.err), LNT_E_SHAPE);
    t.dims[1] = HEADS;
    t.dtype = LNT_DOUBLE;
    assert_int_not_equal(lnt_state_set(s, 0, &t, &f.err), LNT_OK);
    assert_int_equal(lnt_state_set(s, 2, &t, &f.err), LNT_E_ARGUMENT);
    assert_int_equal(lnt_state_set(s, 0, NULL, &f.err), LNT_E_ARGUMENT);
    assert_int_equal(lnt_state_get(s, 2, &t, &f.err), LNT_E_ARGUMENT);
    assert_int_equal(lnt_state_get(s, 0, NULL, &f.err), LNT_E_ARGUMENT);
    lnt_session_destroy(&s);
    close_model(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cache_in_every_way),
        cmocka_unit_test(test_beyond_the_bound),
        cmocka_unit_test(test_states_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
