/* fastest.h — --int8 auto: which form of a whole model is fastest (fastest.c), and how a form is made
 * (convert.c). */
#ifndef LNT_CONVERT_FASTEST_H
#define LNT_CONVERT_FASTEST_H

#include "convert/convert.h"
#include "convert/graph/report.h"

typedef struct lnt_original { /* a model to be converted */
    const void *onnx;
    size_t size;
    const char *folder;
    const lnt_convert_options *options;
    const lnt_allocator *memory; /* of its graphs */
} lnt_original;

/* Imports the model into g, newly made, and runs the passes; quantized as `how` says, unless that is NULL. */
lnt_status lnt_make_graph(const lnt_original *source, const lnt_quantize_options *how, lnt_graph *g,
                          lnt_report *report);
/* The same in whichever form is fastest: float, dynamic or static int8. */
lnt_status lnt_make_fastest_graph(const lnt_original *source, lnt_graph *g, lnt_report *report);

#endif
