/* nearest.c — see nearest.h. */
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { LENGTH_MOST = 64, CHANGED = 6, LEFT_OUT = 6, PUT_IN = 1, OTHER_CASE = 1 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What it takes to make b of a. A name that was cut short lacks characters; other ones count more, another case
 * less. */
static size_t distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strnlen(b, LENGTH_MOST);
    size_t row[LENGTH_MOST + 1]; /* distances of a's beginning from all of b's */
    for (size_t k = 0; k <= m; k++)
        row[k] = k * PUT_IN;
    for (size_t i = 0; i < n && i < LENGTH_MOST; i++) {
        size_t corner = row[0];
        row[0] += LEFT_OUT;
        for (size_t k = 0; k < m; k++) {
            const bool letter = tolower((unsigned char)a[i]) == tolower((unsigned char)b[k]);
            const size_t changed = corner + (a[i] == b[k] ? 0 : letter ? OTHER_CASE : CHANGED);
            corner = row[k + 1];
            row[k + 1] = least(changed, least(row[k] + PUT_IN, corner + LEFT_OUT));
        }
    }
    return row[m];
}

void lnt_nearest_add(lnt_nearest *n, const char *name)
{
    const size_t d = distance(n->wanted, name);
    if (!*name || (n->name && d >= n->distance))
        return;
    n->name = name;
    n->distance = d;
}

const char *lnt_nearest_name(const lnt_nearest *n)
{
    const size_t length = strnlen(n->wanted, LENGTH_MOST);
    return n->name && n->distance <= CHANGED * (length < 4 ? 1 : length / 4) + length / 2 ? n->name : NULL;
}
