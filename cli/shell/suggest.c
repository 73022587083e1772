/* suggest.c — what somebody meant who typed a name that does not exist. */
#include "cli/shell/suggest.h"

#include "base/nearest.h"

enum { LISTED = 8 };

const char *lnt_suggest_nearest(const char *typed, const lnt_texts *names)
{
    lnt_nearest nearest = {.wanted = typed};
    for (size_t i = 0; i < names->n; i++)
        lnt_nearest_add(&nearest, names->item[i]);
    const char *name = lnt_nearest_name(&nearest);
    return name ? lnt_cli_text("; did you mean %s?", name) : "";
}

const char *lnt_suggest(const char *typed, const lnt_texts *names)
{
    const char *text = lnt_suggest_nearest(typed, names);
    if (*text || !names->n)
        return text;
    text = "; there is ";
    for (size_t i = 0; i < names->n && i < LISTED; i++)
        text = lnt_cli_text("%s%s%s", text, i ? ", " : "", names->item[i]);
    return names->n > LISTED ? lnt_cli_text("%s and %zu more", text, names->n - LISTED) : text;
}
