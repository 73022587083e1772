/* test_bind.c — what binding knows of values: bounds in place of data, contents that shapes ask for wherever they lie,
 * outputs that nobody wants, steps that run together or do not; when it has to end. */
#include "model_builder.h"

#include "base/memory.h"

#include <math.h>

static float numbers[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static void open_optimized(built *t, builder *b, lnt_opt opt)
{
    *t = (built){.size = 0};
    t->model = builder_end(b, opt, &t->image);
    built_session(t);
}

/* As many elements as the run is to count. */
static void give_sum(built *t, uint32_t i, int64_t sum)
{
    must(built_set(t, i, LNT_FLOAT, 1, &sum, numbers), &t->err);
}

static lnt_tensor output(built *t, uint32_t i)
{
    lnt_tensor y;
    must(lnt_get_output(t->session, i, &y, &t->err), &t->err);
    return y;
}

static const char *unbounded(built *t)
{
    lnt_session_info info = {.struct_bytes = sizeof info};
    must(lnt_bind(t->session, &t->err), &t->err);
    must(lnt_session_get_info(t->session, &info, &t->err), &t->err);
    return info.unbounded;
}

/* ---- bounds ---- */

/* The sum of x, an input [open], as an integer of that type: how long something is. */
static uint32_t length_of(builder *b, uint32_t x, const char *name, lnt_dtype type)
{
    const uint32_t sum = lnt_graph_add_value(&b->g, "sum"), n = lnt_graph_add_value(&b->g, name);
    must(lnt_gnode_set_int(&b->g, builder_node_to(b, 0, "ReduceSum", "sum", 1, &x, 1, &sum), "keepdims", 0),
         &b->err);
    must(lnt_gnode_set_int(&b->g, builder_node_to(b, 0, "Cast", name, 1, &sum, 1, &n), "to", type), &b->err);
    return n;
}

static uint32_t number(builder *b, const char *name, lnt_dtype type, int32_t value)
{
    const int64_t wide = value;
    const void *data = type == LNT_INT64 ? (const void *)&wide : &value;
    return lnt_graph_add_constant(&b->g, name, type, 0, NULL, data, lnt_dtype_size(type));
}

static void test_a_length_over_its_bound(void **state)
{
    (void)state;
    static const lnt_dtype type[] = {LNT_INT64, LNT_INT32};
    for (int k = 0; k < 2; k++) {
        builder b;
        built t;
        builder_begin(&b);
        const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2}),
                       n = length_of(&b, x, "n", type[k]);
        builder_output(
            &b, builder_node(&b, "Range", "y", 3,
                             (uint32_t[]){number(&b, "zero", type[k], 0), n, number(&b, "one", type[k], 1)}));
        open_optimized(&t, &b, LNT_OPT_NONE);
        give_sum(&t, 0, 6);
        assert_string_equal(unbounded(&t), "n");
        must(lnt_set_bound(t.session, "n", 5, &t.err), &t.err);
        assert_null(unbounded(&t));
        assert_int_equal(output(&t, 0).dims[0], 5); /* as if it were at its bound */
        expect_refused(&t, lnt_run(t.session, &t.err), LNT_E_LIMIT, "y (Range)",
                       "n is 6, over its bound of 5");
        for (int64_t sum = 5; sum > 0; sum -= 2) {
            give_sum(&t, 0, sum);
            must(lnt_run(t.session, &t.err), &t.err);
            assert_int_equal(output(&t, 0).dims[0], sum);
        }
        built_close(&t);
    }
}

/* Two lengths: one asked for twice, the other read first by a node that takes it as it comes. */
static void test_lengths_read_by_several(void **state)
{
    (void)state;
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t n = length_of(&b, builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2}), "n", LNT_INT64);
    const uint32_t m = length_of(&b, builder_input(&b, "w", LNT_FLOAT, 1, (int64_t[]){-3}), "m", LNT_INT64);
    const uint32_t zero = builder_int(&b, "zero", 0), one = builder_int(&b, "one", 1);
    builder_output(&b, builder_node(&b, "Range", "y", 3, (uint32_t[]){zero, n, one}));
    builder_output(&b, builder_node(&b, "Neg", "z", 1, &m));
    builder_output(&b, builder_node(&b, "Range", "between", 3, (uint32_t[]){n, m, one}));
    open_optimized(&t, &b, LNT_OPT_NONE);
    must(lnt_set_bound(t.session, "n", 5, &t.err), &t.err);
    must(lnt_set_bound(t.session, "m", 9, &t.err), &t.err);
    give_sum(&t, 0, 3);
    give_sum(&t, 1, 7);
    assert_null(unbounded(&t));
    must(lnt_run(t.session, &t.err), &t.err);
    assert_int_equal(output(&t, 0).dims[0], 3);
    assert_int_equal(*(int64_t *)output(&t, 1).data, -7);
    assert_int_equal(output(&t, 2).dims[0], 4);
    assert_int_equal(((int64_t *)output(&t, 2).data)[3], 6);
    give_sum(&t, 1, 10);
    expect_refused(&t, lnt_run(t.session, &t.err), LNT_E_LIMIT, "between (Range)",
                   "m is 10, over its bound of 9");
    built_close(&t);
}

/* Which axes go data say: before they do the rank is open, and bounds stand in for them. */
static void test_bounds_for_axes(void **state)
{
    (void)state;
    static float axis[] = {0};
    static const int64_t one[] = {1}, dims[] = {1, 1, 4};
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 3, dims),
                   a = builder_input(&b, "a", LNT_FLOAT, 1, one);
    const uint32_t n = length_of(&b, a, "n", LNT_INT64), zero = builder_int(&b, "zero", 0),
                   step = builder_int(&b, "step", 1);
    const uint32_t before = builder_node(&b, "Range", "before", 3, (uint32_t[]){zero, n, step});
    const uint32_t axes = lnt_graph_add_value(&b.g, "axes"), y = lnt_graph_add_value(&b.g, "y");
    must(lnt_gnode_set_int(&b.g, builder_node_to(&b, 0, "Cast", "axes", 1, &a, 1, &axes), "to", LNT_INT64),
         &b.err);
    lnt_gnode *sum = builder_node_to(&b, 0, "ReduceSum", "the_sum", 2, (uint32_t[]){x, axes}, 1, &y);
    must(lnt_gnode_set_int(&b.g, sum, "keepdims", 0), &b.err);
    builder_output(&b, y);
    builder_output(&b, before);
    open_optimized(&t, &b, LNT_OPT_NONE);
    must(built_set(&t, 0, LNT_FLOAT, 3, dims, numbers), &t.err);
    must(built_set(&t, 1, LNT_FLOAT, 1, one, axis), &t.err);
    must(lnt_set_bound(t.session, "n", 1, &t.err), &t.err);
    assert_string_equal(unbounded(&t), "axes");
    must(lnt_set_bound(t.session, "axes", 1, &t.err), &t.err);
    assert_null(unbounded(&t));
    for (axis[0] = 0; axis[0] < 2; axis[0]++) {
        must(lnt_run(t.session, &t.err), &t.err);
        assert_int_equal(output(&t, 0).rank, 2);
        assert_int_equal(output(&t, 0).dims[1], 4);
        assert_int_equal(output(&t, 1).dims[0], axis[0]);
    }
    must(lnt_set_bound(t.session, "n", 2, &t.err), &t.err);
    expect_refused(&t, lnt_run(t.session, &t.err), LNT_E_LIMIT, "the_sum (ReduceSum)",
                   "axes is 2, over its bound of 1");
    built_close(&t);
}

/* No length is a float: a bound for one holds for nothing. */
static void test_a_bound_for_a_float(void **state)
{
    (void)state;
    static const float zero = 0, one = 1;
    float limit = 7;
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 0, NULL), n = builder_node(&b, "Abs", "n", 1, &x);
    builder_output(
        &b, builder_node(
                &b, "Range", "y", 3,
                (uint32_t[]){lnt_graph_add_constant(&b.g, "zero", LNT_FLOAT, 0, NULL, &zero, sizeof zero), n,
                             lnt_graph_add_constant(&b.g, "one", LNT_FLOAT, 0, NULL, &one, sizeof one)}));
    b.g.value[n].info = (lnt_operand){.dtype = LNT_FLOAT};
    must(LNT_GROW(&lnt_malloc_allocator, b.g.symbol, b.g.symbol_capacity, 0, &b.err), &b.err);
    b.g.symbol[b.g.n_symbols++] =
        (lnt_gsymbol){.name = "n", .kind = LNT_SYMBOL_DATA_VALUE, .value = n, .bound = -1};
    built_as_is(&t, &b);
    must(lnt_set_bound(t.session, "n", 5, &t.err), &t.err);
    must(built_set(&t, 0, LNT_FLOAT, 0, NULL, &limit), &t.err);
    assert_string_equal(unbounded(&t), "n");
    must(lnt_run(t.session, &t.err), &t.err);
    assert_int_equal(output(&t, 0).dims[0], 7);
    built_close(&t);
}

/* Of Unique's outputs the second is not wanted; the first and the third have bounds. */
static void test_bounds_beside_an_output_that_nobody_wants(void **state)
{
    (void)state;
    float x[] = {3, 1, 3, 2};
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t in = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){4});
    const uint32_t out[] = {lnt_graph_add_value(&b.g, "y"), LNT_NONE, LNT_NONE,
                            lnt_graph_add_value(&b.g, "counts")};
    builder_node_to(&b, 0, "Unique", "the_node", 1, &in, 4, out);
    builder_output(&b, builder_node(&b, "Neg", "z", 1, &out[0]));
    builder_output(&b, builder_node(&b, "Neg", "minus", 1, &out[3]));
    open_optimized(&t, &b, LNT_OPT_NONE);
    must(built_set(&t, 0, LNT_FLOAT, 1, (int64_t[]){4}, x), &t.err);
    must(lnt_set_bound(t.session, "y:0", 3, &t.err), &t.err);
    assert_non_null(unbounded(&t));
    must(lnt_set_bound(t.session, "counts:0", 3, &t.err), &t.err);
    assert_null(unbounded(&t));
    must(lnt_run(t.session, &t.err), &t.err);
    assert_int_equal(output(&t, 0).dims[0], 3);
    assert_true(((float *)output(&t, 0).data)[2] == -3);
    assert_int_equal(((int64_t *)output(&t, 1).data)[2], -2);
    x[2] = 4;
    expect_refused(&t, lnt_run(t.session, &t.err), LNT_E_LIMIT, "the_node (Unique)",
                   "y:0 is 4, over its bound of 3");
    built_close(&t);
}

/* What is computed from a length waits for it: the length is named, not one that is bounded already. */
static void test_the_name_of_what_has_no_bound(void **state)
{
    (void)state;
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t n = length_of(&b, builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2}), "n", LNT_INT64);
    const uint32_t m = length_of(&b, builder_input(&b, "w", LNT_FLOAT, 1, (int64_t[]){-3}), "m", LNT_INT64);
    const uint32_t zero = builder_int(&b, "zero", 0), one = builder_int(&b, "one", 1);
    builder_output(&b, builder_node(&b, "Range", "y", 3, (uint32_t[]){zero, n, one}));
    const uint32_t more = builder_node(&b, "Add", "more", 2, (uint32_t[]){m, one});
    builder_output(&b, builder_node(&b, "Range", "z", 3, (uint32_t[]){zero, more, one}));
    open_optimized(&t, &b, LNT_OPT_NONE);
    give_sum(&t, 0, 3);
    give_sum(&t, 1, 7);
    assert_string_equal(unbounded(&t), "n");
    must(lnt_set_bound(t.session, "n", 5, &t.err), &t.err);
    assert_string_equal(unbounded(&t), "m");
    must(lnt_run(t.session, &t.err), &t.err);
    assert_int_equal(output(&t, 1).dims[0], 8);
    built_close(&t);
}

/* ---- contents, wherever they lie ---- */

/* A length that is computed right in the caller's memory. */
static void test_a_length_that_is_an_output(void **state)
{
    (void)state;
    _Alignas(64) int64_t n[8] = {0};
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_INT64, 0, NULL),
                   twice = builder_node(&b, "Add", "n", 2, (uint32_t[]){x, x});
    builder_output(&b, twice);
    builder_output(&b,
                   builder_node(&b, "Range", "y", 3,
                                (uint32_t[]){builder_int(&b, "zero", 0), twice, builder_int(&b, "one", 1)}));
    built_as_is(&t, &b);
    must(lnt_set_output(t.session, 0, n, sizeof *n, &t.err), &t.err);
    for (int64_t half = 2; half >= 0; half--) {
        must(built_set(&t, 0, LNT_INT64, 0, NULL, &half), &t.err);
        must(lnt_run(t.session, &t.err), &t.err);
        assert_int_equal(n[0], 2 * half);
        assert_int_equal(output(&t, 1).dims[0], 2 * half);
    }
    built_close(&t);
}

/* The file's only constant has no elements, the file no tensors. */
static void test_a_constant_without_elements(void **state)
{
    (void)state;
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 2, (int64_t[]){-2, 2}),
                   shape = builder_node(&b, "Shape", "s", 1, &x);
    const uint32_t none = lnt_graph_add_constant(&b.g, "none", LNT_INT64, 1, (int64_t[]){0}, "", 0);
    const uint32_t both = builder_node(&b, "Concat", "both", 2, (uint32_t[]){shape, none});
    lnt_gnode *n = b.g.value[both].producer;
    must(lnt_gnode_set_int(&b.g, n, "axis", 0), &b.err);
    n->evaluate_early = true;
    builder_output(&b, builder_node(&b, "Reshape", "y", 2, (uint32_t[]){x, both}));
    built_as_is(&t, &b);
    must(built_set(&t, 0, LNT_FLOAT, 2, (int64_t[]){3, 2}, numbers), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    const lnt_tensor y = output(&t, 0);
    assert_int_equal(y.rank, 2);
    assert_int_equal(y.dims[0], 3);
    assert_memory_equal(y.data, numbers, 6 * sizeof *numbers);
    built_close(&t);
}

/* Extents that are fed, and not yet there when the session is bound. */
static void test_extents_that_come_after_bind(void **state)
{
    (void)state;
    static const int64_t target[] = {3, 2}, two[] = {2};
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t in[] = {builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2}),
                           builder_input(&b, "target", LNT_INT64, 1, two)};
    builder_output(&b,
                   builder_node(&b, "Relu", "y", 1, (uint32_t[]){builder_node(&b, "Reshape", "r", 2, in)}));
    open_optimized(&t, &b, LNT_OPT_NONE);
    give_sum(&t, 0, 6);
    must(built_set(&t, 1, LNT_INT64, 1, two, NULL), &t.err);
    must(lnt_bind(t.session, &t.err), &t.err);
    expect_refused(&t, lnt_run(t.session, &t.err), LNT_E_ARGUMENT, "input target", "no data");
    must(built_set(&t, 1, LNT_INT64, 1, two, target), &t.err);
    must(lnt_run(t.session, &t.err), &t.err);
    assert_int_equal(output(&t, 0).dims[0], 3);
    assert_int_equal(output(&t, 0).dims[1], 2);
    built_close(&t);
}

/* ---- operands that are left out ---- */

static void test_extents_split_in_parts_that_nobody_wants(void **state)
{
    (void)state;
    static const int64_t parts[] = {1, 2}, two[] = {2};
    static const float x[30] = {0};
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t in = builder_input(&b, "x", LNT_FLOAT, 3, (int64_t[]){-2, -3, -4}),
                   s = builder_node(&b, "Shape", "s", 1, &in);
    const uint32_t sizes = lnt_graph_add_constant(&b.g, "parts", LNT_INT64, 1, two, parts, sizeof parts);
    const uint32_t out[] = {lnt_graph_add_value(&b.g, "rows"), LNT_NONE};
    builder_node_to(&b, 0, "Split", "split", 2, (uint32_t[]){s, sizes}, 2, out)->evaluate_early = true;
    builder_output(&b, builder_node(&b, "ConstantOfShape", "y", 1, &out[0]));
    open_optimized(&t, &b, LNT_OPT_NONE);
    must(built_set(&t, 0, LNT_FLOAT, 3, (int64_t[]){5, 2, 3}, x), &t.err);
    assert_null(unbounded(&t));
    must(lnt_run(t.session, &t.err), &t.err);
    assert_int_equal(output(&t, 0).dims[0], 5);
    built_close(&t);
}

static lnt_status shape_of_second(lnt_custom_call *call)
{
    assert_int_equal(call->in[0].dtype, LNT_UNDEFINED);
    call->out[0].dtype = call->in[1].dtype;
    call->out[0].rank = call->in[1].rank;
    memcpy(call->out[0].dims, call->in[1].dims, sizeof call->out[0].dims);
    return LNT_OK;
}

static lnt_status copy_second(lnt_custom_call *call)
{
    assert_null(call->in[0].data);
    memcpy(call->out[0].data, call->in[1].data, call->out[0].bytes);
    return LNT_OK;
}

static void set_text(builder *b, lnt_gnode *n, const char *name, const char *text)
{
    const lnt_attr a = {.name = name, .type = LNT_ATTR_STRING, .count = (uint32_t)strlen(text), .s = text};
    must(lnt_gnode_set_attr(&b->g, n, &a), &b->err);
}

/* Steps whose first input is skipped, or that have none: behind others, whose outputs they might take line by line. */
static void test_steps_without_a_first_input(void **state)
{
    (void)state;
    const lnt_custom_op op = {"host", "Second", 0, shape_of_second, copy_second, NULL};
    const lnt_model_options how = {.struct_bytes = sizeof how, .custom = &op, .n_custom = 1};
    builder b;
    built t = {.size = 0};
    builder_begin(&b);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2}),
                   r = builder_node(&b, "Neg", "r", 1, &x);
    const uint32_t second = builder_node(&b, "Custom", "second", 2, (uint32_t[]){LNT_NONE, r});
    set_text(&b, b.g.value[second].producer, "custom_domain", "host");
    set_text(&b, b.g.value[second].producer, "custom_name", "Second");
    const uint32_t noise = builder_node(&b, "RandomUniform", "noise", 0, NULL);
    builder_set_ints(&b, b.g.value[noise].producer, "shape", 1, (int64_t[]){3});
    builder_output(&b, builder_node(&b, "Add", "y", 2, (uint32_t[]){second, noise}));
    builder_emit(&b, &t.image, &t.size);
    must(lnt_model_create_from_memory(t.image, t.size, &how, &t.model, &t.err), &t.err);
    built_session(&t);
    give_sum(&t, 0, 3);
    must(lnt_run(t.session, &t.err), &t.err);
    for (int i = 0; i < 3; i++)
        assert_true(fabsf(((float *)output(&t, 0).data)[i] + 0.5f) <= 0.5f); /* -1 and what is in [0, 1) */
    built_close(&t);
}

/* ---- steps that run together ---- */

static const int64_t image[] = {1, LINES_FEW, LINES_HIGH, LINES_WIDE};

/* Of two images one convolution each, and one of its lines: one pair after the other, or the first two first. */
static void lines_model(built *t, bool pairs)
{
    builder b;
    uint32_t many[2], each[2];
    builder_begin(&b);
    const uint32_t x[] = {builder_input(&b, "x", LNT_FLOAT, 4, image),
                          builder_input(&b, "w", LNT_FLOAT, 4, image)};
    for (int i = 0; i < 4; i++) {
        const int k = pairs ? i / 2 : i % 2;
        if (pairs ? i % 2 == 0 : i < 2)
            many[k] = builder_conv(&b, "many", x[k], LINES_FEW, 1, 1);
        else
            each[k] = builder_conv(&b, "each", many[k], 1, 3, LINES_MANY);
    }
    builder_output(&b, each[0]);
    builder_output(&b, each[1]);
    open_optimized(t, &b, LNT_OPT_ALL);
}

/* A step that makes lines is not taken by one of other lines behind it: four steps then, or two, of the same bits. */
static void test_a_step_of_other_lines(void **state)
{
    (void)state;
    static float x[2][LINES_IMAGE];
    built t[2];
    uint32_t steps[2];
    for (int i = 0; i < 2 * LINES_IMAGE; i++)
        x[i / LINES_IMAGE][i % LINES_IMAGE] = cosf((float)i);
    for (int k = 0; k < 2; k++) {
        lnt_session_info info = {.struct_bytes = sizeof info};
        lines_model(&t[k], k);
        must(built_set(&t[k], 0, LNT_FLOAT, 4, image, x[0]), &t[k].err);
        must(built_set(&t[k], 1, LNT_FLOAT, 4, image, x[1]), &t[k].err);
        must(lnt_run(t[k].session, &t[k].err), &t[k].err);
        must(lnt_session_get_info(t[k].session, &info, &t[k].err), &t[k].err);
        steps[k] = info.n_steps;
    }
    assert_int_equal(steps[0], steps[1] + 2);
    for (uint32_t o = 0; o < 2; o++) {
        const lnt_tensor y = output(&t[0], o), z = output(&t[1], o);
        assert_int_equal(y.bytes, z.bytes);
        assert_memory_equal(y.data, z.data, y.bytes);
    }
    built_close(&t[0]);
    built_close(&t[1]);
}

/* The windows of a convolution's lines, with a second output that is not wanted: no pass leaves one. */
static void windows_model(built *t)
{
    static const int64_t three[] = {3, 3}, ones[] = {1, 1, 1, 1};
    uint32_t out[] = {LNT_NONE, LNT_NONE};
    builder b;
    *t = (built){.size = 0};
    builder_begin(&b);
    const uint32_t many =
        builder_conv(&b, "many", builder_input(&b, "x", LNT_FLOAT, 4, image), LINES_FEW, 1, 1);
    const uint32_t y = builder_node(&b, "MaxPool", "y", 1, &many);
    builder_set_ints(&b, b.g.value[y].producer, "kernel_shape", 2, three);
    builder_set_ints(&b, b.g.value[y].producer, "pads", 4, ones);
    builder_output(&b, y);
    builder_take_ends(&b);
    must(lnt_graph_infer(&b.g), &b.err);
    must(lnt_run_passes(&b.g, LNT_OPT_ALL, &b.report), &b.err);
    for (size_t i = 0; i < b.g.sub[0].n_nodes; i++) {
        lnt_gnode *n = b.g.sub[0].node[i];
        if (n->op->id != LNT_ID_MaxPool)
            continue;
        out[0] = n->out[0];
        n->out = out;
        n->n_out = 2;
    }
    assert_int_not_equal(out[0], LNT_NONE);
    builder_emit(&b, &t->image, &t->size);
    must(lnt_model_create_from_memory(t->image, t->size, NULL, &t->model, &t->err), &t->err);
    built_session(t);
}

/* Windows take a convolution's lines as it makes them; with memory for each value they do not, and every bit is the
 * same. */
static void test_windows_of_lines(void **state)
{
    (void)state;
    static float x[LINES_IMAGE];
    const lnt_session_options apart = {
        .struct_bytes = sizeof apart, .intra_op_num_threads = 1, .disable_mem_pattern = true};
    lnt_session_info info[2] = {{.struct_bytes = sizeof *info}, {.struct_bytes = sizeof *info}};
    built t[2];
    for (int i = 0; i < LINES_IMAGE; i++)
        x[i] = cosf((float)i);
    for (int k = 0; k < 2; k++) {
        windows_model(&t[k]);
        if (k == 1) {
            lnt_session_destroy(&t[k].session);
            must(lnt_session_create(t[k].model, &apart, &t[k].session, &t[k].err), &t[k].err);
        }
        must(built_set(&t[k], 0, LNT_FLOAT, 4, image, x), &t[k].err);
        must(lnt_run(t[k].session, &t[k].err), &t[k].err);
        must(lnt_session_get_info(t[k].session, &info[k], &t[k].err), &t[k].err);
    }
    assert_int_equal(info[1].n_steps, info[0].n_steps + 1);
    const lnt_tensor y = output(&t[0], 0), z = output(&t[1], 0);
    assert_int_equal(y.bytes, z.bytes);
    assert_memory_equal(y.data, z.data, y.bytes);
    built_close(&t[0]);
    built_close(&t[1]);
}

/* ---- time ---- */

/* What is evaluated at bind is ended by a deadline, within a run or not, and by a cancellation where there is one to
 * answer it: in the next run. */
static void test_deadlines_of_what_is_evaluated_early(void **state)
{
    (void)state;
    static const float kept[2] = {1, 2};
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t c = lnt_graph_add_constant(&b.g, "c", LNT_FLOAT, 1, (int64_t[]){2}, kept, sizeof kept);
    const uint32_t early = builder_node(&b, "Neg", "early", 1, &c);
    b.g.value[early].producer->evaluate_early = true;
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){2});
    builder_output(&b, builder_node(&b, "Add", "y", 2, (uint32_t[]){x, early}));
    built_as_is(&t, &b);
    must(built_set(&t, 0, LNT_FLOAT, 1, (int64_t[]){2}, numbers), &t.err);
    lnt_set_deadline(t.session, 1);
    expect_refused(&t, lnt_bind(t.session, &t.err), LNT_E_DEADLINE, "early (Neg)", "deadline");
    expect_refused(&t, lnt_run(t.session, &t.err), LNT_E_DEADLINE, "early (Neg)", "deadline");
    lnt_set_deadline(t.session, 0);
    lnt_cancel(t.session);
    must(lnt_bind(t.session, &t.err), &t.err);
    assert_int_equal(lnt_run(t.session, &t.err), LNT_E_CANCELLED);
    must(lnt_run(t.session, &t.err), &t.err);
    const lnt_tensor y = output(&t, 0);
    assert_true(((const float *)y.data)[1] == numbers[1] - kept[1]);
    built_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_length_over_its_bound),
        cmocka_unit_test(test_lengths_read_by_several),
        cmocka_unit_test(test_bounds_for_axes),
        cmocka_unit_test(test_a_bound_for_a_float),
        cmocka_unit_test(test_bounds_beside_an_output_that_nobody_wants),
        cmocka_unit_test(test_the_name_of_what_has_no_bound),
        cmocka_unit_test(test_a_length_that_is_an_output),
        cmocka_unit_test(test_a_constant_without_elements),
        cmocka_unit_test(test_extents_that_come_after_bind),
        cmocka_unit_test(test_extents_split_in_parts_that_nobody_wants),
        cmocka_unit_test(test_steps_without_a_first_input),
        cmocka_unit_test(test_a_step_of_other_lines),
        cmocka_unit_test(test_windows_of_lines),
        cmocka_unit_test(test_deadlines_of_what_is_evaluated_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
