/* read_json.c — a strict reader of JSON. */
#include "speech/read_json.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

/* text[0..bytes] ends with a NUL that is not part of it. */
typedef struct reader {
    const char *text;
    size_t at, bytes, values;
    lnt_bump *memory;
    lnt_error *err;
} reader;

static lnt_status wrong(const reader *r, const char *what)
{
    size_t line = 1;
    for (size_t i = 0; i < r->at; i++)
        line += r->text[i] == '\n';
    return lnt_fail(r->err, LNT_E_VALUE, "no valid JSON at byte %zu, in line %zu: %s", r->at, line, what);
}

static void skip_blanks(reader *r)
{
    while (r->text[r->at] && strchr(" \t\r\n", r->text[r->at]))
        r->at++;
}

static bool take(reader *r, char c)
{
    const bool found = r->text[r->at] == c && r->at < r->bytes;
    r->at += found;
    return found;
}

static bool take_word(reader *r, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(r->text + r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* ---- texts ---- */

/* Four hexadecimal digits. */
static bool take_hex(reader *r, uint32_t *code)
{
    static const char digits[] = "0123456789abcdef";
    *code = 0;
    for (unsigned i = 0; i < 4; i++) {
        const char c = r->text[r->at], *d = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
        if (!d)
            return false;
        *code = *code << 4 | (uint32_t)(d - digits);
        r->at++;
    }
    return true;
}

/* What follows "\u": a character, of two halves where it is beyond the first 65,536. */
static bool take_code(reader *r, uint32_t *code)
{
    uint32_t low;
    if (!take_hex(r, code))
        return false;
    if (*code < 0xd800 || *code > 0xdfff)
        return *code != 0;
    if (*code > 0xdbff || !take_word(r, "\\u") || !take_hex(r, &low) || low < 0xdc00 || low > 0xdfff)
        return false;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static lnt_status take_escape(reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
    const char c = r->text[r->at], *known = c ? strchr(from, c) : NULL;
    uint32_t code;
    if (known) {
        r->at++;
        *(*to)++ = is[known - from];
        return LNT_OK;
    }
    if (!take(r, 'u') || !take_code(r, &code))
        return wrong(r, "an escape that is none");
    *to += lnt_utf8_put(code, *to);
    return LNT_OK;
}

/* Behind the opening quote. What is read is no longer than what is written. */
static lnt_status take_text(reader *r, const char **text)
{
    const char *from = r->text + r->at;
    size_t length = 0;
    while (from[length] && from[length] != '"')
        length += from[length] == '\\' && from[length + 1] ? 2 : 1;
    char *to = lnt_bump_alloc(r->memory, length + 1, r->err);
    if (!to)
        return LNT_E_MEMORY;
    *text = to;
    while (!take(r, '"')) {
        const unsigned n = lnt_utf8_bytes(r->text + r->at);
        if (r->at >= r->bytes || !n || (unsigned char)r->text[r->at] < 0x20)
            return wrong(r, r->at >= r->bytes ? "a text without end" : "a control character, or no UTF-8");
        if (take(r, '\\')) {
            LNT_TRY(take_escape(r, &to));
            continue;
        }
        memcpy(to, r->text + r->at, n);
        to += n;
        r->at += n;
    }
    return LNT_OK;
}

/* ---- numbers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits become part of the number; scale counts them. */
static bool take_digits(reader *r, double *number, int *scale)
{
    const size_t begin = r->at;
    for (; is_digit(r->text[r->at]); r->at++, ++*scale)
        *number = *number * 10 + (r->text[r->at] - '0');
    return r->at > begin;
}

static bool take_exponent(reader *r, int *exponent)
{
    double e = 0;
    int digits = 0;
    const bool minus = take(r, '-');
    if (!minus)
        (void)take(r, '+');
    if (!take_digits(r, &e, &digits))
        return false;
    const int magnitude = e < 9999 ? (int)e : 9999;
    *exponent = minus ? -magnitude : magnitude;
    return true;
}

/* Not strtod: what that takes for a decimal point is the host's locale's. Exact to a unit of double's last place for up
 * to 15 digits. */
static lnt_status take_number(reader *r, double *number)
{
    int whole = 0, fraction = 0, exponent = 0;
    const bool minus = take(r, '-'), zero = r->text[r->at] == '0';
    double x = 0;
    if (!take_digits(r, &x, &whole) || (zero && whole > 1))
        return wrong(r, "a number that is none");
    if (take(r, '.') && !take_digits(r, &x, &fraction))
        return wrong(r, "a point without digits behind it");
    if ((take(r, 'e') || take(r, 'E')) && !take_exponent(r, &exponent))
        return wrong(r, "an exponent without digits");
    exponent -= fraction;
    x = exponent < 0 ? x / pow(10, -exponent) : x * pow(10, exponent);
    *number = minus ? -x : x;
    return isfinite(x) ? LNT_OK : wrong(r, "a number out of range");
}

/* ---- values ---- */

static lnt_status take_value(reader *r, unsigned depth, lnt_json_value **value);

static lnt_status take_key(reader *r, const char **key)
{
    skip_blanks(r);
    if (!take(r, '"'))
        return wrong(r, "a name in quotes is missing");
    LNT_TRY(take_text(r, key));
    skip_blanks(r);
    return take(r, ':') ? LNT_OK : wrong(r, "a colon is missing");
}

static lnt_status take_members(reader *r, unsigned depth, lnt_json_value *of)
{
    const char close = of->kind == LNT_JSON_OBJECT ? '}' : ']';
    lnt_json_value **end = &of->first;
    if (depth == LNT_JSON_DEPTH)
        return wrong(r, "too deep");
    for (skip_blanks(r); !take(r, close); skip_blanks(r)) {
        const char *key = NULL;
        if (of->first && !take(r, ','))
            return wrong(r, "a comma is missing");
        if (of->kind == LNT_JSON_OBJECT)
            LNT_TRY(take_key(r, &key));
        LNT_TRY(take_value(r, depth + 1, end));
        (*end)->key = key;
        end = &(*end)->next;
    }
    return LNT_OK;
}

static lnt_status take_value(reader *r, unsigned depth, lnt_json_value **value)
{
    if (++r->values > LNT_JSON_VALUES)
        return wrong(r, "too many values");
    lnt_json_value *v = *value = lnt_bump_alloc(r->memory, sizeof *v, r->err);
    if (!v)
        return LNT_E_MEMORY;
    skip_blanks(r);
    if (take(r, '{') || take(r, '[')) {
        v->kind = r->text[r->at - 1] == '{' ? LNT_JSON_OBJECT : LNT_JSON_ARRAY;
        return take_members(r, depth, v);
    }
    if (take(r, '"')) {
        v->kind = LNT_JSON_TEXT;
        return take_text(r, &v->text);
    }
    if (take_word(r, "null"))
        return LNT_OK;
    const bool yes = take_word(r, "true");
    v->kind = LNT_JSON_BOOL;
    v->number = yes;
    if (yes || take_word(r, "false"))
        return LNT_OK;
    v->kind = LNT_JSON_NUMBER;
    return take_number(r, &v->number);
}

lnt_status lnt_json_read(const char *text, size_t bytes, lnt_bump *memory, const lnt_json_value **value,
                         lnt_error *err)
{
    reader r = {.bytes = bytes, .memory = memory, .err = err};
    lnt_json_value *top = NULL;
    r.text = lnt_bump_string(memory, text, bytes, err);
    if (!r.text)
        return LNT_E_MEMORY;
    LNT_TRY(take_value(&r, 0, &top));
    skip_blanks(&r);
    *value = top;
    return r.at == bytes ? LNT_OK : wrong(&r, "something stands behind the value");
}

const lnt_json_value *lnt_json_member(const lnt_json_value *object, const char *key)
{
    const lnt_json_value *found = NULL;
    if (!object || object->kind != LNT_JSON_OBJECT)
        return NULL;
    for (const lnt_json_value *v = object->first; v; v = v->next)
        if (strcmp(v->key, key) == 0)
            found = v;
    return found;
}

size_t lnt_json_squeeze(char *text, size_t bytes)
{
    size_t n = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted && text[i] == '\\')
            text[n++] = text[i++];
        if (quoted || !memchr(" \t\r\n", text[i], 4))
            text[n++] = text[i];
    }
    return n;
}
