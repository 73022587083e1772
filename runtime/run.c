/* run.c — the run loop, and what stands around it. */
#include "runtime/check_run.h"

#include "base/lnt_assert.h"

#include <string.h>
#include <time.h>

/* ---- one step ---- */

static lnt_status fail_step(lnt_session *s, const lnt_step *step, lnt_status status, lnt_error *err)
{
    if (step->node == LNT_NONE)
        return lnt_fail(err, status, "%s", lnt_status_text(status));
    return lnt_node_fail(lnt_session_node(s, step->node), status, err);
}

static lnt_status run_step(lnt_session *s, const lnt_step *step, lnt_error *err)
{
    const uint64_t start = s->trace.on ? lnt_now_ns() : 0;
    lnt_status status = lnt_pool_poll(&s->execution.kernel);
    const uint64_t kept = lnt_check_before(s, &step, 1);
    if (status == LNT_OK)
        status = step->run(&s->execution.kernel, step);
    lnt_check_after(s, &step, 1, kept, status);
    if (status != LNT_OK)
        return fail_step(s, step, status, err);
    return s->trace.on ? lnt_trace_note(s, step, start, err) : LNT_OK;
}

/* ---- parallel groups ---- */

typedef struct parallel_group {
    lnt_session *s;
    lnt_step *const *step;
    atomic_flag lock;
    uint32_t failed; /* the first in order */
    lnt_error err;
} parallel_group;

/* Steps [begin, end) of one wave, each with an error of its own; the pool is taken, so that each kernel runs on one
 * thread. */
static lnt_status run_group(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    parallel_group *group = arg;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        lnt_error err = {0};
        lnt_kernel own = *k;
        own.err = &err;
        const lnt_status status = group->step[i]->run(&own, group->step[i]);
        if (status == LNT_OK)
            continue;
        while (atomic_flag_test_and_set(&group->lock))
            ;
        if ((uint32_t)i < group->failed) {
            group->failed = (uint32_t)i;
            group->err = err;
            fail_step(group->s, group->step[i], status, &group->err);
        }
        atomic_flag_clear(&group->lock);
        return status;
    }
    return LNT_OK;
}

/* Runs all steps of the next wave; f->next moves past them. */
static lnt_status run_wave(lnt_session *s, lnt_frame *f, lnt_error *err)
{
    uint32_t end = f->next + 1;
    while (end < f->n_steps && f->wave[end] == f->wave[f->next])
        end++;
    if (end == f->next + 1 || s->trace.on) {
        for (; f->next < end; f->next++)
            LNT_TRY(run_step(s, f->list[f->next], err));
        return LNT_OK;
    }
    const lnt_step *const *steps = (const lnt_step *const *)(f->list + f->next);
    const uint64_t kept = lnt_check_before(s, steps, end - f->next);
    parallel_group group = {
        .s = s, .step = f->list + f->next, .lock = ATOMIC_FLAG_INIT, .failed = UINT32_MAX};
    const lnt_status status = lnt_parallel(&s->execution.kernel, end - f->next, 1, run_group, &group);
    lnt_check_after(s, steps, end - f->next, kept, status);
    if (group.failed != UINT32_MAX && err)
        *err = group.err;
    f->next = end;
    return status == LNT_OK ? LNT_OK : lnt_fail(err, status, "%s", lnt_status_text(status));
}

/* ---- the loop ---- */

lnt_status lnt_run_frame(lnt_session *s, lnt_frame *f, lnt_error *err)
{
    LNT_ASSERT(f->next <= f->n_steps);
    for (;;) {
        while (f->next < f->n_steps)
            LNT_TRY(s->execution.mode == LNT_PARALLEL ? run_wave(s, f, err)
                                                      : run_step(s, f->list[f->next++], err));
        if (f->complete)
            return LNT_OK;
        LNT_TRY(lnt_bind_frame(s, f, err)); /* extents that depend on the data just computed */
    }
}

/* ---- a run of the session ---- */

/* True if an input that feeds shapes holds other numbers than at bind. */
static bool contents_changed(const lnt_session *s)
{
    const lnt_model *m = s->model;
    for (uint32_t i = 0; i < m->n_in; i++) {
        const lnt_input_slot *in = &s->input[i];
        if (m->file.values[m->in[i]].flags & LNT_VALUE_FEEDS_SHAPES && in->tensor.data &&
            (!in->seen.data || memcmp(in->seen.data, in->tensor.data, in->tensor.bytes) != 0))
            return true;
    }
    return false;
}

static lnt_status point_inputs(lnt_session *s, lnt_error *err)
{
    const lnt_model *m = s->model;
    for (uint32_t i = 0; i < m->n_in; i++) {
        lnt_input_slot *in = &s->input[i];
        void *data = in->tensor.data;
        if (!in->given)
            continue; /* a partial run does not need it */
        LNT_REQUIRE(data || !in->tensor.bytes, err, LNT_E_ARGUMENT, "input %s has a shape but no data",
                    lnt_value_name(m, m->in[i]));
        if (in->tensor.bytes && (uintptr_t)data % lnt_dtype_size(in->tensor.dtype))
            data = memcpy(in->staging.data, data, in->tensor.bytes);
        s->slot[m->in[i]] = data ? data : (void *)s->slot;
    }
    return LNT_OK;
}

/* When the deadline is, so many microseconds from now; 0: never. */
static uint64_t deadline_after(uint64_t microseconds)
{
    uint64_t at;
    if (!microseconds)
        return 0;
    if (__builtin_mul_overflow(microseconds, 1000, &at) || __builtin_add_overflow(at, lnt_now_ns(), &at))
        return UINT64_MAX;
    return at;
}

static void start_clock(lnt_session *s)
{
    s->execution.deadline_at_ns = deadline_after(s->execution.deadline_us);
}

/* Binding has as long as the steps have. */
static lnt_status run_session(lnt_session *s, lnt_error *err)
{
    LNT_REQUIRE(!lnt_cancelled(&s->execution.kernel), err, LNT_E_CANCELLED, "cancelled before it began");
    start_clock(s);
    if (LNT_HAS_TEXT && s->text)
        LNT_TRY(lnt_text_begin_run(s, err));
    if (s->binding.stale || s->binding.outgrown || !s->binding.exists || contents_changed(s))
        LNT_TRY(lnt_bind_session(s, err));
    LNT_TRY(point_inputs(s, err));
    if (!s->binding.outputs_apart)
        LNT_TRY(lnt_outputs_apart(s, err));
    s->binding.outputs_apart = true;
    lnt_point_outputs(s);
    lnt_trace_begin(s);
    start_clock(s);
    s->execution.kernel.seed = s->execution.seed;
    s->execution.kernel.err = err;
    s->execution.running = true;
    lnt_frame_rewind(s, &s->root);
    const lnt_status status = lnt_run_frame(s, &s->root, err);
    s->execution.running = false;
    return status;
}

/* Looks at the stop flag for the last time. Whoever cancelled is told so once, by this run or, if it ends for
 * another reason, by the next; that the deadline has passed concerns this run alone. */
static lnt_status answer(lnt_session *s, lnt_status status, lnt_error *err)
{
    uint32_t stop = LNT_E_DEADLINE;
    if (status != LNT_OK && status != LNT_E_CANCELLED) {
        atomic_compare_exchange_strong(&s->execution.stop_flag, &stop, 0);
        return status;
    }
    stop = atomic_exchange(&s->execution.stop_flag, 0);
    LNT_REQUIRE(status != LNT_OK || stop != LNT_E_CANCELLED, err, LNT_E_CANCELLED, "cancelled at its end");
    return status;
}

/* ---- one call at a time ---- */

/* A session is entered by the number of the process: after a fork no thread will ever leave it. */
lnt_status lnt_enter(const lnt_session *s, lnt_error *err)
{
    const uint32_t here = lnt_process();
    uint32_t held = 0;
    lnt_error_clear(err);
    LNT_REQUIRE(s, err, LNT_E_ARGUMENT, "session must be given");
    if (atomic_compare_exchange_strong(&((lnt_session *)(uintptr_t)s)->execution.busy, &held, here))
        return LNT_OK;
    LNT_REQUIRE(held == here, err, LNT_E_BUSY,
                "the session was running when this process was forked; it can only be destroyed");
    return lnt_fail(err, LNT_E_BUSY,
                    "the session is running in another thread; give each thread a session of its own");
}

lnt_status lnt_leave(const lnt_session *s, lnt_status status)
{
    atomic_store(&((lnt_session *)(uintptr_t)s)->execution.busy, 0);
    return status;
}

bool lnt_enter_last(lnt_session *s)
{
    static const struct timespec pause = {.tv_nsec = 50 * 1000};
    const uint32_t here = lnt_process();
    uint32_t held = 0;
    lnt_cancel(s);
    while (!atomic_compare_exchange_strong(&s->execution.busy, &held, here)) {
        if (held != here)
            return false;
        nanosleep(&pause, NULL);
        held = 0;
    }
    return true;
}

lnt_status lnt_run(lnt_session *s, lnt_error *err)
{
    lnt_error own;
    err = err ? err : &own;
    LNT_TRY(lnt_enter(s, err));
    const lnt_float_env saved = lnt_float_enter();
    const lnt_status status = answer(s, run_session(s, err), err);
    if (status == LNT_OK)
        lnt_swap_states(s);
    lnt_float_leave(saved);
    return lnt_leave(s, status);
}

lnt_status lnt_bind(lnt_session *s, lnt_error *err)
{
    lnt_error own;
    err = err ? err : &own;
    LNT_TRY(lnt_enter(s, err));
    const lnt_float_env saved = lnt_float_enter();
    start_clock(s);
    s->execution.kernel.stop = &s->execution.late;
    const lnt_status status = lnt_bind_session(s, err);
    s->execution.kernel.stop = &s->execution.stop_flag;
    atomic_store(&s->execution.late, 0);
    lnt_float_leave(saved);
    return lnt_leave(s, status);
}
