/* plan.c — where every intermediate value is placed.
 *
 * Lifetimes first: a storage lives from the step that makes it to the last that reads it; what nodes still to
 * be bound read lives on. Then outputs move into the memory of inputs that die with them, where the operator
 * allows, and inputs of Concats into its output (join.c). Then offsets: the largest first, each at the lowest
 * offset that is free for all of its life (greedy by size for offset calculation: Pisarchyk and Lee, "Efficient Memory
 * Management for Deep Neural Net Inference", 2020).
 *
 *     arena   |  a  |    b     |  c  | d |        a, b, c, d: storages alive in one wave
 *             0                          arena_bytes
 */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "runtime/check_run.h"

#include <string.h>

/* ---- waves ---- */

/* The first wave, at or after base, before which all inputs of the step are computed. */
static uint32_t earliest_wave(lnt_session *s, const lnt_step *step, uint32_t base)
{
    uint32_t wave = base;
    for (unsigned n = 0; n < step->n_held; n++) {
        const lnt_storage *in = step->in[n] ? &s->storage[lnt_storage_root(s, step->in[n]->storage)] : NULL;
        const bool made = in && (in->place == LNT_PLACE_ARENA || in->place == LNT_PLACE_OUTPUT);
        if (made && in->first + 1 > wave)
            wave = in->first + 1;
    }
    return wave;
}

/* Puts steps [from, end) in the order of their waves, those of one wave in the order they were bound. */
static void sort_by_wave(lnt_frame *f, uint32_t from, uint32_t end)
{
    for (uint32_t i = from + 1; i < end; i++) {
        lnt_step *step = f->list[i];
        const uint32_t wave = f->wave[i];
        uint32_t j = i;
        for (; j > from && f->wave[j - 1] > wave; j--) {
            f->list[j] = f->list[j - 1];
            f->wave[j] = f->wave[j - 1];
        }
        f->list[j] = step;
        f->wave[j] = wave;
    }
}

/* The waves of steps [from, end): one step each, or in parallel mode all steps whose inputs earlier waves compute. */
static void assign_waves(lnt_session *s, lnt_frame *f, uint32_t from, uint32_t end)
{
    const uint32_t base = from ? f->wave[from - 1] + 1 : 0;
    for (uint32_t i = from; i < end; i++) {
        const lnt_step *step = f->list[i];
        f->wave[i] = s->execution.mode == LNT_PARALLEL ? earliest_wave(s, step, base) : base + (i - from);
        for (unsigned o = 0; o < step->n_out; o++)
            if (step->out[o])
                s->storage[step->out[o]->storage].first = f->wave[i];
    }
    if (s->execution.mode == LNT_PARALLEL)
        sort_by_wave(f, from, end);
}

/* What is bound anew in every run comes behind what is not. */
static void set_waves(lnt_session *s, lnt_frame *f, uint32_t from)
{
    const bool stops = f->has_stop && f->stop.n_steps > from && f->stop.n_steps < f->n_steps;
    const uint32_t stop = stops ? f->stop.n_steps : f->n_steps;
    assign_waves(s, f, from, stop);
    assign_waves(s, f, stop, f->n_steps);
}

/* ---- lifetimes ---- */

static lnt_storage *storage_of(lnt_session *s, const lnt_operand *o)
{
    return &s->storage[lnt_storage_root(s, o->storage)];
}

static void use_until(lnt_storage *storage, uint32_t step)
{
    if (storage->last != LNT_NONE && (step == LNT_NONE || step > storage->last))
        storage->last = step;
}

/* Forgets the lifetimes of the frame's storages, to be found anew. */
static void clear_lifetimes(lnt_session *s, const lnt_frame *f)
{
    for (uint32_t i = 0; i < f->n_steps; i++) {
        const lnt_step *step = f->list[i];
        for (unsigned o = 0; o < step->n_out; o++)
            if (step->out[o]) {
                lnt_storage *storage = storage_of(s, step->out[o]);
                storage->last = 0;
                storage->needs_rows = false;
                storage->pinned = false;
            }
    }
}

static void note_scratch(lnt_session *s, lnt_step *step, uint32_t wave)
{
    if (step->scratch_slot == LNT_NO_STORAGE)
        return;
    lnt_storage *scratch = &s->storage[step->scratch_slot];
    const bool laid = scratch->laid && scratch->bytes == step->scratch_bytes;
    *scratch = (lnt_storage){.parent = step->scratch_slot,
                             .first = wave,
                             .last = wave,
                             .place = LNT_PLACE_ARENA,
                             .bytes = step->scratch_bytes,
                             .laid = laid,
                             .offset = scratch->offset};
}

/* A view has no pitch of its own. */
static void note_input(lnt_session *s, const lnt_step *step, unsigned i, uint32_t wave)
{
    const lnt_operand *in = step->in[i];
    if (!in)
        return;
    use_until(storage_of(s, in), wave);
    const bool heeded = i < step->n_in && i < 32 && step->pitched_in >> i & 1;
    storage_of(s, in)->needs_rows |= !heeded || in != &s->value[in->storage];
}

static void note_steps(lnt_session *s, lnt_frame *f, uint32_t from)
{
    for (uint32_t i = 0; i < f->n_steps; i++) {
        lnt_step *step = f->list[i];
        for (unsigned n = 0; n < step->n_held; n++)
            note_input(s, step, n, f->wave[i]);
        for (unsigned n = 0; n < step->n_out; n++)
            if (step->out[n])
                use_until(storage_of(s, step->out[n]), f->wave[i]);
        if (i >= from)
            note_scratch(s, step, f->wave[i]);
    }
}

static void keep_value(lnt_session *s, uint32_t value, bool pin)
{
    if (value == LNT_NONE)
        return;
    lnt_storage *storage = storage_of(s, &s->value[value]);
    storage->last = LNT_NONE;
    storage->pinned |= pin;
}

static void keep_subgraph(lnt_session *s, uint32_t sub, uint32_t first);

/* What a node that is not bound yet will read. */
static void keep_inputs(lnt_session *s, const lnt_node *n)
{
    for (unsigned i = 0; i < n->n_in; i++)
        keep_value(s, n->in[i], false);
    if (n->op->flags & LNT_OP_CONTROL)
        for (unsigned a = 0; a < n->n_attr; a++)
            if (n->attr[a].type == LNT_ATTR_GRAPH)
                keep_subgraph(s, (uint32_t)*n->attr[a].i, 0);
}

/* The verifier bounds the nesting of subgraphs and with it this recursion. */
static void keep_subgraph(lnt_session *s, uint32_t sub, uint32_t first)
{
    const lnt_rec_subgraph *r = &s->model->sub[sub];
    for (uint32_t i = first; i < r->n_nodes; i++)
        keep_inputs(s, lnt_session_node(s, r->first_node + i));
    for (uint32_t o = 0; o < r->n_out; o++)
        keep_value(s, s->model->file.operands[r->first_operand + r->n_in + o], false);
}

static void keep_results(lnt_session *s, const lnt_frame *f)
{
    for (uint32_t d = 0; d < f->depth; d++)
        keep_subgraph(s, f->stack[d].sub, f->stack[d].next);
    const lnt_rec_subgraph *r = &s->model->sub[f->sub];
    for (uint32_t o = 0; o < r->n_out; o++)
        keep_value(s, s->model->file.operands[r->first_operand + r->n_in + o], true);
    for (uint32_t v = 0; v < s->model->n_values; v++)
        if (s->request.fetched[v])
            keep_value(s, v, true);
}

/* ---- outputs in memory given from outside ---- */

static lnt_status run_copy(lnt_kernel *k, const lnt_step *step)
{
    const size_t *bytes = step->params;
    if (*bytes)
        memcpy(lnt_out(k, step, 0), lnt_in(k, step, 0), *bytes);
    return LNT_OK;
}

/* The caller's memory for output i: NULL if there is none, or the output was not asked for. */
static void *callers_memory(const lnt_session *s, uint32_t i)
{
    return !s->request.partial || s->request.selected[i] ? s->output[i].data : NULL;
}

/* Memory that output i, of so many bytes, must end in: NULL if the session may choose. */
static lnt_status output_target(lnt_session *s, const lnt_frame *f, uint32_t i, size_t bytes, void **target,
                                lnt_error *err)
{
    *target = NULL;
    lnt_state_slot *state = lnt_state_of_output(s, i);
    if (state) {
        LNT_TRY(lnt_state_make_room(s, state, err));
        *target = lnt_state_target(state);
        return LNT_OK;
    }
    *target = callers_memory(s, i);
    if (!*target)
        return LNT_OK;
    const uint32_t value = s->model->out[i];
    const char *name = lnt_value_name(s->model, value);
    const size_t align = lnt_dtype_size((lnt_dtype)s->value[value].dtype);
    /* Data will tell what is really needed of what is bound anew in the run. */
    const bool by_bounds = f->has_stop && !s->execution.running && s->binding.born[value] >= f->stop.n_steps;
    LNT_REQUIRE(by_bounds || bytes <= s->output[i].bytes, err, LNT_E_LIMIT,
                "output %s needs %zu bytes, %zu are given", name, bytes, s->output[i].bytes);
    LNT_REQUIRE((uintptr_t)*target % align == 0, err, LNT_E_ARGUMENT,
                "output %s: memory must be aligned to its elements of %zu bytes", name, align);
    return LNT_OK;
}

static uint32_t copy_slot(const lnt_session *s, uint32_t i)
{
    return s->model->n_values + s->model->n_nodes + i;
}

static void append_copy(lnt_session *s, lnt_frame *f, uint32_t i, size_t bytes, void *target)
{
    LNT_ASSERT(f->n_steps < s->model->n_nodes + s->model->n_out);
    lnt_output_slot *out = &s->output[i];
    out->copy_bytes = bytes;
    out->target = s->value[s->model->out[i]];
    out->target.storage = copy_slot(s, i);
    out->target.offset = 0;
    out->target.constant = false; /* though what is copied may be one */
    out->target.data = NULL;
    out->copy_in[0] = &s->value[s->model->out[i]];
    out->copy_out[0] = &out->target;
    out->copy = (lnt_step){.run = run_copy,
                           .params = &out->copy_bytes,
                           .in = out->copy_in,
                           .out = out->copy_out,
                           .n_in = 1,
                           .n_out = 1,
                           .n_held = 1,
                           .node = LNT_NONE,
                           .scratch_slot = LNT_NO_STORAGE};
    s->storage[copy_slot(s, i)] = (lnt_storage){.parent = copy_slot(s, i), .place = LNT_PLACE_OUTPUT};
    s->slot[copy_slot(s, i)] = target;
    f->list[f->n_steps++] = &out->copy;
}

/* Of the memory given for output i, as much as it takes. */
static size_t taken_bytes(const lnt_session *s, uint32_t i)
{
    const size_t bytes = lnt_known_bytes(&s->value[s->model->out[i]]);
    return bytes < s->output[i].bytes ? bytes : s->output[i].bytes;
}

static bool share_memory(const lnt_session *s, uint32_t i, uint32_t j)
{
    const uintptr_t a = (uintptr_t)callers_memory(s, i), b = (uintptr_t)callers_memory(s, j);
    return a && b && a < b + taken_bytes(s, j) && b < a + taken_bytes(s, i);
}

lnt_status lnt_outputs_apart(const lnt_session *s, lnt_error *err)
{
    for (uint32_t i = 1; i < s->model->n_out; i++)
        for (uint32_t j = 0; j < i && callers_memory(s, i); j++)
            LNT_REQUIRE(
                !share_memory(s, i, j), err, LNT_E_ARGUMENT, "outputs %s and %s are given the same memory",
                lnt_value_name(s->model, s->model->out[j]), lnt_value_name(s->model, s->model->out[i]));
    return LNT_OK;
}

/* Lets the values of outputs be computed right in their targets, or adds a copy at the end. */
static lnt_status direct_outputs(lnt_session *s, lnt_frame *f, lnt_error *err)
{
    for (uint32_t i = 0; i < s->model->n_out && f == &s->root; i++) {
        const uint32_t value = s->model->out[i];
        const lnt_operand *v = &s->value[value];
        lnt_storage *storage = storage_of(s, v);
        size_t bytes;
        void *target;
        if (storage->place == LNT_PLACE_NONE || !lnt_operand_bytes(v, &bytes))
            continue;
        LNT_TRY(output_target(s, f, i, bytes, &target, err));
        if (!target)
            continue;
        if (storage->place == LNT_PLACE_OUTPUT && s->output[i].direct == storage->parent) {
            s->slot[storage->parent] = target;
        } else if (storage->place == LNT_PLACE_ARENA && !storage->laid && v->offset == 0 &&
                   storage->bytes == bytes) {
            storage->place = LNT_PLACE_OUTPUT;
            s->slot[storage->parent] = target;
            s->output[i].direct = storage->parent;
        } else if (f->complete) {
            append_copy(s, f, i, bytes, target);
        }
    }
    /* Before a run the caller may still give each output memory of its own. */
    return f == &s->root && s->execution.running ? lnt_outputs_apart(s, err) : LNT_OK;
}

void lnt_point_outputs(lnt_session *s)
{
    for (uint32_t i = 0; i < s->model->n_out; i++) {
        const uint32_t root = lnt_storage_root(s, s->value[s->model->out[i]].storage);
        const lnt_state_slot *state = lnt_state_of_output(s, i);
        void *target = state ? lnt_state_target(state) : callers_memory(s, i);
        if (!target)
            continue;
        s->slot[copy_slot(s, i)] = target;
        if (s->output[i].direct == root)
            s->slot[root] = target;
    }
}

/* ---- in place ---- */

/* May the step's output take the memory of input i? */
static bool can_take(lnt_session *s, const lnt_frame *f, const lnt_step *step, uint32_t at, unsigned i)
{
    const lnt_operand *in = step->in[i], *out = step->out[0];
    if (!in || !(step->in_place >> i & 1))
        return false;
    const lnt_storage *from = storage_of(s, in), *to = storage_of(s, out);
    if (from->place != LNT_PLACE_ARENA || to->place != LNT_PLACE_ARENA || from == to || from->pinned ||
        from->last != at || in->offset || from->bytes < to->bytes || from->parent >= s->model->n_values ||
        s->binding.home[from->parent] != f)
        return false;
    for (unsigned j = 0; j < step->n_in; j++)
        if (j != i && step->in[j] && storage_of(s, step->in[j]) == from &&
            (!(step->in_place >> j & 1) || step->in[j]->offset || step->in[j]->rank != in->rank ||
             memcmp(step->in[j]->dims, in->dims, in->rank * sizeof *in->dims) != 0))
            return false;
    return true;
}

/* In a parallel group another step may still be reading: then nothing is computed in place. */
static void merge_in_place(lnt_session *s, const lnt_frame *f, uint32_t from)
{
    if (s->memory.separate || s->execution.mode == LNT_PARALLEL)
        return;
    for (uint32_t i = from; i < f->n_steps; i++) {
        const lnt_step *step = f->list[i];
        if (!step->in_place || !step->out[0] || step->out[0]->offset)
            continue;
        for (unsigned n = 0; n < step->n_in && n < 32; n++) {
            if (!can_take(s, f, step, f->wave[i], n))
                continue;
            lnt_storage *in = storage_of(s, step->in[n]), *out = storage_of(s, step->out[0]);
            in->last = out->last;
            in->pinned |= out->pinned;
            out->parent = in->parent;
            break;
        }
    }
}

/* ---- offsets ---- */

/* By size or, weighed, by size and length of life; the larger first. */
static bool goes_before(const lnt_session *s, uint32_t a, uint32_t b, bool weighed)
{
    const lnt_storage *x = &s->storage[a], *y = &s->storage[b];
    const double life = weighed ? (double)(x->last - x->first) + 1 : 1;
    const double other = weighed ? (double)(y->last - y->first) + 1 : 1;
    const double one = life * (double)x->bytes, two = other * (double)y->bytes;
    return one != two ? one > two : a < b;
}

static void sift_down(const lnt_session *s, uint32_t *heap, size_t root, size_t n, bool weighed)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && goes_before(s, heap[child], heap[child + 1], weighed))
            child++;
        if (!goes_before(s, heap[root], heap[child], weighed))
            return;
        const uint32_t swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

/* Heapsort, largest first: qsort may allocate. */
static void sort_order(const lnt_session *s, uint32_t *order, size_t n, bool weighed)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(s, order, i, n, weighed);
    for (size_t end = n; end-- > 1;) {
        const uint32_t swap = order[0];
        order[0] = order[end];
        order[end] = swap;
        sift_down(s, order, 0, end, weighed);
    }
}

static void take_block(lnt_arena_blocks *places, const lnt_storage *storage)
{
    lnt_blocks_add(places, &(lnt_arena_block){storage->first, storage->last, storage->offset,
                                              storage->offset + lnt_storage_extent(storage)});
}

/* The storage that output o of the step is in, its scratch memory behind the last; NULL: none. */
static lnt_storage *storage_made(lnt_session *s, const lnt_step *step, unsigned o)
{
    if (o < step->n_out)
        return step->out[o] ? storage_of(s, step->out[o]) : NULL;
    return step->scratch_slot == LNT_NONE ? NULL : &s->storage[step->scratch_slot];
}

/* Collects the frame's arena storages: those to lay out into order, blocks of those laid and still alive. Two
 * outputs of a step may be in one. */
static void collect(lnt_session *s, lnt_frame *f, uint32_t from, size_t *n_order)
{
    *n_order = 0;
    lnt_blocks_clear(&f->layout.blocks);
    for (uint32_t i = 0; i < f->n_steps; i++) {
        const lnt_step *step = f->list[i];
        for (unsigned o = 0; o <= step->n_out; o++) {
            lnt_storage *made = storage_made(s, step, o);
            if (made)
                made->seen = false;
        }
        for (unsigned o = 0; o <= step->n_out; o++) {
            lnt_storage *made = storage_made(s, step, o);
            if (!made || made->seen || made->place != LNT_PLACE_ARENA || made->first != f->wave[i])
                continue;
            made->seen = true;
            if (made->laid && i < from) {
                if (s->memory.separate || made->last >= f->wave[from])
                    take_block(&f->layout.blocks, made);
            } else {
                made->laid = false;
                f->layout.order[(*n_order)++] = (uint32_t)(made - s->storage);
            }
        }
    }
}

/* Gives the storages of f->layout.order their offsets in turn, beside those laid out before. *bytes: the end
 * of the highest of all, *highest: its index in the order. */
static lnt_status lay_out(lnt_session *s, lnt_frame *f, size_t n_order, size_t *bytes, size_t *highest,
                          lnt_error *err)
{
    *bytes = lnt_blocks_high(&f->layout.blocks);
    *highest = 0;
    for (size_t i = 0; i < n_order; i++) {
        lnt_storage *storage = &s->storage[f->layout.order[i]];
        size_t end;
        LNT_REQUIRE(storage->bytes <= PTRDIFF_MAX / 4, err, LNT_E_LIMIT, "a value of %zu bytes is too large",
                    storage->bytes);
        storage->offset = lnt_blocks_find(&f->layout.blocks, storage->first, storage->last,
                                          lnt_storage_extent(storage), s->memory.separate);
        LNT_REQUIRE(lnt_add_size(storage->offset, lnt_storage_extent(storage), &end), err, LNT_E_LIMIT,
                    "the arena overflows the address space");
        storage->laid = true;
        take_block(&f->layout.blocks, storage);
        if (end > *bytes) {
            *bytes = end;
            *highest = i;
        }
    }
    return LNT_OK;
}

/* Bytes of the n storages in the order that are alive in each wave: to f->layout.alive. Returns the most: no
 * plan needs less. */
static size_t find_alive(const lnt_session *s, lnt_frame *f, size_t n)
{
    const uint32_t waves = f->n_steps ? f->wave[f->n_steps - 1] + 1 : 0;
    size_t alive = 0, most = 0;
    memset(f->layout.alive, 0, (waves + 1) * sizeof *f->layout.alive);
    for (size_t i = 0; i < n; i++) { /* first by how much they change */
        const lnt_storage *l = &s->storage[f->layout.order[i]];
        f->layout.alive[l->first] += lnt_storage_extent(l);
        f->layout.alive[l->last < waves ? l->last + 1 : waves] -= lnt_storage_extent(l);
    }
    for (uint32_t t = 0; t < waves; t++) {
        f->layout.alive[t] = alive += f->layout.alive[t];
        most = alive > most ? alive : most;
    }
    return most;
}

static void move_to_front(uint32_t *order, size_t i)
{
    const uint32_t moved = order[i];
    memmove(order + 1, order, i * sizeof *order);
    order[0] = moved;
}

/* Largest first wastes little. Where it does not, the length of lives is weighed, too, and then what sticks
 * out goes first in the next try; the best one counts. */
static lnt_status plan_offsets(lnt_session *s, lnt_frame *f, uint32_t from, size_t *bytes, lnt_error *err)
{
    enum { TRIES = 12, SPARE = 20 }; /* good enough is what wastes less than one part in so many */
    size_t n, highest;
    collect(s, f, from, &n);
    const bool alone = lnt_blocks_high(&f->layout.blocks) == 0;
    sort_order(s, f->layout.order, n, false);
    LNT_TRY(lay_out(s, f, n, bytes, &highest, err));
    if (!alone)
        return LNT_OK;
    f->layout.alive_bytes = find_alive(s, f, n);
    const size_t enough =
        s->memory.separate ? SIZE_MAX : f->layout.alive_bytes + f->layout.alive_bytes / SPARE;
    size_t best = *bytes;
    memcpy(f->layout.best, f->layout.order, n * sizeof *f->layout.order);
    for (unsigned i = 0; i < TRIES && best > enough; i++) {
        if (i == 0)
            sort_order(s, f->layout.order, n, true);
        else
            move_to_front(f->layout.order, highest);
        lnt_blocks_clear(&f->layout.blocks);
        LNT_TRY(lay_out(s, f, n, bytes, &highest, err));
        if (*bytes < best) {
            best = *bytes;
            memcpy(f->layout.best, f->layout.order, n * sizeof *f->layout.order);
        }
    }
    if (*bytes == best)
        return LNT_OK;
    memcpy(f->layout.order, f->layout.best, n * sizeof *f->layout.order);
    lnt_blocks_clear(&f->layout.blocks);
    return lay_out(s, f, n, bytes, &highest, err);
}

/* Offsets once more with inputs of Concats in their outputs: as many as there is room for, else those that
 * need no more while they are made than when they are copied. The arena shall not grow by that. */
static lnt_status plan_joined(lnt_session *s, lnt_frame *f, uint32_t from, size_t *bytes, lnt_error *err)
{
    const size_t by_themselves = *bytes;
    for (unsigned i = 0; i < 2; i++) {
        size_t n;
        collect(s, f, from, &n);
        find_alive(s, f, n);
        const bool any = lnt_join_inputs(s, f, from, i == 0 ? by_themselves : 0);
        LNT_TRY(plan_offsets(s, f, from, bytes, err));
        if (!any || *bytes <= by_themselves)
            return LNT_OK;
        lnt_part_inputs(s, f, from);
    }
    return plan_offsets(s, f, from, bytes, err);
}

/* ---- memory ---- */

/* A budget takes LNT_ALIGN bytes more of each block. */
static lnt_status check_limit(const lnt_session *s, size_t bytes, lnt_error *err)
{
    const uint64_t left = lnt_memory_left(s);
    LNT_REQUIRE(bytes <= left && LNT_ALIGN <= left - bytes, err, LNT_E_LIMIT,
                "the model needs an arena of %zu bytes for these shapes, %llu are %s", bytes,
                (unsigned long long)left, s->memory.limit ? "left of memory_limit" : "free on this machine");
    return LNT_OK;
}

static lnt_status grow_arena(lnt_session *s, lnt_frame *f, size_t bytes, lnt_error *err)
{
    LNT_ASSERT(bytes % LNT_ALIGN == 0);
    if (bytes <= f->arena.capacity)
        return LNT_OK;
    LNT_REQUIRE(!f->arena.is_callers, err, LNT_E_LIMIT,
                "the model needs an arena of %zu bytes, %zu are given", bytes, f->arena.capacity);
    const bool in_use = f->next > 0; /* steps have run: their results move along */
    if (!in_use) {
        lnt_free(&s->memory.allocator, f->arena.data);
        f->arena.data = NULL;
        f->arena.capacity = 0;
    }
    LNT_TRY(check_limit(s, bytes, err));
    void *grown = lnt_alloc(&s->memory.allocator, bytes, err);
    if (!grown)
        return LNT_E_MEMORY;
    if (in_use && f->arena.data)
        memcpy(grown, f->arena.data, f->arena.capacity);
    lnt_free(&s->memory.allocator, f->arena.data);
    f->arena.data = grown;
    f->arena.capacity = bytes;
    return LNT_OK;
}

/* Points an operand at the storage that its own was merged into. */
static void move_to_root(lnt_session *s, lnt_operand *o)
{
    for (const lnt_storage *at; (at = &s->storage[o->storage])->parent != o->storage; o->storage = at->parent)
        o->offset += at->offset;
}

/* Points the slots of all laid storages into the arena and operands at the storages they were merged into. */
static void resolve(lnt_session *s, lnt_frame *f)
{
    /* With nothing laid out any address will do. */
    char *arena = f->arena.data ? f->arena.data : (char *)s->slot;
    for (uint32_t i = 0; i < f->n_steps; i++) {
        const lnt_step *step = f->list[i];
        for (unsigned n = 0; n < step->n_held; n++)
            if (step->in[n])
                move_to_root(s, step->in[n]);
        for (unsigned n = 0; n < step->n_out; n++)
            if (step->out[n]) {
                move_to_root(s, step->out[n]);
                const uint32_t root = step->out[n]->storage;
                if (s->storage[root].place == LNT_PLACE_ARENA)
                    s->slot[root] = arena + s->storage[root].offset;
            }
        if (step->scratch_slot != LNT_NO_STORAGE)
            s->slot[step->scratch_slot] = arena + s->storage[step->scratch_slot].offset;
    }
}

/* Known contents in the arena, after it moved. */
static void refresh_lent(lnt_session *s)
{
    for (uint32_t v = 0; v < s->model->n_values; v++) {
        lnt_operand *o = &s->value[v];
        const uint32_t root = lnt_storage_root(s, o->storage);
        if (s->binding.lent[v] && o->data && s->storage[root].place == LNT_PLACE_ARENA &&
            s->execution.running)
            o->data = (char *)s->slot[root] + o->offset;
    }
}

lnt_status lnt_plan_frame(lnt_session *s, lnt_frame *f, uint32_t from, lnt_error *err)
{
    const void *arena = f->arena.data;
    size_t bytes = 0;
    LNT_TRY(direct_outputs(s, f, err));
    set_waves(s, f, from);
    clear_lifetimes(s, f);
    note_steps(s, f, from);
    keep_results(s, f);
    merge_in_place(s, f, from);
    /* Side by side nothing is computed within the output of a step to come. */
    const bool joins = !s->memory.separate && s->execution.mode != LNT_PARALLEL && lnt_may_join(s, f, from);
    LNT_TRY(plan_offsets(s, f, from, &bytes, err));
    if (joins)
        LNT_TRY(plan_joined(s, f, from, &bytes, err));
    LNT_TRY(grow_arena(s, f, bytes, err));
    f->arena.bytes = from && f->arena.bytes > bytes ? f->arena.bytes : bytes;
    resolve(s, f);
    if (f->arena.data != arena)
        refresh_lent(s);
    lnt_check_plan(s, f);
    return LNT_OK;
}

void lnt_free_arena(lnt_session *s, lnt_frame *f)
{
    if (f && !f->arena.is_callers) {
        lnt_free(&s->memory.allocator, f->arena.data);
        f->arena.data = NULL;
        f->arena.capacity = 0;
    }
}
