/* completion.h — what shells offer behind `linnet`: scripts from the verbs' tables of options. */
#ifndef LNT_CLI_SHELL_COMPLETION_H
#define LNT_CLI_SHELL_COMPLETION_H

#include "cli/shell/manual.h"

/* Prints the script for "bash", "zsh" or "fish"; false for any other shell. */
bool lnt_print_completion(const lnt_cli *program, const char *shell);

#endif
