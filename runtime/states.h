/* states.h — values that a session carries from one run to the next (states.c has a drawing of them). */
#ifndef LNT_RUNTIME_STATES_H
#define LNT_RUNTIME_STATES_H

#include "runtime/buffer.h"
#include "runtime/linnet.h"

/* What output `output` of a run is, input `input` of the next one is. A cache that grows has room in its
 * buffer: then a run writes what is new behind what is past, in place, and `next` waits for the day the room
 * is gone. */
typedef struct lnt_state_slot {
    uint32_t input, output;
    lnt_buffer now, next;
    int64_t now_pitch; /* lnt_operand.plane_pitch of `now`; as bound, the output has that of `next` */
    bool in_place;     /* as bound, the output is in `now` */
} lnt_state_slot;

typedef struct lnt_states {
    lnt_state_slot *slot;
    uint32_t n;
} lnt_states;

/* States that are not set; in the session's tables. */
lnt_status lnt_states_make(lnt_session *s, lnt_error *err);
void lnt_states_free(lnt_session *s);

/* The state that output i feeds, or that feeds input i; NULL if it is an ordinary one. */
lnt_state_slot *lnt_state_of_output(const lnt_session *s, uint32_t i);
lnt_state_slot *lnt_state_of_input(const lnt_session *s, uint32_t i);
/* Before binding: states not set yet start with zeros. */
lnt_status lnt_start_states(lnt_session *s, lnt_error *err);
/* Where a bound output is to be computed; settles its plane_pitch. */
lnt_status lnt_state_make_room(lnt_session *s, lnt_state_slot *state, lnt_error *err);
/* lnt_state_set and lnt_state_get of a session that is entered. */
lnt_status lnt_set_state(lnt_session *s, uint32_t k, const lnt_tensor *t, lnt_error *err);
lnt_status lnt_get_state(lnt_session *s, uint32_t k, lnt_tensor *t, lnt_error *err);
void *lnt_state_target(const lnt_state_slot *state);
/* After a run: what the outputs computed becomes the input of the next. */
void lnt_swap_states(lnt_session *s);

#endif
