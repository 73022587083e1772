/* clauses.h — where espeak-ng ends clauses and sentences of a text, and with which mark: what Piper's phonemes have
 * between clauses, and what the program espeak-ng does not print. */
#ifndef LNT_SPEECH_CLAUSES_H
#define LNT_SPEECH_CLAUSES_H

#include "base/memory.h"

typedef struct lnt_clause {
    const char *text; /* of the text that was split, marks and closing quotes included */
    size_t bytes;
    char mark; /* one of ".?!,:;"; 0: none */
    bool ends; /* ends the sentence */
} lnt_clause;

/* Splits text[0..bytes), valid UTF-8 that a NUL ends. A text without letters and digits is a clause, blanks are
 * none. */
lnt_status lnt_clauses_split(const char *text, size_t bytes, lnt_bump *memory, lnt_clause **clauses,
                             size_t *n, lnt_error *err);

#endif
