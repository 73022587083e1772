/* wyoming.c — Wyoming 1.x, the protocol of Home Assistant's voices: an event is a line of JSON with a type, then
 * data_length bytes of JSON and payload_length bytes of whatever it is. */
#include "base/clock.h"
#include "cli/serve/server.h"
#include "cli/shell/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096 }; /* bytes of sound in an event */

typedef struct event {
    const char *type;
    const lnt_json_value *line, *data; /* members are in either; data's count */
} event;

typedef struct dialog {
    lnt_server *server;
    lnt_connection *to;
    lnt_bump memory; /* of the present event */
    /* Of a text that comes in pieces: */
    bool streaming;
    lnt_say_options how;
    char *text; /* what is not spoken yet */
    size_t n, room;
} dialog;

/* ---- events ---- */

static const lnt_json_value *member(const event *e, const char *key)
{
    const lnt_json_value *found = lnt_json_member(e->data, key);
    return found ? found : lnt_json_member(lnt_json_member(e->line, "data"), key);
}

/* A member that is a text; NULL if it is none. */
static const char *text_member(const lnt_json_value *v)
{
    return v && v->kind == LNT_JSON_TEXT ? v->text : NULL;
}

/* The length of what follows the line; false: it is none. */
static bool length_member(const lnt_json_value *line, const char *key, size_t *n)
{
    const lnt_json_value *v = lnt_json_member(line, key);
    const bool none = !v || v->kind == LNT_JSON_NULL;
    *n = none ? 0 : (size_t)v->number;
    return none || (v->kind == LNT_JSON_NUMBER && v->number >= 0 && v->number <= LNT_SERVER_TEXT_MOST);
}

static bool read_json(dialog *d, const char *text, size_t n, const lnt_json_value **value)
{
    const char *copy = lnt_bump_string(&d->memory, text, n, NULL);
    return copy && lnt_json_read(copy, n, &d->memory, value, NULL) == LNT_OK &&
           (*value)->kind == LNT_JSON_OBJECT;
}

/* False: the client is gone, or speaks otherwise. */
static bool read_event(dialog *d, event *e)
{
    char *line;
    const char *bytes;
    size_t data, payload;
    *e = (event){0};
    if (!lnt_connection_line(d->to, LNT_SERVER_TEXT_MOST, &line) ||
        !read_json(d, line, strlen(line), &e->line))
        return false;
    e->type = text_member(lnt_json_member(e->line, "type"));
    if (!e->type || !length_member(e->line, "data_length", &data) ||
        !length_member(e->line, "payload_length", &payload))
        return false;
    if (data && (!lnt_connection_bytes(d->to, data, &bytes) || !read_json(d, bytes, data, &e->data)))
        return false;
    return !payload || lnt_connection_bytes(d->to, payload, &bytes);
}

/* data: JSON. */
static bool send_event(dialog *d, const char *type, const char *data, size_t n_data, const void *payload,
                       size_t n)
{
    char line[160];
    const int length =
        n ? snprintf(line, sizeof line, "{\"type\": \"%s\", \"data_length\": %zu, \"payload_length\": %zu}\n",
                     type, n_data, n)
          : snprintf(line, sizeof line, "{\"type\": \"%s\", \"data_length\": %zu}\n", type, n_data);
    return lnt_connection_send(d->to, line, (size_t)length) && lnt_connection_send(d->to, data, n_data) &&
           lnt_connection_send(d->to, payload, n);
}

/* Ends what was written, and sends it as the data of an event. */
static bool send_written(dialog *d, const char *type, lnt_json_memory *m)
{
    lnt_json_end(&m->json, '}');
    const bool sent = lnt_json_close(m) == LNT_OK && send_event(d, type, m->text, m->bytes, NULL, 0);
    lnt_json_free(m);
    return sent;
}

static bool send_error(dialog *d, const lnt_error *err)
{
    lnt_json_memory m;
    if (lnt_json_open(&m) != LNT_OK)
        return false;
    lnt_json_begin(&m.json, NULL, '{');
    lnt_json_text(&m.json, "text", err->message);
    lnt_json_text(&m.json, "code", lnt_status_text(err->code));
    return send_written(d, "error", &m);
}

/* ---- who speaks here ---- */

static void put_artifact(lnt_json *j, const char *name, const char *description, const char *version)
{
    lnt_json_text(j, "name", name);
    lnt_json_begin(j, "attribution", '{');
    lnt_json_text(j, "name", "Linnet");
    lnt_json_text(j, "url", "");
    lnt_json_end(j, '}');
    lnt_json_bool(j, "installed", true);
    lnt_json_text(j, "description", description);
    lnt_json_text(j, "version", version);
}

static void put_speakers(lnt_json *j, const lnt_server *s)
{
    const char *name;
    int64_t id;
    if (!s->info.n_named)
        return;
    lnt_json_begin(j, "speakers", '[');
    for (uint32_t k = 0; lnt_voice_speaker(s->queue.voice, k, &name, &id) == LNT_OK; k++) {
        lnt_json_begin(j, NULL, '{');
        lnt_json_text(j, "name", name);
        lnt_json_end(j, '}');
    }
    lnt_json_end(j, ']');
}

/* Home Assistant knows languages as "en_US"; espeak-ng has "en-us". */
static void put_language(lnt_json *j, const char *espeak_voice)
{
    char code[16] = "en";
    const size_t n = espeak_voice ? strlen(espeak_voice) : 0;
    if (n && n < sizeof code)
        memcpy(code, espeak_voice, n + 1);
    char *region = strchr(code, '-');
    if (region) {
        *region = '_';
        for (char *c = region + 1; *c; c++)
            *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    }
    lnt_json_begin(j, "languages", '[');
    lnt_json_text(j, NULL, code);
    lnt_json_end(j, ']');
}

static void put_program(lnt_json *j, const lnt_server *s)
{
    lnt_json_begin(j, NULL, '{');
    put_artifact(j, "linnet", "linnet say", lnt_version());
    lnt_json_bool(j, "supports_synthesize_streaming", true);
    lnt_json_begin(j, "voices", '[');
    lnt_json_begin(j, NULL, '{');
    put_artifact(j, s->name, s->name, NULL);
    put_language(j, s->info.espeak_voice);
    put_speakers(j, s);
    lnt_json_end(j, '}');
    lnt_json_end(j, ']');
    lnt_json_end(j, '}');
}

static bool send_info(dialog *d)
{
    static const char *const others[] = {"asr", "handle", "intent", "wake", "mic", "snd"};
    lnt_json_memory m;
    lnt_json *j = &m.json;
    if (lnt_json_open(&m) != LNT_OK)
        return false;
    lnt_json_begin(&m.json, NULL, '{');
    lnt_json_begin(j, "tts", '[');
    put_program(j, d->server);
    lnt_json_end(j, ']');
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        lnt_json_begin(j, others[i], '[');
        lnt_json_end(j, ']');
    }
    return send_written(d, "info", &m);
}

/* ---- speaking ---- */

static bool send_chunks(dialog *d, const char *format, const uint8_t *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += CHUNK)
        if (!send_event(d, "audio-chunk", format, strlen(format), bytes + at,
                        n - at < CHUNK ? n - at : CHUNK))
            return false;
    return true;
}

static bool send_sound(dialog *d, lnt_voice_job *job, const char *format)
{
    lnt_voice_queue *q = &d->server->queue;
    uint8_t *bytes;
    bool begun = false, sent = true;
    for (size_t n; sent && (n = lnt_voice_queue_take(q, job, &bytes)) > 0;) {
        sent = (begun || send_event(d, "audio-start", format, strlen(format), NULL, 0)) &&
               send_chunks(d, format, bytes, n);
        begun = true;
        lnt_free(&lnt_malloc_allocator, bytes);
    }
    if (!sent)
        return false;
    if (job->err.code)
        return send_error(d, &job->err);
    return (begun || send_event(d, "audio-start", format, strlen(format), NULL, 0)) &&
           send_event(d, "audio-stop", "{}", 2, NULL, 0);
}

static bool speak(dialog *d, const char *text, const lnt_say_options *how)
{
    char format[64];
    lnt_voice_job job = {.text = text, .how = *how, .kind = d->server->policy};
    const double start = lnt_now();
    snprintf(format, sizeof format, "{\"rate\": %u, \"width\": 2, \"channels\": 1}", d->server->info.rate);
    lnt_voice_queue_put(&d->server->queue, &job);
    const bool sent = send_sound(d, &job, format);
    lnt_voice_queue_drop(&d->server->queue, &job);
    if (job.err.code)
        return sent;
    lnt_server_note(d->server, text, lnt_now() - start);
    if (d->server->debug)
        fprintf(stderr, "wyoming: %.3f s: %s\n", lnt_now() - start, text);
    return sent;
}

/* Who is to speak: "voice": {"name", "speaker"}. There is one voice, whatever name is asked for. */
static lnt_status take_voice(dialog *d, const event *e, lnt_say_options *how, lnt_error *err)
{
    const char *speaker = text_member(lnt_json_member(member(e, "voice"), "speaker"));
    *how = d->server->how;
    return speaker ? lnt_server_speaker(d->server, speaker, &how->speaker, err) : LNT_OK;
}

static bool on_synthesize(dialog *d, const event *e)
{
    lnt_say_options how;
    lnt_error err = {0};
    const char *text = text_member(member(e, "text"));
    if (d->streaming) /* the same text again, for servers that do not take it in pieces */
        return true;
    if (!text)
        (void)lnt_fail(&err, LNT_E_VALUE, "the event synthesize has no text");
    if (!text || take_voice(d, e, &how, &err) != LNT_OK)
        return send_error(d, &err);
    return speak(d, text, &how);
}

/* ---- texts that come in pieces ---- */

static bool on_start(dialog *d, const event *e)
{
    lnt_error err = {0};
    d->n = 0;
    d->streaming = take_voice(d, e, &d->how, &err) == LNT_OK;
    return d->streaming || send_error(d, &err);
}

static bool append(dialog *d, const char *piece)
{
    const size_t n = strlen(piece);
    if (d->n + n > LNT_VOICE_TEXT_MOST)
        return false;
    if (d->n + n + 1 > d->room) {
        char *text = realloc(d->text, 2 * (d->n + n + 1));
        if (!text)
            return false;
        d->text = text;
        d->room = 2 * (d->n + n + 1);
    }
    memcpy(d->text + d->n, piece, n + 1);
    d->n += n;
    return true;
}

/* Behind the last sentence that is whole: a mark that ends one, and a blank that shows that nothing belongs to it. */
static size_t whole_sentences(const char *text, size_t n)
{
    for (size_t i = n; i-- > 1;)
        if (strchr(" \n\t", text[i]) && strchr(".!?\n", text[i - 1]))
            return i;
    return 0;
}

static bool speak_first(dialog *d, size_t n)
{
    const char next = d->text[n];
    d->text[n] = '\0';
    const bool blank = !d->text[strspn(d->text, " \t\r\n")];
    const bool sent = blank || speak(d, d->text, &d->how);
    d->text[n] = next;
    d->n -= n;
    memmove(d->text, d->text + n, d->n + 1);
    return sent;
}

static bool on_chunk(dialog *d, const event *e)
{
    const char *piece = text_member(member(e, "text"));
    if (!d->streaming || !piece)
        return true;
    if (!append(d, piece))
        return false;
    const size_t n = whole_sentences(d->text, d->n);
    return !n || speak_first(d, n);
}

static bool on_stop(dialog *d, const event *e)
{
    (void)e;
    const bool sent = !d->n || speak_first(d, d->n);
    d->streaming = false;
    return sent && send_event(d, "synthesize-stopped", "{}", 2, NULL, 0);
}

/* ---- the dialog ---- */

static bool on_describe(dialog *d, const event *e)
{
    (void)e;
    return send_info(d);
}

static bool on_ping(dialog *d, const event *e)
{
    (void)e;
    return send_event(d, "pong", "{}", 2, NULL, 0);
}

static const struct {
    const char *type;
    bool (*run)(dialog *d, const event *e);
} answers[] = {
    {"describe", on_describe},      {"ping", on_ping},
    {"synthesize", on_synthesize},  {"synthesize-start", on_start},
    {"synthesize-chunk", on_chunk}, {"synthesize-stop", on_stop},
};

/* Events that nobody here knows are left alone, as the protocol has it. */
static bool answer(dialog *d, const event *e)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (strcmp(answers[i].type, e->type) == 0)
            return answers[i].run(d, e);
    return true;
}

void lnt_serve_wyoming(lnt_server *s, lnt_connection *c)
{
    dialog d = {.server = s, .to = c};
    bool more = true;
    while (more) {
        event e;
        lnt_bump_init(&d.memory, &lnt_malloc_allocator);
        more = read_event(&d, &e) && answer(&d, &e);
        lnt_bump_free(&d.memory);
    }
    free(d.text);
}
