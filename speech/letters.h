/* letters.h — characters of text as Unicode has them: canonical decomposition, small and capital letters.
 *
 * Known are those below U+10000; what lies beyond stays as it is. */
#ifndef LNT_SPEECH_LETTERS_H
#define LNT_SPEECH_LETTERS_H

#include "base/error.h"

#include <stdbool.h>

enum {
    LNT_DECOMPOSED_MOST = 4, /* characters that one decomposes to, at most */
    LNT_MARKS_MOST = 30 /* marks on one letter that are ordered: Stream-Safe Text Format of the same annex */
};

/* Writes what code decomposes to, itself if it does not; returns how many. */
unsigned lnt_decompose(uint32_t code, uint32_t to[LNT_DECOMPOSED_MOST]);
/* Brings code[0..n), decomposed characters, into canonical order: marks behind a letter by their combining class. With
 * that they are in normalization form D (Unicode Standard Annex 15). */
void lnt_canonical_order(uint32_t *code, size_t n);
/* The small letter of a capital one; any other character is its own. */
uint32_t lnt_small_letter(uint32_t code);
/* Is it the small letter of some capital one? */
bool lnt_is_small_letter(uint32_t code);
/* Is text UTF-8, and not longer than a text may be? */
lnt_status lnt_check_text(const char *text, lnt_error *err);

#endif
