/* check_run.c — the checking run loop of builds with a sanitizer.
 *
 * Before a step what it must leave alone is hashed: operands and where they are, inputs, what is between the rows
 * of an output and right beside it. Then its outputs are filled with a pattern. Of the arenas and of the states'
 * buffers it may touch its operands and its scratch memory: the address sanitizer is told that everything else is
 * out of bounds. After it the hash must be the same, and of no output an element may still be the pattern.
 *
 *     arena  | x | a a a a | ~ | out | ~ |    a: an input; ~: canaries; x: out of bounds for the time of the
 * step
 *
 * Nothing is allocated: a run of a checked build takes the memory that any other takes. */
#include "runtime/check_run.h"

#ifdef LNT_CHECKED

#include "base/lnt_assert.h"
#include "formats/hash.h"

#include <stdio.h>
#include <string.h>

#if LNT_IS_WATCHED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum {
    EDGE = LNT_ALIGN,    /* bytes on each side of what is written that are looked at */
    WRITTEN_MOST = 256,  /* of more areas edges are not looked for: that takes the square of their number */
    STORAGES_MOST = 4096 /* so do pairs of storages */
};

enum { PERIOD = 4 };

/* What outputs are filled with. It follows from the hash of what a step reads, so that no operand holds it but by
 * accident, whoever has seen what earlier outputs were filled with. */
typedef struct filling {
    uint32_t word[4];
} filling;

/* Rows of memory, `step` bytes apart. */
typedef struct area {
    char *begin;
    size_t rows, row, step;
} area;

typedef struct block {
    char *begin, *end;
} block;

/* Steps that run side by side. */
typedef struct group {
    lnt_session *s;
    const lnt_step *const *step;
    uint32_t n;
    size_t n_written;
} group;

/* ---- where things are ---- */

static area area_of(const lnt_session *s, const lnt_operand *o)
{
    const int64_t count = o && !o->constant && !o->packed ? lnt_operand_count(o) : 0;
    const size_t size = o ? lnt_dtype_size((lnt_dtype)o->dtype) : 0;
    if (count <= 0 || !size || o->storage == LNT_NO_STORAGE || !s->slot[o->storage])
        return (area){NULL, 0, 0, 0};
    area a = {(char *)s->slot[o->storage] + o->offset, 1, (size_t)count * size, 0};
    if (o->plane_pitch) {
        (void)lnt_shape_bytes(o->dims, 2, 1, &a.rows);
        a.step = (size_t)o->plane_pitch * size;
    } else if (o->pitch) {
        const int64_t row = o->dims[o->order == LNT_ORDER_CHANNELS_LAST ? 1 : o->rank - 1];
        a.rows = (size_t)(count / row);
        a.step = (size_t)o->pitch * size;
    }
    a.row /= a.rows;
    return a;
}

/* An input of the step, or of its producer; a value that passes through a ring buffer has no memory. */
static area input_of(const lnt_session *s, const lnt_step *step, unsigned i)
{
    return area_of(s, i == 0 && step->producer ? NULL : step->in[i]);
}

/* Output o; behind the last one the scratch memory. */
static area written_by(const lnt_session *s, const lnt_step *step, unsigned o)
{
    if (o < step->n_out)
        return area_of(s, step->out[o]);
    if (step->scratch_slot == LNT_NO_STORAGE)
        return (area){NULL, 0, 0, 0};
    return (area){s->slot[step->scratch_slot], 1, step->scratch_bytes, 0};
}

static char *end_of(const area *a)
{
    return a->rows ? a->begin + (a->rows - 1) * a->step + a->row : a->begin;
}

static bool overlap(const area *a, const area *b)
{
    if (!a->rows || !b->rows || end_of(a) <= b->begin || end_of(b) <= a->begin)
        return false;
    if (a->step != b->step || a->step == 0)
        return true;
    const size_t step = a->step; /* columns of one matrix may be adjacent */
    const size_t apart = b->begin >= a->begin ? (size_t)(b->begin - a->begin) % step
                                              : (step - (size_t)(a->begin - b->begin) % step) % step;
    return apart < a->row || apart + b->row > step;
}

/* Block number i of those that a run writes in: arenas, states, the caller's outputs; false behind the last. */
static bool block_at(const lnt_session *s, uint32_t i, block *b)
{
    const lnt_model *m = s->model;
    const uint32_t bodies = m->file.n_subgraphs > 1 ? m->n_nodes : 0;
    const void *data = NULL;
    size_t bytes = 0;
    if (i <= bodies) {
        const lnt_frame *f = i ? s->loops.body[i - 1] : &s->root;
        data = f ? f->arena.data : NULL;
        bytes = f ? f->arena.capacity : 0;
    } else if ((i -= bodies + 1) < 2 * s->states.n) {
        const lnt_buffer *buffer = i & 1 ? &s->states.slot[i / 2].now : &s->states.slot[i / 2].next;
        data = buffer->data;
        bytes = buffer->capacity;
    } else if ((i -= 2 * s->states.n) < m->n_out) {
        data = s->output[i].data;
        bytes = s->output[i].bytes;
    } else {
        return false;
    }
    b->begin = (char *)(uintptr_t)data;
    b->end = data ? b->begin + bytes : b->begin;
    return true;
}

static bool is_callers(const lnt_session *s, const block *b)
{
    for (uint32_t i = 0; i < s->model->n_out; i++)
        if (s->output[i].data == b->begin)
            return true;
    return false;
}

static bool find_block(const lnt_session *s, const char *at, block *found)
{
    for (uint32_t i = 0; block_at(s, i, found); i++)
        if (at >= found->begin && at < found->end)
            return true;
    return false;
}

/* ---- what is wrong ---- */

static void stop(const lnt_session *s, const lnt_step *step, unsigned operand, const char *what)
{
    char text[512];
    const bool named = step->node != LNT_NONE;
    const lnt_node *n = named ? lnt_session_node(s, step->node) : NULL;
    snprintf(text, sizeof text, "%s (%s), operand %u: %s", named ? n->name : "an output",
             named ? lnt_op_name(n->op) : "copy", operand, what);
    lnt_assert_failed(__FILE__, __LINE__, text);
}

/* ---- what a step has to leave alone ---- */

static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t n)
{
    return n ? lnt_mix_seed(hash ^ lnt_hash(bytes, n)) : hash;
}

static uint64_t add_rows(uint64_t hash, const area *a)
{
    for (size_t r = 0; r < a->rows; r++)
        hash = add_bytes(hash, a->begin + r * a->step, a->row);
    return hash;
}

static uint64_t add_gaps(uint64_t hash, const area *a)
{
    for (size_t r = 0; r + 1 < a->rows; r++)
        hash = add_bytes(hash, a->begin + r * a->step + a->row, a->step - a->row);
    return hash;
}

static bool is_written(const group *g, const lnt_step *step, const area *a)
{
    for (unsigned o = 0; o <= step->n_out; o++) {
        const area w = written_by(g->s, step, o);
        if (overlap(a, &w))
            return true;
    }
    return false;
}

/* Cuts [from, to), which begins or ends where something is written, short of all else that is. */
static void clip(const group *g, char **from, char **to, bool behind)
{
    for (uint32_t i = 0; i < g->n; i++)
        for (unsigned o = 0; o <= g->step[i]->n_out; o++) {
            const area w = written_by(g->s, g->step[i], o);
            if (!w.rows || w.begin >= *to || end_of(&w) <= *from)
                continue;
            if (behind)
                *to = w.begin > *from ? w.begin : *from;
            else
                *from = end_of(&w) < *to ? end_of(&w) : *to;
        }
}

/* What is right before and behind an area, in its block. */
static uint64_t add_edges(uint64_t hash, const group *g, const area *a)
{
    block b;
    if (g->n_written > WRITTEN_MOST || !a->rows || !find_block(g->s, a->begin, &b))
        return hash;
    char *end = end_of(a), *begin = a->begin;
    char *to = b.end - end > EDGE ? end + EDGE : b.end,
         *from = begin - b.begin > EDGE ? begin - EDGE : b.begin;
    clip(g, &end, &to, true);
    clip(g, &from, &begin, false);
    hash = add_bytes(hash, end, (size_t)(to - end));
    return add_bytes(hash, from, (size_t)(begin - from));
}

static uint64_t add_step(uint64_t hash, const group *g, const lnt_step *step)
{
    for (unsigned i = 0; i < step->n_held; i++) {
        const area in = input_of(g->s, step, i);
        if (step->in[i])
            hash = add_bytes(hash, step->in[i], sizeof *step->in[i]);
        if (!is_written(g, step, &in))
            hash = add_rows(hash, &in);
    }
    for (unsigned o = 0; o <= step->n_out; o++) {
        const area w = written_by(g->s, step, o);
        if (o < step->n_out && step->out[o])
            hash = add_bytes(hash, step->out[o], sizeof *step->out[o]);
        hash = add_gaps(add_edges(hash, g, &w), &w);
    }
    return hash;
}

static uint64_t hash_kept(const group *g)
{
    uint64_t hash = g->n;
    for (uint32_t i = 0; i < g->n; i++)
        hash = add_step(hash, g, g->step[i]);
    return hash;
}

/* ---- outputs ---- */

/* Does all of output o come from this step? In place, joined or appended some of it is there before. */
static bool is_fresh(const lnt_session *s, const lnt_step *step, unsigned o)
{
    const area out = written_by(s, step, o);
    for (unsigned i = 0; i < step->n_held; i++) {
        const area in = input_of(s, step, i);
        if (overlap(&in, &out))
            return false;
    }
    return out.rows > 0;
}

/* NaN as float and double where the lowest byte comes first; no -1, no NaN that an operation makes. */
static filling filling_of(uint64_t kept)
{
    enum { QUIET_NAN = 0xffc00000, VARIES = 0x1ffffe, NOT_COMMON = 1 };
    const uint32_t word = QUIET_NAN | ((uint32_t)lnt_mix_seed(kept) & VARIES) | NOT_COMMON;
    return (filling){{word, word, word, word}};
}

static void fill(const area *a, const filling *f)
{
    for (size_t r = 0; r < a->rows; r++)
        for (size_t at = 0; at < a->row; at += sizeof *f)
            memcpy(a->begin + r * a->step + at, f, a->row - at < sizeof *f ? a->row - at : sizeof *f);
}

/* Numbers of 8 bytes, and up to FEW of 4, are what was filled in by no accident; of others only all together are not: a
 * long Range of integers comes to each of 4 bytes. */
static bool is_left(const area *a, size_t size, const filling *f)
{
    enum { FEW = 1 << 16 };
    const char *const pattern = (const char *)f->word;
    const bool one_tells = size >= 8 || (size == 4 && a->rows * a->row / 4 <= FEW);
    bool all = true;
    for (size_t r = 0; r < a->rows; r++)
        for (size_t at = 0; at < a->row; at += size) {
            const bool same = memcmp(a->begin + r * a->step + at, pattern + at % PERIOD, size) == 0;
            if (same && one_tells)
                return true;
            all &= same;
        }
    return all && a->rows * a->row >= sizeof *f;
}

/* What the planner promised of the memory that the step writes. */
static void check_places(const group *g, const lnt_step *step)
{
    for (unsigned o = 0; o <= step->n_out; o++) {
        const area w = written_by(g->s, step, o);
        block b;
        if (!w.rows)
            continue;
        if (find_block(g->s, w.begin, &b) && end_of(&w) > b.end)
            stop(g->s, step, o, "it reaches over the end of its memory");
        if (o == step->n_out && !lnt_is_aligned(w.begin, LNT_ALIGN))
            stop(g->s, step, o, "scratch memory is not aligned");
        if (o < step->n_out && !lnt_is_aligned(w.begin, lnt_dtype_size((lnt_dtype)step->out[o]->dtype)))
            stop(g->s, step, o, "it is not aligned to its elements");
    }
    const area scratch = written_by(g->s, step, step->n_out);
    for (unsigned i = 0; i < step->n_held; i++) {
        const area in = input_of(g->s, step, i);
        if (overlap(&in, &scratch))
            stop(g->s, step, i, "scratch memory lies in an input");
    }
}

/* ---- out of bounds ---- */

static void forbid(const area *a, bool allowed)
{
    for (size_t r = 0; r < a->rows; r++) {
        if (allowed)
            ASAN_UNPOISON_MEMORY_REGION(a->begin + r * a->step, a->row);
        else
            ASAN_POISON_MEMORY_REGION(a->begin + r * a->step, a->row);
    }
}

/* All memory of the session's own that steps write in. */
static void forbid_all(const lnt_session *s, bool allowed)
{
    block b;
    for (uint32_t i = 0; block_at(s, i, &b); i++) {
        const area all = {b.begin, b.end > b.begin, (size_t)(b.end - b.begin), 0};
        if (!is_callers(s, &b))
            forbid(&all, allowed);
    }
}

static void allow_operands(const group *g, const lnt_step *step)
{
    for (unsigned i = 0; i < step->n_held; i++) {
        const area in = input_of(g->s, step, i);
        forbid(&in, true);
    }
    for (unsigned o = 0; o <= step->n_out; o++) {
        const area w = written_by(g->s, step, o);
        forbid(&w, true);
    }
}

/* ---- around a step ---- */

static group group_of(lnt_session *s, const lnt_step *const *step, uint32_t n)
{
    group g = {s, step, n, 0};
    for (uint32_t i = 0; i < n; i++)
        g.n_written += step[i]->n_out + 1u;
    return g;
}

uint64_t lnt_check_before(lnt_session *s, const lnt_step *const *step, uint32_t n)
{
    const group g = group_of(s, step, n);
    for (uint32_t i = 0; i < n; i++)
        check_places(&g, step[i]);
    const uint64_t kept = hash_kept(&g);
    const filling f = filling_of(kept);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned o = 0; o < step[i]->n_out; o++) {
            const area out = written_by(s, step[i], o);
            if (is_fresh(s, step[i], o))
                fill(&out, &f);
        }
    forbid_all(s, false);
    for (uint32_t i = 0; i < n; i++)
        allow_operands(&g, step[i]);
    return kept;
}

void lnt_check_after(lnt_session *s, const lnt_step *const *step, uint32_t n, uint64_t kept,
                     lnt_status status)
{
    const group g = group_of(s, step, n);
    const filling f = filling_of(kept);
    forbid_all(s, true);
    if (hash_kept(&g) != kept)
        stop(s, step[0], 0, "it, or a step beside it, wrote what is not its own, or changed an operand");
    for (uint32_t i = 0; i < n && status == LNT_OK; i++)
        for (unsigned o = 0; o < step[i]->n_out; o++) {
            const area out = written_by(s, step[i], o);
            if (is_fresh(s, step[i], o) &&
                is_left(&out, lnt_dtype_size((lnt_dtype)step[i]->out[o]->dtype), &f))
                stop(s, step[i], o, "an element of the output was not written");
        }
}

/* ---- the plan ---- */

/* The storage laid out for output o of a step, or for its scratch memory behind the last; or NULL. */
static const lnt_storage *laid_for(lnt_session *s, const lnt_step *step, unsigned o)
{
    const lnt_storage *made = NULL;
    if (o < step->n_out && step->out[o])
        made = &s->storage[lnt_storage_root(s, step->out[o]->storage)];
    else if (o == step->n_out && step->scratch_slot != LNT_NO_STORAGE)
        made = &s->storage[step->scratch_slot];
    return made && made->place == LNT_PLACE_ARENA && made->laid ? made : NULL;
}

static void check_apart(const lnt_session *s, const lnt_storage *a, const lnt_storage *b)
{
    const bool together = s->memory.separate || (a->first <= b->last && b->first <= a->last);
    LNT_ASSERT(a == b || !together || a->offset + lnt_storage_extent(a) <= b->offset ||
               b->offset + lnt_storage_extent(b) <= a->offset);
}

void lnt_check_plan(lnt_session *s, const lnt_frame *f)
{
    for (uint32_t i = 0; i < f->n_steps; i++)
        for (unsigned o = 0; o <= f->list[i]->n_out; o++) {
            const lnt_storage *a = laid_for(s, f->list[i], o);
            if (!a)
                continue;
            LNT_ASSERT(a->first <= a->last);
            LNT_ASSERT(a->first <= f->wave[i] && a->last >= f->wave[i]);
            LNT_ASSERT(a->offset % LNT_ALIGN == 0);
            LNT_ASSERT(a->offset + lnt_storage_extent(a) <= f->arena.capacity);
            for (uint32_t j = 0; j <= i && f->n_steps <= STORAGES_MOST; j++)
                for (unsigned p = 0; p <= f->list[j]->n_out; p++) {
                    const lnt_storage *b = laid_for(s, f->list[j], p);
                    if (b)
                        check_apart(s, a, b);
                }
        }
}

#endif
