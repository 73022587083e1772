/* word_table.h — words with numbers: a table in which each word is once.
 *
 * Tensors of text hold int64 numbers of words. Words are put in from any thread; those behind the mark go away all at
 * once, so that a table does not grow from run to run. */
#ifndef LNT_BASE_WORD_TABLE_H
#define LNT_BASE_WORD_TABLE_H

#include "base/memory.h"

typedef struct lnt_text lnt_text;

/* Characters, not NUL-terminated. */
typedef struct lnt_chars {
    const char *at;
    size_t n;
} lnt_chars;

/* An empty table; NULL with the error set. */
lnt_text *lnt_text_make(const lnt_allocator *a, lnt_error *err);
void lnt_text_free(lnt_text **text);

/* The number of the word that the parts make up, one behind the other; a word that is there keeps its number. */
lnt_status lnt_text_put(lnt_text *text, const lnt_chars *part, unsigned n_parts, int64_t *number,
                        lnt_error *err);
/* The word, NUL-terminated, until the table is rewound; E_VALUE where there is none of that number. */
lnt_status lnt_text_get(lnt_text *text, int64_t number, lnt_chars *word, lnt_error *err);
size_t lnt_text_count(const lnt_text *text);

/* What is in the table stays; what is put in from now on goes away with lnt_text_rewind. */
void lnt_text_mark(lnt_text *text);
void lnt_text_rewind(lnt_text *text);
/* Where its memory comes from, for what is made on the way to a word. */
const lnt_allocator *lnt_text_allocator(const lnt_text *text);

#endif
