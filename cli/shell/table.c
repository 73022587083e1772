/* table.c — aligned tables for people. */
#include "cli/shell/table.h"

#include "cli/shell/args.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

static void add(lnt_table *t, char *text)
{
    t->cell = lnt_cli_grow(t->cell, t->n, &t->capacity, sizeof *t->cell);
    t->cell[t->n++] = text;
}

void lnt_table_begin(lnt_table *t, const char *align, const char *const *heads)
{
    *t = (lnt_table){.columns = (unsigned)strlen(align), .align = align, .heads = heads != NULL};
    for (unsigned i = 0; heads && i < t->columns; i++)
        add(t, lnt_cli_text("%s", heads[i]));
}

void lnt_table_cell(lnt_table *t, const char *format, ...)
{
    char buffer[512];
    va_list args;
    va_start(args, format);
    vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    add(t, lnt_cli_text("%s", buffer));
}

/* Columns of a terminal that text takes: code points of UTF-8. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void lnt_table_print(lnt_table *t, FILE *out)
{
    int width[LNT_TABLE_COLUMNS] = {0};
    for (size_t i = 0; i < t->n; i++) {
        const int w = width_of(t->cell[i]);
        if (w > width[i % t->columns])
            width[i % t->columns] = w;
    }
    for (size_t i = 0; i < t->n; i++) {
        const unsigned column = (unsigned)(i % t->columns);
        const int pad = width[column] - width_of(t->cell[i]);
        const bool last = column + 1 == t->columns, right = t->align[column] == 'r';
        if (!t->heads || t->n > t->columns)
            fprintf(out, "%s%*s%s%*s%s", column ? "  " : "", right ? pad : 0, "", t->cell[i],
                    right || last ? 0 : pad, "", last ? "\n" : "");
    }
    *t = (lnt_table){0};
}

const char *lnt_size_text(uint64_t bytes, char buffer[24])
{
    if (bytes < 1024)
        snprintf(buffer, 24, "%" PRIu64 " bytes", bytes);
    else if (bytes < 1024 * 1024)
        snprintf(buffer, 24, "%.1f KB", (double)bytes / 1024);
    else
        snprintf(buffer, 24, "%.2f MB", (double)bytes / (1024 * 1024));
    return buffer;
}

const char *lnt_time_text(double seconds, char buffer[24])
{
    if (seconds < 1e-3)
        snprintf(buffer, 24, "%.1f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(buffer, 24, "%.2f ms", seconds * 1e3);
    else
        snprintf(buffer, 24, "%.2f s", seconds);
    return buffer;
}

void lnt_progress_bar(const char *what, size_t done, size_t total)
{
    enum { WIDTH = 40 };
    const int filled = total ? (int)(done < total ? done * WIDTH / total : WIDTH) : 0;
    if (done < total)
        fprintf(stderr, "\r%s [%.*s%*s]", what, filled, "########################################",
                WIDTH - filled, "");
    else
        fputs("\r\x1b[K", stderr);
}
