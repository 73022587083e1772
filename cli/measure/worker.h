/* worker.h — the two sides of the paired benchmark are processes of their own: this program again, controlled over its
 * standard input.
 *
 * First come the inputs, then requests; each is answered by a reply, OUTPUTS by the tensors behind it. The
 * worker ends when its input ends. */
#ifndef LNT_CLI_MEASURE_WORKER_H
#define LNT_CLI_MEASURE_WORKER_H

#include "cli/shell/args.h"
#include "cli/shell/pipe.h"

typedef struct lnt_request {
    enum { LNT_WORK_LOAD, LNT_WORK_RUN, LNT_WORK_OUTPUTS } what;
    uint32_t runs; /* timed, one after another */
    bool lead;     /* one before them that is not timed */
    bool memory;   /* look at this process's memory afterwards: the kernel walks over all of its pages */
} lnt_request;

/* Seconds, and KiB of this process. */
typedef struct lnt_reply {
    lnt_error error;
    double waited; /* for the inputs */
    double library, load;
    double time, cpu;              /* of the runs together: gone by; used by all threads of the process */
    double done;                   /* lnt_now() after them */
    uint64_t base, resident, peak; /* before the load; when last asked for; ever */
    uint64_t dirty;                /* private and written to since before the load */
    uint64_t arena;
    uint64_t
        library_bytes; /* code and data of onnxruntime's library; of this program, where that is not loaded */
    char version[32], level[16];
} lnt_reply;

typedef struct lnt_worker_options {
    const char *engine; /* "linnet", "onnxruntime", "onnxruntime-plain": without optimizations */
    const char *model, *library, *level;
    uint32_t threads;
} lnt_worker_options;

/* Returns the exit code. */
int lnt_worker(const lnt_worker_options *options);

#endif
