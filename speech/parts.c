/* parts.c — sentences of a script as runs of the model, with the silence behind each. */
#include "speech/parts.h"

#include "base/lnt_assert.h"
#include "base/utf8.h"

/* Of a run, where sentences are computed by pieces: about 200 ids, 2 for each symbol. */
enum { SYMBOLS_MOST = 100 };

typedef struct planner {
    lnt_parts *to;
    const lnt_script *script;
    const lnt_voice_config *config;
    const lnt_say_options *how;
    bool by_clauses; /* long sentences are spoken clause by clause */
    lnt_bump *memory;
    lnt_error *err;
} planner;

/* Seconds behind the symbol: what the caller says, or else the voice; 0 if neither does. *found: does one? */
static double silence_behind(const planner *p, uint32_t code, bool *found)
{
    *found = true;
    for (size_t i = 0; i < p->how->n_silences; i++) {
        const char *symbol = p->how->silence[i].phoneme;
        if (lnt_utf8_code(symbol, lnt_utf8_bytes(symbol)) == code)
            return p->how->silence[i].seconds;
    }
    for (size_t i = 0; i < p->config->n_silences; i++)
        if (p->config->silence[i].code == code)
            return p->config->silence[i].seconds;
    *found = false;
    return 0;
}

/* Does a clause end with the symbol before i, or with the blank that follows its mark? */
static bool ends_clause(const planner *p, size_t i)
{
    const uint32_t *code = p->script->code + i;
    const uint32_t mark = code[-1] == ' ' ? code[-2] : p->config->arpabet && code[0] != ' ' ? code[-1] : 0;
    return mark == ',' || mark == ';' || mark == ':';
}

/* Where a part that begins at first ends: behind the last clause that fits into it, or the first that ends at all. */
static size_t part_end(const planner *p, size_t first, size_t end)
{
    size_t found = end;
    if (!p->by_clauses || end - first <= SYMBOLS_MOST)
        return end;
    for (size_t i = first + 2; i < end && (i - first <= SYMBOLS_MOST || found == end); i++)
        if (ends_clause(p, i))
            found = i;
    LNT_ASSERT(found > first && found <= end);
    return found;
}

/* Symbols [first, end), if there are any. */
static lnt_status add_part(planner *p, size_t first, size_t end, double silence)
{
    lnt_parts *to = p->to;
    lnt_part part = {.silence = silence};
    size_t missing = 0;
    int64_t *ids;
    LNT_ASSERT(first <= end && end <= p->script->n);
    if (first == end)
        return LNT_OK;
    LNT_TRY(lnt_symbol_ids(p->config, p->script->code + first, end - first, p->memory, &ids, &part.n_ids,
                           &missing, p->err));
    part.ids = ids;
    LNT_TRY(LNT_GROW(&lnt_malloc_allocator, to->part, to->room, to->n, p->err));
    to->part[to->n++] = part;
    to->missing += missing;
    return LNT_OK;
}

/* The same in parts, where they are long. */
static lnt_status add_clauses(planner *p, size_t first, size_t end, double silence)
{
    for (size_t next; first < end; first = next) {
        next = part_end(p, first, end);
        LNT_TRY(add_part(p, first, next, next == end ? silence : 0));
    }
    return LNT_OK;
}

/* A sentence, in parts where silence is asked for. */
static lnt_status add_sentence(planner *p, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        bool found;
        const double seconds = silence_behind(p, p->script->code[i], &found);
        if (!found)
            continue;
        LNT_TRY(add_clauses(p, first, i + 1, seconds));
        first = i + 1;
    }
    return add_clauses(p, first, end, 0);
}

lnt_status lnt_parts_plan(lnt_parts *to, const lnt_script *script, const lnt_voice_config *config,
                          const lnt_say_options *how, bool by_clauses, lnt_bump *memory, lnt_error *err)
{
    planner p = {to, script, config, how, by_clauses, memory, err};
    const size_t before = to->n;
    size_t first = 0;
    for (size_t k = 0; k < script->n_sentences; k++) {
        const size_t end = script->end[k];
        if (end > first && to->n > before)
            to->part[to->n - 1].ends_a_sentence = true;
        LNT_TRY(add_sentence(&p, first, end));
        first = end;
    }
    return LNT_OK;
}

void lnt_parts_free(lnt_parts *p)
{
    lnt_free(&lnt_malloc_allocator, p->part);
    *p = (lnt_parts){0};
}
