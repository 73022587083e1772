/* suite.h — verifying a whole tree of case folders. */
#ifndef LNT_CLI_DATA_SUITE_H
#define LNT_CLI_DATA_SUITE_H

#include "cli/data/judge_cases.h"

/* Runs every case folder (model.onnx and test_data_set_*) below dir, each in a process of its own, `jobs` at
 * a time; names (may be NULL) is a file with the cases wanted, one a line. Prints a line for each case and
 * the totals; returns the exit code. */
int lnt_suite_run(const lnt_verb *verb, const lnt_verify_options *verify, const char *dir, const char *names,
                  unsigned jobs);

#endif
