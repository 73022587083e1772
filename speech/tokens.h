/* tokens.h — a text as words, numbers and single characters. */
#ifndef LNT_SPEECH_TOKENS_H
#define LNT_SPEECH_TOKENS_H

#include "base/memory.h"

typedef enum lnt_token_kind {
    LNT_TOKEN_WORD,   /* letters, apostrophes between them */
    LNT_TOKEN_NUMBER, /* digits, commas between groups of three, a point and digits */
    LNT_TOKEN_DOTTED, /* digits and more than one point between them */
    LNT_TOKEN_SYMBOL, /* any other character */
    LNT_TOKEN_END     /* before the first and behind the last one */
} lnt_token_kind;

typedef struct lnt_token {
    const char *text;
    uint32_t bytes;
    uint32_t code; /* of a symbol, else 0 */
    lnt_token_kind kind;
    bool glued; /* nothing between it and the one before */
    bool line;  /* an empty line before it */
} lnt_token;

/* Splits text[0..bytes), valid UTF-8 that a NUL ends. tokens[-1] and tokens[n] are of kind LNT_TOKEN_END. */
lnt_status lnt_tokens_split(const char *text, size_t bytes, lnt_bump *memory, lnt_token **tokens, size_t *n,
                            lnt_error *err);

static inline bool lnt_token_is(const lnt_token *t, uint32_t symbol)
{
    return t->kind == LNT_TOKEN_SYMBOL && t->code == symbol;
}

/* Is it this word, which is in small letters? ASCII's case does not count. */
bool lnt_token_reads(const lnt_token *t, const char *word);
/* Is it a word that begins with one of ASCII's capital letters? */
bool lnt_token_is_capital(const lnt_token *t);

#endif
