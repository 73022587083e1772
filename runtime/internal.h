/* internal.h — the runtime's own data structures, in the order a model comes to life.
 *
 *     lnt_model     the file made walkable: nodes with resolved operators, values. Immutable, shared.
 *     lnt_session   one user of a model: operands with present extents, slots, steps, memory.
 *     lnt_frame     a subgraph being run: how far it is bound, its steps, its arena.
 *
 * Storage. Every value starts with a storage of its own, numbered as the value. A view takes the storage of
 * what it looks at; an output computed in place takes its input's; an input of a Concat that of the output.
 * Scratch memory of node n is storage n_values + n. A slot holds the memory of a storage: changing an input
 * is one store.
 *
 *     value ──storage──▶ lnt_storage ──slot──▶ memory (arena, caller's, file, evaluated, state) */
#ifndef LNT_RUNTIME_INTERNAL_H
#define LNT_RUNTIME_INTERNAL_H

#include "base/checked.h"
#include "base/clock.h"
#include "formats/lnt_file.h"
#include "ops/op.h"
#include "ops/elementwise/program.h"
#include "runtime/linnet.h"
#include "runtime/places.h"

#include <string.h>

struct lnt_model {
    lnt_allocator allocator;
    lnt_host host; /* its log may be NULL */
    lnt_blob blob;
    lnt_file file;
    lnt_bump memory; /* of everything below */
    const lnt_custom_op *custom;
    size_t n_custom;
    lnt_node *node;
    lnt_operand *value; /* templates: extents may be unknown */
    uint32_t n_values, n_nodes;
    const lnt_rec_subgraph *sub; /* 0 is the model */
    const uint32_t *in, *out;    /* value numbers of the model's inputs and outputs */
    uint32_t n_in, n_out;
    uint8_t *readers;      /* per value: nodes that read it and results it is, 2 for all above */
    uint32_t *symbol_of;   /* value -> its LNT_SYMBOL_DATA_VALUE, or NONE */
    const char **dim_name; /* of inputs without a symbol: n_in x LNT_MAX_RANK, INPUT:AXIS */
};

typedef enum lnt_place {
    LNT_PLACE_NONE,     /* not defined yet */
    LNT_PLACE_ARENA,    /* laid out by plan.c */
    LNT_PLACE_CONSTANT, /* in the file */
    LNT_PLACE_INPUT,    /* the caller's, read-only */
    LNT_PLACE_KNOWN,    /* evaluated at bind */
    LNT_PLACE_OUTPUT,   /* the caller's, or a state's buffer */
    LNT_PLACE_OWNED     /* a buffer of the session: loop-carried values, copies */
} lnt_place;

typedef struct lnt_storage {
    uint32_t parent;      /* itself, or the storage it was merged into */
    uint32_t first, last; /* steps of the frame between which it is alive; last LNT_NONE: beyond the frame */
    uint8_t place;        /* lnt_place */
    bool pinned;          /* fetched, or a graph output: never reused, never computed in place */
    bool laid;            /* has its offset */
    bool takes_pitch;     /* computed by a step that heeds the pitch of its output */
    bool needs_rows;      /* read by a step that does not heed its pitch */
    bool seen;            /* on a walk over the operands of one step */
    bool joins;           /* join.c's own */
    size_t bytes, offset; /* offset in the arena, or in the storage it was merged into */
} lnt_storage;

/* Bytes of the arena that it takes. */
static inline size_t lnt_storage_extent(const lnt_storage *storage)
{
    return lnt_round_up(storage->bytes ? storage->bytes : 1, LNT_ALIGN);
}

/* Where binding stands in a subgraph; an If's branch is bound into its parent's steps. */
typedef struct lnt_cursor {
    uint32_t sub;
    uint32_t next;  /* node of sub to bind next */
    uint32_t owner; /* the If node whose branch this is, or LNT_NONE */
} lnt_cursor;

/* A point to which binding can be taken back. */
typedef struct lnt_bind_point {
    lnt_cursor *stack;
    uint32_t depth, n_steps;
    lnt_bump_mark params, known;
} lnt_bind_point;

typedef struct lnt_frame {
    uint32_t sub;
    lnt_cursor *stack; /* [nesting of If] */
    uint32_t depth;
    lnt_step **list; /* steps in running order */
    uint32_t *time;  /* of each: when it runs; steps of one time run side by side */
    uint32_t n_steps, next;
    bool complete;       /* every node is bound */
    bool has_stop;       /* binding had to wait for data: */
    lnt_bind_point stop; /* there */
    void *arena;
    size_t arena_bytes;    /* needed by the present plan */
    size_t arena_capacity; /* of arena; 0 if there is none yet */
    bool arena_is_callers;
    uint32_t *order;    /* of the planner: storages to place, */
    uint32_t *best;     /* their best order so far, */
    lnt_places places;  /* of those laid out, */
    size_t *alive;      /* bytes alive at each time */
    size_t alive_bytes; /* most that are alive at once */
} lnt_frame;

/* A block of the session's that grows and stays. */
typedef struct lnt_buffer {
    void *data;
    size_t capacity;
} lnt_buffer;

/* A value that the user gave instead of having it computed. */
typedef struct lnt_injected {
    lnt_tensor tensor; /* its data in the buffer, in the value's storage order; NULL: the value is computed */
    lnt_buffer buffer;
} lnt_injected;

typedef struct lnt_input_slot {
    lnt_tensor tensor; /* as the caller gave it */
    bool given;
    lnt_buffer staging; /* for memory not aligned to its elements */
    lnt_buffer seen;    /* contents at bind, of inputs that feed shapes */
} lnt_input_slot;

typedef struct lnt_output_slot {
    void *data; /* the caller's, NULL: the session's own */
    size_t bytes;
    uint32_t direct;    /* storage that was given this output's memory, or LNT_NONE */
    lnt_operand target; /* where a value that lives elsewhere is copied to by a last step */
    lnt_step copy;
    size_t copy_bytes;
    lnt_operand *copy_in[1], *copy_out[1];
} lnt_output_slot;

/* What output `output` of a run is, input `input` of the next one is. A cache that grows has room in its
 * buffer: then a run writes what is new behind what is past, in place, and `next` waits for the day the room
 * is gone. */
typedef struct lnt_state_slot {
    uint32_t input, output;
    lnt_buffer now, next;
    int64_t now_pitch; /* lnt_operand.plane_pitch of `now`; as bound, the output has that of `next` */
    bool in_place;     /* as bound, the output lies in `now` */
} lnt_state_slot;

struct lnt_session {
    lnt_model *model;
    lnt_allocator machine;   /* the model's, refusing what the machine does not have */
    lnt_budget budget;       /* of the user's limit: all that the session holds goes through it */
    lnt_allocator allocator; /* the budget's */
    lnt_bump memory;         /* of the arrays below */
    lnt_operand *value;
    lnt_operand **operand; /* per operand record of the file: &value[...] or NULL */
    lnt_storage *storage;  /* n_storages */
    void **slot;
    uint32_t n_storages;
    uint32_t *born;   /* value -> step of its home frame that makes it */
    lnt_frame **home; /* value -> frame */
    lnt_step *step;   /* per node */
    lnt_frame root;
    lnt_frame **body;  /* per node: frame of a Loop's or Scan's body, else NULL */
    lnt_buffer *owned; /* per value, for LNT_PLACE_OWNED */
    lnt_input_slot *input;
    lnt_output_slot *output;
    lnt_state_slot *state;
    uint32_t n_states;
    int64_t *bound; /* per symbol, -1 none */
    bool *fetched;  /* per value */
    bool *lent; /* per value: its known contents hold for this run only (or are a bound in place of data) */
    lnt_buffer fetch_copy; /* a fetched value in ONNX order */
    lnt_buffer names; /* lnt_find_value's: numbers of values by a hash of their names, LNT_NONE between */
    lnt_buffer aside; /* carried values on their way from one turn of a loop to the next */

    lnt_bump params, known; /* of the binding */
    bool bound_now, rebind; /* a binding exists; it is out of date */
    bool outgrown;          /* the states of the last run have outgrown it; its outputs may still be read */
    bool running;
    uint32_t n_evaluated;
    const char *unbounded;
    uint64_t memory_limit;

    bool partial;         /* only what selected outputs and fetched values need is computed */
    bool *selected;       /* per output */
    bool *needed;         /* per value, while partial */
    lnt_injected *injected; /* per value */
    bool any_injected;

    lnt_execution_mode mode;
    bool separate; /* no value shares memory with another */
    int log_severity;
    lnt_level level;
    lnt_pool *pool;
    bool own_pool;
    _Atomic(uint64_t) seed;
    lnt_kernel kernel;
    _Atomic(uint32_t) stop_flag; /* 0, E_DEADLINE or, over it, E_CANCELLED */
    _Atomic(uint32_t) busy;      /* lnt_process() of the call that is in it, or 0 */
    _Atomic(uint64_t) deadline_us;
    uint64_t deadline_at_ns;
    bool trace;
    lnt_trace_step *trace_step;
    uint32_t n_trace, trace_capacity;
    uint64_t trace_origin_ns;
};

static inline const char *lnt_value_name(const lnt_model *m, uint32_t value)
{
    return m->file.strings + m->file.values[value].name;
}

static inline bool lnt_same_extents(const lnt_operand *a, const lnt_operand *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* ---- options.c ---- */
/* Copies a struct that begins with struct_bytes, as far as the caller knows it, the rest zeros; all zeros where
 * none is given. type: its name. A struct_bytes of 0 is refused. */
lnt_status lnt_take_struct(const void *given, void *taken, size_t size, const char *type, lnt_error *err);
lnt_status lnt_check_struct_bytes(size_t struct_bytes, const char *type, lnt_error *err);

/* ---- session.c ---- */
lnt_status lnt_buffer_reserve(lnt_session *s, lnt_buffer *b, size_t bytes, lnt_error *err);
const lnt_node *lnt_session_node(const lnt_session *s, uint32_t node);

/* ---- declared.c ---- */
/* Holds what was computed of a value against what the file declares of it: element type, rank, extents and
 * storage order, as far as they are declared. *bytes: of its elements. */
lnt_status lnt_check_value(const lnt_session *s, uint32_t value, const lnt_operand *computed, size_t *bytes,
                           lnt_error *err);

/* Fits a tensor to what the model says of its input i, naming the input in the error; *bytes: of its
 * elements. */
lnt_status lnt_check_input(const lnt_session *s, uint32_t i, const lnt_tensor *t, size_t *bytes,
                           lnt_error *err);
bool lnt_same_shape(const lnt_tensor *a, const lnt_tensor *b);
/* Bytes that the session may still take: of the user's limit, else what the machine has to give. */
uint64_t lnt_memory_left(const lnt_session *s);
/* Tells the host's log, if it wants messages of this severity. */
void lnt_log(const lnt_session *s, int severity, const char *format, ...) LNT_PRINTF(3, 4);
/* The value called name. */
lnt_status lnt_find_value(lnt_session *s, const char *name, uint32_t *value, lnt_error *err);

/* ---- partial.c ---- */
/* Finds out what a partial run needs. */
void lnt_mark_needed(lnt_session *s);
bool lnt_node_needed(const lnt_session *s, const lnt_node *n);
/* Puts injected values in place. */
void lnt_place_injected(lnt_session *s);

/* ---- bind.c ---- */
/* Binds the session's model for the present inputs. */
lnt_status lnt_bind_session(lnt_session *s, lnt_error *err);
/* Binds as far as data allows; running frames call it again when their steps are done. */
lnt_status lnt_bind_frame(lnt_session *s, lnt_frame *f, lnt_error *err);
void lnt_frame_rewind(lnt_session *s, lnt_frame *f);
uint32_t lnt_storage_root(lnt_session *s, uint32_t storage);
/* Starts binding of a frame from its first node. */
void lnt_frame_begin(lnt_frame *f);
/* Makes a value live in given memory with its present extents. */
void lnt_place_value(lnt_session *s, uint32_t value, lnt_place place, void *data, bool known);
/* Completes the error of a failed node with its name. */
lnt_status lnt_node_fail(const lnt_node *n, lnt_status status, lnt_error *err);

/* ---- plan.c ---- */
/* Lays out the storages of steps [from, n_steps) beside those that are still alive. */
lnt_status lnt_plan_frame(lnt_session *s, lnt_frame *f, uint32_t from, lnt_error *err);

/* ---- join.c ---- */
/* Are there inputs of Concats among the steps from `from` on that may be computed in their outputs? */
bool lnt_may_join(lnt_session *s, const lnt_frame *f, uint32_t from);
/* Merges inputs of Concats among the steps from `from` on into their outputs, as far as no more than `most`
 * bytes are alive at any time before the Concat; 0: than when it runs with its inputs by themselves. Reads
 * and keeps f->alive. Returns whether there are any. */
bool lnt_join_inputs(lnt_session *s, lnt_frame *f, uint32_t from, size_t most);
/* Takes all of that back. */
void lnt_part_inputs(lnt_session *s, lnt_frame *f, uint32_t from);

/* Refuses memory of the caller's that is given for two outputs, as far as their extents are known. */
lnt_status lnt_outputs_apart(const lnt_session *s, lnt_error *err);
/* Points the slots of outputs to the caller's memory and the states' buffers. */
void lnt_point_outputs(lnt_session *s);

/* ---- states.c ---- */
/* The state that output i feeds, or that feeds input i; NULL if it is an ordinary one. */
lnt_state_slot *lnt_state_of_output(const lnt_session *s, uint32_t i);
lnt_state_slot *lnt_state_of_input(const lnt_session *s, uint32_t i);
/* Before binding: states not set yet start with zeros. */
lnt_status lnt_start_states(lnt_session *s, lnt_error *err);
/* Where a bound output is to be computed; settles its plane_pitch. */
lnt_status lnt_state_make_room(lnt_session *s, lnt_state_slot *state, lnt_error *err);
/* lnt_state_set and lnt_state_get of a session that is entered. */
lnt_status lnt_set_state(lnt_session *s, uint32_t k, const lnt_tensor *t, lnt_error *err);
lnt_status lnt_get_state(lnt_session *s, uint32_t k, lnt_tensor *t, lnt_error *err);
void *lnt_state_target(const lnt_state_slot *state);
/* After a run: what the outputs computed becomes the input of the next. */
void lnt_swap_states(lnt_session *s);

/* ---- run.c ---- */
lnt_status lnt_run_frame(lnt_session *s, lnt_frame *f, lnt_error *err);
/* Every call of the user's that reads or changes a session enters it first and leaves it last, with its status.
 * Clears err; another call in the session is LNT_E_BUSY. */
lnt_status lnt_enter(const lnt_session *s, lnt_error *err);
lnt_status lnt_leave(const lnt_session *s, lnt_status status);
/* Ends a run in another thread and enters when that is done; false if the thread was lost in a fork: what the
 * session holds may be half changed. */
bool lnt_enter_last(lnt_session *s);

/* ---- trace.c ---- */
/* Records a step that has just run. */
lnt_status lnt_trace_note(lnt_session *s, const lnt_step *step, uint64_t start_ns, lnt_error *err);

/* ---- control.c ---- */
/* Runs a Loop or Scan whole and defines its outputs. Every step before it has run. */
lnt_status lnt_run_control(lnt_session *s, lnt_frame *f, const lnt_node *n, lnt_error *err);

/* ---- thread_pool.c ---- */
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

/* ---- resources.c ---- */
/* Bytes this process may still take: free memory, cgroup, rlimit. */
uint64_t lnt_available_memory(void);

#endif
