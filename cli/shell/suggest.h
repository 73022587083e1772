/* suggest.h — what somebody meant who typed a name that does not exist. */
#ifndef LNT_CLI_SHELL_SUGGEST_H
#define LNT_CLI_SHELL_SUGGEST_H

#include "cli/shell/args.h"

/* Goes behind a message that names typed: "; did you mean NAME?" of the nearest of names, else a list of the first of
 * them, else nothing. In memory of lnt_cli_alloc. */
const char *lnt_suggest(const char *typed, const lnt_texts *names);
/* The first half alone: "" where none of names is near. */
const char *lnt_suggest_nearest(const char *typed, const lnt_texts *names);

#endif
