/* words.h — what operators on words share. Their tensors hold int64 numbers of words in the session's table. */
#ifndef LNT_OPS_TEXT_WORDS_H
#define LNT_OPS_TEXT_WORDS_H

#include "base/word_table.h"
#include "ops/op.h"

/* For bind functions: fails where there are no words, or an input holds no numbers of such. */
static inline lnt_status lnt_require_text(lnt_site *site)
{
    if (!site->text)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "works on text, and the model has none");
    for (unsigned i = 0; i < site->n_in; i++)
        if (site->in[i]->dtype != LNT_INT64)
            return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[i]->dtype);
    return LNT_OK;
}

/* Pieces of a word, as Python's split has them. */
typedef struct lnt_pieces {
    lnt_chars rest;
    lnt_chars delimiter; /* empty: any number of white spaces */
    int64_t left;        /* cuts that may still be made */
    bool more;
} lnt_pieces;

lnt_pieces lnt_pieces_of(const lnt_node *node, lnt_chars word);
/* False if there is none left. */
bool lnt_next_piece(lnt_pieces *p, lnt_chars *piece);

/* Characters of the scripts that have two cases, one to one; others as they are. */
uint32_t lnt_to_lower(uint32_t code);
uint32_t lnt_to_upper(uint32_t code);

#endif
