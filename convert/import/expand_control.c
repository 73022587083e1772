/* expand_control.c — If and Loop that sequences and optionals go through. Where it is known which branch is taken, or
 * how often a loop turns, what is computed takes their place; else an If gives what is in its sequences one by one. */
#include "convert/import/expand.h"

#include "base/lnt_assert.h"

#define MOST_TURNS 1024
#define CARRIES "it carries a sequence, and "

/* ---- a branch that is known ---- */

static void take_branch(maker *m)
{
    int64_t taken = 0;
    lnt_graph_known_int(m->im->g, m->n->in[0], &taken);
    const char *branch = taken ? "then_branch" : "else_branch";
    const LntOnnx__Graph *body = lnt_import_body(m->n, branch);
    const size_t n_out = body ? body->n_output : 0; /* the last of them may not be wanted */
    if (n_out < m->n->n_out || n_out > LNT_IMPORT_MAX_OPERANDS) {
        unsupported(m, "its branch's outputs are not those of the If");
        return;
    }
    uint32_t *out = list_of(m, n_out);
    if (!out)
        return;
    lnt_inlining once = {branch, 0, (unsigned)n_out, 1, NULL, out, NULL};
    m->status = lnt_import_inline(m->im, m->n, &once);
    for (unsigned i = 0; m->status == LNT_OK && i < m->n->n_out; i++)
        give(m, i, out[i]);
}

/* ---- a loop whose turns are known ---- */

/* The inputs of turn i from the outputs of the one before; fewer turns where its condition does not hold. */
static lnt_status next_turn(lnt_importer *im, const lnt_inode *n, lnt_inlining *l, unsigned i)
{
    const uint32_t *before = l->out + (size_t)(i - 1) * l->n_out;
    uint32_t *in = l->in + (size_t)i * l->n_in;
    int64_t on = 0;
    if (!lnt_graph_known_int(im->g, before[0], &on))
        LNT_TRY(lnt_import_unsupported(im, n, CARRIES "whether it goes on is not known"));
    if (!on)
        l->times = i;
    LNT_TRY(lnt_make_int(im, n, "turn", i, &in[0]));
    memcpy(in + 1, before, (l->n_in - 1) * sizeof *in);
    return LNT_OK;
}

/* At most how often it turns; false, and reported, where that is not known. */
static bool count_turns(maker *m, unsigned *turns)
{
    const lnt_graph *g = m->im->g;
    const uint32_t most = m->n->in[0], condition = m->n->in[1];
    int64_t n = 0, on = 1;
    if (most == LNT_NONE || !lnt_graph_known_int(g, most, &n)) {
        unsupported(m, CARRIES
                    "how often it turns is not known; where an input says it, fix that by --length NAME=N");
        return false;
    }
    if (condition != LNT_NONE && !lnt_graph_known_int(g, condition, &on)) {
        unsupported(m, CARRIES "its condition is not known; where it is an input, fix it by --length NAME=1");
        return false;
    }
    if (n > MOST_TURNS)
        unsupported(m, CARRIES "has more than 1024 turns");
    *turns = on && n > 0 ? (unsigned)n : 0;
    return n <= MOST_TURNS;
}

/* Output i: output `from` of every turn, stacked. */
static void stack(maker *m, unsigned i, const lnt_inlining *l, unsigned from)
{
    const int64_t first = 0;
    const uint32_t axis = INTS(m, "axis", 0);
    uint32_t row[MOST_TURNS];
    if (m->n->out[i] == LNT_NONE)
        return;
    if (l->times == 0)
        unsupported(m, "it does not turn, and gives an output of each turn");
    for (unsigned t = 0; t < l->times; t++)
        row[t] = make(m, "Unsqueeze", IN(l->out[(size_t)t * l->n_out + from], axis), NULL);
    if (m->status == LNT_OK && l->times)
        m->status =
            lnt_make_into(m->im, m->n, "Concat", row, l->times, INT_ATTR("axis", &first), 1, m->n->out[i]);
    if (l->times)
        mark_text(m, i, l->out[from]);
}

static void unroll(maker *m)
{
    const lnt_inode *n = m->n;
    const LntOnnx__Graph *body = lnt_import_body(n, "body");
    const unsigned n_in = n->n_in, carried = n_in - 2;
    const size_t n_out = body ? body->n_output : 0;
    unsigned turns;
    for (unsigned i = 2; i < n_in; i++)
        if (n->in[i] == LNT_NONE) {
            unsupported(m, "an input of it is missing");
            return;
        }
    if (n_out < carried + 1 || n_out - 1 < n->n_out || n_out > UINT8_MAX) {
        unsupported(m, "its body's outputs are not those of the loop");
        return;
    }
    if (!count_turns(m, &turns))
        return;
    uint32_t *in = list_of(m, (size_t)turns * n_in + n_in), *out = list_of(m, turns * n_out);
    if (!out)
        return;
    memcpy(in, n->in, n_in * sizeof *in);
    in[0] = scalar(m, "turn", LNT_INT64, 0);
    in[1] = scalar(m, "on", LNT_BOOL, 1);
    lnt_inlining all = {"body", n_in, (unsigned)n_out, turns, in, out, next_turn};
    if (m->status == LNT_OK)
        m->status = lnt_import_inline(m->im, n, &all);
    LNT_ASSERT(all.times <= turns);
    const uint32_t *last = all.times ? out + (all.times - 1) * n_out + 1 : n->in + 2;
    for (unsigned i = 0; m->status == LNT_OK && i < n->n_out; i++)
        if (i < carried)
            give(m, i, last[i]);
        else
            stack(m, i, &all, i + 1);
}

/* ---- a branch that is not known ---- */

/* Adds Identity of these values to a branch: its outputs from now on. */
static lnt_status hand_out(lnt_importer *im, const lnt_inode *n, uint32_t branch, const uint32_t *value,
                           uint32_t count, uint32_t *out)
{
    const uint32_t outer = im->sub;
    lnt_status status = LNT_OK;
    im->sub = branch;
    for (uint32_t i = 0; i < count && status == LNT_OK; i++) {
        status = lnt_make(im, n, "Identity", &value[i], 1, NULL, 0, &out[i]);
        if (status == LNT_OK)
            im->g->value[out[i]].text = im->g->value[value[i]].text;
    }
    im->sub = outer;
    return status;
}

/* The outputs of an If and of its branches, sequences opened. */
typedef struct opened {
    uint32_t branch[2]; /* subgraphs: then, else */
    uint32_t *out[2], *to;
    unsigned n;
} opened;

/* Output i, a sequence of n tensors in both branches. */
static lnt_status open_sequence(lnt_importer *im, const lnt_inode *n, unsigned i, const lnt_gvalue *then,
                                const lnt_gvalue *otherwise, opened *o)
{
    uint32_t *piece = lnt_bump_alloc(&im->g->memory, (then->n_pieces + 1) * sizeof *piece, im->err);
    if (!piece)
        return LNT_E_MEMORY;
    LNT_TRY(hand_out(im, n, o->branch[0], then->piece, then->n_pieces, o->out[0] + o->n));
    LNT_TRY(hand_out(im, n, o->branch[1], otherwise->piece, then->n_pieces, o->out[1] + o->n));
    for (uint32_t k = 0; k < then->n_pieces; k++) {
        const char *name = lnt_import_text(im, "%s/%u/%u", n->name, i, k);
        piece[k] = name ? lnt_graph_add_value(im->g, name) : LNT_NONE;
        if (piece[k] == LNT_NONE)
            return LNT_E_MEMORY;
        o->to[o->n++] = piece[k];
    }
    if (n->out[i] != LNT_NONE) {
        im->g->value[n->out[i]].piece = piece;
        im->g->value[n->out[i]].n_pieces = then->n_pieces;
    }
    return LNT_OK;
}

static lnt_status open_output(lnt_importer *im, const lnt_inode *n, unsigned i, opened *o)
{
    lnt_graph *g = im->g;
    const uint32_t value[2] = {g->sub[o->branch[0]].out[i], g->sub[o->branch[1]].out[i]};
    const lnt_gvalue then = g->value[value[0]], otherwise = g->value[value[1]]; /* the table grows */
    if (!then.piece && !otherwise.piece && !then.absent && !otherwise.absent) {
        o->out[0][o->n] = value[0];
        o->out[1][o->n] = value[1];
        o->to[o->n++] = n->out[i];
        return LNT_OK;
    }
    if (then.absent && otherwise.absent) {
        if (n->out[i] != LNT_NONE)
            g->value[n->out[i]].absent = true;
        return LNT_OK;
    }
    if (!lnt_import_holds_tensors(g, &then) || !lnt_import_holds_tensors(g, &otherwise) ||
        then.n_pieces != otherwise.n_pieces)
        return lnt_import_unsupported(
            im, n,
            "output %u is a sequence or optional that its branches give differently; where "
            "its condition is an input, fix it by --length NAME=0 or NAME=1",
            i);
    return open_sequence(im, n, i, &then, &otherwise, o);
}

/* How many outputs there are once sequences are opened, at most; 0: there is no sequence among them. */
static size_t count_opened(const lnt_graph *g, const lnt_gsubgraph *then, const lnt_gsubgraph *otherwise)
{
    size_t total = 0;
    bool any = false;
    for (unsigned i = 0; i < then->n_out; i++) {
        const lnt_gvalue *v = &g->value[then->out[i]], *w = &g->value[otherwise->out[i]];
        any |= v->piece || w->piece || v->absent || w->absent;
        total += 1 + (size_t)v->n_pieces;
    }
    return any ? total : 0;
}

/* Rewrites the If n and its branches, of which it hands out what is in their sequences. */
static lnt_status open_if(lnt_importer *im, lnt_inode *n)
{
    lnt_graph *g = im->g;
    const lnt_attr *then = lnt_inode_attr(n, "then_branch"), *otherwise = lnt_inode_attr(n, "else_branch");
    if (!then || !otherwise || then->type != LNT_ATTR_GRAPH || otherwise->type != LNT_ATTR_GRAPH)
        return LNT_OK;
    opened o = {.branch = {(uint32_t)*then->i, (uint32_t)*otherwise->i}};
    if (g->sub[o.branch[0]].n_out != n->n_out || g->sub[o.branch[1]].n_out != n->n_out)
        return LNT_OK;
    const size_t total = count_opened(g, &g->sub[o.branch[0]], &g->sub[o.branch[1]]);
    if (!total)
        return LNT_OK;
    if (total > LNT_IMPORT_MAX_OPERANDS)
        return lnt_import_unsupported(im, n, "its sequences have more than %d values",
                                      LNT_IMPORT_MAX_OPERANDS);
    uint32_t **const list[] = {&o.out[0], &o.out[1], &o.to};
    for (unsigned i = 0; i < 3; i++)
        if (!(*list[i] = lnt_bump_alloc(&g->memory, total * sizeof **list[i], im->err)))
            return LNT_E_MEMORY;
    const size_t listed = im->report->n_unsupported;
    for (unsigned i = 0; i < n->n_out; i++)
        LNT_TRY(open_output(im, n, i, &o));
    for (unsigned b = 0; b < 2; b++) {
        g->sub[o.branch[b]].out = o.out[b];
        g->sub[o.branch[b]].n_out = o.n;
    }
    n->out = o.to;
    n->n_out = o.n;
    n->replaced = o.n == 0 || im->report->n_unsupported > listed;
    return LNT_OK;
}

/* ---- */

static bool is_of_sequences(const char *op)
{
    return strncmp(op, "Sequence", 8) == 0 || strncmp(op, "Optional", 8) == 0 ||
           strcmp(op, "SplitToSequence") == 0 || strcmp(op, "ConcatFromSequence") == 0;
}

/* Is it a sequence of which SequenceAt cannot take a value that only the run knows? */
static bool is_uneven(const lnt_graph *g, uint32_t value)
{
    return value != LNT_NONE && g->value[value].piece && !lnt_sequence_is_even(g, &g->value[value]);
}

/* Has the graph to do with sequences or optionals? For a loop only uneven sequences from outside count. */
static bool touches(const lnt_importer *im, const LntOnnx__Graph *g, bool loop)
{
    bool found = false;
    for (size_t i = 0; g && i < g->n_node && !found; i++) {
        const LntOnnx__Node *node = g->node[i];
        found = !loop && is_of_sequences(node->op_type ? node->op_type : "");
        for (size_t k = 0; k < node->n_input && !found; k++) {
            const uint32_t value = lnt_import_lookup(im, node->input[k]);
            found = loop ? is_uneven(im->g, value) : is_no_tensor(im->g, value);
        }
        for (size_t a = 0; a < node->n_attribute && !found; a++)
            found = touches(im, node->attribute[a]->g, loop);
    }
    return found;
}

static bool any_body_touches(const lnt_importer *im, const LntOnnx__Node *node, bool loop)
{
    bool found = false;
    for (size_t a = 0; a < node->n_attribute; a++)
        found |= touches(im, node->attribute[a]->g, loop);
    return found;
}

/* Does a loop of this body go on until its turns are over, as far as can be told before it is read? */
static bool is_steady(const LntOnnx__Graph *body)
{
    const char *out = body->n_output && body->output[0]->name ? body->output[0]->name : "";
    const char *in = body->n_input > 1 && body->input[1]->name ? body->input[1]->name : "";
    bool steady = strcmp(out, in) == 0;
    for (size_t i = 0; i < body->n_node; i++) {
        const LntOnnx__Node *n = body->node[i];
        if (n->n_output != 1 || strcmp(n->output[0], out) != 0 || !n->op_type)
            continue;
        steady |= strcmp(n->op_type, "Constant") == 0 ||
                  (strcmp(n->op_type, "Identity") == 0 && n->n_input == 1 && strcmp(n->input[0], in) == 0);
    }
    return steady;
}

/* Is it known how often the loop turns, once it is unrolled? */
static bool turns_are_known(const lnt_importer *im, const lnt_inode *n, const LntOnnx__Node *node)
{
    const uint32_t most = lnt_inode_in(n, 0), condition = lnt_inode_in(n, 1);
    int64_t turns, on;
    bool known = n->n_in > 1 && most != LNT_NONE && lnt_graph_known_int(im->g, most, &turns) &&
                 turns <= MOST_TURNS && (condition == LNT_NONE || lnt_graph_known_int(im->g, condition, &on));
    for (size_t a = 0; a < node->n_attribute; a++)
        known &= !node->attribute[a]->g || is_steady(node->attribute[a]->g);
    return known;
}

bool lnt_control_inlined(const lnt_importer *im, const lnt_inode *n, const LntOnnx__Node *node)
{
    int64_t taken;
    if (strcmp(n->op, "If") == 0)
        return lnt_graph_known_int(im->g, lnt_inode_in(n, 0), &taken) && any_body_touches(im, node, false);
    if (strcmp(n->op, "Loop") != 0)
        return false;
    for (unsigned i = 2; i < n->n_in; i++)
        if (is_no_tensor(im->g, n->in[i]))
            return true;
    return turns_are_known(im, n, node) && any_body_touches(im, node, true);
}

lnt_status lnt_expand_control(lnt_importer *im, lnt_inode *n)
{
    static const lnt_expansion table[] = {{"If", NULL, 1, 1, 255, take_branch},
                                          {"Loop", NULL, 0, 255, 255, unroll}};
    if (n->domain[0] || n->replaced)
        return LNT_OK;
    if (n->inlined)
        return lnt_expand_by(table, sizeof table / sizeof table[0], im, n);
    return strcmp(n->op, "If") == 0 ? open_if(im, n) : LNT_OK;
}
