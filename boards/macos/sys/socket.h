/* socket.h — the system's, with what Linux's has besides. */
#ifndef LNT_MACOS_SOCKET_H
#define LNT_MACOS_SOCKET_H

#include_next <sys/socket.h>

#define SOCK_CLOEXEC 0
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#endif
