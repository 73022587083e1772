/* spoken.h — English words that are written one after the other: numbers in full, letters by name, marks. */
#ifndef LNT_SPEECH_SPOKEN_H
#define LNT_SPEECH_SPOKEN_H

#include "base/memory.h"

/* Words with a blank between them. A failure stays: what is written after it is lost. */
typedef struct lnt_spoken_text {
    char *text; /* an lnt_grow array; no NUL behind it */
    size_t n, room;
    lnt_status status;
    lnt_error *err;
} lnt_spoken_text;

/* A word, or several with blanks between them. */
void lnt_speak(lnt_spoken_text *s, const char *words);
/* Goes on with the last word. */
void lnt_speak_on(lnt_spoken_text *s, const char *text, size_t bytes);
/* The name of a letter: a capital one by itself. */
void lnt_speak_letter(lnt_spoken_text *s, char letter);
/* One of ".?!,:;", behind a word; of two marks the one that ends a sentence stays. */
void lnt_speak_mark(lnt_spoken_text *s, char mark);

/* 1234: one thousand two hundred thirty four. */
void lnt_speak_cardinal(lnt_spoken_text *s, uint64_t n);
/* 1234: one thousand two hundred thirty fourth. */
void lnt_speak_ordinal(lnt_spoken_text *s, uint64_t n);
/* 1905: nineteen oh five; n < 10,000. */
void lnt_speak_year(lnt_spoken_text *s, unsigned n);
/* Digit by digit; what is none is passed over. */
void lnt_speak_digits(lnt_spoken_text *s, const char *text, size_t bytes);
/* Makes the last word plural: sixties, boxes, miles. */
void lnt_speak_plural(lnt_spoken_text *s);

#endif
