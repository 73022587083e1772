/* emit.h — the graph as the bytes of a .lnt file. */
#ifndef LNT_CONVERT_EMIT_EMIT_H
#define LNT_CONVERT_EMIT_EMIT_H

#include "convert/graph/report.h"
#include "formats/lnt_format.h"

/* Records of golden vectors, with their extents; their data fields count from the start of `data`. */
typedef struct lnt_golden_set {
    const lnt_allocator *heap;
    lnt_rec_golden *record;
    int64_t (*extents)[LNT_MAX_RANK];
    size_t n, capacity, extents_capacity;
    uint8_t *data;
    size_t data_bytes, data_capacity;
} lnt_golden_set;

void lnt_golden_set_free(lnt_golden_set *set);

/* golden may be NULL. The image is in g's memory, freed with lnt_free. */
lnt_status lnt_emit(lnt_graph *g, lnt_report *report, const lnt_golden_set *golden, void **image,
                    size_t *size);

#endif
