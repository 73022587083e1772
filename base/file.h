/* file.h — opening and reading files that a user or a model names. */
#ifndef LNT_BASE_FILE_H
#define LNT_BASE_FILE_H

#include "base/error.h"

/* Opens path for reading and gives its size. Only regular files are read: a FIFO, a device or a folder is
 * refused without waiting for it. flags: further ones of open(), as O_NOFOLLOW. */
lnt_status lnt_open_regular(const char *path, int flags, int *fd, size_t *size, lnt_error *err);
/* Reads all of bytes from offset on; path is for the message. */
lnt_status lnt_read_at(int fd, const char *path, void *bytes, size_t size, size_t offset, lnt_error *err);
/* "a FIFO", "a device", ...: what a file of that mode is. */
const char *lnt_file_kind(unsigned mode);

#endif
