/* folder.h — what is in a folder. */
#ifndef LNT_CLI_DATA_FOLDER_H
#define LNT_CLI_DATA_FOLDER_H

#include "cli/shell/args.h"
#include "base/linnet_types.h"

/* Adds the names of all that is in folder, but for those that begin with a dot, in the order of their bytes; none if
 * there is no such folder, or it is a file. */
lnt_status lnt_folder_names(const char *folder, lnt_texts *names, lnt_error *err);

#endif
