/* json_check.h — is a text one value of JSON, in UTF-8? Written from RFC 8259. */
#ifndef TESTS_JSON_CHECK_H
#define TESTS_JSON_CHECK_H

#include <stdbool.h>
#include <string.h>

enum { JSON_DEPTH = 64 };

static inline const char *json_blanks(const char *c)
{
    return c + strspn(c, " \t\r\n");
}

/* Behind one character of UTF-8 that is no control; NULL if there is none. */
static inline const char *json_character(const char *c)
{
    const unsigned char first = (unsigned char)*c;
    const int more = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    unsigned code = first & (more ? 0x3fu >> more : 0x7f);
    static const unsigned least[] = {0x20, 0x80, 0x800, 0x10000};
    if ((first >= 0x80 && first < 0xc0) || first >= 0xf8)
        return NULL;
    for (int i = 1; i <= more; i++) {
        if (((unsigned char)c[i] & 0xc0) != 0x80)
            return NULL;
        code = code << 6 | ((unsigned char)c[i] & 0x3f);
    }
    return code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? NULL : c + more + 1;
}

static inline const char *json_string(const char *c)
{
    if (*c++ != '"')
        return NULL;
    while (c && *c != '"') {
        if (*c != '\\')
            c = json_character(c);
        else if (c[1] == 'u')
            c = strspn(c + 2, "0123456789abcdefABCDEF") >= 4 ? c + 6 : NULL;
        else
            c = c[1] && strchr("\"\\/bfnrt", c[1]) ? c + 2 : NULL;
    }
    return c ? c + 1 : NULL;
}

static inline const char *json_digits(const char *c)
{
    const size_t n = strspn(c, "0123456789");
    return n ? c + n : NULL;
}

static inline const char *json_number(const char *c)
{
    c += *c == '-';
    c = *c == '0' ? c + 1 : json_digits(c);
    if (c && *c == '.')
        c = json_digits(c + 1);
    if (c && (*c == 'e' || *c == 'E'))
        c = json_digits(c + 1 + (c[1] == '+' || c[1] == '-'));
    return c;
}

static inline const char *json_word(const char *c)
{
    static const char *const words[] = {"true", "false", "null"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(c, words[i], strlen(words[i])) == 0)
            return c + strlen(words[i]);
    return NULL;
}

static inline const char *json_value(const char *c, unsigned depth);

/* Members of an object or array, behind its bracket, to behind the closing one. */
static inline const char *json_members(const char *c, bool keys, unsigned depth)
{
    const char close = keys ? '}' : ']';
    c = json_blanks(c);
    if (*c == close)
        return c + 1;
    for (;;) {
        if (keys) {
            c = json_string(json_blanks(c));
            c = c ? json_blanks(c) : NULL;
            if (!c || *c++ != ':')
                return NULL;
        }
        c = json_value(c, depth);
        if (!c || (*c != ',' && *c != close))
            return NULL;
        if (*c++ == close)
            return c;
    }
}

/* Behind a value and what is blank around it; NULL if there is none. */
static inline const char *json_value(const char *c, unsigned depth)
{
    c = json_blanks(c);
    if (*c == '{' || *c == '[')
        c = depth ? json_members(c + 1, *c == '{', depth - 1) : NULL;
    else
        c = *c == '"' ? json_string(c) : strchr("tfn", *c) && *c ? json_word(c) : json_number(c);
    return c ? json_blanks(c) : NULL;
}

static inline bool is_json(const char *text)
{
    const char *end = json_value(text, JSON_DEPTH);
    return end && !*end;
}

#endif
