/* test_alloc.c — nobody allocates during a run: malloc and its relatives are interposed and counted; a
 * sanitizer that has taken their place tells of the caller's. */
#include "model_builder.h"

#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static _Atomic(long) calls;

#if defined(__SANITIZE_ADDRESS__)
/* As in sanitizer/allocator_interface.h, which GCC does not always bring. */
int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
                                              void (*freed)(const volatile void *));

/* A thread that starts takes memory for the sanitizer, as late as during a run: only the caller's are
 * counted. */
static _Thread_local bool is_caller;

static void count_call(const volatile void *block, size_t bytes)
{
    (void)block;
    (void)bytes;
    calls += is_caller;
}

static void ignore_call(const volatile void *block)
{
    (void)block;
}

static void start_counting(void)
{
    is_caller = true;
    assert_true(__sanitizer_install_malloc_and_free_hooks(count_call, ignore_call) > 0);
}
#else
static void start_counting(void)
{
}

/* glibc's own entry points: what the names below would otherwise be. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t n)
{
    calls++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    calls++;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    calls++;
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    calls++;
    return __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
    calls++;
    *out = __libc_memalign(align, n);
    return *out ? 0 : ENOMEM;
}
#endif

typedef struct subject {
    lnt_model *model;
    void *image;
    lnt_session *session;
    lnt_error err;
} subject;

static void open_session(subject *t, uint32_t threads)
{
    const lnt_session_options options = {.struct_bytes = sizeof options, .intra_op_num_threads = threads};
    must(lnt_session_create(t->model, &options, &t->session, &t->err), &t->err);
}

static void close_all(subject *t)
{
    lnt_session_destroy(&t->session);
    lnt_model_destroy(&t->model);
    lnt_free(&lnt_malloc_allocator, t->image);
}

static void expect_quiet_runs(subject *t, int runs)
{
    for (int i = 0; i < runs; i++) {
        const long before = calls;
        const lnt_status status = lnt_run(t->session, &t->err);
        const long after = calls;
        must(status, &t->err);
        assert_int_equal(after - before, 0);
    }
}

static void set_floats(subject *t, uint32_t i, float *data, unsigned rank, const int64_t *dims)
{
    lnt_tensor in = {.dtype = LNT_FLOAT, .rank = rank, .data = data, .bytes = sizeof *data};
    for (unsigned d = 0; d < rank; d++) {
        in.dims[d] = dims[d];
        in.bytes *= (size_t)dims[d];
    }
    must(lnt_set_input(t->session, i, &in, &t->err), &t->err);
}

static void test_the_counter_counts(void **state)
{
    (void)state;
    const long before = calls;
    void *block = lnt_alloc(&lnt_malloc_allocator, 100, NULL);
    assert_true(calls > before);
    lnt_free(&lnt_malloc_allocator, block);
}

/* softmax(x w) for x of [rows, 96]; rows -2: the symbol s0. */
static void product_model(subject *t, int64_t rows)
{
    static float w[96 * 160];
    builder b;
    builder_begin(&b);
    for (int i = 0; i < 96 * 160; i++)
        w[i] = sinf((float)i);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 2, (int64_t[]){rows, 96});
    const uint32_t k = lnt_graph_add_constant(&b.g, "w", LNT_FLOAT, 2, (int64_t[]){96, 160}, w, sizeof w);
    const uint32_t m = builder_node(&b, "MatMul", "m", 2, (uint32_t[]){x, k});
    const uint32_t r = builder_node(&b, "Relu", "r", 1, &m);
    builder_output(&b, builder_node(&b, "Softmax", "y", 1, &r));
    t->model = builder_end(&b, LNT_OPT_ALL, &t->image);
}

static void test_static_extents(void **state)
{
    (void)state;
    static float x[64 * 96];
    for (uint32_t threads = 1; threads <= 2; threads++) {
        subject t = {0};
        product_model(&t, 64);
        open_session(&t, threads);
        set_floats(&t, 0, x, 2, (int64_t[]){64, 96});
        must(lnt_bind(t.session, &t.err), &t.err);
        expect_quiet_runs(&t, 5);
        close_all(&t);
    }
}

static void test_symbolic_extents_once_bound(void **state)
{
    (void)state;
    static float x[64 * 96];
    subject t = {0};
    product_model(&t, -2);
    open_session(&t, 1);
    for (int64_t rows = 64; rows > 0; rows -= 9) {
        set_floats(&t, 0, x, 2, (int64_t[]){rows, 96});
        must(lnt_bind(t.session, &t.err), &t.err);
        expect_quiet_runs(&t, 3);
    }
    close_all(&t);
}

/* What is computed for the largest extents leaves room for all smaller ones: then even binding is quiet. */
static void test_rebinding_after_the_largest(void **state)
{
    (void)state;
    static float x[64 * 96];
    subject t = {0};
    product_model(&t, -2);
    open_session(&t, 1);
    set_floats(&t, 0, x, 2, (int64_t[]){64, 96});
    must(lnt_run(t.session, &t.err), &t.err);
    for (int64_t rows = 1; rows <= 64; rows++) {
        set_floats(&t, 0, x, 2, (int64_t[]){rows, 96});
        expect_quiet_runs(&t, 1);
    }
    close_all(&t);
}

static void test_bounded_extents_from_data(void **state)
{
    (void)state;
    subject t = {0};
    builder b;
    builder_begin(&b);
    const int64_t one = 1;
    const uint32_t in = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2});
    const uint32_t where = builder_node(&b, "NonZero", "where", 1, &in);
    const uint32_t k = lnt_graph_add_constant(&b.g, "one", LNT_INT64, 0, NULL, &one, sizeof one);
    builder_output(&b, builder_node(&b, "Add", "y", 2, (uint32_t[]){where, k}));
    t.model = builder_end(&b, LNT_OPT_ALL, &t.image);
    open_session(&t, 1);
    float x[8] = {0};
    must(lnt_set_bound(t.session, "where:1", 8, &t.err), &t.err);
    set_floats(&t, 0, x, 1, (int64_t[]){8});
    must(lnt_bind(t.session, &t.err), &t.err);
    for (int i = 0; i < 8; i++) {
        x[(3 * i) % 8] = 1;
        expect_quiet_runs(&t, 1);
    }
    close_all(&t);
}

/* A real model with control flow, recurrence and a state, its batch open; skipped where it was not
 * downloaded. */
static void test_a_streaming_model(void **state)
{
    (void)state;
    static const char path[] = ".deps/silero_vad.onnx";
    static const lnt_named_text carried = {"stateN", "state"};
    static float x[3 * 576];
    static int64_t rate = 16000;
    const lnt_convert_options how = {.opt = LNT_OPT_ALL, .state = &carried, .n_states = 1};
    subject t = {0};
    lnt_report report;
    size_t size;
    if (access(path, R_OK) != 0)
        skip();
    lnt_report_init(&report);
    must(lnt_convert_file(path, &how, &report, &t.image, &size, &t.err), &t.err);
    lnt_report_free(&report);
    must(lnt_model_create_from_memory(t.image, size, NULL, &t.model, &t.err), &t.err);
    open_session(&t, 1);
    for (int i = 0; i < 3 * 576; i++)
        x[i] = sinf((float)(i * i) * 1e-3f);
    for (int64_t batch = 3; batch > 0; batch--) {
        float zeros[2 * 3 * 128] = {0};
        const lnt_tensor sr = {.dtype = LNT_INT64, .data = &rate, .bytes = sizeof rate};
        set_floats(&t, (uint32_t)lnt_model_find_input(t.model, "state"), zeros, 3,
                   (int64_t[]){2, batch, 128});
        set_floats(&t, (uint32_t)lnt_model_find_input(t.model, "input"), x, 2, (int64_t[]){batch, 576});
        must(lnt_set_input(t.session, (uint32_t)lnt_model_find_input(t.model, "sr"), &sr, &t.err), &t.err);
        must(lnt_bind(t.session, &t.err), &t.err);
        expect_quiet_runs(&t, 20);
    }
    close_all(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_counter_counts),
        cmocka_unit_test(test_static_extents),
        cmocka_unit_test(test_symbolic_extents_once_bound),
        cmocka_unit_test(test_rebinding_after_the_largest),
        cmocka_unit_test(test_bounded_extents_from_data),
        cmocka_unit_test(test_a_streaming_model),
    };
    start_counting();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
