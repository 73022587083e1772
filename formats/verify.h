/* verify.h — the parts of the verifier, in the order they run. Each may rely on what those before it checked.
 * Failures are E_FILE and read "SECTION section, record N: what is wrong". */
#ifndef LNT_FORMATS_VERIFY_H
#define LNT_FORMATS_VERIFY_H

#include "formats/lnt_file.h"

#define LNT_CHECK(condition, err, ...) LNT_REQUIRE(condition, err, LNT_E_FILE, __VA_ARGS__)
/* section is a string literal, record its number. */
#define LNT_CHECK_RECORD(condition, err, section, record, format, ...)                                       \
    LNT_CHECK(condition, err, section " section, record %u: " format, record, ##__VA_ARGS__)

/* Every number in every record, each by itself (verify_records.c). */
lnt_status lnt_verify_records(const lnt_file *f, lnt_error *err);
/* Node ranges, nesting of subgraphs, and that every value is made once, before it is used (verify_graph.c). */
lnt_status lnt_verify_graph(const lnt_file *f, lnt_error *err);

#endif
