/* connection.c — one client of the server. */
#include "cli/serve/connection.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* What is taken makes room for what comes. */
static bool make_room(lnt_connection *c, size_t want)
{
    if (c->at) {
        memmove(c->in, c->in + c->at, c->n - c->at);
        c->n -= c->at;
        c->at = 0;
    }
    if (want <= c->room)
        return true;
    char *in = realloc(c->in, want);
    if (!in)
        return false;
    c->in = in;
    c->room = want;
    return true;
}

static bool receive(lnt_connection *c)
{
    enum { AT_ONCE = 4096 };
    if (c->room - c->n < AT_ONCE && !make_room(c, (c->n - c->at) + AT_ONCE + (c->n - c->at) / 2))
        return false;
    ssize_t got;
    do
        got = recv(c->fd, c->in + c->n, c->room - c->n, 0);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return false;
    c->n += (size_t)got;
    return true;
}

bool lnt_connection_line(lnt_connection *c, size_t most, char **line)
{
    for (size_t looked = 0;;) {
        char *end =
            c->n > c->at + looked ? memchr(c->in + c->at + looked, '\n', c->n - c->at - looked) : NULL;
        looked = c->n - c->at;
        if (end) {
            *line = c->in + c->at;
            c->at = (size_t)(end + 1 - c->in);
            if (end > *line && end[-1] == '\r')
                end--;
            *end = '\0';
            return (size_t)(end - *line) <= most;
        }
        if (looked > most || !receive(c))
            return false;
    }
}

bool lnt_connection_bytes(lnt_connection *c, size_t n, const char **bytes)
{
    if (!make_room(c, n))
        return false;
    while (c->n < n)
        if (!receive(c))
            return false;
    *bytes = c->in;
    c->at = n;
    return true;
}

bool lnt_connection_send(lnt_connection *c, const void *bytes, size_t n)
{
    for (const uint8_t *from = bytes; n > 0;) {
        const ssize_t sent = send(c->fd, from, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        from += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* What comes in after a close takes back what was sent before. */
void lnt_connection_finish(lnt_connection *c)
{
    enum { PIECES_MOST = 1024 };
    const struct timeval t = {.tv_sec = 1};
    char piece[4096];
    if (shutdown(c->fd, SHUT_WR) != 0 || setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) != 0)
        return;
    for (unsigned i = 0; i < PIECES_MOST && recv(c->fd, piece, sizeof piece, 0) > 0; i++)
        ;
}

void lnt_connection_free(lnt_connection *c)
{
    close(c->fd);
    free(c->in);
    free(c);
}
