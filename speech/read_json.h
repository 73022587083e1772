/* read_json.h — a strict reader of JSON (RFC 8259): a text becomes a tree of values, or an error that names the place.
 *
 * Bounded: at most LNT_JSON_DEPTH arrays and objects within each other, LNT_JSON_VALUES values in all. */
#ifndef LNT_SPEECH_READ_JSON_H
#define LNT_SPEECH_READ_JSON_H

#include "base/memory.h"

enum { LNT_JSON_DEPTH = 32, LNT_JSON_VALUES = 1 << 17 };

typedef enum lnt_json_kind {
    LNT_JSON_NULL,
    LNT_JSON_BOOL,
    LNT_JSON_NUMBER,
    LNT_JSON_TEXT,
    LNT_JSON_ARRAY,
    LNT_JSON_OBJECT
} lnt_json_kind;

typedef struct lnt_json_value {
    lnt_json_kind kind;
    const char *key;                     /* within an object, else NULL */
    const char *text;                    /* UTF-8 without NUL, of a LNT_JSON_TEXT */
    double number;                       /* of a LNT_JSON_NUMBER; 0 or 1 of a LNT_JSON_BOOL */
    struct lnt_json_value *first, *next; /* what an array or object holds */
} lnt_json_value;

/* The one value that text[0..bytes) is, in memory of the bump's. */
lnt_status lnt_json_read(const char *text, size_t bytes, lnt_bump *memory, const lnt_json_value **value,
                         lnt_error *err);
/* The object's member called key, the last of several; NULL if there is none, or where object is no object or NULL. */
const lnt_json_value *lnt_json_member(const lnt_json_value *object, const char *key);
/* Takes the blanks between values out of valid JSON, in place; returns the bytes that are left. */
size_t lnt_json_squeeze(char *text, size_t bytes);

#endif
