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
    uint32_t in[48], out[8];
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
    if (rank)
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

/* A node of the subgraph with outputs that are there already. */
static inline lnt_gnode *builder_node_to(builder *b, uint32_t sub, const char *op, const char *name,
                                         unsigned n_in, const uint32_t *in, unsigned n_out,
                                         const uint32_t *out)
{
    const lnt_op *row = lnt_op_by_name("", op);
    row = row ? row : lnt_op_by_name("linnet", op);
    assert_non_null(row);
    lnt_gnode *n = lnt_graph_add_node(&b->g, sub, NULL, row, name, in, n_in, out, n_out);
    assert_non_null(n);
    return n;
}

/* A node of the subgraph with one output called name. */
static inline uint32_t builder_node_in(builder *b, uint32_t sub, const char *op, const char *name,
                                       unsigned n_in, const uint32_t *in)
{
    const uint32_t out = lnt_graph_add_value(&b->g, name);
    builder_node_to(b, sub, op, name, n_in, in, 1, &out);
    return out;
}

/* A node of one output called name. */
static inline uint32_t builder_node(builder *b, const char *op, const char *name, unsigned n_in,
                                    const uint32_t *in)
{
    return builder_node_in(b, 0, op, name, n_in, in);
}

static inline uint32_t builder_int(builder *b, const char *name, int64_t value)
{
    return lnt_graph_add_constant(&b->g, name, LNT_INT64, 0, NULL, &value, sizeof value);
}

/* A subgraph that a node holds; must stay where it is until the graph is a file. */
typedef struct builder_body {
    uint32_t sub, in[6], out[6];
    unsigned n_in, n_out;
} builder_body;

static inline void body_begin(builder *b, builder_body *body, const char *name)
{
    *body = (builder_body){.sub = lnt_graph_add_sub(&b->g, name)};
}

/* An input of whose extents the file says nothing. */
static inline uint32_t body_input(builder *b, builder_body *body, const char *name, lnt_dtype dtype)
{
    const uint32_t v = lnt_graph_add_value(&b->g, name);
    b->g.value[v].info.dtype = (uint8_t)dtype;
    return body->in[body->n_in++] = v;
}

static inline void body_output(builder_body *body, uint32_t value)
{
    body->out[body->n_out++] = value;
}

/* Becomes the attribute of n. */
static inline void body_end(builder *b, builder_body *body, lnt_gnode *n, const char *attr)
{
    const int64_t number = body->sub;
    lnt_gsubgraph *sub = &b->g.sub[body->sub];
    sub->in = body->in;
    sub->n_in = body->n_in;
    sub->out = body->out;
    sub->n_out = body->n_out;
    must(lnt_gnode_set_attr(&b->g, n,
                            &(lnt_attr){.name = attr, .type = LNT_ATTR_GRAPH, .count = 1, .i = &number}),
         &b->err);
}

static inline void builder_set_ints(builder *b, lnt_gnode *n, const char *name, unsigned count,
                                    const int64_t *ints)
{
    must(lnt_gnode_set_attr(&b->g, n,
                            &(lnt_attr){.name = name, .type = LNT_ATTR_INTS, .count = count, .i = ints}),
         &b->err);
}

static inline void builder_output(builder *b, uint32_t value)
{
    b->out[b->n_out++] = value;
}

static inline void builder_take_ends(builder *b)
{
    lnt_gsubgraph *sub = &b->g.sub[0];
    sub->in = b->in;
    sub->n_in = b->n_in;
    sub->out = b->out;
    sub->n_out = b->n_out;
}

/* The graph as it stands becomes a file, without inference and passes: it declares nothing that was not set, and what
 * the converter would refuse is in it. *image is to be freed with lnt_free. */
static inline void builder_emit(builder *b, void **image, size_t *size)
{
    builder_take_ends(b);
    must(lnt_emit(&b->g, &b->report, NULL, image, size), &b->err);
    lnt_graph_free(&b->g);
    lnt_report_free(&b->report);
}

/* Converts and opens; *image is to be freed with lnt_free after the model is closed. */
static inline lnt_model *builder_end(builder *b, lnt_opt opt, void **image)
{
    lnt_model *model = NULL;
    size_t size = 0;
    builder_take_ends(b);
    must(lnt_graph_infer(&b->g), &b->err);
    must(lnt_run_passes(&b->g, opt, &b->report), &b->err);
    builder_emit(b, image, &size);
    must(lnt_model_create_from_memory(*image, size, NULL, &model, &b->err), &b->err);
    return model;
}

/* A convolution of LINES_MANY channels without a bias. Of two, the first with taps of 1, the second with a group for
 * each channel, the second may take the lines of the first's image as they are made. */
enum {
    LINES_FEW = 10,
    LINES_MANY = 70,
    LINES_HIGH = 72,
    LINES_WIDE = 41,
    LINES_IMAGE = LINES_FEW * LINES_HIGH * LINES_WIDE
};
static inline uint32_t builder_conv(builder *b, const char *name, uint32_t x, int64_t each, int64_t taps,
                                    int64_t group)
{
    static float w[LINES_MANY * LINES_FEW];
    const int64_t dims[] = {LINES_MANY, each, taps, taps}, pad = taps / 2, pads[] = {pad, pad, pad, pad};
    for (int i = 0; i < LINES_MANY * LINES_FEW; i++)
        w[i] = (float)(i % 7 - 3);
    const size_t bytes = (size_t)(LINES_MANY * each * taps * taps) * sizeof *w;
    const uint32_t in[] = {x, lnt_graph_add_constant(&b->g, "w", LNT_FLOAT, 4, dims, w, bytes)};
    const uint32_t y = builder_node(b, "Conv", name, 2, in);
    builder_set_ints(b, b->g.value[y].producer, "pads", 4, pads);
    must(lnt_gnode_set_int(&b->g, b->g.value[y].producer, "group", group), &b->err);
    return y;
}

/* A model of the builder's and a session on one thread. */
typedef struct built {
    void *image;
    size_t size;
    lnt_model *model;
    lnt_session *session;
    lnt_error err;
} built;

static inline void built_session(built *t)
{
    const lnt_session_options options = {.struct_bytes = sizeof options, .intra_op_num_threads = 1};
    must(lnt_session_create(t->model, &options, &t->session, &t->err), &t->err);
}

/* The graph as it stands. */
static inline void built_as_is(built *t, builder *b)
{
    *t = (built){.size = 0};
    builder_emit(b, &t->image, &t->size);
    must(lnt_model_create_from_memory(t->image, t->size, NULL, &t->model, &t->err), &t->err);
    built_session(t);
}

static inline void built_close(built *t)
{
    lnt_session_destroy(&t->session);
    lnt_model_destroy(&t->model);
    lnt_free(&lnt_malloc_allocator, t->image);
}

static inline lnt_status built_set(built *t, uint32_t i, lnt_dtype dtype, unsigned rank, const int64_t *dims,
                                   const void *data)
{
    lnt_tensor in = {.dtype = dtype, .rank = rank, .data = (void *)(uintptr_t)data};
    if (rank)
        memcpy(in.dims, dims, rank * sizeof *dims);
    in.bytes = SIZE_MAX;
    return lnt_set_input(t->session, i, &in, &t->err);
}

/* The call, whose error is in t, must have failed so, with a message that holds both words. */
static inline void expect_refused(const built *t, lnt_status status, lnt_status expected, const char *who,
                                  const char *words)
{
    if (status != expected || t->err.code != expected || !strstr(t->err.message, who) ||
        !strstr(t->err.message, words))
        fail_msg("%s: \"%s\" does not say \"%s\", \"%s\"", lnt_status_text(status), t->err.message, who,
                 words);
}

#endif
