/* word_table.c — words with numbers: characters in blocks, an open-addressed table of numbers beside. */
#include "base/word_table.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <stdatomic.h>
#include <string.h>

enum { BLOCK = 4096, FIRST_PLACES = 64 };

typedef struct word {
    lnt_chars chars;
    uint32_t hash;
} word;

/* What a mark keeps. */
typedef struct state {
    lnt_bump_mark memory;
    char *block; /* where characters go, */
    size_t left; /* and how many */
    size_t n;    /* words */
} state;

struct lnt_text {
    const lnt_allocator *allocator;
    lnt_bump memory;
    state now, mark;
    word *word;
    size_t capacity;
    uint32_t *
        place; /* number + 1 of the word there, 0: none; what is behind goes first, so that gaps do no harm */
    size_t n_places; /* a power of two */
    atomic_flag busy;
};

static void lock(lnt_text *t)
{
    while (atomic_flag_test_and_set_explicit(&t->busy, memory_order_acquire))
        ;
}

static void unlock(lnt_text *t)
{
    atomic_flag_clear_explicit(&t->busy, memory_order_release);
}

lnt_text *lnt_text_make(const lnt_allocator *a, lnt_error *err)
{
    lnt_text *t = lnt_alloc_zero(a, 1, sizeof *t, err);
    if (!t)
        return NULL;
    t->allocator = a;
    lnt_bump_init(&t->memory, a);
    t->now.memory = t->mark.memory = lnt_bump_here(&t->memory);
    atomic_flag_clear(&t->busy);
    return t;
}

void lnt_text_free(lnt_text **text)
{
    lnt_text *t = *text;
    if (!t)
        return;
    *text = NULL;
    lnt_bump_free(&t->memory);
    lnt_free(t->allocator, t->word);
    lnt_free(t->allocator, t->place);
    lnt_free(t->allocator, t);
}

/* ---- finding ---- */

/* FNV-1a. */
static uint32_t hash_parts(const lnt_chars *part, unsigned n_parts, size_t *length)
{
    uint32_t hash = 2166136261u;
    *length = 0;
    for (unsigned p = 0; p < n_parts; p++) {
        for (size_t i = 0; i < part[p].n; i++)
            hash = (hash ^ (unsigned char)part[p].at[i]) * 16777619u;
        *length += part[p].n;
    }
    return hash;
}

static bool is_parts(const word *w, const lnt_chars *part, unsigned n_parts)
{
    const char *at = w->chars.at;
    for (unsigned p = 0; p < n_parts; at += part[p++].n)
        if (part[p].n && memcmp(at, part[p].at, part[p].n) != 0)
            return false;
    return true;
}

/* The place of the word, or the free one where it would be. */
static size_t find_place(const lnt_text *t, const lnt_chars *part, unsigned n_parts, uint32_t hash,
                         size_t length)
{
    LNT_ASSERT(t->now.n < t->n_places);
    size_t at = hash & (t->n_places - 1);
    for (; t->place[at]; at = (at + 1) & (t->n_places - 1)) {
        const word *w = &t->word[t->place[at] - 1];
        if (w->hash == hash && w->chars.n == length && is_parts(w, part, n_parts))
            break;
    }
    return at;
}

/* ---- putting in ---- */

/* Room for one word more; of the places no more than half are taken. */
static lnt_status make_room(lnt_text *t, lnt_error *err)
{
    LNT_REQUIRE(t->now.n < UINT32_MAX / 4, err, LNT_E_LIMIT, "more than %u words", UINT32_MAX / 4);
    LNT_TRY(LNT_GROW(t->allocator, t->word, t->capacity, t->now.n, err));
    if (t->n_places > 2 * (t->now.n + 1))
        return LNT_OK;
    const size_t wider = t->n_places ? 2 * t->n_places : FIRST_PLACES;
    uint32_t *place = lnt_alloc_zero(t->allocator, wider, sizeof *place, err);
    if (!place)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < t->now.n; i++) {
        size_t at = t->word[i].hash & (wider - 1);
        while (place[at])
            at = (at + 1) & (wider - 1);
        place[at] = (uint32_t)i + 1;
    }
    lnt_free(t->allocator, t->place);
    t->place = place;
    t->n_places = wider;
    return LNT_OK;
}

/* Room for n characters: long words have memory of their own. */
static char *take_chars(lnt_text *t, size_t n, lnt_error *err)
{
    if (n > BLOCK / 4)
        return lnt_bump_alloc(&t->memory, n, err);
    if (n > t->now.left) {
        char *block = lnt_bump_alloc(&t->memory, BLOCK, err);
        if (!block)
            return NULL;
        t->now.block = block;
        t->now.left = BLOCK;
    }
    char *at = t->now.block;
    t->now.block += n;
    t->now.left -= n;
    return at;
}

static lnt_status put_word(lnt_text *t, const lnt_chars *part, unsigned n_parts, int64_t *number,
                           lnt_error *err)
{
    size_t length, bytes;
    const uint32_t hash = hash_parts(part, n_parts, &length);
    LNT_REQUIRE(lnt_add_size(length, 1, &bytes), err, LNT_E_LIMIT, "a word is too long");
    LNT_TRY(make_room(t, err));
    const size_t place = find_place(t, part, n_parts, hash, length);
    if (t->place[place]) {
        *number = (int64_t)t->place[place] - 1;
        return LNT_OK;
    }
    char *at = take_chars(t, bytes, err), *end = at;
    if (!at)
        return LNT_E_MEMORY;
    for (unsigned p = 0; p < n_parts; end += part[p++].n)
        if (part[p].n)
            memcpy(end, part[p].at, part[p].n);
    *end = '\0';
    t->word[t->now.n] = (word){{at, length}, hash};
    *number = (int64_t)t->now.n++;
    t->place[place] = (uint32_t)t->now.n;
    return LNT_OK;
}

lnt_status lnt_text_put(lnt_text *t, const lnt_chars *part, unsigned n_parts, int64_t *number, lnt_error *err)
{
    lock(t);
    const lnt_status status = put_word(t, part, n_parts, number, err);
    unlock(t);
    return status;
}

lnt_status lnt_text_get(lnt_text *t, int64_t number, lnt_chars *chars, lnt_error *err)
{
    lock(t);
    const size_t n = t->now.n;
    if (number >= 0 && (uint64_t)number < n)
        *chars = t->word[number].chars;
    unlock(t);
    LNT_REQUIRE(number >= 0 && (uint64_t)number < n, err, LNT_E_VALUE,
                "%lld is the number of no word, there are %zu", (long long)number, n);
    return LNT_OK;
}

size_t lnt_text_count(const lnt_text *t)
{
    return t->now.n;
}

const lnt_allocator *lnt_text_allocator(const lnt_text *t)
{
    return t->allocator;
}

/* ---- going back ---- */

void lnt_text_mark(lnt_text *t)
{
    t->mark = t->now;
    t->mark.memory = lnt_bump_here(&t->memory);
}

void lnt_text_rewind(lnt_text *t)
{
    LNT_ASSERT(t->mark.n <= t->now.n);
    while (t->now.n > t->mark.n) {
        const word *last = &t->word[--t->now.n];
        size_t at = last->hash & (t->n_places - 1);
        while (t->place[at] != (uint32_t)t->now.n + 1)
            at = (at + 1) & (t->n_places - 1);
        t->place[at] = 0;
    }
    lnt_bump_rewind(&t->memory, t->mark.memory);
    t->now = t->mark;
}
