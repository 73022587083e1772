/* test_states.c — a cache carried from run to run: whether it has room behind its planes or not, is bounded,
 * read, set or reset in between, each run gives what the cache fed by hand gives. Run from the top of the tree. */
#include "model_builder.h"

#include "base/memory.h"

#include <math.h>

enum { HEADS = 2, SIZE = 4, MOST = 64, STEPS = 9 };

static const int64_t new_rows[STEPS] = {3, 1, 1, 1, 5, 1, 1, 12, 1};

typedef struct fixture {
    void *image;
    size_t size;
    lnt_model *model;
    lnt_error err;
} fixture;

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

static void test_a_state_beyond_the_budget(void **state)
{
    (void)state;
    enum { ROWS = 1 << 15 };
    const size_t bytes = sizeof(float) * HEADS * ROWS * SIZE;
    float *data = calloc(1, bytes);
    assert_non_null(data);
    fixture f = open_model(true);
    lnt_session *s;
    const lnt_session_options options = {
        .struct_bytes = sizeof options, .intra_op_num_threads = 1, .memory_limit = bytes};
    must(lnt_session_create(f.model, &options, &s, &f.err), &f.err);
    lnt_tensor t = {LNT_FLOAT, 4, {1, HEADS, ROWS, SIZE}, data, bytes};
    assert_int_equal(lnt_state_set(s, 0, &t, &f.err), LNT_E_MEMORY);
    assert_non_null(strstr(f.err.message, "that memory_limit allows"));
    t.dims[2] = 2;
    t.bytes = sizeof(float) * HEADS * 2 * SIZE;
    must(lnt_state_set(s, 0, &t, &f.err), &f.err);
    lnt_session_destroy(&s);
    close_model(&f);
    free(data);
}

/* ---- states of graphs built by hand ---- */

/* The output, which is of the input's type, is the input of the next run. */
static void carry(builder *b, uint32_t output, uint32_t input)
{
    b->g.value[b->out[output]].info.dtype = b->g.value[b->in[input]].info.dtype;
    must(LNT_GROW(&lnt_malloc_allocator, b->g.state, b->g.state_capacity, b->g.n_states, &b->err), &b->err);
    b->g.state[b->g.n_states++] = (lnt_gstate){.output = output, .input = input};
}

static lnt_tensor read_output(built *t, uint32_t i)
{
    lnt_tensor y;
    must(lnt_get_output(t->session, i, &y, &t->err), &t->err);
    return y;
}

static void refused(built *t, lnt_status status, const char *words)
{
    expect_refused(t, lnt_run(t->session, &t->err), status, "", words);
}

static float rows[HEADS * MOST * SIZE];

/* Input i, of n rows that begin with number first. */
static void give_rows(built *t, uint32_t i, int64_t n, int first)
{
    for (int e = 0; e < HEADS * (int)n * SIZE; e++)
        rows[e] = sinf((float)(first + e));
    must(built_set(t, i, LNT_FLOAT, 4, (int64_t[]){1, HEADS, n, SIZE}, rows), &t->err);
}

enum { Q, K, V, MASK, PAST_K, PAST_V };

/* y, present_k, present_v = Attention(q, k, v, past_k, past_v): the inputs in this order, the caches of that extent
 * along axis 2. n_out: how many outputs the node has. */
static void begin_attention(builder *b, int64_t past, unsigned n_out, uint32_t *in, uint32_t *out)
{
    static const char *const names[] = {"q", "k", "v", NULL, "past_k", "past_v"};
    static const char *const results[] = {"y", "present_k", "present_v"};
    builder_begin(b);
    for (unsigned i = 0; i < 6; i++) {
        const int64_t dims[] = {1, HEADS, i < MASK ? -2 : past, SIZE};
        in[i] = i == MASK ? LNT_NONE : builder_input(b, names[i], LNT_FLOAT, 4, dims);
    }
    for (unsigned o = 0; o < n_out; o++)
        out[o] = lnt_graph_add_value(&b->g, results[o]);
    builder_node_to(b, 0, "Attention", "the_node", 6, in, n_out, out);
    builder_output(b, out[0]);
}

/* Both caches are states. */
static void cache_model(built *t, int64_t past)
{
    builder b;
    uint32_t in[6], out[3];
    begin_attention(&b, past, 3, in, out);
    builder_output(&b, out[1]);
    builder_output(&b, out[2]);
    carry(&b, 1, 3);
    carry(&b, 2, 4);
    built_as_is(t, &b);
}

static void give_rows_to_all(built *t, int64_t n, int first)
{
    for (int i = 0; i < 3; i++)
        give_rows(t, (uint32_t)i, n, first); /* the same memory for all three */
}

/* The keys of steps [0, steps), each of one row, but the first of so many: as give_rows makes them. */
static void expect_keys(built *t, int64_t first_rows, int steps)
{
    lnt_tensor k;
    must(lnt_state_get(t->session, 0, &k, &t->err), &t->err);
    assert_int_equal(k.dims[2], first_rows + steps - 1);
    for (int h = 0; h < HEADS; h++)
        for (int64_t r = 0; r < k.dims[2]; r++)
            for (int e = 0; e < SIZE; e++) {
                const int64_t n = r < first_rows ? first_rows : 1, row = r < first_rows ? r : 0;
                const int step = r < first_rows ? 0 : (int)(r - first_rows) + 1;
                const float want = sinf((float)(step + (h * n + row) * SIZE + e));
                assert_true(((const float *)k.data)[(h * k.dims[2] + r) * SIZE + e] == want);
            }
}

static void take_steps(built *t, int64_t first_rows, int steps)
{
    for (int step = 0; step < steps; step++) {
        give_rows_to_all(t, step ? 1 : first_rows, step);
        must(lnt_run(t->session, &t->err), &t->err);
    }
    expect_keys(t, first_rows, steps);
}

/* Extents that have no name have no bound: there is room for half as much again. */
static void test_a_cache_of_a_nameless_extent(void **state)
{
    (void)state;
    built t;
    cache_model(&t, LNT_DIM_UNKNOWN);
    take_steps(&t, 3, 6);
    built_close(&t);
}

/* Room for what a bound allows is more than there is: as without one, or refused, and then it goes on without. */
static void test_a_cache_of_an_endless_bound(void **state)
{
    (void)state;
    static const int64_t bound[] = {INT64_MAX, INT64_C(1) << 62};
    built t;
    for (int k = 0; k < 2; k++) {
        cache_model(&t, -3);
        must(lnt_set_bound(t.session, "s1", bound[k], &t.err), &t.err);
        take_steps(&t, 3, 6);
        built_close(&t);
    }
    cache_model(&t, -3);
    must(lnt_set_bound(t.session, "s1", INT64_C(1) << 59, &t.err), &t.err);
    give_rows_to_all(&t, 3, 0);
    refused(&t, LNT_E_LIMIT, "a state is too large");
    must(lnt_set_bound(t.session, "s1", -1, &t.err), &t.err);
    take_steps(&t, 3, 6);
    built_close(&t);
}

/* Planes without rows that have room behind them. */
static void test_a_cache_that_stays_empty(void **state)
{
    (void)state;
    built t;
    cache_model(&t, -3);
    must(lnt_set_bound(t.session, "s1", MOST, &t.err), &t.err);
    take_steps(&t, 0, 1);
    must(lnt_state_reset(t.session, &t.err), &t.err);
    take_steps(&t, 0, 5);
    built_close(&t);
}

/* Set while there is room behind its planes, to as many rows as it has. */
static void test_a_cache_set_in_the_middle(void **state)
{
    (void)state;
    static float keys[HEADS * 3 * SIZE];
    built t;
    lnt_tensor k;
    cache_model(&t, -3);
    give_rows_to_all(&t, 3, 0);
    must(lnt_run(t.session, &t.err), &t.err);
    const lnt_tensor set = {LNT_FLOAT, 4, {1, HEADS, 3, SIZE}, keys, sizeof keys};
    for (int i = 0; i < HEADS * 3 * SIZE; i++)
        keys[i] = (float)i;
    must(lnt_state_set(t.session, 0, &set, &t.err), &t.err);
    give_rows_to_all(&t, 1, 0);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_state_get(t.session, 0, &k, &t.err), &t.err);
    for (int h = 0; h < HEADS; h++) {
        assert_memory_equal((float *)k.data + h * 4 * SIZE, keys + h * 3 * SIZE, 3 * SIZE * sizeof *keys);
        assert_true(((float *)k.data)[(h * 4 + 3) * SIZE] == sinf((float)(h * SIZE)));
    }
    built_close(&t);
}

/* ---- states that a step which appends has to do with, but as something else ---- */

/* The next state is y, which is no cache, or the keys of a node without a past: runs give what one without states
 * gives that is fed by hand. */
static void model_beside(built *t, unsigned n_out, bool carried)
{
    builder b;
    uint32_t in[6], out[3];
    begin_attention(&b, -3, n_out, in, out);
    if (carried)
        carry(&b, 0, 3);
    built_as_is(t, &b);
}

static void test_what_is_no_cache_of_a_step_that_appends(void **state)
{
    (void)state;
    enum { RUNS = 3, N = HEADS * 2 * SIZE };
    for (unsigned n_out = 1; n_out <= 3; n_out += 2) {
        static const int64_t dims[] = {1, HEADS, 2, SIZE};
        built t[2]; /* by hand, as a state */
        float past_v[N], y[N] = {0};
        for (int i = 0; i < N; i++)
            past_v[i] = cosf((float)i);
        for (int k = 0; k < 2; k++) {
            model_beside(&t[k], n_out, k);
            must(built_set(&t[k], 3, LNT_FLOAT, 4, dims, y), &t[k].err);
            must(built_set(&t[k], 4, LNT_FLOAT, 4, dims, past_v), &t[k].err);
        }
        for (int r = 0; r < RUNS; r++) {
            lnt_tensor result;
            for (int k = 0; k < 2; k++) {
                give_rows_to_all(&t[k], 2, r);
                must(lnt_run(t[k].session, &t[k].err), &t[k].err);
                result = read_output(&t[k], 0);
                if (k == 0)
                    memcpy(y, result.data, sizeof y);
            }
            assert_int_equal(result.bytes, sizeof y);
            assert_memory_equal(result.data, y, sizeof y);
        }
        built_close(&t[0]);
        built_close(&t[1]);
    }
}

/* The keys of a step without a past become a state that another step reads. */
static void test_keys_of_a_step_without_a_past(void **state)
{
    (void)state;
    builder b;
    built t;
    uint32_t in[3];
    builder_begin(&b);
    for (int i = 0; i < 3; i++)
        in[i] = builder_input(&b,
                              i == Q   ? "q"
                              : i == K ? "k"
                                       : "v",
                              LNT_FLOAT, 4, (int64_t[]){1, HEADS, 2, SIZE});
    const uint32_t last = builder_input(&b, "last", LNT_FLOAT, 4, (int64_t[]){1, HEADS, 2, SIZE});
    builder_output(&b, builder_node(&b, "Neg", "minus", 1, &last));
    const uint32_t out[] = {lnt_graph_add_value(&b.g, "y"), lnt_graph_add_value(&b.g, "keys")};
    builder_node_to(&b, 0, "Attention", "the_node", 3, in, 2, out);
    builder_output(&b, out[1]);
    carry(&b, 1, 3);
    built_as_is(&t, &b);
    for (int r = 0; r < 3; r++) {
        give_rows_to_all(&t, 2, r);
        must(lnt_run(t.session, &t.err), &t.err);
        for (int e = 0; e < HEADS * 2 * SIZE; e++)
            assert_true(((const float *)read_output(&t, 0).data)[e] == (r ? -sinf((float)(r - 1 + e)) : 0));
    }
    built_close(&t);
}

/* The next state is known when the session is bound, behind the last step. */
static void test_a_state_that_no_step_makes(void **state)
{
    (void)state;
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 4, (int64_t[]){1, HEADS, -2, SIZE});
    const uint32_t last = builder_input(&b, "last", LNT_INT64, 1, (int64_t[]){4});
    builder_output(&b, builder_node(&b, "Neg", "minus", 1, &last));
    const uint32_t extents = builder_node(&b, "Shape", "extents", 1, &x);
    b.g.value[extents].producer->evaluate_early = true;
    builder_output(&b, extents);
    carry(&b, 1, 1);
    built_as_is(&t, &b);
    for (int64_t r = 0; r < 3; r++) {
        give_rows(&t, 0, 2 + r, 0);
        must(lnt_run(t.session, &t.err), &t.err);
        assert_int_equal(((const int64_t *)read_output(&t, 0).data)[2], r ? -(1 + r) : 0);
    }
    built_close(&t);
}

/* ---- extents of states ---- */

/* A state [s1] that begins with zeros, as many as the third input has elements; the second is of any rank. */
static void test_a_state_as_long_as_an_input(void **state)
{
    (void)state;
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){1}),
                   w = builder_input(&b, "w", LNT_FLOAT, 1, (int64_t[]){-2});
    b.g.value[x].info = (lnt_operand){.dtype = LNT_FLOAT, .rank = LNT_RANK_UNKNOWN};
    const uint32_t s = builder_input(&b, "s", LNT_FLOAT, 1, (int64_t[]){-2}),
                   sum = builder_node(&b, "Add", "sum", 2, (uint32_t[]){s, w});
    builder_output(&b, builder_node(&b, "Add", "y", 2, (uint32_t[]){x, w}));
    builder_output(&b, sum);
    carry(&b, 1, 2);
    built_as_is(&t, &b);
    rows[0] = rows[1] = rows[2] = 1;
    must(built_set(&t, 0, LNT_FLOAT, 2, (int64_t[]){1, 1}, rows), &t.err);
    must(built_set(&t, 1, LNT_FLOAT, 1, (int64_t[]){3}, rows), &t.err);
    for (int r = 1; r < 4; r++) {
        lnt_tensor total;
        must(lnt_run(t.session, &t.err), &t.err);
        must(lnt_state_get(t.session, 0, &total, &t.err), &t.err);
        assert_int_equal(total.dims[0], 3);
        assert_true(((const float *)total.data)[2] == (float)r);
    }
    built_close(&t);
}

/* A state of unknown rank must be set; it has another with each run. */
static void test_a_state_of_any_rank(void **state)
{
    (void)state;
    static const int64_t axis = 0;
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t s = builder_input(&b, "s", LNT_FLOAT, 1, (int64_t[]){1});
    b.g.value[s].info = (lnt_operand){.dtype = LNT_FLOAT, .rank = LNT_RANK_UNKNOWN};
    const uint32_t axes =
        lnt_graph_add_constant(&b.g, "axes", LNT_INT64, 1, (int64_t[]){1}, &axis, sizeof axis);
    builder_output(&b, builder_node(&b, "Unsqueeze", "next", 2, (uint32_t[]){s, axes}));
    carry(&b, 0, 0);
    built_as_is(&t, &b);
    refused(&t, LNT_E_SHAPE, "must be set before the run");
    rows[0] = 5;
    const lnt_tensor five = {
        LNT_FLOAT, 1, {1, 1, 1, 1, 1, 1, 1, 1}, rows, sizeof *rows}; /* as if it had more axes */
    must(lnt_state_set(t.session, 0, &five, &t.err), &t.err);
    for (unsigned rank = 2; rank <= LNT_MAX_RANK; rank++) {
        lnt_tensor now;
        must(lnt_run(t.session, &t.err), &t.err);
        must(lnt_state_get(t.session, 0, &now, &t.err), &t.err);
        assert_int_equal(now.rank, rank);
        assert_true(*(const float *)now.data == 5);
    }
    assert_int_not_equal(lnt_run(t.session, &t.err), LNT_OK); /* no tensor has nine axes */
    assert_non_null(strstr(t.err.message, "next (Unsqueeze)"));
    built_close(&t);
}

/* The extents of x decide those of the state, whose zeros no memory holds. */
static void test_a_state_beyond_the_address_space(void **state)
{
    (void)state;
    builder b;
    built t;
    builder_begin(&b);
    builder_input(&b, "x", LNT_BOOL, 2, (int64_t[]){-2, 0});
    const uint32_t s = builder_input(&b, "s", LNT_FLOAT, 2, (int64_t[]){-2, 4});
    builder_output(&b, builder_node(&b, "Cos", "next", 1, &s));
    carry(&b, 0, 1);
    built_as_is(&t, &b);
    must(built_set(&t, 0, LNT_BOOL, 2, (int64_t[]){INT64_C(1) << 60, 0}, rows), &t.err);
    refused(&t, LNT_E_LIMIT, "a state is too large");
    must(built_set(&t, 0, LNT_BOOL, 2, (int64_t[]){3, 0}, rows), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    lnt_tensor now;
    must(lnt_state_get(t.session, 0, &now, &t.err), &t.err);
    assert_int_equal(now.dims[0], 3);
    assert_true(((const float *)now.data)[11] == 1); /* of what was zero */
    built_close(&t);
}

static void test_what_cannot_be_the_next_state(void **state)
{
    (void)state;
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2}),
                   s = builder_input(&b, "s", LNT_FLOAT, 1, (int64_t[]){3});
    builder_output(&b, builder_node(&b, "Neg", "minus", 1, &s));
    builder_output(&b, builder_node(&b, "Abs", "next", 1, &x));
    carry(&b, 1, 1);
    built_as_is(&t, &b);
    rows[0] = rows[1] = rows[2] = -2;
    must(built_set(&t, 0, LNT_FLOAT, 1, (int64_t[]){4}, rows), &t.err);
    expect_refused(&t, lnt_run(t.session, &t.err), LNT_E_MODEL, "output next",
                   "is to be a state's next contents");
    must(built_set(&t, 0, LNT_FLOAT, 1, (int64_t[]){3}, rows), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    assert_true(((const float *)read_output(&t, 0).data)[2] == -2);
    built_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cache_in_every_way),
        cmocka_unit_test(test_beyond_the_bound),
        cmocka_unit_test(test_states_that_do_not_fit),
        cmocka_unit_test(test_a_state_beyond_the_budget),
        cmocka_unit_test(test_a_cache_of_a_nameless_extent),
        cmocka_unit_test(test_a_cache_of_an_endless_bound),
        cmocka_unit_test(test_a_cache_that_stays_empty),
        cmocka_unit_test(test_a_cache_set_in_the_middle),
        cmocka_unit_test(test_what_is_no_cache_of_a_step_that_appends),
        cmocka_unit_test(test_keys_of_a_step_without_a_past),
        cmocka_unit_test(test_a_state_that_no_step_makes),
        cmocka_unit_test(test_a_state_as_long_as_an_input),
        cmocka_unit_test(test_a_state_of_any_rank),
        cmocka_unit_test(test_a_state_beyond_the_address_space),
        cmocka_unit_test(test_what_cannot_be_the_next_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
