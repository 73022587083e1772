/* regex_full_match.c — RegexFullMatch: which words are as a pattern says, from their beginning to their end. */
#include "ops/text/regex.h"
#include "ops/text/words.h"

#include "base/checked.h"

typedef struct match_params {
    lnt_text *text;
    const lnt_regex *regex;
    size_t scratch; /* numbers of a thread's */
} match_params;

typedef struct match_job {
    const match_params *p;
    const int64_t *x;
    uint8_t *y;
    uint32_t *scratch;
} match_job;

static lnt_status match_words(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const match_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        lnt_chars word;
        LNT_TRY(lnt_text_get(j->p->text, j->x[i], &word, k->err));
        j->y[i] = lnt_regex_matches(j->p->regex, word.at, j->scratch + thread * j->p->scratch);
    }
    return LNT_OK;
}

static lnt_status run_regex(lnt_kernel *k, const lnt_step *s)
{
    enum { GRAIN = 64 };
    match_job job = {s->params, lnt_in(k, s, 0), lnt_out(k, s, 0), lnt_scratch(k, s)};
    return lnt_parallel(k, lnt_operand_count(s->in[0]), GRAIN, match_words, &job);
}

lnt_status lnt_bind_regex_full_match(lnt_site *site)
{
    const lnt_attr *pattern = lnt_attr_of(site->node, "pattern", LNT_ATTR_STRING);
    LNT_TRY(lnt_require_text(site));
    const lnt_regex *regex = lnt_regex_make(pattern ? pattern->s : "", site->memory, site->err);
    match_params *p = regex ? lnt_bind_params(site, sizeof *p) : NULL;
    if (!p)
        return site->err && site->err->code ? site->err->code : LNT_E_MEMORY;
    *p = (match_params){site->text, regex,
                        lnt_round_up(lnt_regex_scratch(regex), LNT_ALIGN / sizeof(uint32_t))};
    lnt_bind_scratch(site, p->scratch * sizeof(uint32_t) * site->threads);
    site->step->run = run_regex;
    return LNT_OK;
}
