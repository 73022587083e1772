/* quantize_static.h — static quantization: quantization parameters are fixed at conversion.
 *
 * A value's quantization parameters follow from the range observed on samples. Of the nodes that have an int8 form
 * some are chosen; quantize_plan.c settles which of the others follow them and the quantization parameters (qparams)
 * of every value, quantize_lower.c writes the subgraph's nodes anew. The float nodes are kept: other choices are tried
 * on the same graph.
 *
 * The arithmetic is that of Jacob and others, "Quantization and Training of Neural Networks for Efficient
 * Integer-Arithmetic-Only Inference", 2018: real = scale * (q - zero point), activations uint8 per tensor, weights
 * int8 per output channel, biases int32 in units of both scales; the factor of the sums is a float here. */
#ifndef LNT_CONVERT_QUANTIZE_QUANTIZE_STATIC_H
#define LNT_CONVERT_QUANTIZE_QUANTIZE_STATIC_H

#include "convert/graph/graph.h"
#include "convert/quantize/quantize.h"
#include "convert/quantize/quantize_ranges.h"

typedef enum lnt_qkind {
    LNT_Q_FLOAT,   /* stays in float */
    LNT_Q_PRODUCT, /* Conv, MatMul, Gemm with constant weights */
    LNT_Q_BINARY,  /* Add, Mul */
    LNT_Q_TABLE,   /* a function of one number, or one in each channel */
    LNT_Q_POOL,    /* AveragePool, GlobalAveragePool */
    LNT_Q_CONCAT,
    LNT_Q_MOVE /* elements of the output are elements of the input */
} lnt_qkind;

/* A product as x * weights[.., n] + bias[n]. */
typedef struct lnt_qweights {
    uint32_t weights;                    /* float constant: a convolution's, or [K, N] */
    float factor;                        /* of the weights */
    uint32_t bias;                       /* float constant [N], or LNT_NONE */
    int64_t columns;                     /* N */
    const struct lnt_rounding *rounding; /* or NULL */
    /* What was made for inputs that are equalized, and for others; quantized 0: nothing yet. */
    struct {
        uint32_t quantized, scale;
    } made[2];
    /* What is used, for inputs of scale x_scale, equalized or not; x_scale 0: nothing yet. */
    float x_scale;
    bool x_equalized;
    uint32_t quantized, scale, bias_ints, bias_zero;
} lnt_qweights;

typedef struct lnt_qsite { /* a node of the model, in the order of running */
    lnt_gnode *node;
    lnt_qkind kind;
    uint32_t layer; /* LNT_NONE where the node is none by itself */
    lnt_qweights product;
    int64_t tables;     /* of a function: 1, or one for each channel */
    uint32_t adds_bias; /* site of the Add whose constant is the product's bias; or LNT_NONE */
    /* The plan. */
    bool on;               /* computed in int8 */
    bool to_float;         /* a product that nothing reads as uint8 has a float output */
    bool folded;           /* done by the site before it */
    const lnt_gnode *bend; /* the LeakyRelu or PRelu that is folded behind a convolution; or NULL */
    uint32_t last;         /* the site whose output this one gives: itself, or the last folded into it */
    uint32_t next;         /* the one folded behind this one */
    lnt_gnode *lowered, *behind; /* what was written; a second node that makes floats of its sums */
} lnt_qsite;

typedef struct lnt_qreader {
    uint32_t site, next;
    unsigned operand;
} lnt_qreader;

typedef struct lnt_qvalue { /* a value of the float model */
    uint32_t producer;      /* site, or LNT_NONE */
    uint32_t first_reader;  /* or LNT_NONE */
    bool outside;           /* read by others: an output, kept, or read in a subgraph */
    bool observed;
    float low, high; /* the range to hold; with 0 */
    bool usable;     /* there is such a range */
    /* Of what convolutions read: the range of each channel, and what it may be divided by
     * (quantize_equalize.c); divisor NULL: nothing. */
    int64_t channels; /* 0: not looked at */
    float *channel_low, *channel_high;
    double *channel_sum, channel_count; /* their mean, as sum and elements */
    float *channel_some;                /* [channels][LNT_Q_SOME] elements of each, of which so many */
    unsigned n_some;                    /* are known */
    const float *divisor;
    float equalized_low, equalized_high;
    /* The plan: values of the same quantization parameters; figures count at the group's root. */
    uint32_t group;
    float group_low, group_high, clamp_low, clamp_high;
    float scale;
    int32_t zero;
    uint32_t scale_value, zero_value; /* constants */
    uint32_t twin;                    /* its uint8 twin, LNT_NONE before it was needed */
    bool equalized;                   /* the twin holds channels that were divided */
    bool twin_written;                /* in the nodes written so far */
} lnt_qvalue;

typedef struct lnt_static {
    lnt_graph *g;
    lnt_qsite *site;
    uint32_t n_sites;
    lnt_qvalue *value; /* by number; those made later have none */
    uint32_t n_values;
    uint32_t *twinned; /* values that have twins, in the order in which these were made */
    uint32_t n_twinned;
    lnt_qreader *reader;
} lnt_static;

enum { LNT_Q_CONCAT_MOST = 32 }; /* inputs of a Concat of uint8 */
enum { LNT_Q_SOME = 256 };       /* elements of a channel that are kept */

/* MatMul, Gemm or FusedMatMul n as a product; *turned: its weights are [N, K]. *fits false where it is none. */
lnt_status lnt_qweights_of(lnt_graph *g, const lnt_gnode *n, lnt_qweights *p, bool *turned, bool *fits);

/* Reads operand i of a node of this kind as int8 or uint8? */
bool lnt_q_reads_quantized(const lnt_qsite *s, unsigned operand);

/* Finds the nodes of the main graph that have an int8 form; adds a layer for each but those that only move
 * elements. They are in layers->fixed. */
lnt_status lnt_static_find(lnt_graph *g, lnt_qlayers *layers);
/* The site of a node of the float model; NULL if it is none, or st is NULL. */
const lnt_qsite *lnt_static_site(const lnt_static *st, const lnt_gnode *n);
bool lnt_static_claims(const lnt_static *st, const lnt_gnode *n);
/* The ranges are set: which values can be quantized? */
void lnt_static_set_range(lnt_static *st, uint32_t value, float low, float high);
/* All ranges are set: those that only functions read need not reach where these no longer change
 * (quantize_lower.c). */
lnt_status lnt_static_trim_ranges(lnt_static *st);

/* Channels (quantize_equalize.c): which values to look at, a look at one, and once all have been seen what
 * each may be divided by; then which of them are, in the present plan. */
lnt_status lnt_static_find_channels(lnt_static *st);
void lnt_static_look_at_channels(lnt_qvalue *v, const lnt_tensor *x, size_t samples);
lnt_status lnt_static_equalize(lnt_static *st);
void lnt_static_plan_equalization(lnt_static *st);
/* The mean quantization error of a channel of value v, in the present plan; 0 unless it is much. */
double lnt_static_channel_offset(const lnt_static *st, uint32_t v, int64_t channel);
/* Can what the site reads have a scale for each channel? */
bool lnt_q_can_equalize(const lnt_qsite *s);
/* The slope of a LeakyRelu or PRelu for what is below 0 in that channel. */
float lnt_q_slope(const lnt_graph *g, const lnt_gnode *bend, int64_t channel);
/* The input channel that an element of a convolution's weights w belongs to. */
int64_t lnt_q_weight_channel(const lnt_gnode *conv, const lnt_operand *w, int64_t element);

/* Settles what is computed in int8 when these layers are chosen, and how (quantize_plan.c). */
void lnt_static_plan(lnt_static *st, const lnt_qlayers *layers);
/* Puts the planned nodes into the graph (quantize_lower.c), after lnt_static_plan. */
lnt_status lnt_static_lower(lnt_static *st);
/* Is the node computed in int8 in the present plan, or else why not? */
bool lnt_static_is_on(const lnt_static *st, const lnt_gnode *n);
const char *lnt_static_why(const lnt_static *st, const lnt_gnode *n);
/* The value whose twin this is, or LNT_NONE. */
uint32_t lnt_static_source(const lnt_static *st, uint32_t twin);
const lnt_qvalue *lnt_static_qparams(const lnt_static *st, uint32_t value);

#endif
