/* homographs.h — words that sound otherwise where they are another part of speech: a table, a rule for each kind. */
#ifndef LNT_SPEECH_HOMOGRAPHS_H
#define LNT_SPEECH_HOMOGRAPHS_H

#include "base/memory.h"

/* A word of normalized text; what stands before the first and behind the last one is NULL, with 0 bytes. */
typedef struct lnt_word {
    const char *text;
    uint32_t bytes;
    char mark; /* behind it; 0: none */
} lnt_word;

/* The phonemes of word[0], by the words around it; NULL: it is no such word. word[-1] and word[1] must be there. */
const char *lnt_homograph(const lnt_word *word);

#endif
