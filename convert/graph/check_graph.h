/* check_graph.h — what must hold of the graph between two passes, looked at in builds with a sanitizer. */
#ifndef LNT_CONVERT_GRAPH_CHECK_GRAPH_H
#define LNT_CONVERT_GRAPH_CHECK_GRAPH_H

#include "convert/graph/graph.h"

#ifdef LNT_CHECKED
void lnt_check_graph(lnt_graph *g);
#else
static inline void lnt_check_graph(lnt_graph *g)
{
    (void)g;
}
#endif

#endif
