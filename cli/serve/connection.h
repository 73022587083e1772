/* connection.h — one client of the server: what it sends, in lines and bytes, and what is sent to it. */
#ifndef LNT_CLI_SERVE_CONNECTION_H
#define LNT_CLI_SERVE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

typedef struct lnt_connection {
    int fd;
    char *in; /* bytes [at, n) are received and not taken yet */
    size_t at, n, room;
    struct lnt_connection *next;
} lnt_connection;

/* All give false if the client is gone, silent for too long, or sends more than is allowed.
 *
 * The next line without its end, "\n" or "\r\n"; of at most `most` bytes. It is good until the next call. */
bool lnt_connection_line(lnt_connection *c, size_t most, char **line);
/* The next n bytes; good until the next call. */
bool lnt_connection_bytes(lnt_connection *c, size_t n, const char **bytes);
bool lnt_connection_send(lnt_connection *c, const void *bytes, size_t n);
/* Nothing more is sent; waits a little for the client to have read what was, and to close. */
void lnt_connection_finish(lnt_connection *c);
void lnt_connection_free(lnt_connection *c);

#endif
