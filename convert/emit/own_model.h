/* own_model.h — models that the converter runs itself: to record golden vectors, to calibrate and measure. */
#ifndef LNT_CONVERT_EMIT_OWN_MODEL_H
#define LNT_CONVERT_EMIT_OWN_MODEL_H

#include "convert/graph/graph.h"
#include "runtime/linnet.h"

/* A model in bytes that stay; its memory, and that of its sessions, is the heap's. */
lnt_status lnt_load_own(const lnt_allocator *heap, const void *image, size_t size, lnt_model **m,
                        lnt_error *err);
/* Input i of m, made up for a run of a model that is not known: floats by the rule of golden vectors with
 * seed i + 1, integers 1; but one integer that the graph g compares with a constant is that constant. In g's
 * memory. An extent that is open becomes `extent`, but the first axis is taken for a batch of 1. */
lnt_status lnt_seeded_input(const lnt_graph *g, const lnt_model *m, uint32_t i, int64_t extent, lnt_tensor *t,
                            lnt_error *err);
/* Which extents a model can take is not known beforehand: the first of these that runs. */
enum { LNT_TRIAL_EXTENTS = 4 };
extern const int64_t lnt_trial_extents[LNT_TRIAL_EXTENTS];

/* Bytes that a run on such inputs may need. */
enum { LNT_TRIAL_MEMORY = 1 << 30 };
/* Microseconds that it may take: little, if the model has loops, which may never end. */
uint64_t lnt_trial_deadline(const lnt_graph *g);

#endif
