/* graph.h — the model while it is being converted.
 *
 * All memory belongs to the graph's bump and dies with it. Values live in one table for the whole model:
 * a subgraph reads outer values by their numbers. Nodes of a subgraph stand in an order that can run.
 * A pass is a function in convert/passes/ that changes the graph and counts what it did; passes never leave
 * the graph in a state that could not be emitted. */
#ifndef LNT_CONVERT_GRAPH_GRAPH_H
#define LNT_CONVERT_GRAPH_GRAPH_H

#include "base/memory.h"
#include "convert/graph/names.h"
#include "convert/graph/options.h"
#include "formats/packed.h"
#include "ops/op.h"
#include "ops/elementwise/program.h"

typedef struct lnt_gnode lnt_gnode;

/* Exporters write "to the end" of a Slice as one of several large numbers; no axis is this long. */
#define LNT_BEYOND_EXTENTS 1000000000

/* What is known of one element of a small integer tensor: a number; or, where !known, the extent it is, a
 * symbol, or -1. */
typedef struct lnt_gelement {
    int64_t value;
    bool known;
} lnt_gelement;

/* Float weights that are int8 values times a scale: these with a scale for each place along the first axis. */
typedef struct lnt_narrow {
    const int8_t *quantized;
    const float *scale;
} lnt_narrow;

/* What numbers of a value stand for. */
typedef struct lnt_words {
    const char **word;
    size_t n;
    bool bare; /* numbers themselves: metadata has them without quotes */
} lnt_words;

typedef struct lnt_gvalue {
    const char *name; /* unique in the model */
    lnt_operand info; /* type and extents; a constant's contents in info.data, its record in info.packed */
    size_t bytes;     /* of info.data */
    const lnt_gelement *elements; /* of a small integer tensor that is no constant (symbols.c); or NULL */
    const lnt_narrow *narrow;     /* of a float constant that the file may hold so; or NULL */
    const lnt_words
        *words; /* text: its elements are places in this list; or classes of its columns; or NULL */
    const uint32_t *piece; /* of a sequence (import/expand_sequences.c): the values in it; or NULL */
    uint32_t n_pieces;
    bool text;           /* numbers of words: of the graph's list */
    bool absent;         /* an optional that holds nothing (the same) */
    bool small;          /* int8 or uint8 in place of an integer of 4 bits or fewer */
    lnt_gnode *producer; /* NULL for constants, graph inputs and subgraph inputs */
    bool constant;
    bool keep;            /* --keep: no pass may remove it */
    bool measured;        /* --measure: the same, until quantized layers have been chosen */
    bool feeds_shape;     /* small integers that extents depend on (marked by passes/mark_shapes.c) */
    uint32_t stream_rate; /* places along time to a frame of the cut, behind it (passes/stream_cut.c); or 0 */
    bool plain;           /* packed, and stored in ONNX order nevertheless (marked by emit/padding.c) */
    lnt_dtype stored_as;  /* of a constant that is not packed: its floats are stored so; 0: as they are */
} lnt_gvalue;

/* Who reads which value, for the passes; kept right by their edits (graph/edit.c). */
typedef struct lnt_use { /* an operand of a live node, in the list of its value */
    lnt_gnode *by;
    uint32_t value, next, before; /* LNT_NONE: no operand; the ends of the list */
} lnt_use;

typedef struct lnt_readers { /* of a value */
    uint32_t first, count;   /* uses */
    bool pinned, output;     /* output of the model or of a subgraph, or kept; only the former */
} lnt_readers;

typedef struct lnt_uses {
    lnt_use *list;
    size_t n, capacity;
    lnt_readers *of; /* per value */
    size_t n_values, value_capacity;
    bool incomplete; /* memory was short: g->err says so, and the pass must not go on */
} lnt_uses;

struct lnt_gnode {
    const lnt_op *op;
    const char *name;
    uint32_t *in, *out; /* value numbers, LNT_NONE where skipped */
    uint16_t n_in, n_out, n_program_in, n_attr;
    lnt_attr *attr;
    lnt_program *program;
    uint32_t subgraph; /* where it stands */
    bool dead;         /* to be dropped by lnt_graph_sweep */
    bool evaluate_early;
    lnt_gnode *ahead;           /* waits to stand right before this one: see lnt_graph_sweep */
    uint32_t first_use, n_uses; /* its records in lnt_uses */
    uint32_t place;             /* grows in running order within a subgraph; set with the uses */
};

typedef struct lnt_gsubgraph {
    const char *name;
    lnt_gnode **node;
    size_t n_nodes, node_capacity;
    size_t n_waiting;   /* nodes that wait ahead of others */
    uint32_t *in, *out; /* inputs that are fed (no constants); outputs */
    uint32_t n_in, n_out;
} lnt_gsubgraph;

typedef struct lnt_gsymbol { /* becomes lnt_rec_symbol */
    const char *name;
    lnt_symbol_kind kind;
    uint32_t value, axis;
    int64_t bound;
} lnt_gsymbol;

typedef struct lnt_gstate {
    uint32_t output, input; /* positions among the main graph's outputs and inputs */
} lnt_gstate;

typedef struct lnt_gmeta {
    const char *key, *text;
} lnt_gmeta;

/* Where a sound can be computed from piece by piece: metadata `stream.*` of formats/FORMAT.md. */
typedef struct lnt_gstream {
    uint32_t sound, value;
    int64_t left[2], right[2]; /* frames around; where convolutions are computed by tiles */
    int64_t hop;               /* 0: nowhere */
} lnt_gstream;

typedef struct lnt_graph {
    lnt_bump memory; /* its allocator is that of all that belongs to the conversion */
    lnt_gvalue *value;
    size_t n_values, value_capacity;
    lnt_gsubgraph *sub; /* 0 is the model */
    size_t n_subs, sub_capacity;
    lnt_gsymbol *symbol;
    size_t n_symbols, symbol_capacity;
    lnt_gstate *state;
    size_t n_states, state_capacity;
    lnt_gmeta *meta;
    size_t n_meta, meta_capacity;
    lnt_words words; /* that the model itself knows, if it reads or gives text */
    size_t word_capacity;
    lnt_names word_numbers;
    const struct lnt_named_bytes *attach; /* the options' */
    size_t n_attach;
    lnt_uses uses;
    lnt_names names;                             /* of values */
    lnt_names fixed_dims;                        /* what --dim has fixed at import */
    const struct lnt_quantize_options *quantize; /* NULL: the model stays as it is */
    lnt_precision precision;
    lnt_dtype model_halves; /* LNT_FLOAT16 or LNT_BFLOAT16 if the model's weights were that; else 0 */
    bool small;             /* the file is to be: what is in it may be made ready later */
    bool halves;            /* and floats may be float16 there */
    const char *stream_at;  /* as in lnt_convert_options */
    lnt_gstream stream;
    double winograd_budget;    /* as in lnt_convert_options */
    unsigned loops;            /* bodies of Loop and Scan that inference is in */
    unsigned misfits;          /* nodes of the present branch whose extents do not fit */
    size_t folded, fold_limit; /* bytes computed at conversion so far, and at most (0: not worked out yet) */
    lnt_error *err;
} lnt_graph;

void lnt_graph_init(lnt_graph *g, const lnt_allocator *memory, lnt_error *err);
void lnt_graph_free(lnt_graph *g);

/* Each returns LNT_NONE, NULL or a failure when memory is short, with g->err set. Names are copied; a name
 * already taken gets a suffix. */
uint32_t lnt_graph_add_value(lnt_graph *g, const char *name);
/* A constant; data (ONNX order) is copied. */
uint32_t lnt_graph_add_constant(lnt_graph *g, const char *name, lnt_dtype dtype, unsigned rank,
                                const int64_t *dims, const void *data, size_t bytes);
/* A node appended to subgraph sub, or, with the next sweep, put before `before` in it; operand arrays are
 * copied and the outputs' producer is set. */
lnt_gnode *lnt_graph_add_node(lnt_graph *g, uint32_t sub, lnt_gnode *before, const lnt_op *op,
                              const char *name, const uint32_t *in, unsigned n_in, const uint32_t *out,
                              unsigned n_out);
lnt_status lnt_gnode_set_attr(lnt_graph *g, lnt_gnode *n, const lnt_attr *attr); /* copies; replaces */
lnt_status lnt_gnode_set_int(lnt_graph *g, lnt_gnode *n, const char *name, int64_t value);

/* Moves n, at its end, to the place before `before`, as lnt_graph_add_node would put it. */
lnt_status lnt_graph_put_before(lnt_graph *g, lnt_gnode *n, lnt_gnode *before);
/* Puts the nodes that wait into the list of their subgraph. */
void lnt_graph_let_in(lnt_graph *g, uint32_t sub);
/* The same for all subgraphs; drops dead nodes. */
void lnt_graph_sweep(lnt_graph *g);
/* Is there such a node? */
bool lnt_graph_any(const lnt_graph *g, bool (*is)(const lnt_gnode *n));
/* A node that draws random numbers by its own number, which optimization moves, as it has no seed; NULL: there is
 * none. */
const lnt_gnode *lnt_graph_unseeded(const lnt_graph *g);
/* Works out types and extents of every value anew from inputs and constants (some stay unknown). */
lnt_status lnt_graph_infer(lnt_graph *g);
/* The same for the outputs of one node, its subgraphs included. */
lnt_status lnt_graph_infer_node(lnt_graph *g, const lnt_gnode *n);
/* Follows extents through shape arithmetic once the shape rule has been called; part of inference. */
lnt_status lnt_graph_trace_symbols(lnt_graph *g, const lnt_gnode *n);
/* The one integer or bool the value holds, constant or traced; false if that is not known. */
bool lnt_graph_known_int(const lnt_graph *g, uint32_t value, int64_t *out);
/* Extents known by no name of the model become unknown again. */
void lnt_graph_forget_symbols(lnt_graph *g);
/* A new, empty subgraph; LNT_NONE if memory is short. The name is copied. */
uint32_t lnt_graph_add_sub(lnt_graph *g, const char *name);
/* The subgraph that attribute `name` of n holds; LNT_NONE if there is none. */
uint32_t lnt_gnode_sub(const lnt_gnode *n, const char *name);
/* Must the value be there under its name whoever reads it? */
static inline bool lnt_gvalue_is_kept(const lnt_gvalue *v)
{
    return v->keep || v->measured;
}

/* View of a node as the operators' functions want it. */
void lnt_gnode_view(const lnt_gnode *n, lnt_node *view);

static inline const lnt_operand *lnt_ginfo(const lnt_graph *g, uint32_t value)
{
    return value == LNT_NONE ? NULL : &g->value[value].info;
}

/* ---- passes ---- */

typedef struct lnt_pass_count { /* a line of the report */
    const char *pass;
    const char *what; /* "Conv+BN folded", ... */
    unsigned count;
} lnt_pass_count;

typedef struct lnt_report lnt_report; /* convert/graph/report.h */

#endif
