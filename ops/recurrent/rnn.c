/* rnn.c — recurrent layers: extents, attributes and what is bound (rnn.h). */
#include "ops/recurrent/rnn.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

/* Bytes between states that threads write again and again: as far as one may prefetch. */
enum { APART = 2048 };

/* ---- extents ---- */

static int64_t kind_of(const lnt_op *op)
{
    return op->id == LNT_ID_DynamicLSTM ? LNT_ID_LSTM : op->id == LNT_ID_DynamicGRU ? LNT_ID_GRU : op->id;
}

static bool is_dynamic(const lnt_op *op)
{
    return (LNT_HAS_DynamicLSTM && op->id == LNT_ID_DynamicLSTM) ||
           (LNT_HAS_DynamicGRU && op->id == LNT_ID_DynamicGRU);
}

static lnt_status extents_of(const lnt_site *site, lnt_rnn_extents *e)
{
    const lnt_operand *x = site->in[LNT_RNN_X], *w = site->in[LNT_RNN_W], *r = site->in[LNT_RNN_R];
    if (x->rank != 3 || w->rank != 3 || r->rank != 3)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "X, W and R must have rank 3");
    e->batch_first = lnt_attr_i(site->node, "layout", 0) != 0;
    e->steps = x->dims[e->batch_first ? 1 : 0];
    e->batch = x->dims[e->batch_first ? 0 : 1];
    e->input = x->dims[2];
    e->directions = w->dims[0];
    e->gates = lnt_rnn_gates(site->node->op);
    const int64_t hidden = lnt_attr_i(site->node, "hidden_size", 0);
    LNT_REQUIRE(hidden >= 0, site->err, LNT_E_ARGUMENT, "hidden_size is %lld", (long long)hidden);
    e->hidden = lnt_attr_i(site->node, "hidden_size", r->dims[2]);
    return LNT_OK;
}

lnt_status lnt_shape_rnn(lnt_site *site)
{
    lnt_rnn_extents e;
    LNT_TRY(extents_of(site, &e));
    const int64_t y[4] = {e.steps, e.directions, e.batch, e.hidden},
                  y_first[4] = {e.batch, e.steps, e.directions, e.hidden};
    const int64_t last[3] = {e.directions, e.batch, e.hidden},
                  last_first[3] = {e.batch, e.directions, e.hidden};
    lnt_set_dims(site, 0, 4, e.batch_first ? y_first : y);
    lnt_set_dims(site, 1, 3, e.batch_first ? last_first : last);
    lnt_set_dims(site, 2, 3, e.batch_first ? last_first : last);
    return LNT_OK;
}

/* ---- attributes ---- */

static bool find_activation(const char *name, lnt_activation *out, bool *has_alpha, bool *has_beta)
{
#define X(ident, text, takes_alpha, takes_beta, alpha_default, beta_default)                                 \
    if (strcmp(name, text) == 0) {                                                                           \
        *out = (lnt_activation){LNT_ACT_##ident, alpha_default, beta_default};                               \
        *has_alpha = takes_alpha;                                                                            \
        *has_beta = takes_beta;                                                                              \
        return true;                                                                                         \
    }
    LNT_ACTIVATION_LIST(X)
#undef X
    return false;
}

/* The activations of all directions; activation_alpha and _beta are used up by those that take them. */
static lnt_status bind_activations(const lnt_site *site, lnt_rnn *m)
{
    static const char *const usual[][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const unsigned per_direction = m->kind == LNT_ID_LSTM ? 3 : m->kind == LNT_ID_GRU ? 2 : 1;
    const lnt_attr *names = lnt_attr_find(site->node, "activations");
    const lnt_attr *alphas = lnt_attr_of(site->node, "activation_alpha", LNT_ATTR_FLOATS);
    const lnt_attr *betas = lnt_attr_of(site->node, "activation_beta", LNT_ATTR_FLOATS);
    const unsigned wanted = per_direction * (unsigned)m->e.directions;
    unsigned alpha = 0, beta = 0;
    if (names && (names->type != LNT_ATTR_STRINGS || names->count != wanted))
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "activations must hold %u names", wanted);
    for (unsigned i = 0; i < wanted; i++) {
        const unsigned at = i % per_direction;
        lnt_rnn_direction *d = &m->rule.direction[i / per_direction];
        lnt_activation *a = at == 0 ? &d->f : at == 1 ? &d->g : &d->h;
        const char *name = names ? names->strings[i] : usual[per_direction - 1][at];
        bool has_alpha, has_beta;
        if (!find_activation(name, a, &has_alpha, &has_beta))
            return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "activation %s is not implemented", name);
        if (has_alpha && alphas && alpha < alphas->count)
            a->alpha = alphas->f[alpha++];
        if (has_beta && betas && beta < betas->count)
            a->beta = betas->f[beta++];
    }
    return LNT_OK;
}

static lnt_status bind_attributes(lnt_site *site, lnt_rnn *m)
{
    const char *text = lnt_attr_s(site->node, "direction", "forward");
    const bool both = strcmp(text, "bidirectional") == 0, reverse = strcmp(text, "reverse") == 0;
    if (m->e.directions != (both ? 2 : 1))
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "direction %s does not fit weights of %lld directions", text,
                             (long long)m->e.directions);
    m->rule.direction[0].reverse = reverse;
    m->rule.direction[1].reverse = true;
    m->rule.clip = lnt_attr_f(site->node, "clip", 0.0f);
    if (!(m->rule.clip > 0.0f))
        m->rule.clip = INFINITY;
    m->rule.input_forget = lnt_attr_i(site->node, "input_forget", 0) != 0;
    m->rule.linear_before_reset = lnt_attr_i(site->node, "linear_before_reset", 0) != 0;
    return bind_activations(site, m);
}

/* ---- biases and peepholes ---- */

/* Element of the padded, interleaved gates that gate g of unit n goes to. */
static size_t gate_place(const lnt_rnn *m, size_t g, size_t n)
{
    return (n / LNT_PANEL * (size_t)m->e.gates + g) * LNT_PANEL + n % LNT_PANEL;
}

/* Wb + Rb into input[], for all directions; but GRU's Rb goes to recurrent[]. */
static void lay_out_bias(const lnt_rnn *m, const float *b, float *input, float *recurrent)
{
    const size_t hidden = (size_t)m->e.hidden, gates = (size_t)m->e.gates;
    for (size_t d = 0; d < (size_t)m->e.directions; d++, b += 2 * gates * hidden)
        for (size_t g = 0; g < gates; g++)
            for (size_t n = 0; n < hidden; n++) {
                const size_t to = d * m->row + gate_place(m, g, n);
                const float w = b[g * hidden + n], r = b[(gates + g) * hidden + n];
                input[to] = recurrent ? w : w + r;
                if (recurrent)
                    recurrent[to] = r;
            }
}

static void lay_out_peephole(const lnt_rnn *m, const float *p, float *to)
{
    const size_t hidden = (size_t)m->e.hidden;
    for (size_t i = 0; i < 3 * (size_t)m->e.directions; i++)
        memcpy(to + i * m->padded, p + i * hidden, hidden * sizeof *to);
}

size_t lnt_rnn_extra_floats(const lnt_rnn *m)
{
    return (size_t)m->e.directions * (2 * m->row + 3 * m->padded);
}

void lnt_rnn_lay_out_extras(const lnt_rnn *m, const float *b, const float *p, float *to)
{
    const size_t all_gates = (size_t)m->e.directions * m->row;
    memset(to, 0, lnt_rnn_extra_floats(m) * sizeof *to);
    if (b)
        lay_out_bias(m, b, to, m->kind == LNT_ID_GRU ? to + all_gates : NULL);
    if (p)
        lay_out_peephole(m, p, to + 2 * all_gates);
}

/* ---- bind ---- */

/* Is input i, if it is there, of these extents? A negative count ends them. */
static lnt_status check_input(const lnt_site *site, unsigned i, const char *name, int64_t a, int64_t b,
                              int64_t c)
{
    const lnt_operand *o = lnt_input(site, i);
    const int64_t want[3] = {a, b, c};
    bool fits = true;
    for (unsigned d = 0; o && d < 3; d++)
        fits &= want[d] < 0 ? o->rank == d || want[d - 1] < 0 : d < o->rank && o->dims[d] == want[d];
    return fits ? LNT_OK : LNT_SITE_FAIL(site, LNT_E_SHAPE, "the extents of %s do not fit the others", name);
}

static lnt_status check_inputs(const lnt_site *site, const lnt_rnn_extents *e)
{
    const int64_t d = e->directions, h = e->hidden, first = e->batch_first ? e->batch : d;
    const int64_t second = e->batch_first ? d : e->batch;
    if (h < 1 || d < 1 || d > 2)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "%lld directions of %lld units are not possible",
                             (long long)d, (long long)h);
    LNT_TRY(check_input(site, LNT_RNN_W, "W", d, e->gates * h, e->input));
    LNT_TRY(check_input(site, LNT_RNN_R, "R", d, e->gates * h, h));
    LNT_TRY(check_input(site, LNT_RNN_B, "B", d, 2 * e->gates * h, -1));
    LNT_TRY(check_input(site, LNT_RNN_LENGTHS, "sequence_lens", e->batch, -1, -1));
    LNT_TRY(check_input(site, LNT_RNN_H, "initial_h", first, second, h));
    LNT_TRY(check_input(site, LNT_RNN_C, "initial_c", first, second, h));
    LNT_TRY(check_input(site, LNT_RNN_P, "P", d, 3 * h, -1));
    const lnt_operand *lengths = lnt_input(site, LNT_RNN_LENGTHS);
    if (lengths && lengths->dtype != LNT_INT32)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "sequence_lens must be int32");
    return LNT_OK;
}

/* Is an R of 16 bits better made floats once in each run? Steps of several rows read floats; those of one read these
 * sooner out of a cache, half the bytes sooner out of memory. */
static bool reads_as_floats(const lnt_rnn *m)
{
    enum { STEPS = 4 };
    const double floats = (double)m->e.directions * (double)m->e.hidden * (double)m->row;
    return m->e.batch > 1 || (m->e.steps >= STEPS && floats <= LNT_FAR_FLOATS);
}

static lnt_status bind_weights(lnt_site *site, unsigned input, const lnt_rnn *m, lnt_rnn_weights *to,
                               size_t *scratch)
{
    const lnt_operand *w = site->in[input];
    size_t bytes;
    to->pack = !w->packed;
    to->form = lnt_b_form_of(w);
    to->widen = lnt_b_is_half(to->form) && input == LNT_RNN_R && reads_as_floats(m);
    to->record = lnt_packed_panels(LNT_SOURCE_GATES, (uint32_t)m->e.directions, (uint32_t)w->dims[2],
                                   (uint32_t)m->e.hidden);
    to->record.layout = lnt_rnn_is_int8(m) ? LNT_LAYOUT_PANEL_I8 : LNT_LAYOUT_GATES_F32;
    to->record.gates = (uint32_t)m->e.gates;
    if (!lnt_packed_bytes(&to->record, &bytes) || bytes > PTRDIFF_MAX ||
        !lnt_reserve(scratch, to->pack || to->widen ? (int64_t)bytes : 0, 1, &to->at))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the weights are too large");
    return LNT_OK;
}

/* Has the input, if it is there, contents at bind? */
static bool is_known(const lnt_operand *o)
{
    return !o || (o->constant && o->data && o->dtype == LNT_FLOAT);
}

static lnt_status bind_extras(lnt_site *site, lnt_rnn *m)
{
    const lnt_operand *b = lnt_input(site, LNT_RNN_B), *p = lnt_input(site, LNT_RNN_P);
    if (!is_known(b) || !is_known(p))
        return LNT_OK;
    float *to = lnt_bump_alloc(site->memory, lnt_rnn_extra_floats(m) * sizeof *to, site->err);
    if (!to)
        return LNT_E_MEMORY;
    lnt_rnn_lay_out_extras(m, b ? b->data : NULL, p ? p->data : NULL, to);
    m->extras.known = to;
    return LNT_OK;
}

/* Gates and states of all rows. False: too many. */
static bool bind_rows(lnt_rnn *m, size_t *scratch)
{
    const lnt_rnn_extents *e = &m->e;
    const int64_t tile = m->product.kernels->tile_rows, entries = lnt_dim_mul(e->directions, e->batch);
    lnt_rnn_states *s = &m->states;
    s->floats = 2 * m->padded + (m->kind == LNT_ID_GRU ? m->row : 0);
    s->blocks = (e->batch + tile - 1) / tile;
    s->block_rows = s->blocks ? (e->batch + s->blocks - 1) / s->blocks : 1;
    s->block_floats = (size_t)s->block_rows * s->floats + APART / sizeof(float);
    return lnt_reserve(scratch, lnt_dim_mul(entries, e->steps), m->row * sizeof(float), &m->gates_at) &&
           lnt_reserve(scratch, e->directions * s->blocks, s->block_floats * sizeof(float), &s->at);
}

static lnt_status bind_layer(lnt_site *site, const lnt_rnn_extents *e)
{
    lnt_rnn *m = lnt_bind_params(site, sizeof *m);
    size_t scratch = 0;
    if (!m)
        return LNT_E_MEMORY;
    m->e = *e;
    m->kind = kind_of(site->node->op);
    m->dynamic = is_dynamic(site->node->op);
    m->padded = lnt_round_up((size_t)e->hidden, LNT_PANEL);
    m->row = (size_t)e->gates * m->padded;
    LNT_TRY(bind_attributes(site, m));
    m->cells = site->kernels->rnn;
    LNT_TRY(bind_weights(site, LNT_RNN_W, m, &m->w, &scratch));
    LNT_TRY(bind_weights(site, LNT_RNN_R, m, &m->r, &scratch));
    if (lnt_rnn_is_int8(m))
        LNT_TRY(lnt_rnn_check_scales(site, m));
    LNT_TRY(bind_extras(site, m));
    const int64_t extras = m->extras.known ? 0 : (int64_t)lnt_rnn_extra_floats(m);
    if (!lnt_rnn_bind_floats(site, m, &scratch) ||
        (lnt_rnn_is_int8(m) && !lnt_rnn_bind_int8(site, m, &scratch)) ||
        !lnt_reserve(&scratch, extras, sizeof(float), &m->extras.at) || !bind_rows(m, &scratch))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "%lld rows of gates are too many",
                             (long long)(e->steps * e->batch));
    lnt_bind_scratch(site, scratch);
    site->step->run = lnt_run_rnn;
    return LNT_OK;
}

lnt_status lnt_bind_rnn(lnt_site *site)
{
    lnt_rnn_extents e;
    LNT_TRY(extents_of(site, &e));
    LNT_TRY(check_inputs(site, &e));
    if (is_dynamic(site->node->op)) {
        for (unsigned i = LNT_RNN_X; i <= LNT_RNN_R; i++)
            if (site->in[i]->dtype != (i == LNT_RNN_X ? LNT_FLOAT : LNT_INT8))
                return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[i]->dtype);
        return bind_layer(site, &e);
    }
    if (lnt_site_real_type(site) != LNT_FLOAT)
        return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[LNT_RNN_X]->dtype);
    LNT_TRY(bind_layer(site, &e));
    return lnt_bind_widened(site, ~(1u << LNT_RNN_LENGTHS), ~0u);
}
