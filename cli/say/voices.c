/* voices.c — where voices are. */
#include "cli/say/voices.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The folder that the program is in; "": not known. */
static const char *program_folder(void)
{
    static char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return path;
}

static const char *find_in(const char *folder, const char *name)
{
    static const char *const ends[] = {"", ".lnt", ".onnx"};
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        const char *path = lnt_cli_text("%s/%s%s", folder, name, ends[k]);
        if (access(path, F_OK) == 0)
            return path;
    }
    return NULL;
}

const char *lnt_find_voice(const char *name, const lnt_texts *folders)
{
    /* from the program's folder: beside it, where it is installed, where it was built, for a board too */
    static const char *const own[] = {"voices", "../share/linnet/voices", "../speech/voices",
                                      "../../speech/voices"};
    const char *found = NULL, *program = program_folder();
    if (name && access(name, F_OK) == 0)
        return name;
    if (name && !folders->n)
        found = find_in(".", name);
    for (size_t i = 0; name && !found && i < folders->n; i++)
        found = find_in(folders->item[i], name);
    for (size_t i = 0; *program && !found && i < sizeof own / sizeof *own; i++)
        found = find_in(lnt_cli_text("%s/%s", program, own[i]), name ? name : LNT_DEFAULT_VOICE);
    return found;
}
