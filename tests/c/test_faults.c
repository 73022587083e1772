/* test_faults.c — memory that fails while a model is loaded, bound and run.
 *
 * A whole use of the API is repeated; in use k the k-th allocation fails and so does every one after it,
 * until the call that asked for it has returned. That call must say E_MEMORY, must succeed when repeated with
 * memory there, all results must be those of a use without failures, and in the end every block is given
 * back. */
#include "model_builder.h"
#include "subjects.h"

#include <limits.h>

/* ---- memory that fails ---- */

static unsigned long allocations_left = ULONG_MAX;
static bool refused;
static long blocks; /* of the host's that were not given back */

static bool is_refused(void)
{
    if (allocations_left == 0)
        refused = true;
    else if (allocations_left < ULONG_MAX)
        allocations_left--;
    return refused;
}

/* Takes libc's place for the allocator of base/memory.c. */
int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (is_refused())
        return 12;
    *block = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    return *block ? 0 : 12;
}

/* By the linker's --wrap: every call of lnt_bump_alloc from another file comes here. */
void *__real_lnt_bump_alloc(lnt_bump *b, size_t bytes, lnt_error *err);
void *__wrap_lnt_bump_alloc(lnt_bump *b, size_t bytes, lnt_error *err);
void *__wrap_lnt_bump_alloc(lnt_bump *b, size_t bytes, lnt_error *err)
{
    if (!is_refused())
        return __real_lnt_bump_alloc(b, bytes, err);
    lnt_fail(err, LNT_E_MEMORY, "no memory for a piece of %zu bytes", bytes);
    return NULL;
}

static void *host_allocate(void *user, size_t bytes)
{
    (void)user;
    void *block = lnt_malloc_allocator.allocate(NULL, bytes);
    blocks += block != NULL;
    return block;
}

static void host_release(void *user, void *block)
{
    (void)user;
    blocks -= block != NULL;
    lnt_malloc_allocator.release(NULL, block);
}

static const lnt_host host = {
    .struct_bytes = sizeof host, .allocate = host_allocate, .release = host_release};

/* A failed call: it was refused memory, and says so. */
static void expect_refusal(lnt_status status, const lnt_error *err, const char *call)
{
    if (!refused || status != LNT_E_MEMORY || err->code != LNT_E_MEMORY || !err->message[0])
        fail_msg("%s: %s with memory %s: status %d, %s", call, lnt_status_text(status),
                 refused ? "refused" : "there", (int)err->code, err->message);
    allocations_left = ULONG_MAX;
    refused = false;
}

/* Makes a call that takes err, again if it was refused memory. */
#define EVENTUALLY(call)                                                                                     \
    do {                                                                                                     \
        lnt_error first_ = {0}, *err = &first_;                                                              \
        lnt_status status_ = (call);                                                                         \
        if (status_ != LNT_OK) {                                                                             \
            expect_refusal(status_, err, #call);                                                             \
            status_ = (call);                                                                                \
        }                                                                                                    \
        if (status_ != LNT_OK || err->code != LNT_OK || refused)                                             \
            fail_msg("%s: status %d, %s%s", #call, (int)status_, err->message,                               \
                     refused ? " (memory was refused, and nobody said so)" : "");                            \
    } while (0)

/* ---- a use of the API ---- */

typedef enum sharing { ALONE, OWN_POOL, SHARED_POOL } sharing;

typedef struct use {
    converted what;
    sharing way;
    lnt_model *model;
    lnt_pool *pool;
    lnt_session *session;
    uint64_t result; /* digest of all that came out */
} use;

static void open_all(use *u)
{
    const lnt_model_options how = {
        .struct_bytes = sizeof how, .flags = u->way == ALONE ? LNT_LOAD_FULL : 0, .host = &host};
    EVENTUALLY(lnt_model_create_from_memory(u->what.image, u->what.size, &how, &u->model, err));
    if (u->way == SHARED_POOL)
        EVENTUALLY(lnt_pool_create(2, &u->pool, err));
    const lnt_config_entry quiet = {"session.intra_op.allow_spinning", "0"};
    const lnt_session_options options = {.struct_bytes = sizeof options,
                                         .intra_op_num_threads = u->way == ALONE ? 1 : 2,
                                         .execution_mode =
                                             u->way == SHARED_POOL ? LNT_PARALLEL : LNT_SEQUENTIAL,
                                         .disable_mem_pattern = u->way == SHARED_POOL,
                                         .enable_profiling = u->way == OWN_POOL,
                                         .pool = u->pool,
                                         .config = &quiet,
                                         .n_config = u->way == OWN_POOL};
    EVENTUALLY(lnt_session_create(u->model, &options, &u->session, err));
    const lnt_named_int *bound = &u->what.what->bound;
    if (bound->name && u->way == OWN_POOL)
        EVENTUALLY(lnt_set_bound(u->session, bound->name, bound->value, err));
}

static void give_inputs(use *u, int64_t extent)
{
    for (uint32_t i = 0; i < lnt_model_input_count(u->model); i++) {
        lnt_tensor t;
        if (subject_input(&u->what, u->model, i, extent, &t))
            EVENTUALLY(lnt_set_input(u->session, i, &t, err));
    }
}

static void run(use *u)
{
    EVENTUALLY(lnt_run(u->session, err));
    for (uint32_t o = 0; o < lnt_model_output_count(u->model); o++) {
        lnt_tensor out;
        EVENTUALLY(lnt_get_output(u->session, o, &out, err));
        u->result = subject_digest(u->result, &out);
    }
}

/* Takes each state out, resets them all, runs from zeros and puts them back. */
static void keep_states(use *u)
{
    for (uint32_t k = 0; k < lnt_state_count(u->session); k++) {
        lnt_tensor t;
        EVENTUALLY(lnt_state_get(u->session, k, &t, err));
        void *saved = malloc(t.bytes);
        assert_non_null(saved);
        memcpy(saved, t.data, t.bytes);
        EVENTUALLY(lnt_state_reset(u->session, err));
        run(u);
        t.data = saved;
        EVENTUALLY(lnt_state_set(u->session, k, &t, err));
        free(saved);
    }
}

/* Fetches the first output of the model by its name, then puts what was fetched in its place. */
static void cut(use *u)
{
    lnt_value_info info;
    lnt_tensor t;
    assert_int_equal(lnt_model_output(u->model, 0, &info), LNT_OK);
    EVENTUALLY(lnt_keep_value(u->session, info.name, err));
    EVENTUALLY(lnt_select_outputs(u->session, NULL, 0, err));
    EVENTUALLY(lnt_run(u->session, err));
    EVENTUALLY(lnt_get_value(u->session, info.name, &t, err));
    u->result = subject_digest(u->result, &t);
    void *saved = malloc(t.bytes);
    assert_non_null(saved);
    t.data = memcpy(saved, t.data, t.bytes);
    EVENTUALLY(lnt_set_value(u->session, info.name, &t, err));
    free(saved);
    run(u);
    EVENTUALLY(lnt_set_value(u->session, info.name, NULL, err));
}

static void close_all(use *u)
{
    lnt_session_destroy(&u->session);
    lnt_pool_destroy(&u->pool);
    lnt_model_destroy(&u->model);
    assert_int_equal(blocks, 0);
}

static uint64_t use_it(use *u)
{
    u->result = SUBJECT_DIGEST;
    open_all(u);
    give_inputs(u, u->what.what->shortest);
    EVENTUALLY(lnt_bind(u->session, err));
    run(u);
    keep_states(u);
    if (!lnt_state_count(u->session)) {
        give_inputs(u, u->what.what->longest);
        run(u);
    }
    cut(u);
    EVENTUALLY(lnt_session_trim(u->session, err));
    run(u);
    if (u->way == OWN_POOL)
        EVENTUALLY(lnt_trace_write(u->session, "/dev/null", err));
    close_all(u);
    return u->result;
}

/* Has one allocation of whole(u) refused after another; u begins closed each time. least: how many there must be. */
static void refuse_each(use *u, uint64_t (*whole)(use *), const char *name, unsigned long least)
{
    enum { EVERY = 400 }; /* allocations are refused; then every second for as many, every third ... */
    const uint64_t expected = whole(u);
    unsigned long k = 0, tried = 0;
    for (bool failed = true; failed; k += 1 + k / EVERY, tried++) {
        allocations_left = k;
        if (whole(u) != expected)
            fail_msg("with allocation %lu refused the results are others", k);
        failed = allocations_left == ULONG_MAX;
        allocations_left = ULONG_MAX;
    }
    assert_true(tried > least);
    print_message("%s: %lu of %lu allocations refused\n", name, tried, k);
}

static void failing_memory_is_survived(void **state)
{
    use u = {.way = ALONE};
    subject_convert(*state, &u.what);
    for (u.way = ALONE; u.way <= SHARED_POOL; u.way++)
        refuse_each(&u, use_it, u.what.what->path, 60);
    subject_free(&u.what);
}

/* ---- parts of the runtime, each on a graph made for it ---- */

static void open_alone(use *u)
{
    const lnt_model_options how = {.struct_bytes = sizeof how, .host = &host};
    const lnt_session_options options = {
        .struct_bytes = sizeof options, .intra_op_num_threads = 1, .enable_profiling = true};
    EVENTUALLY(lnt_model_create_from_memory(u->what.image, u->what.size, &how, &u->model, err));
    EVENTUALLY(lnt_session_create(u->model, &options, &u->session, err));
    u->result = SUBJECT_DIGEST;
}

static void give(use *u, uint32_t i, lnt_dtype dtype, unsigned rank, const int64_t *dims, const void *data)
{
    lnt_tensor t = {.dtype = dtype, .rank = rank, .data = (void *)(uintptr_t)data, .bytes = SIZE_MAX};
    memcpy(t.dims, dims, rank * sizeof *dims);
    EVENTUALLY(lnt_set_input(u->session, i, &t, err));
}

/* Tries the file of a graph as it stands, or of what is converted from it already. */
static void try_image(void *image, size_t size, uint64_t (*whole)(use *), const char *name)
{
    use u = {.way = ALONE, .what = {.image = image, .size = size}};
    refuse_each(&u, whole, name, 40);
    lnt_free(&lnt_malloc_allocator, image);
}

/* Enough inputs without names for their extents that these fill chunks of memory of their own. */
enum { NAMELESS = 40, UNITS = 8 };

static uint64_t use_loaded(use *u)
{
    static const int64_t dims[] = {2, 1, 2};
    static const uint32_t first = 0;
    static const float x[] = {1, -2, 3, -4};
    open_alone(u);
    for (uint32_t i = 1; i <= NAMELESS; i++) {
        lnt_value_info info;
        char name[100];
        assert_int_equal(lnt_model_input(u->model, i, &info), LNT_OK);
        for (unsigned d = 0; d < LNT_MAX_RANK; d++) {
            snprintf(name, sizeof name, "%s:%u", info.name, d);
            assert_string_equal(info.dim_names[d], name);
        }
    }
    give(u, 0, LNT_FLOAT, 3, dims, x);
    EVENTUALLY(lnt_select_outputs(u->session, &first, 1, err)); /* who needs the nameless ones? */
    run(u);
    close_all(u);
    return u->result;
}

/* A recurrent cell with texts for attributes, weights that are halves in the file, and inputs that nobody reads. */
static void loading_is_survived(void **state)
{
    (void)state;
    static const char *const activations[] = {"Relu"};
    static const int64_t open[LNT_MAX_RANK] = {-1, -1, -1, -1, -1, -1, -1, -1};
    float w[UNITS * UNITS];
    builder b;
    void *image;
    size_t size;
    builder_begin(&b);
    b.g.halves = true;
    for (int i = 0; i < UNITS * UNITS; i++)
        w[i] = (float)(i % 9 - 4) / 4;
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 3, (int64_t[]){2, 1, 2});
    const uint32_t in[] = {
        x,
        lnt_graph_add_constant(&b.g, "w", LNT_FLOAT, 3, (int64_t[]){1, UNITS, 2}, w, 2 * UNITS * sizeof *w),
        lnt_graph_add_constant(&b.g, "r", LNT_FLOAT, 3, (int64_t[]){1, UNITS, UNITS}, w, sizeof w)};
    const uint32_t y = builder_node(&b, "RNN", "y", 3, in);
    lnt_gnode *n = b.g.value[y].producer;
    must(lnt_gnode_set_int(&b.g, n, "hidden_size", UNITS), &b.err);
    must(
        lnt_gnode_set_attr(
            &b.g, n,
            &(lnt_attr){.name = "activations", .type = LNT_ATTR_STRINGS, .count = 1, .strings = activations}),
        &b.err);
    for (int i = 0; i < NAMELESS; i++)
        builder_input(&b, "an_input_whose_extents_have_no_names", LNT_FLOAT, LNT_MAX_RANK, open);
    builder_output(&b, y);
    builder_emit(&b, &image, &size);
    try_image(image, size, use_loaded, "loading");
}

static uint64_t use_lines(use *u)
{
    static const int64_t dims[] = {1, LINES_FEW, LINES_HIGH, LINES_WIDE};
    static float x[LINES_IMAGE];
    for (int i = 0; i < LINES_IMAGE; i++)
        x[i] = (float)(i % 11);
    open_alone(u);
    give(u, 0, LNT_FLOAT, 4, dims, x);
    EVENTUALLY(lnt_bind(u->session, err));
    run(u);
    bool together = false;
    for (uint32_t i = 0; i < lnt_trace_count(u->session); i++) {
        lnt_trace_step step;
        assert_int_equal(lnt_trace_get(u->session, i, &step), LNT_OK);
        together |= strcmp(step.node, "many + each") == 0;
    }
    assert_true(together);
    close_all(u);
    return u->result;
}

/* Two convolutions that become one step. */
static void steps_that_run_together(void **state)
{
    (void)state;
    builder b;
    void *image;
    builder_begin(&b);
    const uint32_t x =
        builder_input(&b, "x", LNT_FLOAT, 4, (int64_t[]){1, LINES_FEW, LINES_HIGH, LINES_WIDE});
    const uint32_t many = builder_conv(&b, "many", x, LINES_FEW, 1, 1);
    builder_output(&b, builder_conv(&b, "each", many, 1, 3, LINES_MANY));
    lnt_model *model = builder_end(&b, LNT_OPT_ALL, &image);
    lnt_model_destroy(&model);
    try_image(image, ((const lnt_rec_header *)image)->file_bytes, use_lines, "two convolutions");
}

static uint64_t use_loop(use *u)
{
    static const float x[] = {1, 2};
    static const int64_t one = 1, two = 2, none = 0;
    open_alone(u);
    give(u, 1, LNT_FLOAT, 1, &two, x);
    give(u, 2, LNT_FLOAT, 1, &none, NULL);
    for (int64_t n = 3; n <= 6; n += 3) {
        give(u, 0, LNT_INT64, 1, &one, &n);
        run(u);
    }
    close_all(u);
    return u->result;
}

/* A loop that carries what doubles every turn, and stacks what has no elements. */
static void a_loop_that_grows(void **state)
{
    (void)state;
    builder b;
    builder_body body;
    void *image;
    size_t size;
    builder_begin(&b);
    const uint32_t n = builder_input(&b, "n", LNT_INT64, 1, (int64_t[]){1});
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){2});
    const uint32_t nothing = builder_input(&b, "nothing", LNT_FLOAT, 1, (int64_t[]){0});
    const uint32_t out[] = {lnt_graph_add_value(&b.g, "last"), lnt_graph_add_value(&b.g, "ys")};
    lnt_gnode *loop = builder_node_to(&b, 0, "Loop", "the_loop", 3, (uint32_t[]){n, LNT_NONE, x}, 2, out);
    body_begin(&b, &body, "body");
    body_input(&b, &body, "i", LNT_INT64);
    body_output(&body, body_input(&b, &body, "c", LNT_BOOL));
    const uint32_t v = body_input(&b, &body, "v", LNT_FLOAT);
    const uint32_t twice = builder_node_in(&b, body.sub, "Concat", "twice", 2, (uint32_t[]){v, v});
    must(lnt_gnode_set_int(&b.g, b.g.value[twice].producer, "axis", 0), &b.err);
    body_output(&body, twice);
    body_output(&body, nothing);
    body_end(&b, &body, loop, "body");
    builder_output(&b, out[0]);
    builder_output(&b, out[1]);
    builder_emit(&b, &image, &size);
    try_image(image, size, use_loop, "a loop");
}

static uint64_t use_cache(use *u)
{
    enum { MOST = 1 * 2 * 3 * 4 };
    float rows[MOST];
    open_alone(u);
    for (int step = 0; step < 4; step++) {
        const int64_t dims[] = {1, 2, step ? 1 : 3, 4};
        lnt_tensor t;
        for (int i = 0; i < MOST; i++)
            rows[i] = (float)(i + step);
        for (const char *name = "qkv"; *name; name++)
            give(u, (uint32_t)lnt_model_find_input(u->model, (char[]){*name, '\0'}), LNT_FLOAT, 4, dims,
                 rows);
        EVENTUALLY(lnt_run(u->session, err));
        EVENTUALLY(
            lnt_get_output(u->session, 0, &t, err)); /* the others are states: reading them would move them */
        u->result = subject_digest(u->result, &t);
        if (step ==
            0) { /* one is shown as it lies in the middle, the other read by somebody else from now on */
            EVENTUALLY(lnt_state_get(u->session, 0, &t, err));
            u->result = subject_digest(u->result, &t);
            EVENTUALLY(lnt_keep_value(u->session, "past_v", err));
        }
    }
    close_all(u);
    return u->result;
}

static void a_cache_with_room(void **state)
{
    (void)state;
    static const lnt_named_text states[] = {{"present_k", "past_k"}, {"present_v", "past_v"}};
    const lnt_convert_options how = {.opt = LNT_OPT_ALL, .state = states, .n_states = 2};
    lnt_report report;
    lnt_error err = {0};
    void *image;
    size_t size;
    lnt_report_init(&report);
    must(lnt_convert_file("tests/data/models/cache.onnx", &how, &report, &image, &size, &err), &err);
    lnt_report_free(&report);
    try_image(image, size, use_cache, "a cache");
}

int main(void)
{
    struct CMUnitTest tests[SUBJECTS + 4] = {
        cmocka_unit_test(loading_is_survived), cmocka_unit_test(steps_that_run_together),
        cmocka_unit_test(a_loop_that_grows), cmocka_unit_test(a_cache_with_room)};
    for (int i = 0; i < SUBJECTS; i++)
        tests[4 + i] = (struct CMUnitTest){.name = subjects[i].path,
                                           .test_func = failing_memory_is_survived,
                                           .initial_state = (void *)(uintptr_t)&subjects[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
