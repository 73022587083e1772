/* memory.c — allocators, bumps and growing arrays. */
#include "base/memory.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

/* Asks for huge pages: the lines of a large image are on more pages than the processor has addresses of at
 * hand. */
static void *allocate_large(size_t bytes)
{
    void *block = NULL;
    if (posix_memalign(&block, HUGE_PAGE, bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(block, bytes / HUGE_PAGE * HUGE_PAGE,
                  MADV_HUGEPAGE); /* it is as good without, but slower */
#endif
    return block;
}

static void *malloc_allocate(void *host, size_t bytes)
{
    (void)host;
    if (bytes >= HUGE_PAGE)
        return allocate_large(bytes);
    void *block = NULL;
    return posix_memalign(&block, LNT_ALIGN, bytes ? bytes : LNT_ALIGN) == 0 ? block : NULL;
}

static void malloc_release(void *host, void *block)
{
    (void)host;
    free(block);
}

const lnt_allocator lnt_malloc_allocator = {malloc_allocate, malloc_release, NULL};

/* Adds bytes to what is used, unless that is beyond the limit. */
static bool budget_take(lnt_budget *b, size_t bytes)
{
    size_t used = atomic_load_explicit(&b->used, memory_order_relaxed), sum;
    do {
        if (!lnt_add_size(used, bytes, &sum) || sum > b->limit)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&b->used, &used, sum, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static void budget_give_back(lnt_budget *b, size_t bytes)
{
    atomic_fetch_sub_explicit(&b->used, bytes, memory_order_relaxed);
}

static void *budget_allocate(void *host, size_t bytes)
{
    lnt_budget *b = host;
    size_t total;
    if (!lnt_add_size(bytes, LNT_ALIGN, &total) || total > PTRDIFF_MAX || !budget_take(b, total)) {
        atomic_store_explicit(&b->refused, true, memory_order_relaxed);
        return NULL;
    }
    char *block = b->from->allocate(b->from->host, total);
    if (!block) {
        budget_give_back(b, total);
        return NULL;
    }
    memcpy(block, &total, sizeof total);
    return block + LNT_ALIGN;
}

static void budget_release(void *host, void *block)
{
    lnt_budget *b = host;
    char *start = (char *)block - LNT_ALIGN;
    size_t total;
    memcpy(&total, start, sizeof total);
    b->from->release(b->from->host, start);
    budget_give_back(b, total);
}

void lnt_budget_init(lnt_budget *b, const lnt_allocator *from, uint64_t limit, const char *set_by)
{
    b->allocator = (lnt_allocator){budget_allocate, budget_release, b};
    b->from = from;
    b->limit = limit < SIZE_MAX ? (size_t)limit : SIZE_MAX;
    b->set_by = set_by;
    atomic_init(&b->used, 0);
    atomic_init(&b->refused, false);
}

bool lnt_budget_refused(const lnt_allocator *a)
{
    const lnt_budget *b = a->allocate == budget_allocate ? a->host : NULL;
    return b && atomic_load_explicit(&b->refused, memory_order_relaxed);
}

static void *no_memory(const lnt_allocator *a, size_t bytes, lnt_error *err)
{
    const lnt_budget *b = a->allocate == budget_allocate ? a->host : NULL;
    const size_t used = b ? b->used : 0;
    size_t sum;
    if (b && (!lnt_add_size(used, bytes, &sum) || !lnt_add_size(sum, LNT_ALIGN, &sum) || sum > b->limit))
        lnt_fail(err, LNT_E_MEMORY, "no memory for %zu bytes: %zu of the %zu that %s allows are taken", bytes,
                 used, b->limit, b->set_by);
    else
        lnt_fail(err, LNT_E_MEMORY, "no memory for %zu bytes", bytes);
    return NULL;
}

void *lnt_alloc(const lnt_allocator *a, size_t bytes, lnt_error *err)
{
    void *block = bytes <= PTRDIFF_MAX ? a->allocate(a->host, bytes) : NULL;
    return block ? block : no_memory(a, bytes, err);
}

void *lnt_alloc_zero(const lnt_allocator *a, size_t count, size_t size, lnt_error *err)
{
    size_t bytes;
    if (!lnt_mul_size(count, size, &bytes)) {
        lnt_fail(err, LNT_E_MEMORY, "%zu blocks of %zu bytes overflow the address space", count, size);
        return NULL;
    }
    void *block = lnt_alloc(a, bytes, err);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void lnt_free(const lnt_allocator *a, void *block)
{
    LNT_ASSERT(!block || a->release);
    if (block)
        a->release(a->host, block);
}

struct lnt_bump_chunk {
    lnt_bump_chunk *next;
    size_t size; /* bytes after the header, which fills LNT_ALIGN */
};

enum { BUMP_CHUNK = 16 * 1024 };

_Static_assert(sizeof(lnt_bump_chunk) <= LNT_ALIGN, "a chunk's data starts aligned");

void lnt_bump_init(lnt_bump *b, const lnt_allocator *a)
{
    *b = (lnt_bump){.allocator = a};
}

static lnt_bump_chunk *bump_chunk_with(lnt_bump *b, size_t bytes, lnt_error *err)
{
    lnt_bump_chunk **link = b->current ? &b->current->next : &b->first;
    while (*link && (*link)->size < bytes)
        link = &(*link)->next;
    if (!*link) {
        size_t size = bytes > BUMP_CHUNK ? bytes : BUMP_CHUNK, total;
        if (!lnt_add_size(size, LNT_ALIGN, &total)) {
            lnt_fail(err, LNT_E_MEMORY, "no memory for %zu bytes", bytes);
            return NULL;
        }
        lnt_bump_chunk *chunk = lnt_alloc(b->allocator, total, err);
        if (!chunk)
            return NULL;
        *chunk = (lnt_bump_chunk){.next = NULL, .size = size};
        *link = chunk;
    }
    b->used = 0;
    return b->current = *link;
}

void *lnt_bump_alloc(lnt_bump *b, size_t bytes, lnt_error *err)
{
    if (bytes > PTRDIFF_MAX) {
        lnt_fail(err, LNT_E_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    bytes = lnt_round_up(bytes ? bytes : 1, LNT_ALIGN);
    lnt_bump_chunk *chunk = b->current;
    if (!chunk || chunk->size - b->used < bytes) {
        chunk = bump_chunk_with(b, bytes, err);
        if (!chunk)
            return NULL;
    }
    char *block = (char *)chunk + LNT_ALIGN + b->used;
    b->used += bytes;
    return memset(block, 0, bytes);
}

char *lnt_bump_string(lnt_bump *b, const char *text, size_t length, lnt_error *err)
{
    char *copy = lnt_bump_alloc(b, length + 1, err);
    return copy && length ? memcpy(copy, text, length) : copy;
}

void lnt_bump_reset(lnt_bump *b)
{
    b->current = NULL;
    b->used = 0;
}

lnt_bump_mark lnt_bump_here(const lnt_bump *b)
{
    return (lnt_bump_mark){b->current, b->used};
}

void lnt_bump_rewind(lnt_bump *b, lnt_bump_mark mark)
{
    LNT_ASSERT(!mark.current || mark.used <= mark.current->size);
    b->current = mark.current;
    b->used = mark.used;
}

void lnt_bump_free(lnt_bump *b)
{
    for (lnt_bump_chunk *chunk = b->first, *next; chunk; chunk = next) {
        next = chunk->next;
        lnt_free(b->allocator, chunk);
    }
    lnt_bump_init(b, b->allocator);
}

/* Where a sanitizer watches, short arrays move with every element: it then sees who holds on to where one
 * was. */
static size_t grown(size_t capacity)
{
#if LNT_IS_WATCHED
    enum { SHORT = 256 };
    if (capacity < SHORT)
        return capacity + 1;
#endif
    return capacity ? capacity * 2 : 16;
}

lnt_status lnt_grow(const lnt_allocator *a, void **array, size_t *capacity, size_t count, size_t size,
                    lnt_error *err)
{
    LNT_ASSERT(count <= *capacity && (*array || *capacity == 0));
    if (count < *capacity)
        return LNT_OK;
    size_t wanted = grown(*capacity), bytes;
    if (wanted <= *capacity || !lnt_mul_size(wanted, size, &bytes))
        return lnt_fail(err, LNT_E_MEMORY, "an array of %zu elements overflows the address space", count);
    void *moved = lnt_alloc(a, bytes, err);
    if (!moved)
        return LNT_E_MEMORY;
    if (*array)
        memcpy(moved, *array, count * size);
    lnt_free(a, *array);
    *array = moved;
    *capacity = wanted;
    return LNT_OK;
}

lnt_status lnt_renew(const lnt_allocator *a, void **array, size_t *capacity, size_t count, size_t size,
                     lnt_error *err)
{
    size_t bytes;
    if (count <= *capacity)
        return LNT_OK;
    lnt_free(a, *array);
    *capacity = 0;
    *array = lnt_mul_size(count, size, &bytes) ? lnt_alloc(a, bytes, err) : NULL;
    if (!*array)
        return lnt_fail(err, LNT_E_MEMORY, "no memory for an array of %zu elements", count);
    *capacity = count;
    return LNT_OK;
}
