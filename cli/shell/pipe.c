/* pipe.c — named tensors through a pipe. */
#include "cli/shell/pipe.h"

#include "cli/shell/args.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool lnt_wire_write(int fd, const void *bytes, size_t n)
{
    for (const char *at = bytes; n;) {
        const ssize_t done = write(fd, at, n);
        if (done < 0 && errno != EINTR)
            return false;
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

bool lnt_wire_read(int fd, void *bytes, size_t n)
{
    for (char *at = bytes; n;) {
        const ssize_t done = read(fd, at, n);
        if (done == 0 || (done < 0 && errno != EINTR))
            return false;
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* NULL and "" are the same in the pipe and come out as NULL. */
static bool put_text(int fd, const char *text)
{
    const size_t n = text ? strlen(text) : 0;
    return lnt_wire_write(fd, &n, sizeof n) && lnt_wire_write(fd, text, n);
}

static bool get_text(int fd, const char **text)
{
    size_t n;
    if (!lnt_wire_read(fd, &n, sizeof n))
        return false;
    char *copy = n ? lnt_cli_alloc(n + 1) : NULL;
    *text = copy;
    return lnt_wire_read(fd, copy, n);
}

bool lnt_wire_put(int fd, const lnt_named *tensor, size_t n)
{
    bool ok = lnt_wire_write(fd, &n, sizeof n);
    for (size_t i = 0; i < n && ok; i++) {
        const lnt_tensor *t = &tensor[i].tensor;
        ok = put_text(fd, tensor[i].name) && put_text(fd, tensor[i].state) &&
             lnt_wire_write(fd, t, sizeof *t) && lnt_wire_write(fd, t->data, t->bytes);
    }
    return ok;
}

bool lnt_wire_get(int fd, lnt_named **tensor, size_t *n)
{
    bool ok = lnt_wire_read(fd, n, sizeof *n);
    *tensor = ok ? lnt_cli_alloc(*n * sizeof **tensor) : NULL;
    for (size_t i = 0; ok && i < *n; i++) {
        lnt_tensor *t = &(*tensor)[i].tensor;
        ok = get_text(fd, &(*tensor)[i].name) && get_text(fd, &(*tensor)[i].state) &&
             lnt_wire_read(fd, t, sizeof *t);
        if (ok) {
            t->data = lnt_cli_alloc(t->bytes);
            ok = lnt_wire_read(fd, t->data, t->bytes);
        }
    }
    return ok;
}
