/* edit.h — what the passes share: questions about nodes and constants, and edits of the graph. */
#ifndef LNT_CONVERT_GRAPH_EDIT_H
#define LNT_CONVERT_GRAPH_EDIT_H

#include "convert/graph/report.h"

/* A pass at work. The graph's uses are right as long as every edit is told. */
typedef struct lnt_edit {
    lnt_graph *g;
    lnt_report *report;
    const char *pass; /* for the report */
} lnt_edit;

/* Notes all uses, too. */
lnt_status lnt_edit_begin(lnt_edit *e, lnt_graph *g, lnt_report *report, const char *pass);
/* Notes all uses anew, after changes that were not told. */
lnt_status lnt_edit_renew(lnt_edit *e);
/* Tells that n's operands have changed, or that it is dead. */
void lnt_edit_changed(lnt_edit *e, lnt_gnode *n);
/* Adds one to the report's line of this pass. */
lnt_status lnt_edit_count(lnt_edit *e, const char *what);

/* Operands of live nodes that the value is. */
unsigned lnt_edit_uses(const lnt_edit *e, uint32_t value);
/* Output of the model or of a subgraph, or kept: must be computed under its name. */
bool lnt_edit_pinned(const lnt_edit *e, uint32_t value);
bool lnt_edit_is_output(const lnt_edit *e, uint32_t value);
/* The node behind use *at of the value, NULL behind the last; *at begins as LNT_EDIT_FIRST. In running order
 * but for nodes that were edited; one that reads the value twice comes twice. No edits meanwhile. */
enum { LNT_EDIT_FIRST = 0xfffffffe };
lnt_gnode *lnt_edit_reader(const lnt_edit *e, uint32_t value, uint32_t *at);
/* The only reader of output 0 of n, if it stands in n's subgraph and the value is not pinned; else NULL. */
lnt_gnode *lnt_edit_follower(const lnt_edit *e, const lnt_gnode *n);

void lnt_edit_drop(lnt_edit *e, lnt_gnode *n);
/* Lets the readers of `from`, which is not pinned, read `to`. */
void lnt_edit_replace(lnt_edit *e, uint32_t from, uint32_t to);
/* Makes value input i of n, which may be one more than it has. */
lnt_status lnt_edit_set_input(lnt_edit *e, lnt_gnode *n, unsigned i, uint32_t value);
/* After a subgraph has gone whose output the value was. */
void lnt_edit_released(lnt_edit *e, uint32_t value);
/* Lets n stand in the place, and write output 0, of `at`, which is dropped; it is the node given back. */
lnt_gnode *lnt_edit_move(lnt_edit *e, lnt_gnode *n, lnt_gnode *at);
/* Makes value `to` take the place of n's output 0 and drops n. A pinned output keeps its name: then the
 * producer of `to` writes it from now on, where it may. False (and nothing changed) where that cannot be. */
bool lnt_edit_bypass(lnt_edit *e, lnt_gnode *n, uint32_t to);
/* A node that stands before `at`, in its subgraph. out LNT_NONE: makes a new value, in *made (may be NULL). */
lnt_gnode *lnt_edit_insert(lnt_edit *e, lnt_gnode *at, const lnt_op *op, const uint32_t *in, unsigned n_in,
                           uint32_t out, uint32_t *made);
/* Puts a node with op and operands in in the place of `at`: takes over its name and its output 0; at is
 * dropped. */
lnt_gnode *lnt_edit_substitute(lnt_edit *e, lnt_gnode *at, const lnt_op *op, const uint32_t *in,
                               unsigned n_in);

/* Calls visit for every live node in running order, subgraph by subgraph; also for those that it inserts
 * before nodes to come. */
lnt_status lnt_edit_each(lnt_edit *e, lnt_status (*visit)(lnt_edit *e, lnt_gnode *n));
/* Makes the outputs of n constants if all of its inputs are and it is worth it (fold_constants.c). */
lnt_status lnt_fold_node(lnt_edit *e, lnt_gnode *n);

/* ---- nodes ---- */

/* Is n (not NULL) the live operator called ident in ops/list.h? */
#define lnt_is(n, ident) lnt_gnode_is((n), LNT_ID_##ident)
bool lnt_gnode_is(const lnt_gnode *n, unsigned op);
/* Elements of n's output are elements of its input 0, of any type. */
bool lnt_moves_elements(const lnt_gnode *n);
/* Producer of input i of n; NULL where there is none. */
lnt_gnode *lnt_producer(const lnt_graph *g, const lnt_gnode *n, unsigned i);
/* Input i of n, LNT_NONE where it is skipped. */
uint32_t lnt_in_value(const lnt_gnode *n, unsigned i);
int64_t lnt_gnode_int(const lnt_gnode *n, const char *attr, int64_t otherwise);
/* Element i of an attribute of integers. */
int64_t lnt_gnode_int_at(const lnt_gnode *n, const char *attr, unsigned i, int64_t otherwise);
float lnt_gnode_float(const lnt_gnode *n, const char *attr, float otherwise);
const char *lnt_gnode_string(const lnt_gnode *n, const char *attr, const char *otherwise);
const lnt_attr *lnt_gnode_attr(const lnt_gnode *n, const char *attr);
/* The axes of a Transpose, each from 0 on and there once; NULL for another node, or if they are said otherwise. */
const lnt_attr *lnt_gnode_perm(const lnt_gnode *n);
lnt_status lnt_gnode_set_float(lnt_graph *g, lnt_gnode *n, const char *name, float value);
/* One of n's two inputs is a constant of one element: gives it and the number of the other input. */
bool lnt_scalar_operand(const lnt_graph *g, const lnt_gnode *n, double *scalar, unsigned *other);

/* ---- values ---- */

bool lnt_is_constant(const lnt_graph *g, uint32_t value); /* with contents in ONNX order */
/* A constant of one element, of any real type. */
bool lnt_constant_scalar(const lnt_graph *g, uint32_t value, double *out);
/* Elements of an integer constant of at most *n elements; *n becomes their number. */
bool lnt_constant_ints(const lnt_graph *g, uint32_t value, int64_t *out, unsigned *n);
/* Elements of a float constant; *n their number. NULL if it is none. */
const float *lnt_constant_floats(const lnt_graph *g, uint32_t value, int64_t *n);
uint32_t lnt_add_floats(lnt_graph *g, const char *name, unsigned rank, const int64_t *dims,
                        const float *data);
uint32_t lnt_add_ints(lnt_graph *g, const char *name, unsigned n, const int64_t *data);
/* Ranks and extents are the same for certain: known, or the same symbols. */
bool lnt_same_dims(const lnt_operand *a, const lnt_operand *b);
bool lnt_dims_equal(const lnt_operand *o, unsigned rank, const int64_t *dims);

#endif
