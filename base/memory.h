/* memory.h — where the library's memory comes from.
 *
 * Every allocation goes through an lnt_allocator: a host's own, or malloc's. Three shapes of use:
 *   lnt_alloc/lnt_free   one block, freed by its owner
 *   lnt_bump             many small blocks that die together; lnt_bump_reset keeps the memory, so that a
 *                        second pass of at most the same size allocates nothing
 *   LNT_GROW             a growing array
 * An lnt_budget is an allocator that passes on to another and refuses what would be beyond a limit in sum. */
#ifndef LNT_BASE_MEMORY_H
#define LNT_BASE_MEMORY_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define LNT_ALIGN 64 /* of tensors, arenas and every lnt_alloc block */

typedef struct lnt_allocator {
    /* Returns bytes of memory aligned to LNT_ALIGN, or NULL. */
    void *(*allocate)(void *host, size_t bytes);
    void (*release)(void *host, void *block);
    void *host;
} lnt_allocator;

/* malloc's. */
extern const lnt_allocator lnt_malloc_allocator;

/* Counts what is held of `from` at once; any thread may allocate and release. It stays where it is as long as
 * a block of it lives. A block has its size in front of it, in LNT_ALIGN bytes that count, too. */
typedef struct lnt_budget {
    lnt_allocator allocator; /* to hand on */
    const lnt_allocator *from;
    size_t limit;       /* may change between allocations; SIZE_MAX: none */
    const char *set_by; /* the option that sets the limit, for messages */
    _Atomic(size_t) used;
    _Atomic(bool) refused; /* an allocation was beyond the limit */
} lnt_budget;

/* A limit of 2^64 - 1 is none. */
void lnt_budget_init(lnt_budget *b, const lnt_allocator *from, uint64_t limit, const char *set_by);
/* Is `a` a budget's that has refused something? */
bool lnt_budget_refused(const lnt_allocator *a);

/* Uninitialized memory aligned to LNT_ALIGN; NULL with E_MEMORY in err, which tells of the limit where
 * `a` is a budget's. bytes 0 gives a valid block. */
void *lnt_alloc(const lnt_allocator *a, size_t bytes, lnt_error *err);
/* The same, zeroed, for count * size bytes (overflow checked). */
void *lnt_alloc_zero(const lnt_allocator *a, size_t count, size_t size, lnt_error *err);
void lnt_free(const lnt_allocator *a, void *block);

typedef struct lnt_bump_chunk lnt_bump_chunk;
typedef struct lnt_bump {
    const lnt_allocator *allocator;
    lnt_bump_chunk *first, *current;
    size_t used; /* bytes used in current */
} lnt_bump;

void lnt_bump_init(lnt_bump *b, const lnt_allocator *a);
/* Zeroed memory aligned to 64 bytes, valid until reset or free. */
void *lnt_bump_alloc(lnt_bump *b, size_t bytes, lnt_error *err);
/* A NUL-terminated copy of text[0..length). */
char *lnt_bump_string(lnt_bump *b, const char *text, size_t length, lnt_error *err);
void lnt_bump_reset(lnt_bump *b);
/* A place to come back to: lnt_bump_rewind gives up all that was allocated after the mark was taken. */
typedef struct lnt_bump_mark {
    lnt_bump_chunk *current;
    size_t used;
} lnt_bump_mark;
lnt_bump_mark lnt_bump_here(const lnt_bump *b);
void lnt_bump_rewind(lnt_bump *b, lnt_bump_mark mark);
void lnt_bump_free(lnt_bump *b);

/* Makes room for one more element after count in a malloc-grown array; *array moves. */
lnt_status lnt_grow(const lnt_allocator *a, void **array, size_t *capacity, size_t count, size_t size,
                    lnt_error *err);
#define LNT_GROW(a, array, capacity, count, err)                                                             \
    lnt_grow((a), (void **)&(array), &(capacity), (count), sizeof *(array), (err))
/* Makes room for count elements in such an array, whose contents are lost if there was none. */
lnt_status lnt_renew(const lnt_allocator *a, void **array, size_t *capacity, size_t count, size_t size,
                     lnt_error *err);
#define LNT_RENEW(a, array, capacity, count, err)                                                            \
    lnt_renew((a), (void **)&(array), &(capacity), (count), sizeof *(array), (err))

#endif
