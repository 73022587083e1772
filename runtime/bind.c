/* bind.c — shapes become known, operators become steps.
 *
 * Nodes are bound in order. A node that only feeds shapes is evaluated on the spot. An If whose condition is
 * known has its branch bound in its place. A node whose extents depend on data not there yet stops the frame:
 * run carries out the steps so far and calls again, now with the data at hand. Where the user gave bounds,
 * binding first goes on as if the data were at their bounds, so that the arena is laid out once and for all. */
#include "runtime/internal.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <stdio.h>
#include <string.h>

/* ---- memory ---- */

lnt_status lnt_frame_make(lnt_session *s, lnt_frame *f, uint32_t sub, lnt_error *err)
{
    const lnt_model *m = s->model;
    f->sub = sub;
    const size_t steps = (size_t)m->n_nodes + m->n_out; /* every node once, every output copied */
    f->stack = lnt_bump_alloc(&s->memory.tables, m->file.n_subgraphs * sizeof *f->stack, err);
    f->stop.stack = lnt_bump_alloc(&s->memory.tables, m->file.n_subgraphs * sizeof *f->stack, err);
    f->list = lnt_bump_alloc(&s->memory.tables, steps * sizeof *f->list, err);
    f->wave = lnt_bump_alloc(&s->memory.tables, steps * sizeof *f->wave, err);
    f->layout.order = lnt_bump_alloc(&s->memory.tables, s->n_storages * sizeof *f->layout.order, err);
    f->layout.best = lnt_bump_alloc(&s->memory.tables, s->n_storages * sizeof *f->layout.best, err);
    f->layout.alive = lnt_bump_alloc(&s->memory.tables, (steps + 1) * sizeof *f->layout.alive, err);
    if (!f->stack || !f->stop.stack || !f->list || !f->wave || !f->layout.order || !f->layout.best ||
        !f->layout.alive)
        return LNT_E_MEMORY;
    return lnt_blocks_make(&f->layout.blocks, s->n_storages, &s->memory.tables, err);
}

lnt_status lnt_binding_make(lnt_session *s, lnt_error *err)
{
    const lnt_model *m = s->model;
    const lnt_file *f = &m->file;
    lnt_binding *b = &s->binding;
    lnt_bump *tables = &s->memory.tables;
    if (!(b->step = lnt_bump_alloc(tables, m->n_nodes * sizeof *b->step, err)) ||
        !(b->born = lnt_bump_alloc(tables, m->n_values * sizeof *b->born, err)) ||
        !(b->home = lnt_bump_alloc(tables, m->n_values * sizeof *b->home, err)) ||
        !(b->lent = lnt_bump_alloc(tables, m->n_values * sizeof *b->lent, err)) ||
        !(b->half = lnt_bump_alloc(tables, m->n_values * sizeof *b->half, err)) ||
        !(b->bound = lnt_bump_alloc(tables, f->n_symbols * sizeof *b->bound, err)))
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < f->n_symbols; i++)
        b->bound[i] = f->symbols[i].bound;
    return LNT_OK;
}

void lnt_binding_trim(lnt_session *s)
{
    lnt_bump_free(&s->binding.params);
    lnt_bump_free(&s->binding.known);
    s->binding.exists = false;
}

/* ---- values ---- */

uint32_t lnt_storage_root(lnt_session *s, uint32_t storage)
{
    LNT_ASSERT(storage < s->n_storages);
    while (s->storage[storage].parent != storage)
        storage = s->storage[storage].parent;
    return storage;
}

lnt_status lnt_node_fail(const lnt_node *n, lnt_status status, lnt_error *err)
{
    if (err && err->code == LNT_OK)
        lnt_fail(err, status, "%s", lnt_status_text(status));
    lnt_error_prefix(err, "%s (%s): ", n->name, lnt_op_name(n->op));
    return status;
}

void lnt_place_value(lnt_session *s, uint32_t value, lnt_place place, void *data, bool known)
{
    LNT_ASSERT(value < s->model->n_values);
    lnt_operand *v = &s->value[value];
    v->storage = value;
    v->offset = 0;
    v->pitch = v->plane_pitch = 0;
    v->data = known ? data : NULL;
    s->slot[value] = data;
    s->storage[value] = (lnt_storage){.parent = value, .place = (uint8_t)place};
}

/* ---- what is known ---- */

/* True once the contents of an operand are in memory. */
static bool is_computed(lnt_session *s, const lnt_frame *f, uint32_t value)
{
    const lnt_storage *storage = &s->storage[lnt_storage_root(s, s->value[value].storage)];
    switch ((lnt_place)storage->place) {
    case LNT_PLACE_NONE: return false;
    case LNT_PLACE_CONSTANT:
    case LNT_PLACE_KNOWN: return true;
    case LNT_PLACE_INPUT: return s->execution.running;
    /* What a loop feeds its body changes every turn: only what is bound anew each turn may look at it. */
    case LNT_PLACE_OWNED: return s->binding.home[value] != f || f->sub == 0 || f->has_stop;
    case LNT_PLACE_ARENA:
    case LNT_PLACE_OUTPUT:
        return s->execution.running && (s->binding.home[value] != f || s->binding.born[value] < f->next);
    }
    return false;
}

/* Gives a value's contents to the shape rules; false if they are not there yet. */
static bool reveal(lnt_session *s, const lnt_frame *f, uint32_t value)
{
    lnt_operand *v = &s->value[value];
    if (v->data)
        return true;
    if (!is_computed(s, f, value))
        return false;
    const char *slot = s->slot[lnt_storage_root(s, v->storage)];
    v->data = slot ? slot + v->offset : NULL;
    s->binding.lent[value] = true;
    return v->data != NULL;
}

static bool reveal_inputs(lnt_session *s, const lnt_frame *f, const lnt_node *n)
{
    bool all = true;
    if (n->op->flags & LNT_OP_EXTENTS)
        return true;
    for (unsigned i = 0; i < n->n_in; i++)
        if (n->in[i] != LNT_NONE && (n->evaluate_early || (i < 32 && lnt_node_value_inputs(n) >> i & 1)))
            all &= reveal(s, f, n->in[i]);
    return all;
}

static lnt_status check_bound(lnt_session *s, const lnt_rec_symbol *r, int64_t bound, int64_t value,
                              lnt_error *err)
{
    LNT_REQUIRE(bound < 0 || value <= bound, err, LNT_E_LIMIT, "%s is %lld, over its bound of %lld",
                s->model->file.strings + r->name, (long long)value, (long long)bound);
    return LNT_OK;
}

/* Checks revealed data-dependent values against their bounds. */
static lnt_status check_value_bounds(lnt_session *s, const lnt_site *site, lnt_error *err)
{
    for (unsigned i = 0; s->execution.running && i < site->n_in; i++) {
        const uint32_t value = site->node->in[i];
        const uint32_t symbol = value == LNT_NONE ? LNT_NONE : s->model->symbol_of[value];
        const lnt_operand *v = site->in[i];
        if (symbol == LNT_NONE || s->binding.bound[symbol] < 0 || !v->data)
            continue;
        const int64_t count = lnt_operand_count(v);
        for (int64_t e = 0; e < count; e++) {
            const int64_t x = v->dtype == LNT_INT64   ? ((const int64_t *)v->data)[e]
                              : v->dtype == LNT_INT32 ? ((const int32_t *)v->data)[e]
                                                      : 0;
            LNT_TRY(check_bound(s, &s->model->file.symbols[symbol], s->binding.bound[symbol], x, err));
        }
    }
    return LNT_OK;
}

/* ---- bounds in place of data ---- */

/* Fills an integer value with its symbol's bound, as if it had been computed; *any becomes true if it has one. */
static lnt_status pretend_value(lnt_session *s, uint32_t value, bool *any, lnt_error *err)
{
    lnt_operand *v = &s->value[value];
    const uint32_t symbol = s->model->symbol_of[value];
    const int64_t count = lnt_operand_count(v);
    size_t bytes;
    if (symbol == LNT_NONE || s->binding.bound[symbol] < 0 || v->data || !lnt_operand_bytes(v, &bytes) ||
        (v->dtype != LNT_INT64 && v->dtype != LNT_INT32))
        return LNT_OK;
    void *data = lnt_bump_alloc(&s->binding.known, bytes, err);
    if (!data)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        if (v->dtype == LNT_INT64)
            ((int64_t *)data)[i] = s->binding.bound[symbol];
        else
            ((int32_t *)data)[i] = (int32_t)lnt_least(s->binding.bound[symbol], INT32_MAX);
    }
    v->data = data;
    s->binding.lent[value] = *any = true;
    return LNT_OK;
}

static const lnt_rec_symbol *extent_symbol(const lnt_session *s, uint32_t value, unsigned axis,
                                           uint32_t *number)
{
    const lnt_file *f = &s->model->file;
    for (uint32_t i = 0; i < f->n_symbols; i++) {
        const lnt_rec_symbol *symbol = &f->symbols[i];
        if (symbol->kind == LNT_SYMBOL_DATA_EXTENT && symbol->value == value && symbol->axis == axis) {
            *number = i;
            return symbol;
        }
    }
    return NULL;
}

/* Checks data-dependent extents, known now, against their bounds. */
static lnt_status check_extent_bounds(lnt_session *s, const lnt_site *site, lnt_error *err)
{
    for (unsigned o = 0; s->execution.running && lnt_node_value_inputs(site->node) && o < site->n_out; o++)
        for (unsigned d = 0; site->out[o] && d < site->out[o]->rank; d++) {
            uint32_t symbol;
            const lnt_rec_symbol *r = extent_symbol(s, site->node->out[o], d, &symbol);
            if (r)
                LNT_TRY(check_bound(s, r, s->binding.bound[symbol], site->out[o]->dims[d], err));
        }
    return LNT_OK;
}

/* Extents that a shape rule left open take their bounds; false if one has none. */
static bool pretend_extents(lnt_session *s, const lnt_site *site)
{
    for (unsigned o = 0; o < site->n_out; o++) {
        lnt_operand *v = site->out[o];
        if (!v)
            continue;
        if (v->rank == LNT_RANK_UNKNOWN)
            return false;
        for (unsigned d = 0; d < v->rank; d++) {
            uint32_t symbol;
            if (v->dims[d] >= 0)
                continue;
            if (!extent_symbol(s, site->node->out[o], d, &symbol) || s->binding.bound[symbol] < 0)
                return false;
            v->dims[d] = s->binding.bound[symbol];
        }
    }
    return true;
}

/* Before a run: lets binding pass a node that waits for data to know its extents, or to be evaluated, if
 * bounds stand in for it. */
static lnt_status pretend(lnt_session *s, const lnt_site *site, bool extents_wait, bool *pretended,
                          lnt_error *err)
{
    for (unsigned i = 0; i < site->n_in; i++)
        if (site->node->in[i] != LNT_NONE)
            LNT_TRY(pretend_value(s, site->node->in[i], pretended, err));
    if (extents_wait && !*pretended)
        *pretended = pretend_extents(s, site);
    return LNT_OK;
}

/* What a bound would have to be given for: a value or extent of the node that waits, else a number further up
 * that its inputs were computed from, else (an If) the node itself. */
static const char *name_of_unknown(const lnt_session *s, const lnt_site *site)
{
    const lnt_file *f = &s->model->file;
    for (unsigned i = 0; i < site->n_in; i++)
        if (site->node->in[i] != LNT_NONE && s->model->symbol_of[site->node->in[i]] != LNT_NONE)
            return f->strings + f->symbols[s->model->symbol_of[site->node->in[i]]].name;
    for (unsigned o = 0; o < site->n_out; o++)
        for (unsigned d = 0; d < LNT_MAX_RANK; d++) {
            uint32_t symbol;
            if (site->node->out[o] != LNT_NONE && extent_symbol(s, site->node->out[o], d, &symbol))
                return f->strings + f->symbols[symbol].name;
        }
    for (uint32_t i = 0; i < f->n_symbols && site->node->op->id != LNT_ID_If; i++)
        if (f->symbols[i].kind == LNT_SYMBOL_DATA_VALUE && s->binding.bound[i] < 0)
            return f->strings + f->symbols[i].name;
    return site->node->name;
}

/* ---- one node ---- */

/* Field by field: what belongs to the bind function is large, and set for that. */
static void set_site(lnt_site *site, lnt_session *s, const lnt_node *n, lnt_error *err)
{
    lnt_operand **operand = s->operand + (n->in - s->model->file.operands);
    site->node = n;
    site->in = operand;
    site->out = operand + n->n_in;
    site->n_in = n->n_in;
    site->n_out = n->n_out;
    site->err = err;
    site->allocator = &s->memory.allocator;
    site->memory = &s->binding.params;
    site->kept = NULL;
    site->watch = &s->execution.kernel;
    site->text = LNT_HAS_TEXT && s->text ? s->text->table : NULL;
}

static bool extents_known(const lnt_site *site)
{
    for (unsigned o = 0; o < site->n_out; o++) {
        const lnt_operand *v = site->out[o];
        if (v && v->rank == LNT_RANK_UNKNOWN)
            return false;
        for (unsigned d = 0; v && d < v->rank; d++)
            if (v->dims[d] < 0)
                return false;
    }
    return true;
}

/* Outputs whose extents are known now, held against the file, become values of a place. */
static lnt_status define_outputs(lnt_session *s, lnt_frame *f, const lnt_site *site, lnt_place place)
{
    for (unsigned o = 0; o < site->n_out; o++) {
        const uint32_t value = site->node->out[o];
        size_t bytes;
        if (value == LNT_NONE)
            continue;
        LNT_TRY(lnt_check_value(s, value, site->out[o], &bytes, site->err));
        lnt_place_value(s, value, place, NULL, false);
        s->binding.born[value] = f->n_steps;
        s->binding.home[value] = f;
        s->storage[value].bytes = bytes;
    }
    return LNT_OK;
}

/* One operator by itself, which the session's deadline and, in a run, a cancellation end. */
static lnt_status run_solo(lnt_session *s, const lnt_site *site, void *const *data)
{
    lnt_solo solo;
    LNT_TRY(
        lnt_solo_bind(&solo, &s->binding.params, site->node, site->in, site->out, data, s->level, site->err));
    solo.kernel.stop = s->execution.kernel.stop;
    solo.kernel.parallel = s->execution.kernel.parallel;
    solo.kernel.poll = s->execution.kernel.poll;
    solo.kernel.runtime = s;
    solo.kernel.seed = s->execution.seed;
    LNT_TRY(lnt_poll(&solo.kernel));
    return lnt_solo_run(&solo);
}

/* Computes a node of known inputs now; its outputs live with the binding. */
static lnt_status evaluate_node(lnt_session *s, lnt_frame *f, lnt_site *site)
{
    const lnt_node *n = site->node;
    void **data = lnt_bump_alloc(&s->binding.known, n->n_out * sizeof *data, site->err);
    if (!data)
        return LNT_E_MEMORY;
    LNT_TRY(define_outputs(s, f, site, LNT_PLACE_KNOWN));
    for (unsigned o = 0; o < n->n_out; o++)
        if (site->out[o] &&
            !(data[o] = lnt_bump_alloc(&s->binding.known, s->storage[n->out[o]].bytes, site->err)))
            return LNT_E_MEMORY;
    LNT_TRY(run_solo(s, site, data));
    for (unsigned o = 0; o < n->n_out; o++)
        if (site->out[o])
            lnt_place_value(s, n->out[o], LNT_PLACE_KNOWN, data[o], true);
    s->binding.n_evaluated++;
    return LNT_OK;
}

/* Views declared by the bind function take their input's storage. Returns true if no output needs a step. */
static bool take_views(lnt_session *s, const lnt_site *site)
{
    bool all = true;
    for (unsigned o = 0; o < site->n_out; o++) {
        lnt_operand *v = site->out[o];
        if (!v)
            continue;
        if (o >= LNT_MAX_VIEWS || site->view_of[o] < 0) {
            all = false;
            continue;
        }
        const lnt_operand *in = site->in[site->view_of[o]];
        v->storage = in->storage;
        v->offset = in->offset + site->view_offset[o];
        v->data = in->data ? (const char *)in->data + site->view_offset[o] : NULL;
        s->binding.born[site->node->out[o]] = s->binding.born[site->node->in[site->view_of[o]]];
        s->binding.home[site->node->out[o]] = s->binding.home[site->node->in[site->view_of[o]]];
    }
    return all;
}

/* The step just bound that can compute input 0 of the node line by line, if that value has no other reader: no other
 * step, no user, no part of the model that is bound again from data. Or NULL. */
static lnt_step *producer_of(lnt_session *s, const lnt_frame *f, const lnt_node *n)
{
    const uint32_t value = n->n_in ? n->in[0] : LNT_NONE;
    if (!f->n_steps || value == LNT_NONE || f->has_stop || s->memory.separate || s->request.fetched[value] ||
        s->model->readers[value] != 1)
        return NULL;
    lnt_step *last = f->list[f->n_steps - 1];
    return last->produce_lines && last->out[0] == &s->value[value] ? last : NULL;
}

/* Puts the step in the place of its producer, whose operands it keeps alive. */
static lnt_status fuse_producer(lnt_session *s, lnt_frame *f, lnt_step *step, lnt_step *producer,
                                lnt_error *err)
{
    LNT_ASSERT(step->producer == producer && producer->produce_lines && step->n_in > 0);
    const char *names[] = {lnt_session_node(s, producer->node)->name, lnt_session_node(s, step->node)->name};
    const size_t length = strlen(names[0]) + strlen(names[1]) + sizeof " + ";
    char *title = lnt_bump_alloc(&s->binding.params, length, err);
    lnt_operand **in = lnt_bump_alloc(&s->binding.params, (step->n_in + producer->n_held) * sizeof *in, err);
    if (!title || !in)
        return LNT_E_MEMORY;
    snprintf(title, length, "%s + %s", names[0], names[1]);
    memcpy(in, step->in, step->n_in * sizeof *in);
    memcpy(in + step->n_in, producer->in, producer->n_held * sizeof *in);
    step->in = in;
    step->n_held = (uint16_t)(step->n_in + producer->n_held);
    step->title = title;
    producer->scratch_slot = step->scratch_slot;
    s->storage[in[0]->storage].place = LNT_PLACE_NONE;
    f->n_steps--;
    for (unsigned o = 0; o < step->n_out; o++)
        if (step->out[o])
            s->binding.born[step->out[o]->storage] = f->n_steps;
    return LNT_OK;
}

static lnt_status bind_step(lnt_session *s, lnt_frame *f, lnt_site *site)
{
    const lnt_node *n = site->node;
    lnt_step *step = &s->binding.step[n->index];
    LNT_TRY(define_outputs(s, f, site, LNT_PLACE_ARENA));
    lnt_site_begin_bind(site, step, &s->binding.params, s->level, s->execution.kernel.threads);
    site->kernels = s->kernels;
    site->half = lnt_program_of_halves(s, site);
    lnt_step *producer = producer_of(s, f, n);
    site->producer = producer;
    LNT_TRY(lnt_site_bind(site));
    if (take_views(s, site))
        return LNT_OK;
    if (step->pitched && site->out[0])
        s->storage[n->out[0]].takes_pitch = true;
    step->scratch_slot = step->scratch_bytes ? s->model->n_values + n->index : LNT_NO_STORAGE;
    if (step->producer)
        LNT_TRY(fuse_producer(s, f, step, producer, site->err));
    f->list[f->n_steps++] = step;
    return LNT_OK;
}

/* Binds an operator, or returns LNT_UNKNOWN when it has to wait for data. */
static lnt_status bind_operator(lnt_session *s, lnt_frame *f, const lnt_node *n, lnt_error *err)
{
    lnt_site site;
    set_site(&site, s, n, err);
    bool inputs_known = reveal_inputs(s, f, n), pretended = false;
    LNT_TRY(check_value_bounds(s, &site, err));
    lnt_status status = lnt_site_shape(&site);
    if (status == LNT_OK && !extents_known(&site))
        status = LNT_UNKNOWN;
    if (!s->execution.running && (status == LNT_UNKNOWN || (n->evaluate_early && !inputs_known)))
        LNT_TRY(pretend(s, &site, status == LNT_UNKNOWN, &pretended, err));
    if (pretended) {
        if (!f->has_stop)
            return LNT_UNKNOWN; /* first note where the data is waited for, then come back */
        status = extents_known(&site) ? LNT_OK : lnt_site_shape(&site);
        inputs_known = reveal_inputs(s, f, n);
    }
    LNT_TRY(status);
    LNT_TRY(check_extent_bounds(s, &site, err));
    lnt_set_halves(s, &site);
    return n->evaluate_early && inputs_known ? evaluate_node(s, f, &site) : bind_step(s, f, &site);
}

/* ---- If ---- */

/* Enters the branch an If takes; LNT_UNKNOWN while its condition is not there. */
static lnt_status enter_branch(lnt_session *s, lnt_frame *f, const lnt_node *n, lnt_error *err)
{
    lnt_operand *condition = &s->value[n->in[0]];
    if (!reveal(s, f, n->in[0]))
        return LNT_UNKNOWN;
    LNT_REQUIRE(condition->dtype == LNT_BOOL && lnt_operand_count(condition) == 1, err, LNT_E_TYPE,
                "the condition must be one bool");
    const bool taken = *(const uint8_t *)condition->data;
    const lnt_attr *branch = lnt_attr_find(n, taken ? "then_branch" : "else_branch");
    f->stack[f->depth++] = (lnt_bind_cursor){.sub = (uint32_t)*branch->i, .next = 0, .owner = n->index};
    return LNT_OK;
}

/* The outputs of an If are those of its branch, seen under other names. */
static lnt_status leave_branch(lnt_session *s, const lnt_bind_cursor *branch, lnt_error *err)
{
    LNT_ASSERT(lnt_session_node(s, branch->owner)->n_out <= s->model->sub[branch->sub].n_out);
    const lnt_node *n = lnt_session_node(s, branch->owner);
    const lnt_rec_subgraph *sub = &s->model->sub[branch->sub];
    const uint32_t *from = s->model->file.operands + sub->first_operand + sub->n_in;
    for (unsigned o = 0; o < n->n_out; o++) {
        size_t bytes;
        if (n->out[o] == LNT_NONE)
            continue;
        LNT_TRY(lnt_check_value(s, n->out[o], &s->value[from[o]], &bytes, err));
        s->value[n->out[o]] = s->value[from[o]];
        s->binding.born[n->out[o]] = s->binding.born[from[o]];
        s->binding.home[n->out[o]] = s->binding.home[from[o]];
    }
    return LNT_OK;
}

/* ---- frames ---- */

void lnt_frame_begin(lnt_frame *f)
{
    f->has_stop = f->complete = false;
    f->n_steps = f->next = 0;
    f->depth = 1;
    f->stack[0] = (lnt_bind_cursor){.sub = f->sub, .next = 0, .owner = LNT_NONE};
}

static void take_stop(lnt_session *s, lnt_frame *f)
{
    f->has_stop = true;
    f->stop.depth = f->depth;
    f->stop.n_steps = f->n_steps;
    f->stop.params = lnt_bump_here(&s->binding.params);
    f->stop.known = lnt_bump_here(&s->binding.known);
    memcpy(f->stop.stack, f->stack, f->depth * sizeof *f->stack);
}

void lnt_frame_rewind(lnt_session *s, lnt_frame *f)
{
    LNT_ASSERT(!f->has_stop || (f->stop.depth > 0 && f->stop.n_steps <= f->n_steps));
    f->next = 0;
    if (!f->has_stop)
        return;
    f->depth = f->stop.depth;
    f->n_steps = f->stop.n_steps;
    f->complete = false;
    memcpy(f->stack, f->stop.stack, f->depth * sizeof *f->stack);
    lnt_bump_rewind(&s->binding.params, f->stop.params);
    lnt_bump_rewind(&s->binding.known, f->stop.known);
    for (uint32_t v = 0; v < s->model->n_values; v++)
        if (s->binding.lent[v]) {
            s->binding.lent[v] = false;
            s->value[v].data = NULL;
        }
}

static lnt_status bind_node(lnt_session *s, lnt_frame *f, const lnt_node *n, lnt_error *err)
{
    if (s->request.partial && !lnt_node_needed(s, n))
        return LNT_OK;
    if (n->op->id == LNT_ID_If)
        return enter_branch(s, f, n, err);
    if (!(n->op->flags & LNT_OP_CONTROL))
        return bind_operator(s, f, n, err);
    if (!s->execution.running || !f->has_stop || f->next < f->n_steps)
        return LNT_UNKNOWN; /* a loop runs when everything before it has, and again in every run */
    return lnt_run_control(s, f, n, err);
}

lnt_status lnt_bind_frame(lnt_session *s, lnt_frame *f, lnt_error *err)
{
    const uint32_t before = f->n_steps;
    while (f->depth) {
        lnt_bind_cursor *top = &f->stack[f->depth - 1];
        const lnt_rec_subgraph *sub = &s->model->sub[top->sub];
        if (top->next == sub->n_nodes) {
            if (top->owner != LNT_NONE) {
                const lnt_status left = leave_branch(s, top, err);
                if (left != LNT_OK)
                    return lnt_node_fail(lnt_session_node(s, top->owner), left, err);
            }
            f->depth--;
            continue;
        }
        const lnt_node *n = lnt_session_node(s, sub->first_node + top->next);
        const lnt_status status = bind_node(s, f, n, err);
        if (status == LNT_UNKNOWN) {
            if (f->has_stop)
                break;
            take_stop(s, f);
            if (f->next < f->n_steps && s->execution.running)
                break;
            continue; /* again: with the data, which is all there, or with bounds in its place */
        }
        if (status != LNT_OK)
            return lnt_node_fail(n, status, err);
        top->next++;
    }
    f->complete = f->depth == 0;
    if (s->execution.running && f->n_steps == before && !f->complete) {
        const lnt_bind_cursor *top = &f->stack[f->depth - 1];
        const lnt_node *n = lnt_session_node(s, s->model->sub[top->sub].first_node + top->next);
        lnt_fail(err, LNT_E_SHAPE, "its extents cannot be worked out from its inputs");
        return lnt_node_fail(n, LNT_E_SHAPE, err);
    }
    return lnt_plan_frame(s, f, before, err);
}

/* ---- the session ---- */

/* Contents of an input that feeds shapes, kept to notice when they change. */
static lnt_status note_contents(lnt_session *s, uint32_t i, lnt_error *err)
{
    lnt_input_slot *in = &s->input[i];
    if (!(s->model->file.values[s->model->in[i]].flags & LNT_VALUE_FEEDS_SHAPES) || !in->tensor.data)
        return LNT_OK;
    LNT_TRY(lnt_buffer_reserve(s, &in->seen, in->tensor.bytes, err));
    memcpy(in->seen.data, in->tensor.data, in->tensor.bytes);
    s->value[s->model->in[i]].data = in->seen.data;
    return LNT_OK;
}

/* An input's extents against the bounds of its symbols: bounds may be younger than inputs, states grow. */
static lnt_status check_input_bounds(lnt_session *s, uint32_t i, lnt_error *err)
{
    const lnt_operand *v = &s->model->value[s->model->in[i]];
    for (unsigned d = 0; v->rank != LNT_RANK_UNKNOWN && d < v->rank; d++)
        if (lnt_is_symbol(v->dims[d])) {
            const int64_t symbol = lnt_symbol_number(v->dims[d]);
            LNT_TRY(check_bound(s, &s->model->file.symbols[symbol], s->binding.bound[symbol],
                                s->input[i].tensor.dims[d], err));
        }
    return LNT_OK;
}

static lnt_status place_inputs(lnt_session *s, lnt_error *err)
{
    const lnt_model *m = s->model;
    LNT_TRY(lnt_start_states(s, err));
    for (uint32_t i = 0; i < m->n_in; i++) {
        lnt_input_slot *in = &s->input[i];
        lnt_operand *v = &s->value[m->in[i]];
        if (s->request.partial && !s->request.needed[m->in[i]] && !in->given)
            continue;
        LNT_REQUIRE(in->given, err, LNT_E_ARGUMENT, "input %s is not set", lnt_value_name(m, m->in[i]));
        LNT_TRY(check_input_bounds(s, i, err));
        v->rank = (uint8_t)in->tensor.rank;
        memcpy(v->dims, in->tensor.dims, sizeof v->dims);
        if ((uintptr_t)in->tensor.data % lnt_dtype_size(in->tensor.dtype))
            LNT_TRY(lnt_buffer_reserve(s, &in->staging, in->tensor.bytes, err));
        lnt_place_value(s, m->in[i], LNT_PLACE_INPUT, NULL, false);
        const lnt_state_slot *state = lnt_state_of_input(s, i);
        v->plane_pitch = state ? state->now_pitch : 0;
        LNT_TRY(note_contents(s, i, err));
    }
    return LNT_OK;
}

static void reset_values(lnt_session *s)
{
    const lnt_model *m = s->model;
    memcpy(s->value, m->value, m->n_values * sizeof *s->value);
    memset(s->binding.lent, 0, m->n_values * sizeof *s->binding.lent);
    for (uint32_t i = 0; i < s->n_storages; i++) {
        s->storage[i] = (lnt_storage){.parent = i};
        s->slot[i] = NULL; /* memory of the former binding may have been given back */
    }
    for (uint32_t i = 0; i < m->n_out; i++)
        s->output[i].direct = LNT_NONE;
    for (uint32_t i = 0; i < m->n_values; i++)
        if (m->value[i].constant) {
            s->storage[i].place = LNT_PLACE_CONSTANT;
            s->slot[i] = (void *)(uintptr_t)m->value[i].data;
        }
}

static lnt_status bind_all(lnt_session *s, lnt_error *err)
{
    lnt_frame *f = &s->root;
    lnt_bump_reset(&s->binding.params);
    lnt_bump_reset(&s->binding.known);
    lnt_trace_clear(s); /* it may have titles from there */
    reset_values(s);
    s->binding.n_evaluated = 0;
    s->binding.unbounded = NULL;
    if (s->request.partial)
        lnt_mark_needed(s);
    lnt_find_halves(s);
    LNT_TRY(place_inputs(s, err));
    lnt_place_injected(s);
    lnt_frame_begin(f);
    LNT_TRY(lnt_bind_frame(s, f, err));
    if (f->has_stop) {
        if (!f->complete) {
            const lnt_bind_cursor *top = &f->stack[f->depth - 1];
            lnt_site site;
            set_site(&site, s, lnt_session_node(s, s->model->sub[top->sub].first_node + top->next), err);
            s->binding.unbounded = name_of_unknown(s, &site);
        }
        lnt_frame_rewind(s, f);
    }
    return LNT_OK;
}

lnt_status lnt_bind_session(lnt_session *s, lnt_error *err)
{
    s->binding.exists = s->binding.outputs_apart = false;
    LNT_TRY(bind_all(s, err));
    s->binding.exists = true;
    s->binding.stale = s->binding.outgrown = false;
    lnt_log(s, 1, "bound: %u steps, %u operators evaluated, arena of %zu bytes", s->root.n_steps,
            s->binding.n_evaluated, s->root.arena.bytes);
    return LNT_OK;
}
