/* server.h — what the threads of a server share, and the protocols they speak with a client. */
#ifndef LNT_CLI_SERVE_SERVER_H
#define LNT_CLI_SERVE_SERVER_H

#include "base/memory.h"
#include "cli/serve/connection.h"
#include "cli/serve/voice_queue.h"
#include "speech/read_json.h"

typedef struct lnt_server {
    const char *name;           /* the voice's */
    const char *config;         /* Piper's JSON of it */
    lnt_voice_info info;        /* of the voice */
    lnt_say_options how;        /* where a client says nothing else */
    const lnt_prompts *prompts; /* that clients may name; NULL: none */
    lnt_queue_kind policy;      /* of texts that say nothing else */
    bool debug;                 /* tells of each text on standard error */
    lnt_voice_queue queue;
    pthread_mutex_t lock; /* of what follows */
    char *text;           /* the last one spoken; NULL: none so far */
    double seconds;       /* that took */
} lnt_server;

/* Speaks HTTP/1.1 with the client until it goes: the interface of Piper's web server. */
void lnt_serve_http(lnt_server *s, lnt_connection *c);
/* Speaks Wyoming, the protocol of Home Assistant's voices: events in JSON, a line each, with samples behind them. */
void lnt_serve_wyoming(lnt_server *s, lnt_connection *c);

/* Options as the JSON of a client has them: "speaker", "speaker_id", "length_scale", "noise_scale", "noise_w_scale",
 * "sentence_silence", "volume", "seed". */
lnt_status lnt_server_options(const lnt_server *s, const lnt_json_value *given, lnt_say_options *how,
                              lnt_error *err);
/* By name, or by number where no name is that. */
lnt_status lnt_server_speaker(const lnt_server *s, const char *name, int64_t *id, lnt_error *err);
/* Keeps the text that is spoken for those who ask for the last one. */
void lnt_server_note(lnt_server *s, const char *text, double seconds);

enum { LNT_SERVER_TEXT_MOST = LNT_VOICE_TEXT_MOST + 65536 }; /* bytes of a message with a text in it */

typedef enum lnt_protocol { LNT_PROTOCOL_HTTP, LNT_PROTOCOL_WYOMING } lnt_protocol;

/* Listens at each address until SIGINT or SIGTERM; prints where. */
lnt_status lnt_serve(lnt_server *s, lnt_voice *voice, const char *const *address, size_t n, lnt_error *err);

#endif
