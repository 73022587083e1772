/* run.h — a session at work: one call at a time, with its threads, its deadline and its cancel flag.
 *
 * Only what is _Atomic is touched by other threads or signal handlers while a call is going on. */
#ifndef LNT_RUNTIME_RUN_H
#define LNT_RUNTIME_RUN_H

#include "base/kernel.h"
#include "runtime/frame.h"
#include "runtime/linnet.h"

#include <stdatomic.h>

typedef struct lnt_execution {
    lnt_execution_mode mode;
    lnt_pool *pool; /* NULL: the caller's thread alone */
    bool own_pool;
    lnt_kernel kernel; /* what steps are given */
    bool running;      /* in lnt_run, past binding */
    _Atomic(uint64_t) seed;
    _Atomic(uint32_t) stop_flag; /* 0, E_DEADLINE or, over it, E_CANCELLED */
    _Atomic(uint32_t) late;      /* in its place during lnt_bind, which no cancellation ends: 0 or E_DEADLINE */
    _Atomic(uint32_t) busy;      /* lnt_process() of the call that is in it, or 0 */
    _Atomic(uint64_t) deadline_us;
    uint64_t deadline_at_ns;
} lnt_execution;

lnt_status lnt_run_frame(lnt_session *s, lnt_frame *f, lnt_error *err);
/* Every call of the user's that reads or changes a session enters it first and leaves it last, with its
 * status. Clears err; another call in the session is LNT_E_BUSY. */
lnt_status lnt_enter(const lnt_session *s, lnt_error *err);
lnt_status lnt_leave(const lnt_session *s, lnt_status status);
/* Ends a run in another thread and enters when that is done; false if the thread was lost in a fork: what the
 * session holds may be half changed. */
bool lnt_enter_last(lnt_session *s);

#endif
