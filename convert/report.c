/* report.c — collecting what a conversion did, and saying it as text or JSON. */
#include "convert/report.h"

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

/* ---- text ---- */

typedef struct writer {
    char *text;
    size_t used, capacity;
    bool failed;
} writer;

static void LNT_PRINTF(2, 3) put(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    while (!w->failed && w->used + (size_t)length + 1 > w->capacity)
        w->failed = length < 0 || lnt_grow(&lnt_malloc_allocator, (void **)&w->text, &w->capacity,
                                           w->capacity, 1, NULL) != LNT_OK;
    if (w->failed)
        return;
    va_start(args, format);
    vsnprintf(w->text + w->used, (size_t)length + 1, format, args);
    va_end(args);
    w->used += (size_t)length;
}

static const char *finish(lnt_report *r, writer *w)
{
    const char *text = w->failed ? NULL : lnt_bump_string(&r->memory, w->text ? w->text : "", w->used, NULL);
    lnt_free(&lnt_malloc_allocator, w->text);
    return text;
}

const char *lnt_report_as_text(lnt_report *r)
{
    writer w = {0};
    for (size_t i = 0; i < r->n_unsupported; i++) {
        const lnt_unsupported *u = &r->unsupported[i];
        put(&w, "not supported: node '%s' (%s%s%s, opset %lld): %s\n", u->node, u->domain,
            u->domain[0] ? "." : "", u->op, (long long)u->opset, u->reason);
    }
    for (size_t i = 0; i < r->n_passes; i++)
        put(&w, "%-24s %6u  %s\n", r->pass[i].pass, r->pass[i].count, r->pass[i].what);
    if (r->n_unsupported)
        return finish(r, &w);
    put(&w, "nodes                    %6u  before, %u after\n", r->nodes_before, r->nodes_after);
    put(&w, "relayouts                %6u\n", r->relayouts);
    put(&w, "bytes      %20llu  ONNX, %llu .lnt (constants %llu, of them packed %llu, stored twice %llu)\n",
        (unsigned long long)r->onnx_bytes, (unsigned long long)r->lnt_bytes,
        (unsigned long long)r->constant_bytes, (unsigned long long)r->packed_bytes,
        (unsigned long long)r->duplicated_bytes);
    return finish(r, &w);
}

/* ---- JSON ---- */

static void put_json_text(writer *w, const char *text)
{
    put(w, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            put(w, "\\%c", *c);
        else if (*c < 0x20)
            put(w, "\\u%04x", *c);
        else
            put(w, "%c", *c);
    }
    put(w, "\"");
}

static void put_member(writer *w, const char *name, const char *text)
{
    put(w, "\"%s\": ", name);
    put_json_text(w, text);
    put(w, ", ");
}

const char *lnt_report_as_json(lnt_report *r)
{
    writer w = {0};
    put(&w, "{\n  \"unsupported\": [");
    for (size_t i = 0; i < r->n_unsupported; i++) {
        const lnt_unsupported *u = &r->unsupported[i];
        put(&w, "%s\n    {", i ? "," : "");
        put_member(&w, "node", u->node);
        put_member(&w, "domain", u->domain);
        put_member(&w, "op", u->op);
        put_member(&w, "reason", u->reason);
        put(&w, "\"opset\": %lld}", (long long)u->opset);
    }
    put(&w, "],\n  \"passes\": [");
    for (size_t i = 0; i < r->n_passes; i++) {
        put(&w, "%s\n    {", i ? "," : "");
        put_member(&w, "pass", r->pass[i].pass);
        put_member(&w, "what", r->pass[i].what);
        put(&w, "\"count\": %u}", r->pass[i].count);
    }
    put(&w, "],\n  \"nodes_before\": %u,\n  \"nodes_after\": %u,\n  \"relayouts\": %u,\n", r->nodes_before,
        r->nodes_after, r->relayouts);
    put(&w, "  \"onnx_bytes\": %llu,\n  \"lnt_bytes\": %llu,\n", (unsigned long long)r->onnx_bytes,
        (unsigned long long)r->lnt_bytes);
    put(&w, "  \"constant_bytes\": %llu,\n  \"packed_bytes\": %llu,\n  \"duplicated_bytes\": %llu\n}\n",
        (unsigned long long)r->constant_bytes, (unsigned long long)r->packed_bytes,
        (unsigned long long)r->duplicated_bytes);
    return finish(r, &w);
}
