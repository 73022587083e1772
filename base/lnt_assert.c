/* lnt_assert.c — how builds with a sanitizer stop: the only place of the library that prints or aborts. */
#include "base/lnt_assert.h"

#ifdef LNT_CHECKED

#include <stdio.h>
#include <stdlib.h>

/* A sanitizer's; absent where only undefined behavior is watched. */
extern void __sanitizer_print_stack_trace(void) __attribute__((weak));

_Noreturn void lnt_assert_failed(const char *file, int line, const char *text)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, text);
    if (__sanitizer_print_stack_trace)
        __sanitizer_print_stack_trace();
    fflush(stderr);
    abort();
}

#endif
