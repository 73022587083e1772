/* names.c — a map from text to a number: a hash table with linear probing, at most three quarters full. */
#include "convert/graph/names.h"

#include "base/lnt_assert.h"

#include <string.h>

static uint64_t hash_of(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h ^ h >> 29;
}

/* The slot that holds text, or the free one where it belongs. */
static struct lnt_names_slot *slot_of(const lnt_names *names, const char *text)
{
    LNT_ASSERT(names->capacity && (names->capacity & (names->capacity - 1)) == 0);
    const size_t mask = names->capacity - 1;
    size_t i = (size_t)hash_of(text) & mask;
    while (names->slot[i].text && strcmp(names->slot[i].text, text) != 0)
        i = (i + 1) & mask;
    return &names->slot[i];
}

static lnt_status grow(lnt_names *names, lnt_error *err)
{
    lnt_names wider = {
        .heap = names->heap, .capacity = names->capacity ? names->capacity * 2 : 64, .n = names->n};
    wider.slot = lnt_alloc_zero(names->heap, wider.capacity, sizeof *wider.slot, err);
    if (!wider.slot)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slot[i].text)
            *slot_of(&wider, names->slot[i].text) = names->slot[i];
    lnt_names_free(names);
    *names = wider;
    return LNT_OK;
}

void lnt_names_free(lnt_names *names)
{
    lnt_free(names->heap, names->slot);
    *names = (lnt_names){.heap = names->heap};
}

uint32_t lnt_names_find(const lnt_names *names, const char *text)
{
    if (!names->capacity)
        return LNT_NAMES_NONE;
    const struct lnt_names_slot *slot = slot_of(names, text);
    return slot->text ? slot->number : LNT_NAMES_NONE;
}

lnt_status lnt_names_set(lnt_names *names, const char *text, uint32_t number, lnt_error *err)
{
    LNT_ASSERT(number != LNT_NAMES_NONE);
    if (names->n * 4 >= names->capacity * 3)
        LNT_TRY(grow(names, err));
    struct lnt_names_slot *slot = slot_of(names, text);
    names->n += slot->text == NULL;
    if (!slot->text)
        slot->text = text;
    slot->number = number;
    return LNT_OK;
}
