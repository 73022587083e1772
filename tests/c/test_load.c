/* test_load.c — files that are sound, but whose operators are not given what they need: loading refuses them and names
 * the node; and what else loading is asked for: a host's operators, a host of an older version, constants in panels. */
#include "model_builder.h"

#include "base/memory.h"
#include "formats/packed.h"
#include "runtime/load.h"

static const float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};

/* Loads the graph as it stands. */
static lnt_status load(builder *b, const lnt_model_options *how, built *t)
{
    *t = (built){.size = 0};
    builder_emit(b, &t->image, &t->size);
    return lnt_model_create_from_memory(t->image, t->size, how, &t->model, &t->err);
}

static void refused(builder *b, lnt_status expected, const char *node, const char *words)
{
    built t;
    expect_refused(&t, load(b, NULL, &t), expected, node, words);
    assert_null(t.model);
    built_close(&t);
}

/* ---- operands ---- */

/* A node with inputs x, x, x, ..., of which one is skipped, and outputs of which one is. */
static void begin_node(builder *b, const char *op, unsigned n_in, int no_input, unsigned n_out, int no_output,
                       lnt_gnode **node)
{
    uint32_t in[6], out[6];
    builder_begin(b);
    const uint32_t x = builder_input(b, "x", LNT_FLOAT, 2, (int64_t[]){2, 4});
    for (unsigned i = 0; i < n_in; i++)
        in[i] = (int)i == no_input ? LNT_NONE : x;
    for (unsigned o = 0; o < n_out; o++)
        out[o] = (int)o == no_output ? LNT_NONE : lnt_graph_add_value(&b->g, "y");
    *node = builder_node_to(b, 0, op, "the_node", n_in, in, n_out, out);
    builder_output(b, x);
}

static void test_operands_that_are_not_there(void **state)
{
    (void)state;
    enum { ALL = -1 };
    builder b;
    lnt_gnode *n;
    begin_node(&b, "Add", 1, ALL, 1, ALL, &n);
    refused(&b, LNT_E_FILE, "the_node", "Add with 1 inputs");
    begin_node(&b, "Add", 2, 1, 1, ALL, &n);
    refused(&b, LNT_E_FILE, "the_node", "Add lacks input 1");
    begin_node(&b, "Add", 2, ALL, 2, ALL, &n);
    refused(&b, LNT_E_FILE, "the_node", "Add with 2 outputs");
    begin_node(&b, "Add", 2, ALL, 1, 0, &n);
    refused(&b, LNT_E_FILE, "the_node", "Add lacks output 0");
    begin_node(&b, "Loop", 3, 2, 1, ALL, &n);
    refused(&b, LNT_E_FILE, "the_node", "Loop lacks input 2");
    begin_node(&b, "Scan", 2, 1, 2, ALL, &n);
    refused(&b, LNT_E_FILE, "the_node", "Scan lacks input 1");
}

/* A program is for an elementwise node, an epilogue for a product. */
static void test_programs_that_nothing_carries(void **state)
{
    (void)state;
    static const lnt_instr negate = {.op = LNT_I_NEG};
    builder b;
    lnt_gnode *n;
    for (int epilogue = 0; epilogue < 2; epilogue++) {
        lnt_program p = {.instr = &negate,
                         .n_instr = 1,
                         .n_in = !epilogue,
                         .n_out = 1,
                         .n_regs = 1,
                         .epilogue = epilogue};
        begin_node(&b, "Relu", 1 + !epilogue, -1, 1, -1, &n);
        n->program = &p;
        n->n_program_in = p.n_in;
        refused(&b, LNT_E_FILE, "the_node",
                epilogue ? "Relu cannot carry an epilogue" : "Relu cannot carry an elementwise program");
    }
}

/* ---- control flow ---- */

static void test_subgraphs_that_are_not_there(void **state)
{
    (void)state;
    enum { ALL = -1 };
    builder b;
    lnt_gnode *n;
    begin_node(&b, "If", 1, ALL, 1, ALL, &n);
    refused(&b, LNT_E_FILE, "the_node", "If lacks its then_branch");
    begin_node(&b, "Loop", 3, ALL, 1, ALL, &n);
    must(lnt_gnode_set_int(&b.g, n, "body", 0), &b.err);
    refused(&b, LNT_E_FILE, "the_node", "Loop lacks its body");
}

/* A node of that operator that holds a subgraph without nodes which gives x n_out times. */
static void begin_control(builder *b, const char *op, unsigned n_in, unsigned n_out, const char *attr,
                          builder_body *body, unsigned body_out, lnt_gnode **n)
{
    begin_node(b, op, n_in, -1, n_out, -1, n);
    body_begin(b, body, "subgraph");
    for (unsigned o = 0; o < body_out; o++)
        body_output(body, b->in[0]);
    body_end(b, body, *n, attr);
}

static void test_subgraphs_that_do_not_fit(void **state)
{
    (void)state;
    builder b;
    builder_body body, other;
    lnt_gnode *n;
    begin_control(&b, "If", 1, 1, "then_branch", &body, 2, &n);
    refused(&b, LNT_E_FILE, "the_node", "its then_branch has 0 inputs and 2 outputs");
    begin_control(&b, "If", 1, 1, "then_branch", &body, 1, &n);
    body_begin(&b, &other, "other");
    body_end(&b, &other, n, "else_branch");
    refused(&b, LNT_E_FILE, "the_node", "its else_branch has 0 inputs and 0 outputs");
    begin_control(&b, "Loop", 4, 1, "body", &body, 3, &n);
    refused(&b, LNT_E_FILE, "the_node", "Loop carries 2 values and has 1 outputs");
    begin_control(&b, "Relu", 1, 1, "body", &body, 1, &n);
    refused(&b, LNT_E_FILE, "the_node", "Relu has a subgraph");
}

static void test_scans_of_too_many_inputs(void **state)
{
    (void)state;
    static const struct {
        unsigned n_in, n_out;
        int64_t scans;
    } trial[] = {{3, 3, 0}, {3, 3, 4}, {3, 1, 1}};
    for (unsigned k = 0; k < 3; k++) {
        builder b;
        builder_body body;
        lnt_gnode *n;
        begin_control(&b, "Scan", trial[k].n_in, trial[k].n_out, "body", &body, trial[k].n_out, &n);
        must(lnt_gnode_set_int(&b.g, n, "num_scan_inputs", trial[k].scans), &b.err);
        refused(&b, LNT_E_FILE, "the_node", "of 3 inputs");
    }
}

/* ---- operators of the host's ---- */

static lnt_status same_shape(lnt_custom_call *call)
{
    call->out[0].dtype = call->in[0].dtype;
    call->out[0].rank = call->in[0].rank;
    memcpy(call->out[0].dims, call->in[0].dims, sizeof call->out[0].dims);
    return LNT_OK;
}

/* All elements become the number that user points to. */
static lnt_status fill(lnt_custom_call *call)
{
    for (size_t i = 0; i < call->out[0].bytes / sizeof(float); i++)
        ((float *)call->out[0].data)[i] = *(const float *)call->user;
    return LNT_OK;
}

static void set_text(builder *b, lnt_gnode *n, const char *name, const char *text)
{
    const lnt_attr a = {.name = name, .type = LNT_ATTR_STRING, .count = (uint32_t)strlen(text), .s = text};
    must(lnt_gnode_set_attr(&b->g, n, &a), &b->err);
}

static void test_an_operator_among_several(void **state)
{
    (void)state;
    static float number[] = {1, 2, 3};
    const lnt_custom_op ops[] = {
        {"other", "Op", 0, same_shape, fill, &number[0]}, {"host", "Ope", 0, same_shape, fill, &number[2]},
        {"host", "Op", 0, same_shape, fill, &number[1]},  {"other", "Op", 0, same_shape, fill, &number[0]},
        {"host", "Ope", 0, same_shape, fill, &number[2]},
    };
    const lnt_model_options how = {.struct_bytes = sizeof how, .custom = ops, .n_custom = 5};
    builder b;
    lnt_gnode *n;
    lnt_tensor y;
    built t;
    begin_node(&b, "Custom", 1, -1, 1, -1, &n);
    set_text(&b, n, "custom_domain", "host");
    set_text(&b, n, "custom_name", "Op");
    b.out[0] = n->out[0];
    must(load(&b, &how, &t), &t.err);
    built_session(&t);
    must(built_set(&t, 0, LNT_FLOAT, 2, (int64_t[]){2, 4}, numbers), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_get_output(t.session, 0, &y, &t.err), &t.err);
    for (int i = 0; i < 8; i++)
        assert_true(((const float *)y.data)[i] == 2);
    built_close(&t);
}

/* ---- the host ---- */

static void never(void *user, int severity, const char *message)
{
    (void)user;
    (void)severity;
    fail_msg("a log that an older host does not have was told \"%s\"", message);
}

/* A host compiled with an older header ends earlier: what lies behind its end is not read. */
static void test_a_host_of_an_older_version(void **state)
{
    (void)state;
    lnt_host host = {.struct_bytes = offsetof(lnt_host, log), .log = never};
    lnt_model_options how = {.struct_bytes = sizeof how, .host = &host};
    builder b;
    lnt_gnode *n;
    built t;
    begin_node(&b, "Relu", 1, -1, 1, -1, &n);
    must(load(&b, &how, &t), &t.err);
    built_session(&t); /* log_severity_level 0: all is told */
    must(built_set(&t, 0, LNT_FLOAT, 2, (int64_t[]){2, 4}, numbers), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    built_close(&t);
}

/* ---- constants in panels ---- */

enum { ROWS = 20, WIDTH = 5 };

/* int8 [ROWS, WIDTH] in panels, as a MatMul by its transpose wants it. */
static uint32_t packed_table(builder *b, int8_t *table, void *panels, lnt_packed *record)
{
    size_t bytes;
    *record = lnt_packed_panels(LNT_SOURCE_NK, 1, WIDTH, ROWS);
    record->layout = LNT_LAYOUT_PANEL_I8;
    for (int i = 0; i < ROWS * WIDTH; i++)
        table[i] = (int8_t)(i - 50);
    const uint32_t v =
        lnt_graph_add_constant(&b->g, "table", LNT_INT8, 2, (int64_t[]){ROWS, WIDTH}, table, ROWS * WIDTH);
    assert_true(lnt_packed_bytes(record, &bytes));
    lnt_pack(record, LNT_INT8, table, panels);
    b->g.value[v].info.packed = record;
    b->g.value[v].info.data = panels;
    b->g.value[v].bytes = bytes;
    return v;
}

static void test_rows_of_a_packed_table(void **state)
{
    (void)state;
    static _Alignas(64) int8_t panels[4096];
    static const int64_t ids[] = {19, 0, 7};
    int8_t table[ROWS * WIDTH];
    float scale[ROWS];
    lnt_packed record;
    lnt_tensor y;
    builder b;
    built t;
    builder_begin(&b);
    for (int i = 0; i < ROWS; i++)
        scale[i] = 0.5f * (float)(i + 1);
    const uint32_t in[] = {
        packed_table(&b, table, panels, &record), builder_input(&b, "ids", LNT_INT64, 1, (int64_t[]){3}),
        lnt_graph_add_constant(&b.g, "scale", LNT_FLOAT, 1, (int64_t[]){ROWS}, scale, sizeof scale)};
    const uint32_t out = lnt_graph_add_value(&b.g, "y");
    builder_node_to(&b, 0, "DynamicGather", "the_node", 3, in, 1, &out);
    builder_output(&b, out);
    built_as_is(&t, &b);
    must(built_set(&t, 0, LNT_INT64, 1, (int64_t[]){3}, ids), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    must(lnt_get_output(t.session, 0, &y, &t.err), &t.err);
    for (int i = 0; i < 3 * WIDTH; i++)
        assert_true(((const float *)y.data)[i] ==
                    scale[ids[i / WIDTH]] * (float)table[ids[i / WIDTH] * WIDTH + i % WIDTH]);
    built_close(&t);
}

static void test_panels_for_another_operator(void **state)
{
    (void)state;
    static _Alignas(64) int8_t panels[4096];
    int8_t table[ROWS * WIDTH];
    lnt_packed record;
    builder b;
    builder_begin(&b);
    const uint32_t in = packed_table(&b, table, panels, &record), out = lnt_graph_add_value(&b.g, "y");
    builder_node_to(&b, 0, "Neg", "the_node", 1, &in, 1, &out);
    builder_output(&b, out);
    refused(&b, LNT_E_FILE, "the_node", "Neg cannot read its input 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operands_that_are_not_there),
        cmocka_unit_test(test_programs_that_nothing_carries),
        cmocka_unit_test(test_subgraphs_that_are_not_there),
        cmocka_unit_test(test_subgraphs_that_do_not_fit),
        cmocka_unit_test(test_scans_of_too_many_inputs),
        cmocka_unit_test(test_an_operator_among_several),
        cmocka_unit_test(test_a_host_of_an_older_version),
        cmocka_unit_test(test_rows_of_a_packed_table),
        cmocka_unit_test(test_panels_for_another_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
