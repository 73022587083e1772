/* sort.c — sorting of few entries by merging, of many by some bits of the keys after the others, the last first. */
#include "ops/data/sort.h"

#include "base/lnt_assert.h"

#include <stdbool.h>
#include <string.h>

/* Bits looked at in one turn: for many entries more of them, whose counters take longer to add up. */
enum { DIGIT = 8, WIDE_DIGIT = 11, MANY = 512, FEW = 24 };
/* Up to MERGED entries for each such turn are merged instead, of runs up to RUN. */
enum { MERGED = 32, RUN = 8 };

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

/* From both ends at once, so that neither waits for the other; what is left in the middle is one entry. */
void lnt_merge_halves(const lnt_entry *from, lnt_entry *to, int64_t n)
{
    const lnt_entry *left = from, *right = from + (n - n / 2), *last_left = right - 1,
                    *last_right = from + n - 1;
    for (int64_t i = 0; i < n / 2; i++) {
        const bool swap = right->key < left->key, last_swap = last_right->key < last_left->key;
        to[i] = *(swap ? right : left);
        to[n - 1 - i] = *(last_swap ? last_left : last_right);
        right += swap;
        left += !swap;
        last_left -= last_swap;
        last_right -= !last_swap;
    }
    if (n % 2 != 0)
        to[n / 2] = *(left <= last_left ? left : right);
}

/* Each goes behind as many as come before it: no branch is a guess. */
static void place_each(const lnt_entry *from, lnt_entry *to, int64_t n)
{
    int64_t place[RUN];
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i;
        for (int64_t j = 0; j < i; j++) {
            const bool swap = from[i].key < from[j].key;
            place[j] += swap;
            at -= swap;
        }
        place[i] = at;
    }
    for (int64_t i = 0; i < n; i++)
        to[place[i]] = from[i];
}

/* Ends in entries where it is to stay, else in spare. */
static void merge_sort(lnt_entry *entries, lnt_entry *spare, int64_t n, bool stay)
{
    if (n > RUN) {
        const int64_t half = n - n / 2;
        merge_sort(entries, spare, half, !stay);
        merge_sort(entries + half, spare + half, n - half, !stay);
        lnt_merge_halves(stay ? spare : entries, stay ? entries : spare, n);
        return;
    }
    place_each(entries, spare, n);
    if (stay)
        memcpy(entries, spare, (size_t)n * sizeof *entries);
}

/* Distributes by the bits in mask, from `shift` on, of what keys exceed `least` by. */
static void sort_digit(const lnt_entry *from, lnt_entry *to, int64_t n, uint64_t least, unsigned shift,
                       uint64_t mask)
{
    int64_t place[1 << WIDE_DIGIT], sum = 0;
    memset(place, 0, (size_t)(mask + 1) * sizeof *place);
    for (int64_t i = 0; i < n; i++)
        place[(from[i].key - least) >> shift & mask]++;
    for (uint64_t d = 0; d <= mask; d++) {
        const int64_t count = place[d];
        place[d] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[place[(from[i].key - least) >> shift & mask]++] = from[i];
}

void lnt_sort_entries(lnt_entry *entries, lnt_entry *spare, int64_t n)
{
    LNT_ASSERT(n >= 0 && (n == 0 || entries != spare));
    uint64_t least = UINT64_MAX, differ = 0;
    lnt_entry *from = entries, *to = spare;
    if (n <= FEW) {
        insert_each(entries, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        least = entries[i].key < least ? entries[i].key : least;
    for (int64_t i = 0; i < n; i++)
        differ |= entries[i].key - least;
    if (!differ)
        return;
    unsigned shift = (unsigned)__builtin_ctzll(differ);
    const unsigned bits = 64 - (unsigned)__builtin_clzll(differ) - shift,
                   most = n < MANY ? DIGIT : WIDE_DIGIT;
    const unsigned turns = (bits + most - 1) / most, digit = (bits + turns - 1) / turns;
    if (n <= MERGED * (int64_t)turns) {
        merge_sort(entries, spare, n, true);
        return;
    }
    for (unsigned turn = 0; turn < turns; turn++, shift += digit) {
        sort_digit(from, to, n, least, shift, (UINT64_C(1) << digit) - 1);
        lnt_entry *const sorted = to;
        to = from;
        from = sorted;
    }
    if (from != entries)
        memcpy(entries, from, (size_t)n * sizeof *entries);
}
