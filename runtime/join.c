/* join.c — inputs of a Concat that are computed where it wants them: in its output.
 *
 * An input that is a run of the output's bytes simply lies there, whoever computes and reads it. One that is
 * not has a pitch there: its rows are as far apart as the output's. For that it must be computed and read by
 * steps that heed pitches. The Concat has nothing left to do. Its output may be another one's input in turn:
 * the last one comes first, for its pitch is that of all.
 *
 *     a ──▶ Concat ──▶ c          c  | a a b b b | a a b b b | a a b b b |
 *     b ─────┘                       0           pitch
 *
 * The output is alive from the first of its inputs on: they are joined only as far as no more bytes than a
 * given number are alive at any time. */
#include "runtime/internal.h"

static lnt_storage *storage_of(lnt_session *s, const lnt_operand *o)
{
    return &s->storage[lnt_storage_root(s, o->storage)];
}

/* Does another input of the step lie in the same storage? */
static bool is_read_twice(lnt_session *s, const lnt_step *step, unsigned i)
{
    for (unsigned j = 0; j < step->n_in; j++)
        if (j != i && storage_of(s, step->in[j]) == storage_of(s, step->in[i]))
            return true;
    return false;
}

/* The pitch of input i within output 0, which may have one itself; 0: none. */
static int64_t pitch_of(const lnt_step *step, unsigned i)
{
    return step->out[0]->pitch ? step->out[0]->pitch : step->join[i].pitch;
}

/* May input i of a step that runs at `time` be computed within output 0, as far as lives and readers tell? */
static bool can_join(lnt_session *s, const lnt_frame *f, const lnt_step *step, uint32_t time, unsigned i)
{
    const lnt_operand *in = step->in[i];
    const lnt_storage *from = storage_of(s, in), *to = storage_of(s, step->out[0]);
    if (!step->join[i].fits || from->place != LNT_PLACE_ARENA || from->pinned || from->laid || to->laid ||
        from->last != time || from->parent >= s->model->n_values || s->home[from->parent] != f ||
        in->offset || from->bytes != lnt_operand_bytes(in) || is_read_twice(s, step, i))
        return false;
    return !pitch_of(step, i) || (from->takes_pitch && !from->needs_rows && in == &s->value[from->parent]);
}

bool lnt_may_join(lnt_session *s, const lnt_frame *f, uint32_t from)
{
    for (uint32_t i = from; i < f->n_steps; i++) {
        const lnt_step *step = f->list[i];
        for (unsigned n = 0; step->join && n < step->n_in; n++)
            if (can_join(s, f, step, f->time[i], n))
                return true;
    }
    return false;
}

/* The first time at or after `time` at which an input that is to be joined is computed; LNT_NONE: none is. */
static uint32_t first_after(lnt_session *s, const lnt_step *step, uint32_t time)
{
    uint32_t first = LNT_NONE;
    for (unsigned i = 0; i < step->n_in; i++) {
        const lnt_storage *from = storage_of(s, step->in[i]);
        if (from->joins && from->first >= time && from->first < first)
            first = from->first;
    }
    return first;
}

/* Bytes alive at a time, were the inputs made from `first` on joined. */
static size_t alive_at(lnt_session *s, const lnt_frame *f, const lnt_step *step, uint32_t time,
                       uint32_t first)
{
    const lnt_storage *to = storage_of(s, step->out[0]);
    size_t alive = f->alive[time];
    if (time < to->first && to->place == LNT_PLACE_ARENA)
        alive += lnt_storage_extent(to);
    for (unsigned i = 0; i < step->n_in; i++) {
        const lnt_storage *from = storage_of(s, step->in[i]);
        if (from->joins && from->first >= first && from->first <= time)
            alive -= lnt_storage_extent(from);
    }
    return alive;
}

/* From when on inputs may be joined: LNT_NONE if not at all. */
static uint32_t find_first(lnt_session *s, const lnt_frame *f, const lnt_step *step, size_t most)
{
    const uint32_t until = storage_of(s, step->out[0])->first;
    uint32_t first = first_after(s, step, 0), time = first;
    while (time < until) {
        if (alive_at(s, f, step, time, first) > most)
            time = first = first_after(s, step, first + 1);
        else
            time++;
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
static bool join_inputs(lnt_session *s, lnt_frame *f, const lnt_step *step, uint32_t time, size_t most)
{
    for (unsigned i = 0; i < step->n_in; i++)
        storage_of(s, step->in[i])->joins = can_join(s, f, step, time, i);
    lnt_storage *to = storage_of(s, step->out[0]);
    const uint32_t first = find_first(s, f, step, most);
    for (uint32_t t = first; t <= time && first != LNT_NONE; t++)
        f->alive[t] = alive_at(s, f, step, t, first);
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
        const uint32_t time = f->time[i];
        if (f->list[i]->join)
            any |= join_inputs(s, f, f->list[i], time, most ? most : f->alive[time]);
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
        s->storage[out].first = f->time[i];
        for (unsigned n = 0; n < step->n_in; n++)
            part(s, step->in[n], out);
    }
}
