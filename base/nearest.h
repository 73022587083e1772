/* nearest.h — of many names the one that somebody may have meant. */
#ifndef LNT_BASE_NEAREST_H
#define LNT_BASE_NEAREST_H

#include <stddef.h>

typedef struct lnt_nearest {
    const char *wanted;
    const char *name; /* of those added the nearest, the first of equals; NULL: none was added */
    size_t distance;
} lnt_nearest;

/* Considers name, unless it is empty, by a weighted form of Levenshtein's distance ("Binary Codes Capable of Correcting
 * Deletions, Insertions, and Reversals", 1966); of names and texts that are long, by their first characters. */
void lnt_nearest_add(lnt_nearest *n, const char *name);
/* The nearest, if who typed `wanted` may well have meant it, else NULL. */
const char *lnt_nearest_name(const lnt_nearest *n);

#endif
