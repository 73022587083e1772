/* json.h — a small JSON writer: values go to a stream as they come, commas and nesting are kept here. */
#ifndef LNT_CLI_SHELL_JSON_H
#define LNT_CLI_SHELL_JSON_H

#include "base/linnet_types.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct lnt_json {
    FILE *out;
    unsigned depth;
    bool more; /* the present object or array holds something already */
} lnt_json;

/* JSON that goes to memory. */
typedef struct lnt_json_memory {
    lnt_json json;
    char *text;
    size_t bytes, room;
    lnt_error err;
} lnt_json_memory;

lnt_status lnt_json_open(lnt_json_memory *m);
/* No more is written. LNT_OK: text[0..bytes) is all of it, until lnt_json_free; else err says why not. */
lnt_status lnt_json_close(lnt_json_memory *m);
void lnt_json_free(lnt_json_memory *m);

/* key is NULL inside arrays and for the outermost value. */
void lnt_json_begin(lnt_json *j, const char *key, char bracket); /* '{' or '[' */
void lnt_json_end(lnt_json *j, char bracket); /* '}' or ']'; the outermost one ends the line */
void lnt_json_text(lnt_json *j, const char *key, const char *text); /* NULL gives null */
void lnt_json_int(lnt_json *j, const char *key, int64_t value);
void lnt_json_number(lnt_json *j, const char *key, double value); /* NaN and infinities give null */
void lnt_json_bool(lnt_json *j, const char *key, bool value);
void lnt_json_raw(lnt_json *j, const char *key, const char *json); /* a value that is JSON already */
void lnt_json_ints(lnt_json *j, const char *key, const int64_t *values, unsigned n);

#endif
