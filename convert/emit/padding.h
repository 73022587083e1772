/* padding.h — which packed constants a file holds without the padding of their panels. */
#ifndef LNT_CONVERT_EMIT_PADDING_H
#define LNT_CONVERT_EMIT_PADDING_H

#include "convert/graph/report.h"

/* Of a file that is larger than the model it was made from, or than what its constants hold: marks packed constants to
 * be stored plain, those first that are mostly padding, as many as make up for it. *changed: some were marked. */
lnt_status lnt_leave_out_padding(lnt_graph *g, const lnt_report *report, bool *changed);

#endif
