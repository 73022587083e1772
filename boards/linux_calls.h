/* linux_calls.h — what C libraries of Linux have, and neither macOS nor mingw-w64. */
#ifndef LNT_LINUX_CALLS_H
#define LNT_LINUX_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The last byte of that value among n; NULL: there is none. */
static inline void *lnt_memrchr(const void *bytes, int value, size_t n)
{
    const unsigned char *at = bytes;
    while (n-- > 0)
        if (at[n] == (unsigned char)value)
            return (void *)(uintptr_t)(at + n);
    return NULL;
}
#define memrchr lnt_memrchr

/* Of fopencookie: streams that a function writes. */
typedef struct cookie_io_functions_t {
    ssize_t (*write)(void *cookie, const char *bytes, size_t n);
} cookie_io_functions_t;

#endif
