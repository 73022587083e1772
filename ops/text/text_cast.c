/* text_cast.c — NumberToText and TextToNumber, which Cast is made into where one side is text.
 *
 * Floats have as few digits as tell them apart, as numpy writes them; NaN, INF and -INF are as ONNX has them. Nothing
 * of it depends on the locale. */
#include "ops/text/words.h"

#include "ops/element.h"
#include "ops/number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 48, LONGEST = 400 };

/* ---- numbers to text ---- */

/* Does a number of n digits come back as x? */
static bool comes_back(double x, bool narrow, int digits, char text[ROOM])
{
    snprintf(text, ROOM, "%.*e", digits - 1, x);
    const double back = strtod(text, NULL);
    return narrow ? (float)back == (float)x : back == x;
}

/* x in digits, d.dddde±dd as printf has it: those that count, and the power of ten of the first. */
static int shortest(double x, bool narrow, char digits[ROOM], int *power)
{
    char text[ROOM];
    int n = 0;
    for (int count = 1; !comes_back(x, narrow, count, text) && count < 17;)
        count++;
    const char *e = strchr(text, 'e');
    for (const char *c = text; e && c < e; c++)
        if (*c >= '0' && *c <= '9')
            digits[n++] = *c;
    *power = e ? (int)strtol(e + 1, NULL, 10) : 0;
    return n;
}

/* A finite float: plain where its power of ten is from -4 to 15. */
static int put_real(double x, bool narrow, char out[ROOM])
{
    char digits[ROOM];
    int power, n = 0;
    const int count = shortest(fabs(x), narrow, digits, &power);
    if (signbit(x))
        out[n++] = '-';
    if (power < -4 || power > 15) {
        out[n++] = digits[0];
        if (count > 1)
            n += snprintf(out + n, (size_t)(ROOM - n), ".%.*s", count - 1, digits + 1);
        return n + snprintf(out + n, (size_t)(ROOM - n), "e%+03d", power);
    }
    for (int i = power < 0 ? power : 0, last = count > power + 1 ? count : power + 2; i < last; i++) {
        out[n++] = i >= 0 && i < count ? digits[i] : '0';
        if (i == power) /* behind the ones; below 1 that is the 0 in front */
            out[n++] = '.';
    }
    return n;
}

/* Element i as text; its length. */
static int put_number(lnt_dtype type, const void *x, int64_t i, char out[ROOM])
{
    if (lnt_is_floating(type)) {
        const double v = lnt_load_number(type, x, i);
        return isnan(v)   ? snprintf(out, ROOM, "NaN")
               : isinf(v) ? snprintf(out, ROOM, v < 0 ? "-INF" : "INF")
                          : put_real(v, type != LNT_DOUBLE, out);
    }
    if (type == LNT_UINT64)
        return snprintf(out, ROOM, "%" PRIu64, ((const uint64_t *)x)[i]);
    if (type == LNT_INT64)
        return snprintf(out, ROOM, "%" PRId64, ((const int64_t *)x)[i]);
    return snprintf(out, ROOM, "%" PRId64, (int64_t)lnt_load_number(type, x, i));
}

static lnt_status run_number_to_text(lnt_kernel *k, const lnt_step *s)
{
    enum { POLLED = 1024 };
    lnt_text *const *text = s->params;
    const lnt_operand *in = s->in[0];
    const int64_t n = lnt_operand_count(in);
    int64_t *y = lnt_out(k, s, 0);
    for (int64_t i = 0; i < n; i++) {
        char word[ROOM];
        const int length = put_number((lnt_dtype)in->dtype, lnt_in(k, s, 0), i, word);
        LNT_TRY(lnt_text_put(*text, &(lnt_chars){word, (size_t)length}, 1, &y[i], k->err));
        if (i % POLLED == 0)
            LNT_TRY(lnt_poll(k));
    }
    return LNT_OK;
}

lnt_status lnt_bind_number_to_text(lnt_site *site)
{
    const lnt_dtype type = (lnt_dtype)site->in[0]->dtype;
    if (!site->text)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "works on text, and the model has none");
    if (type == LNT_UNDEFINED || type >= LNT_DTYPE_COUNT || type == LNT_STRING)
        return lnt_bind_unsupported_type(site, type);
    lnt_text **text = lnt_bind_params(site, sizeof *text);
    if (!text)
        return LNT_E_MEMORY;
    *text = site->text;
    site->step->run = run_number_to_text;
    return LNT_OK;
}

/* ---- text to numbers ---- */

/* A decimal number without its point, "3.14e5" as "314e3", which every locale reads alike; false if it is none, or too
 * long. */
static bool without_point(const char *c, char out[LONGEST])
{
    size_t n = 0, digits = 0;
    long power = 0;
    bool point = false;
    if (*c == '+' || *c == '-')
        out[n++] = *c++;
    for (; (*c >= '0' && *c <= '9') || (*c == '.' && !point); c++) {
        if (n > LONGEST - 32)
            return false;
        point |= *c == '.';
        if (*c == '.')
            continue;
        out[n++] = *c;
        digits++;
        power -= point;
    }
    if (*c == 'e' || *c == 'E') {
        char *end;
        const long given = strtol(c + 1, &end, 10);
        if (end == c + 1 || given > 100000 || given < -100000)
            return false;
        power += given;
        c = end;
    }
    snprintf(out + n, LONGEST - n, "e%ld", power);
    return digits > 0 && !*c;
}

static bool is_word(const char *c, const char *word)
{
    for (; *c && *word; c++, word++)
        if ((*c | 0x20) != *word)
            return false;
    return *c == *word;
}

static bool take_real(const char *c, double *x)
{
    char plain[LONGEST];
    const char *unsigned_c = c + (*c == '-' || *c == '+');
    if (is_word(unsigned_c, "inf") || is_word(unsigned_c, "infinity")) {
        *x = *c == '-' ? -INFINITY : INFINITY;
    } else if (is_word(unsigned_c, "nan")) {
        *x = NAN;
    } else if (without_point(c, plain)) {
        *x = strtod(plain, NULL);
    } else {
        return false;
    }
    return true;
}

/* Of integers of 32 bits and fewer. */
static bool in_range(lnt_dtype type, double x)
{
    const bool has_sign = type == LNT_INT8 || type == LNT_INT16 || type == LNT_INT32;
    const double span = ldexp(1, (int)(8 * lnt_dtype_size(type)));
    return has_sign ? x >= -span / 2 && x < span / 2 : x >= 0 && x < span;
}

/* Element i becomes what the word says; false if the type has no such number. */
static bool take_number(const char *word, lnt_dtype type, void *y, int64_t i)
{
    double real;
    char *end;
    word += strspn(word, " \t\n\r");
    errno = 0;
    if (type == LNT_INT64 || type == LNT_UINT64) {
        const uint64_t whole =
            type == LNT_INT64 ? (uint64_t)strtoll(word, &end, 10) : (uint64_t)strtoull(word, &end, 10);
        ((uint64_t *)y)[i] = whole;
        return end != word && !*end && !errno && (type == LNT_INT64 || *word != '-');
    }
    if (!take_real(word, &real))
        return false;
    if (!lnt_is_floating(type) && type != LNT_BOOL) {
        real = trunc(real);
        if (!in_range(type, real))
            return false;
    }
    return lnt_store_number(type, y, i, real);
}

static lnt_status run_text_to_number(lnt_kernel *k, const lnt_step *s)
{
    enum { POLLED = 1024 };
    lnt_text *const *text = s->params;
    const int64_t *x = lnt_in(k, s, 0), n = lnt_operand_count(s->in[0]);
    const lnt_dtype type = (lnt_dtype)s->out[0]->dtype;
    for (int64_t i = 0; i < n; i++) {
        lnt_chars word;
        LNT_TRY(lnt_text_get(*text, x[i], &word, k->err));
        LNT_REQUIRE(take_number(word.at, type, lnt_out(k, s, 0), i), k->err, LNT_E_VALUE,
                    "element %lld, '%.40s', is no %s", (long long)i, word.at, lnt_dtype_text(type));
        if (i % POLLED == 0)
            LNT_TRY(lnt_poll(k));
    }
    return LNT_OK;
}

lnt_status lnt_shape_text_to_number(lnt_site *site)
{
    const int64_t to = lnt_attr_i(site->node, "to", 0);
    if (to <= LNT_UNDEFINED || to >= (int64_t)LNT_DTYPE_COUNT || to == LNT_STRING)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "text becomes no element type number %lld",
                             (long long)to);
    lnt_set_type(site, 0, (lnt_dtype)to);
    if (site->in[0]->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    return lnt_shape_same(site);
}

lnt_status lnt_bind_text_to_number(lnt_site *site)
{
    LNT_TRY(lnt_require_text(site));
    lnt_text **text = lnt_bind_params(site, sizeof *text);
    if (!text)
        return LNT_E_MEMORY;
    *text = site->text;
    site->step->run = run_text_to_number;
    return LNT_OK;
}
