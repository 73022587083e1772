/* letter_to_sound.c — decision trees from letters to phonemes. */
#include "speech/letter_to_sound.h"

#include "base/lnt_assert.h"

#include <string.h>

enum { LEAF = 128, MASK = 1, FAR = 2 };

/* Features, in the order of their numbers: letters before and behind, nearest first; the last phonemes; stress of the
 * last vowels; was one of them the primary stress; vowels so far; groups of vowel letters to come; letters of the word,
 * before and behind. Counts reach up to a number that stands for more. */
enum {
    PHONES = 2 * LNT_SOUNDS_AROUND,
    STRESS = PHONES + 3,
    PRIMARY = STRESS + 2,
    VOWELS,
    TO_COME,
    LENGTH,
    BEFORE,
    BEHIND,
    FEATURES
};

/* Bytes of a mask: as many bits as the feature has values, or more. */
static const uint8_t mask_bytes[FEATURES] = {4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 1, 1, 1, 1, 1, 2, 1, 1};

int lnt_letter_number(char c)
{
    return c == '\'' ? 0 : c >= 'a' && c <= 'z' ? 1 + c - 'a' : -1;
}

static bool is_vowel(char c)
{
    return c && strchr("aeiouy", c);
}

/* Does a group of vowel letters begin there? */
static bool begins_group(const char *word, size_t i)
{
    return is_vowel(word[i]) && !(i && is_vowel(word[i - 1]));
}

lnt_letter_walk lnt_letter_walk_begin(const char *word, size_t bytes)
{
    lnt_letter_walk w = {.word = word, .n = bytes};
    for (size_t i = 1; i < bytes; i++)
        w.to_come += begins_group(word, i);
    return w;
}

static uint8_t at_most(size_t n, size_t most)
{
    return (uint8_t)(n < most ? n : most);
}

/* 1 + number of the letter that is distance letters away; 0: none is. */
static uint8_t letter_at(const lnt_letter_walk *w, size_t i)
{
    return i < w->n ? (uint8_t)(1 + lnt_letter_number(w->word[i])) : 0;
}

static void find_features(const lnt_letter_walk *w, uint8_t to[FEATURES])
{
    for (size_t i = 1; i <= LNT_SOUNDS_AROUND; i++) {
        to[i - 1] = w->at >= i ? letter_at(w, w->at - i) : 0;
        to[LNT_SOUNDS_AROUND + i - 1] = letter_at(w, w->at + i);
    }
    memcpy(to + PHONES, w->phone, sizeof w->phone);
    memcpy(to + STRESS, w->stress, sizeof w->stress);
    to[PRIMARY] = w->primary;
    to[VOWELS] = at_most(w->vowels, 5);
    to[TO_COME] = at_most(w->to_come, 5);
    to[LENGTH] = at_most(w->n, 12);
    to[BEFORE] = at_most(w->at, 6);
    to[BEHIND] = at_most(w->n - 1 - w->at, 6);
}

/* One question at *at, which moves to what its answer leads to; false: it is none. */
static bool answer(const lnt_trees *t, const uint8_t feature[FEATURES], size_t *at)
{
    const uint8_t head = t->node[*at], number = head >> 2;
    if (number >= FEATURES)
        return false;
    const unsigned width = head & MASK ? mask_bytes[number] : 1, distance = head & FAR ? 2 : 1;
    const uint8_t *what = t->node + *at + 1, value = feature[number];
    if (t->bytes - *at < 1 + width + distance)
        return false;
    const bool yes = head & MASK ? value / 8 < width && (what[value / 8] >> value % 8 & 1) : *what == value;
    *at += 1 + width + distance;
    if (!yes)
        *at += what[width] + (distance > 1 ? (size_t)what[width + 1] << 8 : 0);
    return true;
}

int lnt_letter_class(const lnt_trees *t, const lnt_letter_walk *w)
{
    uint8_t feature[FEATURES];
    LNT_ASSERT(w->at < w->n);
    size_t at = t->root[lnt_letter_number(w->word[w->at])];
    find_features(w, feature);
    while (at < t->bytes && t->node[at] < LEAF)
        if (!answer(t, feature, &at))
            return -1;
    return at < t->bytes && t->node[at] - LEAF < (int)t->n_classes ? t->node[at] - LEAF : -1;
}

static void take_phone(lnt_letter_walk *w, uint8_t symbol)
{
    const int stress = lnt_phone_stress(symbol);
    memmove(w->phone + 1, w->phone, 2);
    w->phone[0] = (uint8_t)(1 + (symbol >> 2));
    if (stress < 0)
        return;
    w->stress[1] = w->stress[0];
    w->stress[0] = (uint8_t)(1 + stress);
    w->primary |= stress == 1;
    w->vowels++;
}

void lnt_letter_take(const lnt_trees *t, lnt_letter_walk *w, unsigned c, lnt_phone_list *to)
{
    LNT_ASSERT(c < t->n_classes && w->at < w->n);
    for (unsigned i = 0; i < 2 && t->sounds[c][i]; i++) {
        take_phone(w, t->sounds[c][i]);
        lnt_phones_add(to, t->sounds[c][i]);
    }
    w->at++;
    w->to_come -= w->at < w->n && begins_group(w->word, w->at);
}
