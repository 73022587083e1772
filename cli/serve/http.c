/* http.c — HTTP/1.1 (RFC 9112) as far as a voice needs it: requests with a length, one after the other. */
#include "base/clock.h"
#include "cli/serve/server.h"
#include "cli/shell/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LINE_MOST = 8192, FIELDS_MOST = 100, WAV_HEAD = 44 };

typedef struct request {
    lnt_server *server;
    lnt_connection *to;
    char method[8], target[LINE_MOST + 1];
    char *query; /* behind the target's '?'; NULL: there is none */
    bool keep;   /* the connection, for more requests */
    bool chunks; /* the client understands a body in chunks */
    bool has_length, expects, coded;
    size_t length;    /* of the body */
    const char *body; /* text, in memory of the request */
    lnt_bump memory;
} request;

/* ---- answers ---- */

static bool answer(request *r, const char *status, const char *type, const void *head, size_t n_head,
                   const void *body, size_t n)
{
    char line[512];
    const int length = snprintf(
        line, sizeof line, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: %s\r\n\r\n",
        status, type, n_head + n, r->keep ? "keep-alive" : "close");
    return lnt_connection_send(r->to, line, (size_t)length) && lnt_connection_send(r->to, head, n_head) &&
           lnt_connection_send(r->to, body, n);
}

static bool answer_text(request *r, const char *type, const char *text)
{
    return answer(r, "200 OK", type, NULL, 0, text, strlen(text));
}

/* Ends what was written, and sends it. */
static bool answer_json(request *r, const char *status, lnt_json_memory *m)
{
    lnt_json_end(&m->json, '}');
    const bool sent =
        lnt_json_close(m) == LNT_OK && answer(r, status, "application/json", NULL, 0, m->text, m->bytes);
    lnt_json_free(m);
    return sent;
}

/* An object with "error". */
static bool refuse(request *r, const char *status, const char *why)
{
    lnt_json_memory m;
    if (lnt_json_open(&m) != LNT_OK)
        return false;
    lnt_json_begin(&m.json, NULL, '{');
    lnt_json_text(&m.json, "error", why);
    return answer_json(r, status, &m);
}

static const char *status_of(lnt_status code)
{
    switch (code) {
    case LNT_E_MEMORY:
    case LNT_E_LIMIT: return "507 Insufficient Storage";
    case LNT_E_CANCELLED: return "503 Service Unavailable";
    case LNT_E_VALUE:
    case LNT_E_ARGUMENT:
    case LNT_E_NOT_FOUND: return "400 Bad Request";
    default: return "500 Internal Server Error";
    }
}

static bool refuse_error(request *r, const lnt_error *err)
{
    return refuse(r, status_of(err->code), err->message);
}

static void put_number(uint8_t *to, unsigned bytes, uint32_t value)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

/* The head of a .wav of so many bytes of samples; of one that comes as it is spoken, the most that it can tell. */
static void wav_head(uint8_t to[WAV_HEAD], uint32_t rate, size_t bytes)
{
    static const uint8_t head[WAV_HEAD] = "RIFF....WAVEfmt \20\0\0\0\1\0\1\0........\2\0\20\0data....";
    const uint32_t most = UINT32_MAX - (WAV_HEAD - 8);
    const uint32_t n = bytes < most ? (uint32_t)bytes : most;
    memcpy(to, head, WAV_HEAD);
    put_number(to + 4, 4, n + WAV_HEAD - 8);
    put_number(to + 24, 4, rate);
    put_number(to + 28, 4, 2 * rate);
    put_number(to + 40, 4, n);
}

/* ---- sound ---- */

static void note(request *r, const lnt_voice_job *job, double start)
{
    const double seconds = lnt_now() - start;
    lnt_server_note(r->server, job->text, seconds);
    if (r->server->debug)
        fprintf(stderr, "http: %.3f s: %s\n", seconds, job->text);
}

/* The whole sound, once it is there. */
static bool answer_whole(request *r, lnt_voice_job *job)
{
    uint8_t head[WAV_HEAD];
    const double start = lnt_now();
    lnt_voice_queue_wait(&r->server->queue, job);
    if (job->err.code)
        return refuse_error(r, &job->err);
    note(r, job, start);
    wav_head(head, r->server->info.rate, job->n);
    return answer(r, "200 OK", "audio/wav", head, WAV_HEAD, job->bytes, job->n);
}

static bool send_chunk(request *r, const void *bytes, size_t n)
{
    char line[32];
    if (!r->chunks)
        return lnt_connection_send(r->to, bytes, n);
    const int length = snprintf(line, sizeof line, "%zx\r\n", n);
    return lnt_connection_send(r->to, line, (size_t)length) && lnt_connection_send(r->to, bytes, n) &&
           lnt_connection_send(r->to, "\r\n", 2);
}

static bool begin_stream(request *r)
{
    uint8_t head[WAV_HEAD];
    char line[256];
    r->keep &= r->chunks;
    const int length =
        snprintf(line, sizeof line, "HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\n%sConnection: %s\r\n\r\n",
                 r->chunks ? "Transfer-Encoding: chunked\r\n" : "", r->keep ? "keep-alive" : "close");
    wav_head(head, r->server->info.rate, SIZE_MAX);
    return lnt_connection_send(r->to, line, (size_t)length) && send_chunk(r, head, WAV_HEAD);
}

/* Sound as it is spoken. What fails later than its begin ends it without the last chunk. */
static bool answer_stream(request *r, lnt_voice_job *job)
{
    lnt_voice_queue *q = &r->server->queue;
    const double start = lnt_now();
    bool sent = true, begun = false;
    uint8_t *bytes;
    for (size_t n; sent && (n = lnt_voice_queue_take(q, job, &bytes)) > 0;) {
        sent = (begun || begin_stream(r)) && send_chunk(r, bytes, n);
        begun = true;
        lnt_free(&lnt_malloc_allocator, bytes);
    }
    if (!sent)
        return false;
    if (job->err.code)
        return !begun && refuse_error(r, &job->err);
    note(r, job, start);
    return (begun || begin_stream(r)) && (!r->chunks || lnt_connection_send(r->to, "0\r\n\r\n", 5));
}

/* *job has a text and how to speak it. */
static bool speak(request *r, lnt_voice_job *job, bool stream)
{
    if (!job->text[strspn(job->text, " \t\r\n")])
        return refuse(r, "400 Bad Request", "there is no text to speak");
    lnt_voice_queue_put(&r->server->queue, job);
    const bool good = stream ? answer_stream(r, job) : answer_whole(r, job);
    lnt_voice_queue_drop(&r->server->queue, job);
    return good;
}

/* ---- what is asked for ---- */

/* "text", or where there are prompts "prompt" with "values". */
static lnt_status parse_job(request *r, lnt_voice_job *job, lnt_error *err)
{
    const lnt_json_value *body;
    const lnt_prompts *prompts = r->server->prompts;
    *job = (lnt_voice_job){.text = r->body, .how = r->server->how, .kind = r->server->policy};
    if (r->body[strspn(r->body, " \t\r\n")] != '{')
        return LNT_OK;
    LNT_TRY(lnt_json_read(r->body, r->length, &r->memory, &body, err));
    const lnt_json_value *text = lnt_json_member(body, "text"), *prompt = lnt_json_member(body, "prompt");
    job->prompts = prompts && !text ? prompts : NULL;
    text = job->prompts ? prompt : text;
    LNT_REQUIRE(text && text->kind == LNT_JSON_TEXT, err, LNT_E_VALUE, "the request has no \"text\"%s",
                prompts ? " and no \"prompt\"" : "");
    job->text = text->text;
    if (job->prompts)
        LNT_TRY(
            lnt_take_values(lnt_json_member(body, "values"), &r->memory, &job->value, &job->n_values, err));
    LNT_TRY(lnt_take_queue(body, &job->kind, err));
    return lnt_server_options(r->server, body, &job->how, err);
}

static bool speak_body(request *r, bool stream)
{
    lnt_voice_job job;
    lnt_error err = {0};
    return parse_job(r, &job, &err) == LNT_OK ? speak(r, &job, stream) : refuse_error(r, &err);
}

static bool post_synthesize(request *r)
{
    return speak_body(r, false);
}

static bool post_stream(request *r)
{
    return speak_body(r, true);
}

static bool post_stop(request *r)
{
    lnt_voice_queue_cancel(&r->server->queue);
    return answer_text(r, "application/json", "{}\n");
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Takes a value of a form apart, in place; it ends at '&'. */
static void decode(char *value)
{
    char *to = value;
    for (const char *from = value; *from && *from != '&'; from++) {
        const bool coded = *from == '%' && hex(from[1]) >= 0 && hex(from[2]) >= 0;
        *to++ = coded ? (char)(16 * hex(from[1]) + hex(from[2])) : *from == '+' ? ' ' : *from;
        from += coded ? 2 : 0;
    }
    *to = '\0';
}

static char *query_text(request *r)
{
    for (char *at = r->query; at; at = strchr(at, '&')) {
        at += *at == '&';
        if (strncmp(at, "text=", 5) == 0) {
            decode(at + 5);
            return at + 5;
        }
    }
    return NULL;
}

static const char page[] = "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
                           "content=\"width=device-width\"><title>linnet say</title>\n"
                           "<style>body{font:16px sans-serif;max-width:36em;margin:2em auto;padding:0 "
                           "1em}textarea{width:100%;height:6em;font:inherit}"
                           "button{font:inherit;padding:.4em 1.5em;margin:.5em 0}</style>\n"
                           "<h1>linnet say</h1><textarea id=t>Your tea is ready.</textarea><button "
                           "id=b>Speak</button><p><audio id=a controls></audio>"
                           "<p id=m>\n"
                           "<script>b.onclick=async()=>{m.textContent='';const r=await "
                           "fetch('synthesize',{method:'POST',headers:{'Content-Type':"
                           "'application/json'},body:JSON.stringify({text:t.value})});\n"
                           "if(r.ok){a.src=URL.createObjectURL(await r.blob());a.play()}else "
                           "m.textContent=(await r.json()).error}</script></html>\n";

static bool get_page(request *r)
{
    lnt_voice_job job = {.text = query_text(r), .how = r->server->how, .kind = r->server->policy};
    return job.text ? speak(r, &job, false) : answer_text(r, "text/html; charset=utf-8", page);
}

static bool get_health(request *r)
{
    return answer_text(r, "application/json", "{\"status\":\"ok\"}\n");
}

static bool get_voices(request *r)
{
    lnt_json_memory m;
    if (lnt_json_open(&m) != LNT_OK)
        return false;
    lnt_json_begin(&m.json, NULL, '{');
    lnt_json_raw(&m.json, r->server->name, r->server->config);
    return answer_json(r, "200 OK", &m);
}

/* Phonemes of the text, as the voice's thread gives them. */
static void put_phonemes(lnt_json *j, lnt_server *s, const char *text)
{
    lnt_voice_job job = {.text = text, .how = s->how, .phonemes = true};
    lnt_voice_queue_put(&s->queue, &job);
    lnt_voice_queue_wait(&s->queue, &job);
    if (!job.err.code && job.n && job.n < INT32_MAX) {
        job.bytes[job.n - 1] = '\0'; /* the end of the line */
        lnt_json_raw(j, "phonemes", (const char *)job.bytes);
    }
    lnt_voice_queue_drop(&s->queue, &job);
}

static void put_last(lnt_json *j, request *r)
{
    lnt_server *s = r->server;
    pthread_mutex_lock(&s->lock);
    char *text = s->text ? strdup(s->text) : NULL;
    const double seconds = s->seconds;
    pthread_mutex_unlock(&s->lock);
    if (!text) {
        lnt_json_text(j, "last", NULL);
        return;
    }
    lnt_json_begin(j, "last", '{');
    lnt_json_text(j, "text", text);
    lnt_json_number(j, "synthesize_seconds", seconds);
    put_phonemes(j, s, text);
    lnt_json_begin(j, "alignments", '[');
    lnt_json_end(j, ']');
    lnt_json_end(j, '}');
    free(text);
}

static bool get_info(request *r)
{
    lnt_json_memory m;
    lnt_json *j = &m.json;
    const lnt_voice_info *info = &r->server->info;
    if (lnt_json_open(&m) != LNT_OK)
        return false;
    lnt_json_begin(&m.json, NULL, '{');
    lnt_json_begin(j, "voice", '{');
    lnt_json_text(j, "name", r->server->name);
    lnt_json_text(j, "language", info->espeak_voice);
    lnt_json_int(j, "num_speakers", info->n_speakers);
    lnt_json_int(j, "sample_rate", info->rate);
    lnt_json_end(j, '}');
    put_last(j, r);
    return answer_json(r, "200 OK", &m);
}

static const struct {
    const char *method, *path;
    bool (*run)(request *r);
} routes[] = {
    {"GET", "/", get_page},
    {"POST", "/", post_synthesize},
    {"POST", "/synthesize", post_synthesize},
    {"POST", "/stream", post_stream},
    {"POST", "/stop", post_stop},
    {"GET", "/voices", get_voices},
    {"GET", "/info", get_info},
    {"GET", "/health", get_health},
};

static bool dispatch(request *r)
{
    bool known = false;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(routes[i].path, r->target) != 0)
            continue;
        known = true;
        if (strcmp(routes[i].method, r->method) == 0)
            return routes[i].run(r);
    }
    if (known)
        return refuse(r, "405 Method Not Allowed",
                      "GET / /voices /info /health, POST / /synthesize /stream /stop");
    return refuse(r, "404 Not Found",
                  "there is GET / /voices /info /health, POST / /synthesize /stream /stop");
}

/* ---- requests ---- */

/* The field's value if the line has that name. */
static const char *field(const char *line, const char *name)
{
    const size_t n = strlen(name);
    if (strncasecmp(line, name, n) != 0 || line[n] != ':')
        return NULL;
    return line + n + 1 + strspn(line + n + 1, " \t");
}

static bool take_length(request *r, const char *value)
{
    char *end;
    const unsigned long long n = strtoull(value, &end, 10);
    r->has_length = true;
    r->length = (size_t)n;
    return *value >= '0' && *value <= '9' && !end[strspn(end, " \t")] && n <= LNT_SERVER_TEXT_MOST;
}

/* False: the request cannot be read on. */
static bool take_field(request *r, const char *line)
{
    const char *value;
    if ((value = field(line, "Content-Length")))
        return take_length(r, value);
    if ((value = field(line, "Connection"))) {
        r->keep =
            strncasecmp(value, "close", 5) != 0 && (r->keep || strncasecmp(value, "keep-alive", 10) == 0);
        return true;
    }
    r->expects |= (value = field(line, "Expect")) && strncasecmp(value, "100-continue", 12) == 0;
    r->coded |= field(line, "Transfer-Encoding") != NULL;
    return true;
}

/* "POST /synthesize HTTP/1.1" */
static bool take_first_line(request *r, const char *line)
{
    unsigned minor;
    if (sscanf(line, "%7[A-Z] %8192s HTTP/1.%u", r->method, r->target, &minor) != 3)
        return false;
    r->query = strchr(r->target, '?');
    if (r->query)
        *r->query++ = '\0';
    r->keep = r->chunks = minor >= 1;
    return true;
}

/* *why NULL: the client is gone. */
static bool read_head(request *r, const char **status, const char **why)
{
    char *line;
    *why = NULL;
    *status = "400 Bad Request";
    if (!lnt_connection_line(r->to, LINE_MOST, &line))
        return false;
    *why = "this is no request of HTTP/1.1";
    if (!take_first_line(r, line))
        return false;
    for (unsigned i = 0;; i++) {
        if (!lnt_connection_line(r->to, LINE_MOST, &line)) {
            *why = NULL;
            return false;
        }
        if (!*line)
            return true;
        *status = "413 Content Too Large";
        *why = "a text has at most 1 MB, a request at most 100 fields";
        if (i >= FIELDS_MOST || !take_field(r, line))
            return false;
        *status = "400 Bad Request";
    }
}

static bool read_body(request *r)
{
    const char *bytes;
    lnt_error err;
    if (r->expects && r->length && !lnt_connection_send(r->to, "HTTP/1.1 100 Continue\r\n\r\n", 25))
        return false;
    if (!lnt_connection_bytes(r->to, r->length, &bytes))
        return false;
    r->body = lnt_bump_string(&r->memory, bytes, r->length, &err);
    return r->body != NULL;
}

/* False: there are no more requests. */
static bool serve_one(request *r)
{
    const char *status, *why;
    if (!read_head(r, &status, &why)) {
        r->keep = false;
        return why && refuse(r, status, why) && false;
    }
    const bool posts = strcmp(r->method, "POST") == 0;
    if (r->coded || (posts && !r->has_length)) {
        r->keep = false;
        return refuse(r, "411 Length Required", "a request comes whole, with a Content-Length") && false;
    }
    if (!read_body(r))
        return false;
    if (posts && strlen(r->body) != r->length)
        return refuse(r, "400 Bad Request", "a text has no NUL in it") && r->keep;
    return dispatch(r) && r->keep;
}

void lnt_serve_http(lnt_server *s, lnt_connection *c)
{
    bool more = true;
    request *r = malloc(sizeof *r);
    while (r && more) {
        *r = (request){.server = s, .to = c};
        lnt_bump_init(&r->memory, &lnt_malloc_allocator);
        more = serve_one(r);
        lnt_bump_free(&r->memory);
    }
    free(r);
}
