/* test_faults.c — memory that fails while a model is loaded, bound and run.
 *
 * A whole use of the API is repeated; in use k the k-th allocation fails and so does every one after it,
 * until the call that asked for it has returned. That call must say E_MEMORY, must succeed when repeated with
 * memory there, all results must be those of a use without failures, and in the end every block is given
 * back. */
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

static void failing_memory_is_survived(void **state)
{
    enum { EVERY = 400 }; /* allocations are refused; then every second for as many, every third ... */
    use u = {.way = ALONE};
    subject_convert(*state, &u.what);
    for (u.way = ALONE; u.way <= SHARED_POOL; u.way++) {
        const uint64_t expected = use_it(&u);
        unsigned long k = 0, tried = 0;
        for (bool failed = true; failed; k += 1 + k / EVERY, tried++) {
            allocations_left = k;
            if (use_it(&u) != expected)
                fail_msg("with allocation %lu refused the results are others", k);
            failed = allocations_left == ULONG_MAX;
            allocations_left = ULONG_MAX;
        }
        assert_true(tried > 60);
        print_message("%s: %lu of %lu allocations refused\n", u.what.what->path, tried, k);
    }
    subject_free(&u.what);
}

int main(void)
{
    struct CMUnitTest tests[SUBJECTS];
    for (int i = 0; i < SUBJECTS; i++)
        tests[i] = (struct CMUnitTest){.name = subjects[i].path,
                                       .test_func = failing_memory_is_survived,
                                       .initial_state = (void *)(uintptr_t)&subjects[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
