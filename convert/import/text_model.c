/* text_model.c — protobuf's text form, read after the table of ONNX's messages and written in the wire format.
 *
 * Lengths of messages are written in five bytes, with leading zeros, as they are known only behind them. */
#include "convert/import/text_model.h"

#include "base/lnt_assert.h"
#include "convert/import/text_schema.h"
#include "formats/wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEEPEST = 100,       /* messages within messages, as protobuf itself has it */
    LENGTH_BYTES = 5,    /* of a length */
    VARINT_MOST = 10,    /* bytes of a number */
    LONGEST_NUMBER = 64, /* characters */
    FIRST_BYTES = 1 << 16
};

typedef struct text {
    const char *begin, *at, *end;
    const lnt_allocator *allocator;
    uint8_t *out;
    size_t n, capacity;
    unsigned depth;
    lnt_error *err;
} text;

/* ---- errors, with the place ---- */

static lnt_status fail_at(const text *t, const char *at, const char *format, ...) LNT_PRINTF(3, 4);

static lnt_status fail_at(const text *t, const char *at, const char *format, ...)
{
    char message[256];
    size_t line = 1;
    const char *start = t->begin;
    for (const char *c = t->begin; c < at; c++)
        if (*c == '\n') {
            line++;
            start = c + 1;
        }
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return lnt_fail(t->err, LNT_E_MODEL, "line %zu, column %zu: %s", line, (size_t)(at - start) + 1, message);
}

#define FAIL_UNLESS(condition, t, at, ...)                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            return fail_at(t, at, __VA_ARGS__);                                                              \
    } while (0)

/* ---- the wire format ---- */

/* Makes room for n more bytes. */
static lnt_status reserve(text *t, size_t n)
{
    if (t->capacity - t->n >= n)
        return LNT_OK;
    LNT_REQUIRE(n <= INT32_MAX && t->n <= INT32_MAX - n, t->err, LNT_E_LIMIT,
                "a model of more than 2 GB in text form");
    const size_t capacity = 2 * t->n + n;
    uint8_t *grown = lnt_alloc(t->allocator, capacity, t->err);
    if (!grown)
        return LNT_E_MEMORY;
    if (t->n)
        memcpy(grown, t->out, t->n);
    lnt_free(t->allocator, t->out);
    t->out = grown;
    t->capacity = capacity;
    return LNT_OK;
}

static void put_varint(text *t, uint64_t x)
{
    LNT_ASSERT(t->capacity - t->n >= VARINT_MOST);
    for (; x > 127; x >>= 7)
        t->out[t->n++] = (uint8_t)(x | 128);
    t->out[t->n++] = (uint8_t)x;
}

static void put_fixed(text *t, uint64_t x, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        t->out[t->n++] = (uint8_t)(x >> 8 * i);
}

static lnt_status put_tag(text *t, const lnt_text_field *f, lnt_wire_type type)
{
    LNT_ASSERT(f->number < 1 << 5); /* and fits into read_field's set */
    LNT_TRY(reserve(t, 2 * VARINT_MOST));
    put_varint(t, f->number << 3 | type);
    return LNT_OK;
}

/* Leaves room for a length; *at: where. */
static void open_length(text *t, size_t *at)
{
    *at = t->n;
    t->n += LENGTH_BYTES;
}

static void close_length(text *t, size_t at)
{
    LNT_ASSERT(t->n >= at + LENGTH_BYTES && t->n <= t->capacity);
    const size_t length = t->n - at - LENGTH_BYTES;
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        t->out[at + i] = (uint8_t)((length >> 7 * i & 127) | (i + 1 < LENGTH_BYTES ? 128 : 0));
}

/* ---- words ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Steps over blanks and comments. */
static void skip_blank(text *t)
{
    while (t->at < t->end) {
        if (*t->at == '#')
            while (t->at < t->end && *t->at != '\n')
                t->at++;
        else if (*t->at == ' ' || (*t->at >= '\t' && *t->at <= '\r'))
            t->at++;
        else
            return;
    }
}

/* The next character behind blanks; 0 at the end. */
static char peek(text *t)
{
    skip_blank(t);
    return t->at < t->end ? *t->at : '\0';
}

static bool accept(text *t, char c)
{
    if (peek(t) != c || t->at == t->end)
        return false;
    t->at++;
    return true;
}

static size_t word_length(const text *t)
{
    const char *c = t->at;
    while (c < t->end && (is_letter(*c) || (c > t->at && is_digit(*c))))
        c++;
    return (size_t)(c - t->at);
}

/* ---- numbers ---- */

/* The characters of a number or word from here, in a string. */
static lnt_status number_text(text *t, char copy[LONGEST_NUMBER])
{
    const char *from = t->at;
    size_t n = 0;
    for (; t->at < t->end && (is_letter(*t->at) || is_digit(*t->at) || (*t->at && strchr("+-.", *t->at)));
         t->at++, n++) {
        FAIL_UNLESS(n + 1 < LONGEST_NUMBER, t, from, "a number of more than %d characters",
                    LONGEST_NUMBER - 1);
        copy[n] = *t->at;
    }
    copy[n] = '\0';
    FAIL_UNLESS(n, t, from, "a value is missing");
    return LNT_OK;
}

/* A whole number, in digits or of an enumeration, as 64 bits. */
static lnt_status read_whole(text *t, const lnt_text_field *f, uint64_t *value)
{
    char copy[LONGEST_NUMBER], *end;
    const char *from = t->at;
    LNT_TRY(number_text(t, copy));
    for (const lnt_text_word *w = f->words; w && w->name; w++)
        if (strcmp(w->name, copy) == 0) {
            *value = (uint64_t)w->number;
            return LNT_OK;
        }
    const bool negative = copy[0] == '-';
    const char *digits = copy + negative;
    errno = 0;
    *value = strtoull(digits, &end, 0);
    FAIL_UNLESS(is_digit(*digits) && !*end, t, from, "%s: '%s' is no whole number%s", f->name, copy,
                f->words ? ", and none of the names" : "");
    const uint64_t most = f->kind == LNT_TEXT_UINT64  ? UINT64_MAX
                          : f->kind == LNT_TEXT_INT64 ? (uint64_t)INT64_MAX + negative
                                                      : (uint64_t)INT32_MAX + negative;
    FAIL_UNLESS(!errno && *value <= most && !(negative && f->kind == LNT_TEXT_UINT64), t, from,
                "%s: %s is out of range", f->name, copy);
    *value = negative ? 0 - *value : *value;
    return LNT_OK;
}

static bool same_word(const char *a, const char *lower)
{
    for (; *a && (*a | 32) == *lower; a++)
        lower++;
    return !*a && !*lower;
}

/* Digits, a point, an exponent and perhaps an f behind it: no hexadecimal ones, which strtod would take. */
static bool is_decimal(const char *c)
{
    const bool starts = is_digit(*c) || (*c == '.' && is_digit(c[1]));
    while (is_digit(*c) || *c == '.')
        c++;
    if (*c == 'e' || *c == 'E') {
        c += c[1] == '-' || c[1] == '+' ? 2 : 1;
        while (is_digit(*c))
            c++;
    }
    return starts && (!*c || ((*c == 'f' || *c == 'F') && !c[1]));
}

/* A float's or a double's bits. */
static lnt_status read_real(text *t, const lnt_text_field *f, uint64_t *bits)
{
    char copy[LONGEST_NUMBER], *end;
    const char *from = t->at;
    LNT_TRY(number_text(t, copy));
    const char *size = copy + (copy[0] == '-');
    const bool named = same_word(size, "inf") || same_word(size, "infinity") || same_word(size, "nan");
    FAIL_UNLESS(named || is_decimal(size), t, from, "%s: '%s' is no number", f->name, copy);
    const float narrow = strtof(copy, &end);
    const double wide = strtod(copy, &end);
    FAIL_UNLESS(!*end || ((*end | 32) == 'f' && !end[1]), t, from, "%s: '%s' is no number", f->name, copy);
    uint32_t narrow_bits;
    memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
    memcpy(bits, &wide, sizeof *bits);
    if (f->kind == LNT_TEXT_FLOAT)
        *bits = narrow_bits;
    return LNT_OK;
}

/* ---- strings ---- */

static int digit_value(char c)
{
    return is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
}

/* Up to most digits of this base, one at least; false if there is none. */
static bool read_digits(text *t, int base, int most, uint32_t *value)
{
    int n = 0;
    for (*value = 0; n < most && t->at < t->end && digit_value(*t->at) < base; n++)
        *value = *value * (uint32_t)base + (uint32_t)digit_value(*t->at++);
    return n > 0;
}

static void put_utf8(text *t, uint32_t c)
{
    if (c < 0x80) {
        t->out[t->n++] = (uint8_t)c;
        return;
    }
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    const unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    t->out[t->n++] = (uint8_t)(lead[more] | c >> 6 * more);
    for (unsigned i = more; i-- > 0;)
        t->out[t->n++] = (uint8_t)(0x80 | (c >> 6 * i & 0x3f));
}

/* What stands behind a backslash. */
static lnt_status read_escape(text *t)
{
    static const char plain[] = "abfnrtv\\'\"?", means[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *from = t->at - 1, c = t->at < t->end ? *t->at++ : '\0';
    const char *found = c ? strchr(plain, c) : NULL;
    uint32_t value = 0;
    bool right = true;
    if (found)
        value = (uint8_t)means[found - plain];
    else if (c >= '0' && c <= '7') {
        t->at--;
        right = read_digits(t, 8, 3, &value) && value < 256;
    } else if (c == 'x' || c == 'X') {
        right = read_digits(t, 16, 2, &value);
    } else if (c == 'u' || c == 'U') {
        const char *digits = t->at;
        const int n = c == 'u' ? 4 : 8;
        right = read_digits(t, 16, n, &value) && t->at - digits == n && value < 0x110000 &&
                (value < 0xd800 || value > 0xdfff);
        FAIL_UNLESS(right, t, from, "no character is written so");
        put_utf8(t, value);
        return LNT_OK;
    } else {
        right = false;
    }
    FAIL_UNLESS(right, t, from, "no character is written so");
    t->out[t->n++] = (uint8_t)value;
    return LNT_OK;
}

/* One literal between quotes. */
static lnt_status read_literal(text *t)
{
    LNT_ASSERT(t->at < t->end && (*t->at == '"' || *t->at == '\''));
    const char *from = t->at, quote = *t->at++;
    while (t->at < t->end && *t->at != quote) {
        FAIL_UNLESS(*t->at != '\n', t, from, "the string that begins here does not end on its line");
        LNT_TRY(reserve(t, 4));
        const char c = *t->at++;
        if (c == '\\')
            LNT_TRY(read_escape(t));
        else
            t->out[t->n++] = (uint8_t)c;
    }
    FAIL_UNLESS(t->at < t->end, t, from, "the string that begins here does not end");
    t->at++;
    return LNT_OK;
}

/* Literals that follow each other are one string. */
static lnt_status read_string(text *t, const lnt_text_field *f)
{
    size_t length;
    FAIL_UNLESS(peek(t) == '"' || peek(t) == '\'', t, t->at, "%s takes a string between quotes", f->name);
    LNT_TRY(put_tag(t, f, LNT_WIRE_BYTES));
    open_length(t, &length);
    while (peek(t) == '"' || peek(t) == '\'')
        LNT_TRY(read_literal(t));
    close_length(t, length);
    return LNT_OK;
}

/* ---- messages ---- */

static lnt_status read_fields(text *t, lnt_text_message message, char close, const char *from);

static lnt_status read_message(text *t, const lnt_text_field *f)
{
    const char *from = t->at;
    const char open = peek(t);
    size_t length;
    FAIL_UNLESS(open == '{' || open == '<', t, t->at, "%s takes a message: { ... }", f->name);
    FAIL_UNLESS(t->depth < DEEPEST, t, from, "more than %d messages within each other", DEEPEST);
    from = t->at++;
    t->depth++;
    LNT_TRY(put_tag(t, f, LNT_WIRE_BYTES));
    open_length(t, &length);
    LNT_TRY(read_fields(t, f->of, open == '{' ? '}' : '>', from));
    close_length(t, length);
    t->depth--;
    return LNT_OK;
}

static lnt_status read_value(text *t, const lnt_text_field *f)
{
    uint64_t value = 0;
    skip_blank(t);
    switch (f->kind) {
    case LNT_TEXT_STRING: return read_string(t, f);
    case LNT_TEXT_OF_MESSAGE: return read_message(t, f);
    case LNT_TEXT_FLOAT:
    case LNT_TEXT_DOUBLE: {
        const bool narrow = f->kind == LNT_TEXT_FLOAT;
        LNT_TRY(read_real(t, f, &value));
        LNT_TRY(put_tag(t, f, narrow ? LNT_WIRE_FIXED32 : LNT_WIRE_FIXED64));
        put_fixed(t, value, narrow ? 4 : 8);
        return LNT_OK;
    }
    default:
        LNT_TRY(read_whole(t, f, &value));
        LNT_TRY(put_tag(t, f, LNT_WIRE_VARINT));
        put_varint(t, value);
        return LNT_OK;
    }
}

/* "[1, 2]" is as good as the field given twice. */
static lnt_status read_values(text *t, const lnt_text_field *f)
{
    skip_blank(t);
    const char *from = t->at;
    if (!accept(t, '['))
        return read_value(t, f);
    FAIL_UNLESS(f->repeated, t, from, "%s is no list", f->name);
    if (accept(t, ']'))
        return LNT_OK;
    for (;;) {
        LNT_TRY(read_value(t, f));
        if (accept(t, ']'))
            return LNT_OK;
        FAIL_UNLESS(accept(t, ','), t, t->at, "a list goes on with , or ends with ]");
    }
}

/* A name and what it is set to. *given: of fields that may be given once, those that were, by their numbers. */
static lnt_status read_field(text *t, lnt_text_message message, uint64_t *given)
{
    const char *from = t->at;
    const size_t length = word_length(t);
    FAIL_UNLESS(length, t, from, "a field of %s is expected, not '%.1s'", lnt_text_message_name(message),
                from);
    const lnt_text_field *f = lnt_text_find(message, from, length);
    FAIL_UNLESS(f, t, from, "%s has no field '%.*s'", lnt_text_message_name(message),
                (int)(length < 64 ? length : 64), from);
    FAIL_UNLESS(f->repeated || !(*given >> f->number & 1), t, from, "%s is there twice", f->name);
    *given |= UINT64_C(1) << f->number;
    t->at += length;
    const bool colon = accept(t, ':');
    FAIL_UNLESS(colon || f->kind == LNT_TEXT_OF_MESSAGE, t, t->at, "a colon is missing behind %s", f->name);
    LNT_TRY(read_values(t, f));
    if (!accept(t, ','))
        (void)accept(t, ';');
    return LNT_OK;
}

/* Fields up to close, 0: the end of the text. from: where the message begins. */
static lnt_status read_fields(text *t, lnt_text_message message, char close, const char *from)
{
    uint64_t given = 0;
    while (!close || !accept(t, close)) {
        skip_blank(t);
        if (t->at == t->end) {
            FAIL_UNLESS(!close, t, from, "the message that begins here is not closed by %c", close);
            return LNT_OK;
        }
        LNT_TRY(read_field(t, message, &given));
    }
    return LNT_OK;
}

bool lnt_text_model(const void *bytes, size_t size)
{
    text t = {.begin = bytes, .at = bytes, .end = (const char *)bytes + size};
    if (!size || !is_letter(peek(&t)))
        return false;
    const size_t length = word_length(&t);
    if (!lnt_text_find(LNT_TEXT_MODEL, t.at, length))
        return false;
    t.at += length;
    const char next = peek(&t);
    return next == ':' || next == '{' || next == '<';
}

size_t lnt_text_model_ending(const char *path)
{
    static const char *const endings[] = {".textproto", ".pbtxt", ".prototxt", ".onnxtxt"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t length = strlen(endings[i]);
        if (n > length && strcmp(path + n - length, endings[i]) == 0)
            return length;
    }
    return 0;
}

lnt_status lnt_text_model_parse(const void *bytes, size_t size, const lnt_allocator *a, void **onnx,
                                size_t *onnx_size, lnt_error *err)
{
    text t = {.begin = bytes, .at = bytes, .end = (const char *)bytes + size, .allocator = a, .err = err};
    lnt_status status = reserve(&t, FIRST_BYTES);
    if (status == LNT_OK)
        status = read_fields(&t, LNT_TEXT_MODEL, '\0', t.begin);
    if (status != LNT_OK) {
        lnt_free(a, t.out);
        t.out = NULL;
    }
    *onnx = t.out;
    *onnx_size = t.n;
    return status;
}
