/* report.h — what a conversion did; cli/verb_convert.c prints it. */
#ifndef LNT_CONVERT_GRAPH_REPORT_H
#define LNT_CONVERT_GRAPH_REPORT_H

#include "convert/graph/graph.h"

typedef struct lnt_unsupported { /* one node that cannot be converted */
    const char *node, *domain, *op;
    int64_t opset;
    const char *reason; /* unknown operator, type, attribute at fault; and the way out where there is one */
} lnt_unsupported;

/* A layer that can be quantized. Figures that were not measured are negative. */
typedef struct lnt_quantized {
    const char *node, *op;
    unsigned bits;            /* of its weights, where these are quantized; else 0 */
    bool int8;                /* computed on integers */
    bool narrow;              /* in float, with weights that are int8 in the file */
    bool half;                /* in float, with weights of lnt_report.precision */
    const char *why;          /* where it stays in float */
    uint64_t before, after;   /* bytes of weights */
    double multiplications;   /* in a trial run */
    double snr;               /* dB, of the layer by itself */
    double plain_us, int8_us; /* in a trial run, one thread; by a cost table where one is given */
    /* By a cost table, of a layer that static quantization could take: to bring what it reads to float and what it
     * gives to int8, where it is float among others that are not. */
    double borders_us;
} lnt_quantized;

typedef struct lnt_output_error { /* the quantized model against the float one */
    const char *output;
    bool inner;                     /* a value that was named (--measure), not an output */
    const char *unmeasurable;       /* why the figures say nothing: "is constant"; NULL: they do */
    double snr, max_error, largest; /* dB; of the elements; largest magnitude expected */
} lnt_output_error;

enum { LNT_FORM_TEAMS = 2, LNT_FORMS_MOST = 4 };

typedef struct lnt_form_time { /* a form of the whole model that --int8 auto has tried */
    const char *form;
    bool chosen;
    double us[LNT_FORM_TEAMS]; /* of a run on one thread, on all */
} lnt_form_time;

struct lnt_report {
    lnt_bump memory;
    lnt_pass_count *pass;
    size_t n_passes, pass_capacity;
    lnt_unsupported *unsupported;
    size_t n_unsupported, unsupported_capacity;
    uint64_t onnx_bytes, lnt_bytes, constant_bytes, packed_bytes, duplicated_bytes;
    uint64_t padding_bytes;              /* of packed constants, in the file */
    uint64_t winograd_bytes, taps_bytes; /* transformed weights, and what they take otherwise */
    double
        winograd_error_bound; /* of their outputs, over the largest |input| times a feature's sum of |taps| */
    uint32_t nodes_before, nodes_after, relayouts;
    bool was_half;       /* the model is of float16 or bfloat16, and computed in float */
    bool rounds_to_int8; /* the model holds operators that quantize at run */
    lnt_quantized *quantized;
    size_t n_quantized;
    lnt_dtype precision; /* that weights were rounded to (--precision); 0: none were */
    lnt_output_error *output_error;
    size_t n_output_errors;
    const char *trial_inputs; /* what the figures were measured on; NULL: not measured, for this reason: */
    const char *trial_failure;
    lnt_form_time form[LNT_FORMS_MOST];
    size_t n_forms;
    const char
        *stream; /* where the sound can be computed from piece by piece, or why nowhere; NULL: no sound */
    const char *no_golden; /* why the reference run gave no golden vectors; NULL: it did, or was not wanted */
    size_t calibrated_on, measured_on; /* inputs */
};

void lnt_report_init(lnt_report *r);
void lnt_report_free(lnt_report *r);
/* Adds to the line of (pass, what). what NULL, as lnt_report_text gives it when memory is short: E_MEMORY. */
lnt_status lnt_report_count(lnt_report *r, const char *pass, const char *what, unsigned count);
lnt_status lnt_report_unsupported(lnt_report *r, const lnt_unsupported *u);
/* Text in the bump of the report. */
const char *lnt_report_text(lnt_report *r, const char *format, ...) LNT_PRINTF(2, 3);

#endif
