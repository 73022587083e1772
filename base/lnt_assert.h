/* lnt_assert.h — what the code relies on, said where it relies on it.
 *
 * An assertion is a promise that one part of the library makes to another. What comes from a file, a caller
 * or the system is tested in every build and ends in an error; it may not be left to an assertion. Builds
 * with a sanitizer (make SAN=..., which defines LNT_CHECKED) stop where a promise is broken; in others the
 * condition is not evaluated. */
#ifndef LNT_BASE_LNT_ASSERT_H
#define LNT_BASE_LNT_ASSERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef LNT_CHECKED
#define LNT_ASSERT(condition) ((condition) ? (void)0 : lnt_assert_failed(__FILE__, __LINE__, #condition))
/* Says what failed and where, and stops the program. */
_Noreturn void lnt_assert_failed(const char *file, int line, const char *text);
#else
#define LNT_ASSERT(condition) ((void)sizeof(!(condition)))
#endif

/* Does the address sanitizer watch? */
#if defined(__SANITIZE_ADDRESS__)
#define LNT_IS_WATCHED 1
#elif defined(__has_feature)
#define LNT_IS_WATCHED __has_feature(address_sanitizer)
#else
#define LNT_IS_WATCHED 0
#endif

/* Is p a multiple of `bytes`, a power of two? */
static inline bool lnt_is_aligned(const void *p, size_t bytes)
{
    return ((uintptr_t)p & (bytes - 1)) == 0;
}

#endif
