/* arena_blocks.c — finding room in an arena. Blocks are kept in pages, in the order of offsets: a page that cannot
 * matter, or that leaves no gap, is passed in one step, so that long chains and wide graphs of many waves
 * take little time. */
#include "runtime/arena_blocks.h"

#include "base/lnt_assert.h"

#include <string.h>

enum { PAGE = 512 };

lnt_status lnt_blocks_make(lnt_arena_blocks *p, size_t n, lnt_bump *memory, lnt_error *err)
{
    const size_t pages = n <= PAGE ? 1 : 2 * n / PAGE + 1; /* each at least half full, but the first */
    p->memory = lnt_bump_alloc(memory, (n <= PAGE ? n : pages * PAGE) * sizeof *p->memory, err);
    p->page = lnt_bump_alloc(memory, pages * sizeof *p->page, err);
    p->n_pages = 0;
    return p->memory && p->page ? LNT_OK : LNT_E_MEMORY;
}

/* Takes a block that was put into the page into account, the page's first or another. */
static void count_in(lnt_arena_page *g, const lnt_arena_block *t, bool lowest)
{
    g->first_min = t->first < g->first_min ? t->first : g->first_min;
    g->first_max = t->first > g->first_max ? t->first : g->first_max;
    g->last_min = t->last < g->last_min ? t->last : g->last_min;
    g->last_max = t->last > g->last_max ? t->last : g->last_max;
    if (!lowest && t->offset > g->high && t->offset - g->high > g->widest)
        g->widest = t->offset - g->high;
    if (lowest && g->n > 1 && g->block[1].offset > t->end && g->block[1].offset - t->end > g->widest)
        g->widest = g->block[1].offset - t->end;
    g->high = t->end > g->high ? t->end : g->high;
}

static void summarize(lnt_arena_page *g)
{
    *g = (lnt_arena_page){.block = g->block, .n = g->n, .first_min = UINT32_MAX, .last_min = UINT32_MAX};
    for (uint32_t i = 0; i < g->n; i++)
        count_in(g, &g->block[i], i == 0);
}

void lnt_blocks_clear(lnt_arena_blocks *p)
{
    p->page[0] = (lnt_arena_page){.block = p->memory};
    summarize(&p->page[0]);
    p->n_pages = 1;
}

/* The page's upper half becomes a page of its own. */
static void split(lnt_arena_blocks *p, uint32_t i)
{
    lnt_arena_page *g = &p->page[i];
    memmove(g + 1, g, (p->n_pages - i) * sizeof *g);
    g->n /= 2;
    g[1].n -= g->n;
    g[1].block = p->memory + (size_t)p->n_pages++ * PAGE;
    memcpy(g[1].block, g->block + g->n, g[1].n * sizeof *g->block);
    summarize(g);
    summarize(g + 1);
}

/* The last page that begins at offset or below; the first if none does. */
static uint32_t page_for(const lnt_arena_blocks *p, size_t offset)
{
    uint32_t low = 0, high = p->n_pages;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (p->page[middle].block[0].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void lnt_blocks_add(lnt_arena_blocks *p, const lnt_arena_block *t)
{
    LNT_ASSERT(t->first <= t->last && t->offset < t->end);
    uint32_t i = page_for(p, t->offset);
    if (p->page[i].n == PAGE) {
        split(p, i);
        i += p->page[i + 1].block[0].offset <= t->offset;
    }
    lnt_arena_page *g = &p->page[i];
    uint32_t at = g->n++;
    for (; at > 0 && g->block[at - 1].offset > t->offset; at--)
        g->block[at] = g->block[at - 1];
    g->block[at] = *t;
    count_in(g, t, at == 0);
}

/* Goes on in one page: raises *offset past what is taken; true if there is room before something that is. */
static bool find_in(const lnt_arena_page *g, uint32_t first, uint32_t last, size_t extent, bool always,
                    size_t *offset)
{
    size_t at = *offset;
    bool found = false;
    for (const lnt_arena_block *t = g->block; t < g->block + g->n && !found; t++) {
        /* Who lives when is as good as random: no branch asks for it. */
        const bool taken = always | ((t->first <= last) & (t->last >= first));
        const size_t end = taken ? t->end : 0;
        found = taken & (t->offset >= at + extent);
        at = end > at && !found ? end : at;
    }
    *offset = at;
    return found;
}

size_t lnt_blocks_find(const lnt_arena_blocks *p, uint32_t first, uint32_t last, size_t extent, bool always)
{
    LNT_ASSERT(first <= last && extent > 0);
    size_t offset = 0;
    for (const lnt_arena_page *g = p->page; g < p->page + p->n_pages; g++) {
        const bool none = !always && (g->first_min > last || g->last_max < first);
        const bool all = always || (g->first_max <= last && g->last_min >= first);
        if (none || g->high <= offset)
            continue;
        if (all && g->widest < extent && g->block[0].offset < offset + extent)
            offset = g->high;
        else if (find_in(g, first, last, extent, always, &offset))
            break;
    }
    return offset;
}

size_t lnt_blocks_high(const lnt_arena_blocks *p)
{
    size_t high = 0;
    for (uint32_t i = 0; i < p->n_pages; i++)
        high = p->page[i].high > high ? p->page[i].high : high;
    return high;
}
