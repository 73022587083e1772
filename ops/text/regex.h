/* regex.h — regular expressions in RE2's syntax, as far as a whole word is matched or not: no captures. Time is linear
 * in the word's length. */
#ifndef LNT_OPS_TEXT_REGEX_H
#define LNT_OPS_TEXT_REGEX_H

#include "base/memory.h"

typedef struct lnt_regex lnt_regex;

/* NULL with the error set: E_MEMORY, or E_MODEL that tells what the pattern has that is not known. */
const lnt_regex *lnt_regex_make(const char *pattern, lnt_bump *memory, lnt_error *err);
/* Numbers of scratch that a match takes. */
size_t lnt_regex_scratch(const lnt_regex *regex);
/* Is the whole of the NUL-terminated word what the pattern says? */
bool lnt_regex_matches(const lnt_regex *regex, const char *word, uint32_t *scratch);

#endif
