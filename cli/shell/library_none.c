/* library_none.c — a program linked statically opens no libraries. */
#include "cli/shell/library.h"

lnt_status lnt_library_symbol(const char *path, const char *symbol, void **address, lnt_error *err)
{
    (void)symbol;
    (void)address;
    return lnt_fail(err, LNT_E_UNSUPPORTED, "%s: a static program opens no libraries: build without STATIC=1",
                    path);
}
