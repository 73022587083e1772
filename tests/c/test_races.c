/* test_races.c — what a user may do while a session runs, at every point of the run: cancel it from a thread and
 * from a signal, let a deadline pass, call anything else, destroy it, fork; and load and unload the library. An
 * operator of the host's tells when the run is where. Also built with the thread sanitizer (tests/stages.py). Run
 * from the top of the tree. */
#include "convert/convert.h"
#include "runtime/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_THREAD__)
#define MAY_FORK 0 /* the sanitizer's own threads do not survive it */
#else
#define MAY_FORK 1
#endif

enum { SIDE = 96, HOOKS = 3, THREADS = 3 };

typedef struct scene {
    void *image;
    size_t size;
    lnt_model *model;
    lnt_session *session;
    unsigned at; /* hooks passed in this run */
    void (*event)(struct scene *s, unsigned at);
    sem_t here, go_on; /* between the run and another thread */
    unsigned stop_at;  /* where it waits for that one */
    lnt_error err;
} scene;

static float ones[SIDE * SIDE];
static const lnt_tensor input = {LNT_FLOAT, 2, {SIDE, SIDE}, ones, sizeof ones};

static void must(lnt_status status, const lnt_error *err)
{
    if (status != LNT_OK)
        fail_msg("%s: %s", lnt_status_text(status), err->message);
}

static lnt_status hook_shape(lnt_custom_call *call)
{
    call->out[0].dtype = call->in[0].dtype;
    call->out[0].rank = call->in[0].rank;
    memcpy(call->out[0].dims, call->in[0].dims, sizeof call->out[0].dims);
    return LNT_OK;
}

static lnt_status hook_run(lnt_custom_call *call)
{
    scene *s = call->user;
    const unsigned at = s->at++;
    if (s->event)
        s->event(s, at);
    memcpy(call->out[0].data, call->in[0].data, call->out[0].bytes);
    return LNT_OK;
}

static void open_scene(scene *s)
{
    static const char *custom[] = {"host.Hook"};
    const lnt_named_text state = {"next", "state"};
    const lnt_convert_options how = {.state = &state, .n_states = 1, .custom = custom, .n_custom = 1};
    static lnt_custom_op hook;
    const lnt_model_options options = {.struct_bytes = sizeof options, .custom = &hook, .n_custom = 1};
    const lnt_session_options with = {.struct_bytes = sizeof with, .intra_op_num_threads = THREADS};
    lnt_report report;
    memset(s, 0, sizeof *s);
    sem_init(&s->here, 0, 0);
    sem_init(&s->go_on, 0, 0);
    lnt_report_init(&report);
    must(lnt_convert_file("tests/data/hooks.onnx", &how, &report, &s->image, &s->size, &s->err), &s->err);
    lnt_report_free(&report);
    hook = (lnt_custom_op){.domain = "host", .name = "Hook", .shape = hook_shape, .run = hook_run, .user = s};
    must(lnt_model_create_from_memory(s->image, s->size, &options, &s->model, &s->err), &s->err);
    must(lnt_session_create(s->model, &with, &s->session, &s->err), &s->err);
    must(lnt_set_input(s->session, 0, &input, &s->err), &s->err);
}

static void close_scene(scene *s)
{
    lnt_session_destroy(&s->session);
    lnt_model_destroy(&s->model);
    lnt_free(&lnt_malloc_allocator, s->image);
    sem_destroy(&s->here);
    sem_destroy(&s->go_on);
}

static lnt_status run(scene *s)
{
    s->at = 0;
    return lnt_run(s->session, &s->err);
}

/* The state's second element: 0 before the first run, then one more for each that was not lost. */
static float runs_counted(scene *s)
{
    lnt_tensor state;
    must(lnt_state_get(s->session, 0, &state, &s->err), &s->err);
    return ((float *)state.data)[1];
}

/* ---- cancel and deadline ---- */

static unsigned event_at;

static void cancel_here(scene *s, unsigned at)
{
    if (at == event_at)
        lnt_cancel(s->session);
}

/* After each cancelled run the state is as before it, and the next run is whole. */
static void expect_one_answer(scene *s, lnt_status status)
{
    s->event = NULL;
    must(run(s), &s->err);
    const float before = runs_counted(s);
    s->event = cancel_here;
    for (event_at = 0; event_at < HOOKS; event_at++) {
        assert_int_equal(run(s), status);
        assert_true(runs_counted(s) == before);
    }
    s->event = NULL;
    must(run(s), &s->err);
    assert_true(runs_counted(s) == before + 1);
}

static void test_cancelled_at_every_step(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    expect_one_answer(&s, LNT_E_CANCELLED);
    lnt_cancel(s.session); /* before a run, and twice: one run answers */
    lnt_cancel(s.session);
    assert_int_equal(run(&s), LNT_E_CANCELLED);
    must(run(&s), &s.err);
    close_scene(&s);
}

static lnt_session *_Atomic signalled;

static void on_signal(int number)
{
    (void)number;
    lnt_cancel(signalled);
}

static void raise_here(scene *s, unsigned at)
{
    (void)s;
    if (at == event_at)
        raise(SIGUSR1);
}

static void test_cancelled_from_a_signal(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    struct sigaction act = {.sa_handler = on_signal}, before;
    sigaction(SIGUSR1, &act, &before);
    signalled = s.session;
    s.event = raise_here;
    for (event_at = 0; event_at < HOOKS; event_at++) {
        assert_int_equal(run(&s), LNT_E_CANCELLED);
        s.event = NULL;
        must(run(&s), &s.err);
        s.event = raise_here;
    }
    sigaction(SIGUSR1, &before, NULL);
    close_scene(&s);
}

static void *cancel_soon(void *arg)
{
    scene *s = arg;
    nanosleep(&(struct timespec){0, (long)(event_at * 7919 % 60000)}, NULL);
    lnt_cancel(s->session);
    sem_post(&s->here);
    return NULL;
}

/* At any moment: runs go on until the cancel has been given, then exactly one of all has answered. */
static void test_no_cancel_is_lost(void **state)
{
    (void)state;
    enum { TRIALS = 400 };
    scene s;
    open_scene(&s);
    for (event_at = 0; event_at < TRIALS; event_at++) {
        pthread_t thread;
        unsigned answers = 0;
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &s), 0);
        while (sem_trywait(&s.here) != 0)
            answers += run(&s) == LNT_E_CANCELLED;
        answers += run(&s) == LNT_E_CANCELLED;
        pthread_join(thread, NULL);
        assert_int_equal(answers, 1);
        must(run(&s), &s.err);
    }
    close_scene(&s);
}

static void pass_time(scene *s, unsigned at)
{
    (void)s;
    if (at == event_at)
        nanosleep(&(struct timespec){0, 3000000}, NULL);
}

static void test_a_deadline_passes_at_every_step(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    must(run(&s), &s.err);
    for (event_at = 0; event_at + 1 < HOOKS; event_at++) {
        const float before = runs_counted(&s);
        s.event = pass_time;
        lnt_set_deadline(s.session, 2000);
        assert_int_equal(run(&s), LNT_E_DEADLINE);
        assert_true(runs_counted(&s) == before);
        s.event = NULL;
        lnt_set_deadline(s.session, UINT64_MAX);
        must(run(&s), &s.err);
    }
    close_scene(&s);
}

/* ---- other calls during a run ---- */

static void wait_here(scene *s, unsigned at)
{
    if (at != s->stop_at)
        return;
    sem_post(&s->here);
    sem_wait(&s->go_on);
}

static void call_everything(scene *s)
{
    lnt_session *const x = s->session;
    lnt_error err = {0};
    lnt_tensor t;
    lnt_session_info info = {.struct_bytes = sizeof info};
    const lnt_status answers[] = {lnt_run(x, &err),
                                  lnt_bind(x, &err),
                                  lnt_set_input(x, 0, &input, &err),
                                  lnt_set_output(x, 0, NULL, 0, &err),
                                  lnt_get_output(x, 0, &t, &err),
                                  lnt_get_value(x, "y", &t, &err),
                                  lnt_keep_value(x, "y", &err),
                                  lnt_set_bound(x, "T", 1, &err),
                                  lnt_select_outputs(x, NULL, 0, &err),
                                  lnt_set_value(x, "b", &input, &err),
                                  lnt_state_reset(x, &err),
                                  lnt_state_set(x, 0, &input, &err),
                                  lnt_state_get(x, 0, &t, &err),
                                  lnt_session_get_info(x, &info, &err),
                                  lnt_session_trim(x, &err),
                                  lnt_trace_write(x, "build/no-trace", &err)};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (answers[i] != LNT_E_BUSY)
            fail_msg("call %zu: %s", i, lnt_status_text(answers[i]));
    lnt_set_seed(x, 7);
    lnt_set_deadline(x, 0);
}

typedef struct runner {
    scene *scene;
    lnt_status status;
} runner;

static void *run_in_thread(void *arg)
{
    runner *r = arg;
    lnt_error err = {0};
    r->scene->at = 0;
    r->status = lnt_run(r->scene->session, &err);
    return NULL;
}

static void test_other_calls_find_the_session_busy(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    s.event = wait_here;
    for (s.stop_at = 0; s.stop_at < HOOKS; s.stop_at++) {
        pthread_t thread;
        runner r = {&s, LNT_OK};
        assert_int_equal(pthread_create(&thread, NULL, run_in_thread, &r), 0);
        sem_wait(&s.here);
        call_everything(&s);
        sem_post(&s.go_on);
        pthread_join(thread, NULL);
        assert_int_equal(r.status, LNT_OK);
        assert_true(runs_counted(&s) == (float)(s.stop_at + 1));
    }
    close_scene(&s);
}

static lnt_status call_one(lnt_session *x, unsigned which)
{
    lnt_tensor t;
    lnt_trace_step step;
    lnt_session_info info = {.struct_bytes = sizeof info};
    switch (which % 14) {
    case 0: return lnt_set_input(x, 0, &input, NULL);
    case 1: return lnt_set_output(x, 0, NULL, 0, NULL);
    case 2: return lnt_get_output(x, 0, &t, NULL);
    case 3: return lnt_get_value(x, "y", &t, NULL);
    case 4: return lnt_keep_value(x, "y", NULL);
    case 5: return lnt_select_outputs(x, NULL, 0, NULL);
    case 6: return lnt_bind(x, NULL);
    case 7: return lnt_state_reset(x, NULL);
    case 8: return lnt_state_set(x, 0, &input, NULL);
    case 9: return lnt_state_get(x, 0, &t, NULL);
    case 10: return lnt_session_get_info(x, &info, NULL);
    case 11: return lnt_session_trim(x, NULL);
    case 12: return lnt_trace_get(x, lnt_trace_count(x), &step);
    default: lnt_set_seed(x, which), lnt_set_deadline(x, 0); return LNT_OK;
    }
}

typedef struct caller {
    lnt_session *session;
    _Atomic(bool) enough;
    lnt_status odd; /* an answer that no call may give */
} caller;

static void *keep_calling(void *arg)
{
    caller *c = arg;
    for (unsigned i = 0; !atomic_load(&c->enough); i++) {
        const lnt_status status = call_one(c->session, i);
        if (status != LNT_OK && status != LNT_E_BUSY && status != LNT_E_ARGUMENT) /* not bound at the moment */
            c->odd = status;
    }
    return NULL;
}

/* Between runs, too, and while they begin and end. */
static void test_other_calls_at_any_time(void **state)
{
    (void)state;
    enum { WELL = 100 };
    scene s;
    open_scene(&s);
    caller c = {.session = s.session};
    pthread_t thread;
    lnt_status status = LNT_OK;
    assert_int_equal(pthread_create(&thread, NULL, keep_calling, &c), 0);
    for (int well = 0; well < WELL && (status == LNT_OK || status == LNT_E_BUSY);) {
        status = run(&s);
        well += status == LNT_OK;
    }
    atomic_store(&c.enough, true);
    pthread_join(thread, NULL);
    assert_int_equal(status, LNT_OK);
    assert_int_equal(c.odd, LNT_OK);
    close_scene(&s);
}

/* As soon as the session that waits here is cancelled. */
static void *let_go_on(void *arg)
{
    scene *s = arg;
    while (!lnt_cancelled(&s->session->execution.kernel))
        nanosleep(&(struct timespec){0, 100000}, NULL);
    sem_post(&s->go_on);
    return NULL;
}

static void test_destroyed_at_every_step(void **state)
{
    (void)state;
    for (unsigned at = 0; at < HOOKS; at++) {
        scene s;
        pthread_t thread, other;
        open_scene(&s);
        runner r = {&s, LNT_OK};
        lnt_session *doomed = s.session;
        s.event = wait_here;
        s.stop_at = at;
        assert_int_equal(pthread_create(&thread, NULL, run_in_thread, &r), 0);
        sem_wait(&s.here);
        assert_int_equal(pthread_create(&other, NULL, let_go_on, &s), 0);
        lnt_session_destroy(&doomed); /* waits for the run */
        assert_null(doomed);
        pthread_join(thread, NULL);
        pthread_join(other, NULL);
        assert_int_equal(r.status, LNT_E_CANCELLED);
        s.session = NULL;
        close_scene(&s);
    }
}

/* ---- fork ---- */

static void expect_good_child(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child ended with status %#x", (unsigned)status);
}

enum { CHILD_SECONDS = 120 };

/* In a child: code 0 if what was inherited can be run and destroyed. */
static void use_and_leave(scene *s, bool was_running)
{
    lnt_error err = {0};
    alarm(CHILD_SECONDS);
    s->event = NULL;
    const lnt_status status = lnt_run(s->session, &err);
    const bool good = status == (was_running ? LNT_E_BUSY : LNT_OK);
    lnt_session_destroy(&s->session);
    _exit(good ? 0 : 1);
}

static void test_a_child_uses_what_it_inherited(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    must(run(&s), &s.err);
    for (int i = 0; i < 5 && MAY_FORK; i++) {
        const pid_t child = fork();
        if (child == 0)
            use_and_leave(&s, false);
        expect_good_child(child);
        must(run(&s), &s.err);
    }
    close_scene(&s);
}

static void test_forked_while_another_thread_runs(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    s.event = wait_here;
    for (s.stop_at = 0; s.stop_at < HOOKS && MAY_FORK; s.stop_at++) {
        pthread_t thread;
        runner r = {&s, LNT_OK};
        assert_int_equal(pthread_create(&thread, NULL, run_in_thread, &r), 0);
        sem_wait(&s.here);
        const pid_t child = fork();
        if (child == 0)
            use_and_leave(&s, true);
        sem_post(&s.go_on);
        pthread_join(thread, NULL);
        assert_int_equal(r.status, LNT_OK);
        expect_good_child(child);
    }
    close_scene(&s);
}

static void *keep_running(void *arg)
{
    caller *c = arg;
    while (!atomic_load(&c->enough) && c->odd == LNT_OK)
        c->odd = lnt_run(c->session, NULL);
    return NULL;
}

/* In a child: what was inherited idle can be run, whoever had the pool, and all of it destroyed. */
static void use_idle_and_leave(scene *s, lnt_session *idle, lnt_pool *pool)
{
    alarm(CHILD_SECONDS);
    lnt_session_destroy(&s->session);
    const lnt_status status = lnt_run(idle, NULL);
    lnt_session_destroy(&idle);
    lnt_pool_destroy(&pool);
    _exit(status);
}

static void test_forked_at_any_time(void **state)
{
    (void)state;
    enum { FORKS = 20 };
    scene s;
    open_scene(&s);
    lnt_pool *pool;
    lnt_session *idle;
    must(lnt_pool_create(THREADS, &pool, &s.err), &s.err);
    const lnt_session_options with = {.struct_bytes = sizeof with, .pool = pool};
    lnt_session_destroy(&s.session);
    must(lnt_session_create(s.model, &with, &s.session, &s.err), &s.err);
    must(lnt_session_create(s.model, &with, &idle, &s.err), &s.err);
    must(lnt_set_input(s.session, 0, &input, &s.err), &s.err);
    must(lnt_set_input(idle, 0, &input, &s.err), &s.err);
    caller c = {.session = s.session};
    pthread_t thread;
    int status = 0;
    assert_int_equal(pthread_create(&thread, NULL, keep_running, &c), 0);
    for (int i = 0; i < FORKS && status == 0 && MAY_FORK; i++) {
        const pid_t child = fork();
        if (child == 0)
            use_idle_and_leave(&s, idle, pool);
        if (child < 0 || waitpid(child, &status, 0) != child)
            status = -1;
    }
    atomic_store(&c.enough, true);
    pthread_join(thread, NULL);
    assert_int_equal(status, 0);
    assert_int_equal(c.odd, LNT_OK);
    lnt_session_destroy(&idle);
    lnt_session_destroy(&s.session);
    lnt_pool_destroy(&pool);
    close_scene(&s);
}

static pid_t forked;

static void fork_here(scene *s, unsigned at)
{
    if (at != event_at)
        return;
    forked = fork();
    if (forked == 0) {
        alarm(CHILD_SECONDS);
        s->event = NULL;
    }
}

/* The run goes on in both: it ends well there, too, or says that it was cut short. */
static void test_forked_within_a_run(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    s.event = fork_here;
    for (event_at = 0; event_at < HOOKS && MAY_FORK; event_at++) {
        const lnt_status status = run(&s);
        if (forked == 0) {
            const bool good = (status == LNT_OK || status == LNT_E_CANCELLED) && run(&s) == LNT_OK;
            lnt_session_destroy(&s.session);
            _exit(good ? 0 : 1);
        }
        must(status, &s.err);
        expect_good_child(forked);
    }
    close_scene(&s);
}

/* ---- the library comes and goes ---- */

static unsigned entries(const char *folder)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static bool is_mapped(const char *path)
{
    char line[600];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        found |= strstr(line, path) != NULL;
    fclose(f);
    return found;
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        fail_msg("%s", dlerror());
    return found;
}

/* A run on threads of its own, with the functions of a library that was loaded. */
static void run_with(void *library, const scene *s, bool with_fork)
{
    lnt_status (*from_memory)(const void *, size_t, const lnt_model_options *, lnt_model **, lnt_error *);
    lnt_status (*create)(lnt_model *, const lnt_session_options *, lnt_session **, lnt_error *);
    lnt_status (*set_input)(lnt_session *, uint32_t, const lnt_tensor *, lnt_error *);
    lnt_status (*run_it)(lnt_session *, lnt_error *);
    void (*destroy)(lnt_session **);
    void (*close_it)(lnt_model **);
    const lnt_custom_op hook = {.domain = "host", .name = "Hook", .shape = hook_shape, .run = hook_run,
                                .user = &(scene){.at = 0}};
    const lnt_model_options options = {.struct_bytes = sizeof options, .custom = &hook, .n_custom = 1};
    const lnt_session_options with = {.struct_bytes = sizeof with, .intra_op_num_threads = THREADS};
    lnt_model *model = NULL;
    lnt_session *session = NULL;
    lnt_error err = {0};
    *(void **)&from_memory = symbol(library, "lnt_model_create_from_memory");
    *(void **)&create = symbol(library, "lnt_session_create");
    *(void **)&set_input = symbol(library, "lnt_set_input");
    *(void **)&run_it = symbol(library, "lnt_run");
    *(void **)&destroy = symbol(library, "lnt_session_destroy");
    *(void **)&close_it = symbol(library, "lnt_model_destroy");
    must(from_memory(s->image, s->size, &options, &model, &err), &err);
    must(create(model, &with, &session, &err), &err);
    must(set_input(session, 0, &input, &err), &err);
    must(run_it(session, &err), &err);
    const pid_t child = with_fork ? fork() : -1;
    if (child == 0) {
        alarm(CHILD_SECONDS);
        const lnt_status status = run_it(session, &err);
        destroy(&session);
        _exit(status == LNT_OK ? 0 : 1);
    }
    destroy(&session);
    close_it(&model);
    if (with_fork)
        expect_good_child(child);
}

static void test_loaded_and_unloaded_again_and_again(void **state)
{
    enum { ROUNDS = 30 };
    const char *path = *state;
    scene s;
    if (access(path, R_OK) != 0)
        skip(); /* the build has no shared library */
    open_scene(&s);
    unsigned files = 0;
    for (int i = 0; i < ROUNDS; i++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            fail_msg("%s", dlerror());
        run_with(library, &s, MAY_FORK && i % 3 == 1);
        assert_int_equal(dlclose(library), 0);
        assert_false(is_mapped("liblinnet.so"));
        if (MAY_FORK && i % 3 == 2) { /* nothing of it is called in a child any more */
            const pid_t child = fork();
            if (child == 0)
                _exit(0);
            expect_good_child(child);
        }
        if (i == 0)
            files = entries("/proc/self/fd");
    }
    assert_int_equal(entries("/proc/self/fd"), files);
    close_scene(&s);
    for (int i = 0; i < 100 && entries("/proc/self/task") > 3; i++) /* joined threads leave the list a little later */
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    assert_in_range(entries("/proc/self/task"), 3, 4); /* ., .., this one and perhaps a sanitizer's */
}

int main(int argc, char **argv)
{
    static char library[600];
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    snprintf(library, sizeof library, "%.*s/../liblinnet.so", slash ? (int)(slash - argv[0]) : 0, argv[0]);
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++)
        ones[i] = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancelled_at_every_step),
        cmocka_unit_test(test_cancelled_from_a_signal),
        cmocka_unit_test(test_no_cancel_is_lost),
        cmocka_unit_test(test_a_deadline_passes_at_every_step),
        cmocka_unit_test(test_other_calls_find_the_session_busy),
        cmocka_unit_test(test_other_calls_at_any_time),
        cmocka_unit_test(test_destroyed_at_every_step),
        cmocka_unit_test(test_a_child_uses_what_it_inherited),
        cmocka_unit_test(test_forked_while_another_thread_runs),
        cmocka_unit_test(test_forked_at_any_time),
        cmocka_unit_test(test_forked_within_a_run),
        cmocka_unit_test_prestate(test_loaded_and_unloaded_again_and_again, library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
