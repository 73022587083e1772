/* json.c — a small JSON writer. Objects and arrays are indented two spaces; arrays of numbers stay on a line.
 */
#include "cli/json.h"

#include <inttypes.h>
#include <math.h>

static void quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
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

void lnt_json_ints(lnt_json *j, const char *key, const int64_t *values, unsigned n)
{
    lead(j, key);
    fputc('[', j->out);
    for (unsigned i = 0; i < n; i++)
        fprintf(j->out, "%s%" PRId64, i ? ", " : "", values[i]);
    fputc(']', j->out);
}
