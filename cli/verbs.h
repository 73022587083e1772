/* verbs.h — what `linnet` can do; one file each. */
#ifndef LNT_CLI_VERBS_H
#define LNT_CLI_VERBS_H

#include "cli/shell/args.h"

#ifdef LNT_CONVERTER
#define LNT_CONVERTER_VERBS(X) X(convert)
#else
#define LNT_CONVERTER_VERBS(X)
#endif
#ifdef LNT_SPEECH
#define LNT_SPEECH_VERBS(X) X(say)
#else
#define LNT_SPEECH_VERBS(X)
#endif

/* X(verb), in the order of the help. */
#define LNT_VERB_LIST(X)                                                                                     \
    LNT_CONVERTER_VERBS(X) X(info) X(run) X(verify) X(bench) LNT_SPEECH_VERBS(X) X(doctor)

#define X(name) extern const lnt_verb lnt_verb_##name;
LNT_VERB_LIST(X)
#undef X

/* Before `say` takes its options: sentences are to be as loud as Piper's, which are brought to their peak. */
void lnt_say_as_piper(void);

#endif
