/* internal.h — the runtime's own data structures, in the order a model comes to life.
 *
 *     lnt_model     load.h     the file made walkable: nodes with operators, values. Immutable, shared.
 *     lnt_session   here       one user of a model, in parts, each in the header of who keeps it
 *       lnt_binding   bind.h     what present extents make of the nodes: steps
 *       lnt_storage   plan.h     where values live
 *       lnt_states    states.h   what is carried from run to run
 *       lnt_loops     control.h  bodies of Loop and Scan
 *       lnt_request   request.h  values fetched, injected, selected
 *       lnt_execution run.h      threads, deadline, cancel flag
 *       lnt_trace     trace.h    times of steps
 *     lnt_frame     frame.h    a subgraph being run: how far it is bound, its steps, its arena. */
#ifndef LNT_RUNTIME_INTERNAL_H
#define LNT_RUNTIME_INTERNAL_H

#include "base/checked.h"
#include "base/clock.h"
#include "ops/elementwise/program.h"
#include "ops/op.h"
#include "runtime/bind.h"
#include "runtime/buffer.h"
#include "runtime/control.h"
#include "runtime/frame.h"
#include "runtime/linnet.h"
#include "runtime/load.h"
#include "runtime/plan.h"
#include "runtime/request.h"
#include "runtime/resources.h"
#include "runtime/run.h"
#include "runtime/states.h"
#include "runtime/text.h"
#include "runtime/thread_pool.h"
#include "runtime/trace.h"

#include <string.h>

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

/* Whose memory a session takes. */
typedef struct lnt_session_memory {
    lnt_allocator machine;   /* the model's, refusing what the machine does not have */
    lnt_budget budget;       /* of the user's limit: all that the session holds goes through it */
    lnt_allocator allocator; /* the budget's */
    lnt_bump tables;         /* arrays that last as long as the session */
    uint64_t limit;          /* as the user gave it; 0: none */
    bool separate;           /* no value shares memory with another */
} lnt_session_memory;

struct lnt_session {
    lnt_model *model;
    lnt_level level;
    const lnt_kernels *kernels; /* of the level, as the cores want them */
    int log_severity;
    lnt_session_memory memory;

    lnt_operand *value;    /* with present extents */
    lnt_operand **operand; /* per operand record of the file: &value[...] or NULL */
    lnt_storage *storage;  /* n_storages */
    void **slot;           /* n_storages */
    uint32_t n_storages;
    lnt_input_slot *input;
    lnt_output_slot *output;

    lnt_frame root;
    lnt_binding binding;
    lnt_states states;
    lnt_loops loops;
    lnt_request request;
    lnt_execution execution;
    lnt_trace trace;
    lnt_session_text *text; /* NULL: the model has none */
};

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
const lnt_node *lnt_session_node(const lnt_session *s, uint32_t node);
/* Fits a tensor to what the model says of its input i, naming the input in the error; *bytes: of its
 * elements. */
lnt_status lnt_check_input(const lnt_session *s, uint32_t i, const lnt_tensor *t, size_t *bytes,
                           lnt_error *err);
bool lnt_same_shape(const lnt_tensor *a, const lnt_tensor *b);
/* The memory of a value, NULL if it has none; and *t as such a value with these data. */
const void *lnt_value_memory(lnt_session *s, const lnt_operand *v);
void lnt_fill_tensor(lnt_tensor *t, const lnt_operand *v, const void *data);
/* Bytes that the session may still take: of the user's limit, else what the machine has to give. */
uint64_t lnt_memory_left(const lnt_session *s);
/* Tells the host's log, if it wants messages of this severity. */
void lnt_log(const lnt_session *s, int severity, const char *format, ...) LNT_PRINTF(3, 4);

/* ---- declared.c ---- */
/* Holds what was computed of a value against what the file declares of it: element type, rank, extents and
 * storage order, as far as they are declared. *bytes: of its elements. */
lnt_status lnt_check_value(const lnt_session *s, uint32_t value, const lnt_operand *computed, size_t *bytes,
                           lnt_error *err);

#endif
