/* json.c — a small JSON writer. Objects and arrays are indented two spaces; arrays of numbers stay on a line. */
#include "cli/shell/json.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>

/* Names come from models and may hold anything: what is no UTF-8 becomes the replacement character. */
static void quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (unsigned n; *text; text += n ? n : 1) {
        n = lnt_utf8_bytes(text);
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (!n || (unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", n ? (unsigned)*text : 0xfffd);
        else
            fwrite(text, 1, n, out);
    }
    fputc('"', out);
}

/* Comma, new line, indent and key: what stands before a value. */
static void lead(lnt_json *j, const char *key)
{
    if (j->depth)
        fprintf(j->out, "%s\n%*s", j->more ? "," : "", (int)(2 * j->depth), "");
    if (key) {
        quoted(j->out, key);
        fputs(": ", j->out);
    }
    j->more = true;
}

void lnt_json_begin(lnt_json *j, const char *key, char bracket)
{
    lead(j, key);
    fputc(bracket, j->out);
    j->depth++;
    j->more = false;
}

void lnt_json_end(lnt_json *j, char bracket)
{
    j->depth--;
    if (j->more)
        fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
    fputc(bracket, j->out);
    j->more = true;
    if (!j->depth)
        fputc('\n', j->out);
}

/* open_memstream does not tell of what it lost for want of memory. */
static ssize_t append(void *cookie, const char *bytes, size_t n)
{
    lnt_json_memory *m = cookie;
    for (size_t i = 0; i < n; i++) {
        if (LNT_GROW(&lnt_malloc_allocator, m->text, m->room, m->bytes, &m->err) != LNT_OK)
            return (ssize_t)i;
        m->text[m->bytes++] = bytes[i];
    }
    return (ssize_t)n;
}

lnt_status lnt_json_open(lnt_json_memory *m)
{
    *m = (lnt_json_memory){0};
    m->json.out = fopencookie(m, "w", (cookie_io_functions_t){.write = append});
    LNT_REQUIRE(m->json.out, &m->err, LNT_E_MEMORY, "no memory to write JSON");
    return LNT_OK;
}

lnt_status lnt_json_close(lnt_json_memory *m)
{
    fclose(m->json.out); /* what append could not do is in err */
    return m->err.code;
}

void lnt_json_free(lnt_json_memory *m)
{
    lnt_free(&lnt_malloc_allocator, m->text);
    m->text = NULL;
}

void lnt_json_text(lnt_json *j, const char *key, const char *text)
{
    lead(j, key);
    if (text)
        quoted(j->out, text);
    else
        fputs("null", j->out);
}

void lnt_json_int(lnt_json *j, const char *key, int64_t value)
{
    lead(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void lnt_json_number(lnt_json *j, const char *key, double value)
{
    lead(j, key);
    if (isfinite(value))
        fprintf(j->out, "%.9g", value);
    else
        fputs("null", j->out);
}

void lnt_json_bool(lnt_json *j, const char *key, bool value)
{
    lead(j, key);
    fputs(value ? "true" : "false", j->out);
}

void lnt_json_raw(lnt_json *j, const char *key, const char *json)
{
    lead(j, key);
    fputs(json, j->out);
}

void lnt_json_ints(lnt_json *j, const char *key, const int64_t *values, unsigned n)
{
    lead(j, key);
    fputc('[', j->out);
    for (unsigned i = 0; i < n; i++)
        fprintf(j->out, "%s%" PRId64, i ? ", " : "", values[i]);
    fputc(']', j->out);
}
