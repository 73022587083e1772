/* verbs.h — what `linnet` can do; one file each. */
#ifndef LNT_CLI_VERBS_H
#define LNT_CLI_VERBS_H

#include "cli/shell/args.h"

/* X(verb), in the order of the help. */
#ifdef LNT_CONVERTER
#define LNT_VERB_LIST(X) X(convert) X(info) X(run) X(verify) X(bench) X(doctor)
#else
#define LNT_VERB_LIST(X) X(info) X(run) X(verify) X(bench) X(doctor)
#endif

#define X(name) extern const lnt_verb lnt_verb_##name;
LNT_VERB_LIST(X)
#undef X

#endif
