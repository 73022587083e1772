/* manual.h — manual pages, from the verbs' tables of options, in man's language on standard output. */
#ifndef LNT_CLI_SHELL_MANUAL_H
#define LNT_CLI_SHELL_MANUAL_H

#include "cli/shell/args.h"

typedef struct lnt_cli { /* what pages and completion tell of the whole program */
    const char *version;
    const char *summary; /* one line */
    const lnt_verb *const *verb;
    size_t n_verbs;
} lnt_cli;

/* linnet-VERB(1), or linnet(1) where verb is NULL. */
void lnt_print_manual(const lnt_cli *program, const lnt_verb *verb);

#endif
