/* library_dl.c — shared libraries by dlopen. */
#include "cli/shell/library.h"

#include "base/file.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* dlopen would wait for a FIFO. A name without a folder is looked for in the system's. */
static lnt_status check_path(const char *path, lnt_error *err)
{
    int fd;
    size_t bytes;
    lnt_error why = {0};
    if (!strchr(path, '/'))
        return LNT_OK;
    LNT_REQUIRE(lnt_open_regular(path, 0, &fd, &bytes, &why) == LNT_OK, err, LNT_E_NOT_FOUND, "%s",
                why.message);
    close(fd);
    return LNT_OK;
}

lnt_status lnt_library_symbol(const char *path, const char *symbol, void **address, lnt_error *err)
{
    LNT_TRY(check_path(path, err));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    LNT_REQUIRE(library, err, LNT_E_NOT_FOUND, "%s", dlerror());
    *address = dlsym(library, symbol);
    LNT_REQUIRE(*address, err, LNT_E_UNSUPPORTED, "%s has no function %s", path, symbol);
    return LNT_OK;
}
