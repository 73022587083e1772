/* child.h — another program, started beside this one, with pipes to and from it. */
#ifndef LNT_SPEECH_CHILD_H
#define LNT_SPEECH_CHILD_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct lnt_child {
    pid_t pid;    /* 0: none was started */
    int to, from; /* its standard input and output; from -1: what it prints is thrown away */
    const char *name;
} lnt_child;

/* Starts argv[0], looked for along PATH; a NULL ends argv, which stays the caller's. What the program writes to its
 * standard error is thrown away. LNT_E_UNSUPPORTED if there is no such program. */
lnt_status lnt_child_start(const char *const *argv, bool reads, lnt_child *child, lnt_error *err);
/* Writes all of bytes; no signal is raised where nobody reads them. */
lnt_status lnt_child_write(const lnt_child *child, const void *bytes, size_t n, lnt_error *err);
/* Reads what there is, at least a byte and at most size; *n 0: it has ended. Waits up to milliseconds. */
lnt_status lnt_child_read(const lnt_child *child, void *bytes, size_t size, int milliseconds, size_t *n,
                          lnt_error *err);
/* Lets it read to the end of what was written, and waits for it; its exit code in *code, 128 after a signal. */
lnt_status lnt_child_finish(lnt_child *child, int *code, lnt_error *err);
/* Ends it at once. May be called of none. */
void lnt_child_stop(lnt_child *child);

#endif
