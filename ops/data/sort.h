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

/* n entries of two halves in order, the first of which has one more where n is odd, to `to`; those of the first come
 * before others of the same key. */
void lnt_merge_halves(const lnt_entry *from, lnt_entry *to, int64_t n);

#endif
