/* test_threads.c — eight sessions of one model in eight threads, with pools of their own and one they share, at
 * every level of this CPU, cancelled from outside and against deadlines: every run that ends well gives the bits of
 * a run alone. Also built with the thread sanitizer (tests/stages.py). */
#include "subjects.h"

#include "base/cpu.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SESSIONS = 8, ROUNDS = 12, TURNS = 3, LONGER = 150 };

typedef struct team {
    const converted *what;
    lnt_model *model;
    lnt_pool *shared;
    const char *level;
    uint64_t expected[TURNS];
    _Atomic(int) at_work;
} team;

typedef struct member {
    team *team;
    int number;
    lnt_session *session;
    unsigned ended_well, ended_early, wrong;
    char complaint[600];
} member;

static void open_session(team *t, int number, lnt_session **session)
{
    const bool shared = number % 2, alone = number == 0;
    const lnt_session_options options = {.struct_bytes = sizeof options,
                                         .intra_op_num_threads = alone ? 1 : 3,
                                         .execution_mode = number % 4 == 3 ? LNT_PARALLEL : LNT_SEQUENTIAL,
                                         .pool = shared ? t->shared : NULL,
                                         .level = t->level};
    lnt_error err = {0};
    if (lnt_session_create(t->model, &options, session, &err) != LNT_OK)
        fail_msg("%s", err.message);
}

/* One run from fresh states; the extents left open differ from turn to turn. */
static lnt_status run_turn(const team *t, lnt_session *s, int turn, uint64_t *digest, lnt_error *err)
{
    const int64_t extent = t->what->what->shortest + turn * LONGER;
    *digest = SUBJECT_DIGEST;
    LNT_TRY(lnt_state_reset(s, err));
    for (uint32_t i = 0; i < lnt_model_input_count(t->model); i++) {
        lnt_tensor in;
        if (subject_input(t->what, t->model, i, extent, &in))
            LNT_TRY(lnt_set_input(s, i, &in, err));
    }
    LNT_TRY(lnt_run(s, err));
    for (uint32_t o = 0; o < lnt_model_output_count(t->model); o++) {
        lnt_tensor out;
        LNT_TRY(lnt_get_output(s, o, &out, err));
        *digest = subject_digest(*digest, &out);
    }
    return LNT_OK;
}

static void *work(void *arg)
{
    member *m = arg;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t digest;
        lnt_error err = {0};
        lnt_set_deadline(m->session, m->number >= 6 && round % 2 ? 20 : 0);
        const lnt_status status = run_turn(m->team, m->session, round % TURNS, &digest, &err);
        if (status == LNT_E_CANCELLED || status == LNT_E_DEADLINE) {
            m->ended_early++;
        } else if (status == LNT_OK && digest == m->team->expected[round % TURNS]) {
            m->ended_well++;
        } else {
            m->wrong++;
            snprintf(m->complaint, sizeof m->complaint, "round %d: status %d %s", round, (int)status,
                     err.message);
        }
    }
    atomic_fetch_sub(&m->team->at_work, 1);
    return NULL;
}

/* Cancels sessions 4 and 5 now and then. */
static void *disturb(void *arg)
{
    member *m = arg;
    for (int i = 0; atomic_load(&m->team->at_work) > 0; i++) {
        lnt_cancel(m[4 + i % 2].session);
        usleep(300);
    }
    return NULL;
}

static void at_level(const converted *c, const char *level)
{
    lnt_error err = {0};
    team t = {.what = c, .at_work = SESSIONS, .level = level};
    member m[SESSIONS] = {{0}};
    pthread_t thread[SESSIONS], disturber;
    assert_int_equal(lnt_model_create_from_memory(c->image, c->size, NULL, &t.model, &err), LNT_OK);
    assert_int_equal(lnt_pool_create(3, &t.shared, &err), LNT_OK);
    for (int i = 0; i < SESSIONS; i++) {
        m[i] = (member){.team = &t, .number = i};
        open_session(&t, i, &m[i].session);
    }
    for (int turn = 0; turn < TURNS; turn++)
        if (run_turn(&t, m[0].session, turn, &t.expected[turn], &err) != LNT_OK)
            fail_msg("%s", err.message);
    for (int i = 0; i < SESSIONS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, work, &m[i]), 0);
    assert_int_equal(pthread_create(&disturber, NULL, disturb, m), 0);
    for (int i = 0; i < SESSIONS; i++)
        pthread_join(thread[i], NULL);
    pthread_join(disturber, NULL);
    for (int i = 0; i < SESSIONS; i++) {
        if (m[i].wrong)
            fail_msg("%s, session %d: %s", level, i, m[i].complaint);
        assert_int_equal(m[i].ended_well + m[i].ended_early, ROUNDS);
        if (i < 4)
            assert_int_equal(m[i].ended_early, 0);
        lnt_session_destroy(&m[i].session);
    }
    lnt_pool_destroy(&t.shared);
    lnt_model_destroy(&t.model);
}

static void sessions_side_by_side(void **state)
{
    converted c;
    subject_convert(*state, &c);
    for (int level = 0; level <= (int)lnt_cpu_best_level(); level++)
        if (lnt_cpu_has((lnt_level)level))
            at_level(&c, lnt_level_text((lnt_level)level));
    subject_free(&c);
}

int main(void)
{
    struct CMUnitTest tests[SUBJECTS];
    for (int i = 0; i < SUBJECTS; i++)
        tests[i] = (struct CMUnitTest){.name = subjects[i].path,
                                       .test_func = sessions_side_by_side,
                                       .initial_state = (void *)(uintptr_t)&subjects[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
