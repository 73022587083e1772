/* pronounce.c — English text as phonemes: normalized words, one after the other, with what words do to each other. */
#include "speech/pronounce.h"

#include "base/lnt_assert.h"
#include "speech/homographs.h"
#include "speech/letters.h"
#include "speech/normalize.h"

#include <string.h>

static const char blanks[] = " \t\r\n", marks[] = ".,?!:;";

static const char *const letter_names[26] = {"EY1",
                                             "B IY1",
                                             "S IY1",
                                             "D IY1",
                                             "IY1",
                                             "EH1 F",
                                             "JH IY1",
                                             "EY1 CH",
                                             "AY1",
                                             "JH EY1",
                                             "K EY1",
                                             "EH1 L",
                                             "EH1 M",
                                             "EH1 N",
                                             "OW1",
                                             "P IY1",
                                             "K Y UW1",
                                             "AA1 R",
                                             "EH1 S",
                                             "T IY1",
                                             "Y UW1",
                                             "V IY1",
                                             "D AH1 B AH0 L Y UW0",
                                             "EH1 K S",
                                             "W AY1",
                                             "Z IY1"};

/* ---- words ---- */

static bool is_mark(char c)
{
    return c && strchr(marks, c);
}

/* Normalized text as words, one that is none before the first and behind the last. */
static lnt_status split(const char *text, lnt_bump *memory, lnt_word **words, size_t *n, lnt_error *err)
{
    size_t most = 3;
    for (const char *at = text; *at; at++)
        most += *at == ' ';
    lnt_word *to = lnt_bump_alloc(memory, most * sizeof *to, err);
    if (!to)
        return LNT_E_MEMORY;
    *to++ = (lnt_word){0};
    *words = to;
    for (const char *at = text; *at; at += *at == ' ') {
        size_t bytes = strcspn(at, " ");
        *to = (lnt_word){.text = at, .bytes = (uint32_t)bytes};
        if (is_mark(at[bytes - 1]))
            *to = (lnt_word){.text = at, .bytes = (uint32_t)bytes - 1, .mark = at[bytes - 1]};
        to++;
        at += bytes;
    }
    *n = (size_t)(to - *words);
    *to = (lnt_word){0};
    return LNT_OK;
}

static bool is_spelled(const lnt_word *w)
{
    return w->bytes && *w->text >= 'A' && *w->text <= 'Z';
}

static bool reads(const lnt_word *w, const char *word)
{
    return w->bytes == strlen(word) && memcmp(w->text, word, w->bytes) == 0;
}

/* A letter's name, and what is behind an apostrophe. */
static void add_letter(const lnt_word *w, lnt_phone_list *to)
{
    lnt_phones_add_names(to, letter_names[*w->text - 'A']);
    if (w->bytes > 1) /* "'s" */
        lnt_phones_add_names(to, strchr("SX", *w->text) ? "AH0 Z" : strchr("F", *w->text) ? "S" : "Z");
}

static void add_word(const lnt_lexicon_file *f, const lnt_word *w, lnt_phone_list *to)
{
    const char *names = lnt_homograph(w);
    if (is_spelled(w))
        add_letter(w, to);
    else if (names)
        lnt_phones_add_names(to, names);
    else
        lnt_lexicon_word(f, w->text, w->bytes, to);
}

/* "the" in front of a vowel, whose first symbol is number at. */
static void join(const lnt_word *before, lnt_phone_list *to, size_t at)
{
    static const char vowel_before[] = "IY0";
    if (!before->mark && reads(before, "the") && at > 1 && at < to->n &&
        lnt_phone_stress(to->symbol[at]) >= 0)
        to->symbol[at - 2] = lnt_phone_named(vowel_before, strlen(vowel_before));
}

/* A blank between two words; no two of them, and none behind a mark. */
static void end_word(lnt_phone_list *to)
{
    if (to->status == LNT_OK && to->n && lnt_phone_is_phoneme(to->symbol[to->n - 1]))
        lnt_phones_add(to, lnt_phone_mark('|'));
}

static void end_clause(char mark, lnt_phone_list *to)
{
    if (to->status != LNT_OK || !to->n)
        return;
    uint8_t *last = &to->symbol[to->n - 1];
    if (*last == lnt_phone_mark('|'))
        *last = lnt_phone_mark(mark);
    else if (lnt_phone_is_phoneme(*last))
        lnt_phones_add(to, lnt_phone_mark(mark));
}

static void add_words(const lnt_lexicon_file *f, const lnt_word *w, size_t n, lnt_phone_list *to)
{
    for (size_t i = 0; i < n && to->status == LNT_OK; i++) {
        end_word(to);
        const size_t at = to->n;
        if (w[i].bytes)
            add_word(f, &w[i], to);
        if (to->status == LNT_OK)
            join(&w[i] - 1, to, at);
        if (w[i].mark)
            end_clause(w[i].mark, to);
    }
}

/* ---- text ---- */

/* Text without raw phonemes. */
static lnt_status add_text(const lnt_lexicon_file *f, const char *text, size_t bytes, lnt_bump *memory,
                           lnt_phone_list *to)
{
    const char *normal;
    lnt_word *words;
    size_t n;
    const char *copy = lnt_bump_string(memory, text, bytes, to->err);
    if (!copy)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_normalize(copy, memory, &normal, to->err));
    LNT_TRY(split(normal, memory, &words, &n, to->err));
    add_words(f, words, n, to);
    return to->status;
}

/* Names of symbols with blanks between them. */
static lnt_status add_raw(const char *text, size_t bytes, lnt_phone_list *to)
{
    end_word(to);
    for (size_t at = 0; at < bytes;) {
        size_t n = 0;
        while (at + n < bytes && !strchr(blanks, text[at + n]))
            n++;
        const uint8_t symbol = n ? lnt_phone_named(text + at, n) : 0;
        LNT_REQUIRE(symbol != 0xff, to->err, LNT_E_VALUE,
                    "[[ ]] has phonemes of ARPAbet, as [[HH AH0 L OW1]], not '%.*s'", n < 20 ? (int)n : 20,
                    text + at);
        if (n && lnt_phone_is_phoneme(symbol))
            lnt_phones_add(to, symbol);
        else if (n && symbol == lnt_phone_mark('|'))
            end_word(to);
        else if (n)
            end_clause(text[at], to);
        at += n ? n : 1;
    }
    return to->status;
}

lnt_status lnt_pronounce(const lnt_lexicon_file *f, const char *text, lnt_bump *memory, lnt_phone_list *to)
{
    LNT_TRY(lnt_check_text(text, to->err));
    for (const char *open; (open = strstr(text, "[[")) != NULL;) {
        const char *close = strstr(open + 2, "]]");
        if (!close)
            break;
        LNT_TRY(add_text(f, text, (size_t)(open - text), memory, to));
        LNT_TRY(add_raw(open + 2, (size_t)(close - open) - 2, to));
        text = close + 2;
    }
    LNT_TRY(add_text(f, text, strlen(text), memory, to));
    to->n -= to->n && to->symbol[to->n - 1] == lnt_phone_mark('|');
    return LNT_OK;
}

lnt_status lnt_phones_text(const uint8_t *symbol, size_t n, lnt_bump *memory, const char **text,
                           lnt_error *err)
{
    char *to = lnt_bump_alloc(memory, n * (LNT_PHONE_NAME_MOST + 1) + 1, err);
    if (!to)
        return LNT_E_MEMORY;
    *text = to;
    for (size_t i = 0; i < n; i++) {
        if (i)
            *to++ = ' ';
        to += lnt_phone_name(symbol[i], to);
    }
    *to = '\0';
    return LNT_OK;
}

/* ---- the API ---- */

struct lnt_lexicon {
    lnt_lexicon_file file;
    lnt_bump passing; /* what lives as long as a text */
    lnt_phone_list phones;
};

lnt_status lnt_lexicon_create(const void *data, size_t bytes, lnt_lexicon **lexicon, lnt_error *err)
{
    lnt_lexicon_file file;
    *lexicon = NULL;
    LNT_TRY(lnt_lexicon_read(data, bytes, &file, err));
    lnt_lexicon *l = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *l, err);
    if (!l)
        return LNT_E_MEMORY;
    l->file = file;
    lnt_bump_init(&l->passing, &lnt_malloc_allocator);
    *lexicon = l;
    return LNT_OK;
}

void lnt_lexicon_destroy(lnt_lexicon **lexicon)
{
    lnt_lexicon *l = lexicon ? *lexicon : NULL;
    if (!l)
        return;
    lnt_free(&lnt_malloc_allocator, l->phones.symbol);
    lnt_bump_free(&l->passing);
    lnt_free(&lnt_malloc_allocator, l);
    *lexicon = NULL;
}

lnt_status lnt_lexicon_phonemes(lnt_lexicon *l, const char *text, const char **phonemes, lnt_error *err)
{
    lnt_bump_reset(&l->passing);
    l->phones.n = 0;
    l->phones.status = LNT_OK;
    l->phones.err = err;
    LNT_TRY(lnt_pronounce(&l->file, text, &l->passing, &l->phones));
    return lnt_phones_text(l->phones.symbol, l->phones.n, &l->passing, phonemes, err);
}
