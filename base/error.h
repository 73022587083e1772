/* error.h — how a failure is stated and passed on.
 *
 *     return lnt_fail(err, LNT_E_SHAPE, "%s: axis %d of rank %d", name, axis, rank);
 *     LNT_TRY(do_this(...));                 // passes a failure on
 *     LNT_REQUIRE(n > 0, err, LNT_E_ARGUMENT, "n must be positive, is %d", n);
 *
 * The first message wins: callers that add context use lnt_error_prefix.
 *
 * A function that holds something calls one that may return early, then releases it, whatever came back:
 *
 *     const lnt_status status = use(&thing);
 *     release(&thing);
 *     return status; */
#ifndef LNT_BASE_ERROR_H
#define LNT_BASE_ERROR_H

#include "base/linnet_types.h"

/* Fills *err (NULL is allowed) unless it already holds a failure; returns code. Put a breakpoint here. */
lnt_status lnt_fail(lnt_error *err, lnt_status code, const char *format, ...) LNT_PRINTF(3, 4);

/* Puts text before the message of a failure. */
void lnt_error_prefix(lnt_error *err, const char *format, ...) LNT_PRINTF(2, 3);

static inline void lnt_error_clear(lnt_error *err)
{
    if (err) {
        err->code = LNT_OK;
        err->message[0] = '\0';
    }
}

#define LNT_TRY(call)                              \
    do {                                           \
        lnt_status lnt_try_status_ = (call);       \
        if (lnt_try_status_ != LNT_OK)             \
            return lnt_try_status_;                \
    } while (0)

#define LNT_REQUIRE(condition, err, code, ...)             \
    do {                                                   \
        if (!(condition))                                  \
            return lnt_fail((err), (code), __VA_ARGS__);   \
    } while (0)

#endif
