/* control.c — Loop and Scan: a body bound once per change of shapes and run once per turn.
 *
 * A loop is carried out as a whole when every step before it has run. Its body is a frame with an arena of
 * its own. Carried values and stacked outputs live in buffers of the session, which grow and stay, so that a
 * second loop of at most the same size allocates nothing. */
#include "runtime/internal.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <string.h>

/* ---- memory ---- */

static lnt_status make_bodies(lnt_session *s, lnt_error *err)
{
    const lnt_model *m = s->model;
    s->loops.body = lnt_bump_alloc(&s->memory.tables, m->n_nodes * sizeof *s->loops.body, err);
    if (!s->loops.body)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        const unsigned id = m->node[i].op->id;
        if (id != LNT_ID_Loop && id != LNT_ID_Scan)
            continue;
        s->loops.body[i] = lnt_bump_alloc(&s->memory.tables, sizeof **s->loops.body, err);
        if (!s->loops.body[i])
            return LNT_E_MEMORY;
        LNT_TRY(lnt_frame_make(s, s->loops.body[i], (uint32_t)*lnt_attr_find(&m->node[i], "body")->i, err));
    }
    return LNT_OK;
}

lnt_status lnt_loops_make(lnt_session *s, lnt_error *err)
{
    s->loops.owned = lnt_bump_alloc(&s->memory.tables, s->model->n_values * sizeof *s->loops.owned, err);
    return s->loops.owned ? make_bodies(s, err) : LNT_E_MEMORY;
}

void lnt_loops_trim(lnt_session *s)
{
    const lnt_model *m = s->model;
    for (uint32_t i = 0; s->loops.body && i < m->n_nodes; i++)
        lnt_free_arena(s, s->loops.body[i]);
    for (uint32_t i = 0; s->loops.owned && i < m->n_values; i++)
        lnt_buffer_free(s, &s->loops.owned[i]);
    lnt_buffer_free(s, &s->loops.aside);
}

/* ---- turns ---- */

typedef struct lnt_turns {
    lnt_session *s;
    const lnt_node *n;
    lnt_frame *f;             /* of the body */
    const uint32_t *in, *out; /* the body's inputs and outputs: value numbers */
    lnt_operand *carried;     /* the values to be carried over, as they were when the turn ended */
    const void **from;        /* their contents */
    size_t *bytes;            /* and how long these are */
    lnt_bump_mark params, known;
    bool bound;
    uint64_t seed; /* of the next turn */
    lnt_error *err;
} lnt_turns;

static lnt_status begin_turns(lnt_turns *t, lnt_session *s, const lnt_node *n, lnt_error *err)
{
    lnt_frame *f = s->loops.body[n->index];
    const lnt_rec_subgraph *sub = &s->model->sub[f->sub];
    *t = (lnt_turns){.s = s, .n = n, .f = f, .in = s->model->file.operands + sub->first_operand, .err = err};
    t->out = t->in + sub->n_in;
    t->carried = lnt_bump_alloc(&s->binding.params, n->n_in * sizeof *t->carried, err);
    t->from = lnt_bump_alloc(&s->binding.params, n->n_in * sizeof *t->from, err);
    t->bytes = lnt_bump_alloc(&s->binding.params, n->n_in * sizeof *t->bytes, err);
    t->seed = lnt_mix_seed(s->execution.kernel.seed);
    t->params = lnt_bump_here(&s->binding.params);
    t->known = lnt_bump_here(&s->binding.known);
    for (uint32_t i = 0; i < sub->n_in; i++) /* forget what a former loop left */
        s->storage[t->in[i]].place = LNT_PLACE_NONE;
    return t->carried && t->from && t->bytes ? LNT_OK : LNT_E_MEMORY;
}

/* Forgets the body's binding: its parameters and evaluated values give back their memory. */
static void unbind(lnt_turns *t)
{
    lnt_bump_rewind(&t->s->binding.params, t->params);
    lnt_bump_rewind(&t->s->binding.known, t->known);
    t->bound = false;
}

/* Memory of a value's contents; the value is computed. */
static const void *contents(lnt_session *s, uint32_t value)
{
    LNT_ASSERT(value < s->model->n_values);
    const lnt_operand *v = &s->value[value];
    LNT_ASSERT(s->slot[lnt_storage_root(s, v->storage)] || lnt_operand_count(v) == 0);
    return (const char *)s->slot[lnt_storage_root(s, v->storage)] + v->offset;
}

/* Gives a body input the extents of like, whose type it must have, and memory of its own; the body is bound
 * anew if the extents differ from the last turn's. */
static lnt_status feed(lnt_turns *t, uint32_t value, const lnt_operand *like, const void *data)
{
    lnt_session *s = t->s;
    lnt_operand *v = &s->value[value];
    size_t bytes;
    LNT_REQUIRE(v->dtype == like->dtype, t->err, LNT_E_TYPE, "the body takes %s where it is given %s",
                lnt_dtype_text((lnt_dtype)v->dtype), lnt_dtype_text((lnt_dtype)like->dtype));
    LNT_TRY(lnt_check_value(s, value, like, &bytes, t->err));
    if (!lnt_same_extents(v, like) || s->storage[value].place != LNT_PLACE_OWNED)
        unbind(t);
    LNT_TRY(lnt_buffer_reserve(s, &s->loops.owned[value], bytes, t->err));
    if (bytes && data != s->loops.owned[value].data)
        memmove(s->loops.owned[value].data, data, bytes);
    if (!t->bound || s->slot[value] != s->loops.owned[value].data) {
        v->rank = like->rank;
        memcpy(v->dims, like->dims, sizeof v->dims);
        lnt_place_value(s, value, LNT_PLACE_OWNED, s->loops.owned[value].data, false);
        s->binding.home[value] = t->f;
    }
    v->data = NULL; /* changes every turn */
    return LNT_OK;
}

/* Feeds n values into the body's inputs to[0..n). A value that is itself an input of the body (passed
 * through, perhaps in another place) is copied aside first. */
static lnt_status carry(lnt_turns *t, const uint32_t *to, const uint32_t *from, unsigned n)
{
    lnt_session *s = t->s;
    size_t aside = 0, at;
    for (unsigned i = 0; i < n; i++) {
        t->carried[i] = s->value[from[i]];
        t->from[i] = contents(s, from[i]);
        LNT_TRY(lnt_check_value(s, from[i], &t->carried[i], &t->bytes[i], t->err));
        if (s->storage[lnt_storage_root(s, t->carried[i].storage)].place != LNT_PLACE_OWNED)
            t->bytes[i] = 0; /* it stays where it is */
        LNT_REQUIRE(lnt_reserve(&aside, (int64_t)t->bytes[i], 1, &at), t->err, LNT_E_LIMIT,
                    "carried values are larger than the address space");
    }
    LNT_TRY(lnt_buffer_reserve(s, &s->loops.aside, aside, t->err));
    char *place = s->loops.aside.data;
    for (unsigned i = 0; i < n; i++) {
        if (t->bytes[i])
            t->from[i] = memcpy(place, t->from[i], t->bytes[i]);
        place += lnt_round_up(t->bytes[i], LNT_ALIGN);
    }
    for (unsigned i = 0; i < n; i++)
        LNT_TRY(feed(t, to[i], &t->carried[i], t->from[i]));
    return LNT_OK;
}

static lnt_status run_body(lnt_turns *t)
{
    if (!t->bound) {
        lnt_frame_begin(t->f);
        LNT_TRY(lnt_bind_frame(t->s, t->f, t->err));
        t->bound = true;
    } else {
        lnt_frame_rewind(t->s, t->f);
    }
    t->s->execution.kernel.seed = t->seed++;
    LNT_TRY(lnt_run_frame(t->s, t->f, t->err));
    return lnt_poll(&t->s->execution.kernel);
}

/* An output of the loop, in a buffer of its own. */
static lnt_status give(lnt_turns *t, uint32_t value, const lnt_operand *like, const void *data)
{
    lnt_session *s = t->s;
    lnt_operand *v = &s->value[value];
    size_t bytes;
    LNT_TRY(lnt_check_value(s, value, like, &bytes, t->err));
    LNT_TRY(lnt_buffer_reserve(s, &s->loops.owned[value], bytes, t->err));
    if (bytes && data)
        memcpy(s->loops.owned[value].data, data, bytes);
    v->dtype = like->dtype;
    v->rank = like->rank;
    memcpy(v->dims, like->dims, sizeof v->dims);
    lnt_place_value(s, value, LNT_PLACE_OWNED, s->loops.owned[value].data, false);
    return LNT_OK;
}

/* ---- stacked outputs ---- */

/* Appends the body's output as slice number turn of a stacked output, growing its buffer by doubling. The
 * first slice says what the others are. */
static lnt_status stack_slice(lnt_turns *t, uint32_t value, uint32_t slice, int64_t turn)
{
    lnt_session *s = t->s;
    const lnt_operand *from = &s->value[slice];
    lnt_operand *v = &s->value[value], stacked = *from;
    lnt_buffer *b = &s->loops.owned[value];
    size_t bytes, needed;
    LNT_REQUIRE(from->rank < LNT_MAX_RANK, t->err, LNT_E_LIMIT, "a stacked output has more than %d axes",
                LNT_MAX_RANK);
    stacked.rank++;
    stacked.dims[0] = turn + 1;
    memcpy(stacked.dims + 1, from->dims, from->rank * sizeof *from->dims);
    LNT_REQUIRE(turn == 0 || (v->dtype == stacked.dtype && v->rank == stacked.rank &&
                              memcmp(v->dims + 1, from->dims, from->rank * sizeof *from->dims) == 0),
                t->err, LNT_E_MODEL, "a stacked output changes its type or extents in turn %lld",
                (long long)turn);
    LNT_TRY(lnt_check_value(s, slice, from, &bytes, t->err));
    LNT_REQUIRE(lnt_operand_bytes(&stacked, &needed), t->err, LNT_E_LIMIT, "a stacked output is too large");
    if (needed > b->capacity) {
        lnt_buffer grown = {NULL, 0};
        LNT_TRY(lnt_buffer_reserve(s, &grown, needed + needed / 2, t->err));
        if (turn)
            memcpy(grown.data, b->data, needed - bytes);
        lnt_free(&s->memory.allocator, b->data);
        *b = grown;
    }
    if (bytes)
        memcpy((char *)b->data + (needed - bytes), contents(s, slice), bytes);
    v->dtype = stacked.dtype;
    v->rank = stacked.rank;
    memcpy(v->dims, stacked.dims, sizeof v->dims);
    return LNT_OK;
}

/* A stacked output of a loop that never turned: no slices of the extents the model declares, or of none. */
static lnt_status empty_stack(lnt_turns *t, uint32_t value, uint32_t slice)
{
    const lnt_operand *declared = &t->s->model->value[slice];
    lnt_operand v = {.dtype = declared->dtype, .rank = 1};
    for (unsigned d = 0; declared->rank < LNT_MAX_RANK && d < declared->rank; d++) {
        v.rank = (uint8_t)(declared->rank + 1);
        v.dims[d + 1] = declared->dims[d] < 0 ? 0 : declared->dims[d];
    }
    return give(t, value, &v, NULL);
}

static lnt_status finish_stack(lnt_turns *t, uint32_t value, uint32_t slice, int64_t turns)
{
    lnt_session *s = t->s;
    size_t bytes;
    if (turns == 0)
        return empty_stack(t, value, slice);
    LNT_TRY(lnt_check_value(s, value, &s->value[value], &bytes, t->err));
    LNT_TRY(lnt_buffer_reserve(s, &s->loops.owned[value], bytes, t->err));
    lnt_place_value(s, value, LNT_PLACE_OWNED, s->loops.owned[value].data, false);
    return LNT_OK;
}

/* ---- Loop ---- */

static lnt_status read_trip_count(const lnt_turns *t, int64_t *trips)
{
    lnt_session *s = t->s;
    *trips = INT64_MAX;
    if (t->n->in[0] == LNT_NONE)
        return LNT_OK;
    LNT_REQUIRE(s->value[t->n->in[0]].dtype == LNT_INT64 && lnt_operand_count(&s->value[t->n->in[0]]) == 1,
                t->err, LNT_E_TYPE, "the trip count must be one int64");
    memcpy(trips, contents(s, t->n->in[0]), sizeof *trips);
    return LNT_OK;
}

static lnt_status read_condition(const lnt_turns *t, uint32_t value, bool *go)
{
    const lnt_operand *v = &t->s->value[value];
    LNT_REQUIRE(v->dtype == LNT_BOOL && lnt_operand_count(v) == 1, t->err, LNT_E_TYPE,
                "the condition must be one bool");
    *go = *(const uint8_t *)contents(t->s, value);
    return LNT_OK;
}

/* Some exporters declare the turn's number and the condition with an axis of one. */
static lnt_status feed_scalar(lnt_turns *t, uint32_t value, lnt_dtype dtype, const void *data)
{
    const lnt_operand one = {.dtype = (uint8_t)dtype, .rank = t->s->model->value[value].rank == 1, .dims = {1}};
    return feed(t, value, &one, data);
}

static lnt_status run_loop(lnt_turns *t)
{
    const lnt_node *n = t->n;
    const unsigned carried = n->n_in - 2u;
    int64_t trips, turn = 0;
    bool go = true;
    LNT_TRY(read_trip_count(t, &trips));
    if (n->in[1] != LNT_NONE)
        LNT_TRY(read_condition(t, n->in[1], &go));
    LNT_TRY(carry(t, t->in + 2, n->in + 2, carried));
    for (; go && turn < trips; turn++) {
        const uint8_t condition = go;
        LNT_TRY(feed_scalar(t, t->in[0], LNT_INT64, &turn));
        LNT_TRY(feed_scalar(t, t->in[1], LNT_BOOL, &condition));
        LNT_TRY(run_body(t));
        LNT_TRY(read_condition(t, t->out[0], &go));
        for (unsigned o = carried; o < n->n_out; o++)
            if (n->out[o] != LNT_NONE)
                LNT_TRY(stack_slice(t, n->out[o], t->out[1 + o], turn));
        LNT_TRY(carry(t, t->in + 2, t->out + 1, carried));
    }
    for (unsigned i = 0; i < carried; i++)
        if (n->out[i] != LNT_NONE)
            LNT_TRY(give(t, n->out[i], &t->s->value[t->in[2 + i]], contents(t->s, t->in[2 + i])));
    for (unsigned o = carried; o < n->n_out; o++)
        if (n->out[o] != LNT_NONE)
            LNT_TRY(finish_stack(t, n->out[o], t->out[1 + o], turn));
    return LNT_OK;
}

/* ---- Scan ---- */

/* One slice of a tensor along an axis: outer runs of inner bytes, stride bytes apart. The tensor's bytes have
 * been worked out before: nothing here overflows. */
typedef struct slice_walk {
    size_t outer, inner, stride;
} slice_walk;

static slice_walk walk_along(const lnt_operand *v, unsigned axis)
{
    const size_t size = lnt_dtype_size((lnt_dtype)v->dtype);
    slice_walk w = {0, 0, 0};
    (void)lnt_shape_bytes(v->dims, axis, 1, &w.outer);
    (void)lnt_shape_bytes(v->dims + axis + 1, v->rank - axis - 1, size, &w.inner);
    (void)lnt_shape_bytes(v->dims + axis, v->rank - axis, size, &w.stride);
    return w;
}

static lnt_status scan_attr(const lnt_turns *t, const char *name, unsigned i, int64_t *out)
{
    const lnt_attr *a = lnt_attr_find(t->n, name);
    LNT_REQUIRE(!a || (a->type == LNT_ATTR_INTS && i < a->count), t->err, LNT_E_ARGUMENT,
                "attribute %s is too short", name);
    *out = a ? a->i[i] : 0;
    return LNT_OK;
}

/* Axis of scan input or output i, within rank. */
static lnt_status scan_axis(const lnt_turns *t, const char *name, unsigned i, unsigned rank, unsigned *axis)
{
    int64_t a = 0;
    LNT_TRY(scan_attr(t, name, i, &a));
    LNT_REQUIRE(a >= -(int64_t)rank && a < (int64_t)rank, t->err, LNT_E_ARGUMENT,
                "%s names axis %lld of rank %u", name, (long long)a, rank);
    *axis = (unsigned)(a < 0 ? a + rank : a);
    return LNT_OK;
}

/* Feeds slice number turn of scan input i to the body. */
static lnt_status feed_slice(lnt_turns *t, unsigned i, unsigned first, int64_t turn)
{
    lnt_session *s = t->s;
    const lnt_operand *v = &s->value[t->n->in[first + i]];
    unsigned axis = 0;
    int64_t backwards = 0;
    LNT_TRY(scan_axis(t, "scan_input_axes", i, v->rank, &axis));
    LNT_TRY(scan_attr(t, "scan_input_directions", i, &backwards));
    const slice_walk w = walk_along(v, axis);
    const size_t index = (size_t)(backwards ? v->dims[axis] - 1 - turn : turn);
    lnt_operand shape = *v;
    shape.rank--;
    for (unsigned d = axis; d < shape.rank; d++)
        shape.dims[d] = v->dims[d + 1];
    lnt_buffer *b = &s->loops.owned[t->in[first + i]];
    size_t bytes;
    LNT_TRY(lnt_check_value(s, t->in[first + i], &shape, &bytes, t->err));
    LNT_TRY(lnt_buffer_reserve(s, b, bytes, t->err));
    const char *from = (const char *)contents(s, t->n->in[first + i]) + index * w.inner;
    for (size_t o = 0; w.inner && o < w.outer; o++)
        memcpy((char *)b->data + o * w.inner, from + o * w.stride, w.inner);
    return feed(t, t->in[first + i], &shape, b->data);
}

/* Puts the body's output into its place in scan output o, which is made in the first turn. */
static lnt_status place_slice(lnt_turns *t, unsigned o, unsigned states, int64_t turn, int64_t turns)
{
    lnt_session *s = t->s;
    const uint32_t value = t->n->out[states + o], slice = t->out[states + o];
    const lnt_operand *from = &s->value[slice];
    unsigned axis = 0;
    int64_t backwards = 0;
    LNT_REQUIRE(from->rank < LNT_MAX_RANK, t->err, LNT_E_LIMIT, "a scan output has more than %d axes",
                LNT_MAX_RANK);
    LNT_TRY(scan_axis(t, "scan_output_axes", o, from->rank + 1u, &axis));
    LNT_TRY(scan_attr(t, "scan_output_directions", o, &backwards));
    lnt_operand shape = *from;
    shape.rank++;
    shape.dims[axis] = turns;
    for (unsigned d = axis; d < from->rank; d++)
        shape.dims[d + 1] = from->dims[d];
    if (turn == 0)
        LNT_TRY(give(t, value, &shape, NULL));
    LNT_REQUIRE(shape.dtype == s->value[value].dtype && lnt_same_extents(&shape, &s->value[value]), t->err,
                LNT_E_MODEL, "a scan output changes its type or extents in turn %lld", (long long)turn);
    const slice_walk w = walk_along(&shape, axis);
    char *to = (char *)s->loops.owned[value].data + (size_t)(backwards ? turns - 1 - turn : turn) * w.inner;
    for (size_t k = 0; w.inner && k < w.outer; k++)
        memcpy(to + k * w.stride, (const char *)contents(s, slice) + k * w.inner, w.inner);
    return LNT_OK;
}

static lnt_status count_turns(const lnt_turns *t, unsigned states, unsigned scans, int64_t *turns)
{
    for (unsigned i = 0; i < scans; i++) {
        const lnt_operand *v = &t->s->value[t->n->in[states + i]];
        unsigned axis = 0;
        LNT_REQUIRE(v->rank >= 1, t->err, LNT_E_SHAPE, "scan input %u is a scalar", i);
        LNT_TRY(scan_axis(t, "scan_input_axes", i, v->rank, &axis));
        LNT_REQUIRE(i == 0 || v->dims[axis] == *turns, t->err, LNT_E_SHAPE,
                    "scan inputs of %lld and %lld slices", (long long)*turns, (long long)v->dims[axis]);
        *turns = v->dims[axis];
    }
    return LNT_OK;
}

static lnt_status run_scan(lnt_turns *t)
{
    const lnt_node *n = t->n;
    const unsigned scans = (unsigned)lnt_attr_i(n, "num_scan_inputs", 0), states = n->n_in - scans;
    int64_t turns = 0;
    LNT_TRY(count_turns(t, states, scans, &turns));
    LNT_TRY(carry(t, t->in, n->in, states));
    for (int64_t turn = 0; turn < turns; turn++) {
        for (unsigned i = 0; i < scans; i++)
            LNT_TRY(feed_slice(t, i, states, turn));
        LNT_TRY(run_body(t));
        for (unsigned o = 0; o + states < n->n_out; o++)
            if (n->out[states + o] != LNT_NONE)
                LNT_TRY(place_slice(t, o, states, turn, turns));
        LNT_TRY(carry(t, t->in, t->out, states));
    }
    for (unsigned i = 0; i < states; i++)
        if (n->out[i] != LNT_NONE)
            LNT_TRY(give(t, n->out[i], &t->s->value[t->in[i]], contents(t->s, t->in[i])));
    for (unsigned o = 0; turns == 0 && o + states < n->n_out; o++)
        if (n->out[states + o] != LNT_NONE)
            LNT_TRY(empty_stack(t, n->out[states + o], t->out[states + o]));
    return LNT_OK;
}

lnt_status lnt_run_control(lnt_session *s, lnt_frame *f, const lnt_node *n, lnt_error *err)
{
    lnt_turns t;
    const uint64_t seed = s->execution.kernel.seed;
    LNT_TRY(begin_turns(&t, s, n, err));
    LNT_TRY(n->op->id == LNT_ID_Loop ? run_loop(&t) : run_scan(&t));
    for (unsigned o = 0; o < n->n_out; o++)
        if (n->out[o] != LNT_NONE) {
            s->binding.born[n->out[o]] = f->n_steps;
            s->binding.home[n->out[o]] = f;
        }
    unbind(&t);
    s->execution.kernel.seed = seed;
    return LNT_OK;
}
