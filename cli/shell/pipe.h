/* pipe.h — named tensors and small records through a pipe between two processes of this program. */
#ifndef LNT_CLI_SHELL_PIPE_H
#define LNT_CLI_SHELL_PIPE_H

#include "base/linnet_types.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct lnt_named {
    const char *name;
    const char *state; /* of an input: the output that is this input in the next run; NULL: none */
    lnt_tensor tensor;
} lnt_named;

/* False if the other end is gone. */
bool lnt_wire_write(int fd, const void *bytes, size_t n);
bool lnt_wire_read(int fd, void *bytes, size_t n);
bool lnt_wire_put(int fd, const lnt_named *tensor, size_t n);
/* Tensors in memory of lnt_cli_alloc. */
bool lnt_wire_get(int fd, lnt_named **tensor, size_t *n);

#endif
