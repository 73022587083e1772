/* target.h — what may be written where. */
#ifndef LNT_CLI_DATA_TARGET_H
#define LNT_CLI_DATA_TARGET_H

#include "base/error.h"

#include <stdio.h>

/* LNT_E_ARGUMENT where path, which option asks to be written, is one of the files read; readers may hold NULL.
 * LNT_E_IO where it is a folder, or its folder takes no new files: what takes long should not end so. */
lnt_status lnt_target_is_new(const char *option, const char *path, const char *const *read, size_t n,
                             lnt_error *err);
/* LNT_E_IO where path is no folder, and none can be made there. */
lnt_status lnt_target_folder(const char *option, const char *path, lnt_error *err);
/* LNT_E_ARGUMENT where path ends as a file of a kind that no tensor can be written as. Names without an ending, and
 * .bin, .raw, .dat and others of raw elements, are free. */
lnt_status lnt_target_takes_tensor(const char *option, const char *path, lnt_error *err);

typedef void lnt_writer(const void *what, FILE *out);
/* The file, whole or not at all, as write(what, …) has it. */
lnt_status lnt_target_write(const char *path, lnt_writer *write, const void *what, lnt_error *err);

#endif
