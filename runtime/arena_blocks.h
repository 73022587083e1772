/* arena_blocks.h — the blocks of an arena that are taken, and from when to when. */
#ifndef LNT_RUNTIME_ARENA_BLOCKS_H
#define LNT_RUNTIME_ARENA_BLOCKS_H

#include "base/error.h"
#include "base/memory.h"

#include <stdbool.h>

/* A block in the arena, taken in the waves first..last. */
typedef struct lnt_arena_block {
    uint32_t first, last; /* waves */
    size_t offset, end;
} lnt_arena_block;

/* Neighbors in the order of offsets, and what tells for all of them at once whether they can matter. */
typedef struct lnt_arena_page {
    lnt_arena_block *block;
    uint32_t n;
    uint32_t first_min, first_max, last_min, last_max;
    size_t high;   /* the highest end */
    size_t widest; /* no gap among them is wider */
} lnt_arena_page;

typedef struct lnt_arena_blocks {
    lnt_arena_block *memory;
    lnt_arena_page *page;
    uint32_t n_pages;
} lnt_arena_blocks;

/* Memory for up to n blocks. */
lnt_status lnt_blocks_make(lnt_arena_blocks *p, size_t n, lnt_bump *memory, lnt_error *err);
void lnt_blocks_clear(lnt_arena_blocks *p);
void lnt_blocks_add(lnt_arena_blocks *p, const lnt_arena_block *t);
/* The lowest offset of extent bytes that are free in the waves first..last; always: in all waves. */
size_t lnt_blocks_find(const lnt_arena_blocks *p, uint32_t first, uint32_t last, size_t extent, bool always);
/* The end of the highest. */
size_t lnt_blocks_high(const lnt_arena_blocks *p);

#endif
