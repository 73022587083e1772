/* places.h — the places of an arena that are taken, and from when to when. */
#ifndef LNT_RUNTIME_PLACES_H
#define LNT_RUNTIME_PLACES_H

#include "base/error.h"
#include "base/memory.h"

#include <stdbool.h>

/* A place in the arena, taken in the steps first..last. */
typedef struct lnt_place_taken {
    uint32_t first, last;
    size_t offset, end;
} lnt_place_taken;

/* Neighbors in the order of offsets, and what tells for all of them at once whether they can matter. */
typedef struct lnt_places_page {
    lnt_place_taken *place;
    uint32_t n;
    uint32_t first_min, first_max, last_min, last_max;
    size_t high;   /* the highest end */
    size_t widest; /* no gap among them is wider */
} lnt_places_page;

typedef struct lnt_places {
    lnt_place_taken *memory;
    lnt_places_page *page;
    uint32_t n_pages;
} lnt_places;

/* Memory for up to n places. */
lnt_status lnt_places_make(lnt_places *p, size_t n, lnt_bump *memory, lnt_error *err);
void lnt_places_clear(lnt_places *p);
void lnt_places_add(lnt_places *p, const lnt_place_taken *t);
/* The lowest offset of extent bytes that are free in the steps first..last; always: in all steps. */
size_t lnt_places_find(const lnt_places *p, uint32_t first, uint32_t last, size_t extent, bool always);
/* The end of the highest. */
size_t lnt_places_high(const lnt_places *p);

#endif
