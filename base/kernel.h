/* kernel.h — what a kernel is given when it runs.
 *
 * A plan is a list of steps; running it is `for each step: step->run(kernel, step)`. Everything a kernel
 * needs was settled at bind: its step holds parameters and operands, the lnt_kernel holds what belongs to
 * this run: memory, threads, the cancel flag, the error sink. Kernels do not allocate. */
#ifndef LNT_BASE_KERNEL_H
#define LNT_BASE_KERNEL_H

#include "base/error.h"
#include "base/lnt_assert.h"
#include "base/operand.h"

#include <stdatomic.h>

typedef struct lnt_kernel lnt_kernel;
typedef struct lnt_step lnt_step;

typedef lnt_status (*lnt_run_fn)(lnt_kernel *k, const lnt_step *s);

/* Lines [begin, end) of output 0, a channels-last image: those of a batch's images one after the other, each
 * a row of pixels. They are stored at `to`, by worker thread `thread`. */
typedef lnt_status (*lnt_produce_lines_fn)(lnt_kernel *k, const lnt_step *s, int64_t begin, int64_t end, float *to,
                                           unsigned thread);

/* The place of an input within output 0, where that is made of inputs side by side. */
typedef struct lnt_join {
    bool fits;     /* there is such a place: as much memory as the input takes, row by row */
    size_t offset; /* bytes from the start of the output */
    int64_t pitch; /* of the input there; 0: rows are contiguous there, too */
} lnt_join;

/* Output `out` is input `in`, both of rank 4, with more at the end of axis 2: a cache that grows. Both may
 * have a plane_pitch. In one memory what is past is there already. */
typedef struct lnt_append {
    uint8_t in, out;
} lnt_append;

struct lnt_step {
    lnt_run_fn run;
    const void *params;      /* made by the operator's bind function, read-only in run */
    lnt_operand *const *in;  /* [n_in], NULL where an optional operand is skipped */
    lnt_operand *const *out; /* [n_out], NULL where an output is not wanted */
    uint16_t n_in, n_out;
    uint16_t n_held;          /* in[n_in .. n_held) are read by the producer */
    uint32_t node;            /* index of its lnt_node: names it in errors, keys its random numbers */
    uint32_t in_place;        /* bit i: output 0 may take the memory of input i */
    bool pitched;             /* output 0 may be given a pitch after bind, */
    uint32_t pitched_in;      /* bit i: input i, too */
    const lnt_join *join;     /* [n_in], or NULL: inputs that may be computed within output 0 */
    const lnt_append *append; /* [n_append] */
    unsigned n_append;
    uint32_t scratch_slot; /* slot of its scratch memory, LNT_NO_STORAGE if none */
    size_t scratch_bytes;  /* of all threads together */
    lnt_produce_lines_fn produce_lines; /* computes some lines of its output; NULL: the whole output only */
    /* Row fusion (ops/conv/row_fusion.h): the step that computes the lines of input 0, which has no memory of its
     * own. That step is not run by itself; its scratch memory is the beginning of this one's. Or NULL. */
    const lnt_step *producer;
    const char *title; /* in a trace, NULL: the node's name */
};

/* A slice of parallel work: items [begin, end), run by worker thread (0 <= thread < k->threads). */
typedef lnt_status (*lnt_task_fn)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread);

struct lnt_kernel {
    void *const *slot; /* storage number -> memory */
    unsigned threads;  /* workers that lnt_parallel may use, the caller included */
    uint64_t seed;     /* of random operators in this run, or in this turn of a loop */
    const struct lnt_kernels *kernels; /* ops/kernels.h: of the session's level */
    lnt_error *err;
    /* Set from other threads; kernels see it through lnt_parallel and lnt_cancelled. */
    const _Atomic(uint32_t) *stop; /* 0, or the lnt_status to end with */
    lnt_status (*parallel)(lnt_kernel *k, int64_t items, int64_t grain, lnt_task_fn task, void *arg);
    lnt_status (*poll)(lnt_kernel *k); /* NULL: there is no deadline */
    void *runtime;                     /* the runtime's own (control flow finds its session here) */
};

/* Another seed made from one: neighbors become strangers (the last steps of splitmix64). */
static inline uint64_t lnt_mix_seed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Memory of operand i, NULL for a skipped one. */
const void *lnt_in(const lnt_kernel *k, const lnt_step *s, unsigned i);
void *lnt_out(const lnt_kernel *k, const lnt_step *s, unsigned i);

/* The step's scratch memory, as asked for with lnt_bind_scratch; aligned to 64 bytes. */
static inline void *lnt_scratch(const lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->scratch_slot == LNT_NO_STORAGE || lnt_is_aligned(k->slot[s->scratch_slot], 64));
    return s->scratch_slot == LNT_NO_STORAGE ? NULL : k->slot[s->scratch_slot];
}

/* Runs task over [0, items) in slices of at least grain items, on as many threads as the work deserves.
 * Slicing never changes results: a task's items must not depend on each other. Between slices the cancel
 * flag is read: choose grain so that one slice takes well under a millisecond. Returns the first failure. */
static inline lnt_status lnt_parallel(lnt_kernel *k, int64_t items, int64_t grain, lnt_task_fn task,
                                      void *arg)
{
    return k->parallel(k, items, grain, task, arg);
}

/* For long loops outside lnt_parallel: OK, or the reason to stop. */
static inline lnt_status lnt_cancelled(const lnt_kernel *k)
{
    return (lnt_status)atomic_load_explicit(k->stop, memory_order_relaxed);
}

/* The same for a task whose single items may take long: looks at the clock, too. */
static inline lnt_status lnt_poll(lnt_kernel *k)
{
    return k->poll ? k->poll(k) : LNT_OK;
}

#endif
