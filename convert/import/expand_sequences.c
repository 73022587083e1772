/* expand_sequences.c — sequences whose length is known: the converter keeps a list of what is in them, and what reads
 * one reads those values. An optional is what it holds, or known to hold nothing. Nothing of either is left in the
 * file. */
#include "convert/import/expand.h"

#include "base/lnt_assert.h"

#include <string.h>

#define TOO_LONG "the sequence is longer than 1024"

/* The sequence that is input 0; NULL, and reported, where its length is not known. */
static const lnt_gvalue *sequence(maker *m)
{
    const lnt_gvalue *v = &m->im->g->value[m->n->in[0]];
    if (!v->piece)
        unsupported(m, "input 0 is no sequence of known length, which is not supported");
    return v->piece ? v : NULL;
}

/* Output i is the sequence of these values, which are kept. */
static void become(maker *m, unsigned i, const uint32_t *piece, uint32_t n)
{
    if (m->status != LNT_OK || m->n->out[i] == LNT_NONE)
        return;
    LNT_ASSERT(piece && n <= LNT_IMPORT_MAX_PIECES);
    lnt_gvalue *v = &m->im->g->value[m->n->out[i]];
    v->piece = piece;
    v->n_pieces = n;
}

/* Output 0: n values of list, but for `without` at place at, or with the value `with` there; LNT_NONE: neither. */
static void set_pieces(maker *m, const uint32_t *list, uint32_t n, uint32_t at, uint32_t with, bool without)
{
    const uint32_t added = with != LNT_NONE;
    if (n + added > LNT_IMPORT_MAX_PIECES) {
        unsupported(m, TOO_LONG);
        return;
    }
    uint32_t *piece = list_of(m, n + added), count = 0;
    if (!piece)
        return;
    for (uint32_t i = 0; i < n + added; i++)
        if (added && i == at)
            piece[count++] = with;
        else if (!without || i != at)
            piece[count++] = list[i - (added && i > at)];
    become(m, 0, piece, count);
}

/* Input i as a place below n, counted back from end where it is negative; `otherwise` where it is not given. */
static bool place(maker *m, unsigned i, uint32_t n, uint32_t end, uint32_t otherwise, uint32_t *at)
{
    const uint32_t value = lnt_inode_in(m->n, i);
    int64_t p;
    *at = otherwise;
    if (value == LNT_NONE)
        return true;
    if (!lnt_graph_known_int(m->im->g, value, &p)) {
        unsupported(m, "its position must be known");
        return false;
    }
    p = p < 0 && p >= -(int64_t)end ? p + end : p;
    if ((p < 0 || p >= n) && m->im->report->n_unsupported) { /* what is missing may have been in it */
        unsupported(m, "its position is outside of the sequence");
        return false;
    }
    if (p < 0 || p >= n)
        m->status = lnt_fail(m->im->err, LNT_E_MODEL,
                             "node '%s' (%s): its position is outside of the sequence", m->n->name, m->n->op);
    *at = (uint32_t)p;
    return m->status == LNT_OK;
}

static void expand_construct(maker *m)
{
    for (unsigned i = 0; i < m->n->n_in; i++)
        if (m->n->in[i] == LNT_NONE) {
            unsupported(m, "an input of it is missing");
            return;
        }
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

bool lnt_sequence_is_even(const lnt_graph *g, const lnt_gvalue *s)
{
    const lnt_operand *first = s->n_pieces ? lnt_ginfo(g, s->piece[0]) : NULL;
    bool even = first && first->dtype && first->rank < LNT_MAX_RANK;
    for (uint32_t i = 0; even && i < s->n_pieces; i++) {
        const lnt_operand *o = lnt_ginfo(g, s->piece[i]);
        even = o && o->dtype == first->dtype && o->rank == first->rank;
        for (unsigned d = 0; even && d < o->rank; d++)
            even = o->dims[d] >= 0 && o->dims[d] == first->dims[d];
    }
    return even;
}

/* Output 0: the one of n values, all of the same extents, that the position, known in the run, tells. */
static void choose(maker *m, const uint32_t *piece, uint32_t n)
{
    const int64_t first = 0;
    const uint32_t axis = INTS(m, "axis", 0);
    uint32_t row[LNT_IMPORT_MAX_PIECES], all = LNT_NONE;
    for (uint32_t i = 0; i < n; i++)
        row[i] = make(m, "Unsqueeze", IN(piece[i], axis), NULL);
    if (m->status == LNT_OK)
        m->status = lnt_make(m->im, m->n, "Concat", row, n, INT_ATTR("axis", &first), 1, &all);
    finish(m, 0, "Gather", IN(all, m->n->in[1]), INT_ATTR("axis", &first));
    mark_text(m, 0, piece[0]);
}

static void expand_at(maker *m)
{
    const lnt_gvalue *s = sequence(m);
    const lnt_operand *position = lnt_ginfo(m->im->g, m->n->in[1]);
    int64_t known;
    uint32_t at;
    if (s && position->rank == 0 && !lnt_graph_known_int(m->im->g, m->n->in[1], &known) &&
        lnt_sequence_is_even(m->im->g, s))
        choose(m, s->piece, s->n_pieces);
    else if (s && place(m, 1, s->n_pieces, s->n_pieces, 0, &at))
        give(m, 0, s->piece[at]);
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
    const uint32_t n = s ? s->n_pieces : 0, like = n ? s->piece[0] : LNT_NONE;
    const int64_t axis = lnt_inode_i(m->n, "axis", 0);
    uint32_t in[LNT_IMPORT_MAX_PIECES];
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
    if (n)
        mark_text(m, 0, like);
}

/* ---- SplitToSequence ---- */

/* How input 0 is cut along its axis. */
typedef struct cut {
    int64_t axis, extent; /* extent: LNT_DIM_UNKNOWN where it is not known */
    int64_t parts;
    uint32_t lengths; /* of the parts, one each */
    bool squeezed;    /* the parts, of length 1, lose the axis */
} cut;

/* Parts of `length`, the last of what is left. */
static void cut_evenly(maker *m, cut *c, int64_t length)
{
    if (c->extent < 0 || length < 1) {
        unsupported(m, length < 1 ? "its parts must have a length"
                                  : "how many parts it gives is not known: fix the extent by --dim");
        return;
    }
    c->parts = c->extent / length + (c->extent % length > 0);
    if (c->parts > LNT_IMPORT_MAX_PIECES) {
        unsupported(m, TOO_LONG);
        return;
    }
    int64_t lengths[LNT_IMPORT_MAX_PIECES];
    for (int64_t i = 0; i < c->parts; i++)
        lengths[i] = i < c->parts - 1 ? length : c->extent - i * length;
    if (c->parts)
        c->lengths = make_ints(m, "lengths", lengths, (size_t)c->parts);
}

/* Lengths given one by one: how many there are is enough to know. */
static void cut_as_given(maker *m, cut *c, uint32_t lengths)
{
    c->parts = lnt_ginfo(m->im->g, lengths)->dims[0];
    if (c->parts < 0 || c->parts > LNT_IMPORT_MAX_PIECES)
        unsupported(m, c->parts < 0 ? "the length of input 1 must be known" : TOO_LONG);
    else
        c->lengths = type_of(m, lengths) == LNT_INT64 ? lengths : cast(m, lengths, LNT_INT64);
}

/* False, and reported, where it is not known. */
static bool find_cut(maker *m, cut *c)
{
    const lnt_operand *x = lnt_ginfo(m->im->g, m->n->in[0]);
    const uint32_t split = lnt_inode_in(m->n, 1);
    const lnt_operand *s = lnt_ginfo(m->im->g, split);
    const int64_t given = lnt_inode_i(m->n, "axis", 0), axis = given < 0 ? given + x->rank : given;
    const bool inside = x->rank <= LNT_MAX_RANK && axis >= 0 && axis < x->rank;
    const size_t listed = m->im->report->n_unsupported;
    *c = (cut){given, inside ? x->dims[axis] : LNT_DIM_UNKNOWN, 0, LNT_NONE,
               !s && !lnt_inode_i(m->n, "keepdims", 1)};
    int64_t length = 1;
    if (x->rank <= LNT_MAX_RANK && !inside)
        m->status = lnt_fail(m->im->err, LNT_E_MODEL, "node '%s' (%s): its axis is outside of input 0",
                             m->n->name, m->n->op);
    else if (s && s->rank == 1)
        cut_as_given(m, c, split);
    else if (s && (s->rank || !lnt_graph_known_int(m->im->g, split, &length)))
        unsupported(m, "input 1 must be known, or a list of lengths");
    else
        cut_evenly(m, c, length);
    return m->status == LNT_OK && m->im->report->n_unsupported == listed;
}

static void expand_split(maker *m)
{
    cut c;
    if (!find_cut(m, &c))
        return;
    const uint32_t n = (uint32_t)c.parts, in[] = {m->n->in[0], c.lengths};
    uint32_t *piece = list_of(m, n);
    for (uint32_t i = 0; piece && i < n; i++)
        piece[i] = new_value(m, "part");
    if (m->status == LNT_OK && n)
        m->status = lnt_make_node(m->im, m->n, "Split", in, 2, INT_ATTR("axis", &c.axis), 1, piece, n);
    const uint32_t axis = c.squeezed ? INTS(m, "axis", c.axis) : LNT_NONE;
    for (uint32_t i = 0; m->status == LNT_OK && c.squeezed && i < n; i++)
        piece[i] = make(m, "Squeeze", IN(piece[i], axis), NULL);
    become(m, 0, piece, n);
}

/* ---- SequenceMap ---- */

/* Element i of a sequence, or the same tensor for all, per input; NULL, and reported, where they do not fit. */
static uint32_t *map_inputs(maker *m, uint32_t times)
{
    const unsigned n_in = m->n->n_in;
    uint32_t *in = list_of(m, (size_t)times * n_in);
    for (unsigned k = 0; in && k < n_in; k++) {
        const uint32_t value = m->n->in[k];
        const lnt_gvalue *v = value == LNT_NONE ? NULL : &m->im->g->value[value];
        if (!v || v->absent || (v->piece && v->n_pieces != times)) {
            unsupported(m, v && v->piece ? "its sequences differ in length" : "an input of it is missing");
            return NULL;
        }
        for (uint32_t i = 0; i < times; i++)
            in[(size_t)i * n_in + k] = v->piece ? v->piece[i] : value;
    }
    return in;
}

static void expand_map(maker *m)
{
    const lnt_gvalue *s = sequence(m);
    const uint32_t times = s ? s->n_pieces : 0, n_out = m->n->n_out;
    uint32_t *in = s ? map_inputs(m, times) : NULL, *out = in ? list_of(m, (size_t)times * n_out) : NULL;
    if (!out)
        return;
    lnt_inlining all = {"body", m->n->n_in, n_out, times, in, out, NULL};
    m->status = lnt_import_inline_tensors(m->im, m->n, &all);
    for (unsigned k = 0; m->status == LNT_OK && k < n_out; k++) {
        uint32_t *piece = list_of(m, all.times);
        for (uint32_t i = 0; piece && i < all.times; i++)
            piece[i] = out[(size_t)i * n_out + k];
        become(m, k, piece, all.times);
    }
}

/* ---- optionals ---- */

/* What input 0 is, or nothing, output 0 is, too. */
static void pass_on(maker *m)
{
    const uint32_t from = lnt_inode_in(m->n, 0);
    if (from == LNT_NONE)
        m->im->g->value[m->n->out[0]].absent = true;
    else
        give(m, 0, from);
}

static void expand_get_element(maker *m)
{
    if (m->im->g->value[m->n->in[0]].absent)
        unsupported(m, "its input holds nothing");
    else
        pass_on(m);
}

/* A tensor is there: also as an input of the model, which sessions must be given. */
static void expand_has_element(maker *m)
{
    const uint32_t from = lnt_inode_in(m->n, 0);
    const bool holds = from != LNT_NONE && !m->im->g->value[from].absent;
    finish(m, 0, "Identity", IN(scalar(m, "holds", LNT_BOOL, holds)), NULL);
}

lnt_status lnt_expand_sequences(lnt_importer *im, lnt_inode *n)
{
    static const lnt_expansion table[] = {
        {"ConcatFromSequence", NULL, 1, 1, 1, expand_concat},
        {"Identity", NULL, 1, 1, 1, pass_on},
        {"Optional", NULL, 0, 1, 1, pass_on},
        {"OptionalGetElement", NULL, 1, 1, 1, expand_get_element},
        {"OptionalHasElement", NULL, 0, 1, 1, expand_has_element},
        {"SequenceAt", NULL, 2, 2, 1, expand_at},
        {"SequenceConstruct", NULL, 1, 255, 1, expand_construct},
        {"SequenceEmpty", NULL, 0, 0, 1, expand_construct},
        {"SequenceErase", NULL, 1, 2, 1, expand_erase},
        {"SequenceInsert", NULL, 2, 3, 1, expand_insert},
        {"SequenceLength", NULL, 1, 1, 1, expand_length},
        {"SequenceMap", NULL, 1, 255, 255, expand_map},
        {"SplitToSequence", NULL, 1, 2, 1, expand_split},
    };
    if (n->domain[0] || n->replaced || n->n_out == 0)
        return LNT_OK;
    if (strcmp(n->op, "Identity") == 0 && !is_no_tensor(im->g, lnt_inode_in(n, 0)))
        return LNT_OK;
    return lnt_expand_by(table, sizeof table / sizeof table[0], im, n);
}
