/* error.c — stating failures, and the texts of statuses and element types. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *lnt_status_text(lnt_status status)
{
    switch (status) {
#define X(name, number, text) case LNT_##name: return text;
        LNT_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

const char *lnt_dtype_text(lnt_dtype dtype)
{
    switch (dtype) {
    case LNT_UNDEFINED: return "undefined";
#define X(name, number, bits, text) case LNT_##name: return text;
        LNT_DTYPE_LIST(X)
#undef X
    }
    return "unknown type";
}

size_t lnt_dtype_size(lnt_dtype dtype)
{
    switch (dtype) {
    case LNT_UNDEFINED: return 0;
#define X(name, number, bits, text) case LNT_##name: return bits / 8;
        LNT_DTYPE_LIST(X)
#undef X
    }
    return 0;
}

lnt_status lnt_fail(lnt_error *err, lnt_status code, const char *format, ...)
{
    if (err && err->code == LNT_OK) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        err->code = code;
    }
    return code;
}

void lnt_error_prefix(lnt_error *err, const char *format, ...)
{
    if (!err || err->code == LNT_OK)
        return;
    char tail[sizeof err->message];
    memcpy(tail, err->message, sizeof tail);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    size_t used = length < 0 ? 0 : (size_t)length;
    if (used < sizeof err->message)
        snprintf(err->message + used, sizeof err->message - used, "%s", tail);
}
