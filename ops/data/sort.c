/* sort.c — sorting by one byte of the keys after the other, the last first. */
#include "ops/data/sort.h"

#include "base/lnt_assert.h"

#include <string.h>

enum { DIGITS = 256, FEW = 24 };

static void insert_each(lnt_entry *entries, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const lnt_entry e = entries[i];
        int64_t at = i;
        for (; at > 0 && entries[at - 1].key > e.key; at--)
            entries[at] = entries[at - 1];
        entries[at] = e;
    }
}

/* Distributes by the byte at `shift`. */
static void sort_digit(const lnt_entry *from, lnt_entry *to, int64_t n, unsigned shift)
{
    int64_t place[DIGITS] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++)
        place[from[i].key >> shift & (DIGITS - 1)]++;
    for (unsigned d = 0; d < DIGITS; d++) {
        const int64_t count = place[d];
        place[d] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[place[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

void lnt_sort_entries(lnt_entry *entries, lnt_entry *spare, int64_t n)
{
    LNT_ASSERT(n >= 0 && (n == 0 || entries != spare));
    uint64_t differ = 0;
    lnt_entry *from = entries, *to = spare;
    if (n <= FEW) {
        insert_each(entries, n);
        return;
    }
    for (int64_t i = 1; i < n; i++)
        differ |= entries[i].key ^ entries[0].key;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (!(differ >> shift & (DIGITS - 1)))
            continue;
        sort_digit(from, to, n, shift);
        lnt_entry *const sorted = to;
        to = from;
        from = sorted;
    }
    if (from != entries)
        memcpy(entries, from, (size_t)n * sizeof *entries);
}
