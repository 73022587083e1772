/* storage_order.c — chooses for each value of rank 3 and more whether it is stored in ONNX order or channels-last,
 * and puts linnet.Relayout nodes where a reader wants the other one.
 *
 * Convolutions work channels-last. Nodes that can do either are labeled so that as few elements as possible
 * are moved: first whole webs of such neighbors, then node by node until nothing gets better. Inputs and
 * outputs of the model and of subgraphs, and kept values, are in ONNX order. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"
#include "ops/conv/conv.h"

#include <string.h>

enum { NOWHERE = UINT32_MAX, UNKNOWN_EXTENT = 64 };

/* What an operand's storage order has to do with its node. */
typedef enum role {
    ANY,  /* nothing: read or written by strides, or the same bytes in both orders */
    OWN,  /* it is the node's label */
    PLAIN /* must be ONNX order */
} role;

typedef struct reader {
    uint32_t node, next;
    unsigned operand;
} reader;

typedef struct layouts {
    lnt_edit e;
    lnt_gnode **node; /* of all subgraphs */
    uint32_t n;
    uint8_t *label; /* lnt_order of each node */
    bool *fixed;
    bool *visited;
    uint32_t *producer;     /* per value: node, or NOWHERE */
    uint32_t *first_reader; /* per value: into reader, or NOWHERE */
    reader *reader;
    uint32_t *web; /* nodes of the web in hand */
    uint32_t n_values;
} layouts;

/* ---- what nodes ask for ---- */

/* Reads extents alone. */
static bool reads_no_elements(const lnt_gnode *n)
{
    return lnt_is(n, Shape) || lnt_is(n, Size);
}

/* Convolutions are bound to channels-last (but see settle_planes); the others flagged CL or elementwise may
 * choose. */
static bool bound_to_channels_last(const lnt_gnode *n)
{
    return lnt_is(n, Conv) || lnt_is(n, ConvTranspose) || lnt_is(n, QLinearConv) || lnt_is(n, DynamicConv);
}

/* Pixels that it adds, by number: first those before each axis. */
static int64_t padding_of(const lnt_gnode *n, unsigned i)
{
    return lnt_gnode_int_at(n, "pads", i, 0);
}

/* Does a convolution meet some pixels alone? */
static bool skips_pixels(const lnt_graph *g, const lnt_gnode *n)
{
    const lnt_operand *w = lnt_ginfo(g, n->in[1]);
    if (!lnt_is(n, Conv) || lnt_ginfo(g, n->in[0])->dtype != LNT_FLOAT || w->rank < 3)
        return false;
    bool skips = false;
    for (unsigned i = 2; i < w->rank; i++) {
        if (w->dims[i] != 1 || padding_of(n, i - 2) || padding_of(n, w->rank - 2u + i - 2))
            return false;
        skips |= lnt_gnode_int_at(n, "strides", i - 2, 1) > 1;
    }
    return skips;
}

/* A convolution of few channels copies what it reads anyway, whatever the order; one that skips pixels copies the
 * others sooner than all are brought into its order. */
static bool reads_either(const lnt_graph *g, const lnt_gnode *n, unsigned operand)
{
    return bound_to_channels_last(n) && !lnt_is(n, ConvTranspose) && operand == 0 &&
           (lnt_conv_few_channels(lnt_ginfo(g, n->in[0])->dims[1]) || skips_pixels(g, n));
}

bool lnt_is_for_halves(const lnt_graph *g)
{
    return g->precision == LNT_PRECISION_FLOAT16 || g->precision == LNT_PRECISION_AUTO ||
           (g->precision == LNT_PRECISION_MODEL && g->model_halves == LNT_FLOAT16);
}

/* Is an image's weights' share small? A product of planes by those of a ConvTranspose turns them first, and saves
 * bringing both images into another order. */
static bool has_few_weights(const lnt_conv *c, int64_t outputs)
{
    enum { MOVED = 1 /* elements of the images for each weight */ };
    const double taps = (double)lnt_volume(c->w.kernel), channels = (double)c->channels,
                 features = (double)c->features * taps;
    return !c->transposed || outputs < 0 ||
           (double)outputs / taps * (channels + features) >= MOVED * channels * features;
}

/* Lanes that vectors of 16 have for each element of n. */
static double lanes_of(int64_t n)
{
    return (double)lnt_round_up((size_t)n, LNT_PANEL) / (double)n;
}

/* Are rows of planes made of few channels sooner than features side by side, which are brought into order then? */
static bool has_long_rows(const lnt_conv *c)
{
    enum {
        MOVED = 16,  /* multiply-adds in the time of an output */
        COPIED = 280 /* lanes that multiply in the time of a line that is copied for a tap */
    };
    const double depth = (double)c->channels * (double)lnt_volume(c->w.kernel),
                 met = (double)c->w.out[2] * (double)c->features * (double)c->w.kernel[1];
    const bool joined = lnt_conv_joins_lines(c);
    const int64_t row = joined ? lnt_dim_mul(c->w.out[1], c->w.out[2]) : c->w.out[2];
    const double lanes = lanes_of(row) * (joined && !lnt_meets_phases(&c->w) ? 1 + COPIED / met : 1);
    return row <= 0 || depth * lanes <= depth * lanes_of(c->features) + MOVED;
}

/* Halves are brought into order as they are cast, which more taps of planes are dearer than. */
static bool is_each_in_order(const lnt_graph *g, const lnt_window *w)
{
    enum { TAPS = 9, SIDE_BY_SIDE = 3 };
    return !lnt_is_for_halves(g) ||
           (lnt_volume(w->kernel) * w->stride[2] <= TAPS && w->kernel[2] <= SIDE_BY_SIDE);
}

bool lnt_makes_planes(const lnt_graph *g, const lnt_gnode *n, lnt_conv_kind *kind)
{
    if (!lnt_is(n, Conv) && !lnt_is(n, ConvTranspose))
        return false;
    const lnt_operand *x = lnt_ginfo(g, n->in[0]), *w = lnt_ginfo(g, n->in[1]), *y = lnt_ginfo(g, n->out[0]);
    lnt_node view;
    lnt_conv c;
    lnt_gnode_view(n, &view);
    if (x->dtype != LNT_FLOAT || w->rank < 3 || x->rank != w->rank || y->rank != w->rank ||
        !lnt_conv_of_weights(&view, w, lnt_is(n, ConvTranspose), &c))
        return false;
    int64_t pixels = 1;
    for (unsigned i = 2, a = LNT_WINDOW_AXES + 2u - w->rank; i < w->rank; i++, a++) {
        pixels = lnt_dim_mul(pixels, y->dims[i]);
        c.w.in[a] = x->dims[i];
        c.w.out[a] = y->dims[i];
        c.w.before[a] = padding_of(n, i - 2);
        c.w.after[a] = padding_of(n, w->rank - 2u + i - 2);
    }
    lnt_conv_merge_axes(&c);
    *kind = lnt_conv_algorithm(&c, LNT_ORDER_PLAIN, false, false);
    switch (*kind) {
    case LNT_CONV_EACH: return pixels > 0 && is_each_in_order(g, &c.w); /* of open extents there may be few */
    case LNT_CONV_MATRIX:
        return (pixels < 0 || pixels >= LNT_PANEL) && !lnt_is_for_halves(g) && has_few_weights(&c, pixels);
    case LNT_CONV_PLANES: return c.w.kernel[0] == 1 && has_long_rows(&c);
    default: return false;
    }
}

/* Reads and writes by strides: input and output may differ in order. */
static bool moves_axes(const lnt_gnode *n)
{
    return lnt_is(n, Transpose) || lnt_is(n, DepthToSpace) || lnt_is(n, SpaceToDepth);
}

static bool is_elementwise(const lnt_gnode *n)
{
    return (n->op->flags & LNT_OP_ELEMENTWISE) || lnt_is(n, Elementwise);
}

static bool is_8_bit(const lnt_operand *o)
{
    return o->dtype == LNT_INT8 || o->dtype == LNT_UINT8;
}

/* Kernels that work channels-last do so on float, int8 and uint8. */
static bool has_channels(const lnt_operand *o)
{
    return o->rank >= 3 && o->rank <= LNT_MAX_RANK && (o->dtype == LNT_FLOAT || is_8_bit(o));
}

/* Operators on quantized tensors with more than one of them. */
static bool combines_quantized(const lnt_gnode *n)
{
    return lnt_is(n, QLinearAdd) || lnt_is(n, QLinearMul);
}

/* The first operand that has channels. */
static unsigned first_tensor(const lnt_gnode *n)
{
    return n->op->flags & LNT_OP_TRIPLES ? 2 : 0;
}

/* Scales of an axis, or an axis that is said otherwise, depend on ONNX order. */
static bool depends_on_order(const lnt_graph *g, const lnt_gnode *n)
{
    if (lnt_is(n, QuantizeLinear) || lnt_is(n, DequantizeLinear))
        return lnt_operand_count(lnt_ginfo(g, n->in[1])) != 1;
    return lnt_gnode_int(n, "channels_last", 0) != 0;
}

/* Squeeze or Unsqueeze of spatial axes: the bytes stay as they are in both orders. */
static bool keeps_bytes(const lnt_gnode *n)
{
    return lnt_is(n, Squeeze) || lnt_is(n, Unsqueeze);
}

static bool spatial_axes(const lnt_graph *g, const lnt_gnode *n)
{
    int64_t axes[LNT_MAX_RANK];
    unsigned count = LNT_MAX_RANK;
    const lnt_operand *in = lnt_ginfo(g, n->in[0]), *out = lnt_ginfo(g, n->out[0]);
    if (!has_channels(in) || !has_channels(out) || lnt_in_value(n, 1) == LNT_NONE ||
        !lnt_constant_ints(g, n->in[1], axes, &count))
        return false;
    const unsigned rank = in->rank > out->rank ? in->rank : out->rank;
    for (unsigned i = 0; i < count; i++)
        if ((axes[i] < 0 ? axes[i] + rank : axes[i]) < 2)
            return false;
    return true;
}

/* A node that may have a label other than ONNX order. */
static bool orders_known(const lnt_graph *g, const lnt_gnode *n)
{
    if (n->n_out == 0 || n->out[0] == LNT_NONE || !has_channels(lnt_ginfo(g, n->out[0])))
        return false;
    if (is_elementwise(n) && is_8_bit(lnt_ginfo(g, n->out[0])))
        return false;
    if (is_elementwise(n) || moves_axes(n))
        return true;
    if (keeps_bytes(n))
        return spatial_axes(g, n);
    /* A second output such as MaxPool's indices counts positions in ONNX order. */
    return (n->op->flags & LNT_OP_CL) && has_channels(lnt_ginfo(g, n->in[first_tensor(n)])) &&
           !depends_on_order(g, n) && (n->n_out == 1 || n->op->flags & LNT_OP_PARTS);
}

/* An operand that broadcasts against the result of an elementwise node or program. */
static role operand_role(const lnt_graph *g, const lnt_gnode *n, uint32_t value)
{
    const lnt_operand *x = lnt_ginfo(g, value), *result = lnt_ginfo(g, n->out[0]);
    if (!has_channels(x) || g->value[value].constant)
        return ANY;
    if (x->rank != result->rank || (is_elementwise(n) && is_8_bit(x)))
        return PLAIN;
    return lnt_order_free(x) ? ANY : OWN;
}

static role in_role(const lnt_graph *g, const lnt_gnode *n, unsigned i)
{
    if (reads_no_elements(n))
        return ANY;
    if (!orders_known(g, n))
        return PLAIN;
    if (is_elementwise(n) || combines_quantized(n) || i + n->n_program_in >= n->n_in)
        return operand_role(g, n, n->in[i]);
    if (moves_axes(n) || reads_either(g, n, i))
        return ANY;
    return lnt_is(n, Concat) || lnt_op_is_image(n->op, i) ? OWN : PLAIN;
}

static role out_role(const lnt_graph *g, const lnt_gnode *n)
{
    return orders_known(g, n) ? OWN : PLAIN;
}

/* ---- the web of values and nodes ---- */

static bool needs_order(const layouts *l, uint32_t value)
{
    return value != LNT_NONE && value < l->n_values && has_channels(lnt_ginfo(l->e.g, value)) &&
           !l->e.g->value[value].constant;
}

static lnt_status collect(layouts *l)
{
    lnt_graph *g = l->e.g;
    size_t nodes = 0, operands = 0;
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++, nodes++)
            operands += g->sub[s].node[i]->n_in;
    l->n_values = (uint32_t)g->n_values;
    l->node = lnt_bump_alloc(&g->memory, nodes * sizeof(lnt_gnode *), g->err);
    l->label = lnt_bump_alloc(&g->memory, nodes * sizeof *l->label, g->err);
    l->fixed = lnt_bump_alloc(&g->memory, nodes * sizeof *l->fixed, g->err);
    l->visited = lnt_bump_alloc(&g->memory, nodes * sizeof *l->visited, g->err);
    l->web = lnt_bump_alloc(&g->memory, nodes * sizeof *l->web, g->err);
    l->producer = lnt_bump_alloc(&g->memory, l->n_values * sizeof *l->producer, g->err);
    l->first_reader = lnt_bump_alloc(&g->memory, l->n_values * sizeof *l->first_reader, g->err);
    l->reader = lnt_bump_alloc(&g->memory, operands * sizeof *l->reader, g->err);
    if (!l->node || !l->label || !l->fixed || !l->visited || !l->web || !l->producer || !l->first_reader ||
        !l->reader)
        return LNT_E_MEMORY;
    memset(l->producer, 0xff, l->n_values * sizeof *l->producer);
    memset(l->first_reader, 0xff, l->n_values * sizeof *l->first_reader);
    return LNT_OK;
}

static void connect(layouts *l)
{
    const lnt_graph *g = l->e.g;
    uint32_t used = 0;
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++) {
            lnt_gnode *n = g->sub[s].node[i];
            const uint32_t at = l->n++;
            l->node[at] = n;
            l->fixed[at] = !orders_known(g, n) || bound_to_channels_last(n);
            l->label[at] = orders_known(g, n) ? LNT_ORDER_CHANNELS_LAST : LNT_ORDER_PLAIN;
            for (unsigned k = 0; k < n->n_out; k++)
                if (needs_order(l, n->out[k]))
                    l->producer[n->out[k]] = at;
            for (unsigned k = 0; k < n->n_in; k++)
                if (needs_order(l, n->in[k])) {
                    l->reader[used] = (reader){at, l->first_reader[n->in[k]], k};
                    l->first_reader[n->in[k]] = used++;
                }
        }
}

/* ---- cost ---- */

static double elements(const lnt_operand *o)
{
    double n = 1;
    for (unsigned i = 0; i < o->rank; i++)
        n *= o->dims[i] < 0 ? UNKNOWN_EXTENT : (double)o->dims[i];
    return n;
}

/* The order the value is written in. */
static unsigned written_order(const layouts *l, uint32_t value)
{
    const uint32_t p = l->producer[value];
    return p == NOWHERE || out_role(l->e.g, l->node[p]) != OWN ? LNT_ORDER_PLAIN : l->label[p];
}

/* The order reader r wants, or -1. */
static int wanted_order(const layouts *l, uint32_t value, const reader *r)
{
    const lnt_gnode *n = l->node[r->node];
    const uint32_t p = l->producer[value];
    if (p != NOWHERE && l->node[p]->subgraph != n->subgraph)
        return LNT_ORDER_PLAIN;
    switch (in_role(l->e.g, n, r->operand)) {
    case ANY: return -1;
    case OWN: return l->label[r->node];
    default: return LNT_ORDER_PLAIN;
    }
}

/* Elements moved because the value is wanted in another order than it is written in. */
static double value_cost(layouts *l, uint32_t value)
{
    const unsigned order = written_order(l, value);
    bool moved = order != LNT_ORDER_PLAIN && lnt_edit_pinned(&l->e, value);
    for (uint32_t r = l->first_reader[value]; r != NOWHERE && !moved; r = l->reader[r].next) {
        const int wanted = wanted_order(l, value, &l->reader[r]);
        moved = wanted >= 0 && (unsigned)wanted != order;
    }
    const lnt_operand *o = lnt_ginfo(l->e.g, value);
    return moved && !lnt_order_free(o) ? elements(o) : 0;
}

/* Works on windows or planes, which are better channels-last. (Resize is as fast on rows of planes.) */
static bool slides(const lnt_gnode *n)
{
    return lnt_is(n, QLinearAveragePool) || lnt_is(n, QLinearGlobalAveragePool) ||
           (n->op->id < LNT_ID_QuantizeLinear && !is_elementwise(n) && !moves_axes(n) && !keeps_bytes(n) &&
            !lnt_is(n, Concat) && !lnt_is(n, Split) && !lnt_is(n, Slice) && !lnt_is(n, Pad) &&
            !lnt_is(n, Resize));
}

/* Cost of all values at node i; a small extra charge makes ONNX order the dearer one where windows slide. */
static double node_cost(layouts *l, uint32_t i)
{
    const lnt_gnode *n = l->node[i];
    double cost = 0;
    for (unsigned k = 0; k < n->n_out; k++)
        if (needs_order(l, n->out[k]))
            cost += value_cost(l, n->out[k]);
    for (unsigned k = 0; k < n->n_in; k++)
        if (needs_order(l, n->in[k]))
            cost += value_cost(l, n->in[k]);
    if (slides(n) && l->label[i] == LNT_ORDER_PLAIN && !l->fixed[i])
        cost += elements(lnt_ginfo(l->e.g, n->out[0]));
    return cost;
}

/* ---- labeling ---- */

/* Adds the unvisited, free neighbors over one value to the web. */
static uint32_t spread(layouts *l, uint32_t value, uint32_t count)
{
    uint32_t at = needs_order(l, value) ? l->producer[value] : NOWHERE;
    uint32_t r = needs_order(l, value) ? l->first_reader[value] : NOWHERE;
    while (at != NOWHERE || r != NOWHERE) {
        if (at != NOWHERE && !l->visited[at] && !l->fixed[at]) {
            l->visited[at] = true;
            l->web[count++] = at;
        }
        at = r == NOWHERE ? NOWHERE : l->reader[r].node;
        r = r == NOWHERE ? NOWHERE : l->reader[r].next;
    }
    return count;
}

static uint32_t gather_web(layouts *l, uint32_t from)
{
    uint32_t count = 1;
    l->web[0] = from;
    l->visited[from] = true;
    for (uint32_t done = 0; done < count; done++) {
        const lnt_gnode *n = l->node[l->web[done]];
        for (unsigned k = 0; k < n->n_out; k++)
            count = spread(l, n->out[k], count);
        for (unsigned k = 0; k < n->n_in; k++)
            count = spread(l, n->in[k], count);
    }
    return count;
}

static double label_web(layouts *l, uint32_t count, uint8_t label)
{
    double cost = 0;
    for (uint32_t i = 0; i < count; i++)
        l->label[l->web[i]] = label;
    for (uint32_t i = 0; i < count; i++)
        cost += node_cost(l, l->web[i]);
    return cost;
}

/* Flips single nodes while that saves something. */
static void refine(layouts *l)
{
    bool better = true;
    for (unsigned round = 0; better && round < 64; round++) {
        better = false;
        for (uint32_t i = 0; i < l->n; i++) {
            if (l->fixed[i])
                continue;
            const double before = node_cost(l, i);
            l->label[i] ^= 1;
            if (node_cost(l, i) < before)
                better = true;
            else
                l->label[i] ^= 1;
        }
    }
}

static void choose(layouts *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->fixed[i] || l->visited[i])
            continue;
        const uint32_t count = gather_web(l, i);
        const double plain = label_web(l, count, LNT_ORDER_PLAIN);
        if (label_web(l, count, LNT_ORDER_CHANNELS_LAST) >= plain)
            label_web(l, count, LNT_ORDER_PLAIN);
    }
    refine(l);
}

static bool wanted_in(const layouts *l, uint32_t value, unsigned order)
{
    for (uint32_t r = l->first_reader[value]; r != NOWHERE; r = l->reader[r].next)
        if (wanted_order(l, value, &l->reader[r]) == (int)order)
            return true;
    return false;
}

/* Where nothing but this Cast, whose input has no order, makes value channels-last, for one reader: that one. */
static uint32_t cast_of(const layouts *l, uint32_t value)
{
    const uint32_t p = l->producer[value], r = l->first_reader[value];
    return p != NOWHERE && lnt_is(l->node[p], Cast) && !needs_order(l, l->node[p]->in[0]) &&
                   l->reader[r].next == NOWHERE && !lnt_edit_is_output(&l->e, value)
               ? p
               : NOWHERE;
}

static bool reads_plain(const layouts *l, const lnt_gnode *n)
{
    bool plain = true;
    for (unsigned k = 0; k < n->n_in; k++)
        plain &= !needs_order(l, n->in[k]) || written_order(l, n->in[k]) == LNT_ORDER_PLAIN ||
                 cast_of(l, n->in[k]) != NOWHERE;
    return plain;
}

static void make_plain(layouts *l, uint32_t i)
{
    const lnt_gnode *n = l->node[i];
    l->label[i] = LNT_ORDER_PLAIN;
    for (unsigned k = 0; k < n->n_in; k++)
        if (needs_order(l, n->in[k]) && cast_of(l, n->in[k]) != NOWHERE)
            l->label[cast_of(l, n->in[k])] = LNT_ORDER_PLAIN;
}

/* Convolutions that can make planes of planes do so where nobody reads them channels-last. */
static void settle_planes(layouts *l)
{
    const lnt_graph *g = l->e.g;
    for (uint32_t i = 0; i < l->n; i++) {
        const lnt_gnode *n = l->node[i];
        lnt_conv_kind ignored;
        if (l->label[i] != LNT_ORDER_CHANNELS_LAST || !lnt_makes_planes(g, n, &ignored) ||
            !reads_plain(l, n) || wanted_in(l, n->out[0], LNT_ORDER_CHANNELS_LAST))
            continue;
        if (lnt_edit_is_output(&l->e, n->out[0]) || wanted_in(l, n->out[0], LNT_ORDER_PLAIN))
            make_plain(l, i);
    }
}

/* ---- writing ---- */

static lnt_status count_relayout(layouts *l, uint32_t value)
{
    if (lnt_order_free(lnt_ginfo(l->e.g, value)))
        return lnt_edit_count(&l->e, "relayouts that move nothing");
    l->e.report->relayouts++;
    return lnt_edit_count(&l->e, "relayouts");
}

/* A value like `value`, in that order. */
static uint32_t value_like(lnt_graph *g, uint32_t value, unsigned order)
{
    const uint32_t twin = lnt_graph_add_value(g, g->value[value].name);
    if (twin != LNT_NONE) {
        g->value[twin].info = g->value[value].info;
        g->value[twin].info.order = (uint8_t)order;
        g->value[twin].info.data = NULL;
    }
    return twin;
}

static lnt_status insert_relayout(layouts *l, uint32_t sub, lnt_gnode *before, uint32_t from, uint32_t to)
{
    const lnt_op *op = lnt_op_by_id(LNT_ID_Relayout);
    if (!lnt_graph_add_node(l->e.g, sub, before, op, l->e.g->value[from].name, &from, 1, &to, 1))
        return LNT_E_MEMORY;
    return count_relayout(l, from);
}

/* The node that stands behind node `at` in its subgraph; NULL at the end. */
static lnt_gnode *behind(const layouts *l, uint32_t at)
{
    const bool last = at + 1 == l->n || l->node[at + 1]->subgraph != l->node[at]->subgraph;
    return last ? NULL : l->node[at + 1];
}

/* Points the readers that want `order` to twin. */
static void serve(layouts *l, uint32_t value, unsigned order, uint32_t twin)
{
    for (uint32_t r = l->first_reader[value]; r != NOWHERE; r = l->reader[r].next)
        if (wanted_order(l, value, &l->reader[r]) == (int)order)
            l->node[l->reader[r].node]->in[l->reader[r].operand] = twin;
}

/* An output written channels-last (a kept value may be in either order): the producer writes a twin, from which
 * the value is made. */
static lnt_status settle_output(layouts *l, uint32_t value)
{
    lnt_graph *g = l->e.g;
    lnt_gnode *p = l->node[l->producer[value]];
    const uint32_t twin = value_like(g, value, LNT_ORDER_CHANNELS_LAST);
    if (twin == LNT_NONE)
        return LNT_E_MEMORY;
    for (unsigned k = 0; k < p->n_out; k++)
        if (p->out[k] == value)
            p->out[k] = twin;
    g->value[twin].producer = p;
    serve(l, value, LNT_ORDER_CHANNELS_LAST, twin);
    return insert_relayout(l, p->subgraph, behind(l, l->producer[value]), twin, value);
}

/* The subgraph in which the value is made or fed. */
static uint32_t home_of(const layouts *l, uint32_t value)
{
    const lnt_graph *g = l->e.g;
    if (l->producer[value] != NOWHERE)
        return l->node[l->producer[value]]->subgraph;
    for (uint32_t s = 1; s < g->n_subs; s++)
        for (uint32_t i = 0; i < g->sub[s].n_in; i++)
            if (g->sub[s].in[i] == value)
                return s;
    return 0;
}

static lnt_status settle(layouts *l, uint32_t value)
{
    lnt_graph *g = l->e.g;
    const unsigned order = written_order(l, value), other = order ^ 1u;
    if (order == LNT_ORDER_CHANNELS_LAST && lnt_edit_is_output(&l->e, value))
        return settle_output(l, value);
    g->value[value].info.order = (uint8_t)order;
    if (!wanted_in(l, value, other))
        return LNT_OK;
    const uint32_t twin = value_like(g, value, other);
    if (twin == LNT_NONE)
        return LNT_E_MEMORY;
    const uint32_t sub = home_of(l, value);
    serve(l, value, other, twin);
    const uint32_t p = l->producer[value];
    return insert_relayout(l, sub, p == NOWHERE ? g->sub[sub].node[0] : behind(l, p), value, twin);
}

lnt_status lnt_pass_storage_order(lnt_graph *g, lnt_report *report)
{
    layouts l = {.n = 0};
    LNT_TRY(lnt_edit_begin(&l.e, g, report, "storage_order"));
    LNT_TRY(collect(&l));
    connect(&l);
    choose(&l);
    settle_planes(&l);
    for (uint32_t v = 0; v < l.n_values; v++)
        if (needs_order(&l, v) && (l.producer[v] != NOWHERE || l.first_reader[v] != NOWHERE))
            LNT_TRY(settle(&l, v));
    return LNT_OK;
}
