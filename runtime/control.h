/* control.h — Loops and Scans at run time. */
#ifndef LNT_RUNTIME_CONTROL_H
#define LNT_RUNTIME_CONTROL_H

#include "ops/op.h"
#include "runtime/buffer.h"
#include "runtime/frame.h"
#include "runtime/linnet.h"

typedef struct lnt_loops {
    lnt_frame **body;  /* per node: frame of a Loop's or Scan's body, else NULL */
    lnt_buffer *owned; /* per value: loop-carried values and stacked outputs, for LNT_PLACE_OWNED */
    lnt_buffer aside;  /* carried values on their way from one turn of a loop to the next */
} lnt_loops;

/* Frames of all bodies; in the session's tables. */
lnt_status lnt_loops_make(lnt_session *s, lnt_error *err);
/* Frees arenas and buffers. */
void lnt_loops_trim(lnt_session *s);

/* Runs a Loop or Scan whole and defines its outputs. Every step before it has run. */
lnt_status lnt_run_control(lnt_session *s, lnt_frame *f, const lnt_node *n, lnt_error *err);

#endif
