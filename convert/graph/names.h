/* names.h — a map from text to a number. */
#ifndef LNT_CONVERT_GRAPH_NAMES_H
#define LNT_CONVERT_GRAPH_NAMES_H

#include "base/memory.h"

/* Open addressing; texts are the caller's and must outlive the map. Zeroed but for the heap it is empty. */
typedef struct lnt_names {
    const lnt_allocator *heap;
    struct lnt_names_slot {
        const char *text; /* NULL: free */
        uint32_t number;
    } * slot;
    size_t n, capacity; /* capacity: 0 or a power of two */
} lnt_names;

#define LNT_NAMES_NONE UINT32_MAX

void lnt_names_free(lnt_names *names);
/* The number of text, LNT_NAMES_NONE if it is not there. */
uint32_t lnt_names_find(const lnt_names *names, const char *text);
/* Sets the number of text, whether it is there already or not. */
lnt_status lnt_names_set(lnt_names *names, const char *text, uint32_t number, lnt_error *err);

#endif
