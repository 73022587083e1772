/* precision.c — `--precision`: constants of floats that the file holds in 16 bits (convert/quantize/precision.h).
 *
 * Comes last, when weights are packed: what is tried and measured is what the file will hold. Values between operators
 * stay float; kernels widen weights on the way, and a level that computes in half precision takes them as they are. */
#include "convert/quantize/precision.h"

#include "base/half.h"
#include "base/lnt_assert.h"
#include "convert/graph/edit.h"
#include "convert/quantize/half_range.h"
#include "formats/packed.h"

#include <math.h>
#include <string.h>

enum { LEAST_BYTES = 4096 /* of a constant that is not packed; of what `auto` saves at one */ };

typedef struct rounded { /* a constant in 16 bits, for several readers */
    uint32_t from, to;   /* to: LNT_NONE where it cannot be */
    struct rounded *next;
} rounded;

typedef struct finder {
    lnt_edit e;
    lnt_qlayers layers;
    rounded *made;
    lnt_dtype type;
    bool saves;      /* only what is worth it */
    bool exact_only; /* only what are elements of the type as they are */
    bool exact;      /* nothing is rounded */
} finder;

static float as_stored(lnt_dtype type, float x)
{
    return type == LNT_FLOAT16 ? lnt_f16_to_float(lnt_float_to_f16(x))
                               : lnt_bf16_to_float(lnt_float_to_bf16(x));
}

/* Rounds n floats. False: one becomes infinite, or none may change and one does. */
static bool round_floats(finder *f, const float *from, size_t n, float *to)
{
    bool exact = true;
    for (size_t i = 0; i < n; i++) {
        to[i] = as_stored(f->type, from[i]);
        if (isinf(to[i]) && !isinf(from[i]))
            return false;
        exact &= to[i] == from[i] || isnan(from[i]);
    }
    f->exact &= exact || f->exact_only;
    return exact || !f->exact_only;
}

/* ---- a constant in 16 bits ---- */

/* The record of its elements; false: they stay in ONNX order. The rows of a table are gathered out of panels. */
static bool record_of(const lnt_gnode *n, const lnt_gvalue *v, lnt_dtype type, lnt_packed *record)
{
    const lnt_operand *o = &v->info;
    if (o->packed) {
        *record = lnt_packed_as(o->packed, type);
        return true;
    }
    if (!lnt_is(n, Gather) || n->in[0] == LNT_NONE || lnt_gnode_int(n, "axis", 0) != 0 || o->rank != 2 ||
        o->dims[0] > INT32_MAX || o->dims[1] > INT32_MAX)
        return false;
    const lnt_packed panels = lnt_packed_panels(LNT_SOURCE_KN, 1, (uint32_t)o->dims[0], (uint32_t)o->dims[1]);
    *record = lnt_packed_as(&panels, type);
    return true;
}

/* Elements of a packed constant, as they lie: those of 16 bits lie alike. */
static void narrow_packed(lnt_dtype type, const float *from, size_t n, uint16_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = type == LNT_FLOAT16 ? lnt_float_to_f16(from[i]) : lnt_float_to_bf16(from[i]);
}

static lnt_status pack_halves(finder *f, const lnt_gvalue *from, const lnt_packed *record, lnt_gvalue *to)
{
    lnt_graph *g = f->e.g;
    size_t bytes;
    LNT_ASSERT(from->info.dtype == LNT_FLOAT && lnt_packed_element(record) == f->type);
    LNT_REQUIRE(lnt_packed_bytes(record, &bytes), g->err, LNT_E_INTERNAL, "'%s' cannot be packed",
                from->name);
    lnt_packed *kept = lnt_bump_alloc(&g->memory, sizeof *kept, g->err);
    void *data = lnt_bump_alloc(&g->memory, bytes, g->err);
    if (!kept || !data)
        return LNT_E_MEMORY;
    *kept = *record;
    if (from->info.packed)
        narrow_packed(f->type, from->info.data, bytes / sizeof(uint16_t), data);
    else
        lnt_pack(record, LNT_FLOAT, from->info.data, data);
    to->info.data = data;
    to->info.packed = kept;
    to->bytes = bytes;
    return LNT_OK;
}

/* v's floats rounded, as a constant of its own. */
static lnt_status make_halves(finder *f, const lnt_gnode *n, rounded *made)
{
    lnt_graph *g = f->e.g;
    const size_t count = g->value[made->from].bytes / sizeof(float);
    float *floats = lnt_bump_alloc(&g->memory, count * sizeof *floats, g->err);
    lnt_packed record;
    if (!floats)
        return LNT_E_MEMORY;
    if (!round_floats(f, g->value[made->from].info.data, count, floats))
        return LNT_OK;
    made->to = lnt_graph_add_value(g, g->value[made->from].name);
    if (made->to == LNT_NONE)
        return LNT_E_MEMORY;
    const lnt_gvalue *from = &g->value[made->from];
    lnt_gvalue *to = &g->value[made->to];
    to->info = from->info;
    to->constant = true;
    if (record_of(n, from, f->type, &record))
        return pack_halves(f, from, &record, to);
    to->info.data = floats;
    to->bytes = from->bytes;
    to->stored_as = f->type;
    return LNT_OK;
}

static lnt_status halves_of(finder *f, const lnt_gnode *n, uint32_t from, uint32_t *to)
{
    rounded *m = f->made;
    while (m && m->from != from)
        m = m->next;
    if (!m) {
        m = lnt_bump_alloc(&f->e.g->memory, sizeof *m, f->e.g->err);
        if (!m)
            return LNT_E_MEMORY;
        *m = (rounded){from, LNT_NONE, f->made};
        f->made = m;
        LNT_TRY(make_halves(f, n, m));
    }
    *to = m->to;
    return LNT_OK;
}

/* ---- layers ---- */

/* May the constant be another one? Floats that are weights, or many. */
static bool may_round(const finder *f, uint32_t value)
{
    const lnt_graph *g = f->e.g;
    if (value == LNT_NONE || !g->value[value].constant || !g->value[value].info.data ||
        lnt_edit_is_output(&f->e, value))
        return false;
    const lnt_gvalue *v = &g->value[value];
    const bool floats = v->info.dtype == LNT_FLOAT && v->info.order == LNT_ORDER_PLAIN && !v->narrow &&
                        (!v->info.packed || lnt_packed_element(v->info.packed) == LNT_FLOAT);
    return floats && !lnt_gvalue_is_kept(v) && !v->feeds_shape &&
           v->bytes >= (v->info.packed && !f->saves ? 1 : LEAST_BYTES);
}

/* A layer for each node with such constants. */
static lnt_status find(finder *f, lnt_gnode *n)
{
    lnt_graph *g = f->e.g;
    lnt_qlayer *l = NULL;
    for (unsigned i = 0; i < n->n_in && !n->evaluate_early; i++) {
        uint32_t to;
        if (!may_round(f, n->in[i]))
            continue;
        if (!l) {
            LNT_TRY(lnt_qlayers_add(&f->layers, g, n, 0));
            l = &f->layers.layer[f->layers.n - 1];
            l->quantized.in = lnt_bump_alloc(&g->memory, n->n_in * sizeof *n->in, g->err);
            if (!l->quantized.in)
                return LNT_E_MEMORY;
            memcpy(l->quantized.in, n->in, n->n_in * sizeof *n->in);
        }
        LNT_TRY(halves_of(f, n, n->in[i], &to));
        LNT_ASSERT(to == LNT_NONE || g->value[to].constant);
        l->quantized.in[i] = to == LNT_NONE ? n->in[i] : to;
        l->measured.before += g->value[n->in[i]].bytes;
        l->measured.after += g->value[n->in[i]].bytes / (to == LNT_NONE ? 1 : 2);
    }
    if (l && l->measured.after == l->measured.before) {
        l->chosen = false;
        l->formless = true;
        l->why = f->exact_only ? "its weights are no elements of the type"
                               : "its weights are too large for the type";
    }
    return LNT_OK;
}

static lnt_status tell(finder *f)
{
    lnt_report *r = f->e.report;
    const char *type = lnt_dtype_text(f->type);
    r->precision = f->type;
    r->quantized = lnt_bump_alloc(&r->memory, (f->layers.n + 1) * sizeof *r->quantized, f->e.g->err);
    if (!r->quantized)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < f->layers.n; i++) {
        const lnt_qlayer *l = &f->layers.layer[i];
        lnt_quantized *q = &r->quantized[r->n_quantized++];
        *q = l->measured;
        q->half = l->chosen;
        q->why = l->chosen ? NULL : l->why;
        q->node = lnt_report_text(r, "%s", q->node);
        if (!q->node)
            return LNT_E_MEMORY;
        LNT_TRY(lnt_edit_count(&f->e, lnt_report_text(r, "%s with weights of %s", lnt_op_name(l->plain.op),
                                                      l->chosen ? type : "float")));
    }
    return LNT_OK;
}

static lnt_status put_exact(finder *f)
{
    f->e.g->small = true;
    f->e.report->trial_inputs = "nothing: all weights are elements of the type";
    return lnt_trial_put_forms(&f->layers);
}

static lnt_status find_and_try(finder *f, const lnt_quantize_options *options)
{
    lnt_graph *g = f->e.g;
    f->exact = true;
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            LNT_TRY(find(f, g->sub[s].node[i]));
    LNT_TRY(lnt_qlayers_keep_named(&f->layers, options, g->err));
    return f->exact ? put_exact(f) : lnt_quantize_trial(g, options, &f->layers, f->e.report);
}

/* Are there layers that the trial has left in float as their values are too large for halves? */
static bool any_too_large(const finder *f)
{
    bool any = false;
    for (size_t i = 0; i < f->layers.n; i++)
        any |= fmaxf(f->layers.layer[i].largest[0], f->layers.layer[i].largest[1]) > LNT_HALF_AT_MOST;
    return any;
}

/* With values that are smaller, if they can be, as it was before the trial. */
static lnt_status scale_down(finder *f, bool *scaled)
{
    for (size_t i = 0; i < f->layers.n; i++)
        *f->layers.layer[i].node = f->layers.layer[i].plain;
    LNT_TRY(lnt_scale_for_halves(&f->e, &f->layers, scaled));
    if (!*scaled)
        return lnt_trial_put_forms(&f->layers);
    f->layers.n = 0;
    f->made = NULL;
    return LNT_OK;
}

static lnt_status find_all(finder *f, const lnt_quantize_options *options)
{
    bool scaled = false;
    LNT_TRY(find_and_try(f, options));
    if (f->type == LNT_FLOAT16 && any_too_large(f))
        LNT_TRY(scale_down(f, &scaled));
    if (scaled)
        LNT_TRY(find_and_try(f, options));
    return tell(f);
}

/* 0: all stay float. */
static lnt_dtype type_of(const lnt_graph *g)
{
    switch (g->precision) {
    case LNT_PRECISION_MODEL: return g->quantize && g->quantize->mode != LNT_INT8_OFF ? 0 : g->model_halves;
    case LNT_PRECISION_FLOAT32: return 0;
    case LNT_PRECISION_BFLOAT16: return LNT_BFLOAT16;
    default: return LNT_FLOAT16;
    }
}

lnt_status lnt_pass_precision(lnt_graph *g, lnt_report *report)
{
    finder f = {.type = type_of(g),
                .saves = g->precision == LNT_PRECISION_AUTO,
                .exact_only = g->precision == LNT_PRECISION_MODEL};
    lnt_quantize_options options = {.min_snr = -1};
    if (!f.type)
        return LNT_OK;
    LNT_TRY(lnt_edit_begin(&f.e, g, report, "precision"));
    if (g->quantize)
        options = *g->quantize;
    if (options.min_snr < 0) {
        options.min_snr = LNT_PRECISION_SNR;
        options.may_be_unmeasured = true;
    }
    const lnt_status status = find_all(&f, &options);
    lnt_free(g->memory.allocator, f.layers.layer);
    return status;
}
