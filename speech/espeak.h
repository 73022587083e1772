/* espeak.h — phonemes of clauses by the program espeak-ng, which is asked through a pipe. It is a program of its own,
 * under its own license (GPL-3), and need not be there for voices or texts that do without. */
#ifndef LNT_SPEECH_ESPEAK_H
#define LNT_SPEECH_ESPEAK_H

#include "speech/child.h"
#include "speech/clauses.h"

typedef struct lnt_espeak {
    const char *program, *data; /* data: folder that holds espeak-ng-data; NULL: the program's own */
    const char *voice;
    lnt_child child;   /* runs from the first clause on */
    char *reply, *ipa; /* lnt_grow arrays: the last answer; the answers about a clause */
    size_t n_reply, reply_room, n_ipa, ipa_room;
} lnt_espeak;

/* The clause's phonemes in IPA, without its mark: UTF-8 with a NUL behind, until the next call. */
lnt_status lnt_espeak_clause(lnt_espeak *e, const lnt_clause *clause, const char **ipa, lnt_error *err);

/* What a program called espeak_clauses (examples/espeak) tells of a text besides: where espeak-ng's library ends
 * clauses. */
typedef struct lnt_told_clause {
    char *ipa; /* UTF-8 */
    char mark; /* one of ".?!,:;"; 0: none */
} lnt_told_clause;

bool lnt_espeak_tells_clauses(const lnt_espeak *e);
/* Of text[0..bytes), which is one question; clauses are the bump's. */
lnt_status lnt_espeak_clauses(lnt_espeak *e, const char *text, size_t bytes, lnt_bump *memory,
                              lnt_told_clause **clause, size_t *n, lnt_error *err);
void lnt_espeak_free(lnt_espeak *e);

#endif
