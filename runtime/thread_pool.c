/* thread_pool.c — worker threads that take slices of a kernel's work.
 *
 * Each thread has a share of the items and takes others' only when it has done its own: from run to run the
 * same weights are read by the same core, whose cache may still hold them.
 *
 * One job at a time. The caller opens a gate, takes slices like everybody else, closes the gate when none are
 * left and waits for the workers that came through it: a worker that sleeps late is not waited for. Workers
 * spin for a while after a job, then sleep on a condition variable. A pool that is busy with
 * another session's job is not waited for: the caller runs its work alone.
 *
 * fork copies a pool without its workers. In the child it forgets them, and the first job starts others.
 *
 * Linux may wake a worker on the caller's processor and leave it there while another idles: where processors
 * are few it does not even look for one. A worker that meets another thread of its job moves off itself.
 *
 *     gate:  | job number : 32 | open : 1 | workers inside : 31 | */
#include "base/checked.h"
#include "runtime/internal.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum {
    MAX_THREADS = 64,
    SERIAL_SLICES = 64, /* of one call on one thread: bounds the time to notice a cancellation */
    SLICES_PER_THREAD = 8,
    MOST_GRAINS = 256, /* in a slice, however much there is to do: bounds that time, too */
    SPIN_NS = 200 * 1000
};

#define GATE_OPEN ((uint64_t)1 << 31)

/* The least work of a thread, in percent of what kernels ask for: a board's, from its cost table. */
#ifndef LNT_GRAIN_PERCENT
#define LNT_GRAIN_PERCENT 100
#endif

typedef struct lnt_worker {
    lnt_pool *pool;
    uint32_t index, life;
    pthread_t thread;
} lnt_worker;

/* Items [next, end) of one thread's that no one has taken yet. */
typedef struct lnt_share {
    _Atomic(int64_t) next;
    int64_t end;
    char apart[48]; /* from the next thread's cache line */
} lnt_share;

/* What a worker that waits reads, and what it needs to begin: of one cache line, for each comes from another core. */
typedef struct lnt_job {
    _Atomic(uint64_t) gate;
    _Atomic(uint64_t) taken;  /* bit c: a thread of this job began on processor c */
    _Atomic(uint32_t) life;   /* workers of another one end */
    _Atomic(uint32_t) status; /* first failure */
    lnt_kernel *k;
    lnt_task_fn task;
    void *arg;
    int64_t slice;
} lnt_job;

struct lnt_pool {
    _Alignas(LNT_ALIGN) lnt_job job;
    _Alignas(LNT_ALIGN) lnt_allocator allocator; /* of this block */
    lnt_pool *next;          /* of all_pools */
    uint32_t threads;        /* workers + the caller */
    uint32_t started;        /* worker[1 .. started) have threads */
    bool orphaned;           /* they stayed behind in the process that was forked */
    uint64_t spin_ns;        /* before a worker sleeps */
    lnt_worker worker[MAX_THREADS];
    _Atomic(uintptr_t) owner; /* the thread whose job runs; 0: none does */
    pthread_mutex_t lock;     /* of sleeping */
    pthread_cond_t wake;
    _Atomic(uint32_t) sleepers;
    _Alignas(LNT_ALIGN) lnt_share share[MAX_THREADS];
};

/* ---- floating-point environment ---- */

#if defined(__x86_64__)
lnt_float_env lnt_float_enter(void)
{
    enum { MXCSR_DEFAULT = 0x1f80 };
    const lnt_float_env saved = {__builtin_ia32_stmxcsr()};
    if (saved.control != MXCSR_DEFAULT)
        __builtin_ia32_ldmxcsr(MXCSR_DEFAULT);
    return saved;
}

void lnt_float_leave(lnt_float_env saved)
{
    __builtin_ia32_ldmxcsr((unsigned)saved.control);
}
#elif defined(__aarch64__)
lnt_float_env lnt_float_enter(void)
{
    lnt_float_env saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved.control));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return saved;
}

void lnt_float_leave(lnt_float_env saved)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(saved.control));
}
#else
#include <fenv.h>
lnt_float_env lnt_float_enter(void)
{
    const lnt_float_env saved = {(uint64_t)fegetround()};
    fesetround(FE_TONEAREST);
    return saved;
}

void lnt_float_leave(lnt_float_env saved)
{
    fesetround((int)saved.control);
}
#endif

/* ---- slices ---- */

lnt_status lnt_pool_poll(lnt_kernel *k)
{
    lnt_session *s = k->runtime;
    if (s && s->execution.deadline_at_ns && lnt_now_ns() >= s->execution.deadline_at_ns) {
        const bool binds = k->stop == &s->execution.late;
        uint32_t none = 0;
        atomic_compare_exchange_strong(binds ? &s->execution.late : &s->execution.stop_flag, &none,
                                       LNT_E_DEADLINE);
    }
    return lnt_cancelled(k);
}

/* Items of a slice: as wanted, but at least a grain, which takes well under a millisecond, and not too many. */
static int64_t slice_of(int64_t wanted, int64_t grain)
{
    const int64_t most = grain < INT64_MAX / MOST_GRAINS ? grain * MOST_GRAINS : grain;
    return wanted < grain ? grain : wanted < most ? wanted : most;
}

static lnt_status run_alone(lnt_kernel *k, int64_t items, int64_t grain, lnt_task_fn task, void *arg)
{
    const int64_t slice = slice_of((items + SERIAL_SLICES - 1) / SERIAL_SLICES, grain);
    for (int64_t begin = 0; begin < items; begin += slice) {
        const int64_t end = items - begin < slice ? items : begin + slice;
        LNT_TRY(task(k, arg, begin, end, 0));
        LNT_TRY(lnt_pool_poll(k));
    }
    return LNT_OK;
}

static void stop_job(lnt_pool *p, lnt_status status)
{
    uint32_t none = LNT_OK;
    atomic_compare_exchange_strong(&p->job.status, &none, status);
    for (uint32_t i = 0; i < p->threads; i++)
        atomic_store(&p->share[i].next, p->share[i].end);
}

static void take_share(lnt_pool *p, lnt_share *share, uint32_t thread)
{
    /* Read before it is added to: what another has done is not taken from its cache. */
    while (atomic_load_explicit(&share->next, memory_order_relaxed) < share->end) {
        const int64_t begin = atomic_fetch_add_explicit(&share->next, p->job.slice, memory_order_relaxed);
        if (begin >= share->end)
            return;
        const int64_t end = share->end - begin < p->job.slice ? share->end : begin + p->job.slice;
        lnt_status status = p->job.task(p->job.k, p->job.arg, begin, end, thread);
        if (status == LNT_OK)
            status = thread == 0 ? lnt_pool_poll(p->job.k) : lnt_cancelled(p->job.k);
        if (status != LNT_OK)
            stop_job(p, status);
    }
}

static void take_slices(lnt_pool *p, uint32_t thread)
{
    for (uint32_t i = 0; i < p->threads; i++)
        take_share(p, &p->share[(thread + i) % p->threads], thread);
}

/* Shares as equal as items allow, each in slices as equal; no more shares than there are grains. */
static void share_items(lnt_pool *p, int64_t items, int64_t grain)
{
    const int64_t threads = p->threads, grains = (items - 1) / grain + 1;
    const int64_t shares = grains < threads ? grains : threads, most = (items - 1) / shares + 1;
    const int64_t slice = slice_of(items / (threads * SLICES_PER_THREAD), grain);
    /* Slices that are grains grow by what is left over rather than leave a small one. */
    const int64_t slices = slice > grain ? (most - 1) / slice + 1 : most > slice ? most / slice : 1;
    p->job.slice = (most - 1) / slices + 1;
    for (int64_t i = 0, begin = 0; i < threads; i++) {
        atomic_store_explicit(&p->share[i].next, begin, memory_order_relaxed);
        p->share[i].end = begin = lnt_cut(items, shares, shares * (i + 1) / threads);
    }
}

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static uint32_t gate_job(uint64_t gate)
{
    return (uint32_t)(gate >> 32);
}

/* Waits until a job other than seen is open; false if the pool has ended, or this life of it. */
static bool await_job(lnt_pool *p, uint32_t seen, uint32_t life)
{
    const uint64_t until = lnt_now_ns() + p->spin_ns;
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load(&p->job.life) != life)
                return false;
            if (gate_job(atomic_load_explicit(&p->job.gate, memory_order_acquire)) != seen)
                return true;
            cpu_relax();
        }
    } while (lnt_now_ns() < until);
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (gate_job(atomic_load(&p->job.gate)) == seen && atomic_load(&p->job.life) == life)
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
    return atomic_load(&p->job.life) == life;
}

#if defined(__linux__)
/* The bit of the processor this thread is on; 0 for those the set does not know. */
static uint64_t this_processor(void)
{
    const int cpu = sched_getcpu();
    return cpu >= 0 && cpu < 64 ? (uint64_t)1 << cpu : 0;
}

/* Goes to a processor of this thread's that is not taken, if there is one, but does not stay bound to it. */
static void move_off(uint64_t taken)
{
    cpu_set_t allowed, rest;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    rest = allowed;
    for (int cpu = 0; cpu < 64; cpu++)
        if (taken >> cpu & 1)
            CPU_CLR(cpu, &rest);
    if (CPU_COUNT(&rest) == 0 || sched_setaffinity(0, sizeof rest, &rest) != 0)
        return;
    sched_setaffinity(0, sizeof allowed, &allowed);
}
#else
static uint64_t this_processor(void)
{
    return 0;
}

static void move_off(uint64_t taken)
{
    (void)taken;
}
#endif

/* Sees to it that this worker has a processor of its own for the job. */
static void take_processor(lnt_pool *p)
{
    const uint64_t here = this_processor(), taken = atomic_fetch_or(&p->job.taken, here);
    if (taken & here) {
        move_off(taken);
        atomic_fetch_or(&p->job.taken, this_processor());
    }
}

/* Goes through the gate if it is open; *seen becomes the job's number either way. */
static bool enter_job(lnt_pool *p, uint32_t *seen)
{
    uint64_t gate = atomic_load_explicit(&p->job.gate, memory_order_acquire);
    do {
        *seen = gate_job(gate);
        if (!(gate & GATE_OPEN))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&p->job.gate, &gate, gate + 1, memory_order_acq_rel,
                                                    memory_order_acquire));
    return true;
}

static void *worker_main(void *arg)
{
    const lnt_worker *w = arg;
    lnt_pool *p = w->pool;
    const uint32_t life = w->life;
    lnt_float_enter();
    uint32_t seen = 0;
    while (await_job(p, seen, life))
        if (enter_job(p, &seen)) {
            __builtin_prefetch(&p->share[w->index], 1);
            __builtin_prefetch(p->job.arg);
            __builtin_prefetch(p->job.k);
            take_processor(p);
            take_slices(p, w->index);
            atomic_fetch_sub_explicit(&p->job.gate, 1, memory_order_release);
        }
    return NULL;
}

static void open_gate(lnt_pool *p)
{
    atomic_store_explicit(&p->job.status, LNT_OK, memory_order_relaxed);
    atomic_store_explicit(&p->job.taken, this_processor(), memory_order_relaxed);
    const uint64_t job = (uint64_t)gate_job(atomic_load_explicit(&p->job.gate, memory_order_relaxed)) + 1;
    atomic_store(&p->job.gate, (job << 32) | GATE_OPEN);
    if (atomic_load(&p->sleepers)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
    }
}

static void close_gate(lnt_pool *p)
{
    atomic_fetch_and(&p->job.gate, ~GATE_OPEN);
    while (atomic_load_explicit(&p->job.gate, memory_order_acquire) & (GATE_OPEN - 1))
        cpu_relax();
}

int64_t lnt_pool_grain(int64_t grain, int64_t percent)
{
    enum { WHOLE = 100 };
    if (grain <= 1 || grain > INT64_MAX / percent) /* items that are large by themselves, or everything */
        return grain < 1 ? 1 : grain;
    const int64_t scaled = grain * percent / WHOLE;
    return scaled < 1 ? 1 : scaled;
}

/* ---- life ---- */

uint32_t lnt_pool_threads(const lnt_pool *pool)
{
    return pool ? pool->threads : 1;
}

static uintptr_t this_thread(void)
{
    return (uintptr_t)pthread_self();
}

/* ---- fork ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static lnt_pool *all_pools;
static _Atomic(uint32_t) process = 1;
static int watch_failed;

uint32_t lnt_process(void)
{
    return atomic_load(&process);
}

/* In the child only the thread that called fork goes on. If it was in the middle of a job, what the others had
 * taken is lost, and the job fails. */
static void forget_threads(lnt_pool *p)
{
    const bool ours = atomic_load(&p->owner) == this_thread();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    atomic_fetch_add(&p->job.life, 1);
    atomic_store(&p->sleepers, 0);
    p->orphaned = p->threads > 1;
    p->started = 1;
    if (ours)
        stop_job(p, LNT_E_CANCELLED);
    else
        atomic_store(&p->owner, 0);
    atomic_fetch_and(&p->job.gate, ~(2 * GATE_OPEN - 1));
}

static void before_fork(void)
{
    pthread_mutex_lock(&all_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&all_lock);
}

static void after_fork_in_child(void)
{
    atomic_fetch_add(&process, 1);
    for (lnt_pool *p = all_pools; p; p = p->next)
        forget_threads(p);
    pthread_mutex_unlock(&all_lock);
}

static void watch_forks(void)
{
    watch_failed = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

lnt_status lnt_watch_forks(lnt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    LNT_REQUIRE(pthread_once(&once, watch_forks) == 0 && !watch_failed, err, LNT_E_MEMORY,
                "cannot register for forks");
    return LNT_OK;
}

/* ---- making and ending ---- */

/* Starts the workers that have no thread yet. */
static lnt_status start_workers(lnt_pool *p, lnt_error *err)
{
    for (; p->started < p->threads; p->started++) {
        lnt_worker *w = &p->worker[p->started];
        w->pool = p;
        w->index = p->started;
        w->life = atomic_load(&p->job.life);
        LNT_REQUIRE(pthread_create(&w->thread, NULL, worker_main, w) == 0, err, LNT_E_LIMIT,
                    "cannot start thread %u of %u", p->started, p->threads);
    }
    return LNT_OK;
}

static void free_pool(lnt_pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->job.life, 1);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 1; i < p->started; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    const lnt_allocator a = p->allocator;
    lnt_free(&a, p);
}

lnt_status lnt_pool_make(const lnt_allocator *a, uint32_t threads, bool spin, lnt_pool **pool, lnt_error *err)
{
    *pool = NULL;
    threads = threads ? threads : lnt_default_threads();
    LNT_TRY(lnt_watch_forks(err));
    lnt_pool *p = lnt_alloc_zero(a, 1, sizeof *p, err);
    if (!p)
        return LNT_E_MEMORY;
    p->allocator = *a;
    p->threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    p->started = 1;
    p->spin_ns = spin ? SPIN_NS : 0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    const lnt_status status = start_workers(p, err);
    if (status != LNT_OK) {
        free_pool(p);
        return status;
    }
    pthread_mutex_lock(&all_lock);
    p->next = all_pools;
    all_pools = p;
    pthread_mutex_unlock(&all_lock);
    *pool = p;
    return LNT_OK;
}

lnt_status lnt_pool_create(uint32_t threads, lnt_pool **pool, lnt_error *err)
{
    lnt_error_clear(err);
    LNT_REQUIRE(pool, err, LNT_E_ARGUMENT, "pool must be given");
    return lnt_pool_make(&lnt_malloc_allocator, threads, true, pool, err);
}

void lnt_pool_destroy(lnt_pool **pool)
{
    if (!pool || !*pool)
        return;
    pthread_mutex_lock(&all_lock);
    lnt_pool **link = &all_pools;
    while (*link != *pool)
        link = &(*link)->next;
    *link = (*pool)->next;
    pthread_mutex_unlock(&all_lock);
    free_pool(*pool);
    *pool = NULL;
}

/* ---- a job ---- */

lnt_status lnt_pool_parallel(lnt_kernel *k, int64_t items, int64_t grain, lnt_task_fn task, void *arg)
{
    const lnt_session *s = k->runtime;
    lnt_pool *p = s->execution.pool;
    grain = lnt_pool_grain(grain, LNT_GRAIN_PERCENT);
    uintptr_t nobody = 0;
    if (!p || k->threads == 1 || items <= grain ||
        !atomic_compare_exchange_strong(&p->owner, &nobody, this_thread()))
        return run_alone(k, items, grain, task, arg);
    if (p->orphaned) {
        p->orphaned = false;
        (void)start_workers(p, NULL); /* those that there are do it, if only the caller */
    }
    share_items(p, items, grain);
    p->job.k = k;
    p->job.task = task;
    p->job.arg = arg;
    open_gate(p);
    take_slices(p, 0);
    close_gate(p);
    const lnt_status status = (lnt_status)atomic_load(&p->job.status);
    atomic_store(&p->owner, 0);
    return status;
}
