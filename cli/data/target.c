/* target.c — what may be written where. */
#include "cli/data/target.h"

#include "cli/data/audio.h"
#include "cli/data/model.h"
#include "formats/lnt_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef _WIN32
#define same_file lnt_windows_same_file /* its struct stat has no numbers of files */
#else
static bool same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && S_ISREG(one.st_mode) && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}
#endif

/* Does the folder that path is in take new files? */
static lnt_status check_parent(const char *option, const char *path, lnt_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *folder = !slash ? "." : slash == path ? "/" : lnt_cli_text("%.*s", (int)(slash - path), path);
    struct stat info;
    if (stat(folder, &info) == 0 && !S_ISDIR(info.st_mode))
        errno = ENOTDIR;
    else if (access(folder, W_OK | X_OK) == 0)
        return LNT_OK;
    return lnt_fail(err, LNT_E_IO, "%s %s: cannot create files in %s: %s", option, path, folder,
                    strerror(errno));
}

lnt_status lnt_target_folder(const char *option, const char *path, lnt_error *err)
{
    struct stat info;
    const size_t length = strlen(path);
    if (stat(path, &info) == 0) {
        LNT_REQUIRE(S_ISDIR(info.st_mode), err, LNT_E_IO, "%s %s: is no folder", option, path);
        return LNT_OK;
    }
    return check_parent(
        option, lnt_cli_text("%.*s", (int)(length - (length > 1 && path[length - 1] == '/')), path), err);
}

lnt_status lnt_target_is_new(const char *option, const char *path, const char *const *read, size_t n,
                             lnt_error *err)
{
    for (size_t i = 0; i < n; i++)
        LNT_REQUIRE(!read[i] || !same_file(path, read[i]), err, LNT_E_ARGUMENT,
                    "%s %s is a file that is read, %s: give it another name", option, path, read[i]);
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return check_parent(option, path, err);
    LNT_REQUIRE(!S_ISDIR(info.st_mode), err, LNT_E_IO,
                "%s %s is a folder: it is not replaced; give the name of a file", option, path);
    return LNT_OK;
}

/* Endings of files of raw elements. */
static bool is_raw(const char *ending)
{
    static const char *const raw[] = {".bin", ".raw", ".dat", ".data", ".f32", ".f64",
                                      ".f16", ".i8",  ".u8",  ".i32",  ".i64"};
    for (size_t i = 0; i < sizeof raw / sizeof *raw; i++)
        if (strcmp(ending, raw[i]) == 0)
            return true;
    return false;
}

lnt_status lnt_target_takes_tensor(const char *option, const char *path, lnt_error *err)
{
    const char *slash = strrchr(path, '/'), *ending = strrchr(slash ? slash : path, '.');
    LNT_REQUIRE(!ending || is_raw(ending) || lnt_sound_name(path) || strcmp(ending, ".npy") == 0 ||
                    strcmp(ending, ".pb") == 0,
                err, LNT_E_ARGUMENT,
                "%s %s: no %s can be written, but .npy, .pb, sound (.wav .flac .ogg), and raw elements "
                "(.bin, .raw, .f32, "
                "no ending)",
                option, path, ending);
    return LNT_OK;
}

lnt_status lnt_target_write(const char *path, lnt_writer *write, const void *what, lnt_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    LNT_REQUIRE(out, err, LNT_E_MEMORY, "no memory for %s", path);
    write(what, out);
    const bool whole = !ferror(out);
    lnt_status status =
        fclose(out) == 0 && whole ? LNT_OK : lnt_fail(err, LNT_E_MEMORY, "no memory for %s", path);
    if (status == LNT_OK)
        status = lnt_write_atomic(path, text, bytes, err);
    free(text);
    return status;
}
