/* table.h — aligned tables for people. Cells are collected, then printed with each column as wide as its
 * widest cell; columns of numbers are aligned to the right. And how far a long piece of work has come. */
#ifndef LNT_CLI_SHELL_TABLE_H
#define LNT_CLI_SHELL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { LNT_TABLE_COLUMNS = 12 };

typedef struct lnt_table {
    unsigned columns;
    const char *align; /* one letter a column: 'l' or 'r' */
    char **cell;
    size_t n, capacity;
    bool heads;
} lnt_table;

/* heads: columns names, NULL for a table without them. */
void lnt_table_begin(lnt_table *t, const char *align, const char *const *heads);
/* The next cell, row by row. */
void lnt_table_cell(lnt_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lnt_table_print(lnt_table *t, FILE *out); /* and empties it; heads without rows are not printed */

/* "what [#####     ]" on standard error, drawn over the last one; nothing once all is done. For terminals. */
void lnt_progress_bar(const char *what, size_t done, size_t total);

/* "1.4 MB", "312 bytes". */
const char *lnt_size_text(uint64_t bytes, char buffer[24]);
/* Seconds in a unit that fits: "82.1 us". */
const char *lnt_time_text(double seconds, char buffer[24]);

#endif
