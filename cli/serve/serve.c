/* serve.c — a voice that stays: sockets, and a thread for each client. */
#include "cli/serve/server.h"

#include "cli/say/texts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTENERS_MOST = 8, CLIENTS_MOST = 64, WAITING_MOST = 128, PATIENCE = 60 /* seconds */ };

typedef struct listener {
    int fd;
    lnt_protocol protocol;
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of a socket in the file system, else "" */
} listener;

typedef struct hall {
    lnt_server *server;
    listener at[LISTENERS_MOST];
    size_t n_at;
    int wake[2]; /* a pipe: a byte comes when a signal does or a client leaves */
    pthread_mutex_t lock;
    pthread_cond_t left;
    lnt_connection *clients; /* whose threads run */
    unsigned n_clients;
} hall;

/* ---- options of clients ---- */

lnt_status lnt_server_speaker(const lnt_server *s, const char *name, int64_t *id, lnt_error *err)
{
    const lnt_voice *voice = s->queue.voice;
    return lnt_find_speaker(voice, name, id, NULL) == LNT_OK ? LNT_OK
                                                             : lnt_take_speaker(voice, name, id, err);
}

static const struct {
    const char *key;
    size_t at; /* of a float in lnt_say_options */
} numbers[] = {
    {"length_scale", offsetof(lnt_say_options, length)},   {"noise_scale", offsetof(lnt_say_options, noise)},
    {"noise_w_scale", offsetof(lnt_say_options, noise_w)}, {"noise_w", offsetof(lnt_say_options, noise_w)},
    {"volume", offsetof(lnt_say_options, volume)},         {"pitch", offsetof(lnt_say_options, pitch)}};

/* *found false: there is none, or null. */
static lnt_status number_member(const lnt_json_value *given, const char *key, double *value, bool *found,
                                lnt_error *err)
{
    const lnt_json_value *v = lnt_json_member(given, key);
    *found = v && v->kind != LNT_JSON_NULL;
    LNT_REQUIRE(!*found || v->kind == LNT_JSON_NUMBER, err, LNT_E_VALUE, "%s is no number", key);
    if (*found)
        *value = v->number;
    return LNT_OK;
}

static lnt_status take_speaker(const lnt_server *s, const lnt_json_value *given, lnt_say_options *how,
                               lnt_error *err)
{
    double id;
    bool found;
    const lnt_json_value *name = lnt_json_member(given, "speaker");
    LNT_TRY(number_member(given, "speaker_id", &id, &found, err));
    if (found) {
        how->speaker = id >= 0 && id < 1e6 ? (int64_t)id : -1;
        return LNT_OK;
    }
    if (!name || name->kind == LNT_JSON_NULL)
        return LNT_OK;
    LNT_REQUIRE(name->kind == LNT_JSON_TEXT, err, LNT_E_VALUE, "speaker is no text");
    return lnt_server_speaker(s, name->text, &how->speaker, err);
}

lnt_status lnt_server_options(const lnt_server *s, const lnt_json_value *given, lnt_say_options *how,
                              lnt_error *err)
{
    double value;
    bool found;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        LNT_TRY(number_member(given, numbers[i].key, &value, &found, err));
        if (found)
            *(float *)((char *)how + numbers[i].at) = (float)value;
    }
    LNT_TRY(number_member(given, "sentence_silence", &how->sentence_silence, &found, err));
    LNT_TRY(number_member(given, "seed", &value, &found, err));
    LNT_REQUIRE(!found || (value >= 0 && value < 0x1p53), err, LNT_E_VALUE, "seed is no whole number");
    if (found)
        how->seed = (uint64_t)value;
    return take_speaker(s, given, how, err);
}

void lnt_server_note(lnt_server *s, const char *text, double seconds)
{
    char *copy = strdup(text);
    pthread_mutex_lock(&s->lock);
    free(s->text);
    s->text = copy;
    s->seconds = seconds;
    pthread_mutex_unlock(&s->lock);
}

/* ---- clients ---- */

typedef struct visit { /* what a client's thread begins with */
    hall *hall;
    lnt_connection *client;
    lnt_protocol protocol;
} visit;

static void leave(hall *h, lnt_connection *client)
{
    pthread_mutex_lock(&h->lock);
    lnt_connection **at = &h->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    lnt_connection_free(client);
    h->n_clients--;
    (void)!write(h->wake[1], "", 1);
    pthread_cond_signal(&h->left);
    pthread_mutex_unlock(&h->lock);
}

static void *client_main(void *user)
{
    visit *v = user;
    hall *h = v->hall;
    lnt_connection *client = v->client;
    (v->protocol == LNT_PROTOCOL_HTTP ? lnt_serve_http : lnt_serve_wyoming)(h->server, client);
    lnt_connection_finish(client);
    free(v);
    leave(h, client);
    return NULL;
}

/* A client that is silent for long, or takes nothing, is taken for gone; one of Wyoming may listen for ever. */
static void set_patience(int fd, lnt_protocol protocol)
{
    const struct timeval t = {.tv_sec = PATIENCE}, for_ever = {0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, protocol == LNT_PROTOCOL_HTTP ? &t : &for_ever, sizeof t);
}

static bool start_thread(visit *v)
{
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    const bool started = pthread_create(&thread, &detached, client_main, v) == 0;
    pthread_attr_destroy(&detached);
    return started;
}

static void welcome(hall *h, const listener *at)
{
    const int fd = accept4(at->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    visit *v = calloc(1, sizeof *v);
    lnt_connection *c = calloc(1, sizeof *c);
    if (!v || !c) {
        close(fd);
        free(v);
        free(c);
        return;
    }
    set_patience(fd, at->protocol);
    *v = (visit){h, c, at->protocol};
    pthread_mutex_lock(&h->lock);
    *c = (lnt_connection){.fd = fd, .next = h->clients};
    h->clients = c;
    h->n_clients++;
    pthread_mutex_unlock(&h->lock);
    if (!start_thread(v)) {
        free(v);
        leave(h, c);
    }
}

/* Whoever is still there hears no more. */
static void see_off(hall *h)
{
    lnt_voice_queue_cancel(&h->server->queue);
    pthread_mutex_lock(&h->lock);
    for (lnt_connection *c = h->clients; c; c = c->next)
        shutdown(c->fd, SHUT_RDWR);
    while (h->n_clients)
        pthread_cond_wait(&h->left, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

/* ---- addresses ---- */

static lnt_status listen_at(hall *h, int fd, const struct sockaddr *to, socklen_t bytes, const char *address,
                            lnt_error *err)
{
    const int yes = 1;
    listener *at = &h->at[h->n_at];
    if (to->sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, to, bytes) != 0 || listen(fd, WAITING_MOST) != 0) {
        const int failed = errno;
        close(fd);
        return lnt_fail(err, LNT_E_IO, "cannot listen at %s: %s", address, strerror(failed));
    }
    at->fd = fd;
    if (to->sa_family == AF_UNIX)
        strcpy(at->path, ((const struct sockaddr_un *)to)->sun_path);
    h->n_at++;
    return LNT_OK;
}

static lnt_status listen_path(hall *h, const char *path, lnt_error *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    LNT_REQUIRE(*path && strlen(path) < sizeof to.sun_path, err, LNT_E_ARGUMENT,
                "unix:%s: a path of 1 to %zu bytes", path, sizeof to.sun_path - 1);
    strcpy(to.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    LNT_REQUIRE(fd >= 0, err, LNT_E_IO, "cannot make a socket: %s", strerror(errno));
    /* One that nobody listens at is a dead server's. */
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0 && errno == ECONNREFUSED)
        unlink(path);
    return listen_at(h, fd, (const struct sockaddr *)&to, sizeof to, path, err);
}

/* "PORT", "HOST:PORT" or "[HOST]:PORT" taken apart. */
static lnt_status split(const char *address, char *host, size_t room, const char **port, lnt_error *err)
{
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : 0;
    const char *from = address;
    *port = colon ? colon + 1 : address;
    if (n >= 2 && from[0] == '[' && from[n - 1] == ']') {
        from++;
        n -= 2;
    }
    LNT_REQUIRE(n < room && **port && strspn(*port, "0123456789") == strlen(*port) &&
                    strtoul(*port, NULL, 10) <= UINT16_MAX,
                err, LNT_E_ARGUMENT, "--serve [http:|wyoming:]HOST:PORT, or unix:PATH; not %s", address);
    memcpy(host, n ? from : "127.0.0.1", n ? n : sizeof "127.0.0.1");
    host[n ? n : sizeof "127.0.0.1" - 1] = '\0';
    return LNT_OK;
}

/* Names are not looked up: static programs could not, and a server has few. */
static bool read_host(const char *host, uint16_t port, struct sockaddr_storage *to, socklen_t *bytes)
{
    struct sockaddr_in *four = (void *)to;
    struct sockaddr_in6 *six = (void *)to;
    memset(to, 0, sizeof *to);
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        *bytes = sizeof *four;
        return true;
    }
    if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
        return false;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    *bytes = sizeof *six;
    return true;
}

static lnt_status listen_port(hall *h, const char *address, lnt_error *err)
{
    struct sockaddr_storage to;
    socklen_t bytes;
    char host[64];
    const char *port;
    LNT_TRY(split(address, host, sizeof host, &port, err));
    LNT_REQUIRE(read_host(host, (uint16_t)strtoul(port, NULL, 10), &to, &bytes), err, LNT_E_ARGUMENT,
                "--serve %s: a host is an address in numbers, or localhost", address);
    const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    LNT_REQUIRE(fd >= 0, err, LNT_E_IO, "cannot make a socket: %s", strerror(errno));
    return listen_at(h, fd, (struct sockaddr *)&to, bytes, address, err);
}

/* Behind the prefix, if the address has it. */
static bool behind(const char **address, const char *prefix)
{
    const size_t n = strlen(prefix);
    const bool has = strncmp(*address, prefix, n) == 0;
    *address += has ? n : 0;
    return has;
}

/* Where clients find it, now that its port is known. */
static void print_address(const listener *at)
{
    struct sockaddr_storage to = {0};
    socklen_t bytes = sizeof to;
    char host[INET6_ADDRSTRLEN] = "";
    const bool http = at->protocol == LNT_PROTOCOL_HTTP;
    if (*at->path) {
        printf("%s at unix:%s\n", http ? "http" : "wyoming", at->path);
        return;
    }
    getsockname(at->fd, (struct sockaddr *)&to, &bytes);
    const bool six = to.ss_family == AF_INET6;
    const struct sockaddr_in *four = (void *)&to;
    const struct sockaddr_in6 *long_one = (void *)&to;
    inet_ntop(to.ss_family, six ? (const void *)&long_one->sin6_addr : (const void *)&four->sin_addr, host,
              sizeof host);
    printf("%s at %s://%s%s%s:%u%s\n", http ? "http" : "wyoming", http ? "http" : "tcp", six ? "[" : "", host,
           six ? "]" : "", ntohs(six ? long_one->sin6_port : four->sin_port), http ? "/" : "");
}

static lnt_status open_address(hall *h, const char *address, lnt_error *err)
{
    LNT_REQUIRE(h->n_at < LISTENERS_MOST, err, LNT_E_LIMIT, "--serve at most %d times", LISTENERS_MOST);
    listener *at = &h->at[h->n_at];
    *at = (listener){.protocol = behind(&address, "wyoming:") ? LNT_PROTOCOL_WYOMING : LNT_PROTOCOL_HTTP};
    if (at->protocol == LNT_PROTOCOL_HTTP)
        (void)behind(&address, "http:");
    LNT_TRY(behind(&address, "unix:") ? listen_path(h, address, err) : listen_port(h, address, err));
    print_address(at);
    return LNT_OK;
}

/* ---- the server ---- */

static int signal_pipe = -1;

static void on_signal(int number)
{
    (void)number;
    const int kept = errno;
    (void)!write(signal_pipe, "s", 1);
    errno = kept;
}

/* Reads the pipe; has a signal come? */
static bool told_to_end(const hall *h)
{
    char bytes[CLIENTS_MOST];
    const ssize_t n = read(h->wake[0], bytes, sizeof bytes);
    return n > 0 && memchr(bytes, 's', (size_t)n);
}

static void wait_for_clients(hall *h)
{
    struct pollfd ready[LISTENERS_MOST + 1] = {{.fd = h->wake[0], .events = POLLIN}};
    for (;;) {
        pthread_mutex_lock(&h->lock);
        const bool full = h->n_clients >= CLIENTS_MOST;
        pthread_mutex_unlock(&h->lock);
        for (size_t i = 0; i < h->n_at; i++)
            ready[i + 1] = (struct pollfd){.fd = full ? -1 : h->at[i].fd, .events = POLLIN};
        if (poll(ready, (nfds_t)h->n_at + 1, -1) < 0 && errno != EINTR)
            return;
        if (ready[0].revents && told_to_end(h))
            return;
        for (size_t i = 0; i < h->n_at; i++)
            if (ready[i + 1].revents & POLLIN)
                welcome(h, &h->at[i]);
    }
}

static lnt_status open_all(hall *h, const char *const *address, size_t n, lnt_error *err)
{
    for (size_t i = 0; i < n; i++)
        LNT_TRY(open_address(h, address[i], err));
    fflush(stdout);
    return LNT_OK;
}

static void close_all(hall *h)
{
    close(h->wake[0]);
    close(h->wake[1]);
    for (size_t i = 0; i < h->n_at; i++) {
        close(h->at[i].fd);
        if (*h->at[i].path)
            unlink(h->at[i].path);
    }
}

static lnt_status serve_all(hall *h, lnt_voice *voice, const char *const *address, size_t n, lnt_error *err)
{
    const struct sigaction action = {.sa_handler = on_signal};
    LNT_REQUIRE(pipe2(h->wake, O_CLOEXEC | O_NONBLOCK) == 0, err, LNT_E_IO, "cannot make a pipe: %s",
                strerror(errno));
    signal_pipe = h->wake[1];
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    lnt_status status = lnt_voice_queue_start(&h->server->queue, voice, err);
    if (status != LNT_OK)
        return status;
    status = open_all(h, address, n, err);
    if (status == LNT_OK)
        wait_for_clients(h);
    see_off(h);
    lnt_voice_queue_end(&h->server->queue);
    close_all(h);
    return status;
}

lnt_status lnt_serve(lnt_server *s, lnt_voice *voice, const char *const *address, size_t n, lnt_error *err)
{
    hall h = {.server = s};
    pthread_mutex_init(&h.lock, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&h.left, NULL);
    const lnt_status status = serve_all(&h, voice, address, n, err);
    pthread_cond_destroy(&h.left);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&h.lock);
    free(s->text);
    return status;
}
