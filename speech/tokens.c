/* tokens.c — a text as words, numbers and single characters. */
#include "speech/tokens.h"

#include "base/checked.h"
#include "base/utf8.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes of the letter at text; 0: there is none. Letters beyond ASCII are those of Latin script. */
static unsigned letter_at(const char *text)
{
    const unsigned char c = (unsigned char)*text;
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
        return 1;
    const unsigned n = lnt_utf8_bytes(text);
    const uint32_t code = n > 1 ? lnt_utf8_code(text, n) : 0;
    return (code >= 0xc0 && code <= 0x24f && code != 0xd7 && code != 0xf7) ||
                   (code >= 0x1e00 && code <= 0x1eff) || (code >= 0x300 && code <= 0x36f)
               ? n
               : 0;
}

/* Bytes of an apostrophe with a letter behind it. */
static unsigned apostrophe_at(const char *text)
{
    const unsigned n = *text == '\'' ? 1 : strncmp(text, "’", 3) == 0 ? 3 : 0;
    return n && letter_at(text + n) ? n : 0;
}

static size_t word_at(const char *text)
{
    size_t n = 0;
    for (unsigned more; (more = letter_at(text + n)) != 0 || (n && (more = apostrophe_at(text + n)) != 0);)
        n += more;
    return n;
}

static size_t digits_at(const char *text)
{
    size_t n = 0;
    while (is_digit(text[n]))
        n++;
    return n;
}

/* Digits with commas between groups of three. */
static size_t grouped_at(const char *text)
{
    size_t n = digits_at(text);
    while (n && text[n] == ',' && digits_at(text + n + 1) == 3)
        n += 4;
    return n;
}

/* A number; *points: how many it has. */
static size_t number_at(const char *text, unsigned *points)
{
    size_t n = grouped_at(text);
    *points = 0;
    while (text[n] == '.' && is_digit(text[n + 1])) {
        n += 1 + digits_at(text + n + 1);
        ++*points;
    }
    return n;
}

static lnt_token token_at(const char *text, bool glued)
{
    unsigned points;
    size_t n = word_at(text);
    lnt_token t = {.text = text, .kind = LNT_TOKEN_WORD, .glued = glued};
    /* A point before digits begins a number only where nothing is before it. */
    if (!n && (*text != '.' || !glued) && (n = number_at(text, &points)) != 0)
        t.kind = points > 1 ? LNT_TOKEN_DOTTED : LNT_TOKEN_NUMBER;
    if (!n) {
        n = lnt_utf8_bytes(text);
        t.kind = LNT_TOKEN_SYMBOL;
        t.code = lnt_utf8_code(text, (unsigned)n);
    }
    t.bytes = (uint32_t)n;
    return t;
}

static bool is_blank(const char *text)
{
    return (unsigned char)*text <= ' ' || strncmp(text, "\xc2\xa0", 2) == 0 ||
           strncmp(text, "\xe2\x80\xaf", 3) == 0;
}

/* Writes tokens to to, if that is not NULL, and counts them. */
static size_t split(const char *text, size_t bytes, lnt_token *to)
{
    size_t count = 0, at = 0;
    for (;;) {
        unsigned lines = 0;
        const size_t before = at;
        for (; at < bytes && is_blank(text + at); at += lnt_utf8_bytes(text + at))
            lines += text[at] == '\n';
        if (at >= bytes)
            break;
        lnt_token t = token_at(text + at, at == before && at > 0);
        LNT_ASSERT(t.bytes > 0 && t.bytes <= bytes - at);
        t.line = lines > 1;
        at += t.bytes;
        if (to)
            to[count] = t;
        count++;
    }
    if (to)
        to[count] = (lnt_token){.text = text + bytes, .kind = LNT_TOKEN_END};
    return count;
}

lnt_status lnt_tokens_split(const char *text, size_t bytes, lnt_bump *memory, lnt_token **tokens, size_t *n,
                            lnt_error *err)
{
    size_t size;
    *n = split(text, bytes, NULL);
    LNT_REQUIRE(bytes < UINT32_MAX && lnt_mul_size(*n + 2, sizeof **tokens, &size), err, LNT_E_LIMIT,
                "a text of %zu bytes", bytes);
    lnt_token *before = lnt_bump_alloc(memory, size, err);
    if (!before)
        return LNT_E_MEMORY;
    *before = (lnt_token){.text = text, .kind = LNT_TOKEN_END};
    *tokens = before + 1;
    split(text, bytes, *tokens);
    return LNT_OK;
}

bool lnt_token_reads(const lnt_token *t, const char *word)
{
    size_t i = 0;
    for (; i < t->bytes && word[i]; i++) {
        const char c = t->text[i];
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != word[i])
            return false;
    }
    return t->kind == LNT_TOKEN_WORD && i == t->bytes && !word[i];
}

bool lnt_token_is_capital(const lnt_token *t)
{
    return t->kind == LNT_TOKEN_WORD && *t->text >= 'A' && *t->text <= 'Z';
}
