/* library_dl.c — shared libraries by dlopen. */
#include "cli/library.h"

#include <dlfcn.h>

lnt_status lnt_library_symbol(const char *path, const char *symbol, void **address, lnt_error *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    LNT_REQUIRE(library, err, LNT_E_NOT_FOUND, "%s", dlerror());
    *address = dlsym(library, symbol);
    LNT_REQUIRE(*address, err, LNT_E_UNSUPPORTED, "%s has no function %s", path, symbol);
    return LNT_OK;
}
