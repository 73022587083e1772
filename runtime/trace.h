/* trace.h — times of the steps of the last run. */
#ifndef LNT_RUNTIME_TRACE_H
#define LNT_RUNTIME_TRACE_H

#include "base/kernel.h"
#include "runtime/linnet.h"

typedef struct lnt_trace {
    bool on;
    lnt_trace_step *step;
    uint32_t n, capacity;
    uint64_t origin_ns; /* when the run began */
} lnt_trace;

/* Forgets the steps, whose titles may belong to a binding that ends. */
void lnt_trace_clear(lnt_session *s);
/* A run begins. */
void lnt_trace_begin(lnt_session *s);
void lnt_trace_free(lnt_session *s);
/* Records a step that has just run. */
lnt_status lnt_trace_note(lnt_session *s, const lnt_step *step, uint64_t start_ns, lnt_error *err);

#endif
