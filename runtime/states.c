/* states.c — values that a session carries from one run to the next.
 *
 * A run reads a state's buffer `now` and writes `next`; then the two change places. A cache that a step
 * appends to has planes with room behind them instead, and the run writes into them:
 *
 *     now  | a a a . . | b b b . . |    past: 3 rows a plane
 *     now  | a a a A . | b b b B . |    present: 4
 *          0           now_pitch
 *
 * Where the room is gone `next` is given more, and the step copies what is past. */
#include "base/lnt_assert.h"
#include "runtime/internal.h"

#include <string.h>

lnt_status lnt_states_make(lnt_session *s, lnt_error *err)
{
    const lnt_file *f = &s->model->file;
    s->states.n = f->n_states;
    s->states.slot = lnt_bump_alloc(&s->memory.tables, f->n_states * sizeof *s->states.slot, err);
    if (!s->states.slot)
        return LNT_E_MEMORY;
    for (uint32_t k = 0; k < f->n_states; k++) {
        s->states.slot[k].input = f->states[k].input;
        s->states.slot[k].output = f->states[k].output;
    }
    return LNT_OK;
}

void lnt_states_free(lnt_session *s)
{
    for (uint32_t k = 0; s->states.slot && k < s->states.n; k++) {
        lnt_buffer_free(s, &s->states.slot[k].now);
        lnt_buffer_free(s, &s->states.slot[k].next);
    }
}

lnt_state_slot *lnt_state_of_input(const lnt_session *s, uint32_t i)
{
    for (uint32_t k = 0; k < s->states.n; k++)
        if (s->states.slot[k].input == i)
            return &s->states.slot[k];
    return NULL;
}

lnt_state_slot *lnt_state_of_output(const lnt_session *s, uint32_t i)
{
    for (uint32_t k = 0; k < s->states.n; k++)
        if (s->states.slot[k].output == i)
            return &s->states.slot[k];
    return NULL;
}

/* pitch: of what is in `next`. */
static void change_places(lnt_state_slot *state, int64_t pitch)
{
    const lnt_buffer now = state->now;
    state->now = state->next;
    state->next = now;
    state->now_pitch = pitch;
}

/* ---- caches ---- */

/* Does nobody but the step that appends see how the state is stored? */
static bool is_unseen(const lnt_session *s, const lnt_state_slot *state)
{
    const uint32_t in = s->model->in[state->input], out = s->model->out[state->output];
    return s->model->readers[in] == 1 && s->model->readers[out] == 1 && !s->request.fetched[in] &&
           !s->request.fetched[out] && !s->memory.separate;
}

/* Is the state's output its input with more behind it, by a step that heeds where planes start? */
static bool is_appended(const lnt_session *s, const lnt_state_slot *state)
{
    const uint32_t in = s->model->in[state->input], out = s->model->out[state->output];
    if (!is_unseen(s, state) || s->binding.home[out] != &s->root || s->binding.born[out] >= s->root.n_steps ||
        s->storage[in].place != LNT_PLACE_INPUT)
        return false;
    const lnt_step *step = s->root.list[s->binding.born[out]];
    for (unsigned i = 0; i < step->n_append; i++) {
        const lnt_append *a = &step->append[i];
        if (a->in < step->n_in && step->in[a->in] == &s->value[in] && a->out < step->n_out &&
            step->out[a->out] == &s->value[out])
            return true;
    }
    return false;
}

/* Elements a plane of so many may need before long: as far as a bound for the input tells, else half as many
 * again. */
static int64_t with_room(const lnt_session *s, const lnt_state_slot *state, int64_t plane)
{
    const uint32_t in = s->model->in[state->input];
    const lnt_operand *past = &s->value[in], *present = &s->value[s->model->out[state->output]];
    const int64_t symbol = lnt_symbol_number(s->model->value[in].dims[2]);
    int64_t room;
    if (symbol >= 0 && s->binding.bound[symbol] >= 0 &&
        !__builtin_add_overflow(s->binding.bound[symbol], present->dims[2] - past->dims[2], &room) &&
        !__builtin_mul_overflow(room, present->dims[3], &room) && room >= plane)
        return room;
    return plane + plane / 2;
}

/* Gives the output planes with room in `now`, or else in `next`. */
static lnt_status make_room_behind(lnt_session *s, lnt_state_slot *state, lnt_operand *present,
                                   lnt_error *err)
{
    int64_t plane;
    size_t bytes;
    LNT_REQUIRE(lnt_count(present->dims + 2, 2, &plane), err, LNT_E_LIMIT, "a state is too large");
    state->in_place = state->now_pitch >= plane;
    present->plane_pitch = state->in_place ? state->now_pitch : with_room(s, state, plane);
    const int64_t dims[] = {present->dims[0], present->dims[1], present->plane_pitch};
    LNT_REQUIRE(lnt_shape_bytes(dims, 3, lnt_dtype_size((lnt_dtype)present->dtype), &bytes), err, LNT_E_LIMIT,
                "a state is too large");
    if (state->in_place && bytes <= state->now.capacity)
        return LNT_OK;
    state->in_place = false;
    return lnt_buffer_reserve(s, &state->next, bytes, err);
}

/* Makes planes contiguous. */
static lnt_status make_plain(lnt_session *s, lnt_state_slot *state, lnt_error *err)
{
    lnt_tensor *t = &s->input[state->input].tensor;
    if (!state->now_pitch)
        return LNT_OK;
    const size_t from = (size_t)state->now_pitch * lnt_dtype_size(t->dtype);
    size_t plane;
    LNT_REQUIRE(lnt_shape_bytes(t->dims + 2, 2, lnt_dtype_size(t->dtype), &plane), err, LNT_E_INTERNAL,
                "a state's planes are too large");
    LNT_TRY(lnt_buffer_reserve(s, &state->next, t->bytes, err));
    for (size_t i = 0; plane && i < t->bytes / plane; i++)
        memcpy((char *)state->next.data + i * plane, (const char *)state->now.data + i * from, plane);
    change_places(state, 0);
    t->data = state->now.data;
    s->binding.outgrown = true;
    return LNT_OK;
}

/* ---- from bind to the end of a run ---- */

/* Extent of an input by the symbol it shares with one that is given; 0 for a state's that grows from nothing. */
static int64_t extent_by_symbol(const lnt_session *s, int64_t symbol)
{
    const lnt_model *m = s->model;
    for (uint32_t i = 0; i < m->n_in && lnt_is_symbol(symbol); i++)
        for (unsigned d = 0; s->input[i].given && d < s->input[i].tensor.rank; d++)
            if (m->value[m->in[i]].rank != LNT_RANK_UNKNOWN && m->value[m->in[i]].dims[d] == symbol)
                return s->input[i].tensor.dims[d];
    return 0;
}

/* A state not set yet starts with zeros. */
static lnt_status start_state(lnt_session *s, lnt_state_slot *state, lnt_error *err)
{
    lnt_input_slot *in = &s->input[state->input];
    if (in->given)
        return LNT_OK;
    const lnt_operand *v = &s->model->value[s->model->in[state->input]];
    LNT_REQUIRE(v->rank != LNT_RANK_UNKNOWN, err, LNT_E_SHAPE,
                "a state of unknown rank must be set before the run");
    lnt_tensor t = {.dtype = (lnt_dtype)v->dtype, .rank = v->rank};
    for (unsigned d = 0; d < v->rank; d++)
        t.dims[d] = v->dims[d] >= 0 ? v->dims[d] : extent_by_symbol(s, v->dims[d]);
    LNT_REQUIRE(lnt_shape_bytes(t.dims, t.rank, lnt_dtype_size(t.dtype), &t.bytes), err, LNT_E_LIMIT,
                "a state is too large");
    LNT_TRY(lnt_buffer_reserve(s, &state->now, t.bytes, err));
    memset(state->now.data, 0, t.bytes);
    state->now_pitch = 0;
    t.data = state->now.data;
    in->tensor = t;
    in->given = true;
    return LNT_OK;
}

lnt_status lnt_start_states(lnt_session *s, lnt_error *err)
{
    for (uint32_t k = 0; k < s->states.n; k++) {
        if (!is_unseen(s, &s->states.slot[k]))
            LNT_TRY(make_plain(s, &s->states.slot[k], err));
        LNT_TRY(start_state(s, &s->states.slot[k], err));
    }
    return LNT_OK;
}

lnt_status lnt_state_make_room(lnt_session *s, lnt_state_slot *state, lnt_error *err)
{
    lnt_operand *v = &s->value[s->model->out[state->output]];
    size_t bytes;
    const lnt_status status = lnt_check_value(s, s->model->in[state->input], v, &bytes, err);
    if (status != LNT_OK) {
        lnt_error_prefix(err, "output %s is to be a state's next contents: ",
                         lnt_value_name(s->model, s->model->out[state->output]));
        return status;
    }
    if (is_appended(s, state))
        return make_room_behind(s, state, v, err);
    state->in_place = false;
    v->plane_pitch = 0;
    if (state->next.data && state->next.capacity >= bytes)
        return LNT_OK;
    return lnt_buffer_reserve(s, &state->next, bytes + bytes / 2, err);
}

void *lnt_state_target(const lnt_state_slot *state)
{
    return state->in_place ? state->now.data : state->next.data;
}

void lnt_swap_states(lnt_session *s)
{
    for (uint32_t k = 0; k < s->states.n; k++) {
        lnt_state_slot *state = &s->states.slot[k];
        lnt_tensor *t = &s->input[state->input].tensor;
        const lnt_operand *v = &s->value[s->model->out[state->output]];
        if (s->storage[lnt_storage_root(s, v->storage)].place == LNT_PLACE_NONE)
            continue; /* a partial run that did not compute it */
        if (!state->in_place)
            change_places(state, v->plane_pitch);
        if (t->rank != v->rank || memcmp(t->dims, v->dims, v->rank * sizeof *v->dims) != 0)
            s->binding.outgrown = true;
        t->rank = v->rank;
        memcpy(t->dims, v->dims, sizeof t->dims);
        t->data = state->now.data;
        t->bytes = lnt_known_bytes(v);
        LNT_ASSERT(state->now_pitch ? v->rank == 4 : t->bytes <= state->now.capacity);
        if (!state->in_place && (state->now_pitch || state->next.capacity < t->bytes))
            s->binding.outgrown = true;
    }
}

/* ---- for the host ---- */

uint32_t lnt_state_count(const lnt_session *s)
{
    return s ? s->states.n : 0;
}

lnt_status lnt_state_reset(lnt_session *s, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    for (uint32_t k = 0; k < s->states.n; k++)
        s->input[s->states.slot[k].input].given = false;
    s->binding.stale = true;
    return lnt_leave(s, LNT_OK);
}

lnt_status lnt_set_state(lnt_session *s, uint32_t k, const lnt_tensor *t, lnt_error *err)
{
    LNT_REQUIRE(k < s->states.n && t, err, LNT_E_ARGUMENT, "there is no state %u", k);
    LNT_REQUIRE(t->data, err, LNT_E_ARGUMENT, "state %u needs data", k);
    lnt_state_slot *state = &s->states.slot[k];
    lnt_input_slot *in = &s->input[state->input];
    size_t bytes;
    LNT_TRY(lnt_check_input(s, state->input, t, &bytes, err));
    LNT_TRY(lnt_buffer_reserve(s, &state->now, bytes, err));
    memcpy(state->now.data, t->data, bytes);
    s->binding.stale |= !in->given || !lnt_same_shape(&in->tensor, t) || state->now_pitch;
    state->now_pitch = 0;
    in->tensor = *t;
    in->tensor.data = state->now.data;
    in->tensor.bytes = bytes;
    in->given = true;
    return LNT_OK;
}

lnt_status lnt_state_set(lnt_session *s, uint32_t k, const lnt_tensor *t, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, lnt_set_state(s, k, t, err));
}

lnt_status lnt_get_state(lnt_session *s, uint32_t k, lnt_tensor *t, lnt_error *err)
{
    LNT_REQUIRE(k < s->states.n && t, err, LNT_E_ARGUMENT, "there is no state %u", k);
    const lnt_input_slot *in = &s->input[s->states.slot[k].input];
    LNT_REQUIRE(in->given, err, LNT_E_ARGUMENT, "state %u has no contents before bind", k);
    LNT_TRY(make_plain(s, &s->states.slot[k], err));
    *t = in->tensor;
    return LNT_OK;
}

lnt_status lnt_state_get(lnt_session *s, uint32_t k, lnt_tensor *t, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, lnt_get_state(s, k, t, err));
}
