/* linnet.h — the public C API of Linnet.
 *
 *     lnt_model *model; lnt_session *session; lnt_error err = {0};
 *     lnt_model_create("vad.lnt", NULL, &model, &err);
 *     lnt_session_create(model, NULL, &session, &err);
 *     lnt_set_input(session, 0, &(lnt_tensor){LNT_FLOAT, 2, {1, 576}, samples, sizeof samples}, &err);
 *     lnt_run(session, &err);
 *     lnt_tensor probability;
 *     lnt_get_output(session, 0, &probability, &err);
 *
 * A model is immutable and may be shared by any number of sessions; a session belongs to one thread at a time: a
 * call that finds another one in the same session returns E_BUSY and changes nothing, in a host's operator or log,
 * too. Only lnt_cancel, lnt_set_deadline, lnt_set_seed and lnt_session_destroy may be called meanwhile.
 *
 * After fork a child may use or destroy what it inherited; threads of pools are started again by the first run that
 * wants them. A session that another thread was running can in the child only be destroyed, which leaves its memory
 * to the end of the process.
 *
 * Every function that can fail returns an lnt_status and explains itself in *err (which may be NULL).
 * The library never prints, aborts or exits. */
#ifndef LINNET_H
#define LINNET_H

#include "linnet_types.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LNT_VERSION "0.1.0"
LNT_API const char *lnt_version(void);

typedef struct lnt_model lnt_model;
typedef struct lnt_session lnt_session;
typedef struct lnt_pool lnt_pool;

/* ---- models ---- */

enum {
    LNT_LOAD_FULL = 1 << 0, /* also check tensor data and padding against their hashes */
    LNT_LOAD_COPY = 1 << 1  /* read into memory instead of mapping */
};

typedef struct lnt_model_options {
    size_t struct_bytes; /* sizeof(lnt_model_options): tells which fields the caller knows; 0 is refused */
    uint32_t flags;
    const struct lnt_host *host; /* memory and log of the host; NULL: malloc, silence */
    const lnt_custom_op *custom; /* operators of the host's */
    size_t n_custom;
} lnt_model_options;

/* The host's memory and log. Must outlive everything made with it. */
typedef struct lnt_host {
    size_t struct_bytes; /* sizeof(lnt_host) */
    void *(*allocate)(void *user, size_t bytes); /* aligned to 64 bytes, NULL on failure */
    void (*release)(void *user, void *block);
    void (*log)(void *user, int severity, const char *message); /* may be NULL; 0 verbose .. 3 error */
    void *user;
} lnt_host;

/* Maps a regular file; anything else is refused without waiting. While it is mapped the file must not be cut short,
 * which ends the process with SIGBUS, or written to, which makes what was checked untrue: replace it by rename, or
 * open it with LNT_LOAD_COPY. */
LNT_API lnt_status lnt_model_create(const char *path, const lnt_model_options *options, lnt_model **model,
                                    lnt_error *err);
/* bytes must stay as they are until the model is closed; any alignment (unaligned bytes are copied). */
LNT_API lnt_status lnt_model_create_from_memory(const void *bytes, size_t size,
                                                const lnt_model_options *options, lnt_model **model,
                                                lnt_error *err);
/* Accepts NULL and pointers to NULL; sets *model to NULL. Sessions must be destroyed first. */
LNT_API void lnt_model_destroy(lnt_model **model);

typedef struct lnt_value_info {
    const char *name;
    lnt_dtype dtype;
    uint32_t rank;                          /* 255: not known before bind */
    int64_t dims[LNT_MAX_RANK];             /* -1 where dim_names or a run decides */
    const char *dim_names[LNT_MAX_RANK];    /* "batch"; INPUT:AXIS for a nameless one; NULL if fixed */
    bool is_state;                          /* fed by the session (inputs), kept by it (outputs) */
} lnt_value_info;

LNT_API uint32_t lnt_model_input_count(const lnt_model *model);
LNT_API uint32_t lnt_model_output_count(const lnt_model *model);
LNT_API lnt_status lnt_model_input(const lnt_model *model, uint32_t i, lnt_value_info *info);
LNT_API lnt_status lnt_model_output(const lnt_model *model, uint32_t i, lnt_value_info *info);
/* Number of the input or output called name; -1 if there is none. */
LNT_API int lnt_model_find_input(const lnt_model *model, const char *name);
LNT_API int lnt_model_find_output(const lnt_model *model, const char *name);
LNT_API uint32_t lnt_model_metadata_count(const lnt_model *model);
LNT_API lnt_status lnt_model_metadata(const lnt_model *model, uint32_t i, const char **key, const char **text);
/* The file that `convert --attach NAME=FILE` put in: bytes of the model's, at a multiple of 64. LNT_E_NOT_FOUND: there
 * is none of that name. */
LNT_API lnt_status lnt_model_attachment(const lnt_model *model, const char *name, const void **data,
                                        size_t *bytes);
/* Of all that the model's file holds: models with the same hash are the same. 0 of NULL. */
LNT_API uint64_t lnt_model_hash(const lnt_model *model);

/* ---- thread pools ---- */

/* threads counts the calling thread; 0: as many as the process may use (affinity, cgroup quota). 64 at most: more
 * are taken as 64, as they are in a session's options. */
LNT_API lnt_status lnt_pool_create(uint32_t threads, lnt_pool **pool, lnt_error *err);
/* Sessions that use it must be destroyed first. */
LNT_API void lnt_pool_destroy(lnt_pool **pool);
LNT_API uint32_t lnt_default_threads(void);

/* ---- sessions ---- */

typedef enum lnt_execution_mode {
    LNT_SEQUENTIAL = 0, /* one step after another, each on all threads */
    LNT_PARALLEL = 1    /* steps that do not depend on each other side by side; needs more memory */
} lnt_execution_mode;

typedef struct lnt_config_entry {
    const char *key, *text;
} lnt_config_entry;

/* All zeros but struct_bytes is the default. */
typedef struct lnt_session_options {
    size_t struct_bytes; /* sizeof(lnt_session_options); 0 is refused */
    uint32_t intra_op_num_threads; /* 0: as many as the process may use; ignored if pool is given */
    uint32_t inter_op_num_threads; /* for LNT_PARALLEL; the same pool serves both, the larger number counts */
    lnt_execution_mode execution_mode;
    bool disable_mem_pattern; /* give every value memory of its own: larger, for hunting errors */
    bool enable_profiling;    /* time every step */
    int log_severity_level;   /* least severity the host's log receives: 0 verbose, 1 info, 2 warning, 3 error */
    lnt_pool *pool;           /* shared with other sessions; NULL: one of the session's own */
    const char *level;        /* "scalar", "avx2", ...; NULL: best */
    uint64_t seed;            /* of random operators: same seed, same bits */
    void *arena;              /* the caller's memory for intermediate values, aligned to 64; NULL: the session's */
    size_t arena_bytes;
    /* Bytes that the session may hold in all (arena, states, stacked outputs, scratch and staging memory, its
     * own tables; not memory of the caller's): what would exceed them is refused before it is taken. 0: what the
     * machine has to give. */
    uint64_t memory_limit;
    /* Free-form settings; unknown keys are refused, so that a misspelt one is noticed:
     *   session.intra_op.allow_spinning  "0" puts waiting threads to sleep at once */
    const lnt_config_entry *config;
    size_t n_config;
} lnt_session_options;

LNT_API lnt_status lnt_session_create(lnt_model *model, const lnt_session_options *options, lnt_session **session,
                                      lnt_error *err);
/* Cancels a run that is going on in another thread and waits until that call has returned; no other may begin. Not to
 * be called by a host's operator or log within that run: it would wait for itself. */
LNT_API void lnt_session_destroy(lnt_session **session);

/* An upper bound for a named extent or data-dependent value ("T", "durations:0"); negative: none. With bounds for
 * all of them the arena is exact at bind and a run that needs more fails. Takes effect at the next bind. */
LNT_API lnt_status lnt_set_bound(lnt_session *s, const char *name, int64_t bound, lnt_error *err);
/* Keeps the named value for lnt_get_value; takes effect at the next bind. */
LNT_API lnt_status lnt_keep_value(lnt_session *s, const char *name, lnt_error *err);

/* ---- parts of a model ---- */

/* Has the next runs compute these outputs only (and what lnt_keep_value asked for): steps they do not need are
 * skipped, inputs they do not need may be left out, memory given for other outputs stays as it is. outputs NULL:
 * all again. n 0: none but values that are kept; no more than the model has. */
LNT_API lnt_status lnt_select_outputs(lnt_session *s, const uint32_t *outputs, uint32_t n, lnt_error *err);
/* Sets the named value instead of computing it, as to resume from where an earlier run was stopped. The tensor,
 * in ONNX order, is copied. NULL: compute it again. */
LNT_API lnt_status lnt_set_value(lnt_session *s, const char *name, const lnt_tensor *tensor, lnt_error *err);

/* Gives input i its shape and memory. The memory is read during lnt_run, never written; any alignment. Of text
 * (LNT_STRING) data is an array of const char *, and the words are copied at once. */
LNT_API lnt_status lnt_set_input(lnt_session *s, uint32_t i, const lnt_tensor *tensor, lnt_error *err);
/* Has output i written to data, which holds bytes; NULL: the session's own memory. A run writes outputs and reads
 * inputs in any order: it is refused where two outputs share memory, and of what an input shares with one the contents
 * may change before they are read. Of text data must be NULL. */
LNT_API lnt_status lnt_set_output(lnt_session *s, uint32_t i, void *data, size_t bytes, lnt_error *err);

/* Works out all shapes, chooses kernels, lays out memory. lnt_run does it when shapes have changed. */
LNT_API lnt_status lnt_bind(lnt_session *s, lnt_error *err);
LNT_API lnt_status lnt_run(lnt_session *s, lnt_error *err);

/* Output i of the last run, or after bind its shape (data NULL). data is valid until the next bind or run; of text it
 * is an array of const char *, which are valid as long. */
LNT_API lnt_status lnt_get_output(lnt_session *s, uint32_t i, lnt_tensor *tensor, lnt_error *err);
/* A value kept by lnt_keep_value. */
LNT_API lnt_status lnt_get_value(lnt_session *s, const char *name, lnt_tensor *tensor, lnt_error *err);

/* States: outputs that are inputs of the next run, swapped without a copy after each successful run. */
LNT_API lnt_status lnt_state_reset(lnt_session *s, lnt_error *err); /* all to zeros */
LNT_API uint32_t lnt_state_count(const lnt_session *s);
/* Sets state k (numbered as the model's states) to a copy of the tensor; or shows it: the tensor's data are then
 * the session's, until it is run, bound or reset. */
LNT_API lnt_status lnt_state_set(lnt_session *s, uint32_t k, const lnt_tensor *tensor, lnt_error *err);
LNT_API lnt_status lnt_state_get(lnt_session *s, uint32_t k, lnt_tensor *tensor, lnt_error *err);

/* From any thread or signal handler (it stores one word): the current run ends with E_CANCELLED within milliseconds or,
 * if none is going on or it ends for another reason, the next one does. Exactly one run answers, also where the session
 * is cancelled again before that. lnt_bind does not: the run after it will. */
LNT_API void lnt_cancel(lnt_session *s);
/* The next runs end with E_DEADLINE after microseconds, however many; 0: none. Binding has as long for itself, within
 * lnt_bind as within a run that binds. */
LNT_API void lnt_set_deadline(lnt_session *s, uint64_t microseconds);
LNT_API void lnt_set_seed(lnt_session *s, uint64_t seed);

typedef struct lnt_session_info {
    size_t struct_bytes; /* sizeof(lnt_session_info), set before the call: how much is filled in; 0 is refused */
    uint64_t arena_bytes;   /* of the present binding */
    uint64_t constant_bytes;
    uint32_t n_steps;       /* run each time */
    uint32_t n_evaluated;   /* operators computed at bind */
    uint32_t threads;
    const char *level;
    const char *unbounded;  /* first data-dependent extent without a bound; NULL: the arena is exact */
    uint64_t alive_bytes;   /* of intermediate values and scratch memory, the most that is needed at once */
    uint64_t held_bytes;    /* of all memory the session holds now: what memory_limit bounds */
} lnt_session_info;

LNT_API lnt_status lnt_session_get_info(const lnt_session *s, lnt_session_info *info, lnt_error *err);
/* Gives back memory beyond what the model itself needs; the next run binds anew. */
LNT_API lnt_status lnt_session_trim(lnt_session *s, lnt_error *err);

typedef struct lnt_trace_step {
    const char *node, *op; /* op: ONNX operator name. Two that run together are one step, "node + node" */
    uint64_t start_ns, duration_ns; /* of the last run */
    uint64_t out_bytes; /* a Concat's: without inputs that were computed in its output */
    uint64_t multiply_adds; /* of products and convolutions; 0 for other operators */
} lnt_trace_step;

/* Steps of the last run, if options.enable_profiling; none after a new bind. */
LNT_API uint32_t lnt_trace_count(const lnt_session *s);
LNT_API lnt_status lnt_trace_get(const lnt_session *s, uint32_t i, lnt_trace_step *step);
/* The same as a file that chrome://tracing and Perfetto open. */
LNT_API lnt_status lnt_trace_write(const lnt_session *s, const char *path, lnt_error *err);

#ifdef __cplusplus
}
#endif
#endif
