/* thread_pool.h — threads that share the work of one step, and what belongs to a thread. */
#ifndef LNT_RUNTIME_THREAD_POOL_H
#define LNT_RUNTIME_THREAD_POOL_H

#include "base/kernel.h"
#include "base/memory.h"
#include "runtime/linnet.h"

/* The least items of a slice, where kernels ask for grain and the machine for so many percent of that. */
int64_t lnt_pool_grain(int64_t grain, int64_t percent);
/* lnt_kernel.parallel: slices on the session's pool. */
lnt_status lnt_pool_parallel(lnt_kernel *k, int64_t items, int64_t grain, lnt_task_fn task, void *arg);
uint32_t lnt_pool_threads(const lnt_pool *pool);
/* lnt_pool_create with a choice: whose memory; idle workers spin for a moment, or sleep at once. */
lnt_status lnt_pool_make(const lnt_allocator *a, uint32_t threads, bool spin, lnt_pool **pool,
                         lnt_error *err);
/* Number of this process, counted by forks from the first that used the library. */
uint32_t lnt_process(void);
/* Has forks counted, and pools restarted after them, from now on. */
lnt_status lnt_watch_forks(lnt_error *err);
/* Floating-point environment of a thread for the length of a run: nearest, denormals kept. */
typedef struct lnt_float_env {
    uint64_t control;
} lnt_float_env;
lnt_float_env lnt_float_enter(void);
void lnt_float_leave(lnt_float_env saved);
/* lnt_kernel.poll: takes note of a passed deadline, too. */
lnt_status lnt_pool_poll(lnt_kernel *k);

#endif
