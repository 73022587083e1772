/* buffer.h — blocks of a session's memory. */
#ifndef LNT_RUNTIME_BUFFER_H
#define LNT_RUNTIME_BUFFER_H

#include "runtime/linnet.h"

/* A block of the session's that grows and stays. */
typedef struct lnt_buffer {
    void *data;
    size_t capacity;
} lnt_buffer;

/* Makes room for so many bytes; what was there is lost where it has to grow. */
lnt_status lnt_buffer_reserve(lnt_session *s, lnt_buffer *b, size_t bytes, lnt_error *err);
void lnt_buffer_free(lnt_session *s, lnt_buffer *b);

#endif
