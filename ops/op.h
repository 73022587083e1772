/* op.h — what an operator is: a row, a shape rule, a bind function, kernels.
 *
 * An operator's row stands in ops/list.h. Its shape rule gives the outputs' extents, at conversion with some
 * extents still unknown (negative) and at bind with all known. Its bind function, called once all extents are
 * known, checks types, chooses the kernel and prepares parameters; it may ask for scratch memory, declare
 * an output to be a view of an input, or allow the output to take an input's memory. The kernel runs. */
#ifndef LNT_OPS_OP_H
#define LNT_OPS_OP_H

#include "base/cpu.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "formats/lnt_format.h"

typedef struct lnt_op lnt_op;
typedef struct lnt_site lnt_site;
typedef struct lnt_program lnt_program; /* ops/elementwise/program.h */
typedef struct lnt_kernels lnt_kernels; /* ops/kernels.h */
typedef struct lnt_text lnt_text;       /* base/word_table.h */

typedef struct lnt_attr {
    const char *name;
    lnt_attr_type type;
    uint32_t count; /* of ints, floats or strings; length of a string; 1 otherwise */
    union {
        const int64_t *i; /* of a graph: the number of the subgraph */
        const float *f;
        const char *s;
        const char *const *strings;
        const lnt_operand *tensor;
    };
} lnt_attr;

#define LNT_NONE UINT32_MAX /* a skipped operand in lnt_node.in/out */

/* One operator instance of a model. Immutable, shared by sessions. */
typedef struct lnt_node {
    const lnt_op *op;
    const char *name;         /* of the ONNX node; never NULL */
    const uint32_t *in, *out; /* value numbers, LNT_NONE where skipped */
    uint16_t n_in, n_out;
    uint16_t n_program_in; /* the last n_program_in inputs are operands of program */
    uint16_t n_attr;
    const lnt_attr *attr;
    const lnt_program
        *program;        /* a fused operator's whole work, or the epilogue of a GEMM-like one; or NULL */
    uint32_t index;      /* position in the model */
    bool evaluate_early; /* feeds shapes: computed at bind as soon as its inputs are known */
    const lnt_custom_op *custom; /* of a Custom node: what the host registered */
} lnt_node;

#define LNT_MAX_VIEWS 64 /* outputs of a node that may be views; later ones have memory of their own */

/* One operator where shapes are worked out: at conversion, at bind, or in the middle of a run. */
struct lnt_site {
    const lnt_node *node;
    lnt_operand *const *in;  /* [n_in], NULL where skipped */
    lnt_operand *const *out; /* [n_out], NULL where not wanted */
    unsigned n_in, n_out;
    lnt_error *err;
    /* For shape rules that look into contents: memory for the moment (NULL: malloc's), and a kernel to be polled
     * by what takes long, or NULL. */
    const lnt_allocator *allocator;
    lnt_kernel *watch;
    void *kept; /* what a shape rule leaves to the bind function, in `memory` if that is not NULL for it */
    lnt_text *text; /* the words that numbers stand for; NULL: at conversion, and in models without text */

    /* The rest is set for the bind function only. */
    lnt_step *step;
    lnt_bump *memory; /* for parameters; dies with the binding; a shape rule's, too, where binding follows */
    lnt_level level;
    const lnt_kernels *kernels; /* of that level */
    unsigned threads;
    bool half; /* the kernel is to be one of half arithmetic (ops/half_kernels.h) */
    /* NULL, or a step that can compute input 0 line by line and has no other reader: a candidate for row fusion,
     * which sets step->producer. */
    const lnt_step *producer;
    /* Answers of the bind function, read by the planner. */
    int16_t view_of[LNT_MAX_VIEWS];    /* per output: input it is a view of, or -1 */
    size_t view_offset[LNT_MAX_VIEWS]; /* bytes into that input */
};

/* What a shape rule returns when extents depend on a value not known yet. Not a failure. */
#define LNT_UNKNOWN ((lnt_status)-1)

typedef lnt_status (*lnt_bind_fn)(lnt_site *site);

/* How output types follow; the shape rule may set them itself for LNT_TYPE_RULE. */
typedef enum lnt_type_rule {
    LNT_TYPE_IN0, /* all outputs as input 0 */
    LNT_TYPE_IN1, /* as input 1 */
    LNT_TYPE_IN2,
    LNT_TYPE_BOOL,
    LNT_TYPE_INT64,
    LNT_TYPE_FLOAT,
    LNT_TYPE_INDEX, /* output 0 as input 0, output 1 int64 (MaxPool, TopK) */
    LNT_TYPE_RULE   /* set by the shape rule, which is called even if ranks are unknown */
} lnt_type_rule;

/* Row flags. */
enum {
    LNT_OP_CL = 1 << 0, /* takes operand 0 channels-last and gives output 0 channels-last */
    LNT_OP_ELEMENTWISE =
        1 << 1,                 /* a program instruction: any order, fuses (ops/elementwise/program_list.h) */
    LNT_OP_EPILOGUE = 1 << 2,   /* can carry a program on its output */
    LNT_OP_ANY_RANK = 1 << 3,   /* shape rule also works on inputs of unknown rank */
    LNT_OP_CONTROL = 1 << 4,    /* If, Loop, Scan: bound by the runtime */
    LNT_OP_RANDOM = 1 << 5,     /* draws random numbers: never folded, never merged */
    LNT_OP_VIEW = 1 << 6,       /* usually moves no data */
    LNT_OP_EXTENTS = 1 << 7,    /* reads its inputs' extents, never their contents */
    LNT_OP_CHEAP = 1 << 8,      /* of small tensors it is computed at bind, where extents depend on it */
    LNT_OP_COUNTS = 1 << 9,     /* how many elements it gives depends on the contents of its inputs */
    LNT_OP_INT8 = 1 << 10,      /* multiplies int8: needs the int8 kernels, and constants packed for them */
    LNT_OP_ANY_ORDER = 1 << 11, /* operands may be in any storage order, each in its own */
    LNT_OP_QUANTIZED = 1 << 12, /* reads or gives quantized values: needs the kernels of int8 rows */
    LNT_OP_CONVOLVES = 1 << 13, /* operand 0 may be in another storage order than output 0 */
    LNT_OP_PARTS = 1 << 14,     /* all outputs are in the storage order of output 0 */
    LNT_OP_TRIPLES = 1 << 15, /* its tensors are inputs 2, 5, 8, ..., a scale and a zero point behind each */
    LNT_OP_SKIPS_ANY = 1 << 16, /* every input may be skipped */
    LNT_OP_HALVES = 1 << 17, /* float operands may be float16 in memory, each by itself (runtime/halves.c) */
    LNT_OP_HALVES_ALIKE = 1 << 18, /* so they may if all of them are: it moves elements, whatever they mean */
    LNT_OP_TEXT = 1 << 20,         /* reads or makes words (base/word_table.h): never folded */
    LNT_OP_SMALL = 1 << 19 /* knows element types of 8 bits and fewer (base/small.h), or only moves them */
};

/* Flags of operators that take operands of small types. */
#define LNT_OP_TAKES_SMALL (LNT_OP_SMALL | LNT_OP_HALVES_ALIKE)

/* Row flag: input i < 8 may be skipped, though it is none of the optional ones at the end. */
#define LNT_OP_SKIPS(i) (1u << (24 + (i)))

/* Domains of operators; lnt_op_domain has their texts. */
typedef enum { LNT_DOMAIN_ONNX, LNT_DOMAIN_MICROSOFT, LNT_DOMAIN_ML, LNT_DOMAIN_LINNET } lnt_domain;

/* A pointer in a table costs four times its size in a shared library, which relocates it: there are none here. */
struct lnt_op {
    uint16_t id;                              /* in files; never reused */
    uint16_t name_at;                         /* lnt_op_name */
    uint8_t version;                          /* of its meaning: raised when the meaning changes */
    uint8_t domain;                           /* lnt_domain */
    uint8_t in_min, in_max, out_min, out_max; /* max 255: any number */
    uint8_t type_rule;
    uint8_t value_inputs; /* bit i: the shape rule reads the contents of input i */
    uint32_t flags;
};

/* Operators by number: LNT_ID_Conv, ... */
enum {
#define OP(id, version, ident, ...) LNT_ID_##ident = id,
#define ABSENT(id, ident) LNT_ID_##ident = id, /* of a trimmed list (boards/trim.py) */
#include "ops/list.h"
#undef ABSENT
#undef OP
    LNT_ID_END
};

/* Is the operator in this library's list? LNT_HAS_Conv, ...: tables leave out what only an absent one would
 * call, and the linker drops it. */
enum {
#define OP(id, version, ident, ...) LNT_HAS_##ident = 1,
#define ABSENT(id, ident) LNT_HAS_##ident = 0,
#include "ops/list.h"
#undef ABSENT
#undef OP
    LNT_HAS_END
};

/* Those of ops/gemm/matmul.c, one at least. */
enum { LNT_HAS_MATRICES = LNT_HAS_MatMul || LNT_HAS_Gemm || LNT_HAS_FusedMatMul };

/* Their shape rules and bind functions; several rows may share one. They run once, and are compiled for size, as is
 * what they alone call: `cold`. */
#define OP(id, version, ident, domain, name, imin, imax, omin, omax, types, shape, bind, values, flags)      \
    __attribute__((cold)) lnt_status lnt_shape_##shape(lnt_site *site);                                      \
    __attribute__((cold)) lnt_status lnt_bind_##bind(lnt_site *site);
#include "ops/list.h"
#undef OP

/* The shape rule and the bind function of the row of site->node. */
lnt_status lnt_row_shape(lnt_site *site);
lnt_status lnt_row_bind(lnt_site *site);

/* The whole list, ordered as ops/list.h. */
extern const lnt_op lnt_ops[];
extern const unsigned lnt_op_count;

const char *lnt_op_name(const lnt_op *op);
/* "" is ai.onnx. */
const char *lnt_op_domain(const lnt_op *op);
/* NULL if there is none. */
const lnt_op *lnt_op_by_name(const char *domain, const char *name);
const lnt_op *lnt_op_by_id(unsigned id);
/* May input i be skipped? Those past the least number may, but not where any number is allowed; others where
 * the row says so. */
bool lnt_op_may_skip(const lnt_op *op, unsigned i);
/* Is input i a tensor whose storage order output 0 shares, of an operator that takes channels-last? */
bool lnt_op_is_image(const lnt_op *op, unsigned i);

/* Inputs whose contents the node's shape rule reads, as bits. */
uint32_t lnt_node_value_inputs(const lnt_node *node);

/* ---- attributes: the value, or the default where the node has none ---- */
const lnt_attr *lnt_attr_find(const lnt_node *node, const char *name);
/* The attribute if it is there and of that type, else NULL. */
const lnt_attr *lnt_attr_of(const lnt_node *node, const char *name, lnt_attr_type type);
int64_t lnt_attr_i(const lnt_node *node, const char *name, int64_t otherwise);
float lnt_attr_f(const lnt_node *node, const char *name, float otherwise);
const char *lnt_attr_s(const lnt_node *node, const char *name, const char *otherwise);
/* Where the text of attribute `name`, list[0] if there is none, stands in list[0 .. n); -1: nowhere. */
int lnt_attr_choice(const lnt_node *node, const char *name, const char *const *list, int n);
/* Fills out[0..n) from an INTS attribute of exactly n values, or with otherwise where there is none. */
lnt_status lnt_attr_ints(const lnt_site *site, const char *name, int64_t *out, unsigned n, int64_t otherwise);

/* ---- for shape rules and bind functions ---- */

/* Works out the output types by the row's rule, then calls its shape rule. Outputs that stay unknown have
 * rank LNT_RANK_UNKNOWN. Returns LNT_UNKNOWN when values are missing, or a failure that names the node. */
lnt_status lnt_site_shape(lnt_site *site);

/* Sets output i's rank and extents (nothing if the output is not wanted). */
void lnt_set_dims(lnt_site *site, unsigned i, unsigned rank, const int64_t *dims);
void lnt_set_dims_like(lnt_site *site, unsigned i, const lnt_operand *like);
void lnt_set_type(lnt_site *site, unsigned i, lnt_dtype dtype);

static inline const lnt_operand *lnt_input(const lnt_site *site, unsigned i)
{
    return i < site->n_in ? site->in[i] : NULL;
}

static inline lnt_operand *lnt_output(const lnt_site *site, unsigned i)
{
    return i < site->n_out ? site->out[i] : NULL;
}

/* Reads input i, an integer tensor, into out[0..*n); LNT_UNKNOWN if its contents are not known yet.
 * *n is in: capacity, out: number of elements. A skipped input gives *n = 0 and sets *given (may be NULL)
 * false. */
lnt_status lnt_value_ints(const lnt_site *site, unsigned i, int64_t *out, unsigned *n, bool *given);
/* The same for floating-point inputs (float, double, float16, bfloat16). */
lnt_status lnt_value_floats(const lnt_site *site, unsigned i, double *out, unsigned *n, bool *given);

/* Brings axis into [0, rank); fails naming the node. */
lnt_status lnt_axis(const lnt_site *site, int64_t axis, unsigned rank, unsigned *out);
/* Extents of the ONNX multidirectional broadcast of a and b into out; *rank is in/out of out. */
lnt_status lnt_broadcast_dims(const lnt_site *site, unsigned *rank, int64_t *out, const lnt_operand *b);

/* Arithmetic on extents that keeps "unknown". */
static inline int64_t lnt_dim_add(int64_t a, int64_t b)
{
    int64_t r;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &r) ? LNT_DIM_UNKNOWN : r;
}

int64_t lnt_dim_mul(int64_t a, int64_t b);

/* One channel or one position: the operand is the same bytes in both storage orders. */
bool lnt_order_free(const lnt_operand *o);

/* ---- for bind functions ---- */
#define LNT_SITE_FAIL(site, code, ...) lnt_fail((site)->err, (code), __VA_ARGS__)

/* Zeroed parameters that live as long as the binding; NULL with the error set. */
void *lnt_bind_params(lnt_site *site, size_t bytes);
/* Scratch memory of bytes for the step (all threads together; per-thread needs are multiplied by the caller
 * with lnt_round_up(per_thread, 64) * site->threads). */
void lnt_bind_scratch(lnt_site *site, size_t bytes);
/* Room for n elements of a size at the end of what the step's scratch memory is to be: *at is a multiple of
 * 64, *total is moved on. False on overflow, or if n < 0. */
bool lnt_reserve(size_t *total, int64_t n, size_t size, size_t *at);
/* Output out is input in, seen with other extents, starting offset bytes in: no step runs if all outputs are.
 * False where that cannot be (out >= LNT_MAX_VIEWS, a packed input): then the kernel has to copy. */
bool lnt_bind_view(lnt_site *site, unsigned out, unsigned in, size_t offset);
/* Output out (only 0 is taken up) may be computed in the memory of input in, if that dies here. */
void lnt_bind_in_place(lnt_site *site, unsigned out, unsigned in);
/* The kernel asks for the pitch of output 0 when it runs (lnt_operand_pitch), and writes rows that far apart. */
void lnt_bind_pitched(lnt_site *site);
/* The same of input in and of reading. */
void lnt_bind_pitched_input(lnt_site *site, unsigned in);
/* Inputs may be computed at join[0 .. n_in) within output 0. The kernel finds those that were in the storage
 * of output 0 and leaves them alone. join lives as long as the binding. */
void lnt_bind_join(lnt_site *site, const lnt_join *join);
/* The step appends to n caches. append lives as long as the binding. */
void lnt_bind_append(lnt_site *site, const lnt_append *append, unsigned n);
/* "not for int8": fails with E_UNSUPPORTED naming operator and type. */
lnt_status lnt_bind_unsupported_type(lnt_site *site, lnt_dtype dtype);

/* A whole operator on the spot, as constant folding and early evaluation need it: operands in[] hold their
 * contents in data, outputs have types and extents, out_data[i] receives output i. One thread.
 * Not for control flow. Parameters and scratch memory come from `a`. */
lnt_status lnt_evaluate(const lnt_allocator *a, const lnt_node *node, lnt_operand *const *in,
                        lnt_operand *const *out, void *const *out_data, lnt_level level, uint64_t seed,
                        lnt_error *err);

/* The two halves of it, for what is to run again and again or to be stopped: an operator by itself, bound to its
 * operands' contents. *solo must stay where it is. */
typedef struct lnt_solo {
    lnt_site site;
    lnt_step step;
    lnt_kernel kernel; /* its seed is 0: set it before a run */
    void *const *out_data;
} lnt_solo;

lnt_status lnt_solo_bind(lnt_solo *solo, lnt_bump *memory, const lnt_node *node, lnt_operand *const *in,
                         lnt_operand *const *out, void *const *out_data, lnt_level level, lnt_error *err);
lnt_status lnt_solo_run(lnt_solo *solo);

/* Prepares site for the bind function: a step with the node's operands, no views, nothing in place. */
void lnt_site_begin_bind(lnt_site *site, lnt_step *step, lnt_bump *memory, lnt_level level, unsigned threads);

/* Calls the bind function, but of a step all of whose outputs have no elements, whatever its inputs and its windows
 * reach over: it has nothing to do. The host's operators are bound and run all the same. */
lnt_status lnt_site_bind(lnt_site *site);

/* Shape rules several operators share. */
lnt_status lnt_shape_same(lnt_site *site);      /* every output like input 0 */
lnt_status lnt_shape_broadcast(lnt_site *site); /* output 0: all inputs broadcast */

#endif
