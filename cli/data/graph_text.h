/* graph_text.h — the graph of a file for people: its values as a table, its nodes for Graphviz. */
#ifndef LNT_CLI_DATA_GRAPH_TEXT_H
#define LNT_CLI_DATA_GRAPH_TEXT_H

#include "cli/data/model.h"

/* The name of a node's operator; a custom one's with its domain. */
const char *lnt_node_text(const lnt_file *f, const lnt_rec_node *n);
/* Values that a run computes, those that `run --fetch` takes: name, type, the operator that makes it. */
void lnt_print_values(const lnt_file *f);
/* The graph in Graphviz's language. */
void lnt_print_dot(const lnt_file *f);

#endif
