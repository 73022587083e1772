/* import.h — what the files of the ONNX import share.
 *
 *   import.c           the model: header, inputs, initializers, outputs
 *   import_node.c      a node: operands, attributes, subgraphs, its way into the graph
 *   import_order.c     nodes in an order that can run
 *   import_function.c  model-local functions, inlined
 *   import_body.c      subgraphs that take the place of their node
 *   import_edges.c     inputs and outputs of the model that are sequences
 *   import_tensor.c    tensors, also those in files beside the model
 *   import_words.c     text that the model alone holds, for which numbers stand
 *   import_text.c      text that comes from outside, too
 *   import_options.c   what the user asked for: extents, states, names to keep, metadata
 *   upgrade*.c         older forms of operators rewritten to the newest
 *   expand*.c          operators made of others
 */
#ifndef LNT_CONVERT_IMPORT_IMPORT_H
#define LNT_CONVERT_IMPORT_IMPORT_H

#include "convert/graph/options.h"
#include "convert/graph/report.h"
#include "convert/import/onnx.pb-c.h"
#include "convert/import/scan.h"

/* Fills g from the model in `onnx`; folder (may be NULL) is where external data may be. */
lnt_status lnt_import(lnt_graph *g, const void *onnx, size_t size, const char *folder,
                      const lnt_convert_options *options, lnt_report *report);

enum {
    LNT_ONNX_OPSET_NEWEST = 28,
    LNT_IMPORT_MAX_CALLS = 64,         /* functions inside functions */
    LNT_IMPORT_MAX_OPERANDS = 1 << 14, /* of one node */
    LNT_IMPORT_MAX_PIECES = 1024       /* in a sequence: bounds what a chain of insertions takes */
};

/* Names that nodes can see. Functions see nothing of their caller: their scope has no outer one. */
typedef struct lnt_scope {
    struct lnt_scope *outer;
    lnt_names names;  /* of values */
    lnt_names wanted; /* values made beforehand, taken when the name is computed (outputs of a function, names
                       * of the model's own) */
} lnt_scope;

static inline lnt_scope lnt_scope_in(lnt_scope *outer, const lnt_graph *g)
{
    return (lnt_scope){.outer = outer, .names.heap = g->memory.allocator, .wanted.heap = g->memory.allocator};
}

/* A model-local function while it is being inlined. */
typedef struct lnt_call {
    const struct lnt_call *outer;
    const lnt_attr *attr; /* given by the node, or defaults */
    unsigned n_attr, depth;
    const char *prefix; /* of the names of its nodes and values */
} lnt_call;

typedef struct lnt_importer {
    lnt_graph *g;
    lnt_report *report;
    const lnt_convert_options *options;
    const char *folder;
    const LntOnnx__Model *model;
    lnt_names functions;     /* see import_function.c */
    uint32_t *inlined_nodes; /* per function: those of its body, calls inlined; 0: not counted yet */
    size_t most_nodes;       /* of the model once its functions are inlined */
    size_t inlined_bytes;    /* of subgraphs, once for each copy (import_body.c) */
    lnt_scope *scope;
    const lnt_call *call; /* NULL outside of functions */
    LntOnnx__OperatorSet *const *opset;
    size_t n_opsets;
    uint32_t sub;     /* where nodes go */
    unsigned nesting; /* subgraphs around them */
    bool text;        /* the model reads words: they are numbered in one list, the graph's (import_text.c) */
    size_t n_nodes;
    lnt_error *err;
} lnt_importer;

/* An ONNX node on its way into the graph: operands are values, attributes read. Rules of upgrade*.c and
 * expand_standard.c change it or replace it by others. Arrays are in the graph's memory. */
typedef struct lnt_inode {
    const char *name, *domain, *op;
    int64_t opset; /* of its domain */
    uint32_t *in, *out;
    unsigned n_in, n_out;
    lnt_attr *attr;
    unsigned n_attr;
    const LntOnnx__Node *inlined; /* where its subgraphs take its place: as the file has it; or NULL */
    bool replaced;                /* others do its work: nothing is left to add */
} lnt_inode;

/* ---- import.c ---- */

/* The model's nodes at `node`, in an order that can run, added to im->sub. */
lnt_status lnt_import_nodes(lnt_importer *im, LntOnnx__Node *const *node, size_t n);
/* A subgraph attribute of `owner`; its number in *sub. */
lnt_status lnt_import_subgraph(lnt_importer *im, const LntOnnx__Graph *graph, const lnt_inode *owner,
                               uint32_t *sub);
/* The initializers of a graph as constants in the innermost scope. */
lnt_status lnt_import_initializers(lnt_importer *im, const LntOnnx__Graph *graph);
/* The value called name in the scopes from the innermost out; LNT_NONE if there is none. */
uint32_t lnt_import_lookup(const lnt_importer *im, const char *name);
/* Binds name to value in the innermost scope; refuses a name bound there already. */
lnt_status lnt_import_bind(lnt_importer *im, const char *name, uint32_t value);
/* Lists something that cannot be converted; LNT_OK unless memory is short. */
lnt_status lnt_import_unsupported(lnt_importer *im, const lnt_inode *n, const char *reason, ...)
    LNT_PRINTF(3, 4);
/* Takes a failure with E_UNSUPPORTED into the list and clears it; passes on any other. */
lnt_status lnt_import_list_failure(lnt_importer *im, const lnt_inode *n, lnt_status status);
/* Text in the graph's memory. */
char *lnt_import_text(lnt_importer *im, const char *format, ...) LNT_PRINTF(2, 3);

/* ---- import_order.c ---- */

/* Fills order[0..n) with the numbers of nodes such that values are computed before they are read. */
lnt_status lnt_import_order(lnt_importer *im, LntOnnx__Node *const *node, size_t n, uint32_t *order);

/* ---- import_node.c ---- */

lnt_status lnt_import_node(lnt_importer *im, const LntOnnx__Node *node);
/* A node whose operands and attributes are known: functions, upgrades, expansions, then the graph. */
lnt_status lnt_import_add(lnt_importer *im, lnt_inode *n);
/* Attributes as they stand in a file; references are resolved from im->call and left out if not given. */
lnt_status lnt_import_attrs(lnt_importer *im, LntOnnx__Attribute *const *proto, size_t n_proto, lnt_inode *n);
/* Value `name` in the innermost scope: a fresh one, or the one that is wanted for it. */
lnt_status lnt_import_define(lnt_importer *im, const char *name, uint32_t *value);

/* ---- import_function.c ---- */

lnt_status lnt_import_index_functions(lnt_importer *im);
/* NULL if the model has no such function. */
const LntOnnx__Function *lnt_import_find_function(lnt_importer *im, const char *domain, const char *name,
                                                  const char *overload);
lnt_status lnt_import_call(lnt_importer *im, const LntOnnx__Function *function, const lnt_inode *n);

/* ---- import_body.c ---- */

/* Do subgraphs of n, whose inputs are known and whose attributes are not, take its place? */
bool lnt_import_inlines(const lnt_importer *im, const lnt_inode *n, const LntOnnx__Node *node);
/* Such a subgraph; NULL if n has none. */
const LntOnnx__Graph *lnt_import_body(const lnt_inode *n, const char *attribute);

/* `times` copies of a subgraph, one behind the other, with operands of their own. */
typedef struct lnt_inlining {
    const char *attribute;
    unsigned n_in, n_out, times;
    uint32_t *in;  /* [times][n_in] */
    uint32_t *out; /* [times][n_out], filled: may be values of `in` or from outside, and no tensors */
    /* Fills the inputs of copy i > 0 where they follow from outputs, or lowers `times` to i; or NULL. */
    lnt_status (*next)(lnt_importer *im, const lnt_inode *n, struct lnt_inlining *l, unsigned i);
} lnt_inlining;

lnt_status lnt_import_inline(lnt_importer *im, const lnt_inode *n, lnt_inlining *l);
/* The same where all outputs have to be tensors of numbers. */
lnt_status lnt_import_inline_tensors(lnt_importer *im, const lnt_inode *n, lnt_inlining *l);

/* ---- import_edges.c ---- */

/* What is said of the length of an input, number `at` of those without initializer; false: nothing. */
bool lnt_import_length(const lnt_importer *im, const LntOnnx__ValueInfo *v, size_t at, int64_t *length);
/* How many inputs sequences may become. */
size_t lnt_import_most_elements(const lnt_importer *im, const LntOnnx__Graph *graph);
/* Refuses --length of what is no input. */
lnt_status lnt_import_check_lengths(lnt_importer *im, const LntOnnx__Graph *graph);
/* The type of the tensors in a sequence, or in an optional sequence; NULL: the value is neither. */
LntOnnx__Type *lnt_import_element_type(const LntOnnx__ValueInfo *v);
/* An input that is an integer or a bool of one element becomes this constant. */
lnt_status lnt_import_fix_count(lnt_importer *im, const LntOnnx__ValueInfo *v, int64_t count);
/* Is it a sequence of tensors? */
bool lnt_import_holds_tensors(const lnt_graph *g, const lnt_gvalue *v);
/* Element i, a tensor, of an output that is a sequence, as an output of its own. */
lnt_status lnt_import_output_element(lnt_importer *im, const char *output, uint32_t sequence, uint32_t i,
                                     uint32_t *value);
/* Metadata `sequence_output.NAME`: which of the model's outputs it is. */
lnt_status lnt_import_record_place(lnt_importer *im, const char *output, size_t place);
/* Metadata `sequence.NAME`. */
lnt_status lnt_import_record_length(lnt_importer *im, const char *name, int64_t length);

/* ---- import_tensor.c ---- */

/* A TensorProto; contents in the graph's memory. E_UNSUPPORTED for types we do not have.
 */
lnt_status lnt_import_tensor(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_operand *tensor,
                             size_t *bytes);
/* The tensor's name alone, in the graph's memory. */
lnt_status lnt_import_tensor_name(lnt_importer *im, const ProtobufCBinaryData *proto, const char **name);

/* Type and extents alone; the type as the file has it. */
lnt_status lnt_import_tensor_header(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_operand *tensor);

/* ---- import_words.c ---- */

/* A TensorProto of text, extents known, becomes one of int64: places in *words. */
lnt_status lnt_import_words(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_operand *tensor,
                            const lnt_words **words);
/* An empty list for at most so many words; NULL if memory is short. */
lnt_words *lnt_words_take(lnt_importer *im, size_t most);
/* The place of word, which is kept, in the list: a new one behind the others if it is not there yet. */
lnt_status lnt_words_add(lnt_importer *im, lnt_names *places, lnt_words *words, const char *word,
                         int64_t *place);
/* Does the output hold elements of input 0, whatever these stand for? */
bool lnt_import_moves_elements(const char *op);
/* Lists n as unsupported if it would compute with what stands for text. */
lnt_status lnt_import_check_words(lnt_importer *im, lnt_inode *n, bool *fine);
/* n is in the graph: if it has moved elements of `from`, its output stands for the same words. */
void lnt_import_carry_words(lnt_importer *im, const lnt_inode *n, uint32_t from);
/* Metadata `classes.OUTPUT` of a model's output, if it stands for words. */
lnt_status lnt_import_record_words(lnt_importer *im, const char *output, uint32_t value);

/* ---- import_text.c ---- */

/* Does the model take words, or work on them? */
bool lnt_import_takes_text(const LntOnnx__Graph *graph);
/* The number of a word in the graph's list, where it is put. */
lnt_status lnt_import_word(lnt_importer *im, const char *word, int64_t *number);
/* A TensorProto of text, extents known: its data become numbers of words, its type stays. */
lnt_status lnt_import_text_tensor(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_operand *tensor);
/* The same of a tensor that was read; bytes of the numbers in *bytes. */
lnt_status lnt_import_number_words(lnt_importer *im, const lnt_tensor *t, lnt_operand *tensor, size_t *bytes);
/* Lists n as unsupported if it would compute with numbers of words. */
lnt_status lnt_import_check_text(lnt_importer *im, lnt_inode *n, bool *fine);
/* n is in the graph: outputs that hold numbers of words are marked. n is as the model has it. */
void lnt_import_carry_text(lnt_importer *im, const lnt_inode *n);

/* ---- import_options.c ---- */

/* Replaces an entry of the same key. */
lnt_status lnt_import_set_meta(lnt_importer *im, const char *key, const char *text);

/* The tensor to bake into input number `input`, counted as lnt_baked does; NULL if there is none. */
const lnt_tensor *lnt_import_baked(const lnt_importer *im, uint32_t input);
bool lnt_import_overridable(const lnt_importer *im, const char *initializer);
/* Names the unknown extents of graph input v, fixed where --dim says so; shared: extents of one name are equal. */
lnt_status lnt_import_input_dims(lnt_importer *im, const LntOnnx__Shape *shape, bool shared, uint32_t value);
/* --bake, --overridable, --state, --keep, --meta, checked against the imported graph. */
lnt_status lnt_import_apply_options(lnt_importer *im);

/* ---- for upgrade*.c and expand_*.c ---- */

/* Adds a node of the newest opset beside n; its only output in *out. `what` is part of its name. */
lnt_status lnt_make(lnt_importer *im, const lnt_inode *n, const char *op, const uint32_t *in, unsigned n_in,
                    const lnt_attr *attr, unsigned n_attr, uint32_t *out);
/* The same, writing to value out. */
lnt_status lnt_make_into(lnt_importer *im, const lnt_inode *n, const char *op, const uint32_t *in,
                         unsigned n_in, const lnt_attr *attr, unsigned n_attr, uint32_t out);
/* The same with any number of outputs, some of them LNT_NONE. op may be "com.microsoft.NAME". */
lnt_status lnt_make_node(lnt_importer *im, const lnt_inode *n, const char *op, const uint32_t *in,
                         unsigned n_in, const lnt_attr *attr, unsigned n_attr, const uint32_t *out,
                         unsigned n_out);
/* An int64 constant: rank 1, or a scalar. */
lnt_status lnt_make_ints(lnt_importer *im, const lnt_inode *n, const char *what, const int64_t *v,
                         size_t count, uint32_t *out);
lnt_status lnt_make_int(lnt_importer *im, const lnt_inode *n, const char *what, int64_t v, uint32_t *out);
lnt_status lnt_make_floats(lnt_importer *im, const lnt_inode *n, const char *what, const float *v,
                           size_t count, uint32_t *out);
/* A scalar of the given floating-point or integer type; v is exact in it or rounded. */
lnt_status lnt_make_scalar(lnt_importer *im, const lnt_inode *n, const char *what, lnt_dtype dtype, double v,
                           uint32_t *out);

const lnt_attr *lnt_inode_attr(const lnt_inode *n, const char *name);
int64_t lnt_inode_i(const lnt_inode *n, const char *name, int64_t otherwise);
float lnt_inode_f(const lnt_inode *n, const char *name, float otherwise);
const char *lnt_inode_s(const lnt_inode *n, const char *name, const char *otherwise);
void lnt_inode_drop(lnt_inode *n, const char *name);
lnt_status lnt_inode_set(lnt_importer *im, lnt_inode *n, const lnt_attr *attr); /* replaces */
lnt_status lnt_inode_set_i(lnt_importer *im, lnt_inode *n, const char *name, int64_t value);
/* The text is not copied: it must live until the node is in the graph. */
lnt_status lnt_inode_set_s(lnt_importer *im, lnt_inode *n, const char *name, const char *text);
/* Input i becomes value; inputs between are skipped ones. */
lnt_status lnt_inode_set_in(lnt_importer *im, lnt_inode *n, unsigned i, uint32_t value);
static inline uint32_t lnt_inode_in(const lnt_inode *n, unsigned i)
{
    return i < n->n_in ? n->in[i] : LNT_NONE;
}

/* Rewrites n to the newest opset's form. */
lnt_status lnt_upgrade(lnt_importer *im, lnt_inode *n);
/* Replaces n where it is made of other operators. */
lnt_status lnt_expand(lnt_importer *im, lnt_inode *n);
/* The same for com.microsoft, which also has operators of its own that are rewritten in some forms only. */
lnt_status lnt_expand_microsoft(lnt_importer *im, lnt_inode *n);
/* The same for ai.onnx.ml. */
lnt_status lnt_expand_ml(lnt_importer *im, lnt_inode *n);
/* The same for ai.onnx.preview (expand_flex_attention.c). */
lnt_status lnt_expand_preview(lnt_importer *im, lnt_inode *n);

/* Sequences whose length is known become the values in them (expand_sequences.c), also those that go through If and
 * Loop (expand_control.c). */
lnt_status lnt_expand_sequences(lnt_importer *im, lnt_inode *n);
lnt_status lnt_expand_control(lnt_importer *im, lnt_inode *n);
/* Do subgraphs of this If or Loop take its place? */
bool lnt_control_inlined(const lnt_importer *im, const lnt_inode *n, const LntOnnx__Node *node);

#endif
