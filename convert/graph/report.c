/* report.c — collecting what a conversion did. */
#include "convert/graph/report.h"

#include "base/lnt_assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lnt_report_init(lnt_report *r)
{
    *r = (lnt_report){0};
    lnt_bump_init(&r->memory, &lnt_malloc_allocator);
}

void lnt_report_free(lnt_report *r)
{
    lnt_free(&lnt_malloc_allocator, r->pass);
    lnt_free(&lnt_malloc_allocator, r->unsupported);
    lnt_bump_free(&r->memory);
    *r = (lnt_report){0};
}

lnt_status lnt_report_count(lnt_report *r, const char *pass, const char *what, unsigned count)
{
    LNT_ASSERT(pass);
    if (!what)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < r->n_passes; i++)
        if (strcmp(r->pass[i].pass, pass) == 0 && strcmp(r->pass[i].what, what) == 0) {
            r->pass[i].count += count;
            return LNT_OK;
        }
    if (count == 0)
        return LNT_OK;
    LNT_TRY(LNT_GROW(&lnt_malloc_allocator, r->pass, r->pass_capacity, r->n_passes, NULL));
    r->pass[r->n_passes++] = (lnt_pass_count){pass, what, count};
    return LNT_OK;
}

lnt_status lnt_report_unsupported(lnt_report *r, const lnt_unsupported *u)
{
    LNT_TRY(LNT_GROW(&lnt_malloc_allocator, r->unsupported, r->unsupported_capacity, r->n_unsupported, NULL));
    lnt_unsupported kept = {lnt_report_text(r, "%s", u->node), lnt_report_text(r, "%s", u->domain),
                            lnt_report_text(r, "%s", u->op), u->opset, lnt_report_text(r, "%s", u->reason)};
    if (!kept.node || !kept.domain || !kept.op || !kept.reason)
        return LNT_E_MEMORY;
    r->unsupported[r->n_unsupported++] = kept;
    return LNT_OK;
}

const char *lnt_report_text(lnt_report *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : lnt_bump_alloc(&r->memory, (size_t)length + 1, NULL);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}
