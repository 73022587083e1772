/* test_passes.c — each pass does what it is for, and no pass changes what a model computes.
 *
 * A model is built twice by the same function: once it goes through no passes, once through all; both are
 * written, loaded and run on the same inputs. What is left after the passes is counted by operator. */
#include "convert/convert.h"
#include "convert/emit/emit.h"
#include "convert/passes/passes.h"
#include "runtime/linnet.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- building graphs ---- */

typedef struct model {
    lnt_graph g;
    lnt_report report;
    lnt_error err;
    uint32_t in[4], out[4];
    uint64_t seed;
} model;

static void check(lnt_status status, const lnt_error *err)
{
    if (status != LNT_OK)
        fail_msg("%s", err->message);
}

static void begin(model *m)
{
    memset(m, 0, sizeof *m);
    lnt_graph_init(&m->g, &lnt_malloc_allocator, &m->err);
    lnt_report_init(&m->report);
    lnt_graph_add_sub(&m->g, "main");
    m->g.sub[0].in = m->in;
    m->g.sub[0].out = m->out;
    m->seed = 88172645463325252u;
}

static void end(model *m)
{
    lnt_report_free(&m->report);
    lnt_graph_free(&m->g);
}

static float random_float(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (float)(int32_t)(*state >> 32) * 0x1p-31f;
}

#define DIMS(...)                                                                                            \
    (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                                  \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

static uint32_t input(model *m, size_t rank, const int64_t *dims)
{
    const uint32_t v = lnt_graph_add_value(&m->g, "input");
    lnt_operand *o = &m->g.value[v].info;
    o->dtype = LNT_FLOAT;
    o->rank = (uint8_t)rank;
    memcpy(o->dims, dims, rank * sizeof *dims);
    m->in[m->g.sub[0].n_in++] = v;
    return v;
}

/* An extent with a name, as an ONNX dim_param gives it. */
static int64_t extent(model *m, const char *name)
{
    lnt_graph *g = &m->g;
    check(LNT_GROW(&lnt_malloc_allocator, g->symbol, g->symbol_capacity, g->n_symbols, g->err), &m->err);
    g->symbol[g->n_symbols] = (lnt_gsymbol){.name = name, .bound = -1};
    return -2 - (int64_t)g->n_symbols++;
}

/* A constant of random numbers in [low, high). */
static uint32_t weights(model *m, float low, float high, size_t rank, const int64_t *dims)
{
    int64_t n = 1;
    for (size_t i = 0; i < rank; i++)
        n *= dims[i];
    float *data = malloc((size_t)n * sizeof *data + 1);
    for (int64_t i = 0; i < n; i++)
        data[i] = low + (high - low) * (random_float(&m->seed) + 1) / 2;
    const uint32_t v =
        lnt_graph_add_constant(&m->g, "w", LNT_FLOAT, (unsigned)rank, dims, data, (size_t)n * sizeof *data);
    free(data);
    return v;
}

static uint32_t scalar(model *m, float x)
{
    return lnt_graph_add_constant(&m->g, "k", LNT_FLOAT, 0, NULL, &x, sizeof x);
}

static uint32_t ints(model *m, size_t n, const int64_t *data)
{
    return lnt_graph_add_constant(&m->g, "i", LNT_INT64, 1, &(int64_t){(int64_t)n}, data, n * sizeof *data);
}

static lnt_gnode *node_in(model *m, uint32_t sub, const char *op, unsigned n_in, const uint32_t *in)
{
    const lnt_op *row = lnt_op_by_name("", op);
    if (!row)
        fail_msg("there is no %s", op);
    const uint32_t out = lnt_graph_add_value(&m->g, op);
    lnt_gnode *n = lnt_graph_add_node(&m->g, sub, NULL, row, op, in, n_in, &out, 1);
    assert_non_null(n);
    return n;
}

#define NODE(m, op, ...)                                                                                     \
    node_in((m), 0, (op), sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})
/* The value a new node computes. */
#define VALUE(m, op, ...) (NODE(m, op, __VA_ARGS__)->out[0])

static uint32_t set_ints(model *m, lnt_gnode *n, const char *name, size_t count, const int64_t *values)
{
    const lnt_attr a = {.name = name, .type = LNT_ATTR_INTS, .count = (uint32_t)count, .i = values};
    assert_int_equal(lnt_gnode_set_attr(&m->g, n, &a), LNT_OK);
    return n->out[0];
}

static void output(model *m, uint32_t value)
{
    m->out[m->g.sub[0].n_out++] = value;
}

/* ---- running them ---- */

enum { MAX_OUT = 1 << 16, OPEN_EXTENT = 5 };

/* Writes, loads and runs the model on inputs drawn from a seed; its first output. */
static size_t run(model *m, float *result)
{
    void *image;
    size_t size;
    lnt_error err = {0};
    lnt_model *loaded;
    lnt_session *session;
    lnt_tensor t;
    uint64_t seed = 1234567;
    check(lnt_emit(&m->g, &m->report, NULL, &image, &size), &m->err);
    check(lnt_model_create_from_memory(image, size, NULL, &loaded, &err), &err);
    check(lnt_session_create(
              loaded,
              &(lnt_session_options){.struct_bytes = sizeof(lnt_session_options), .intra_op_num_threads = 1},
              &session, &err),
          &err);
    float *data[4] = {NULL};
    for (uint32_t i = 0; i < m->g.sub[0].n_in; i++) {
        const lnt_operand *o = &m->g.value[m->in[i]].info;
        t = (lnt_tensor){.dtype = LNT_FLOAT, .rank = o->rank};
        size_t n = 1;
        for (unsigned d = 0; d < o->rank; d++)
            n *= (size_t)(t.dims[d] = o->dims[d] < 0 ? OPEN_EXTENT : o->dims[d]);
        data[i] = malloc(n * sizeof(float));
        for (size_t e = 0; e < n; e++)
            data[i][e] = 2 * random_float(&seed);
        t.data = data[i];
        t.bytes = n * sizeof(float);
        check(lnt_set_input(session, i, &t, &err), &err);
    }
    check(lnt_run(session, &err), &err);
    check(lnt_get_output(session, 0, &t, &err), &err);
    assert_true(t.bytes <= MAX_OUT * sizeof *result);
    memcpy(result, t.data, t.bytes);
    lnt_session_destroy(&session);
    lnt_model_destroy(&loaded);
    lnt_free(&lnt_malloc_allocator, image);
    for (unsigned i = 0; i < 4; i++)
        free(data[i]);
    return t.bytes / sizeof *result;
}

typedef void (*build_fn)(model *m);

/* Takes *m through all passes; its results must be those of the model that went through none. */
static void optimize(model *m, build_fn build)
{
    static float plain[MAX_OUT], fused[MAX_OUT];
    model reference;
    begin(&reference);
    build(&reference);
    check(lnt_run_passes(&reference.g, LNT_OPT_NONE, &reference.report), &reference.err);
    const size_t n = run(&reference, plain);
    end(&reference);
    begin(m);
    build(m);
    check(lnt_run_passes(&m->g, LNT_OPT_ALL, &m->report), &m->err);
    assert_int_equal(run(m, fused), n);
    for (size_t i = 0; i < n; i++)
        if (plain[i] != fused[i] && !(fabsf(plain[i] - fused[i]) <= 2e-5f * (1 + fabsf(plain[i]))))
            fail_msg("element %zu: %g without passes, %g with them", i, plain[i], fused[i]);
}

static unsigned count_of(const model *m, const char *op)
{
    unsigned n = 0;
    for (size_t s = 0; s < m->g.n_subs; s++)
        for (size_t i = 0; i < m->g.sub[s].n_nodes; i++)
            n += !op || strcmp(lnt_op_name(m->g.sub[s].node[i]->op), op) == 0;
    return n;
}

/* Nodes whose results move memory; views are left out. */
static void expect(const model *m, const char *op, unsigned count)
{
    if (count_of(m, op) != count)
        fail_msg("%u nodes of %s, not %u", count_of(m, op), op ? op : "any kind", count);
}

#define PASS_TEST(name, build, ...)                                                                          \
    static void test_##name(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        model m;                                                                                             \
        optimize(&m, build);                                                                                 \
        __VA_ARGS__                                                                                          \
        end(&m);                                                                                             \
    }

/* ---- basics ---- */

static void build_constant_arithmetic(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3));
    const uint32_t a = VALUE(m, "Mul", weights(m, 1, 2, DIMS(3)), scalar(m, 3));
    output(m, VALUE(m, "Mul", x, VALUE(m, "Add", a, scalar(m, 1))));
}
PASS_TEST(constant_arithmetic, build_constant_arithmetic, expect(&m, NULL, 1);)

static void build_shape_chain(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3, 4));
    lnt_gnode *gather = NODE(m, "Gather", VALUE(m, "Shape", x), ints(m, DIMS(0)));
    lnt_gnode *concat = NODE(m, "Concat", gather->out[0], ints(m, DIMS(-1)));
    lnt_gnode_set_int(&m->g, concat, "axis", 0);
    output(m, VALUE(m, "Relu", VALUE(m, "Reshape", x, concat->out[0])));
}
PASS_TEST(shape_chain, build_shape_chain, expect(&m, "Shape", 0); expect(&m, "Concat", 0);
          expect(&m, NULL, 2);)

/* The batch is unknown, the other extents are not. */
static void build_partly_known_shape(model *m)
{
    const uint32_t x = input(m, DIMS(-1, 3, 4));
    lnt_gnode *gather = NODE(m, "Gather", VALUE(m, "Shape", x), ints(m, DIMS(2, 1)));
    lnt_gnode *concat = NODE(m, "Concat", ints(m, DIMS(-1)), gather->out[0]);
    lnt_gnode_set_int(&m->g, concat, "axis", 0);
    output(m, VALUE(m, "Relu", VALUE(m, "Reshape", x, concat->out[0])));
}
PASS_TEST(partly_known_shape, build_partly_known_shape, expect(&m, "Shape", 0); expect(&m, "Gather", 0);)

static void build_identities(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3, 4));
    uint32_t v = VALUE(m, "Identity", VALUE(m, "Relu", x));
    v = set_ints(m, NODE(m, "Transpose", v), "perm", DIMS(2, 0, 1));
    v = set_ints(m, NODE(m, "Transpose", v), "perm", DIMS(1, 2, 0));
    v = VALUE(m, "Mul", v, scalar(m, 1));
    v = VALUE(m, "Reshape", v, ints(m, DIMS(6, 4)));
    v = VALUE(m, "Reshape", v, ints(m, DIMS(2, 3, 4)));
    v = VALUE(m, "Slice", v, ints(m, DIMS(0)), ints(m, DIMS(INT64_MAX)), ints(m, DIMS(1)));
    v = VALUE(m, "Pad", v, ints(m, DIMS(0, 0, 0, 0, 0, 0)));
    output(m, VALUE(m, "Identity", v));
}
PASS_TEST(identities, build_identities, expect(&m, "Relu", 1); expect(&m, NULL, 1);)

static uint32_t cast(model *m, uint32_t x, lnt_dtype to)
{
    lnt_gnode *n = NODE(m, "Cast", x);
    lnt_gnode_set_int(&m->g, n, "to", to);
    return n->out[0];
}

/* Rounded to halves on purpose, then cut to integers: by way of floats as it is written. */
static void build_widened_casts(model *m)
{
    const uint32_t half =
        cast(m, VALUE(m, "MatMul", input(m, DIMS(3, 4)), weights(m, -99, 99, DIMS(4, 5))), LNT_FLOAT16);
    output(m, cast(m, cast(m, cast(m, half, LNT_FLOAT), LNT_INT32), LNT_FLOAT));
}
PASS_TEST(widened_casts, build_widened_casts, expect(&m, "Cast", 3);)

/* ---- ScatterND of a box ---- */

/* Writes columns [begin, end) of all rows of [16, 8, 10], counted from the back where `back` is 8; from row `first` on
 * the last column once more in the place of the one before it, if there is such a row. */
static void scatter_box(model *m, int64_t begin, int64_t end, int64_t back, int64_t first)
{
    enum { ROWS = 16, COLUMNS = 8, REST = 10 };
    int64_t tuple[ROWS * COLUMNS][2], n = 0;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = begin; c < end; c++, n++)
            tuple[n][0] = r, tuple[n][1] = (r >= first && c + 2 == end ? c + 1 : c) - back;
    const uint32_t x = input(m, DIMS(ROWS, COLUMNS, REST)), updates = input(m, DIMS(n, REST));
    const uint32_t indices = lnt_graph_add_constant(&m->g, "i", LNT_INT64, 2, (const int64_t[]){n, 2}, tuple,
                                                    (size_t)n * sizeof *tuple);
    output(m, VALUE(m, "ScatterND", x, indices, updates));
}

static void build_scatter_middle(model *m)
{
    scatter_box(m, 1, 7, 0, 16);
}
static void build_scatter_end(model *m)
{
    scatter_box(m, 2, 8, 8, 16);
}
static void build_scatter_all(model *m)
{
    scatter_box(m, 0, 8, 0, 16);
}
static void build_scatter_twice(model *m)
{
    scatter_box(m, 1, 7, 0, 15);
}
static void build_scatter_few(model *m)
{
    scatter_box(m, 1, 4, 0, 16);
}
PASS_TEST(scatter_middle, build_scatter_middle, expect(&m, "ScatterND", 0); expect(&m, "Slice", 2);)
PASS_TEST(scatter_end, build_scatter_end, expect(&m, "ScatterND", 0); expect(&m, "Slice", 1);)
PASS_TEST(scatter_all, build_scatter_all, expect(&m, "ScatterND", 0); expect(&m, "Concat", 0);)
PASS_TEST(scatter_twice, build_scatter_twice, expect(&m, "ScatterND", 1);)
PASS_TEST(scatter_few, build_scatter_few, expect(&m, "ScatterND", 1);)

/* x + 0 turns -0 into 0 and must stay. */
static void build_plus_zero(model *m)
{
    output(m, VALUE(m, "Reciprocal",
                    VALUE(m, "Add", VALUE(m, "Mul", input(m, DIMS(4)), scalar(m, -0.0f)), scalar(m, 0))));
}
PASS_TEST(plus_zero_stays, build_plus_zero, expect(&m, "Elementwise", 1);)

static void build_common(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3, 8)), axes = ints(m, DIMS(-1)), again = ints(m, DIMS(-1));
    const uint32_t a = VALUE(m, "ReduceMean", x, axes), b = VALUE(m, "ReduceMean", x, again);
    output(m, VALUE(m, "Concat", a, b));
    lnt_gnode_set_int(&m->g, m->g.value[m->out[0]].producer, "axis", 1);
}
PASS_TEST(common_subexpressions, build_common, expect(&m, "ReduceMean", 1);)

static void build_dead(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3));
    NODE(m, "Exp", VALUE(m, "Sqrt", x));
    output(m, VALUE(m, "Relu", x));
}
PASS_TEST(dead_nodes, build_dead, expect(&m, NULL, 1);)

/* An If over two unary operators on x. */
static uint32_t branches(model *m, uint32_t condition, const char *yes, const char *no, uint32_t x)
{
    static uint32_t branch_out[2][1];
    uint32_t sub[2];
    for (unsigned b = 0; b < 2; b++) {
        sub[b] = lnt_graph_add_sub(&m->g, b ? "else" : "then");
        branch_out[b][0] = node_in(m, sub[b], b ? no : yes, 1, &x)->out[0];
        m->g.sub[sub[b]].out = branch_out[b];
        m->g.sub[sub[b]].n_out = 1;
    }
    lnt_gnode *n = NODE(m, "If", condition);
    for (unsigned b = 0; b < 2; b++) {
        const int64_t number = sub[b];
        const lnt_attr a = {
            .name = b ? "else_branch" : "then_branch", .type = LNT_ATTR_GRAPH, .count = 1, .i = &number};
        lnt_gnode_set_attr(&m->g, n, &a);
    }
    return n->out[0];
}

/* An If whose condition is known gives way to its branch. */
static void build_if(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3));
    const uint8_t yes = 1;
    output(m, branches(m, lnt_graph_add_constant(&m->g, "yes", LNT_BOOL, 0, NULL, &yes, 1), "Neg", "Exp", x));
}
PASS_TEST(known_if, build_if, expect(&m, "If", 0); expect(&m, "Neg", 1); expect(&m, NULL, 1);)

/* ---- convolutions ---- */

static uint32_t norm(model *m, uint32_t x, int64_t channels)
{
    const uint32_t scale = weights(m, 0.5f, 1.5f, DIMS(channels)), bias = weights(m, -1, 1, DIMS(channels));
    const uint32_t mean = weights(m, -1, 1, DIMS(channels)), variance = weights(m, 0.5f, 2, DIMS(channels));
    return VALUE(m, "BatchNormalization", x, scale, bias, mean, variance);
}

static uint32_t conv(model *m, uint32_t x, int64_t from, int64_t to)
{
    return set_ints(m, NODE(m, "Conv", x, weights(m, -0.5f, 0.5f, DIMS(to, from, 3, 3))), "pads",
                    DIMS(1, 1, 1, 1));
}

static void build_residual_block(model *m)
{
    const uint32_t x = input(m, DIMS(1, 5, 9, 8));
    const uint32_t a = VALUE(m, "Relu", norm(m, conv(m, x, 5, 20), 20));
    const uint32_t b = VALUE(m, "Relu", norm(m, conv(m, a, 20, 20), 20));
    const uint32_t c = norm(m, conv(m, b, 20, 20), 20);
    const uint32_t sum = VALUE(m, "Relu", VALUE(m, "Add", c, a));
    output(m, VALUE(m, "Relu", conv(m, sum, 20, 5)));
}
PASS_TEST(residual_block, build_residual_block, expect(&m, "Conv", 4); expect(&m, "Relayout", 2);
          expect(&m, NULL, 6);)

static void build_grouped_transposed(model *m)
{
    const uint32_t x = input(m, DIMS(1, 4, 5, 6));
    lnt_gnode *n =
        NODE(m, "ConvTranspose", x, weights(m, -1, 1, DIMS(4, 3, 2, 2)), weights(m, -1, 1, DIMS(6)));
    lnt_gnode_set_int(&m->g, n, "group", 2);
    set_ints(m, n, "strides", DIMS(2, 2));
    const uint32_t scaled = VALUE(m, "Mul", norm(m, n->out[0], 6), weights(m, 1, 2, DIMS(6, 1, 1)));
    output(m, VALUE(m, "Add", scaled, weights(m, -1, 1, DIMS(1, 6, 1, 1))));
}
PASS_TEST(grouped_transposed, build_grouped_transposed, expect(&m, "BatchNormalization", 0);
          expect(&m, "Mul", 0); expect(&m, "Add", 0); expect(&m, "Elementwise", 0);)

static void build_gemm_norm(model *m)
{
    const uint32_t x = input(m, DIMS(3, 7));
    lnt_gnode *n = NODE(m, "Gemm", x, weights(m, -1, 1, DIMS(5, 7)), weights(m, -1, 1, DIMS(1, 5)));
    lnt_gnode_set_int(&m->g, n, "transB", 1);
    const float beta = 0.5f;
    lnt_gnode_set_attr(&m->g, n, &(lnt_attr){.name = "beta", .type = LNT_ATTR_FLOAT, .count = 1, .f = &beta});
    output(m, VALUE(m, "Sigmoid", norm(m, n->out[0], 5)));
}
PASS_TEST(gemm_norm, build_gemm_norm, expect(&m, NULL, 1);)

static void build_matmul_chain(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3, 8));
    uint32_t v = VALUE(m, "MatMul", x, weights(m, -1, 1, DIMS(8, 8)));
    v = VALUE(m, "Div", VALUE(m, "Add", v, weights(m, -1, 1, DIMS(8))), scalar(m, 3));
    output(m, VALUE(m, "Tanh", VALUE(m, "Add", v, x)));
}
PASS_TEST(matmul_chain, build_matmul_chain, expect(&m, NULL, 1);)

/* The residual is computed after the product that takes it: the product has to move. */
static void build_late_operand(model *m)
{
    const uint32_t x = input(m, DIMS(3, 8));
    const uint32_t a = VALUE(m, "MatMul", x, weights(m, -1, 1, DIMS(8, 8)));
    const uint32_t late = VALUE(m, "Softmax", x);
    output(m, VALUE(m, "Add", late, a));
}
PASS_TEST(late_operand, build_late_operand, expect(&m, NULL, 2);)

/* A product with two readers is not computed twice. */
static void build_two_readers(model *m)
{
    const uint32_t a = VALUE(m, "MatMul", input(m, DIMS(3, 8)), weights(m, -1, 1, DIMS(8, 8)));
    output(m, VALUE(m, "Concat", VALUE(m, "Relu", a), VALUE(m, "Softmax", a)));
    lnt_gnode_set_int(&m->g, m->g.value[m->out[0]].producer, "axis", 0);
}
PASS_TEST(two_readers, build_two_readers, expect(&m, "MatMul", 1); expect(&m, "Relu", 1);)

static void build_single_norm(model *m)
{
    const uint32_t x = input(m, DIMS(1, 6, 5, 5));
    lnt_gnode *pool = NODE(m, "MaxPool", x);
    set_ints(m, pool, "kernel_shape", DIMS(2, 2));
    output(m, conv(m, VALUE(m, "Relu", norm(m, pool->out[0], 6)), 6, 4));
}
PASS_TEST(single_norm, build_single_norm, expect(&m, "BatchNormalization", 0); expect(&m, "Elementwise", 1);
          expect(&m, "Relayout", 2);)

static void build_pad_conv(model *m)
{
    const uint32_t x = input(m, DIMS(1, 3, 6, 6));
    const uint32_t padded = VALUE(m, "Pad", x, ints(m, DIMS(0, 0, 1, 0, 0, 0, 2, 1)), scalar(m, 0));
    output(m, conv(m, padded, 3, 4));
}
PASS_TEST(pad_conv, build_pad_conv, expect(&m, "Pad", 0);)

/* ---- patterns ---- */

static void build_layernorm(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3, 12)), axes = ints(m, DIMS(-1));
    const uint32_t d = VALUE(m, "Sub", x, VALUE(m, "ReduceMean", x, axes));
    const uint32_t var = VALUE(m, "ReduceMean", VALUE(m, "Pow", d, scalar(m, 2)), axes);
    const uint32_t n = VALUE(m, "Div", d, VALUE(m, "Sqrt", VALUE(m, "Add", var, scalar(m, 1e-5f))));
    output(m,
           VALUE(m, "Add", VALUE(m, "Mul", n, weights(m, 0.5f, 2, DIMS(12))), weights(m, -1, 1, DIMS(12))));
}
PASS_TEST(layernorm, build_layernorm, expect(&m, "LayerNormalization", 1); expect(&m, NULL, 1);)

/* As written by TensorFlow: x * m + (bias - mean * m). */
static void build_layernorm_affine(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3, 12)), axes = ints(m, DIMS(2));
    const uint32_t mean = VALUE(m, "ReduceMean", x, axes), d = VALUE(m, "Sub", x, mean);
    const uint32_t var =
        VALUE(m, "Add", VALUE(m, "ReduceMean", VALUE(m, "Mul", d, d), axes), scalar(m, 1e-3f));
    const uint32_t inverse = VALUE(m, "Reciprocal", VALUE(m, "Sqrt", var));
    const uint32_t scale = VALUE(m, "Mul", inverse, weights(m, 0.5f, 2, DIMS(12)));
    const uint32_t shift = VALUE(m, "Sub", weights(m, -1, 1, DIMS(12)), VALUE(m, "Mul", mean, scale));
    output(m, VALUE(m, "Add", VALUE(m, "Mul", x, scale), shift));
}
PASS_TEST(layernorm_affine, build_layernorm_affine, expect(&m, "LayerNormalization", 1); expect(&m, NULL, 1);)

static void build_rmsnorm(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3, 12)), axes = ints(m, DIMS(-1));
    const uint32_t square = VALUE(m, "ReduceMean", VALUE(m, "Pow", x, scalar(m, 2)), axes);
    const uint32_t inverse =
        VALUE(m, "Reciprocal", VALUE(m, "Sqrt", VALUE(m, "Add", square, scalar(m, 1e-6f))));
    output(m, VALUE(m, "Mul", weights(m, 0.5f, 2, DIMS(12)), VALUE(m, "Mul", x, inverse)));
}
PASS_TEST(rmsnorm, build_rmsnorm, expect(&m, "RMSNormalization", 1); expect(&m, NULL, 1);)

static void build_softmax(model *m)
{
    const uint32_t x = input(m, DIMS(2, 5, 4)), axes = ints(m, DIMS(1));
    const uint32_t p = VALUE(m, "Exp", VALUE(m, "Sub", x, VALUE(m, "ReduceMax", x, axes)));
    output(m, VALUE(m, "Div", p, VALUE(m, "ReduceSum", p, axes)));
}
PASS_TEST(softmax, build_softmax, expect(&m, "Softmax", 1); expect(&m, NULL, 1);)

static uint32_t erf_gelu(model *m, uint32_t x)
{
    const uint32_t e =
        VALUE(m, "Add", VALUE(m, "Erf", VALUE(m, "Div", x, scalar(m, 1.41421354f))), scalar(m, 1));
    return VALUE(m, "Mul", VALUE(m, "Mul", x, e), scalar(m, 0.5f));
}

static uint32_t tanh_gelu(model *m, uint32_t x)
{
    const uint32_t cube = VALUE(m, "Mul", VALUE(m, "Pow", x, scalar(m, 3)), scalar(m, 0.044715f));
    const uint32_t t = VALUE(m, "Tanh", VALUE(m, "Mul", VALUE(m, "Add", x, cube), scalar(m, 0.797884583f)));
    return VALUE(m, "Mul", VALUE(m, "Mul", x, scalar(m, 0.5f)), VALUE(m, "Add", scalar(m, 1), t));
}

static uint32_t quick_gelu(model *m, uint32_t x)
{
    return VALUE(m, "Mul", x, VALUE(m, "Sigmoid", VALUE(m, "Mul", x, scalar(m, 1.702f))));
}

static uint32_t hard_swish(model *m, uint32_t x)
{
    const uint32_t c = VALUE(m, "Clip", VALUE(m, "Add", x, scalar(m, 3)), scalar(m, 0), scalar(m, 6));
    return VALUE(m, "Mul", x, VALUE(m, "Div", c, scalar(m, 6)));
}

static uint32_t mish(model *m, uint32_t x)
{
    return VALUE(m, "Mul", x, VALUE(m, "Tanh", VALUE(m, "Softplus", x)));
}

/* Each behind a product, into which it must go as one instruction: so that the product has one reader. */
static void build_activations(model *m)
{
    uint32_t x = input(m, DIMS(5, 16));
    uint32_t (*const f[])(model *, uint32_t) = {erf_gelu, tanh_gelu, quick_gelu, hard_swish, mish};
    for (unsigned i = 0; i < sizeof f / sizeof f[0]; i++)
        x = f[i](m, VALUE(m, "MatMul", x, weights(m, -0.5f, 0.5f, DIMS(16, 16))));
    output(m, x);
}
PASS_TEST(activations, build_activations, expect(&m, "MatMul", 5); expect(&m, NULL, 5);
          for (unsigned i = 0; i < 5; i++) assert_int_equal(m.g.sub[0].node[i]->program->n_instr, 1);)

static void build_attention_scores(model *m)
{
    const uint32_t q = input(m, DIMS(2, 3, 2, 4)), k = input(m, DIMS(2, 5, 2, 4));
    const uint32_t qt = set_ints(m, NODE(m, "Transpose", q), "perm", DIMS(0, 2, 1, 3));
    const uint32_t kt = set_ints(m, NODE(m, "Transpose", k), "perm", DIMS(0, 2, 3, 1));
    output(m, VALUE(m, "Mul", VALUE(m, "MatMul", qt, kt), scalar(m, 0.5f)));
}
PASS_TEST(attention_scores, build_attention_scores, expect(&m, "FusedMatMul", 1); expect(&m, "Transpose", 2);
          expect(&m, NULL, 3);)

/* ---- elementwise ---- */

static void build_web(model *m)
{
    const uint32_t x = input(m, DIMS(4, 10)), y = input(m, DIMS(10));
    const uint32_t a = VALUE(m, "Relu", VALUE(m, "Add", VALUE(m, "Mul", x, scalar(m, 1.5f)), y));
    const uint32_t b = VALUE(m, "Sub", VALUE(m, "Exp", a), VALUE(m, "Abs", x));
    output(m, VALUE(m, "Where", VALUE(m, "Greater", a, b), a, b));
}
PASS_TEST(web, build_web, expect(&m, "Elementwise", 1); expect(&m, NULL, 1);)

/* A reader in between: one program would have to wait for itself. */
static void build_detour(model *m)
{
    const uint32_t a = VALUE(m, "Exp", VALUE(m, "Neg", input(m, DIMS(4, 10))));
    output(m, VALUE(m, "Mul", VALUE(m, "Sqrt", VALUE(m, "Softmax", a)), a));
}
PASS_TEST(detour, build_detour, expect(&m, "Softmax", 1); expect(&m, "Elementwise", 2);)

/* The same, where what is read in between belongs to a program that has become part of another. */
static void build_detour_of_two(model *m)
{
    const uint32_t x = input(m, DIMS(4, 10)), a = VALUE(m, "Exp", x), b = VALUE(m, "Neg", x);
    const uint32_t sum = VALUE(m, "Add", a, b);
    output(m, VALUE(m, "Mul", VALUE(m, "Softmax", b), sum));
}
PASS_TEST(detour_of_two, build_detour_of_two, expect(&m, "Softmax", 1); expect(&m, NULL, 3);)

static void build_two_results(model *m)
{
    const uint32_t a = VALUE(m, "Exp", VALUE(m, "Neg", input(m, DIMS(4, 10))));
    const uint32_t b = VALUE(m, "Sqrt", VALUE(m, "Abs", a));
    output(m, VALUE(m, "MatMul", a, set_ints(m, NODE(m, "Transpose", b), "perm", DIMS(1, 0))));
}
PASS_TEST(two_results, build_two_results, expect(&m, "Elementwise", 1); expect(&m, NULL, 2);)

/* The rank of a scalar constant is part of the result. */
static void build_rank_of_constant(model *m)
{
    const uint32_t v = VALUE(m, "Add", VALUE(m, "Neg", input(m, DIMS(3))), weights(m, 1, 2, DIMS(1, 1)));
    output(m, VALUE(m, "Concat", v, v));
    lnt_gnode_set_int(&m->g, m->g.value[m->out[0]].producer, "axis", 0);
}
PASS_TEST(rank_of_constant, build_rank_of_constant, expect(&m, "Concat", 1);)

/* Residual sums that are also read through LeakyRelu: nothing but convolutions is left. */
static void build_vocoder(model *m)
{
    const uint32_t a = conv(m, input(m, DIMS(1, 3, 6, 5)), 3, 4);
    const uint32_t b = conv(m, VALUE(m, "LeakyRelu", a), 4, 4), sum = VALUE(m, "Add", b, a);
    const uint32_t c = conv(m, VALUE(m, "LeakyRelu", sum), 4, 4);
    output(m, VALUE(m, "Relu", VALUE(m, "Add", c, sum)));
}
PASS_TEST(vocoder, build_vocoder, expect(&m, "Conv", 3); expect(&m, "LeakyRelu", 0); expect(&m, "Add", 0);)

/* A sum that something else reads, too, is kept. */
static void build_kept_sum(model *m)
{
    const uint32_t a = conv(m, input(m, DIMS(1, 3, 6, 5)), 3, 4);
    const uint32_t b = conv(m, VALUE(m, "LeakyRelu", a), 4, 4);
    output(m, VALUE(m, "Add", b, a));
    output(m, VALUE(m, "Softmax", a));
}
PASS_TEST(kept_sum, build_kept_sum, expect(&m, "LeakyRelu", 1);)

/* ---- order ---- */

/* Neither pooling nor concatenation nor a transpose to N H W C costs a relayout between convolutions. */
static void build_detector(model *m)
{
    const uint32_t a = VALUE(m, "Relu", conv(m, input(m, DIMS(1, 5, 8, 8)), 5, 8));
    lnt_gnode *pool = NODE(m, "MaxPool", a);
    set_ints(m, pool, "kernel_shape", DIMS(3, 3));
    set_ints(m, pool, "pads", DIMS(1, 1, 1, 1));
    lnt_gnode *both = NODE(m, "Concat", pool->out[0], conv(m, a, 8, 8));
    lnt_gnode_set_int(&m->g, both, "axis", 1);
    const uint32_t head = conv(m, both->out[0], 16, 6);
    const uint32_t t = set_ints(m, NODE(m, "Transpose", head), "perm", DIMS(0, 2, 3, 1));
    output(m, VALUE(m, "Reshape", t, ints(m, DIMS(1, -1, 2))));
}
PASS_TEST(detector, build_detector, expect(&m, "Relayout", 1); assert_int_equal(m.report.relayouts, 1);)

/* A picture of few channels is read in place, in planes. */
static void build_picture(model *m)
{
    output(m, VALUE(m, "GlobalMaxPool", conv(m, input(m, DIMS(1, 3, 40, 33)), 3, 8)));
}
PASS_TEST(picture, build_picture, assert_int_equal(m.report.relayouts, 0);)

/* A picture is put in order before it is made larger, not behind. */
static void build_scores(model *m)
{
    const uint32_t scores = conv(m, input(m, DIMS(1, 5, 4, 4)), 5, 2);
    lnt_gnode *larger = NODE(m, "Resize", scores, LNT_NONE, LNT_NONE, ints(m, DIMS(1, 2, 32, 32)));
    const lnt_attr mode = {.name = "mode", .type = LNT_ATTR_STRING, .count = 6, .s = "linear"};
    assert_int_equal(lnt_gnode_set_attr(&m->g, larger, &mode), LNT_OK);
    output(m, larger->out[0]);
}
PASS_TEST(scores, build_scores, expect(&m, "Relayout", 2);
          assert_int_equal(m.g.value[m.out[0]].info.order, LNT_ORDER_PLAIN);
          assert_int_equal(m.g.value[m.out[0]].producer->op->id, LNT_ID_Resize);)

/* Nothing here wants channels-last. */
static void build_plain(model *m)
{
    const uint32_t x = input(m, DIMS(2, 3, 8));
    output(m, VALUE(m, "Softmax", VALUE(m, "Relu", x)));
}
PASS_TEST(plain_stays, build_plain, expect(&m, "Relayout", 0);)

/* A value that is read in a branch is put in order before the If, and behind its producer. */
static void build_captured(model *m)
{
    const uint32_t a = conv(m, input(m, DIMS(1, 5, 6, 6)), 5, 6), b = conv(m, a, 6, 6);
    const uint32_t sum = VALUE(m, "ReduceSum", b, ints(m, DIMS(0, 1, 2, 3)));
    lnt_gnode_set_int(&m->g, m->g.value[sum].producer, "keepdims", 0);
    const uint32_t positive = VALUE(m, "Greater", sum, scalar(m, 0));
    output(m, branches(m, positive, "Neg", "Softmax", a));
}
PASS_TEST(captured, build_captured, expect(&m, "If", 1); expect(&m, "Relayout", 3);)

/* ---- extents without a number ---- */

/* With open height and width: padding keeps extents, so that the sum goes into the second convolution. */
static void build_open_image(model *m)
{
    const uint32_t x = input(m, 4, (const int64_t[]){1, 5, extent(m, "height"), extent(m, "width")});
    const uint32_t a = VALUE(m, "Relu", conv(m, x, 5, 8));
    output(m, VALUE(m, "Relu", VALUE(m, "Add", conv(m, a, 8, 8), a)));
}
PASS_TEST(open_image, build_open_image, expect(&m, "Conv", 2); expect(&m, "Relayout", 2);
          expect(&m, NULL, 4);)

static uint32_t extent_of(model *m, uint32_t x, int64_t axis)
{
    return VALUE(m, "Unsqueeze", VALUE(m, "Gather", VALUE(m, "Shape", x), ints(m, DIMS(axis))),
                 ints(m, DIMS(0)));
}

/* Heads of attention over an open batch and sequence: nothing is left of the shape arithmetic. */
static void build_open_heads(model *m)
{
    const uint32_t x = input(m, 3, (const int64_t[]){extent(m, "batch"), extent(m, "sequence"), 12});
    const uint32_t h = VALUE(m, "MatMul", x, weights(m, -1, 1, DIMS(12, 12)));
    lnt_gnode *shape = NODE(m, "Concat", VALUE(m, "Reshape", extent_of(m, h, 0), ints(m, DIMS(1))),
                            VALUE(m, "Reshape", extent_of(m, h, 1), ints(m, DIMS(1))), ints(m, DIMS(3, 4)));
    lnt_gnode_set_int(&m->g, shape, "axis", 0);
    const uint32_t heads = VALUE(m, "Reshape", h, shape->out[0]);
    output(m, set_ints(m, NODE(m, "Transpose", heads), "perm", DIMS(0, 2, 1, 3)));
}
PASS_TEST(open_heads, build_open_heads, expect(&m, "Shape", 0); expect(&m, NULL, 3);)

/* A one-dimensional convolution as some exporters write it, with bias and activation behind the Squeeze. */
static void build_wrapped_conv(model *m)
{
    const uint32_t x = VALUE(m, "Unsqueeze", input(m, DIMS(1, 6, 9)), ints(m, DIMS(3)));
    const uint32_t c = VALUE(m, "Conv", x, weights(m, -1, 1, DIMS(5, 6, 3, 1)));
    const uint32_t s = VALUE(m, "Squeeze", c, ints(m, DIMS(3)));
    const uint32_t y = VALUE(m, "Tanh", VALUE(m, "Add", s, weights(m, -1, 1, DIMS(1, 5, 1))));
    output(m, set_ints(m, NODE(m, "Transpose", y), "perm", DIMS(0, 2, 1)));
}
PASS_TEST(wrapped_conv, build_wrapped_conv, expect(&m, "Elementwise", 0); expect(&m, "Add", 0);
          assert_int_equal(m.report.relayouts, 1);)

/* Patches of an image as a sequence, and back: both ways without moving anything. */
static void build_patches(model *m)
{
    const uint32_t a = conv(m, input(m, DIMS(2, 5, 4, 6)), 5, 8);
    const uint32_t flat = VALUE(m, "Reshape", a, ints(m, DIMS(0, 8, -1)));
    const uint32_t tokens = set_ints(m, NODE(m, "Transpose", flat), "perm", DIMS(0, 2, 1));
    const uint32_t mixed = VALUE(m, "Softmax", VALUE(m, "MatMul", tokens, weights(m, -1, 1, DIMS(8, 8))));
    const uint32_t back = set_ints(m, NODE(m, "Transpose", mixed), "perm", DIMS(0, 2, 1));
    output(m, conv(m, VALUE(m, "Reshape", back, ints(m, DIMS(2, 8, 4, 6))), 8, 3));
}
PASS_TEST(patches, build_patches, assert_int_equal(m.report.relayouts, 2);)

/* Rows picked by one-hot products, some out of range; bias and activation are done on the table. */
static void build_one_hot(model *m)
{
    const uint32_t scaled = VALUE(m, "Floor", VALUE(m, "Mul", input(m, DIMS(2, 9)), scalar(m, 4)));
    lnt_gnode *ids = NODE(m, "Cast", scaled);
    lnt_gnode_set_int(&m->g, ids, "to", LNT_INT64);
    const uint32_t wide = VALUE(m, "Unsqueeze", ids->out[0], ints(m, DIMS(2)));
    lnt_gnode *hot = NODE(m, "Cast", VALUE(m, "Equal", wide, ints(m, DIMS(0, 1, 2, 3, 4))));
    lnt_gnode_set_int(&m->g, hot, "to", LNT_FLOAT);
    const uint32_t rows = VALUE(m, "MatMul", hot->out[0], weights(m, -1, 1, DIMS(5, 7)));
    output(m, VALUE(m, "Tanh", VALUE(m, "Add", rows, weights(m, -1, 1, DIMS(1, 1, 7)))));
}
PASS_TEST(one_hot, build_one_hot, expect(&m, "MatMul", 0); expect(&m, "Gather", 1); expect(&m, "Tanh", 0);)

/* Gated convolution: two halves of the channels go different ways, each in its own product. */
static void build_gated(model *m)
{
    const uint32_t c = conv(m, input(m, DIMS(1, 3, 6, 6)), 3, 40);
    const uint32_t axis = ints(m, DIMS(1)), half = ints(m, DIMS(20));
    const uint32_t a = VALUE(m, "Slice", c, ints(m, DIMS(0)), half, axis);
    const uint32_t b = VALUE(m, "Slice", c, half, ints(m, DIMS(INT64_MAX)), axis);
    output(m, VALUE(m, "Mul", VALUE(m, "Tanh", a), VALUE(m, "Sigmoid", b)));
}
PASS_TEST(gated, build_gated, expect(&m, "Slice", 0); expect(&m, "Conv", 2); expect(&m, "Mul", 0);)

/* ---- weights ---- */

/* Embedding and output projection share their numbers: rows are read out of the projection's panels. */
static void build_tied(model *m)
{
    const uint32_t table = weights(m, -1, 1, DIMS(20, 8)), picked = ints(m, DIMS(3, 7, 19));
    const uint32_t x = VALUE(m, "Add", VALUE(m, "Gather", table, picked), input(m, DIMS(3, 8)));
    lnt_gnode *n = NODE(m, "Gemm", x, table);
    lnt_gnode_set_int(&m->g, n, "transB", 1);
    output(m, n->out[0]);
}
PASS_TEST(tied, build_tied, assert_int_equal(m.report.duplicated_bytes, 0);)

static void build_tied_transpose(model *m)
{
    const uint32_t table = weights(m, -1, 1, DIMS(20, 8)), x = input(m, DIMS(3, 8));
    lnt_gnode *top = NODE(m, "ArgMax", x);
    lnt_gnode_set_int(&m->g, top, "axis", 1);
    const uint32_t sum = VALUE(m, "Add", VALUE(m, "Gather", table, top->out[0]), x);
    const uint32_t t = set_ints(m, NODE(m, "Transpose", table), "perm", DIMS(1, 0));
    output(m, VALUE(m, "MatMul", sum, t));
}
PASS_TEST(tied_transpose, build_tied_transpose, expect(&m, "Transpose", 0); expect(&m, "FusedMatMul", 1);
          assert_int_equal(m.report.duplicated_bytes, 0);)

/* ---- kept values ---- */

static void build_kept(model *m)
{
    const uint32_t c = conv(m, input(m, DIMS(1, 3, 6, 6)), 3, 4), n = norm(m, c, 4);
    m->g.value[c].keep = m->g.value[n].keep = true;
    output(m, VALUE(m, "Relu", n));
}

static void test_kept_values_stay(void **state)
{
    (void)state;
    model m;
    optimize(&m, build_kept);
    for (size_t v = 0; v < m.g.n_values; v++)
        if (m.g.value[v].keep)
            assert_non_null(m.g.value[v].producer);
    expect(&m, "Conv", 1);
    end(&m);
}

/* ---- marks ---- */

static void build_dynamic_reshape(model *m)
{
    const uint32_t x = input(m, DIMS(-1, 3, 4));
    lnt_gnode *gather = NODE(m, "Gather", VALUE(m, "Shape", x), ints(m, DIMS(0)));
    lnt_gnode *concat = NODE(m, "Concat", gather->out[0], ints(m, DIMS(12)));
    lnt_gnode_set_int(&m->g, concat, "axis", 0);
    output(m, VALUE(m, "Relu", VALUE(m, "Reshape", x, concat->out[0])));
}

static void test_marks(void **state)
{
    (void)state;
    model m;
    optimize(&m, build_dynamic_reshape);
    unsigned early = 0;
    for (size_t i = 0; i < m.g.sub[0].n_nodes; i++)
        early += m.g.sub[0].node[i]->evaluate_early;
    assert_int_equal(early, 3);
    assert_false(m.g.value[m.in[0]].feeds_shape);
    end(&m);
}

/* A predicted number of frames bounds what follows: it gets a name. */
static void build_predicted_length(model *m)
{
    const uint32_t x = input(m, DIMS(6));
    const uint32_t total = VALUE(m, "ReduceSum", VALUE(m, "Abs", x));
    lnt_gnode_set_int(&m->g, m->g.value[total].producer, "keepdims", 0);
    lnt_gnode *frames = NODE(m, "Cast", VALUE(m, "Ceil", total));
    lnt_gnode_set_int(&m->g, frames, "to", LNT_INT64);
    const int64_t zero = 0, one = 1;
    const uint32_t from = lnt_graph_add_constant(&m->g, "zero", LNT_INT64, 0, NULL, &zero, sizeof zero);
    const uint32_t step = lnt_graph_add_constant(&m->g, "one", LNT_INT64, 0, NULL, &one, sizeof one);
    lnt_gnode *steps = NODE(m, "Cast", VALUE(m, "Range", from, frames->out[0], step));
    lnt_gnode_set_int(&m->g, steps, "to", LNT_FLOAT);
    output(m, steps->out[0]);
}

static void test_predicted_length(void **state)
{
    (void)state;
    model m;
    optimize(&m, build_predicted_length);
    assert_int_equal(m.g.n_symbols, 1);
    assert_int_equal(m.g.symbol[0].kind, LNT_SYMBOL_DATA_VALUE);
    assert_string_equal(m.g.symbol[0].name, "Cast");
    end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_arithmetic),
        cmocka_unit_test(test_shape_chain),
        cmocka_unit_test(test_partly_known_shape),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_widened_casts),
        cmocka_unit_test(test_scatter_middle),
        cmocka_unit_test(test_scatter_end),
        cmocka_unit_test(test_scatter_all),
        cmocka_unit_test(test_scatter_twice),
        cmocka_unit_test(test_scatter_few),
        cmocka_unit_test(test_plus_zero_stays),
        cmocka_unit_test(test_common_subexpressions),
        cmocka_unit_test(test_dead_nodes),
        cmocka_unit_test(test_known_if),
        cmocka_unit_test(test_residual_block),
        cmocka_unit_test(test_grouped_transposed),
        cmocka_unit_test(test_gemm_norm),
        cmocka_unit_test(test_matmul_chain),
        cmocka_unit_test(test_late_operand),
        cmocka_unit_test(test_two_readers),
        cmocka_unit_test(test_single_norm),
        cmocka_unit_test(test_pad_conv),
        cmocka_unit_test(test_layernorm),
        cmocka_unit_test(test_layernorm_affine),
        cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_attention_scores),
        cmocka_unit_test(test_web),
        cmocka_unit_test(test_detour),
        cmocka_unit_test(test_detour_of_two),
        cmocka_unit_test(test_two_results),
        cmocka_unit_test(test_rank_of_constant),
        cmocka_unit_test(test_vocoder),
        cmocka_unit_test(test_kept_sum),
        cmocka_unit_test(test_detector),
        cmocka_unit_test(test_picture),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_plain_stays),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_open_image),
        cmocka_unit_test(test_open_heads),
        cmocka_unit_test(test_wrapped_conv),
        cmocka_unit_test(test_patches),
        cmocka_unit_test(test_one_hot),
        cmocka_unit_test(test_gated),
        cmocka_unit_test(test_tied),
        cmocka_unit_test(test_tied_transpose),
        cmocka_unit_test(test_kept_values_stay),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_predicted_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
