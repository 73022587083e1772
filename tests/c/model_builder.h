/* model_builder.h — small models for tests: a graph built by hand, converted and opened. */
#ifndef LNT_TESTS_MODEL_BUILDER_H
#define LNT_TESTS_MODEL_BUILDER_H

#include "convert/convert.h"
#include "convert/emit/emit.h"
#include "convert/passes/passes.h"
#include "runtime/linnet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct builder {
    lnt_graph g;
    lnt_report report;
    lnt_error err;
    uint32_t in[8], out[8];
    unsigned n_in, n_out;
} builder;

static inline void must(lnt_status status, const lnt_error *err)
{
    if (status != LNT_OK)
        fail_msg("%s: %s", lnt_status_text(status), err->message);
}

static inline void builder_begin(builder *b)
{
    memset(b, 0, sizeof *b);
    lnt_graph_init(&b->g, &lnt_malloc_allocator, &b->err);
    lnt_report_init(&b->report);
    if (b->g.n_subs == 0)
        assert_int_equal(lnt_graph_add_sub(&b->g, "main"), 0);
}

/* A graph input; an extent of -2 - k is the symbol "sK", which is made on first use. */
static inline uint32_t builder_input(builder *b, const char *name, lnt_dtype dtype, unsigned rank,
                                     const int64_t *dims)
{
    const uint32_t v = lnt_graph_add_value(&b->g, name);
    lnt_operand *o = &b->g.value[v].info;
    o->dtype = (uint8_t)dtype;
    o->rank = (uint8_t)rank;
    memcpy(o->dims, dims, rank * sizeof *dims);
    for (unsigned d = 0; d < rank; d++)
        while (dims[d] <= -2 && b->g.n_symbols <= (size_t)(-2 - dims[d])) {
            char *symbol = lnt_bump_string(&b->g.memory, "s0", 2, &b->err);
            symbol[1] = (char)('0' + b->g.n_symbols);
            must(LNT_GROW(&lnt_malloc_allocator, b->g.symbol, b->g.symbol_capacity, b->g.n_symbols, &b->err), &b->err);
            b->g.symbol[b->g.n_symbols++] = (lnt_gsymbol){.name = symbol, .value = v, .axis = d, .bound = -1};
        }
    b->in[b->n_in++] = v;
    return v;
}

/* A node of one output called name. */
static inline uint32_t builder_node(builder *b, const char *op, const char *name, unsigned n_in, const uint32_t *in)
{
    const lnt_op *row = lnt_op_by_name("", op);
    assert_non_null(row);
    const uint32_t out = lnt_graph_add_value(&b->g, name);
    assert_non_null(lnt_graph_add_node(&b->g, 0, NULL, row, name, in, n_in, &out, 1));
    return out;
}

static inline void builder_output(builder *b, uint32_t value)
{
    b->out[b->n_out++] = value;
}

/* Converts and opens; *image is to be freed with lnt_free after the model is closed. */
static inline lnt_model *builder_end(builder *b, lnt_opt opt, void **image)
{
    lnt_gsubgraph *sub = &b->g.sub[0];
    lnt_model *model = NULL;
    size_t size = 0;
    sub->in = b->in;
    sub->n_in = b->n_in;
    sub->out = b->out;
    sub->n_out = b->n_out;
    must(lnt_graph_infer(&b->g), &b->err);
    must(lnt_run_passes(&b->g, opt, &b->report), &b->err);
    must(lnt_emit(&b->g, &b->report, NULL, image, &size), &b->err);
    must(lnt_model_create_from_memory(*image, size, NULL, &model, &b->err), &b->err);
    lnt_graph_free(&b->g);
    lnt_report_free(&b->report);
    return model;
}

#endif
