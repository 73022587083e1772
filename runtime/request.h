/* request.h — what the user asks of runs beyond the model's inputs and outputs: values fetched by name,
 * values given instead of being computed, and only some of the outputs. */
#ifndef LNT_RUNTIME_REQUEST_H
#define LNT_RUNTIME_REQUEST_H

#include "ops/op.h"
#include "runtime/buffer.h"
#include "runtime/linnet.h"

/* A value that the user gave instead of having it computed. */
typedef struct lnt_injected {
    lnt_tensor tensor; /* its data in the buffer, in the value's storage order; NULL: the value is computed */
    lnt_buffer buffer;
} lnt_injected;

typedef struct lnt_request {
    bool *fetched;          /* per value */
    bool *selected;         /* per output */
    bool partial;           /* only what selected outputs and fetched values need is computed */
    bool *needed;           /* per value, while partial */
    lnt_injected *injected; /* per value */
    bool any_injected;
    lnt_buffer names; /* lnt_find_value's: numbers of values by a hash of their names, LNT_NONE between */
    lnt_buffer copy;  /* a fetched value in ONNX order */
} lnt_request;

/* Nothing asked for; in the session's tables. */
lnt_status lnt_request_make(lnt_session *s, lnt_error *err);
/* Frees what is made again when it is needed, and what the user gave. */
void lnt_request_trim(lnt_session *s);
void lnt_request_free(lnt_session *s);

/* Finds out what a partial run needs. */
void lnt_mark_needed(lnt_session *s);
bool lnt_node_needed(const lnt_session *s, const lnt_node *n);
/* Puts injected values in place. */
void lnt_place_injected(lnt_session *s);
/* The value called name. */
lnt_status lnt_find_value(lnt_session *s, const char *name, uint32_t *value, lnt_error *err);

#endif
