/* parts.h — what a text is spoken in: runs of the model one after the other, and the silence behind each. */
#ifndef LNT_SPEECH_PARTS_H
#define LNT_SPEECH_PARTS_H

#include "speech/phonemes.h"

typedef struct lnt_part {
    const int64_t *ids;
    size_t n_ids;
    double silence;       /* seconds behind it */
    bool ends_a_sentence; /* and another follows: between them is the silence that the options ask for, too */
    float rate, volume, pitch; /* times the options'; 0: 1 */
} lnt_part;

/* An array of lnt_grow. */
typedef struct lnt_parts {
    lnt_part *part;
    size_t n, room;
    size_t missing; /* symbols that the voice does not have */
} lnt_parts;

/* Adds a script, taken apart: its sentences, in parts where options or voice ask for silence behind a symbol, and with
 * by_clauses where a long sentence has clauses. Ids are the bump's. */
lnt_status lnt_parts_plan(lnt_parts *to, const lnt_script *script, const lnt_voice_config *config,
                          const lnt_say_options *how, bool by_clauses, lnt_bump *memory, lnt_error *err);
void lnt_parts_free(lnt_parts *p);

/* What voice.c does for those who keep parts. Options that were given, or the voice's own if they are NULL, checked. */
lnt_status lnt_voice_take_options(const lnt_voice *voice, const lnt_say_options *given, lnt_say_options *how,
                                  lnt_error *err);
/* The plan of a text in any form is the voice's until its next call. */
lnt_status lnt_voice_plan(lnt_voice *voice, const char *text, const lnt_say_options *how,
                          const lnt_parts **parts, lnt_error *err);
/* Speaks parts, the k-th with the seed plus k. */
lnt_status lnt_voice_say_parts(lnt_voice *voice, const lnt_part *part, size_t n, const lnt_say_options *how,
                               lnt_voice_emit emit, void *user, lnt_error *err);
/* Of model and configuration: what voices with the same one say is the same. */
uint64_t lnt_voice_hash(const lnt_voice *voice);
/* Are sentences computed by pieces? */
bool lnt_voice_streams(const lnt_voice *voice);

#endif
