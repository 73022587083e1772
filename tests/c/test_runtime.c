/* test_runtime.c — sessions: binding, memory, states, bounds, threads, cancelling, errors. */
#include "model_builder.h"

#include "base/memory.h"
#include "runtime/internal.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

typedef struct opened {
    lnt_model *model;
    lnt_session *session;
    void *image;
    lnt_error err;
} opened;

static void open_session(opened *t, const lnt_session_options *options)
{
    must(lnt_session_create(t->model, options, &t->session, &t->err), &t->err);
}

static void close_all(opened *t)
{
    lnt_session_destroy(&t->session);
    lnt_model_destroy(&t->model);
    lnt_free(&lnt_malloc_allocator, t->image);
}

static lnt_tensor floats(float *data, unsigned rank, const int64_t *dims)
{
    lnt_tensor t = {.dtype = LNT_FLOAT, .rank = rank, .data = data, .bytes = sizeof *data};
    for (unsigned d = 0; d < rank; d++) {
        t.dims[d] = dims[d];
        t.bytes *= (size_t)dims[d];
    }
    return t;
}

/* y = relu(x + x * c) over [s0, 64], c a constant. */
static void chain_model(opened *t, lnt_opt opt)
{
    builder b;
    builder_begin(&b);
    float c[64];
    for (int i = 0; i < 64; i++)
        c[i] = (float)(i - 32);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 2, (int64_t[]){-2, 64});
    const uint32_t k = lnt_graph_add_constant(&b.g, "c", LNT_FLOAT, 1, (int64_t[]){64}, c, sizeof c);
    const uint32_t m = builder_node(&b, "Mul", "m", 2, (uint32_t[]){x, k});
    const uint32_t a = builder_node(&b, "Add", "a", 2, (uint32_t[]){x, m});
    builder_output(&b, builder_node(&b, "Relu", "y", 1, &a));
    t->model = builder_end(&b, opt, &t->image);
}

static void expect_chain(const float *x, const float *y, int64_t rows)
{
    for (int64_t i = 0; i < rows * 64; i++) {
        const float sum = x[i] + x[i] * (float)(i % 64 - 32);
        assert_float_equal(y[i], sum > 0 ? sum : 0, 1e-4);
    }
}

static void fill(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = sinf((float)i);
}

static void test_shapes_may_change(void **state)
{
    (void)state;
    opened t = {0};
    chain_model(&t, LNT_OPT_NONE);
    open_session(&t, NULL);
    float x[9 * 64];
    fill(x, 9 * 64);
    for (int64_t rows = 9; rows >= 0; rows -= 3) {
        const lnt_tensor in = floats(x, 2, (int64_t[]){rows, 64});
        lnt_tensor out;
        must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
        must(lnt_run(t.session, &t.err), &t.err);
        must(lnt_get_output(t.session, 0, &out, &t.err), &t.err);
        assert_int_equal(out.rank, 2);
        assert_int_equal(out.dims[0], rows);
        expect_chain(x, out.data, rows);
    }
    close_all(&t);
}

static void test_inputs_of_any_alignment_are_left_alone(void **state)
{
    (void)state;
    opened t = {0};
    chain_model(&t, LNT_OPT_ALL);
    open_session(&t, NULL);
    float x[2 * 64];
    char raw[sizeof x + 1], before[sizeof raw];
    fill(x, 2 * 64);
    raw[0] = 'g';
    memcpy(raw + 1, x, sizeof x);
    memcpy(before, raw, sizeof raw);
    lnt_tensor in = floats(x, 2, (int64_t[]){2, 64}), out;
    in.data = raw + 1;
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_get_output(t.session, 0, &out, &t.err), &t.err);
    expect_chain(x, out.data, 2);
    assert_memory_equal(raw, before, sizeof raw);
    close_all(&t);
}

static void test_outputs_into_callers_memory(void **state)
{
    (void)state;
    opened t = {0};
    chain_model(&t, LNT_OPT_NONE);
    open_session(&t, NULL);
    float x[2 * 64], y[2 * 64 + 1];
    fill(x, 2 * 64);
    y[128] = 42;
    const lnt_tensor in = floats(x, 2, (int64_t[]){2, 64});
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    must(lnt_set_output(t.session, 0, y, 128 * sizeof *y, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    expect_chain(x, y, 2);
    assert_true(y[128] == 42);
    must(lnt_set_output(t.session, 0, y, 127 * sizeof *y, &t.err), &t.err);
    assert_int_equal(lnt_run(t.session, &t.err), LNT_E_LIMIT);
    assert_non_null(strstr(t.err.message, "512"));
    close_all(&t);
}

static void test_arena_is_exact(void **state)
{
    (void)state;
    opened t = {0};
    chain_model(&t, LNT_OPT_NONE);
    open_session(&t, NULL);
    float x[4 * 64];
    fill(x, 4 * 64);
    const lnt_tensor in = floats(x, 2, (int64_t[]){4, 64});
    lnt_session_info info = {.struct_bytes = sizeof info};
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    must(lnt_bind(t.session, &t.err), &t.err);
    must(lnt_session_get_info(t.session, &info, &t.err), &t.err);
    lnt_session_destroy(&t.session);

    const size_t bytes = info.arena_bytes;
    assert_true(bytes > 0);
    char *arena = lnt_alloc(&lnt_malloc_allocator, bytes + LNT_ALIGN, &t.err);
    memset(arena + bytes, 0x5a, LNT_ALIGN);
    lnt_session_options options = {.struct_bytes = sizeof options, .arena = arena, .arena_bytes = bytes};
    open_session(&t, &options);
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    lnt_tensor out;
    must(lnt_get_output(t.session, 0, &out, &t.err), &t.err);
    expect_chain(x, out.data, 4);
    for (int i = 0; i < LNT_ALIGN; i++)
        assert_int_equal(arena[bytes + (size_t)i], 0x5a);
    lnt_session_destroy(&t.session);

    options.arena_bytes = bytes - 1;
    open_session(&t, &options);
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    assert_int_equal(lnt_run(t.session, &t.err), LNT_E_LIMIT);
    char need[32];
    snprintf(need, sizeof need, "%zu", bytes);
    assert_non_null(strstr(t.err.message, need));
    lnt_free(&lnt_malloc_allocator, arena);
    close_all(&t);
}

static void test_memory_limit_is_kept(void **state)
{
    (void)state;
    opened t = {0};
    lnt_session_options options = {.struct_bytes = sizeof options, .intra_op_num_threads = 1};
    lnt_session_info info = {.struct_bytes = sizeof info};
    float x[64];
    fill(x, 64);
    const lnt_tensor in = floats(x, 2, (int64_t[]){1, 64});
    chain_model(&t, LNT_OPT_NONE);
    options.memory_limit = 100; /* less than its tables take */
    assert_int_equal(lnt_session_create(t.model, &options, &t.session, &t.err), LNT_E_MEMORY);
    assert_null(t.session);
    options.memory_limit = 0;
    open_session(&t, &options);
    must(lnt_session_get_info(t.session, &info, &t.err), &t.err);
    lnt_session_destroy(&t.session);
    options.memory_limit = info.held_bytes; /* nothing left for an arena */
    open_session(&t, &options);
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    const lnt_status status = lnt_run(t.session, &t.err);
    assert_true(status == LNT_E_LIMIT || status == LNT_E_MEMORY);
    assert_non_null(strstr(t.err.message, "memory_limit"));
    must(lnt_session_get_info(t.session, &info, &t.err), &t.err);
    assert_in_range(info.held_bytes, 1, options.memory_limit);
    close_all(&t);
}

static void test_impossible_shapes_are_refused(void **state)
{
    (void)state;
    opened t = {0};
    chain_model(&t, LNT_OPT_NONE);
    open_session(&t, NULL);
    lnt_tensor in = {.dtype = LNT_FLOAT, .rank = 2, .dims = {INT64_C(1) << 60, 64}};
    assert_int_equal(lnt_set_input(t.session, 0, &in, &t.err), LNT_E_SHAPE);
    in.dims[0] = INT64_C(1) << 46;
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    assert_int_equal(lnt_bind(t.session, &t.err), LNT_E_LIMIT);
    in.dims[0] = 1;
    in.dims[1] = 63;
    assert_int_equal(lnt_set_input(t.session, 0, &in, &t.err), LNT_E_SHAPE);
    assert_non_null(strstr(t.err.message, "x"));
    in.dtype = LNT_DOUBLE;
    assert_int_equal(lnt_set_input(t.session, 0, &in, &t.err), LNT_E_TYPE);
    close_all(&t);
}

/* total' = total + x, declared as a state. */
static void test_state_runs_on(void **state)
{
    (void)state;
    opened t = {0};
    builder b;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){8});
    const uint32_t total = builder_input(&b, "total", LNT_FLOAT, 1, (int64_t[]){8});
    const uint32_t next = builder_node(&b, "Add", "next", 2, (uint32_t[]){x, total});
    builder_output(&b, builder_node(&b, "Neg", "y", 1, &next));
    builder_output(&b, next);
    must(LNT_GROW(&lnt_malloc_allocator, b.g.state, b.g.state_capacity, 0, &b.err), &b.err);
    b.g.state[0] = (lnt_gstate){.output = 1, .input = 1};
    b.g.n_states = 1;
    t.model = builder_end(&b, LNT_OPT_ALL, &t.image);
    open_session(&t, NULL);
    float one[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const lnt_tensor in = floats(one, 1, (int64_t[]){8});
    lnt_tensor out;
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    for (int turn = 1; turn <= 3; turn++) {
        must(lnt_run(t.session, &t.err), &t.err);
        must(lnt_get_output(t.session, 0, &out, &t.err), &t.err);
        assert_true(((float *)out.data)[7] == (float)-turn);
    }
    lnt_cancel(t.session);
    assert_int_equal(lnt_run(t.session, &t.err), LNT_E_CANCELLED);
    must(lnt_state_get(t.session, 0, &out, &t.err), &t.err);
    assert_true(((float *)out.data)[0] == 3);
    must(lnt_state_reset(t.session, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_state_get(t.session, 0, &out, &t.err), &t.err);
    assert_true(((float *)out.data)[0] == 1);
    const lnt_tensor set = floats(one, 1, (int64_t[]){8});
    must(lnt_state_set(t.session, 0, &set, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_state_get(t.session, 0, &out, &t.err), &t.err);
    assert_true(((float *)out.data)[3] == 2);
    close_all(&t);
}

/* Positions of the elements of x that are not zero, shifted by one: an extent that hangs on data. */
static void nonzero_model(opened *t)
{
    builder b;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2});
    const uint32_t doubled = builder_node(&b, "Add", "doubled", 2, (uint32_t[]){x, x});
    const uint32_t where = builder_node(&b, "NonZero", "where", 1, &doubled);
    const int64_t one = 1;
    const uint32_t k = lnt_graph_add_constant(&b.g, "one", LNT_INT64, 0, NULL, &one, sizeof one);
    builder_output(&b, builder_node(&b, "Add", "y", 2, (uint32_t[]){where, k}));
    t->model = builder_end(&b, LNT_OPT_ALL, &t->image);
}

static void expect_positions(opened *t, float *x, int64_t n, int64_t expected)
{
    const lnt_tensor in = floats(x, 1, (int64_t[]){n});
    lnt_tensor out;
    must(lnt_set_input(t->session, 0, &in, &t->err), &t->err);
    must(lnt_run(t->session, &t->err), &t->err);
    must(lnt_get_output(t->session, 0, &out, &t->err), &t->err);
    assert_int_equal(out.dims[1], expected);
    const int64_t *y = out.data;
    for (int64_t i = 0, k = 0; i < n; i++)
        if (x[i] != 0)
            assert_int_equal(y[k++], i + 1);
}

static void test_extents_from_data(void **state)
{
    (void)state;
    opened t = {0};
    nonzero_model(&t);
    open_session(&t, NULL);
    float x[6] = {0, 1, 2, 0, 3, 4};
    expect_positions(&t, x, 6, 4);
    x[0] = 1;
    expect_positions(&t, x, 6, 5);
    memset(x, 0, sizeof x);
    expect_positions(&t, x, 6, 0);
    lnt_session_info info = {.struct_bytes = sizeof info};
    must(lnt_session_get_info(t.session, &info, &t.err), &t.err);
    assert_non_null(info.unbounded);
    close_all(&t);
}

static void test_bounds_make_the_arena_exact(void **state)
{
    (void)state;
    opened t = {0};
    nonzero_model(&t);
    open_session(&t, NULL);
    float x[6] = {0, 1, 2, 0, 3, 0};
    const lnt_tensor in = floats(x, 1, (int64_t[]){6});
    lnt_session_info info = {.struct_bytes = sizeof info};
    must(lnt_set_bound(t.session, "where:1", 4, &t.err), &t.err);
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    must(lnt_bind(t.session, &t.err), &t.err);
    must(lnt_session_get_info(t.session, &info, &t.err), &t.err);
    assert_null(info.unbounded);
    lnt_session_destroy(&t.session);

    void *arena = lnt_alloc(&lnt_malloc_allocator, info.arena_bytes, &t.err);
    open_session(&t, &(lnt_session_options){.struct_bytes = sizeof(lnt_session_options),
                                            .arena = arena,
                                            .arena_bytes = info.arena_bytes});
    must(lnt_set_bound(t.session, "where:1", 4, &t.err), &t.err);
    expect_positions(&t, x, 6, 3);
    x[0] = 5;
    expect_positions(&t, x, 6, 4);
    x[5] = 5;
    assert_int_equal(lnt_run(t.session, &t.err), LNT_E_LIMIT);
    assert_non_null(strstr(t.err.message, "where:1"));
    x[0] = 0;
    expect_positions(&t, x, 6, 4);
    lnt_free(&lnt_malloc_allocator, arena);
    close_all(&t);
}

static void test_bounds_hold_for_inputs_given_before(void **state)
{
    (void)state;
    opened t = {0};
    float x[3 * 64];
    chain_model(&t, LNT_OPT_ALL);
    open_session(&t, NULL);
    fill(x, 3 * 64);
    const lnt_tensor in = floats(x, 2, (int64_t[]){3, 64});
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    must(lnt_set_bound(t.session, "s0", 2, &t.err), &t.err);
    assert_int_equal(lnt_bind(t.session, &t.err), LNT_E_LIMIT);
    assert_non_null(strstr(t.err.message, "s0"));
    must(lnt_set_bound(t.session, "s0", 3, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    close_all(&t);
}

/* ---- threads ---- */

/* Under valgrind a while begins sooner. */
static int64_t slow_side(void)
{
    const char *given = getenv("SLOW_SIDE");
    return given ? atoi(given) : 1024;
}

/* Matrix products that take a while. */
static void slow_model(opened *t)
{
    builder b;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 2, (int64_t[]){slow_side(), slow_side()});
    uint32_t v = x;
    for (int i = 0; i < 8; i++) {
        char name[8];
        snprintf(name, sizeof name, "m%d", i);
        v = builder_node(&b, "MatMul", name, 2, (uint32_t[]){v, x});
    }
    builder_output(&b, v);
    t->model = builder_end(&b, LNT_OPT_NONE, &t->image);
}

/* Sets the input of such a model to zeros, which the caller frees. */
static float *give_slow_input(opened *t)
{
    const int64_t side = slow_side();
    float *x = calloc((size_t)(side * side), sizeof *x);
    const lnt_tensor in = floats(x, 2, (int64_t[]){side, side});
    must(lnt_set_input(t->session, 0, &in, &t->err), &t->err);
    return x;
}

static void *cancel_soon(void *arg)
{
    usleep(5000);
    lnt_cancel(arg);
    return NULL;
}

static void test_cancel_and_deadline_end_a_run(void **state)
{
    (void)state;
    opened t = {0};
    slow_model(&t);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        open_session(&t, &(lnt_session_options){.struct_bytes = sizeof(lnt_session_options),
                                                .intra_op_num_threads = threads});
        float *x = give_slow_input(&t);
        pthread_t canceller;
        pthread_create(&canceller, NULL, cancel_soon, t.session);
        lnt_status status = lnt_run(t.session, &t.err);
        pthread_join(canceller, NULL);
        if (status == LNT_OK) /* the canceller came late: then it is the next one's turn */
            status = lnt_run(t.session, &t.err);
        assert_int_equal(status, LNT_E_CANCELLED);
        lnt_set_deadline(t.session, 100);
        assert_int_equal(lnt_run(t.session, &t.err), LNT_E_DEADLINE);
        lnt_set_deadline(t.session, 0);
        must(lnt_run(t.session, &t.err), &t.err);
        lnt_session_destroy(&t.session);
        free(x);
    }
    close_all(&t);
}

typedef struct second_run {
    lnt_session *session;
    useconds_t wait;
    lnt_status status;
} second_run;

static void *run_too(void *arg)
{
    second_run *r = arg;
    usleep(r->wait);
    r->status = lnt_run(r->session, NULL);
    return NULL;
}

/* Whoever comes second is told so; on a busy machine they may miss each other a few times. */
static void test_a_session_entered_twice_is_busy(void **state)
{
    (void)state;
    enum { ATTEMPTS = 50 };
    opened t = {0};
    unsigned met = 0;
    slow_model(&t);
    open_session(&t, NULL);
    float *x = give_slow_input(&t);
    for (unsigned i = 0; i < ATTEMPTS && !met; i++) {
        second_run second = {t.session, 1000 * i, LNT_OK};
        pthread_t other;
        pthread_create(&other, NULL, run_too, &second);
        const lnt_status first = lnt_run(t.session, NULL);
        pthread_join(other, NULL);
        assert_true(first == LNT_OK || first == LNT_E_BUSY);
        assert_true(second.status == LNT_OK || second.status == LNT_E_BUSY);
        assert_true(first == LNT_OK || second.status == LNT_OK);
        met += first == LNT_E_BUSY || second.status == LNT_E_BUSY;
    }
    assert_int_equal(met, 1);
    free(x);
    close_all(&t);
}

typedef struct shared_run {
    lnt_model *model;
    lnt_pool *pool;
    unsigned wrong;
} shared_run;

static void *run_many(void *arg)
{
    shared_run *r = arg;
    lnt_session *session = NULL;
    lnt_error err = {0};
    float x[64 * 64];
    fill(x, 64 * 64);
    lnt_session_create(r->model,
                       &(lnt_session_options){.struct_bytes = sizeof(lnt_session_options), .pool = r->pool},
                       &session, &err);
    for (int i = 0; i < 50 && session; i++) {
        const lnt_tensor in = floats(x, 2, (int64_t[]){1 + i % 64, 64});
        lnt_tensor out;
        if (lnt_set_input(session, 0, &in, &err) || lnt_run(session, &err) ||
            lnt_get_output(session, 0, &out, &err)) {
            r->wrong++;
            continue;
        }
        const float *y = out.data;
        for (int64_t e = 0; e < in.dims[0] * 64; e++) {
            const float sum = x[e] + x[e] * (float)(e % 64 - 32);
            r->wrong += fabsf(y[e] - (sum > 0 ? sum : 0)) > 1e-4f;
        }
    }
    r->wrong += session == NULL;
    lnt_session_destroy(&session);
    return NULL;
}

static void test_many_sessions_share_a_model_and_a_pool(void **state)
{
    (void)state;
    enum { SESSIONS = 8 };
    opened t = {0};
    chain_model(&t, LNT_OPT_ALL);
    lnt_pool *pool;
    must(lnt_pool_create(4, &pool, &t.err), &t.err);
    shared_run run[SESSIONS];
    pthread_t thread[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        run[i] = (shared_run){t.model, pool, 0};
        pthread_create(&thread[i], NULL, run_many, &run[i]);
    }
    for (int i = 0; i < SESSIONS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(run[i].wrong, 0);
    }
    lnt_pool_destroy(&pool);
    close_all(&t);
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void test_idle_workers_sleep(void **state)
{
    (void)state;
    opened t = {0};
    slow_model(&t);
    open_session(
        &t, &(lnt_session_options){.struct_bytes = sizeof(lnt_session_options), .intra_op_num_threads = 2});
    float *x = give_slow_input(&t);
    must(lnt_run(t.session, &t.err), &t.err);
    usleep(20000);
    const uint64_t before = cpu_ns();
    usleep(100000);
    assert_true(cpu_ns() - before < 20 * 1000 * 1000);
    free(x);
    close_all(&t);
}

/* ---- parts of a model ---- */

/* An image goes through convolutions, so that values are channels-last. */
static void cut_model(opened *t)
{
    builder b;
    float w[4 * 2 * 9], w2[4 * 4 * 9];
    builder_begin(&b);
    fill(w, 4 * 2 * 9);
    fill(w2, 4 * 4 * 9);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 4, (int64_t[]){1, 2, 5, 6});
    const uint32_t k1 = lnt_graph_add_constant(&b.g, "w", LNT_FLOAT, 4, (int64_t[]){4, 2, 3, 3}, w, sizeof w);
    const uint32_t k2 =
        lnt_graph_add_constant(&b.g, "w2", LNT_FLOAT, 4, (int64_t[]){4, 4, 3, 3}, w2, sizeof w2);
    const uint32_t c = builder_node(&b, "Conv", "c", 2, (uint32_t[]){x, k1});
    const uint32_t p = builder_node(&b, "GlobalMaxPool", "p", 1, &c);
    const uint32_t d = builder_node(&b, "Sub", "d", 2, (uint32_t[]){c, p});
    const uint32_t e = builder_node(&b, "Conv", "e", 2, (uint32_t[]){d, k2});
    builder_output(&b, builder_node(&b, "Tanh", "y", 1, &e));
    builder_output(&b, builder_node(&b, "Neg", "z", 1, &p));
    for (size_t v = 0; v < b.g.n_values; v++)
        b.g.value[v].keep = true;
    t->model = builder_end(&b, LNT_OPT_ALL, &t->image);
}

static void run_outputs(opened *t, float y[8], float z[4])
{
    lnt_tensor out;
    must(lnt_run(t->session, &t->err), &t->err);
    must(lnt_get_output(t->session, 0, &out, &t->err), &t->err);
    assert_int_equal(out.bytes, 8 * sizeof *y);
    memcpy(y, out.data, out.bytes);
    must(lnt_get_output(t->session, 1, &out, &t->err), &t->err);
    assert_int_equal(out.bytes, 4 * sizeof *z);
    memcpy(z, out.data, out.bytes);
}

static void test_a_run_cut_anywhere_gives_the_same_bits(void **state)
{
    static const char *const cuts[] = {"c", "p", "d", "e"};
    (void)state;
    opened t = {0};
    float x[60], y[8], z[4], y2[8], z2[4], saved[256];
    cut_model(&t);
    fill(x, 60);
    const lnt_tensor in = floats(x, 4, (int64_t[]){1, 2, 5, 6});
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        open_session(&t, NULL);
        must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
        run_outputs(&t, y, z);
        must(lnt_keep_value(t.session, cuts[i], &t.err), &t.err);
        must(lnt_select_outputs(t.session, (uint32_t[1]){0}, 0, &t.err), &t.err); /* stop there */
        must(lnt_run(t.session, &t.err), &t.err);
        lnt_tensor cut;
        must(lnt_get_value(t.session, cuts[i], &cut, &t.err), &t.err);
        memcpy(saved, cut.data, cut.bytes);
        cut.data = saved;
        assert_int_equal(lnt_get_output(t.session, 0, &(lnt_tensor){0}, &t.err), LNT_E_ARGUMENT);
        lnt_session_destroy(&t.session);

        open_session(&t, NULL);
        must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
        must(lnt_set_value(t.session, cuts[i], &cut, &t.err), &t.err);
        run_outputs(&t, y2, z2);
        assert_memory_equal(y, y2, sizeof y);
        assert_memory_equal(z, z2, sizeof z);
        lnt_session_destroy(&t.session);
    }
    close_all(&t);
}

static void test_inputs_that_are_not_needed_may_be_left_out(void **state)
{
    (void)state;
    opened t = {0};
    float d[60], y[8];
    cut_model(&t);
    open_session(&t, NULL);
    fill(d, 60);
    const lnt_tensor value = floats(d, 4, (int64_t[]){1, 4, 3, 4});
    lnt_tensor out;
    must(lnt_set_value(t.session, "d", &value, &t.err), &t.err);
    must(lnt_select_outputs(t.session, (uint32_t[]){0}, 1, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_get_output(t.session, 0, &out, &t.err), &t.err);
    memcpy(y, out.data, sizeof y);
    must(lnt_select_outputs(t.session, (uint32_t[]){1}, 1, &t.err), &t.err);
    assert_int_equal(lnt_run(t.session, &t.err), LNT_E_ARGUMENT);
    assert_non_null(strstr(t.err.message, "x"));
    close_all(&t);
}

static void test_other_numbers_of_the_same_shape_need_no_binding(void **state)
{
    (void)state;
    opened t = {0};
    float d[2][48] = {{0}, {1, 2, 3}}, x[60] = {0}, y[3][8], z[4];
    cut_model(&t);
    open_session(&t, NULL);
    lnt_tensor value = floats(x, 4, (int64_t[]){1, 2, 5, 6});
    must(lnt_set_input(t.session, 0, &value, &t.err), &t.err);
    for (int i = 0; i < 3; i++) {
        value = floats(d[i % 2], 4, (int64_t[]){1, 4, 3, 4});
        must(lnt_set_value(t.session, "d", &value, &t.err), &t.err);
        assert_int_equal(t.session->binding.stale, i == 0);
        run_outputs(&t, y[i], z);
    }
    assert_memory_equal(y[0], y[2], sizeof *y);
    assert_memory_not_equal(y[0], y[1], sizeof *y);
    close_all(&t);
}

static void test_memory_given_back_is_taken_again(void **state)
{
    (void)state;
    opened t = {0};
    float x[60], d[60], y[8], z[4], y2[8], z2[4];
    char raw[sizeof x + 1];
    cut_model(&t);
    open_session(&t, NULL);
    fill(x, 60);
    fill(d, 60);
    memcpy(raw + 1, x, sizeof x);
    lnt_tensor in = floats(x, 4, (int64_t[]){1, 2, 5, 6});
    in.data = raw + 1;
    const lnt_tensor value = floats(d, 4, (int64_t[]){1, 4, 3, 4});
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    must(lnt_set_value(t.session, "d", &value, &t.err), &t.err);
    run_outputs(&t, y, z);
    must(lnt_session_trim(t.session, &t.err), &t.err);
    run_outputs(&t, y2, z2);
    assert_memory_equal(y, y2, sizeof y);
    assert_memory_equal(z, z2, sizeof z);
    close_all(&t);
}

/* What is laid out by the run alone, since data decides on what comes before it, has no place after a bind: trim may
 * have given back the memory of the run before. */
static void test_a_bind_shows_no_memory_that_was_given_back(void **state)
{
    (void)state;
    opened t = {0};
    builder b;
    float data[4] = {0, 1, 0, 2};
    lnt_tensor y;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){4});
    const uint32_t where = builder_node(&b, "NonZero", "where", 1, &x);
    builder_output(&b, builder_node(&b, "ReduceSum", "y", 1, &where));
    t.model = builder_end(&b, LNT_OPT_NONE, &t.image);
    open_session(&t, NULL);
    const lnt_tensor in = floats(data, 1, (int64_t[]){4});
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    for (int turn = 0; turn < 2; turn++) {
        must(lnt_run(t.session, &t.err), &t.err);
        must(lnt_get_output(t.session, 0, &y, &t.err), &t.err);
        assert_int_equal(*(int64_t *)y.data, 4);
        must(lnt_session_trim(t.session, &t.err), &t.err);
        must(lnt_bind(t.session, &t.err), &t.err);
        must(lnt_get_output(t.session, 0, &y, &t.err), &t.err);
        assert_null(y.data);
    }
    close_all(&t);
}

static void test_parallel_execution_and_separate_memory_give_the_same_bits(void **state)
{
    (void)state;
    opened t = {0};
    float x[60], y[8], z[4], y2[8], z2[4];
    cut_model(&t);
    fill(x, 60);
    const lnt_tensor in = floats(x, 4, (int64_t[]){1, 2, 5, 6});
    open_session(&t, NULL);
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    run_outputs(&t, y, z);
    lnt_session_destroy(&t.session);
    for (int way = 0; way < 3; way++) {
        open_session(&t, &(lnt_session_options){.struct_bytes = sizeof(lnt_session_options),
                                                .inter_op_num_threads = 3,
                                                .execution_mode = way < 2 ? LNT_PARALLEL : LNT_SEQUENTIAL,
                                                .disable_mem_pattern = way > 0});
        must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
        for (int i = 0; i < 20; i++) {
            run_outputs(&t, y2, z2);
            assert_memory_equal(y, y2, sizeof y);
            assert_memory_equal(z, z2, sizeof z);
        }
        lnt_session_destroy(&t.session);
    }
    close_all(&t);
}

static void test_unknown_settings_are_refused(void **state)
{
    (void)state;
    opened t = {0};
    chain_model(&t, LNT_OPT_ALL);
    lnt_config_entry entry = {"session.intra_op.allow_spinning", "0"};
    lnt_session_options options = {
        .struct_bytes = sizeof options, .intra_op_num_threads = 2, .config = &entry, .n_config = 1};
    open_session(&t, &options);
    lnt_session_destroy(&t.session);
    entry.text = "yes";
    assert_int_equal(lnt_session_create(t.model, &options, &t.session, &t.err), LNT_E_ARGUMENT);
    entry.key = "session.intra_op.allow_spining";
    assert_int_equal(lnt_session_create(t.model, &options, &t.session, &t.err), LNT_E_ARGUMENT);
    assert_non_null(strstr(t.err.message, entry.key));
    close_all(&t);
}

/* ---- custom operators and the host ---- */

static lnt_status twice_shape(lnt_custom_call *call)
{
    call->out[0].dtype = call->in[0].dtype;
    call->out[0].rank = call->in[0].rank;
    memcpy(call->out[0].dims, call->in[0].dims, sizeof call->out[0].dims);
    return LNT_OK;
}

static lnt_status twice_run(lnt_custom_call *call)
{
    const float scale = lnt_custom_attr_float(call, "scale", 2);
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    *(int *)call->user += 1;
    for (size_t i = 0; i < call->out[0].bytes / sizeof *y; i++)
        y[i] = scale * x[i];
    return LNT_OK;
}

static void log_to_count(void *user, int severity, const char *message)
{
    assert_true(severity >= 1 && message[0]);
    *(int *)user += 1;
}

static void *host_allocate(void *user, size_t bytes)
{
    (void)user;
    return lnt_malloc_allocator.allocate(NULL, bytes);
}

static void host_release(void *user, void *block)
{
    (void)user;
    lnt_malloc_allocator.release(NULL, block);
}

static void test_the_host_brings_an_operator_memory_and_a_log(void **state)
{
    (void)state;
    opened t = {0};
    builder b;
    int calls = 0, logged = 0;
    size_t size = 0;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2});
    const uint32_t v = lnt_graph_add_value(&b.g, "v");
    lnt_gnode *n =
        lnt_graph_add_node(&b.g, 0, NULL, lnt_op_by_name("linnet", "Custom"), "twice", &x, 1, &v, 1);
    const float scale = 3;
    lnt_gnode_set_attr(
        &b.g, n, &(lnt_attr){.name = "custom_domain", .type = LNT_ATTR_STRING, .count = 4, .s = "host"});
    lnt_gnode_set_attr(&b.g, n,
                       &(lnt_attr){.name = "custom_name", .type = LNT_ATTR_STRING, .count = 5, .s = "Twice"});
    lnt_gnode_set_attr(&b.g, n,
                       &(lnt_attr){.name = "scale", .type = LNT_ATTR_FLOAT, .count = 1, .f = &scale});
    b.g.sub[0].in = b.in;
    b.g.sub[0].n_in = b.n_in;
    b.g.sub[0].out = (uint32_t[]){v};
    b.g.sub[0].n_out = 1;
    must(lnt_graph_infer(&b.g), &b.err);
    must(lnt_run_passes(&b.g, LNT_OPT_ALL, &b.report), &b.err);
    must(lnt_emit(&b.g, &b.report, NULL, &t.image, &size), &b.err);
    lnt_graph_free(&b.g);
    lnt_report_free(&b.report);

    assert_int_equal(lnt_model_create_from_memory(t.image, size, NULL, &t.model, &t.err), LNT_E_UNSUPPORTED);
    assert_non_null(strstr(t.err.message, "host.Twice"));
    const lnt_custom_op op = {
        .domain = "host", .name = "Twice", .shape = twice_shape, .run = twice_run, .user = &calls};
    const lnt_host host = {.struct_bytes = sizeof host,
                           .allocate = host_allocate,
                           .release = host_release,
                           .log = log_to_count,
                           .user = &logged};
    must(lnt_model_create_from_memory(
             t.image, size,
             &(lnt_model_options){
                 .struct_bytes = sizeof(lnt_model_options), .host = &host, .custom = &op, .n_custom = 1},
             &t.model, &t.err),
         &t.err);
    open_session(
        &t, &(lnt_session_options){.struct_bytes = sizeof(lnt_session_options), .log_severity_level = 1});
    float data[4] = {1, 2, 3, 4};
    const lnt_tensor in = floats(data, 1, (int64_t[]){4});
    lnt_tensor out;
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_get_output(t.session, 0, &out, &t.err), &t.err);
    assert_true(((float *)out.data)[3] == 12);
    assert_int_equal(calls, 1);
    assert_true(logged > 0);
    close_all(&t);
}

/* ---- fetching and tracing ---- */

static void test_fetch_and_trace(void **state)
{
    (void)state;
    opened t = {0};
    chain_model(&t, LNT_OPT_NONE);
    open_session(
        &t, &(lnt_session_options){.struct_bytes = sizeof(lnt_session_options), .enable_profiling = true});
    float x[64];
    fill(x, 64);
    const lnt_tensor in = floats(x, 2, (int64_t[]){1, 64});
    lnt_tensor m;
    lnt_trace_step step;
    must(lnt_keep_value(t.session, "m", &t.err), &t.err);
    assert_int_equal(lnt_keep_value(t.session, "gone", &t.err), LNT_E_NOT_FOUND);
    assert_non_null(strstr(t.err.message, "--keep gone"));
    must(lnt_set_input(t.session, 0, &in, &t.err), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_get_value(t.session, "m", &m, &t.err), &t.err);
    for (int i = 0; i < 64; i++)
        assert_float_equal(((float *)m.data)[i], x[i] * (float)(i - 32), 1e-4);
    assert_int_equal(lnt_trace_count(t.session), 3);
    must(lnt_trace_get(t.session, 2, &step), &t.err);
    assert_string_equal(step.op, "Relu");
    assert_int_equal(step.out_bytes, 256);
    char path[] = "/tmp/linnet-trace-XXXXXX", text[16] = "";
    const int file = mkstemp(path);
    must(lnt_trace_write(t.session, path, &t.err), &t.err);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, 11, f), 11);
    assert_string_equal(text, "[\n {\"name\":");
    fclose(f);
    close(file);
    unlink(path);
    close_all(&t);
}

enum { FILTERS = 37, SIDE = 6, IMAGE = FILTERS * SIDE * SIDE };

/* y = a depthwise convolution of images [s0, FILTERS, SIDE, SIDE] with byte weights. */
static void depthwise_model(opened *t)
{
    builder b;
    builder_begin(&b);
    int8_t w[FILTERS * 9];
    float scale[FILTERS];
    for (int i = 0; i < FILTERS * 9; i++)
        w[i] = (int8_t)(i * 29 % 255 - 127);
    for (int i = 0; i < FILTERS; i++)
        scale[i] = 0.01f * (float)(1 + i % 5);
    const uint32_t in[] = {
        builder_input(&b, "x", LNT_FLOAT, 4, (int64_t[]){-2, FILTERS, SIDE, SIDE}),
        lnt_graph_add_constant(&b.g, "w", LNT_INT8, 4, (int64_t[]){FILTERS, 1, 3, 3}, w, sizeof w),
        lnt_graph_add_constant(&b.g, "s", LNT_FLOAT, 1, (int64_t[]){FILTERS}, scale, sizeof scale)};
    const uint32_t y = lnt_graph_add_value(&b.g, "y");
    lnt_gnode *n = lnt_graph_add_node(&b.g, 0, NULL, lnt_op_by_id(LNT_ID_DynamicConv), "conv", in, 3, &y, 1);
    assert_non_null(n);
    must(lnt_gnode_set_int(&b.g, n, "group", FILTERS), &b.err);
    builder_output(&b, y);
    t->model = builder_end(&b, LNT_OPT_ALL, &t->image);
}

static void convolve(opened *t, float *x, int64_t images, lnt_tensor *y)
{
    const lnt_tensor in = floats(x, 4, (int64_t[]){images, FILTERS, SIDE, SIDE});
    must(lnt_set_input(t->session, 0, &in, &t->err), &t->err);
    must(lnt_run(t->session, &t->err), &t->err);
    must(lnt_get_output(t->session, 0, y, &t->err), &t->err);
}

/* Each image is quantized over its own range: beside others it gives what it gives alone. */
static void test_images_have_their_own_ranges(void **state)
{
    (void)state;
    enum { IMAGES = 3 };
    opened t = {0};
    static float x[IMAGES * IMAGE], together[IMAGES * IMAGE];
    lnt_tensor y;
    depthwise_model(&t);
    open_session(&t, NULL);
    fill(x, IMAGES * IMAGE);
    for (int i = 0; i < IMAGE; i++)
        x[IMAGE + i] = 50 * x[IMAGE + i] + 20;
    convolve(&t, x, IMAGES, &y);
    assert_int_equal(y.bytes % IMAGES, 0);
    memcpy(together, y.data, y.bytes);
    const size_t floats_each = y.bytes / IMAGES / sizeof(float);
    for (int i = 0; i < IMAGES; i++) {
        convolve(&t, x + i * IMAGE, 1, &y);
        assert_memory_equal(y.data, together + (size_t)i * floats_each, y.bytes);
    }
    close_all(&t);
}

/* What a board's cost table says of grain: large items stay by themselves, none is lost, nothing overflows. */
static void test_grain_follows_the_machine(void **state)
{
    (void)state;
    assert_int_equal(lnt_pool_grain(1000, 100), 1000);
    assert_int_equal(lnt_pool_grain(1000, 50), 500);
    assert_int_equal(lnt_pool_grain(1000, 800), 8000);
    assert_int_equal(lnt_pool_grain(3, 25), 1);
    assert_int_equal(lnt_pool_grain(1, 800), 1);
    assert_int_equal(lnt_pool_grain(0, 100), 1);
    assert_int_equal(lnt_pool_grain(INT64_MAX, 800), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grain_follows_the_machine),
        cmocka_unit_test(test_shapes_may_change),
        cmocka_unit_test(test_images_have_their_own_ranges),
        cmocka_unit_test(test_inputs_of_any_alignment_are_left_alone),
        cmocka_unit_test(test_outputs_into_callers_memory),
        cmocka_unit_test(test_arena_is_exact),
        cmocka_unit_test(test_memory_limit_is_kept),
        cmocka_unit_test(test_impossible_shapes_are_refused),
        cmocka_unit_test(test_state_runs_on),
        cmocka_unit_test(test_extents_from_data),
        cmocka_unit_test(test_bounds_make_the_arena_exact),
        cmocka_unit_test(test_bounds_hold_for_inputs_given_before),
        cmocka_unit_test(test_cancel_and_deadline_end_a_run),
        cmocka_unit_test(test_a_session_entered_twice_is_busy),
        cmocka_unit_test(test_many_sessions_share_a_model_and_a_pool),
        cmocka_unit_test(test_idle_workers_sleep),
        cmocka_unit_test(test_a_run_cut_anywhere_gives_the_same_bits),
        cmocka_unit_test(test_inputs_that_are_not_needed_may_be_left_out),
        cmocka_unit_test(test_other_numbers_of_the_same_shape_need_no_binding),
        cmocka_unit_test(test_memory_given_back_is_taken_again),
        cmocka_unit_test(test_a_bind_shows_no_memory_that_was_given_back),
        cmocka_unit_test(test_parallel_execution_and_separate_memory_give_the_same_bits),
        cmocka_unit_test(test_unknown_settings_are_refused),
        cmocka_unit_test(test_the_host_brings_an_operator_memory_and_a_log),
        cmocka_unit_test(test_fetch_and_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
