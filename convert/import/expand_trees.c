/* expand_trees.c — the tree ensembles of ai.onnx.ml become one table of nodes, linnet.TreeEnsemble (ops/ml/trees.c).
 *
 * Both forms of ONNX (nodes named by tree and number, and TreeEnsemble of opset 5) are first read into `branch`es. Each
 * is then laid out as comparisons x <= threshold, for every mode of a node says in which intervals of x it is true:
 * BRANCH_LT ends just below its value, BRANCH_EQ is true in one interval of three, BRANCH_MEMBER in every other one. */
#include "convert/import/expand_ml.h"

#include "base/lnt_assert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum mode { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF, MODES } mode;

/* A node as the model has it. */
typedef struct branch {
    int64_t tree, number; /* its name */
    uint32_t side[2];     /* false, true: numbers of branches */
    uint32_t first, n;    /* members, or of a leaf its weights in forest.order */
    uint32_t placed;      /* where a leaf is, or that a node was reached */
    int64_t feature;
    double value;
    uint8_t mode;
    bool missing; /* NaN goes to the true side */
} branch;

typedef struct forest {
    branch *branch;
    uint32_t n, n_roots;
    uint32_t *root;
    const double *member;
    uint32_t *order, *target; /* weights by leaf: order[] into weight[], target[] */
    const double *weight;
    size_t n_weights;
    bool doubles; /* computed in double */
    int64_t n_targets, n_features;
    unsigned aggregate;
} forest;

/* A node as the table has it. */
typedef struct slot {
    double value;
    uint32_t leaf, feature, child;
    bool is_leaf;
} slot;

typedef struct pending {
    uint32_t branch, slot;
} pending;

typedef struct layout {
    maker *m;
    forest *f;
    slot *slot;
    uint32_t *root;       /* slots */
    pending *todo, *copy; /* branches to be laid out; slots that are to be as another is */
    uint32_t n_slots, n_todo, n_copy;
} layout;

/* ---- one table out of branches ---- */

static double below(double v, bool doubles)
{
    if (v == -INFINITY) /* nothing is below */
        return NAN;
    return doubles ? nextafter(v, -INFINITY) : (double)nextafterf((float)v, -INFINITY);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Thresholds between the intervals of b, ascending, into t (room for 2 n + 2); *first: whether the lowest is true. */
static uint32_t intervals(const forest *f, const branch *b, double *t, bool *first)
{
    const double v = f->doubles ? b->value : (double)(float)b->value;
    const bool nowhere = v != v; /* no comparison with NaN holds, but that of not being equal */
    uint32_t n = 0;
    *first = b->mode == LEQ || b->mode == LT || b->mode == NEQ;
    if (b->mode == MEMBER) {
        for (uint32_t i = 0; i < b->n; i++)
            t[b->n + 1 + i] = f->doubles ? f->member[b->first + i] : (double)(float)f->member[b->first + i];
        qsort(t + b->n + 1, b->n, sizeof *t, by_value);
        for (uint32_t i = 0; i < b->n; i++) {
            const double member = t[b->n + 1 + i];
            if (n && t[n - 1] == member)
                continue;
            t[n++] = below(member, f->doubles);
            t[n++] = member;
        }
        return n;
    }
    if (b->mode == EQ || b->mode == NEQ || b->mode == LT || b->mode == GTE)
        t[n++] = nowhere && b->mode == GTE ? INFINITY : below(v, f->doubles);
    if (b->mode == EQ || b->mode == NEQ || b->mode == LEQ || b->mode == GT)
        t[n++] = nowhere && b->mode == GT ? INFINITY : v;
    return n;
}

static void later(layout *l, uint32_t number, uint32_t at)
{
    branch *b = &l->f->branch[number];
    if (b->mode != LEAF && b->placed && l->m->status == LNT_OK)
        l->m->status = lnt_fail(l->m->im->err, LNT_E_MODEL,
                                "node '%s' (%s): node %lld of tree %lld is reached twice: it is no tree",
                                l->m->n->name, l->m->n->op, (long long)b->number, (long long)b->tree);
    b->placed = 1;
    l->todo[l->n_todo++] = (pending){number, at};
}

/* Intervals low to high of b, cut at t, are decided from slot `at` on. seen: where its sides begin already. */
static void split(layout *l, const branch *b, const double *t, bool first, uint32_t nan, uint32_t low,
                  uint32_t high, uint32_t at, uint32_t seen[2])
{
    if (low == high) {
        const unsigned side = first ^ (low & 1);
        if (seen[side] != LNT_NONE) {
            l->copy[l->n_copy++] = (pending){seen[side], at};
            return;
        }
        seen[side] = at;
        later(l, b->side[side], at);
        return;
    }
    LNT_ASSERT(low < high);
    const uint32_t mid = low + (high - low) / 2, pair = l->n_slots;
    l->n_slots += 2;
    l->slot[at] = (slot){.value = t[mid], .feature = 2 * (uint32_t)b->feature + (nan <= mid), .child = pair};
    split(l, b, t, first, nan, low, mid, pair + 1, seen);
    split(l, b, t, first, nan, mid + 1, high, pair, seen);
}

static void lay_out_branch(layout *l, const branch *b, uint32_t at, double *t)
{
    uint32_t seen[2] = {LNT_NONE, LNT_NONE};
    bool first;
    const uint32_t n = intervals(l->f, b, t, &first);
    const bool nan_true = b->missing || b->mode == NEQ;
    /* NaN takes the first or the second interval, whichever is on its side. */
    split(l, b, t, first, nan_true == first || !n ? 0 : 1, 0, n, at, seen);
}

static void lay_out(layout *l, uint32_t most_members)
{
    const forest *f = l->f;
    double *t = ml_take(l->m, 2 * (size_t)most_members + 2, sizeof *t);
    for (uint32_t i = 0; i < f->n_roots && l->m->status == LNT_OK; i++) {
        l->root[i] = l->n_slots++;
        later(l, f->root[i], l->root[i]);
        while (l->n_todo && l->m->status == LNT_OK) {
            const pending p = l->todo[--l->n_todo];
            const branch *b = &f->branch[p.branch];
            if (b->mode != LEAF)
                lay_out_branch(l, b, p.slot, t);
            else
                l->slot[p.slot] = (slot){.leaf = p.branch, .child = p.slot, .is_leaf = true};
        }
    }
    for (uint32_t i = 0; i < l->n_copy && l->m->status == LNT_OK; i++) {
        const pending c = l->copy[i];
        LNT_ASSERT(c.slot < l->n_slots && c.branch < l->n_slots);
        l->slot[c.slot] = l->slot[c.branch];
        if (l->slot[c.slot].is_leaf)
            l->slot[c.slot].child = c.slot;
    }
}

/* Behind a pair the sides of the larger of the two, where most walks go on: they find them in the same line of the
 * cache. Not where slots share their sides, which have to stand behind all of these. */
static void put_larger_first(layout *l)
{
    slot *ordered = ml_take(l->m, l->n_slots, sizeof *ordered);
    uint32_t *size = ml_take(l->m, l->n_slots, sizeof *size), n = 0;
    if (l->n_copy || l->m->status != LNT_OK)
        return;
    for (uint32_t i = l->n_slots; i-- > 0;)
        size[i] = l->slot[i].is_leaf ? 1 : 1 + size[l->slot[i].child] + size[l->slot[i].child + 1];
    for (uint32_t i = 0; i < l->f->n_roots; i++) {
        ordered[n] = l->slot[l->root[i]];
        l->root[i] = n;
        l->todo[l->n_todo++].slot = n++;
        while (l->n_todo) {
            slot *s = &ordered[l->todo[--l->n_todo].slot];
            const uint32_t pair = s->child;
            if (s->is_leaf) {
                s->child = (uint32_t)(s - ordered);
                continue;
            }
            const bool second = size[pair + 1] > size[pair];
            memcpy(ordered + n, l->slot + pair, 2 * sizeof *ordered);
            s->child = n;
            l->todo[l->n_todo++].slot = n + !second;
            l->todo[l->n_todo++].slot = n + second;
            n += 2;
        }
    }
    LNT_ASSERT(n == l->n_slots);
    l->slot = ordered;
}

/* ---- leaves ---- */

static double combine(unsigned aggregate, double a, double b)
{
    return aggregate < 2 ? a + b : aggregate == 2 ? (a <= b ? a : b) : (a >= b ? a : b);
}

/* What leaf b gives, where there is one target; 0 if nothing. */
static double leaf_number(const forest *f, const branch *b)
{
    double sum = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const double w = f->weight[f->order[b->first + i]];
        sum = i ? combine(f->aggregate, sum, w) : w;
    }
    return sum;
}

static uint32_t reals(maker *m, const char *what, unsigned rank, const int64_t *dims, const double *v,
                      bool doubles)
{
    const size_t n = (size_t)(rank == 2 ? dims[0] * dims[1] : dims[0]);
    float *narrow = doubles ? NULL : ml_take(m, n, sizeof *narrow);
    for (size_t i = 0; narrow && i < n; i++)
        narrow[i] = (float)v[i];
    return ml_constant(m, what, doubles ? LNT_DOUBLE : LNT_FLOAT, rank, dims,
                       doubles ? (const void *)v : narrow);
}

/* Rows [leaves, C] where most leaves speak of most targets, else lists of targets; leaves are numbered by `placed`. */
static void add_weights(maker *m, forest *f, uint32_t leaves, operands *in)
{
    const int64_t dims[] = {leaves, f->n_targets}, ends[] = {(int64_t)leaves + 1};
    int64_t cells;
    const bool dense =
        f->aggregate < 2 && lnt_mul_i64(leaves, f->n_targets, &cells) && cells <= 2 * (int64_t)f->n_weights;
    double *w = ml_take(m, dense ? (size_t)cells : f->n_weights, sizeof *w);
    uint32_t *first = ml_take(m, (size_t)leaves + 1, sizeof *first),
             *target = ml_take(m, f->n_weights, sizeof *target), n = 0;
    for (uint32_t i = 0; i < f->n && m->status == LNT_OK; i++) {
        const branch *b = &f->branch[i];
        if (b->mode != LEAF || b->placed == LNT_NONE)
            continue;
        for (uint32_t k = b->first; k < b->first + b->n; k++) {
            const uint32_t from = f->order[k];
            if (dense) {
                w[b->placed * f->n_targets + f->target[from]] += f->weight[from];
                continue;
            }
            target[n] = f->target[from];
            w[n++] = f->weight[from];
        }
        first[b->placed + 1] = n;
    }
    const int64_t listed[] = {n};
    in->value[3] = reals(m, "weights", dense ? 2 : 1, dense ? dims : listed, w, f->doubles);
    in->n = 4;
    if (dense)
        return;
    in->value[4] = ml_constant(m, "first", LNT_UINT32, 1, ends, first);
    in->value[5] = ml_constant(m, "targets", LNT_UINT32, 1, listed, target);
    in->n = 6;
}

/* ---- the table as a constant ---- */

typedef struct wide_node {
    double value;
    uint32_t feature, child;
} wide_node;

static uint32_t add_nodes(maker *m, const layout *l, bool numbers)
{
    const forest *f = l->f;
    const int64_t dims[] = {l->n_slots, f->doubles ? 2 : 3};
    uint32_t *words = ml_take(m, (size_t)l->n_slots, f->doubles ? sizeof(wide_node) : 3 * sizeof *words);
    for (uint32_t i = 0; words && i < l->n_slots; i++) {
        const slot *s = &l->slot[i];
        const branch *b = s->is_leaf ? &f->branch[s->leaf] : NULL;
        wide_node wide = {b ? (numbers ? leaf_number(f, b) : 0) : s->value,
                          b ? 2 * (uint32_t)f->n_features : s->feature, s->child};
        const float narrow = (float)wide.value;
        if (f->doubles) {
            if (b && !numbers)
                memcpy(&wide.value, &b->placed, sizeof b->placed);
            memcpy(words + i * (sizeof wide / sizeof *words), &wide, sizeof wide);
            continue;
        }
        memcpy(words + 3 * (size_t)i, b && !numbers ? (const void *)&b->placed : &narrow, sizeof *words);
        words[3 * (size_t)i + 1] = wide.feature;
        words[3 * (size_t)i + 2] = wide.child;
    }
    return ml_constant(m, "nodes", f->doubles ? LNT_UINT64 : LNT_UINT32, 2, dims, words);
}

/* The scores [N, C] of x, of a forest that was read. */
static uint32_t score(maker *m, forest *f, uint32_t x)
{
    size_t slots = f->n_roots, members = 0;
    if (m->status != LNT_OK)
        return LNT_NONE;
    for (uint32_t i = 0; i < f->n; i++) {
        const branch *b = &f->branch[i];
        if (b->mode == LEAF)
            continue;
        slots += b->mode == MEMBER ? 4 * (size_t)b->n + 4 : 4;
        members = b->mode == MEMBER && b->n > members ? b->n : members;
        f->n_features = b->feature >= f->n_features ? b->feature + 1 : f->n_features;
    }
    if (slots > INT32_MAX / 4)
        m->status = lnt_fail(m->im->err, LNT_E_LIMIT, "node '%s' (%s): its trees have more than 2^29 nodes",
                             m->n->name, m->n->op);
    layout l = {.m = m, .f = f};
    l.slot = ml_take(m, slots, sizeof *l.slot);
    l.todo = ml_take(m, slots, sizeof *l.todo);
    l.copy = ml_take(m, slots, sizeof *l.copy);
    l.root = ml_take(m, f->n_roots, sizeof *l.root);
    if (m->status != LNT_OK)
        return LNT_NONE;
    lay_out(&l, (uint32_t)members);
    put_larger_first(&l);
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < f->n; i++) /* those that were reached get numbers */
        f->branch[i].placed = f->branch[i].mode == LEAF && f->branch[i].placed ? leaves++ : LNT_NONE;
    const int64_t roots[] = {f->n_roots}, how = f->aggregate;
    const lnt_attr attr[] = {*INT_ATTR("n_targets", &f->n_targets), *INT_ATTR("n_features", &f->n_features),
                             *INT_ATTR("aggregate", &how)};
    operands in = {
        {x, add_nodes(m, &l, f->n_targets == 1), ml_constant(m, "roots", LNT_UINT32, 1, roots, l.root)}, 3};
    if (f->n_targets > 1)
        add_weights(m, f, leaves, &in);
    uint32_t out = LNT_NONE;
    if (m->status == LNT_OK)
        m->status = lnt_make(m->im, m->n, "linnet.TreeEnsemble", in.value, in.n, attr, 3, &out);
    return out;
}

/* ---- nodes that are named by tree and number ---- */

typedef struct place {
    int64_t tree, number;
    uint32_t at;
} place;

static int by_name(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool fail(maker *m, const char *what)
{
    if (m->status == LNT_OK)
        m->status = lnt_fail(m->im->err, LNT_E_MODEL, "node '%s' (%s): %s", m->n->name, m->n->op, what);
    return false;
}

/* Branch (tree, number); LNT_NONE with a failure where there is none. */
static uint32_t named(maker *m, const place *places, uint32_t n, int64_t tree, int64_t number)
{
    const place key = {tree, number, 0}, *found = bsearch(&key, places, n, sizeof *places, by_name);
    if (!found && m->status == LNT_OK)
        m->status = lnt_fail(m->im->err, LNT_E_MODEL, "node '%s' (%s): there is no node %lld of tree %lld",
                             m->n->name, m->n->op, (long long)number, (long long)tree);
    return found ? found->at : LNT_NONE;
}

static uint8_t mode_of(const char *text)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
    uint8_t i = 0;
    while (i < MODES && strcmp(text, names[i]) != 0)
        i++;
    return i;
}

static void check_branch(maker *m, const branch *b)
{
    if (b->mode >= MODES)
        fail(m, "nodes_modes has a mode that is not known");
    else if (b->mode != LEAF && (b->feature < 0 || b->feature >= ML_MOST_FEATURES))
        fail(m, "nodes_featureids is out of range");
}

/* The places of f's branches by name; roots are the first of each tree. */
static place *find_places(maker *m, forest *f)
{
    place *places = ml_take(m, f->n, sizeof *places);
    f->root = ml_take(m, f->n, sizeof *f->root);
    if (m->status != LNT_OK)
        return NULL;
    for (uint32_t i = 0; i < f->n; i++)
        places[i] = (place){f->branch[i].tree, f->branch[i].number, i};
    qsort(places, f->n, sizeof *places, by_name);
    for (uint32_t i = 1; i < f->n; i++)
        if (by_name(places + i - 1, places + i) == 0 && !fail(m, "two nodes of a tree have the same number"))
            return NULL;
    for (uint32_t i = 0, first = LNT_NONE; i < f->n; i++) {
        first = i && places[i].tree == places[i - 1].tree && first < places[i].at ? first : places[i].at;
        if (i + 1 == f->n || places[i + 1].tree != places[i].tree)
            f->root[f->n_roots++] = first;
    }
    return places;
}

/* f->weight and f->target by leaf: leaf[i] is the branch of weight i. */
static void sort_weights(maker *m, forest *f, const uint32_t *leaf)
{
    uint32_t at = 0;
    f->order = ml_take(m, f->n_weights, sizeof *f->order);
    for (size_t i = 0; f->order && i < f->n_weights; i++)
        f->branch[leaf[i]].n++;
    for (uint32_t i = 0; f->order && i < f->n; i++) {
        branch *b = &f->branch[i];
        if (b->mode != LEAF)
            continue;
        b->first = at;
        at += b->n;
        b->n = 0;
    }
    for (size_t i = 0; f->order && i < f->n_weights; i++) {
        branch *b = &f->branch[leaf[i]];
        f->order[b->first + b->n++] = (uint32_t)i;
    }
}

/* prefix: "class" or "target", of the attributes about weights. */
static void read_weights(maker *m, forest *f, const place *places, const char *prefix)
{
    char name[4][32];
    static const char *const parts[] = {"ids", "nodeids", "treeids", "weights"};
    for (unsigned i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%s_%s", prefix, parts[i]);
    const ml_list ids = ml_ints(m, name[0]), nodes = ml_ints(m, name[1]), in = ml_ints(m, name[2]),
                  weights = ml_reals(m, name[3]);
    if (m->status == LNT_OK && (ids.n != weights.n || nodes.n != weights.n || in.n != weights.n))
        fail(m, "the lists about weights differ in length");
    uint32_t *leaf = ml_take(m, weights.n, sizeof *leaf);
    f->target = ml_take(m, weights.n, sizeof *f->target);
    f->weight = weights.v;
    f->n_weights = weights.n;
    for (size_t i = 0; m->status == LNT_OK && i < weights.n; i++) {
        leaf[i] = named(m, places, f->n, in.i[i], nodes.i[i]);
        f->target[i] = (uint32_t)ids.i[i];
        if (m->status != LNT_OK || ids.i[i] < 0 || ids.i[i] >= f->n_targets)
            fail(m, "a weight is of a target or class that there is none of");
        else if (f->branch[leaf[i]].mode != LEAF)
            fail(m, "a node that is no leaf has weights");
    }
    if (m->status == LNT_OK)
        sort_weights(m, f, leaf);
}

static void read_named(maker *m, forest *f, const char *prefix)
{
    const ml_list trees = ml_ints(m, "nodes_treeids"), numbers = ml_ints(m, "nodes_nodeids"),
                  features = ml_ints(m, "nodes_featureids"), yes = ml_ints(m, "nodes_truenodeids"),
                  no = ml_ints(m, "nodes_falsenodeids"),
                  missing = ml_ints(m, "nodes_missing_value_tracks_true"),
                  values = ml_reals(m, "nodes_values");
    const lnt_attr *modes = lnt_inode_attr(m->n, "nodes_modes");
    const size_t n = trees.n;
    if (m->status == LNT_OK && (!n || n > INT32_MAX / 8 || numbers.n != n || features.n != n || yes.n != n ||
                                no.n != n || values.n != n || !modes || modes->type != LNT_ATTR_STRINGS ||
                                modes->count != n || (missing.n && missing.n != n)))
        fail(m, "the lists about nodes differ in length, or are empty");
    f->branch = ml_take(m, n, sizeof *f->branch);
    f->n = (uint32_t)n;
    for (uint32_t i = 0; m->status == LNT_OK && i < n; i++) {
        f->branch[i] = (branch){.tree = trees.i[i],
                                .number = numbers.i[i],
                                .feature = features.i[i],
                                .value = values.v[i],
                                .mode = mode_of(modes->strings[i]),
                                .missing = missing.n && missing.i[i] == 1};
        check_branch(m, &f->branch[i]);
    }
    f->doubles |= values.doubles;
    const place *places = m->status == LNT_OK ? find_places(m, f) : NULL;
    for (uint32_t i = 0; places && m->status == LNT_OK && i < n; i++) {
        branch *b = &f->branch[i];
        if (b->mode == LEAF)
            continue;
        b->side[0] = named(m, places, f->n, b->tree, no.i[i]);
        b->side[1] = named(m, places, f->n, b->tree, yes.i[i]);
    }
    if (places)
        read_weights(m, f, places, prefix);
}

/* ---- TreeEnsemble of opset 5 ---- */

/* A side of a branch: a branch, or a leaf, which stand behind all branches. */
static uint32_t side_of(maker *m, int64_t number, bool leaf, uint32_t branches, uint32_t leaves)
{
    if (number < 0 || number >= (leaf ? leaves : branches))
        fail(m, "a node leads to a node or a leaf that there is none of");
    return (uint32_t)number + (leaf ? branches : 0);
}

/* Members of branch after branch, a NaN behind those of each. */
static void read_members(maker *m, forest *f, uint32_t branches)
{
    const ml_list members = ml_reals(m, "membership_values");
    uint32_t at = 0;
    f->member = members.v;
    for (uint32_t i = 0; m->status == LNT_OK && i < branches; i++) {
        branch *b = &f->branch[i];
        if (b->mode != MEMBER)
            continue;
        b->first = at;
        while (at < members.n && members.v[at] == members.v[at])
            at++;
        b->n = at - b->first;
        if (at++ >= members.n)
            fail(m, "membership_values ends before its last NaN");
    }
}

static void read_numbered(maker *m, forest *f)
{
    const ml_list features = ml_ints(m, "nodes_featureids"), yes = ml_ints(m, "nodes_truenodeids"),
                  no = ml_ints(m, "nodes_falsenodeids"), yes_leaf = ml_ints(m, "nodes_trueleafs"),
                  no_leaf = ml_ints(m, "nodes_falseleafs"), modes = ml_ints(m, "nodes_modes"),
                  missing = ml_ints(m, "nodes_missing_value_tracks_true"),
                  values = ml_reals(m, "nodes_splits"), targets = ml_ints(m, "leaf_targetids"),
                  weights = ml_reals(m, "leaf_weights"), roots = ml_ints(m, "tree_roots");
    const size_t n = features.n, leaves = weights.n;
    if (m->status == LNT_OK &&
        (!n || n > INT32_MAX / 8 || yes.n != n || no.n != n || yes_leaf.n != n || no_leaf.n != n ||
         modes.n != n || values.n != n || (missing.n && missing.n != n) || leaves > INT32_MAX / 8 ||
         targets.n != leaves))
        fail(m, "the lists about nodes or leaves differ in length, or are empty");
    f->n = (uint32_t)(n + leaves);
    f->branch = ml_take(m, f->n, sizeof *f->branch);
    f->root = ml_take(m, roots.n, sizeof *f->root);
    f->target = ml_take(m, leaves, sizeof *f->target);
    uint32_t *leaf = ml_take(m, leaves, sizeof *leaf);
    for (uint32_t i = 0; m->status == LNT_OK && i < n; i++) {
        f->branch[i] = (branch){.number = i,
                                .side = {side_of(m, no.i[i], no_leaf.i[i], (uint32_t)n, (uint32_t)leaves),
                                         side_of(m, yes.i[i], yes_leaf.i[i], (uint32_t)n, (uint32_t)leaves)},
                                .feature = features.i[i],
                                .value = values.v[i],
                                .mode = (uint64_t)modes.i[i] < LEAF ? (uint8_t)modes.i[i] : MODES,
                                .missing = missing.n && missing.i[i] == 1};
        check_branch(m, &f->branch[i]);
    }
    for (uint32_t i = 0; m->status == LNT_OK && i < leaves; i++) {
        f->branch[n + i] = (branch){.number = i, .mode = LEAF};
        leaf[i] = (uint32_t)n + i;
        f->target[i] = (uint32_t)targets.i[i];
        if (targets.i[i] < 0 || targets.i[i] >= f->n_targets)
            fail(m, "a leaf is of a target that there is none of");
    }
    for (uint32_t i = 0; m->status == LNT_OK && i < roots.n; i++)
        f->root[i] = side_of(m, roots.i[i], false, (uint32_t)n, 0);
    f->n_roots = (uint32_t)roots.n;
    f->weight = weights.v;
    f->n_weights = leaves;
    f->doubles |= values.doubles;
    if (m->status == LNT_OK)
        sort_weights(m, f, leaf);
    if (m->status == LNT_OK)
        read_members(m, f, (uint32_t)n);
}

/* ---- the operators ---- */

static forest begin(const maker *m)
{
    return (forest){.doubles = type_of(m, m->n->in[0]) == LNT_DOUBLE};
}

static unsigned aggregate_of(maker *m)
{
    static const char *const names[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    const char *text = lnt_inode_s(m->n, "aggregate_function", "SUM");
    unsigned i = 0;
    while (i < 4 && strcmp(text, names[i]) != 0)
        i++;
    if (i == 4)
        fail(m, "aggregate_function is not known");
    return i;
}

/* scores + base_values, of which there is none, one for all, or one for each. */
static uint32_t add_base(maker *m, uint32_t scores, const forest *f)
{
    const ml_list base = ml_reals(m, "base_values");
    const int64_t dims[] = {(int64_t)base.n};
    if (m->status != LNT_OK || !base.n)
        return scores;
    if (base.n != 1 && (int64_t)base.n != f->n_targets)
        fail(m, "base_values has neither one value nor one for each target");
    return make(m, "Add", IN(scores, reals(m, "base", 1, dims, base.v, f->doubles)), NULL);
}

void lnt_expand_tree_regressor(maker *m)
{
    forest f = begin(m);
    f.n_targets = lnt_inode_i(m->n, "n_targets", 1);
    f.aggregate = aggregate_of(m);
    if (f.n_targets < 1 || f.n_targets > INT32_MAX / 8)
        fail(m, "n_targets is out of range");
    read_named(m, &f, "target");
    const uint32_t scores = add_base(m, score(m, &f, m->n->in[0]), &f);
    const uint32_t y = ml_post_transform(m, cast(m, scores, LNT_FLOAT));
    finish(m, 0, "Identity", IN(y), NULL);
}

void lnt_expand_tree_ensemble(maker *m)
{
    static const char *const posts[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    static const unsigned hows[] = {1, 0, 2, 3};
    const int64_t post = lnt_inode_i(m->n, "post_transform", 0),
                  how = lnt_inode_i(m->n, "aggregate_function", 1);
    const lnt_dtype type = type_of(m, m->n->in[0]);
    uint32_t x = m->n->in[0];
    forest f = begin(m);
    if ((uint64_t)post >= 5 || (uint64_t)how >= 4) {
        fail(m, "post_transform or aggregate_function is out of range");
        return;
    }
    f.n_targets = lnt_inode_i(m->n, "n_targets", 1);
    f.aggregate = hows[how];
    if (f.n_targets < 1 || f.n_targets > INT32_MAX / 8)
        fail(m, "n_targets is out of range");
    read_numbered(m, &f);
    if (type == LNT_FLOAT16)
        x = cast(m, x, LNT_FLOAT);
    const uint32_t scores = score(m, &f, x);
    if (m->status != LNT_OK)
        return;
    m->status = lnt_inode_set_s(m->im, m->n, "post_transform", posts[post]);
    finish(m, 0, "Identity", IN(cast(m, ml_post_transform(m, scores), type)), NULL);
}

void lnt_expand_tree_classifier(maker *m)
{
    forest f = begin(m);
    const ml_list labels = ml_labels(m), ids = ml_ints(m, "class_ids"),
                  weights = ml_reals(m, "class_weights"), base = ml_reals(m, "base_values");
    bool single = labels.n == 2, positive = true;
    for (size_t i = 0; i < ids.n; i++)
        single &= ids.i[i] == ids.i[0];
    for (size_t i = 0; i < weights.n; i++)
        positive &= weights.v[i] >= 0;
    f.n_targets = (int64_t)labels.n;
    if (m->status != LNT_OK)
        return;
    read_named(m, &f, "class");
    if (!single) {
        const uint32_t scores = cast(m, add_base(m, score(m, &f, m->n->in[0]), &f), LNT_FLOAT);
        ml_label(m, scores, labels);
        finish(m, 1, "Identity", IN(ml_post_transform(m, scores)), NULL);
        return;
    }
    f.n_targets = 1;
    for (size_t i = 0; i < f.n_weights && m->status == LNT_OK; i++)
        f.target[i] = 0;
    uint32_t s = score(m, &f, m->n->in[0]);
    if (base.n)
        s = make(m, "Add", IN(s, scalar(m, "base", f.doubles ? LNT_DOUBLE : LNT_FLOAT, base.v[base.n == 2])),
                 NULL);
    s = cast(m, s, LNT_FLOAT);
    ml_binary_label(m, s, positive ? 0.5 : 0, labels);
    ml_binary_scores(m, s, positive && base.n != 2);
}
