/* quantize.c — products with constant float weights become those of int8, or of 4 bits (convert/quantize/quantize.h).
 *
 * Comes behind the patterns, which make the weights what they will be, and before epilogues, which then are
 * taken up by the quantized operators as they were by the float ones. */
#include "convert/quantize/quantize_static.h"

#include "base/checked.h"
#include "convert/graph/edit.h"
#include "convert/quantize/quantize_blocks.h"
#include "ops/nbits/nbits_kernels.h"
#include "ops/product.h"
#include "ops/quant/qconv.h"

#include <string.h>

enum { TABLE_MIN = 4096 }; /* bytes of a table that rows are gathered from */

typedef struct made { /* weights already quantized, for constants with several readers */
    uint32_t from, weights, scale, zeros;
    int64_t block; /* 0: int8 */
    unsigned axis;
    float factor;
    struct made *next;
} made;

typedef struct finder {
    lnt_edit e;
    lnt_qlayers layers;
    made *made;
} finder;

static bool is_float_weight(const lnt_graph *g, const lnt_gnode *n, unsigned i)
{
    const uint32_t v = lnt_in_value(n, i);
    return lnt_is_constant(g, v) && g->value[v].info.dtype == LNT_FLOAT &&
           lnt_operand_count(lnt_ginfo(g, v)) > 0;
}

static lnt_status quantize_anew(finder *f, made *m, unsigned axes)
{
    lnt_graph *g = f->e.g;
    const lnt_gvalue *from = &g->value[m->from];
    lnt_blocks blocks;
    if (!m->block)
        return lnt_quantize_weights(g, from->name, &from->info, m->axis, axes, m->factor, NULL, &m->weights,
                                    &m->scale);
    LNT_TRY(lnt_quantize_blocks(g, from->name, &from->info, m->axis == 0, m->factor, m->block, &blocks));
    m->weights = blocks.weights;
    m->scale = blocks.scales;
    m->zeros = blocks.zeros;
    return LNT_OK;
}

/* As `wanted` says by from, axis, factor and block. */
static lnt_status quantized_weights(finder *f, const made *wanted, unsigned axes, made **out)
{
    for (made *m = f->made; m; m = m->next)
        if (m->from == wanted->from && m->axis == wanted->axis && m->factor == wanted->factor &&
            m->block == wanted->block) {
            *out = m;
            return LNT_OK;
        }
    made *m = *out = lnt_bump_alloc(&f->e.g->memory, sizeof *m, f->e.g->err);
    if (!m)
        return LNT_E_MEMORY;
    *m = *wanted;
    m->next = f->made;
    f->made = m;
    return quantize_anew(f, m, axes);
}

/* Notes a layer that may become op with operands in; attributes stay. */
static lnt_status add_layer(finder *f, lnt_gnode *n, unsigned op, const uint32_t *in, unsigned n_in,
                            uint32_t weights)
{
    lnt_graph *g = f->e.g;
    LNT_TRY(lnt_qlayers_add(&f->layers, g, n, g->value[weights].bytes));
    uint32_t *operands = lnt_bump_alloc(&g->memory, n_in * sizeof *in, g->err);
    if (!operands)
        return LNT_E_MEMORY;
    memcpy(operands, in, n_in * sizeof *in);
    lnt_qlayer *l = &f->layers.layer[f->layers.n - 1];
    l->quantized.op = lnt_op_by_id(op);
    l->quantized.in = operands;
    l->quantized.n_in = (uint16_t)n_in;
    return LNT_OK;
}

static lnt_status find_matmul(finder *f, lnt_gnode *n)
{
    lnt_graph *g = f->e.g;
    lnt_qweights p;
    bool turned, fits;
    made *m;
    LNT_TRY(lnt_qweights_of(g, n, &p, &turned, &fits));
    if (!fits)
        return LNT_OK;
    LNT_TRY(quantized_weights(f, &(made){.from = p.weights, .axis = !turned, .factor = p.factor}, 1, &m));
    const uint32_t in[] = {n->in[0], m->weights, m->scale, p.bias};
    return m->weights == LNT_NONE
               ? LNT_OK
               : add_layer(f, n, LNT_ID_DynamicMatMul, in, p.bias == LNT_NONE ? 3 : 4, p.weights);
}

/* The attributes of MatMulNBits, and what its operands take. */
static lnt_status describe_blocks(finder *f, const made *m, int64_t K, int64_t N)
{
    enum { BITS = 4 };
    lnt_graph *g = f->e.g;
    lnt_qlayer *l = &f->layers.layer[f->layers.n - 1];
    lnt_gnode *q = &l->quantized;
    q->attr = NULL;
    q->n_attr = 0;
    LNT_TRY(lnt_gnode_set_int(g, q, "K", K));
    LNT_TRY(lnt_gnode_set_int(g, q, "N", N));
    LNT_TRY(lnt_gnode_set_int(g, q, "bits", BITS));
    LNT_TRY(lnt_gnode_set_int(g, q, "block_size", m->block));
    const lnt_gvalue *scales = &g->value[m->scale];
    l->measured.after = g->value[m->weights].bytes + scales->bytes / (scales->stored_as ? 2 : 1) +
                        (m->zeros == LNT_NONE ? 0 : g->value[m->zeros].bytes);
    return lnt_gnode_set_int(g, q, "accuracy_level", LNT_NBITS_INT8);
}

static lnt_status find_blocks(finder *f, lnt_gnode *n)
{
    lnt_graph *g = f->e.g;
    lnt_qweights p;
    bool turned, fits;
    made *m;
    LNT_TRY(lnt_qweights_of(g, n, &p, &turned, &fits));
    if (!fits)
        return LNT_OK;
    const int64_t K = lnt_ginfo(g, p.weights)->dims[turned], block = g->quantize->block;
    if (K < block || K > INT32_MAX / 2 || p.columns > INT32_MAX / 2)
        return LNT_OK;
    const made wanted = {
        .from = p.weights, .zeros = LNT_NONE, .block = block, .axis = !turned, .factor = p.factor};
    LNT_TRY(quantized_weights(f, &wanted, 1, &m));
    if (m->weights == LNT_NONE)
        return LNT_OK;
    const uint32_t in[] = {n->in[0], m->weights, m->scale, m->zeros, LNT_NONE, p.bias};
    LNT_TRY(add_layer(f, n, LNT_ID_MatMulNBits, in,
                      p.bias != LNT_NONE     ? 6
                      : m->zeros != LNT_NONE ? 4
                                             : 3,
                      p.weights));
    return describe_blocks(f, m, K, p.columns);
}

static lnt_status find_conv(finder *f, lnt_gnode *n)
{
    lnt_graph *g = f->e.g;
    lnt_packed record;
    lnt_node view;
    made *m;
    lnt_gnode_view(n, &view);
    if (!is_float_weight(g, n, 1) || !lnt_qconv_record(&view, lnt_ginfo(g, n->in[1]), &record))
        return LNT_OK;
    LNT_TRY(quantized_weights(f, &(made){.from = n->in[1], .factor = 1}, 1, &m));
    if (m->weights == LNT_NONE)
        return LNT_OK;
    const uint32_t in[] = {n->in[0], m->weights, m->scale, lnt_in_value(n, 2)};
    LNT_TRY(add_layer(f, n, LNT_ID_DynamicConv, in, in[3] == LNT_NONE ? 3 : 4, n->in[1]));
    /* Depthwise ones take longer to quantize their input than to compute in float. */
    f->layers.layer[f->layers.n - 1].narrow = lnt_qconv_is_depthwise(&record);
    return LNT_OK;
}

/* Scales [directions][gates * hidden] in the order of the packed columns, padding included. */
static uint32_t column_scales(lnt_graph *g, uint32_t scale, int64_t directions, int64_t gates, int64_t hidden)
{
    const float *from = g->value[scale].info.data;
    const int64_t row = gates * (int64_t)lnt_round_up((size_t)hidden, LNT_PANEL), n = directions * row;
    float *to = lnt_bump_alloc(&g->memory, (size_t)n * sizeof *to, g->err);
    if (!to)
        return LNT_NONE;
    memset(to, 0, (size_t)n * sizeof *to);
    for (int64_t i = 0; i < directions * gates * hidden; i++) {
        const int64_t h = i % hidden, gate = i / hidden % gates, d = i / hidden / gates;
        to[d * row + (h / LNT_PANEL * gates + gate) * LNT_PANEL + h % LNT_PANEL] = from[i];
    }
    return lnt_add_floats(g, g->value[scale].name, 1, &n, to);
}

static lnt_status find_recurrent(finder *f, lnt_gnode *n)
{
    lnt_graph *g = f->e.g;
    const int64_t gates = lnt_is(n, LSTM) ? 4 : 3;
    uint32_t in[10];
    made *w, *r;
    if (!is_float_weight(g, n, 1) || !is_float_weight(g, n, 2))
        return LNT_OK;
    const lnt_operand *recurrent = lnt_ginfo(g, n->in[2]);
    const int64_t directions = recurrent->dims[0], hidden = recurrent->dims[2];
    if (lnt_ginfo(g, n->in[1])->rank != 3 || recurrent->rank != 3 || recurrent->dims[1] != gates * hidden)
        return LNT_OK;
    LNT_TRY(quantized_weights(f, &(made){.from = n->in[1], .factor = 1}, 2, &w));
    LNT_TRY(quantized_weights(f, &(made){.from = n->in[2], .factor = 1}, 2, &r));
    if (w->weights == LNT_NONE || r->weights == LNT_NONE)
        return LNT_OK;
    for (unsigned i = 0; i < 8; i++)
        in[i] = lnt_in_value(n, i);
    in[1] = w->weights;
    in[2] = r->weights;
    in[8] = column_scales(g, w->scale, directions, gates, hidden);
    in[9] = column_scales(g, r->scale, directions, gates, hidden);
    if (in[8] == LNT_NONE || in[9] == LNT_NONE)
        return LNT_E_MEMORY;
    LNT_TRY(add_layer(f, n, lnt_is(n, LSTM) ? LNT_ID_DynamicLSTM : LNT_ID_DynamicGRU, in, 10, n->in[1]));
    lnt_quantized *q = &f->layers.layer[f->layers.n - 1].measured;
    q->before += g->value[n->in[2]].bytes;
    q->after += g->value[n->in[2]].bytes / sizeof(float);
    return LNT_OK;
}

static lnt_status find_gather(finder *f, lnt_gnode *n)
{
    lnt_graph *g = f->e.g;
    made *m;
    if (!is_float_weight(g, n, 0) || lnt_gnode_int(n, "axis", 0) != 0 || lnt_ginfo(g, n->in[0])->rank != 2 ||
        g->value[n->in[0]].bytes < TABLE_MIN)
        return LNT_OK;
    LNT_TRY(quantized_weights(f, &(made){.from = n->in[0], .factor = 1}, 1, &m));
    const uint32_t in[] = {m->weights, n->in[1], m->scale};
    return m->weights == LNT_NONE ? LNT_OK : add_layer(f, n, LNT_ID_DynamicGather, in, 3, n->in[0]);
}

static lnt_status find_form(finder *f, lnt_gnode *n)
{
    const bool blocks = f->e.g->quantize->mode == LNT_INT4_BLOCKS;
    if (n->program || n->n_in < 2)
        return LNT_OK;
    if (lnt_is(n, MatMul) || lnt_is(n, Gemm) || lnt_is(n, FusedMatMul))
        return blocks ? find_blocks(f, n) : find_matmul(f, n);
    if (lnt_is(n, Gather))
        return find_gather(f, n);
    if (blocks)
        return LNT_OK;
    if (lnt_is(n, Conv))
        return find_conv(f, n);
    if (lnt_is(n, LSTM) || lnt_is(n, GRU))
        return find_recurrent(f, n);
    return LNT_OK;
}

/* Products that stay in float: that the report's share is that of all. */
static lnt_status note_formless(finder *f, lnt_gnode *n)
{
    lnt_graph *g = f->e.g;
    size_t weights = 0;
    if (n->subgraph != 0 || !lnt_product_of(n->op))
        return LNT_OK;
    for (unsigned i = 0; i < n->n_in; i++)
        if (lnt_is_constant(g, n->in[i]) && g->value[n->in[i]].info.rank > 1)
            weights += g->value[n->in[i]].bytes;
    LNT_TRY(lnt_qlayers_add(&f->layers, g, n, weights));
    lnt_qlayer *l = &f->layers.layer[f->layers.n - 1];
    l->chosen = false;
    l->formless = true;
    l->why = !weights ? "nothing in it is constant"
             : g->quantize->mode == LNT_INT4_BLOCKS
                 ? "no MatMul or Gemm of finite weights, a block long and more"
                 : "there is no such operator in INT8";
    return LNT_OK;
}

static lnt_status find(finder *f, lnt_gnode *n)
{
    const size_t before = f->layers.n;
    if (n->dead || n->n_out < 1 || lnt_static_claims(f->layers.fixed, n))
        return LNT_OK;
    LNT_TRY(find_form(f, n));
    return f->layers.n == before ? note_formless(f, n) : LNT_OK;
}

/* Not what goes along within another layer, and what nothing but its neighbors keep in float. */
static bool is_told(const lnt_qlayers *layers, const lnt_qlayer *l)
{
    const lnt_qsite *s = l->fixed ? lnt_static_site(layers->fixed, l->node) : NULL;
    return !s || s->kind == LNT_Q_PRODUCT || s->lowered || l->unfit;
}

/* The layers' figures for the report, and a line for what was done. */
static lnt_status tell(finder *f)
{
    lnt_report *r = f->e.report;
    r->quantized = lnt_bump_alloc(&r->memory, f->layers.n * sizeof *r->quantized, f->e.g->err);
    if (!r->quantized)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < f->layers.n; i++) {
        lnt_qlayer *l = &f->layers.layer[i];
        if (!is_told(&f->layers, l))
            continue;
        lnt_quantized *q = &r->quantized[r->n_quantized++];
        *q = l->measured;
        q->bits = !l->chosen ? 0 : lnt_is(&l->quantized, MatMulNBits) ? 4 : 8;
        q->int8 = l->chosen && !l->narrow;
        q->narrow = l->chosen && l->narrow;
        q->why = q->narrow ? "faster in float; its weights are int8" : l->why;
        q->node = lnt_report_text(r, "%s", q->node);
        if (!q->node)
            return LNT_E_MEMORY;
        LNT_TRY(lnt_edit_count(&f->e, lnt_report_text(r, "%s %s", lnt_op_name(l->plain.op),
                                                      q->bits == 4 ? "with weights of 4 bits"
                                                      : q->int8    ? "in INT8"
                                                      : q->narrow  ? "in float with int8 weights"
                                                                   : "kept in float")));
    }
    return LNT_OK;
}

static lnt_status find_and_try(finder *f)
{
    lnt_graph *g = f->e.g;
    if (g->quantize->mode == LNT_INT8_STATIC)
        LNT_TRY(lnt_static_find(g, &f->layers));
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            LNT_TRY(find(f, g->sub[s].node[i]));
    LNT_TRY(lnt_qlayers_keep_named(&f->layers, g->quantize, g->err));
    LNT_TRY(lnt_quantize_trial(g, g->quantize, &f->layers, f->e.report));
    for (uint32_t v = 0; v < g->n_values; v++)
        if (g->value[v].measured) {
            g->value[v].measured = false;
            lnt_edit_released(&f->e, v);
        }
    return tell(f);
}

lnt_status lnt_pass_quantize(lnt_graph *g, lnt_report *report)
{
    finder f = {.e = {.g = g, .report = report, .pass = "quantize"}};
    if (!g->quantize || g->quantize->mode == LNT_INT8_OFF)
        return LNT_OK;
    const lnt_status status = find_and_try(&f);
    lnt_free(g->memory.allocator, f.layers.layer);
    return status;
}
