/* amounts.h — numbers of a text with what belongs to them, in English: units, money, times, dates, fractions. */
#ifndef LNT_SPEECH_AMOUNTS_H
#define LNT_SPEECH_AMOUNTS_H

#include "speech/spoken.h"
#include "speech/tokens.h"

/* Each speaks what begins at t and returns how many tokens that took; 0: nothing of its kind begins there. */
size_t lnt_speak_amount(lnt_spoken_text *s, const lnt_token *t); /* a number and what is behind it */
size_t lnt_speak_money(lnt_spoken_text *s, const lnt_token *t);  /* a currency's sign and a number */
size_t lnt_speak_month(lnt_spoken_text *s,
                       const lnt_token *t); /* a month's name or abbreviation, with day and year */
/* "a.m." or "PM", and whether a point ends it that may be the sentence's. */
size_t lnt_speak_half_day(lnt_spoken_text *s, const lnt_token *t, bool *pointed);
/* Does the point of an abbreviation end the sentence, too, where t is next? */
bool lnt_begins_sentence(const lnt_token *t);

#endif
