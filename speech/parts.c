/* parts.c — sentences of a script as runs of the model, with the silence behind each. */
#include "speech/parts.h"

#include "base/utf8.h"

typedef struct planner {
    lnt_parts *to;
    const lnt_script *script;
    const lnt_voice_config *config;
    const lnt_say_options *how;
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

/* Symbols [first, end), if there are any. */
static lnt_status add_part(planner *p, size_t first, size_t end, double silence)
{
    lnt_parts *to = p->to;
    lnt_part part = {.silence = silence};
    size_t missing = 0;
    int64_t *ids;
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

/* A sentence, in parts where silence is asked for. */
static lnt_status add_sentence(planner *p, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        bool found;
        const double seconds = silence_behind(p, p->script->code[i], &found);
        if (!found)
            continue;
        LNT_TRY(add_part(p, first, i + 1, seconds));
        first = i + 1;
    }
    return add_part(p, first, end, 0);
}

lnt_status lnt_parts_plan(lnt_parts *to, const lnt_script *script, const lnt_voice_config *config,
                          const lnt_say_options *how, lnt_bump *memory, lnt_error *err)
{
    planner p = {to, script, config, how, memory, err};
    size_t first = 0;
    to->n = to->missing = 0;
    for (size_t k = 0; k < script->n_sentences; k++) {
        const size_t end = script->end[k];
        if (end > first && to->n)
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
