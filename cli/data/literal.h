/* literal.h — the elements of a tensor as somebody types them: a number, true, false, or a list of those. */
#ifndef LNT_CLI_DATA_LITERAL_H
#define LNT_CLI_DATA_LITERAL_H

#include "base/error.h"
#include "base/linnet_types.h"

#include <stdbool.h>

/* Is text such elements: "16000", "-0.5", "true", "1,2,3", "[1, 2, 3]"? */
bool lnt_is_literal(const char *text);
/* Their number in *n and, where data is not NULL, the elements of type dtype there. LNT_E_VALUE for what the type
 * cannot hold. */
lnt_status lnt_literal_elements(const char *text, lnt_dtype dtype, void *data, size_t *n, lnt_error *err);

#endif
