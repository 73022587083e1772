/* report.h — what a conversion did; cli/convert.c prints it. */
#ifndef LNT_CONVERT_REPORT_H
#define LNT_CONVERT_REPORT_H

#include "convert/graph.h"

typedef struct lnt_unsupported { /* one node that cannot be converted */
    const char *node, *domain, *op;
    int64_t opset;
    const char *reason; /* unknown operator, type, attribute at fault; and the way out where there is one */
} lnt_unsupported;

struct lnt_report {
    lnt_bump memory;
    lnt_pass_count *pass;
    size_t n_passes, pass_capacity;
    lnt_unsupported *unsupported;
    size_t n_unsupported, unsupported_capacity;
    uint64_t onnx_bytes, lnt_bytes, constant_bytes, packed_bytes, duplicated_bytes;
    uint32_t nodes_before, nodes_after, relayouts;
};

void lnt_report_init(lnt_report *r);
void lnt_report_free(lnt_report *r);
/* Adds to the line of (pass, what). what NULL, as lnt_report_text gives it when memory is short: E_MEMORY. */
lnt_status lnt_report_count(lnt_report *r, const char *pass, const char *what, unsigned count);
lnt_status lnt_report_unsupported(lnt_report *r, const lnt_unsupported *u);
/* Text in the bump of the report. */
const char *lnt_report_text(lnt_report *r, const char *format, ...) LNT_PRINTF(2, 3);

#endif
