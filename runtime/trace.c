/* trace.c — where the time of a run went, as records and as a Chrome trace. */
#include "runtime/internal.h"

#include "base/lnt_assert.h"
#include "base/utf8.h"
#include "ops/product.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of the outputs, as far as it is this step that writes them. */
static uint64_t bytes_written(const lnt_step *step)
{
    uint64_t bytes = 0;
    for (unsigned o = 0; o < step->n_out; o++)
        if (step->out[o])
            bytes += lnt_known_bytes(step->out[o]);
    for (unsigned i = 0; step->join && i < step->n_in; i++)
        if (step->in[i]->storage == step->out[0]->storage &&
            step->in[i]->offset == step->out[0]->offset + step->join[i].offset)
            bytes -= lnt_known_bytes(step->in[i]);
    return bytes;
}

void lnt_trace_clear(lnt_session *s)
{
    s->trace.n = 0;
}

void lnt_trace_begin(lnt_session *s)
{
    s->trace.n = 0;
    s->trace.origin_ns = s->trace.on ? lnt_now_ns() : 0;
}

void lnt_trace_free(lnt_session *s)
{
    lnt_free(&s->memory.allocator, s->trace.step);
}

lnt_status lnt_trace_note(lnt_session *s, const lnt_step *step, uint64_t start_ns, lnt_error *err)
{
    LNT_ASSERT(s->trace.n <= s->trace.capacity);
    const uint64_t end = lnt_now_ns();
    if (s->trace.n == s->trace.capacity) {
        size_t capacity = s->trace.capacity;
        LNT_TRY(LNT_GROW(&s->memory.allocator, s->trace.step, capacity, s->trace.n, err));
        s->trace.capacity = (uint32_t)capacity;
    }
    const lnt_node *n = step->node == LNT_NONE ? NULL : lnt_session_node(s, step->node);
    lnt_trace_step *t = &s->trace.step[s->trace.n++];
    *t = (lnt_trace_step){.node = step->title ? step->title
                                  : n         ? n->name
                                              : "output",
                          .op = n ? lnt_op_name(n->op) : "Copy",
                          .start_ns = start_ns - s->trace.origin_ns,
                          .duration_ns = end - start_ns,
                          .out_bytes = bytes_written(step),
                          .multiply_adds = n ? (uint64_t)lnt_multiply_adds(n, step) : 0};
    if (step->producer)
        t->multiply_adds +=
            (uint64_t)lnt_multiply_adds(lnt_session_node(s, step->producer->node), step->producer);
    return LNT_OK;
}

uint32_t lnt_trace_count(const lnt_session *s)
{
    if (lnt_enter(s, NULL) != LNT_OK)
        return 0;
    const uint32_t n = s->trace.n;
    lnt_leave(s, LNT_OK);
    return n;
}

lnt_status lnt_trace_get(const lnt_session *s, uint32_t i, lnt_trace_step *step)
{
    LNT_TRY(lnt_enter(s, NULL));
    const bool there = step && i < s->trace.n;
    if (there)
        *step = s->trace.step[i];
    return lnt_leave(s, there ? LNT_OK : LNT_E_ARGUMENT);
}

/* ---- as a file ---- */

/* Text that grows; data NULL once memory ran short. */
typedef struct text {
    const lnt_allocator *allocator;
    char *data;
    size_t length, capacity;
    lnt_error *err;
} text;

enum { TEXT_CALL = 512 }; /* characters of one append at most */

/* Makes room for one append. */
static bool make_room(text *t)
{
    if (t->capacity - t->length >= TEXT_CALL)
        return t->data;
    const size_t capacity = t->capacity * 2 + TEXT_CALL;
    char *grown = lnt_alloc(t->allocator, capacity, t->err);
    if (grown && t->length)
        memcpy(grown, t->data, t->length);
    lnt_free(t->allocator, t->data);
    t->data = grown;
    t->capacity = capacity;
    return grown;
}

static void append(text *t, const char *format, ...) LNT_PRINTF(2, 3);

static void append(text *t, const char *format, ...)
{
    if (!make_room(t))
        return;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->data + t->length, TEXT_CALL, format, args);
    va_end(args);
    t->length += n < 0 ? 0 : (size_t)n < TEXT_CALL ? (size_t)n : TEXT_CALL - 1;
}

/* A string of JSON: names come from the model and may hold anything. */
static void append_string(text *t, const char *string)
{
    append(t, "\"");
    for (unsigned n; *string; string += n ? n : 1) {
        n = lnt_utf8_bytes(string);
        if (*string == '"' || *string == '\\')
            append(t, "\\%c", *string);
        else if (!n || (unsigned char)*string < 0x20)
            append(t, "\\u%04x", n ? (unsigned)*string : 0xfffd);
        else
            append(t, "%.*s", (int)n, string);
    }
    append(t, "\"");
}

static void append_step(text *t, const lnt_trace_step *step)
{
    append(t, "\n {\"name\":");
    append_string(t, step->op);
    append(t, ",\"cat\":\"step\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f",
           (double)step->start_ns / 1e3, (double)step->duration_ns / 1e3);
    append(t, ",\"args\":{\"node\":");
    append_string(t, step->node);
    append(t, ",\"bytes\":%" PRIu64 ",\"multiply_adds\":%" PRIu64 "}}", step->out_bytes, step->multiply_adds);
}

static lnt_status write_trace(const lnt_session *s, const char *path, lnt_error *err)
{
    LNT_REQUIRE(path, err, LNT_E_ARGUMENT, "a path must be given");
    LNT_REQUIRE(s->trace.on, err, LNT_E_ARGUMENT, "the session was made without enable_profiling");
    text t = {.allocator = &s->memory.allocator, .err = err};
    append(&t, "[");
    for (uint32_t i = 0; i < s->trace.n; i++) {
        append(&t, "%s", i ? "," : "");
        append_step(&t, &s->trace.step[i]);
    }
    append(&t, "\n]\n");
    const lnt_status status = t.data ? lnt_write_atomic(path, t.data, t.length, err) : LNT_E_MEMORY;
    lnt_free(&s->memory.allocator, t.data);
    return status;
}

lnt_status lnt_trace_write(const lnt_session *s, const char *path, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, write_trace(s, path, err));
}
