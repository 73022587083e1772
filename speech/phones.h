/* phones.h — phonemes of English as ARPAbet has them, marks and the ends of words: our own symbols.
 *
 * A symbol is a byte: four times its number, and of a vowel 1, 2 or 3 for no, primary and secondary stress. */
#ifndef LNT_SPEECH_PHONES_H
#define LNT_SPEECH_PHONES_H

#include "base/memory.h"

enum {
    LNT_PHONES = 39,          /* phonemes are numbered from 0, in the alphabet's order */
    LNT_PHONE_WORD = 39,      /* the end of a word that another follows */
    LNT_PHONE_FIRST_MARK = 40 /* then ".,?!:;" */
};

/* A growing list. A failure stays: what is added after it is lost. */
typedef struct lnt_phone_list {
    uint8_t *symbol; /* an lnt_grow array */
    size_t n, room;
    lnt_status status;
    lnt_error *err;
} lnt_phone_list;

void lnt_phones_add(lnt_phone_list *list, uint8_t symbol);
/* "HH AH0 L OW1": names with blanks between them, of the library's own tables. */
void lnt_phones_add_names(lnt_phone_list *list, const char *names);

static inline bool lnt_phone_is_phoneme(uint8_t symbol)
{
    return symbol >> 2 < LNT_PHONES;
}

/* A vowel, with its stress: 0, 1, 2; -1: none. */
static inline int lnt_phone_stress(uint8_t symbol)
{
    return lnt_phone_is_phoneme(symbol) ? (symbol & 3) - 1 : -1;
}

/* A phoneme, which has stress if and only if it is a vowel? */
bool lnt_phone_valid(uint8_t symbol);
/* The symbol of that mark. */
uint8_t lnt_phone_mark(char mark);
/* The symbol that the name [name, name + bytes) has: of a phoneme, a mark, "|" for the end of a word; of a vowel
 * without a digit the one without stress. 0xff: none has it. */
uint8_t lnt_phone_named(const char *name, size_t bytes);
/* Writes its name, without a NUL, and returns how many bytes that takes; at most LNT_PHONE_NAME_MOST. */
size_t lnt_phone_name(uint8_t symbol, char *to);
enum { LNT_PHONE_NAME_MOST = 3 };

/* Writes what voices call it, characters of Unicode, and returns how many: of a vowel with stress "ˈ" or "ˌ" first; AH
 * and ER without stress are "ə" and "ɚ"; the end of a word is a blank. */
unsigned lnt_phone_codes(uint8_t symbol, uint32_t to[2]);

#endif
