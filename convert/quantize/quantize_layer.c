/* quantize_layer.c — see quantize_layer.h. */
#include "convert/quantize/quantize_layer.h"

#include "base/clock.h"
#include "base/lnt_assert.h"
#include "convert/graph/edit.h"
#include "convert/quantize/quantize_noise.h"
#include "ops/product.h"
#include "ops/quant/qparams.h"

#include <math.h>
#include <string.h>

enum { IN_MOST = 2 + 3 * LNT_Q_CONCAT_MOST, OUT_MOST = 8 };

/* Where a layer is measured. */
typedef struct context {
    lnt_graph *g;
    const lnt_static *fixed; /* or NULL */
    lnt_session *session;
    lnt_level level;
    lnt_error *err;
} context;

/* ---- a node by itself ---- */

/* With constants packed. */
typedef struct alone {
    lnt_bump memory;
    lnt_node node;
    lnt_operand *in[IN_MOST], *out[OUT_MOST];
    lnt_operand operand[IN_MOST + OUT_MOST];
    void *out_data[OUT_MOST];
    lnt_solo solo;
} alone;

static lnt_status pack_operand(context *t, alone *a, unsigned i)
{
    lnt_operand *o = a->in[i];
    lnt_packed record;
    size_t bytes;
    memset(&record, 0, sizeof record);
    if (!o->constant || !lnt_pack_wanted(&a->node, i, o, &record) || !lnt_packed_bytes(&record, &bytes))
        return LNT_OK;
    lnt_packed *kept = lnt_bump_alloc(&a->memory, sizeof *kept, t->err);
    void *packed = lnt_bump_alloc(&a->memory, bytes, t->err);
    if (!kept || !packed)
        return LNT_E_MEMORY;
    *kept = record;
    lnt_pack(kept, (lnt_dtype)o->dtype, o->data, packed);
    o->data = packed;
    o->packed = kept;
    return LNT_OK;
}

/* Elements of a channel that are contiguous. */
static int64_t channel_run(const lnt_operand *o)
{
    int64_t run = 1;
    for (unsigned d = 2; d < o->rank; d++)
        run *= o->dims[d];
    return run;
}

/* The scale of the quantized values in that row of a channel. */
static float scale_at(const lnt_qvalue *m, int64_t row)
{
    LNT_ASSERT(m && row >= 0);
    return m->equalized ? m->scale * m->divisor[row % m->channels] : m->scale;
}

/* What the session holds of value v; as uint8 where v is the twin of a float value. */
static lnt_status read_value(context *t, alone *a, uint32_t v, lnt_operand *o)
{
    const uint32_t floats = t->fixed ? lnt_static_source(t->fixed, v) : LNT_NONE;
    lnt_tensor x;
    LNT_TRY(lnt_get_value(t->session, t->g->value[floats == LNT_NONE ? v : floats].name, &x, t->err));
    void *data = lnt_bump_alloc(&a->memory, x.bytes + 1, t->err);
    if (!data)
        return LNT_E_MEMORY;
    o->dtype = (uint8_t)x.dtype;
    o->rank = (uint8_t)x.rank;
    memcpy(o->dims, x.dims, x.rank * sizeof *x.dims);
    o->data = data;
    if (floats == LNT_NONE) {
        memcpy(data, x.data, x.bytes);
        return LNT_OK;
    }
    const lnt_qvalue *m = lnt_static_qparams(t->fixed, floats);
    const int64_t n = (int64_t)(x.bytes / sizeof(float)), run = channel_run(o);
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)data)[i] = (uint8_t)lnt_requantize(((const float *)x.data)[i] / scale_at(m, i / run),
                                                       m->zero, lnt_qrange_of(LNT_UINT8));
    o->dtype = LNT_UINT8;
    return LNT_OK;
}

/* Operands of the node: constants of the graph, everything else out of the session. */
static lnt_status find_operands(context *t, const lnt_gnode *n, alone *a)
{
    lnt_operand *next = a->operand;
    lnt_gnode_view(n, &a->node);
    for (unsigned i = 0; i < n->n_in; i++) {
        if (n->in[i] == LNT_NONE)
            continue;
        const lnt_gvalue *v = &t->g->value[n->in[i]];
        a->in[i] = next;
        *next = v->info;
        next->constant = v->constant;
        if (!v->constant)
            LNT_TRY(read_value(t, a, n->in[i], next));
        next++;
    }
    for (unsigned i = 0; i < n->n_out; i++)
        if (n->out[i] != LNT_NONE) {
            *next = (lnt_operand){0};
            a->out[i] = next++;
        }
    return LNT_OK;
}

static lnt_status prepare(context *t, const lnt_gnode *n, alone *a)
{
    *a = (alone){0};
    lnt_bump_init(&a->memory, t->g->memory.allocator);
    LNT_TRY(find_operands(t, n, a));
    lnt_site site = {
        .node = &a->node, .in = a->in, .out = a->out, .n_in = n->n_in, .n_out = n->n_out, .err = t->err};
    LNT_TRY(lnt_site_shape(&site));
    for (unsigned i = 0; i < n->n_in; i++)
        if (a->in[i])
            LNT_TRY(pack_operand(t, a, i));
    for (unsigned i = 0; i < n->n_out; i++) {
        if (!a->out[i])
            continue;
        const int64_t count = lnt_operand_count(a->out[i]);
        a->out_data[i] = lnt_bump_alloc(&a->memory, (size_t)count * sizeof(double) + 1, t->err);
        if (!a->out_data[i])
            return LNT_E_MEMORY;
    }
    return lnt_solo_bind(&a->solo, &a->memory, &a->node, a->in, a->out, a->out_data, t->level, t->err);
}

/* ---- time ---- */

/* Convolutions stand between others: their images are channels-last then. Elements change places, which does
 * not matter for the time. */
static lnt_status bind_for_time(context *t, alone *a)
{
    if (!(a->node.op->flags & LNT_OP_CL) || a->in[0]->rank < 3)
        return LNT_OK;
    a->in[0]->order = a->out[0]->order = LNT_ORDER_CHANNELS_LAST;
    return lnt_solo_bind(&a->solo, &a->memory, &a->node, a->in, a->out, a->out_data, t->level, t->err);
}

/* Microseconds of the fastest runs of both, taken in turns. */
static lnt_status time_both(alone *a, alone *b, double *a_us, double *b_us)
{
    enum { ROUNDS = 200 };
    const double enough = 0.02, end = lnt_now() + enough;
    *a_us = *b_us = 1e30;
    for (int i = 0; i < ROUNDS && (i < 3 || lnt_now() < end); i++) {
        const double t0 = lnt_now();
        LNT_TRY(lnt_solo_run(&a->solo));
        const double t1 = lnt_now();
        LNT_TRY(lnt_solo_run(&b->solo));
        const double t2 = lnt_now();
        *a_us = fmin(*a_us, (t1 - t0) * 1e6);
        *b_us = fmin(*b_us, (t2 - t1) * 1e6);
    }
    return LNT_OK;
}

static double multiplications(alone *a)
{
    const lnt_step step = {.in = a->in, .out = a->out, .n_in = a->node.n_in, .n_out = a->node.n_out};
    return (double)lnt_multiply_adds(&a->node, &step);
}

/* ---- exactness ---- */

/* Adds up how far both forms are from each other. */
static lnt_status compare_outputs(const alone *plain, const alone *quantized, lnt_noise *n)
{
    for (unsigned i = 0; i < plain->node.n_out; i++)
        if (plain->out[i])
            lnt_noise_add(n, plain->out_data[i], quantized->out_data[i], lnt_operand_count(plain->out[i]));
    return LNT_OK;
}

/* Element i of what the site's operator gave, as a real number. */
static float number_at(const context *t, const lnt_qsite *s, const alone *a, const lnt_qvalue *m, int64_t i)
{
    const void *data = a->out_data[0];
    const int64_t run = channel_run(a->out[0]);
    if (a->out[0]->dtype == LNT_UINT8)
        return (float)(((const uint8_t *)data)[i] - m->zero) * scale_at(m, i / run);
    if (a->out[0]->dtype == LNT_FLOAT)
        return ((const float *)data)[i];
    const int64_t channel = i / run % a->out[0]->dims[1];
    const lnt_gvalue *value = t->g->value;
    const int32_t zero = ((const int32_t *)value[s->behind->in[2]].info.data)[channel];
    return (float)(((const int32_t *)data)[i] - (int64_t)zero) *
           ((const float *)value[s->behind->in[1]].info.data)[channel];
}

/* The operator with what was folded into it, against the float model's value. */
static lnt_status compare_site(const context *t, const lnt_qsite *s, const alone *quantized, lnt_noise *n)
{
    const uint32_t y = t->fixed->site[s->last].node->out[0];
    const lnt_qvalue *m = lnt_static_qparams(t->fixed, y);
    lnt_tensor want;
    LNT_TRY(lnt_get_value(t->session, t->g->value[y].name, &want, t->err));
    const int64_t count = lnt_operand_count(quantized->out[0]);
    LNT_REQUIRE(want.bytes == (size_t)count * sizeof(float), t->err, LNT_E_INTERNAL, "%s changed its shape",
                s->node->name);
    for (int64_t i = 0; i < count; i++) {
        const float got = number_at(t, s, quantized, m, i);
        lnt_noise_add(n, (const float *)want.data + i, &got, 1);
    }
    return LNT_OK;
}

/* ---- one layer ---- */

static const lnt_gnode *quantized_form(const lnt_static *st, const lnt_qlayer *l)
{
    return l->fixed ? lnt_static_site(st, l->node)->lowered : &l->quantized;
}

bool lnt_can_measure(const lnt_qlayers *layers, const lnt_qlayer *l)
{
    const lnt_gnode *n = quantized_form(layers->fixed, l);
    const bool counted = !n && l->measured.before; /* a product that has been left in float */
    n = counted ? &l->plain : n;
    return n && l->plain.subgraph == 0 && n->n_in <= IN_MOST && n->n_out <= OUT_MOST;
}

lnt_status lnt_fetch_layer(const lnt_graph *g, lnt_session *s, const lnt_qlayer *l, lnt_error *err)
{
    for (unsigned k = 0; k < l->plain.n_in && l->plain.subgraph == 0; k++)
        if (l->plain.in[k] != LNT_NONE && !g->value[l->plain.in[k]].constant)
            LNT_TRY(lnt_keep_value(s, g->value[l->plain.in[k]].name, err));
    return LNT_OK;
}

/* Products of int8 for one of floats: those of the elements that fill up its panels are made, too. */
static double int8_products(const alone *quantized)
{
    for (unsigned i = 0; i < quantized->node.n_in; i++) {
        const lnt_packed *p = quantized->in[i] ? quantized->in[i]->packed : NULL;
        if (p && lnt_packed_is_int8(p) && p->layout != LNT_LAYOUT_DEPTHWISE_I8 && p->K)
            return (double)lnt_packed_panel_bytes(p) / ((double)p->K * LNT_QPANEL);
    }
    return 1;
}

/* What both forms take on the machine of a cost table. Of a table of embeddings only the rows are read; what a layer of
 * static quantization reads has been stored as int8. */
static void estimate_both(const lnt_costs *c, const alone *a, const alone *quantized, lnt_qlayer *l)
{
    lnt_quantized *m = &l->measured;
    const bool rows = l->plain.op->id == LNT_ID_Gather;
    const double y = (double)lnt_operand_count(a->out[0]);
    const double floats = rows ? y * sizeof(float) : (double)m->before, bytes = rows ? y : (double)m->after;
    m->plain_us = lnt_costs_float_us(c, m->multiplications, floats);
    const double read = rows ? y : (double)lnt_operand_count(a->in[0]);
    m->int8_us =
        lnt_costs_int8_us(c, m->multiplications * int8_products(quantized), bytes, l->fixed ? 0 : read);
    m->borders_us = l->fixed ? (read + y) * c->quantize_ns / 1e3 : 0;
}

static lnt_status compare_forms(context *t, alone *plain, alone *quantized, lnt_qlayer *l)
{
    lnt_noise n = {0};
    LNT_TRY(lnt_solo_run(&plain->solo));
    LNT_TRY(lnt_solo_run(&quantized->solo));
    LNT_TRY(l->fixed ? compare_site(t, lnt_static_site(t->fixed, l->node), quantized, &n)
                     : compare_outputs(plain, quantized, &n));
    l->measured.snr = n.signal > 0 && isfinite(n.signal) ? lnt_noise_snr(&n) : -1;
    if (t->g->quantize->costs) {
        estimate_both(t->g->quantize->costs, plain, quantized, l);
        return LNT_OK;
    }
    LNT_TRY(bind_for_time(t, plain));
    LNT_TRY(bind_for_time(t, quantized));
    return time_both(plain, quantized, &l->measured.plain_us, &l->measured.int8_us);
}

static lnt_status measure(context *t, const lnt_qlayers *layers, alone *plain, alone *quantized,
                          lnt_qlayer *l)
{
    LNT_TRY(prepare(t, &l->plain, plain));
    l->measured.multiplications = multiplications(plain);
    if (l->formless || !quantized_form(layers->fixed, l))
        return LNT_OK;
    LNT_TRY(prepare(t, quantized_form(layers->fixed, l), quantized));
    return compare_forms(t, plain, quantized, l);
}

lnt_status lnt_measure_layer(lnt_graph *g, const lnt_qlayers *layers, lnt_session *s, lnt_qlayer *l,
                             lnt_error *err)
{
    context t = {g, layers->fixed, s, lnt_cpu_best_level(), err};
    alone *both = lnt_alloc_zero(g->memory.allocator, 2, sizeof *both, err);
    if (!both)
        return LNT_E_MEMORY;
    const lnt_status status = measure(&t, layers, &both[0], &both[1], l);
    lnt_bump_free(&both[0].memory);
    lnt_bump_free(&both[1].memory);
    lnt_free(g->memory.allocator, both);
    return status;
}

lnt_status lnt_qlayers_add(lnt_qlayers *layers, lnt_graph *g, lnt_gnode *n, size_t weights)
{
    LNT_TRY(LNT_GROW(g->memory.allocator, layers->layer, layers->capacity, layers->n, g->err));
    layers->layer[layers->n++] = (lnt_qlayer){.node = n,
                                              .plain = *n,
                                              .quantized = *n,
                                              .chosen = true,
                                              .measured = {.node = n->name,
                                                           .op = lnt_op_name(n->op),
                                                           .before = weights,
                                                           .after = weights / sizeof(float),
                                                           .multiplications = -1,
                                                           .snr = -1,
                                                           .plain_us = -1,
                                                           .int8_us = -1}};
    return LNT_OK;
}
