/* plan.h — where values live: storages, and the arena they are laid out in.
 *
 * Every value starts with a storage of its own, numbered as the value. A view takes the storage of what it
 * looks at; an output computed in place takes its input's; an input of a Concat that of the output. Scratch
 * memory of node n is storage n_values + n. A slot holds the memory of a storage: changing an input is one
 * store.
 *
 *     value ──storage──▶ lnt_storage ──slot──▶ memory (arena, caller's, file, evaluated, state)
 *
 * plan.c lays out the storages of a frame's steps, so that those alive in the same wave do not overlap;
 * join.c merges inputs of Concats into their outputs first. */
#ifndef LNT_RUNTIME_PLAN_H
#define LNT_RUNTIME_PLAN_H

#include "base/checked.h"
#include "base/memory.h"
#include "runtime/linnet.h"
#include "runtime/arena_blocks.h"

typedef struct lnt_frame lnt_frame; /* frame.h */

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
    uint32_t first, last; /* waves of the frame between which it is alive; last LNT_NONE: beyond the frame */
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

/* Memory of the storages of a frame's steps. */
typedef struct lnt_arena {
    void *data;
    size_t bytes;    /* needed by the present plan */
    size_t capacity; /* of data; 0 if there is none yet */
    bool is_callers;
} lnt_arena;

/* What the planner works with. */
typedef struct lnt_arena_layout {
    uint32_t *order;    /* storages to place, */
    uint32_t *best;     /* their best order so far, */
    lnt_arena_blocks blocks;  /* of those laid out */
    size_t *alive;      /* bytes alive in each wave */
    size_t alive_bytes; /* the most that are alive at once */
} lnt_arena_layout;

/* ---- plan.c ---- */
/* Lays out the storages of steps [from, n_steps) beside those that are still alive. */
lnt_status lnt_plan_frame(lnt_session *s, lnt_frame *f, uint32_t from, lnt_error *err);
/* Frees the frame's arena, unless it is the caller's; f may be NULL. */
void lnt_free_arena(lnt_session *s, lnt_frame *f);
/* Refuses memory of the caller's that is given for two outputs, as far as their extents are known. */
lnt_status lnt_outputs_apart(const lnt_session *s, lnt_error *err);
/* Points the slots of outputs to the caller's memory and the states' buffers. */
void lnt_point_outputs(lnt_session *s);

/* ---- join.c ---- */
/* Are there inputs of Concats among the steps from `from` on that may be computed in their outputs? */
bool lnt_may_join(lnt_session *s, const lnt_frame *f, uint32_t from);
/* Merges inputs of Concats among the steps from `from` on into their outputs, as far as no more than `most`
 * bytes are alive in any wave before the Concat; 0: than when it runs with its inputs by themselves. Reads
 * and keeps f->layout.alive. Returns whether there are any. */
bool lnt_join_inputs(lnt_session *s, lnt_frame *f, uint32_t from, size_t most);
/* Takes all of that back. */
void lnt_part_inputs(lnt_session *s, lnt_frame *f, uint32_t from);

#endif
