/* literal.c — the elements of a tensor as somebody types them. */
#include "cli/data/literal.h"

#include "base/half.h"
#include "base/small.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Element i becomes value. */
#define PUT(type, value) (data ? (void)(((type *)data)[i] = (type)(value)) : (void)0)

/* An integer from low to high, which stands from text up to *end. */
static bool read_integer(const char *text, int64_t low, int64_t high, char **end, int64_t *value)
{
    errno = 0;
    *value = strtoll(text, end, 10);
    return *end != text && errno == 0 && *value >= low && *value <= high;
}

/* false, true, or an integer: 0, 1. */
static bool read_bool(const char *text, char **end, int64_t *value)
{
    static const char *const words[] = {"false", "true"};
    for (int k = 0; k < 2; k++)
        if (strncmp(text, words[k], strlen(words[k])) == 0) {
            *end = (char *)(uintptr_t)text + strlen(words[k]);
            *value = k;
            return true;
        }
    return read_integer(text, 0, 1, end, value);
}

/* Element i is what stands from text up to *end; false where dtype cannot hold it. */
static bool read_element(const char *text, lnt_dtype dtype, void *data, size_t i, char **end)
{
    int64_t n = 0;
    switch (dtype) {
#define INTEGER(NAME, type, low, high)                                                                       \
    case NAME:                                                                                               \
        if (!read_integer(text, low, high, end, &n))                                                         \
            return false;                                                                                    \
        PUT(type, n);                                                                                        \
        return true;
        INTEGER(LNT_INT2, int8_t, -2, 1)
        INTEGER(LNT_UINT2, uint8_t, 0, 3)
        INTEGER(LNT_INT4, int8_t, -8, 7)
        INTEGER(LNT_UINT4, uint8_t, 0, 15)
        INTEGER(LNT_INT8, int8_t, INT8_MIN, INT8_MAX)
        INTEGER(LNT_INT16, int16_t, INT16_MIN, INT16_MAX)
        INTEGER(LNT_INT32, int32_t, INT32_MIN, INT32_MAX)
        INTEGER(LNT_INT64, int64_t, INT64_MIN, INT64_MAX)
        INTEGER(LNT_UINT8, uint8_t, 0, UINT8_MAX)
        INTEGER(LNT_UINT16, uint16_t, 0, UINT16_MAX)
        INTEGER(LNT_UINT32, uint32_t, 0, UINT32_MAX)
        INTEGER(LNT_UINT64, uint64_t, 0, INT64_MAX)
#undef INTEGER
    case LNT_BOOL:
        if (!read_bool(text, end, &n))
            return false;
        PUT(uint8_t, n);
        return true;
    default: break;
    }
    const double x = strtod(text, end);
    if (dtype == LNT_FLOAT)
        PUT(float, x);
    else if (dtype == LNT_DOUBLE)
        PUT(double, x);
    else if (dtype == LNT_FLOAT16)
        PUT(uint16_t, lnt_float_to_f16((float)x));
    else if (dtype == LNT_BFLOAT16)
        PUT(uint16_t, lnt_float_to_bf16((float)x));
    else if (lnt_is_small(dtype))
        PUT(uint8_t, lnt_small_nearest(dtype, (float)x));
    return *end != text;
}

static const char *skip_space(const char *c)
{
    return c + strspn(c, " ");
}

lnt_status lnt_literal_elements(const char *text, lnt_dtype dtype, void *data, size_t *n, lnt_error *err)
{
    const char *c = skip_space(text);
    const bool list = *c == '[';
    c += list;
    for (*n = 0;; c++) {
        char *end = (char *)(uintptr_t)c;
        LNT_REQUIRE(read_element(skip_space(c), dtype, data, *n, &end), err, LNT_E_VALUE,
                    "'%s' is no %s, nor a list of them, nor a file", text, lnt_dtype_text(dtype));
        ++*n;
        c = skip_space(end);
        if (*c != ',')
            break;
    }
    c = list && *c == ']' ? skip_space(c + 1) : c;
    LNT_REQUIRE(!*c && (!list || strchr(text, ']')), err, LNT_E_VALUE,
                "'%s' does not end as a list of %s does", text, lnt_dtype_text(dtype));
    return LNT_OK;
}

bool lnt_is_literal(const char *text)
{
    size_t n;
    return lnt_literal_elements(text, LNT_DOUBLE, NULL, &n, NULL) == LNT_OK ||
           lnt_literal_elements(text, LNT_BOOL, NULL, &n, NULL) == LNT_OK;
}
