/* symbols.c — extents that are not numbers, followed through the arithmetic on shapes.
 *
 * Exporters compute shapes: Shape, Gather, Concat, Reshape. With an open batch none of that is constant, yet
 * most of it is known: this file keeps, for each small integer tensor, what is known of it element by
 * element, a number or the extent it came from, and gives the extents of Reshape, Expand, ConstantOfShape and
 * Slice from that. Extents that stay unknown get a symbol of their own, named by value and axis, so that
 * passes see which extents are the same; lnt_graph_forget_symbols takes those back before the graph is
 * written. */
#include "convert/graph/graph.h"
#include "formats/hash.h"

#include <string.h>

enum { MAX_ELEMENTS = 32, MAX_IN = 16 };

/* Symbols of this file come after those of the model. */
#define FIRST_OWN_SYMBOL (-2 - ((int64_t)1 << 40))

static const lnt_gelement unknown = {.value = LNT_DIM_UNKNOWN};

static lnt_gelement of_extent(int64_t extent)
{
    return (lnt_gelement){.value = extent, .known = extent >= 0};
}

static int64_t to_extent(lnt_gelement e)
{
    return e.known && e.value < 0 ? LNT_DIM_UNKNOWN : e.value;
}

static bool same(lnt_gelement a, lnt_gelement b)
{
    return a.known == b.known && a.value == b.value && (a.known || a.value != LNT_DIM_UNKNOWN);
}

/* ---- contents ---- */

/* Elements of an operand: those of a constant, or what was found out; -1 if there is nothing. */
static int elements_of(const lnt_graph *g, uint32_t value, lnt_gelement *out)
{
    if (value == LNT_NONE)
        return -1;
    const lnt_gvalue *v = &g->value[value];
    const int64_t count = lnt_operand_count(&v->info);
    if (count < 0 || count > MAX_ELEMENTS || v->info.packed || (!v->info.data && !v->elements))
        return -1;
    for (int64_t i = 0; i < count; i++)
        switch (v->info.data ? v->info.dtype : 0u) {
        case LNT_INT64: out[i] = (lnt_gelement){((const int64_t *)v->info.data)[i], true}; break;
        case LNT_INT32: out[i] = (lnt_gelement){((const int32_t *)v->info.data)[i], true}; break;
        case LNT_BOOL: out[i] = (lnt_gelement){((const uint8_t *)v->info.data)[i], true}; break;
        case 0: out[i] = v->elements[i]; break;
        default: return -1;
        }
    return (int)count;
}

/* The one number a constant or traced operand holds. */
static bool number_of(const lnt_graph *g, uint32_t value, int64_t *out)
{
    lnt_gelement e[MAX_ELEMENTS];
    if (elements_of(g, value, e) != 1 || !e[0].known)
        return false;
    *out = e[0].value;
    return true;
}

bool lnt_graph_known_int(const lnt_graph *g, uint32_t value, int64_t *out)
{
    return number_of(g, value, out);
}

static uint32_t operand(const lnt_gnode *n, unsigned i)
{
    return i < n->n_in ? n->in[i] : LNT_NONE;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static int shape_elements(const lnt_graph *g, const lnt_gnode *n, const lnt_node *view, lnt_gelement *out)
{
    const lnt_operand *x = lnt_ginfo(g, n->in[0]);
    if (x->rank > LNT_MAX_RANK)
        return -1;
    int64_t start = lnt_attr_i(view, "start", 0), end = lnt_attr_i(view, "end", x->rank);
    start = clamp(start < 0 ? start + x->rank : start, 0, x->rank);
    end = clamp(end < 0 ? end + x->rank : end, start, x->rank);
    for (int64_t i = start; i < end; i++)
        out[i - start] = of_extent(x->dims[i]);
    return (int)(end - start);
}

static int gathered_elements(const lnt_graph *g, const lnt_gnode *n, const lnt_node *view, lnt_gelement *out)
{
    lnt_gelement from[MAX_ELEMENTS], index[MAX_ELEMENTS];
    const int count = elements_of(g, n->in[0], from), picked = elements_of(g, n->in[1], index);
    if (count < 0 || picked < 0 || lnt_ginfo(g, n->in[0])->rank != 1 || lnt_attr_i(view, "axis", 0) > 0)
        return -1;
    for (int i = 0; i < picked; i++) {
        const int64_t at = index[i].value < 0 ? index[i].value + count : index[i].value;
        if (!index[i].known || at < 0 || at >= count)
            return -1;
        out[i] = from[at];
    }
    return picked;
}

static int sliced_elements(const lnt_graph *g, const lnt_gnode *n, lnt_gelement *out)
{
    lnt_gelement from[MAX_ELEMENTS];
    int64_t start, end, step = 1;
    const int count = elements_of(g, n->in[0], from);
    if (count < 0 || lnt_ginfo(g, n->in[0])->rank != 1 || !number_of(g, operand(n, 1), &start) ||
        !number_of(g, operand(n, 2), &end) || (operand(n, 4) != LNT_NONE && !number_of(g, n->in[4], &step)) ||
        step != 1)
        return -1;
    start = clamp(start < 0 ? start + count : start, 0, count);
    end = clamp(end < 0 ? end + count : end, start, count);
    memcpy(out, from + start, (size_t)(end - start) * sizeof *out);
    return (int)(end - start);
}

static int joined_elements(const lnt_graph *g, const lnt_gnode *n, lnt_gelement *out)
{
    int count = 0;
    for (unsigned i = 0; i < n->n_in; i++) {
        lnt_gelement part[MAX_ELEMENTS];
        const int more = elements_of(g, n->in[i], part);
        if (more < 0 || count + more > MAX_ELEMENTS || lnt_ginfo(g, n->in[i])->rank != 1)
            return -1;
        memcpy(out + count, part, (size_t)more * sizeof *out);
        count += more;
    }
    return count;
}

static lnt_gelement number(int64_t value, bool overflow)
{
    return overflow ? unknown : (lnt_gelement){value, true};
}

/* An extent is never negative: it differs from a number that is. */
static bool differ(lnt_gelement a, lnt_gelement b)
{
    return (a.known && b.known && a.value != b.value) || (a.known && !b.known && a.value < 0) ||
           (b.known && !a.known && b.value < 0);
}

/* a op b where both are numbers. */
static lnt_gelement compute(unsigned op, int64_t a, int64_t b)
{
    int64_t r = 0;
    bool overflow = false;
    switch (op) {
    case LNT_ID_Add: overflow = __builtin_add_overflow(a, b, &r); break;
    case LNT_ID_Sub: overflow = __builtin_sub_overflow(a, b, &r); break;
    case LNT_ID_Mul: overflow = __builtin_mul_overflow(a, b, &r); break;
    case LNT_ID_Div: overflow = a < 0 || b <= 0, r = overflow ? 0 : a / b; break;
    case LNT_ID_Less: r = a < b; break;
    case LNT_ID_Greater: r = a > b; break;
    case LNT_ID_And: r = a && b; break;
    case LNT_ID_Or: r = a || b; break;
    default: overflow = true; break;
    }
    return number(r, overflow);
}

/* a op b for one pair; what an operation leaves alone stays known by name. */
static lnt_gelement combine(unsigned op, lnt_gelement a, lnt_gelement b)
{
    const int64_t neutral = op == LNT_ID_Mul || op == LNT_ID_Div ? 1 : 0;
    if (op == LNT_ID_Equal)
        return same(a, b) ? number(1, false) : differ(a, b) ? number(0, false) : unknown;
    if (a.known && b.known)
        return compute(op, a.value, b.value);
    const bool arithmetic = op == LNT_ID_Add || op == LNT_ID_Sub || op == LNT_ID_Mul || op == LNT_ID_Div;
    if (arithmetic && b.known && b.value == neutral)
        return a;
    if ((op == LNT_ID_Add || op == LNT_ID_Mul) && a.known && a.value == neutral)
        return b;
    return unknown;
}

static int paired_elements(const lnt_graph *g, const lnt_gnode *n, lnt_gelement *out)
{
    lnt_gelement a[MAX_ELEMENTS], b[MAX_ELEMENTS];
    const int na = elements_of(g, n->in[0], a), nb = elements_of(g, n->in[1], b), count = na == 1 ? nb : na;
    if (na < 0 || nb < 0 || (na != nb && na != 1 && nb != 1))
        return -1;
    for (int i = 0; i < count; i++)
        out[i] = combine(n->op->id, a[na == 1 ? 0 : i], b[nb == 1 ? 0 : i]);
    return count;
}

static int chosen_elements(const lnt_graph *g, const lnt_gnode *n, lnt_gelement *out)
{
    lnt_gelement c[MAX_ELEMENTS], a[MAX_ELEMENTS], b[MAX_ELEMENTS];
    const int count = elements_of(g, n->in[0], c);
    if (count < 0 || elements_of(g, n->in[1], a) != count || elements_of(g, n->in[2], b) != count)
        return -1;
    for (int i = 0; i < count; i++)
        out[i] = same(a[i], b[i]) ? a[i] : !c[i].known ? unknown : c[i].value ? a[i] : b[i];
    return count;
}

static int negated_elements(const lnt_graph *g, const lnt_gnode *n, lnt_gelement *out)
{
    const int count = elements_of(g, n->in[0], out);
    for (int i = 0; i < count; i++)
        out[i] = out[i].known ? (lnt_gelement){!out[i].value, true} : unknown;
    return count;
}

/* Elements of output 0 from those of the inputs; -1 if nothing can be said. */
static int trace(const lnt_graph *g, const lnt_gnode *n, lnt_gelement *out)
{
    lnt_node view;
    lnt_gnode_view(n, &view);
    switch (n->op->id) {
    case LNT_ID_Shape: return shape_elements(g, n, &view, out);
    case LNT_ID_Size: out[0] = of_extent(lnt_operand_count(lnt_ginfo(g, n->in[0]))); return 1;
    case LNT_ID_Gather: return gathered_elements(g, n, &view, out);
    case LNT_ID_Slice: return sliced_elements(g, n, out);
    case LNT_ID_Concat: return joined_elements(g, n, out);
    case LNT_ID_Where: return chosen_elements(g, n, out);
    case LNT_ID_Not: return negated_elements(g, n, out);
    case LNT_ID_Equal:
    case LNT_ID_Less:
    case LNT_ID_Greater:
    case LNT_ID_And:
    case LNT_ID_Or:
    case LNT_ID_Add:
    case LNT_ID_Sub:
    case LNT_ID_Mul:
    case LNT_ID_Div: return paired_elements(g, n, out);
    case LNT_ID_Identity:
    case LNT_ID_Cast:
    case LNT_ID_Reshape:
    case LNT_ID_Squeeze:
    case LNT_ID_Unsqueeze: return elements_of(g, n->in[0], out);
    default: return -1;
    }
}

static bool holds_elements(const lnt_operand *o)
{
    return (o->dtype == LNT_INT64 || o->dtype == LNT_INT32 || o->dtype == LNT_BOOL) &&
           o->rank <= LNT_MAX_RANK;
}

static lnt_status keep_elements(lnt_graph *g, const lnt_gnode *n)
{
    lnt_gelement e[MAX_ELEMENTS];
    lnt_gvalue *v = n->n_out && n->out[0] != LNT_NONE ? &g->value[n->out[0]] : NULL;
    if (!v)
        return LNT_OK;
    v->elements = NULL;
    const int count = holds_elements(&v->info) && n->n_in <= MAX_IN ? trace(g, n, e) : -1;
    if (count < 0 || count != lnt_operand_count(&v->info))
        return LNT_OK;
    lnt_gelement *kept = lnt_bump_alloc(&g->memory, (size_t)count * sizeof *kept, g->err);
    if (!kept)
        return LNT_E_MEMORY;
    memcpy(kept, e, (size_t)count * sizeof *kept);
    v->elements = kept;
    return LNT_OK;
}

/* ---- extents ---- */

/* A product of extents: the numbers together, the symbols one by one. */
typedef struct product {
    int64_t number;
    int64_t symbol[LNT_MAX_RANK];
    unsigned n_symbols;
    bool known;
} product;

static void times(product *p, int64_t extent)
{
    if (extent >= 0)
        p->known &= !__builtin_mul_overflow(p->number, extent, &p->number);
    else if (extent == LNT_DIM_UNKNOWN || p->n_symbols == LNT_MAX_RANK)
        p->known = false;
    else
        p->symbol[p->n_symbols++] = extent;
}

static bool take_symbol(product *p, int64_t symbol)
{
    for (unsigned i = 0; i < p->n_symbols; i++)
        if (p->symbol[i] == symbol) {
            p->symbol[i] = p->symbol[--p->n_symbols];
            return true;
        }
    return false;
}

/* all / part, where that is one extent. */
static int64_t quotient(product all, const product *part)
{
    for (unsigned i = 0; i < part->n_symbols; i++)
        if (!take_symbol(&all, part->symbol[i]))
            return LNT_DIM_UNKNOWN;
    if (!all.known || !part->known || part->number == 0 || all.number % part->number != 0)
        return LNT_DIM_UNKNOWN;
    if (all.n_symbols == 0)
        return all.number / part->number;
    return all.n_symbols == 1 && all.number == part->number ? all.symbol[0] : LNT_DIM_UNKNOWN;
}

static void reshape(const lnt_operand *x, const lnt_gelement *to, unsigned rank, bool zero_is_zero,
                    int64_t *dims)
{
    product all = {.number = 1, .known = x->rank <= LNT_MAX_RANK}, rest = {.number = 1, .known = true};
    int inferred = -1;
    for (unsigned i = 0; i < x->rank && all.known; i++)
        times(&all, x->dims[i]);
    for (unsigned i = 0; i < rank; i++) {
        if (to[i].known && to[i].value == -1) {
            inferred = (int)i;
            continue;
        }
        dims[i] = to[i].known && to[i].value == 0 && !zero_is_zero
                      ? (i < x->rank && x->rank <= LNT_MAX_RANK ? x->dims[i] : LNT_DIM_UNKNOWN)
                      : to_extent(to[i]);
        times(&rest, dims[i]);
    }
    if (inferred >= 0)
        dims[inferred] = quotient(all, &rest);
}

/* One axis of an Expand. */
static int64_t expanded(int64_t extent, lnt_gelement to)
{
    if (extent == 1)
        return to_extent(to);
    if (to.known)
        return to.value == 1 ? extent : to.value;
    return extent > 1 || (extent == to.value && extent != LNT_DIM_UNKNOWN) ? extent : LNT_DIM_UNKNOWN;
}

static void expand(const lnt_operand *x, const lnt_gelement *to, unsigned n, unsigned rank, int64_t *dims)
{
    for (unsigned i = 0; i < rank && x->rank <= rank && n <= rank; i++) {
        const int64_t extent = i + x->rank >= rank ? x->dims[i + x->rank - rank] : 1;
        dims[i] = expanded(extent, i + n >= rank ? to[i + n - rank] : of_extent(1));
    }
}

/* x[:end] along one axis, end being an extent: it is within x, or what follows could not use it. */
static void slice(const lnt_graph *g, const lnt_gnode *n, int64_t *dims)
{
    lnt_gelement start[MAX_ELEMENTS], end[MAX_ELEMENTS], axis[MAX_ELEMENTS], step[MAX_ELEMENTS];
    const lnt_operand *x = lnt_ginfo(g, n->in[0]);
    const int count = elements_of(g, operand(n, 1), start);
    if (count < 0 || elements_of(g, operand(n, 2), end) != count || x->rank > LNT_MAX_RANK)
        return;
    const bool axes = elements_of(g, operand(n, 3), axis) == count;
    const bool steps = elements_of(g, operand(n, 4), step) == count;
    if ((operand(n, 3) != LNT_NONE && !axes) || (operand(n, 4) != LNT_NONE && !steps))
        return;
    for (int i = 0; i < count; i++) {
        const int64_t at = !axes ? i : axis[i].value < 0 ? axis[i].value + x->rank : axis[i].value;
        if (!start[i].known || start[i].value != 0 || (steps && !(step[i].known && step[i].value == 1)) ||
            at < 0 || at >= x->rank || dims[at] != LNT_DIM_UNKNOWN)
            continue;
        const bool whole = end[i].known && end[i].value >= LNT_BEYOND_EXTENTS;
        if (whole || (!end[i].known && end[i].value == x->dims[at]))
            dims[at] = x->dims[at];
        else if (!end[i].known && x->dims[at] > 0)
            dims[at] = end[i].value;
    }
}

/* ---- windows ---- */

/* What decides the extent behind a sliding window, apart from the extent it slides over. */
typedef struct window {
    int64_t before; /* the symbol */
    int64_t shrink; /* elements lost to the window, less padding */
    int64_t stride, rounding;
} window;

enum { ROUND_DOWN, ROUND_UP, SAME_SIZE };

static int64_t entry(const lnt_attr *a, unsigned i, int64_t otherwise)
{
    return a && a->type == LNT_ATTR_INTS && i < a->count ? a->i[i] : otherwise;
}

/* A symbol that stands for whatever has these bytes as its description. */
static int64_t symbol_of(const void *description, size_t bytes)
{
    return FIRST_OWN_SYMBOL - (int64_t)(lnt_hash(description, bytes) >> 8);
}

/* Spatial extents of a convolution or pooling: equal windows over equal extents give equal extents, and a
 * window that loses nothing leaves them as they are. */
static void slide(const lnt_graph *g, const lnt_gnode *n, const lnt_node *view, const lnt_operand *x,
                  int64_t *dims)
{
    const lnt_operand *w = n->op->id == LNT_ID_Conv ? lnt_ginfo(g, n->in[1]) : NULL;
    const lnt_attr *kernel = lnt_attr_find(view, "kernel_shape"), *strides = lnt_attr_find(view, "strides");
    const lnt_attr *pads = lnt_attr_find(view, "pads"), *dilations = lnt_attr_find(view, "dilations");
    const char *automatic = lnt_attr_s(view, "auto_pad", "NOTSET");
    const unsigned spatial = x->rank - 2u;
    for (unsigned i = 0; i < spatial; i++) {
        const int64_t extent = w && w->rank == x->rank ? w->dims[i + 2] : entry(kernel, i, -1);
        if (dims[i + 2] != LNT_DIM_UNKNOWN || x->dims[i + 2] >= LNT_DIM_UNKNOWN || extent < 0)
            continue;
        window v = {.before = x->dims[i + 2], .stride = entry(strides, i, 1)};
        v.rounding = lnt_attr_i(view, "ceil_mode", 0) ? ROUND_UP : ROUND_DOWN;
        v.shrink = entry(dilations, i, 1) * (extent - 1);
        if (strncmp(automatic, "SAME", 4) == 0) {
            v.shrink = 0;
            v.rounding = SAME_SIZE;
        } else if (strcmp(automatic, "NOTSET") == 0) {
            v.shrink -= entry(pads, i, 0) + entry(pads, i + spatial, 0);
        }
        dims[i + 2] = v.stride == 1 && v.shrink == 0 ? v.before : symbol_of(&v, sizeof v);
    }
}

/* Extents of output 0 that the shape rule had to leave open. */
static void refine(lnt_graph *g, const lnt_gnode *n)
{
    lnt_gelement to[MAX_ELEMENTS];
    lnt_operand *out = n->n_out && n->out[0] != LNT_NONE ? &g->value[n->out[0]].info : NULL;
    if (!out || out->rank > LNT_MAX_RANK || lnt_operand_count(out) >= 0)
        return;
    const lnt_operand *x = n->n_in ? lnt_ginfo(g, n->in[0]) : NULL;
    const unsigned rank = out->rank;
    const int count = elements_of(g, operand(n, n->op->id == LNT_ID_ConstantOfShape ? 0 : 1), to);
    const bool fits = count >= 0 && (unsigned)count <= rank;
    lnt_node view;
    lnt_gnode_view(n, &view);
    switch (n->op->id) {
    case LNT_ID_Slice: slice(g, n, out->dims); break;
    case LNT_ID_Conv:
    case LNT_ID_WinogradConv:
    case LNT_ID_MaxPool:
    case LNT_ID_AveragePool:
        if (x->rank == rank && rank >= 3)
            slide(g, n, &view, x, out->dims);
        break;
    case LNT_ID_Expand:
        if (fits)
            expand(x, to, (unsigned)count, rank, out->dims);
        break;
    case LNT_ID_ConstantOfShape:
        if (fits)
            expand(&(lnt_operand){.rank = 0}, to, (unsigned)count, rank, out->dims);
        break;
    case LNT_ID_Reshape:
        if (fits && (unsigned)count == rank)
            reshape(x, to, rank, lnt_attr_i(&view, "allowzero", 0) != 0, out->dims);
        break;
    default: break;
    }
}

/* ---- naming what stays open ---- */

static uint64_t hash_attr(const lnt_attr *a)
{
    const uint64_t name = lnt_hash(a->name, strlen(a->name)) + a->type + ((uint64_t)a->count << 32);
    switch (a->type) {
    case LNT_ATTR_INT:
    case LNT_ATTR_INTS: return name ^ lnt_hash(a->i, a->count * sizeof *a->i);
    case LNT_ATTR_FLOAT:
    case LNT_ATTR_FLOATS: return name ^ lnt_hash(a->f, a->count * sizeof *a->f);
    case LNT_ATTR_STRING: return name ^ lnt_hash(a->s, a->count);
    default: return 0;
    }
}

/* A number that two nodes share if their results are bound to have the same extents: same operator, same
 * attributes, inputs of the same extents and, where the shape rule reads them, the same contents. 0: cannot
 * be said. */
static uint64_t kinship(const lnt_graph *g, const lnt_gnode *n)
{
    uint64_t key = n->op->id;
    if (n->op->flags & (LNT_OP_CONTROL | LNT_OP_RANDOM) || n->program)
        return 0;
    for (unsigned i = 0; i < n->n_attr; i++) {
        const uint64_t attr = hash_attr(&n->attr[i]);
        if (attr == 0)
            return 0;
        key += attr * 0x9e3779b97f4a7c15u; /* a sum: the order of attributes does not count */
    }
    for (unsigned i = 0; i < n->n_in; i++) {
        struct {
            uint64_t so_far;
            int64_t rank, dims[LNT_MAX_RANK], contents;
        } text = {.so_far = key, .contents = -1};
        const lnt_operand *o = lnt_ginfo(g, n->in[i]);
        if (o && i < 32 && n->op->value_inputs >> i & 1)
            text.contents = n->in[i];
        for (unsigned d = 0; o && o->rank <= LNT_MAX_RANK && d < o->rank; d++)
            if ((text.dims[d] = o->dims[d]) == LNT_DIM_UNKNOWN)
                return 0;
        if (o && o->rank > LNT_MAX_RANK)
            return 0;
        text.rank = o ? o->rank : -1;
        key = lnt_hash(&text, sizeof text);
    }
    return key;
}

/* Open extents of results get symbols: not in loops, where they differ from round to round. */
static void name_extents(lnt_graph *g, const lnt_gnode *n)
{
    const uint64_t kin = g->loops == 0 ? kinship(g, n) : 0;
    for (unsigned o = 0; o < n->n_out && g->loops == 0; o++) {
        lnt_operand *out = n->out[o] == LNT_NONE ? NULL : &g->value[n->out[o]].info;
        for (unsigned i = 0; out && out->rank <= LNT_MAX_RANK && i < out->rank; i++)
            if (out->dims[i] == LNT_DIM_UNKNOWN) {
                const uint64_t own[] = {kin ? kin : n->out[o], kin ? o : UINT64_MAX, i};
                out->dims[i] = symbol_of(own, sizeof own);
            }
    }
}

lnt_status lnt_graph_trace_symbols(lnt_graph *g, const lnt_gnode *n)
{
    refine(g, n);
    name_extents(g, n);
    return keep_elements(g, n);
}

void lnt_graph_forget_symbols(lnt_graph *g)
{
    for (size_t v = 0; v < g->n_values; v++)
        for (unsigned i = 0; i < LNT_MAX_RANK; i++)
            if (g->value[v].info.dims[i] <= FIRST_OWN_SYMBOL)
                g->value[v].info.dims[i] = LNT_DIM_UNKNOWN;
}
