/* suggest.c — what somebody meant who typed a name that does not exist. */
#include "cli/shell/suggest.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 128, LISTED = 8 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Insertions, deletions, substitutions and exchanges of neighbors between a and b, both at most LONGEST long: optimal
 * string alignment (F. Damerau, "A technique for computer detection and correction of spelling errors", 1964). */
static size_t distance(const char *a, const char *b)
{
    size_t row[3][LONGEST + 1];
    const size_t n = strlen(a), m = strlen(b);
    for (size_t k = 0; k <= m; k++)
        row[0][k] = k;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t k = 1; k <= m; k++) {
            now[k] = least(least(last[k], now[k - 1]) + 1, last[k - 1] + !same(a[i - 1], b[k - 1]));
            if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) && same(a[i - 2], b[k - 1]))
                now[k] = least(now[k], before[k - 2] + 1);
        }
    }
    return row[n % 3][m];
}

const char *lnt_suggest_nearest(const char *typed, const lnt_texts *names)
{
    const char *nearest = NULL;
    size_t best = strlen(typed) / 3 + 1;
    for (size_t i = 0; i < names->n && strlen(typed) <= LONGEST; i++) {
        const size_t d = strlen(names->item[i]) <= LONGEST ? distance(typed, names->item[i]) : LONGEST;
        if (d < best || (d == best && !nearest))
            nearest = names->item[i], best = d;
    }
    return nearest ? lnt_cli_text("; did you mean %s?", nearest) : "";
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
