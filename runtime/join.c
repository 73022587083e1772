/* join.c — inputs of a Concat that are computed where it wants them: in its output.
 *
 * An input that is a run of the output's bytes is simply computed there, whoever computes and reads it. One that is
 * not has a pitch there: its rows are as far apart as the output's. For that it must be computed and read by
 * steps that heed pitches. The Concat has nothing left to do. Its output may be another one's input in turn:
 * the last one comes first, for its pitch is that of all.
 *
 *     a ──▶ Concat ──▶ c          c  | a a b b b | a a b b b | a a b b b |
 *     b ─────┘                       0           pitch
 *
 * The output is alive from the first of its inputs on: they are joined only as far as no more bytes than a
 * given number are alive in any wave. */
#include "runtime/internal.h"

#include <string.h>

enum { SPAN = 1024 }; /* steps from an input to its Concat: more would not do plans' time good */

static lnt_storage *storage_of(lnt_session *s, const lnt_operand *o)
{
    return &s->storage[lnt_storage_root(s, o->storage)];
}

/* The pitch of input i within output 0, which may have one itself; 0: none. */
static int64_t pitch_of(const lnt_step *step, unsigned i)
{
    return step->out[0]->pitch ? step->out[0]->pitch : step->join[i].pitch;
}

/* May input i of a step of that wave be computed within output 0, as far as lives and readers tell? */
static bool can_join(lnt_session *s, const lnt_frame *f, const lnt_step *step, uint32_t wave, unsigned i)
{
    const lnt_operand *in = step->in[i];
    const lnt_storage *from = storage_of(s, in), *to = storage_of(s, step->out[0]);
    size_t bytes;
    if (!step->join[i].fits || from->place != LNT_PLACE_ARENA || from->pinned || from->laid || to->laid ||
        from->last != wave || wave - from->first >= SPAN || from->parent >= s->model->n_values ||
        s->binding.home[from->parent] != f || in->offset || !lnt_operand_bytes(in, &bytes) ||
        from->bytes != bytes)
        return false;
    return !pitch_of(step, i) || (from->takes_pitch && !from->needs_rows && in == &s->value[from->parent]);
}

/* Notes in their storages which inputs can; none of two that are in the same one. Returns whether any can. */
static bool note_joins(lnt_session *s, const lnt_frame *f, const lnt_step *step, uint32_t wave)
{
    bool any = false;
    for (unsigned i = 0; i < step->n_in; i++)
        storage_of(s, step->in[i])->seen = false;
    for (unsigned i = 0; i < step->n_in; i++) {
        lnt_storage *from = storage_of(s, step->in[i]);
        from->joins = !from->seen && can_join(s, f, step, wave, i);
        from->seen = true;
    }
    for (unsigned i = 0; i < step->n_in; i++)
        any |= storage_of(s, step->in[i])->joins;
    return any;
}

bool lnt_may_join(lnt_session *s, const lnt_frame *f, uint32_t from)
{
    for (uint32_t i = from; i < f->n_steps; i++)
        if (f->list[i]->join && note_joins(s, f, f->list[i], f->wave[i]))
            return true;
    return false;
}

/* The waves up to that of a Concat. */
typedef struct window {
    uint32_t begin, end;
    size_t made[SPAN]; /* bytes of inputs to be joined that are computed at each */
} window;

static void find_made(lnt_session *s, const lnt_step *step, uint32_t wave, window *w)
{
    w->end = wave + 1;
    w->begin = w->end > SPAN ? w->end - SPAN : 0;
    memset(w->made, 0, sizeof w->made);
    for (unsigned i = 0; i < step->n_in; i++) {
        const lnt_storage *from = storage_of(s, step->in[i]);
        if (from->joins)
            w->made[from->first - w->begin] += lnt_storage_extent(from);
    }
}

/* Bytes alive in a wave in which inputs of so many bytes are in the output. */
static size_t alive_with(const lnt_frame *f, const lnt_storage *to, uint32_t wave, size_t joined)
{
    const bool early = wave < to->first && to->place == LNT_PLACE_ARENA;
    return f->layout.alive[wave] + (early ? lnt_storage_extent(to) : 0) - joined;
}

/* The first wave whose inputs may be joined: LNT_NONE if there is none. Where the inputs computed since some wave need
 * too much, those computed since a later wave do, too. */
static uint32_t find_first(const lnt_frame *f, const lnt_storage *to, const window *w, size_t most)
{
    uint32_t first = LNT_NONE;
    size_t joined = 0;
    for (uint32_t t = w->begin; t < w->end; t++) {
        const size_t made = w->made[t - w->begin];
        joined += made;
        if (made && first == LNT_NONE)
            first = t;
        if (first == LNT_NONE || t >= to->first || alive_with(f, to, t, joined) <= most)
            continue;
        first = LNT_NONE;
        joined = 0;
    }
    return first;
}

static void join(lnt_session *s, const lnt_step *step, unsigned i, lnt_storage *to)
{
    lnt_operand *in = step->in[i];
    lnt_storage *from = storage_of(s, in);
    from->parent = step->out[0]->storage;
    from->offset = step->join[i].offset;
    in->pitch = pitch_of(step, i);
    if (from->first < to->first)
        to->first = from->first;
}

/* Returns whether there are any. */
static bool join_inputs(lnt_session *s, lnt_frame *f, const lnt_step *step, uint32_t wave, size_t most)
{
    window w;
    if (!note_joins(s, f, step, wave))
        return false;
    find_made(s, step, wave, &w);
    lnt_storage *to = storage_of(s, step->out[0]);
    const uint32_t first = find_first(f, to, &w, most);
    size_t joined = 0;
    for (uint32_t t = first; t < w.end; t++) { /* not at all if LNT_NONE */
        joined += w.made[t - w.begin];
        f->layout.alive[t] = alive_with(f, to, t, joined);
    }
    for (unsigned i = 0; i < step->n_in; i++) {
        lnt_storage *from = storage_of(s, step->in[i]);
        if (!from->joins)
            continue;
        from->joins = false;
        if (from->first >= first)
            join(s, step, i, to);
    }
    return first != LNT_NONE;
}

bool lnt_join_inputs(lnt_session *s, lnt_frame *f, uint32_t from, size_t most)
{
    bool any = false;
    for (uint32_t i = f->n_steps; i-- > from;) {
        const uint32_t wave = f->wave[i];
        if (f->list[i]->join)
            any |= join_inputs(s, f, f->list[i], wave, most ? most : f->layout.alive[wave]);
    }
    return any;
}

/* Storages on the way from an input to the output: one was merged by join(). */
static void part(lnt_session *s, lnt_operand *in, uint32_t out)
{
    for (uint32_t at = in->storage, next; (next = s->storage[at].parent) != at; at = next)
        if (next == out) {
            s->storage[at].parent = at;
            in->pitch = 0;
            return;
        }
}

void lnt_part_inputs(lnt_session *s, lnt_frame *f, uint32_t from)
{
    for (uint32_t i = from; i < f->n_steps; i++) {
        const lnt_step *step = f->list[i];
        if (!step->join)
            continue;
        const uint32_t out = step->out[0]->storage;
        s->storage[out].first = f->wave[i];
        for (unsigned n = 0; n < step->n_in; n++)
            part(s, step->in[n], out);
    }
}
