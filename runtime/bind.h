/* bind.h — the binding of a session: what present extents make of the model's nodes.
 *
 * Bound for extents once, a session runs without another look at shapes. A change of them, or of what was
 * asked for, makes the binding stale: the next run binds anew. */
#ifndef LNT_RUNTIME_BIND_H
#define LNT_RUNTIME_BIND_H

#include "ops/op.h"
#include "runtime/frame.h"
#include "runtime/linnet.h"
#include "runtime/plan.h"

typedef struct lnt_binding {
    bool exists, stale; /* there is one; it is out of date */
    bool outputs_apart; /* no two outputs are given the same memory: seen since it was given */
    bool outgrown;      /* the states of the last run have outgrown it; its outputs may still be read */
    lnt_bump params;    /* memory of steps' parameters */
    lnt_bump known;     /* and of values that were evaluated */
    lnt_step *step;     /* per node */
    uint32_t *born;     /* per value: the step of its home frame that makes it */
    lnt_frame **home;   /* per value: that frame */
    bool *lent; /* per value: its known contents hold for this run only (or are a bound in place of data) */
    bool *half; /* per value: float16 in memory, though it is declared float */
    int64_t *bound;        /* per symbol: the largest it may be, -1 none */
    uint32_t n_evaluated;  /* nodes computed by binding */
    const char *unbounded; /* a symbol without a bound that the arena depends on; NULL: its size is final */
} lnt_binding;

/* An empty binding, and memory for a frame: both in the session's tables. */
lnt_status lnt_binding_make(lnt_session *s, lnt_error *err);
lnt_status lnt_frame_make(lnt_session *s, lnt_frame *f, uint32_t sub, lnt_error *err);
/* Gives back what the binding takes; there is none then. */
void lnt_binding_trim(lnt_session *s);

/* Binds the session's model for the present inputs. */
lnt_status lnt_bind_session(lnt_session *s, lnt_error *err);
/* Binds as far as data allows; running frames call it again when their steps are done. */
lnt_status lnt_bind_frame(lnt_session *s, lnt_frame *f, lnt_error *err);
void lnt_frame_rewind(lnt_session *s, lnt_frame *f);
/* Decides which values are halves in memory (halves.c), and gives outputs whose types have been worked out these. */
void lnt_find_halves(lnt_session *s);
void lnt_set_halves(const lnt_session *s, const lnt_site *site);
/* Does the node run as a program that reads halves? It computes with them where it can. */
bool lnt_program_of_halves(const lnt_session *s, const lnt_site *site);
uint32_t lnt_storage_root(lnt_session *s, uint32_t storage);
/* Starts binding of a frame from its first node. */
void lnt_frame_begin(lnt_frame *f);
/* Makes a value live in given memory with its present extents. */
void lnt_place_value(lnt_session *s, uint32_t value, lnt_place place, void *data, bool known);
/* Completes the error of a failed node with its name. */
lnt_status lnt_node_fail(const lnt_node *n, lnt_status status, lnt_error *err);

#endif
