/* phonemes.c — a text as sentences of symbols, and symbols as ids, by Piper's rules: of each clause the phonemes
 * without flags of languages, in normalization form D, then its mark, and behind a mark within a sentence a blank. What
 * stands in [[ ]] is phonemes, belongs to the sentence before it, and the text behind it goes on with that. */
#include "speech/phonemes.h"

#include "base/checked.h"
#include "base/utf8.h"
#include "speech/letters.h"
#include "speech/pronounce.h"

#include <string.h>

typedef struct scribe {
    lnt_script *script;
    const lnt_voice_config *config;
    lnt_espeak *espeak;
    lnt_bump *memory;
    lnt_error *err;
} scribe;

static lnt_status begin_sentence(scribe *s)
{
    lnt_script *to = s->script;
    LNT_TRY(LNT_GROW(&lnt_malloc_allocator, to->end, to->ends_room, to->n_sentences, s->err));
    to->end[to->n_sentences++] = to->n;
    return LNT_OK;
}

/* Adds a symbol to the last sentence. */
static lnt_status add(scribe *s, uint32_t code)
{
    lnt_script *to = s->script;
    LNT_ASSERT(to->n_sentences);
    LNT_TRY(LNT_GROW(&lnt_malloc_allocator, to->code, to->room, to->n, s->err));
    to->code[to->n++] = code;
    to->end[to->n_sentences - 1] = to->n;
    return LNT_OK;
}

/* The characters of text[0..bytes) as they are. */
static lnt_status add_raw(scribe *s, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const unsigned n = lnt_utf8_bytes(text + at);
        LNT_TRY(add(s, lnt_utf8_code(text + at, n)));
        at += n;
    }
    return LNT_OK;
}

/* The same in normalization form D. */
static lnt_status add_decomposed(scribe *s, const char *text, size_t bytes)
{
    const size_t first = s->script->n;
    for (size_t at = 0; at < bytes;) {
        uint32_t part[LNT_DECOMPOSED_MOST];
        const unsigned n = lnt_utf8_bytes(text + at),
                       parts = lnt_decompose(lnt_utf8_code(text + at, n), part);
        for (unsigned i = 0; i < parts; i++)
            LNT_TRY(add(s, part[i]));
        at += n;
    }
    if (s->script->n > first)
        lnt_canonical_order(s->script->code + first, s->script->n - first);
    return LNT_OK;
}

/* Takes "(fr)" and its kin out of phonemes, in place. */
static size_t drop_flags(char *ipa)
{
    char *to = ipa;
    for (const char *from = ipa; *from;) {
        const char *close = *from == '(' && from[1] != ')' ? strchr(from, ')') : NULL;
        if (close)
            from = close + 1;
        else
            *to++ = *from++;
    }
    return (size_t)(to - ipa);
}

static lnt_status add_marked(scribe *s, char *ipa, char mark)
{
    LNT_TRY(add_decomposed(s, ipa, drop_flags(ipa)));
    if (!mark)
        return LNT_OK;
    LNT_TRY(add(s, (uint32_t)mark));
    return strchr(",:;", mark) ? add(s, ' ') : LNT_OK;
}

static lnt_status add_clause(scribe *s, const lnt_clause *c)
{
    const char *answer;
    LNT_TRY(lnt_espeak_clause(s->espeak, c, &answer, s->err));
    char *ipa = lnt_bump_string(s->memory, answer, strlen(answer), s->err);
    return ipa ? add_marked(s, ipa, c->mark) : LNT_E_MEMORY;
}

/* The same of a program that tells clauses itself. */
static lnt_status add_told(scribe *s, const char *text, size_t bytes, bool continues)
{
    lnt_told_clause *clause;
    size_t n;
    LNT_TRY(lnt_espeak_clauses(s->espeak, text, bytes, s->memory, &clause, &n, s->err));
    for (size_t i = 0; i < n; i++) {
        if (!continues)
            LNT_TRY(begin_sentence(s));
        continues = !clause[i].mark || strchr(",:;", clause[i].mark);
        LNT_TRY(add_marked(s, clause[i].ipa, clause[i].mark));
    }
    return LNT_OK;
}

/* Text without raw phonemes; goes on with the last sentence if there is one that continues. */
static lnt_status add_text(scribe *s, const char *text, size_t bytes, bool continues)
{
    lnt_clause *clause;
    size_t n;
    if (lnt_espeak_tells_clauses(s->espeak))
        return add_told(s, text, bytes, continues);
    char *copy = lnt_bump_string(s->memory, text, bytes, s->err);
    if (!copy)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_clauses_split(copy, bytes, s->memory, &clause, &n, s->err));
    for (size_t i = 0; i < n; i++) {
        if (!continues)
            LNT_TRY(begin_sentence(s));
        continues = !clause[i].ends;
        LNT_TRY(add_clause(s, &clause[i]));
    }
    return LNT_OK;
}

/* Raw phonemes raw[0..bytes), before and behind which a blank of the text may stand. */
static lnt_status add_block(scribe *s, const char *raw, size_t bytes, bool blank_before, bool blank_behind)
{
    const size_t lead = strspn(raw, " \t\r\n");
    if (!s->script->n_sentences)
        LNT_TRY(begin_sentence(s));
    if (blank_before)
        LNT_TRY(add(s, ' '));
    raw += lead < bytes ? lead : bytes;
    bytes -= lead < bytes ? lead : bytes;
    while (bytes && strchr(" \t\r\n", raw[bytes - 1]))
        bytes--;
    LNT_TRY(add_raw(s, raw, bytes));
    return blank_behind ? add(s, ' ') : LNT_OK;
}

/* Text with blocks of raw phonemes in it. */
static lnt_status add_mixed(scribe *s, const char *text)
{
    bool continues = false;
    for (const char *open; (open = strstr(text, "[[")) != NULL;) {
        const char *close = strstr(open + 2, "]]");
        if (!close)
            break;
        LNT_TRY(add_text(s, text, (size_t)(open - text), continues));
        LNT_TRY(add_block(s, open + 2, (size_t)(close - open) - 2, open > text && open[-1] == ' ',
                          close[2] == ' '));
        continues = true;
        text = close + 2;
    }
    return add_text(s, text, strlen(text), continues);
}

/* English words by the lexicon. Marks other than commas and their kin end sentences. */
static lnt_status add_pronounced(scribe *s, const lnt_phone_list *list)
{
    bool continues = false;
    for (size_t i = 0; i < list->n; i++) {
        uint32_t code[2];
        const unsigned n = lnt_phone_codes(list->symbol[i], code);
        if (!continues)
            LNT_TRY(begin_sentence(s));
        for (unsigned k = 0; k < n; k++)
            LNT_TRY(add(s, code[k]));
        continues = lnt_phone_is_phoneme(list->symbol[i]) || !strchr(".?!", (int)code[0]);
    }
    return LNT_OK;
}

static lnt_status pronounce(scribe *s, const lnt_lexicon_file *lexicon, const char *text)
{
    lnt_phone_list list = {.err = s->err};
    lnt_status status = lnt_pronounce(lexicon, text, s->memory, &list);
    if (status == LNT_OK)
        status = add_pronounced(s, &list);
    lnt_free(&lnt_malloc_allocator, list.symbol);
    return status;
}

lnt_status lnt_script_read(lnt_script *script, const lnt_voice_config *config, lnt_espeak *espeak,
                           const lnt_lexicon_file *lexicon, lnt_voice_form form, const char *text,
                           lnt_bump *memory, lnt_error *err)
{
    scribe s = {script, config, espeak, memory, err};
    script->n = script->n_sentences = 0;
    LNT_TRY(lnt_check_text(text, err));
    if (form == LNT_VOICE_TEXT && config->espeak)
        return add_mixed(&s, text);
    if (form == LNT_VOICE_TEXT && config->arpabet)
        return pronounce(&s, lexicon, text);
    LNT_TRY(begin_sentence(&s));
    if (form == LNT_VOICE_TEXT)
        return add_decomposed(&s, text, strlen(text));
    return add_raw(&s, text, strlen(text));
}

void lnt_script_free(lnt_script *s)
{
    lnt_free(&lnt_malloc_allocator, s->code);
    lnt_free(&lnt_malloc_allocator, s->end);
    *s = (lnt_script){0};
}

/* ---- ids ---- */

/* Of a voice that has small letters only, a capital one is spoken as its small one. */
static const lnt_symbol *symbol_for(const lnt_voice_config *config, uint32_t code)
{
    const lnt_symbol *s = lnt_symbol_of(config, code);
    return s || config->espeak || config->arpabet ? s : lnt_symbol_of(config, lnt_small_letter(code));
}

static size_t put(const lnt_voice_config *config, const lnt_symbol *s, int64_t *to, size_t n)
{
    for (uint32_t i = 0; to && i < s->n; i++)
        to[n + i] = config->id[s->first + i];
    return n + s->n;
}

/* Writes the ids to to, if that is not NULL, and counts them. */
static size_t write_ids(const lnt_voice_config *config, const uint32_t *code, size_t n, int64_t *to,
                        size_t *missing)
{
    size_t ids = put(config, &config->pad, to, put(config, &config->begin, to, 0));
    *missing = 0;
    for (size_t i = 0; i < n; i++) {
        const lnt_symbol *s = symbol_for(config, code[i]);
        *missing += !s;
        if (s)
            ids = put(config, &config->pad, to, put(config, s, to, ids));
    }
    return put(config, &config->end, to, ids);
}

lnt_status lnt_symbol_ids(const lnt_voice_config *config, const uint32_t *code, size_t n, lnt_bump *memory,
                          int64_t **ids, size_t *n_ids, size_t *missing, lnt_error *err)
{
    size_t bytes;
    *n_ids = write_ids(config, code, n, NULL, missing);
    LNT_REQUIRE(lnt_mul_size(*n_ids, sizeof **ids, &bytes), err, LNT_E_LIMIT, "%zu ids", *n_ids);
    *ids = lnt_bump_alloc(memory, bytes, err);
    if (!*ids)
        return LNT_E_MEMORY;
    write_ids(config, code, n, *ids, missing);
    return LNT_OK;
}
