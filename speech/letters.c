/* letters.c — characters of text as Unicode has them. */
#include "speech/letters.h"

#include "base/lnt_assert.h"
#include "base/utf8.h"
#include "speech/linnet_voice.h"

#include <string.h>

typedef struct decomposition {
    uint16_t code, first, second; /* second 0: none */
} decomposition;

typedef struct letters_class {
    uint16_t first, last;
    uint8_t combining;
} letters_class;

/* Every step-th character from first to last is a capital letter. */
typedef struct letters_lower {
    uint16_t first, last;
    int32_t step, distance;
} letters_lower;

/* By letters.py. */
#include <letters.inc.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* Syllables of Hangul are decomposed by arithmetic (The Unicode Standard, 3.12). */
static unsigned decompose_hangul(uint32_t code, uint32_t *to)
{
    enum { VOWELS = 21, FINALS = 28 };
    const uint32_t at = code - 0xac00;
    to[0] = 0x1100 + at / (VOWELS * FINALS);
    to[1] = 0x1161 + at % (VOWELS * FINALS) / FINALS;
    to[2] = 0x11a7 + at % FINALS;
    return at % FINALS ? 3 : 2;
}

static const decomposition *find(uint32_t code)
{
    size_t low = 0, high = COUNT(decompositions);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (decompositions[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < COUNT(decompositions) && decompositions[low].code == code ? &decompositions[low] : NULL;
}

unsigned lnt_decompose(uint32_t code, uint32_t to[LNT_DECOMPOSED_MOST])
{
    unsigned n = 1;
    if (code >= 0xac00 && code < 0xd7a4)
        return decompose_hangul(code, to);
    to[0] = code;
    /* Only the first part of a decomposition has one itself. */
    for (const decomposition *d; (d = find(to[0])) != NULL;) {
        LNT_ASSERT(n < LNT_DECOMPOSED_MOST);
        to[0] = d->first;
        if (d->second) {
            memmove(to + 2, to + 1, (n - 1) * sizeof *to);
            to[1] = d->second;
            n++;
        }
    }
    return n;
}

static unsigned class_of(uint32_t code)
{
    for (size_t i = 0; i < COUNT(classes) && classes[i].first <= code; i++)
        if (code <= classes[i].last)
            return classes[i].combining;
    return 0;
}

void lnt_canonical_order(uint32_t *code, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint32_t mark = code[i];
        const unsigned class = class_of(mark);
        size_t to = i;
        for (; class && to > 0 && i - to < LNT_MARKS_MOST && class_of(code[to - 1]) > class; to--)
            code[to] = code[to - 1];
        code[to] = mark;
    }
}

uint32_t lnt_small_letter(uint32_t code)
{
    for (size_t i = 0; i < COUNT(capitals) && capitals[i].first <= code; i++)
        if (code <= capitals[i].last && (code - capitals[i].first) % (uint32_t)capitals[i].step == 0)
            return code + (uint32_t)capitals[i].distance;
    return code;
}

bool lnt_is_small_letter(uint32_t code)
{
    for (size_t i = 0; i < COUNT(capitals); i++) {
        const letters_lower *c = &capitals[i];
        const uint32_t capital = code - (uint32_t)c->distance;
        if (capital >= c->first && capital <= c->last && (capital - c->first) % (uint32_t)c->step == 0)
            return true;
    }
    return false;
}

lnt_status lnt_check_text(const char *text, lnt_error *err)
{
    size_t at = 0;
    for (unsigned n; text[at]; at += n) {
        n = lnt_utf8_bytes(text + at);
        LNT_REQUIRE(n, err, LNT_E_VALUE, "the text is no UTF-8 at byte %zu", at);
        LNT_REQUIRE(at < LNT_VOICE_TEXT_MOST, err, LNT_E_LIMIT, "a text has at most %d bytes",
                    LNT_VOICE_TEXT_MOST);
    }
    return LNT_OK;
}
