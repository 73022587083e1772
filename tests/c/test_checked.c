/* test_checked.c — the checking run loop of builds with a sanitizer finds what a kernel does wrong: an
 * operator of the host's misbehaves on purpose, in a child. */
#include "model_builder.h"

#include "runtime/internal.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LNT_CHECKED
enum { IS_CHECKED = 1 };
#else
enum { IS_CHECKED = 0 };
#endif
enum { N = 13 /* floats: their block in the arena is longer */ };

typedef enum fault {
    NONE,
    BEHIND,
    BEHIND_UNSEEN,
    BEFORE_UNSEEN,
    READS_ON,
    LEAVES_ONE,
    WRITES_INPUT,
    SHRINKS
} fault;

typedef struct misbehavior {
    fault fault;
    lnt_session *session;
    uint32_t value; /* the operator's output */
    float found;    /* what was there before it was written */
    lnt_custom_op op;
} misbehavior;

/* As an instruction would that the sanitizer does not see. */
static __attribute__((no_sanitize("address"), noinline)) void store(float *to, float x)
{
    *(volatile float *)to = x;
}

static lnt_status same_shape(lnt_custom_call *call)
{
    call->out[0] = call->in[0];
    return LNT_OK;
}

static lnt_status misbehave(lnt_custom_call *call)
{
    misbehavior *m = call->user;
    float *x = call->in[0].data, *y = call->out[0].data;
    memcpy(&m->found, y, sizeof m->found);
    for (size_t i = 0; i < N; i++)
        if (m->fault != LEAVES_ONE || i != 5)
            y[i] = x[i];
    switch (m->fault) {
    case BEHIND: y[N] = 1; break;
    case BEHIND_UNSEEN: store(y + N, 1); break;
    case BEFORE_UNSEEN: store(y - 1, 1); break;
    case READS_ON: y[0] = x[N]; break;
    case WRITES_INPUT: x[3] = 7; break;
    case SHRINKS: m->session->value[m->value].dims[0]--; break;
    default: break;
    }
    return LNT_OK;
}

/* a = -x, v = the host's of a, z = |a| beside it, y = -v */
static lnt_model *make_model(misbehavior *m, void **image)
{
    builder b;
    lnt_model *model = NULL;
    size_t size = 0;
    m->op =
        (lnt_custom_op){.domain = "host", .name = "Bad", .shape = same_shape, .run = misbehave, .user = m};
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){N});
    const uint32_t a = builder_node(&b, "Neg", "a", 1, &x), v = lnt_graph_add_value(&b.g, "v");
    lnt_gnode *n = lnt_graph_add_node(&b.g, 0, NULL, lnt_op_by_name("linnet", "Custom"), "bad", &a, 1, &v, 1);
    lnt_gnode_set_attr(
        &b.g, n, &(lnt_attr){.name = "custom_domain", .type = LNT_ATTR_STRING, .count = 4, .s = "host"});
    lnt_gnode_set_attr(&b.g, n,
                       &(lnt_attr){.name = "custom_name", .type = LNT_ATTR_STRING, .count = 3, .s = "Bad"});
    b.g.value[v].info = b.g.value[x].info;
    b.g.sub[0].in = b.in;
    b.g.sub[0].n_in = b.n_in;
    b.g.sub[0].out = (uint32_t[]){builder_node(&b, "Abs", "z", 1, &a), builder_node(&b, "Neg", "y", 1, &v)};
    b.g.sub[0].n_out = 2;
    must(lnt_graph_infer(&b.g), &b.err);
    must(lnt_run_passes(&b.g, LNT_OPT_NONE, &b.report), &b.err);
    must(lnt_emit(&b.g, &b.report, NULL, image, &size), &b.err);
    const lnt_model_options options = {.struct_bytes = sizeof options, .custom = &m->op, .n_custom = 1};
    must(lnt_model_create_from_memory(*image, size, &options, &model, &b.err), &b.err);
    lnt_graph_free(&b.g);
    lnt_report_free(&b.report);
    return model;
}

static void run_once(fault what, lnt_execution_mode mode)
{
    misbehavior m = {.fault = what};
    float data[N] = {1, 2, 3};
    void *image = NULL;
    lnt_error err = {0};
    lnt_model *model = make_model(&m, &image);
    const lnt_session_options options = {
        .struct_bytes = sizeof options, .execution_mode = mode, .intra_op_num_threads = 1};
    const lnt_tensor in = {.dtype = LNT_FLOAT, .rank = 1, .dims = {N}, .data = data, .bytes = sizeof data};
    must(lnt_session_create(model, &options, &m.session, &err), &err);
    must(lnt_find_value(m.session, "v", &m.value, &err), &err);
    must(lnt_set_input(m.session, 0, &in, &err), &err);
    must(lnt_run(m.session, &err), &err);
    lnt_tensor y;
    must(lnt_get_output(m.session, 1, &y, &err), &err);
    assert_true(what != NONE || ((float *)y.data)[2] == 3);
    lnt_session_destroy(&m.session);
    lnt_model_destroy(&model);
    lnt_free(&lnt_malloc_allocator, image);
}

/* What an output was filled with in one run is an input of the next, whose operator writes it again. */
static void run_with_what_was_found(lnt_execution_mode mode)
{
    enum { SIGN = 3 }; /* byte */
    misbehavior m = {.fault = NONE};
    uint8_t data[N][sizeof(float)] = {{0}};
    void *image = NULL;
    lnt_error err = {0};
    lnt_model *model = make_model(&m, &image);
    const lnt_session_options options = {
        .struct_bytes = sizeof options, .execution_mode = mode, .intra_op_num_threads = 1};
    const lnt_tensor in = {.dtype = LNT_FLOAT, .rank = 1, .dims = {N}, .data = data, .bytes = sizeof data};
    must(lnt_session_create(model, &options, &m.session, &err), &err);
    must(lnt_set_input(m.session, 0, &in, &err), &err);
    for (int run = 0; run < 3; run++) {
        must(lnt_run(m.session, &err), &err);
        memcpy(data[run], &m.found, sizeof m.found);
        data[run][SIGN] ^= 0x80; /* the operator is given its negative */
    }
    lnt_session_destroy(&m.session);
    lnt_model_destroy(&model);
    lnt_free(&lnt_malloc_allocator, image);
}

static void test_an_operator_may_write_what_was_there_before(void **state)
{
    (void)state;
    run_with_what_was_found(LNT_SEQUENTIAL);
    run_with_what_was_found(LNT_PARALLEL);
}

/* What a child says that runs with the fault; it must not come through. */
static void expect_death(fault what, lnt_execution_mode mode, const char *word, const char *or_word)
{
    char said[4096] = "";
    size_t n = 0;
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        run_once(what, mode);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; n < sizeof said - 1 && (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0;)
        n += (size_t)got;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!strstr(said, word) && !strstr(said, or_word))
        fail_msg("fault %d, mode %d: neither \"%s\" nor \"%s\" in: %s", (int)what, (int)mode, word, or_word,
                 said);
}

static void in_both_modes(fault what, const char *word, const char *or_word)
{
    expect_death(what, LNT_SEQUENTIAL, word, or_word);
    expect_death(what, LNT_PARALLEL, word, or_word);
}

static void test_an_operator_that_keeps_its_promises_runs(void **state)
{
    (void)state;
    run_once(NONE, LNT_SEQUENTIAL);
    run_once(NONE, LNT_PARALLEL);
}

static void test_a_kernel_that_breaks_one_is_stopped(void **state)
{
    (void)state;
    if (!IS_CHECKED)
        skip();
    const char *const not_its_own = "wrote what is not its own", *const poisoned = "use-after-poison";
    in_both_modes(BEHIND, not_its_own, poisoned);
    in_both_modes(BEHIND_UNSEEN, not_its_own, not_its_own);
    in_both_modes(BEFORE_UNSEEN, not_its_own, not_its_own);
    in_both_modes(WRITES_INPUT, not_its_own, not_its_own);
    in_both_modes(SHRINKS, "changed an operand", "changed an operand");
    in_both_modes(LEAVES_ONE, "bad (Custom), operand 0: an element of the output was not written",
                  "element of");
#if LNT_IS_WATCHED
    in_both_modes(READS_ON, poisoned, poisoned);
#endif
}

/* An output and the next contents of a state are one constant: copied to both, in memory of the session's own and
 * in the caller's. */
static void run_copies(lnt_execution_mode mode)
{
    static const float kept[2] = {3, 4};
    builder b;
    void *image;
    float x[2] = {1, 2}, y[2] = {0};
    builder_begin(&b);
    const uint32_t in = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){2});
    builder_input(&b, "held", LNT_FLOAT, 1, (int64_t[]){2});
    const uint32_t c = lnt_graph_add_constant(&b.g, "c", LNT_FLOAT, 1, (int64_t[]){2}, kept, sizeof kept);
    builder_output(&b, builder_node(&b, "Neg", "minus", 1, &in));
    builder_output(&b, c);
    builder_output(&b, c);
    must(LNT_GROW(&lnt_malloc_allocator, b.g.state, b.g.state_capacity, 0, &b.err), &b.err);
    b.g.state[0] = (lnt_gstate){.output = 1, .input = 1};
    b.g.n_states = 1;
    lnt_model *model = builder_end(&b, LNT_OPT_NONE, &image);
    lnt_session *s;
    const lnt_session_options options = {.struct_bytes = sizeof options, .execution_mode = mode};
    const lnt_tensor given = {.dtype = LNT_FLOAT, .rank = 1, .dims = {2}, .data = x, .bytes = sizeof x};
    lnt_tensor held;
    must(lnt_session_create(model, &options, &s, &b.err), &b.err);
    must(lnt_set_input(s, 0, &given, &b.err), &b.err);
    must(lnt_set_output(s, 2, y, sizeof y, &b.err), &b.err);
    must(lnt_run(s, &b.err), &b.err);
    must(lnt_run(s, &b.err), &b.err);
    must(lnt_state_get(s, 0, &held, &b.err), &b.err);
    assert_memory_equal(held.data, kept, sizeof kept);
    assert_memory_equal(y, kept, sizeof kept);
    lnt_session_destroy(&s);
    lnt_model_destroy(&model);
    lnt_free(&lnt_malloc_allocator, image);
}

static void test_a_constant_is_copied_to_a_state_and_an_output(void **state)
{
    (void)state;
    run_copies(LNT_SEQUENTIAL);
    run_copies(LNT_PARALLEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_operator_that_keeps_its_promises_runs),
                                       cmocka_unit_test(test_an_operator_may_write_what_was_there_before),
                                       cmocka_unit_test(test_a_constant_is_copied_to_a_state_and_an_output),
                                       cmocka_unit_test(test_a_kernel_that_breaks_one_is_stopped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
