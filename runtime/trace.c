/* trace.c — where the time of a run went, as records and as a Chrome trace. */
#include "runtime/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

lnt_status lnt_trace_note(lnt_session *s, const lnt_step *step, uint64_t start_ns, lnt_error *err)
{
    const uint64_t end = lnt_now_ns();
    if (s->n_trace == s->trace_capacity) {
        size_t capacity = s->trace_capacity;
        LNT_TRY(LNT_GROW(&s->allocator, s->trace_step, capacity, s->n_trace, err));
        s->trace_capacity = (uint32_t)capacity;
    }
    const lnt_node *n = step->node == LNT_NONE ? NULL : lnt_session_node(s, step->node);
    lnt_trace_step *t = &s->trace_step[s->n_trace++];
    *t = (lnt_trace_step){.node = n ? n->name : "output",
                          .op = n ? n->op->name : "Copy",
                          .start_ns = start_ns - s->trace_origin_ns,
                          .duration_ns = end - start_ns};
    for (unsigned o = 0; o < step->n_out; o++)
        if (step->out[o])
            t->out_bytes += lnt_operand_bytes(step->out[o]);
    return LNT_OK;
}

uint32_t lnt_trace_count(const lnt_session *s)
{
    return s->n_trace;
}

lnt_status lnt_trace_get(const lnt_session *s, uint32_t i, lnt_trace_step *step)
{
    if (i >= s->n_trace)
        return LNT_E_ARGUMENT;
    *step = s->trace_step[i];
    return LNT_OK;
}

/* A string of JSON: names come from the model and may hold anything. */
static void put_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static void put_trace(const lnt_session *s, FILE *f)
{
    fputs("[", f);
    for (uint32_t i = 0; i < s->n_trace; i++) {
        const lnt_trace_step *t = &s->trace_step[i];
        fputs(i ? ",\n {\"name\":" : "\n {\"name\":", f);
        put_string(f, t->op);
        fprintf(f, ",\"cat\":\"step\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"node\":",
                (double)t->start_ns / 1e3, (double)t->duration_ns / 1e3);
        put_string(f, t->node);
        fprintf(f, ",\"bytes\":%" PRIu64 "}}", t->out_bytes);
    }
    fputs("\n]\n", f);
}

lnt_status lnt_trace_write(const lnt_session *s, const char *path, lnt_error *err)
{
    lnt_error_clear(err);
    LNT_REQUIRE(s->trace, err, LNT_E_ARGUMENT, "the session was made without enable_profiling");
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    LNT_REQUIRE(f, err, LNT_E_MEMORY, "no memory for the trace");
    put_trace(s, f);
    const bool whole = !ferror(f);
    lnt_status status = fclose(f) == 0 && whole ? LNT_OK : lnt_fail(err, LNT_E_MEMORY, "no memory for the trace");
    if (status == LNT_OK)
        status = lnt_write_atomic(path, text, size, err);
    free(text);
    return status;
}
