/* expand_sequences.c — sequences whose length is known: the converter keeps a list of what is in them, and what reads
 * one reads those values. Nothing of a sequence is left in the file. */
#include "convert/import/expand.h"

#include <string.h>

#define MOST_PIECES 1024 /* bounds what a chain of insertions takes */

static void unsupported(maker *m, const char *why)
{
    if (m->status == LNT_OK)
        m->status = lnt_import_unsupported(m->im, m->n, "%s", why);
}

/* The sequence that is input 0; NULL, and reported, where its length is not known. */
static const lnt_gvalue *sequence(maker *m)
{
    const lnt_gvalue *v = &m->im->g->value[m->n->in[0]];
    if (!v->piece)
        unsupported(m, "input 0 is no sequence of known length, which is not supported");
    return v->piece ? v : NULL;
}

/* Output 0: n values of list, but for `without` at place at, or with the value `with` there; LNT_NONE: neither. */
static void set_pieces(maker *m, const uint32_t *list, uint32_t n, uint32_t at, uint32_t with, bool without)
{
    const uint32_t added = with != LNT_NONE;
    if (n > MOST_PIECES) {
        unsupported(m, "the sequence is longer than 1024");
        return;
    }
    uint32_t *piece = lnt_bump_alloc(&m->im->g->memory, ((size_t)n + 1) * sizeof *piece, m->im->err);
    if (!piece) {
        m->status = LNT_E_MEMORY;
        return;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < n + added; i++)
        if (added && i == at)
            piece[count++] = with;
        else if (!without || i != at)
            piece[count++] = list[i - (added && i > at)];
    lnt_gvalue *v = &m->im->g->value[m->n->out[0]];
    v->piece = piece;
    v->n_pieces = count;
}

/* Input i as a place below n, counted back from end where it is negative; `otherwise` where it is not given. */
static bool place(maker *m, unsigned i, uint32_t n, uint32_t end, uint32_t otherwise, uint32_t *at)
{
    const uint32_t value = lnt_inode_in(m->n, i);
    const lnt_gvalue *v = value == LNT_NONE ? NULL : &m->im->g->value[value];
    *at = otherwise;
    if (!v)
        return true;
    const bool whole = v->info.dtype == LNT_INT32 || v->info.dtype == LNT_INT64;
    if (!v->constant || !v->info.data || !whole || lnt_operand_count(&v->info) != 1) {
        unsupported(m, "its position must be a constant");
        return false;
    }
    int64_t p = 0;
    if (v->info.dtype == LNT_INT64)
        memcpy(&p, v->info.data, sizeof p);
    else
        p = *(const int32_t *)v->info.data;
    p = p < 0 && p >= -(int64_t)end ? p + end : p;
    if (p < 0 || p >= n)
        m->status = lnt_fail(m->im->err, LNT_E_MODEL,
                             "node '%s' (%s): its position is outside of the sequence", m->n->name, m->n->op);
    *at = (uint32_t)p;
    return m->status == LNT_OK;
}

static void expand_construct(maker *m)
{
    set_pieces(m, m->n->in, m->n->n_in, 0, LNT_NONE, false);
}

static void expand_erase(maker *m)
{
    const lnt_gvalue *s = sequence(m);
    uint32_t at;
    if (s && !s->n_pieces)
        unsupported(m, "the sequence is empty");
    else if (s && place(m, 1, s->n_pieces, s->n_pieces, s->n_pieces - 1, &at))
        set_pieces(m, s->piece, s->n_pieces, at, LNT_NONE, true);
}

/* A position may be that behind the last. */
static void expand_insert(maker *m)
{
    const lnt_gvalue *s = sequence(m);
    uint32_t at;
    if (s && place(m, 2, s->n_pieces + 1, s->n_pieces, s->n_pieces, &at))
        set_pieces(m, s->piece, s->n_pieces, at, m->n->in[1], false);
}

static void expand_at(maker *m)
{
    const lnt_gvalue *s = sequence(m);
    uint32_t at;
    if (s && place(m, 1, s->n_pieces, s->n_pieces, 0, &at))
        finish(m, 0, "Identity", IN(s->piece[at]), NULL);
}

static void expand_length(maker *m)
{
    const lnt_gvalue *s = sequence(m);
    if (s)
        finish(m, 0, "Identity", IN(scalar(m, "length", LNT_INT64, s->n_pieces)), NULL);
}

static void expand_concat(maker *m)
{
    const lnt_gvalue *s = sequence(m);
    const uint32_t n = s ? s->n_pieces : 0;
    const int64_t axis = lnt_inode_i(m->n, "axis", 0);
    uint32_t in[MOST_PIECES + 1];
    if (s && !n)
        unsupported(m, "the sequence is empty");
    if (s)
        memcpy(in, s->piece, n * sizeof *in);
    const bool stack = lnt_inode_i(m->n, "new_axis", 0) != 0;
    const uint32_t at = stack ? INTS(m, "axis", axis) : LNT_NONE;
    for (uint32_t i = 0; stack && i < n; i++)
        in[i] = make(m, "Unsqueeze", IN(in[i], at), NULL);
    if (m->status == LNT_OK && n)
        m->status = lnt_make_into(m->im, m->n, "Concat", in, n, INT_ATTR("axis", &axis), 1, m->n->out[0]);
}

lnt_status lnt_expand_sequences(lnt_importer *im, lnt_inode *n)
{
    static const lnt_expansion table[] = {
        {"ConcatFromSequence", NULL, 1, 1, 1, expand_concat},
        {"SequenceAt", NULL, 2, 2, 1, expand_at},
        {"SequenceConstruct", NULL, 1, 255, 1, expand_construct},
        {"SequenceEmpty", NULL, 0, 0, 1, expand_construct},
        {"SequenceErase", NULL, 1, 2, 1, expand_erase},
        {"SequenceInsert", NULL, 2, 3, 1, expand_insert},
        {"SequenceLength", NULL, 1, 1, 1, expand_length},
    };
    if (n->domain[0] || n->replaced || n->n_out != 1 || n->out[0] == LNT_NONE)
        return LNT_OK;
    return lnt_expand_by(table, sizeof table / sizeof table[0], im, n);
}
