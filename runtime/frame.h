/* frame.h — a subgraph being run: the model itself, or the body of a Loop or Scan.
 *
 * A frame is filled by three files: bind.c makes its steps, plan.c lays out its arena, run.c runs them. Where
 * extents depend on data these take turns: steps run as far as they are bound, then binding goes on. */
#ifndef LNT_RUNTIME_FRAME_H
#define LNT_RUNTIME_FRAME_H

#include "base/kernel.h"
#include "base/memory.h"
#include "runtime/plan.h"

/* Where binding stands in a subgraph; an If's branch is bound into its parent's steps. */
typedef struct lnt_bind_cursor {
    uint32_t sub;
    uint32_t next;  /* node of sub to bind next */
    uint32_t owner; /* the If node whose branch this is, or LNT_NONE */
} lnt_bind_cursor;

/* A point to which binding can be taken back. */
typedef struct lnt_bind_point {
    lnt_bind_cursor *stack;
    uint32_t depth, n_steps;
    lnt_bump_mark params, known;
} lnt_bind_point;

struct lnt_frame {
    uint32_t sub;
    lnt_bind_cursor *stack; /* [nesting of If] */
    uint32_t depth;
    lnt_step **list; /* steps in running order */
    uint32_t *wave;  /* of each step, ascending; steps of one wave are independent: a parallel group */
    uint32_t n_steps, next;
    bool complete;       /* every node is bound */
    bool has_stop;       /* binding had to wait for data: */
    lnt_bind_point stop; /* there */
    lnt_arena arena;
    lnt_arena_layout layout;
};

#endif
