/* folder.c — what is in a folder. */
#include "cli/data/folder.h"

#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static DIR *open_folder(const char *folder)
{
    DIR *d;
    do
        d = opendir(folder);
    while (!d && errno == EINTR);
    return d;
}

/* False where the names could not all be read; errno tells why. */
static bool add_names(DIR *d, lnt_texts *names)
{
    const struct dirent *e;
    for (errno = 0; (e = readdir(d)); errno = 0)
        if (e->d_name[0] != '.')
            lnt_texts_add(names, lnt_cli_text("%s", e->d_name));
    return errno == 0;
}

lnt_status lnt_folder_names(const char *folder, lnt_texts *names, lnt_error *err)
{
    const size_t first = names->n;
    DIR *d = open_folder(folder);
    if (!d && (errno == ENOENT || errno == ENOTDIR))
        return LNT_OK;
    const bool whole = d && add_names(d, names);
    const int why = errno;
    if (d)
        closedir(d);
    LNT_REQUIRE(whole, err, LNT_E_IO, "cannot read %s: %s", folder, strerror(why));
    if (names->n > first)
        qsort(names->item + first, names->n - first, sizeof *names->item, by_text);
    return LNT_OK;
}
