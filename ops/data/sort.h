/* sort.h — numbers sorted by their keys (ops/data/order.h), each remembering its place. */
#ifndef LNT_OPS_DATA_SORT_H
#define LNT_OPS_DATA_SORT_H

#include <stdint.h>

typedef struct lnt_entry {
    uint64_t key;
    int64_t index;
} lnt_entry;

/* Smallest key first; equal keys keep their order. spare has room for n entries, too. */
void lnt_sort_entries(lnt_entry *entries, lnt_entry *spare, int64_t n);

#endif
