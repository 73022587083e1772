/* slots.h — prompts whose text has places for values: "It is {temp:number} degrees, {who}." */
#ifndef LNT_SPEECH_PROMPTS_SLOTS_H
#define LNT_SPEECH_PROMPTS_SLOTS_H

#include "base/memory.h"
#include "speech/linnet_voice.h"

/* Checks a prompt's text, UTF-8, and counts its slots: `{name}`, `{name:number}`, `{name:time}`, `{name:unit UNIT}`.
 * `{{` and `}}` are braces. */
lnt_status lnt_slots_check(const char *text, size_t *n_slots, lnt_error *err);
/* The text with values in place of its slots, in memory of the bump's. Each slot has one of the values, and each value
 * is some slot's. */
lnt_status lnt_slots_fill(const char *text, const lnt_slot_value *value, size_t n, lnt_bump *memory,
                          const char **filled, lnt_error *err);

#endif
