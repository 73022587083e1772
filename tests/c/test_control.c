/* test_control.c — Loop, Scan and If of graphs built by hand, most of which the converter would refuse: a run ends
 * in an error that names the node, and where other inputs fit the session goes on with them. */
#include "model_builder.h"

#include "base/memory.h"

static const int64_t one[] = {1}, two[] = {2}, three[] = {3};
static int64_t counts[] = {3, 3};
static const bool yes[] = {true, true};
static float numbers[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static void give_count(built *t, uint32_t i, int64_t n)
{
    counts[0] = n;
    must(built_set(t, i, LNT_INT64, 1, one, counts), &t->err);
}

static lnt_tensor run(built *t)
{
    lnt_tensor y;
    must(lnt_run(t->session, &t->err), &t->err);
    must(lnt_get_output(t->session, 0, &y, &t->err), &t->err);
    return y;
}

static void refused(built *t, lnt_status expected, const char *node, const char *words)
{
    expect_refused(t, lnt_run(t->session, &t->err), expected, node, words);
}

static void expect_dims(const lnt_tensor *t, unsigned rank, const int64_t *dims)
{
    assert_int_equal(t->rank, rank);
    for (unsigned d = 0; d < rank; d++)
        assert_int_equal(t->dims[d], dims[d]);
}

/* ---- what a Loop reads before a turn and after it ---- */

/* y = x, to which x is added n times, as long as go is true, and then next: inputs 0 to 3, of open length. */
static void sum_model(built *t, lnt_dtype n_type, lnt_dtype go_type, lnt_dtype next_type)
{
    builder b;
    builder_body body;
    builder_begin(&b);
    const uint32_t n = builder_input(&b, "n", n_type, 1, (int64_t[]){-2});
    const uint32_t go = builder_input(&b, "go", go_type, 1, (int64_t[]){-3});
    const uint32_t next = builder_input(&b, "next", next_type, 1, (int64_t[]){-4});
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-5});
    const uint32_t y = lnt_graph_add_value(&b.g, "y");
    lnt_gnode *loop = builder_node_to(&b, 0, "Loop", "the_loop", 3, (uint32_t[]){n, go, x}, 1, &y);
    body_begin(&b, &body, "body");
    body_input(&b, &body, "i", LNT_INT64);
    body_input(&b, &body, "c", LNT_BOOL);
    const uint32_t v = body_input(&b, &body, "v", LNT_FLOAT);
    body_output(&body, next);
    body_output(&body, builder_node_in(&b, body.sub, "Add", "sum", 2, (uint32_t[]){v, x}));
    body_end(&b, &body, loop, "body");
    builder_output(&b, y);
    built_as_is(t, &b);
    must(built_set(t, 0, n_type, 1, one, counts), &t->err);
    must(built_set(t, 1, go_type, 1, one, yes), &t->err);
    must(built_set(t, 2, next_type, 1, one, yes), &t->err);
    must(built_set(t, 3, LNT_FLOAT, 1, three, numbers), &t->err);
}

static void test_counts_and_conditions_of_another_type(void **state)
{
    (void)state;
    built t;
    sum_model(&t, LNT_DOUBLE, LNT_BOOL, LNT_BOOL);
    refused(&t, LNT_E_TYPE, "the_loop (Loop)", "trip count must be one int64");
    built_close(&t);
    sum_model(&t, LNT_INT64, LNT_UINT8, LNT_BOOL);
    refused(&t, LNT_E_TYPE, "the_loop (Loop)", "condition must be one bool");
    built_close(&t);
    sum_model(&t, LNT_INT64, LNT_BOOL, LNT_UINT8);
    refused(&t, LNT_E_TYPE, "the_loop (Loop)", "condition must be one bool");
    built_close(&t);
}

static void test_counts_and_conditions_that_are_two(void **state)
{
    (void)state;
    static const lnt_dtype type[] = {LNT_INT64, LNT_BOOL, LNT_BOOL};
    static const void *const data[] = {counts, yes, yes};
    built t;
    sum_model(&t, LNT_INT64, LNT_BOOL, LNT_BOOL);
    counts[0] = 3;
    for (uint32_t i = 0; i < 3; i++) {
        must(built_set(&t, i, type[i], 1, two, data[i]), &t.err);
        refused(&t, LNT_E_TYPE, "the_loop (Loop)", i == 0 ? "trip count" : "condition");
        must(built_set(&t, i, type[i], 1, one, data[i]), &t.err);
        const lnt_tensor y = run(&t);
        expect_dims(&y, 1, three);
        for (int k = 0; k < 3; k++)
            assert_true(((const float *)y.data)[k] == 4 * numbers[k]);
    }
    built_close(&t);
}

/* ---- stacked outputs ---- */

/* A Loop over n, input 0, that stacks a value from outside or of the body. */
typedef struct stacking {
    builder b;
    builder_body body;
    uint32_t n, i; /* how often; the turn's number */
} stacking;

static void stacking_begin(stacking *s)
{
    builder_begin(&s->b);
    s->n = builder_input(&s->b, "n", LNT_INT64, 1, (int64_t[]){-2});
    body_begin(&s->b, &s->body, "body");
    s->i = body_input(&s->b, &s->body, "i", LNT_INT64);
    body_output(&s->body, body_input(&s->b, &s->body, "c", LNT_BOOL));
}

static void stacking_end(stacking *s, uint32_t slice, built *t)
{
    const uint32_t ys = lnt_graph_add_value(&s->b.g, "ys");
    lnt_gnode *loop = builder_node_to(&s->b, 0, "Loop", "the_loop", 2, (uint32_t[]){s->n, LNT_NONE}, 1, &ys);
    body_output(&s->body, slice);
    body_end(&s->b, &s->body, loop, "body");
    builder_output(&s->b, ys);
    built_as_is(t, &s->b);
}

static void test_a_stack_of_too_many_axes(void **state)
{
    (void)state;
    static const int64_t ones[LNT_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    stacking s;
    built t;
    stacking_begin(&s);
    stacking_end(&s, builder_input(&s.b, "x", LNT_FLOAT, LNT_MAX_RANK, ones), &t);
    must(built_set(&t, 1, LNT_FLOAT, LNT_MAX_RANK, ones, numbers), &t.err);
    give_count(&t, 0, 1);
    refused(&t, LNT_E_LIMIT, "the_loop (Loop)", "more than 8 axes");
    give_count(&t, 0, 0); /* no slices, then, and no axes of theirs */
    const lnt_tensor y = run(&t);
    expect_dims(&y, 1, (int64_t[]){0});
    built_close(&t);
}

static void test_a_stack_beyond_the_address_space(void **state)
{
    (void)state;
    const int64_t dims[] = {INT64_C(1) << 61, 0};
    stacking s;
    built t;
    stacking_begin(&s);
    stacking_end(&s, builder_input(&s.b, "x", LNT_BOOL, 2, (int64_t[]){-3, 0}), &t);
    must(built_set(&t, 1, LNT_BOOL, 2, dims, NULL), &t.err);
    give_count(&t, 0, 2);
    refused(&t, LNT_E_LIMIT, "the_loop (Loop)", "too large");
    give_count(&t, 0, 1);
    const lnt_tensor y = run(&t);
    expect_dims(&y, 3, (int64_t[]){1, dims[0], 0});
    built_close(&t);
}

/* What one branch gives in the first turn and another from then on; w: input 2. */
static void changing_model(built *t, lnt_dtype w_type, unsigned w_rank)
{
    stacking s;
    builder_body then, other;
    stacking_begin(&s);
    builder *b = &s.b;
    const uint32_t x = builder_input(b, "x", LNT_FLOAT, 1, (int64_t[]){-3});
    const uint32_t w = builder_input(b, "w", w_type, w_rank, (int64_t[]){-4});
    const uint32_t first =
        builder_node_in(b, s.body.sub, "Equal", "first", 2, (uint32_t[]){s.i, builder_int(b, "zero", 0)});
    const uint32_t y = lnt_graph_add_value(&b->g, "y");
    lnt_gnode *choice = builder_node_to(b, s.body.sub, "If", "choice", 1, &first, 1, &y);
    body_begin(b, &then, "then");
    body_output(&then, x);
    body_end(b, &then, choice, "then_branch");
    body_begin(b, &other, "other");
    body_output(&other, w);
    body_end(b, &other, choice, "else_branch");
    stacking_end(&s, y, t);
    must(built_set(t, 1, LNT_FLOAT, 1, two, numbers), &t->err);
}

static void test_slices_that_change(void **state)
{
    (void)state;
    static const lnt_dtype type[] = {LNT_DOUBLE, LNT_FLOAT, LNT_FLOAT};
    static const unsigned rank[] = {1, 0, 1};
    static const int64_t dims[][1] = {{2}, {1}, {3}};
    for (unsigned k = 0; k < 3; k++) {
        built t;
        changing_model(&t, type[k], rank[k]);
        must(built_set(&t, 2, type[k], rank[k], dims[k], numbers), &t.err);
        give_count(&t, 0, 2);
        refused(&t, LNT_E_MODEL, "the_loop (Loop)", "changes its type or extents in turn 1");
        give_count(&t, 0, 1);
        const lnt_tensor y = run(&t);
        expect_dims(&y, 2, (int64_t[]){1, 2});
        assert_memory_equal(y.data, numbers, 2 * sizeof *numbers);
        built_close(&t);
    }
}

static void test_no_turns(void **state)
{
    (void)state;
    stacking s;
    built t;
    stacking_begin(&s);
    const uint32_t x = builder_input(&s.b, "x", LNT_FLOAT, 2, (int64_t[]){-3, 4});
    const uint32_t slice = builder_node_in(&s.b, s.body.sub, "Abs", "slice", 1, &x);
    s.b.g.value[slice].info = (lnt_operand){.dtype = LNT_FLOAT, .rank = 2, .dims = {LNT_DIM_UNKNOWN, 4}};
    stacking_end(&s, slice, &t);
    must(built_set(&t, 1, LNT_FLOAT, 2, (int64_t[]){3, 4}, numbers), &t.err);
    give_count(&t, 0, 0);
    lnt_tensor y = run(&t);
    expect_dims(&y, 3, (int64_t[]){0, 0, 4});
    give_count(&t, 0, 1);
    y = run(&t);
    expect_dims(&y, 3, (int64_t[]){1, 3, 4});
    assert_memory_equal(y.data, numbers, 12 * sizeof *numbers);
    built_close(&t);
}

/* Of two stacks the first is not wanted. */
static void test_outputs_of_a_loop_that_nobody_wants(void **state)
{
    (void)state;
    builder b;
    builder_body body;
    built t;
    builder_begin(&b);
    const uint32_t in[] = {builder_input(&b, "n", LNT_INT64, 1, (int64_t[]){-2}), LNT_NONE,
                           builder_input(&b, "x", LNT_FLOAT, 1, two)};
    const uint32_t out[] = {lnt_graph_add_value(&b.g, "last"), LNT_NONE, lnt_graph_add_value(&b.g, "ys")};
    lnt_gnode *loop = builder_node_to(&b, 0, "Loop", "the_loop", 3, in, 3, out);
    body_begin(&b, &body, "body");
    body_input(&b, &body, "i", LNT_INT64);
    body_output(&body, body_input(&b, &body, "c", LNT_BOOL));
    const uint32_t v = body_input(&b, &body, "v", LNT_FLOAT);
    body_output(&body, builder_node_in(&b, body.sub, "Add", "sum", 2, (uint32_t[]){v, in[2]}));
    body_output(&body, builder_node_in(&b, body.sub, "Neg", "unwanted", 1, &v));
    body_output(&body, builder_node_in(&b, body.sub, "Abs", "same", 1, &v));
    body_end(&b, &body, loop, "body");
    builder_output(&b, out[2]);
    built_as_is(&t, &b);
    must(built_set(&t, 1, LNT_FLOAT, 1, two, numbers), &t.err);
    give_count(&t, 0, 3);
    const lnt_tensor ys = run(&t);
    expect_dims(&ys, 2, (int64_t[]){3, 2});
    for (int k = 0; k < 6; k++)
        assert_true(((const float *)ys.data)[k] == numbers[k % 2] * (float)(k / 2 + 1));
    built_close(&t);
}

/* ---- contents that shapes ask for ---- */

/* How long y is, a loop has counted; so is what another loop stacks. */
static void test_a_length_out_of_a_loop(void **state)
{
    (void)state;
    builder b;
    builder_body body, other;
    built t;
    builder_begin(&b);
    const uint32_t n = builder_input(&b, "n", LNT_INT64, 1, (int64_t[]){-2});
    const uint32_t zero = builder_int(&b, "zero", 0), step = builder_int(&b, "step", 1);
    const uint32_t last = lnt_graph_add_value(&b.g, "last"), zs = lnt_graph_add_value(&b.g, "zs");
    lnt_gnode *loop =
        builder_node_to(&b, 0, "Loop", "the_loop", 3, (uint32_t[]){n, LNT_NONE, zero}, 1, &last);
    lnt_gnode *stack = builder_node_to(&b, 0, "Loop", "the_other", 2, (uint32_t[]){step, LNT_NONE}, 1, &zs);
    body_begin(&b, &body, "body");
    body_input(&b, &body, "i", LNT_INT64);
    body_output(&body, body_input(&b, &body, "c", LNT_BOOL));
    const uint32_t v = body_input(&b, &body, "v", LNT_INT64);
    body_output(&body,
                builder_node_in(&b, body.sub, "Add", "more", 2, (uint32_t[]){v, builder_int(&b, "two", 2)}));
    body_end(&b, &body, loop, "body");
    body_begin(&b, &other, "other");
    body_input(&b, &other, "k", LNT_INT64);
    body_output(&other, body_input(&b, &other, "d", LNT_BOOL));
    body_output(&other, builder_node_in(&b, other.sub, "Range", "slice", 3, (uint32_t[]){zero, last, step}));
    body_end(&b, &other, stack, "body");
    builder_output(&b, builder_node(&b, "Range", "y", 3, (uint32_t[]){zero, last, step}));
    builder_output(&b, zs);
    built_as_is(&t, &b);
    for (int64_t turns = 3; turns >= 0; turns--) {
        give_count(&t, 0, turns);
        const lnt_tensor y = run(&t);
        expect_dims(&y, 1, (int64_t[]){2 * turns});
        for (int64_t k = 0; k < 2 * turns; k++)
            assert_int_equal(((const int64_t *)y.data)[k], k);
        lnt_tensor stacked;
        must(lnt_get_output(t.session, 1, &stacked, &t.err), &t.err);
        expect_dims(&stacked, 2, (int64_t[]){1, 2 * turns});
        assert_memory_equal(stacked.data, y.data, y.bytes);
    }
    built_close(&t);
}

/* In a loop, of a value that was computed before it. */
static void test_a_length_from_before_the_loop(void **state)
{
    (void)state;
    stacking s;
    built t;
    int64_t length;
    stacking_begin(&s);
    builder *b = &s.b;
    const uint32_t x = builder_input(b, "x", LNT_INT64, 0, NULL);
    const uint32_t twice = builder_node(b, "Add", "twice", 2, (uint32_t[]){x, x});
    const uint32_t limits[] = {builder_int(b, "zero", 0), twice, builder_int(b, "step", 1)};
    stacking_end(&s, builder_node_in(b, s.body.sub, "Range", "slice", 3, limits), &t);
    must(built_set(&t, 1, LNT_INT64, 0, NULL, &length), &t.err);
    for (length = 2; length >= 0; length--) {
        give_count(&t, 0, 2);
        const lnt_tensor y = run(&t);
        expect_dims(&y, 2, (int64_t[]){2, 2 * length});
        for (int64_t k = 0; k < 4 * length; k++)
            assert_int_equal(((const int64_t *)y.data)[k], k % (2 * length));
    }
    built_close(&t);
}

/* ---- Scan ---- */

/* Of two inputs [T, 2], scanned together: their sum, and the negative of the first; with one attribute. */
static void scan_model(built *t, const lnt_attr *attr)
{
    const int64_t scans = 2;
    builder b;
    builder_body body;
    builder_begin(&b);
    const uint32_t xs[] = {builder_input(&b, "x", LNT_FLOAT, 2, (int64_t[]){-2, 2}),
                           builder_input(&b, "w", LNT_FLOAT, 2, (int64_t[]){-2, 2})};
    const uint32_t ys[] = {lnt_graph_add_value(&b.g, "ys"), lnt_graph_add_value(&b.g, "zs")};
    lnt_gnode *scan = builder_node_to(&b, 0, "Scan", "the_scan", 2, xs, 2, ys);
    must(lnt_gnode_set_int(&b.g, scan, "num_scan_inputs", scans), &b.err);
    must(lnt_gnode_set_attr(&b.g, scan, attr), &b.err);
    body_begin(&b, &body, "body");
    const uint32_t in[] = {body_input(&b, &body, "a", LNT_FLOAT), body_input(&b, &body, "b", LNT_FLOAT)};
    body_output(&body, builder_node_in(&b, body.sub, "Add", "sum", 2, in));
    body_output(&body, builder_node_in(&b, body.sub, "Neg", "negative", 1, in));
    body_end(&b, &body, scan, "body");
    builder_output(&b, ys[0]);
    builder_output(&b, ys[1]);
    built_as_is(t, &b);
    must(built_set(t, 0, LNT_FLOAT, 2, (int64_t[]){3, 2}, numbers), &t->err);
    must(built_set(t, 1, LNT_FLOAT, 2, (int64_t[]){3, 2}, numbers + 6), &t->err);
}

#define ATTR(text, of_type, n, ...)                                                                          \
    &(lnt_attr)                                                                                              \
    {                                                                                                        \
        .name = (text), .type = (of_type), .count = (n), .i = (const int64_t[])                              \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

static void test_attributes_of_a_scan(void **state)
{
    (void)state;
    const struct {
        const lnt_attr *attr;
        const char *words;
    } trial[] = {
        {ATTR("scan_input_axes", LNT_ATTR_FLOATS, 2, 0), "scan_input_axes is too short"},
        {ATTR("scan_input_axes", LNT_ATTR_INTS, 1, 0), "scan_input_axes is too short"},
        {ATTR("scan_input_axes", LNT_ATTR_INTS, 2, 0, 2), "names axis 2 of rank 2"},
        {ATTR("scan_input_directions", LNT_ATTR_INTS, 1, 0), "scan_input_directions is too short"},
        {ATTR("scan_output_axes", LNT_ATTR_INTS, 1, 0), "scan_output_axes is too short"},
        {ATTR("scan_output_axes", LNT_ATTR_INTS, 2, 0, -3), "names axis -3 of rank 2"},
        {ATTR("scan_output_directions", LNT_ATTR_INTS, 1, 0), "scan_output_directions is too short"},
    };
    for (size_t k = 0; k < sizeof trial / sizeof *trial; k++) {
        built t;
        scan_model(&t, trial[k].attr);
        refused(&t, LNT_E_ARGUMENT, "the_scan (Scan)", trial[k].words);
        built_close(&t);
    }
}

static void test_axes_counted_from_the_end(void **state)
{
    (void)state;
    built t;
    scan_model(&t, ATTR("scan_output_axes", LNT_ATTR_INTS, 2, -1, 0));
    const lnt_tensor y = run(&t);
    expect_dims(&y, 2, (int64_t[]){2, 3});
    for (int k = 0; k < 6; k++)
        assert_true(((const float *)y.data)[k % 2 * 3 + k / 2] == numbers[k] + numbers[6 + k]);
    built_close(&t);
}

/* Over input 0, true or false, a branch: x, input 1, or w, input 2. */
static void choosing_scan(built *t, unsigned rank, const int64_t *x_dims, lnt_dtype w_type,
                          const int64_t *w_dims)
{
    builder b;
    builder_body body, then, other;
    builder_begin(&b);
    const uint32_t bs = builder_input(&b, "bs", LNT_BOOL, 1, (int64_t[]){-2});
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, rank, x_dims);
    const uint32_t w = builder_input(&b, "w", w_type, rank, w_dims);
    const uint32_t ys = lnt_graph_add_value(&b.g, "ys"), y = lnt_graph_add_value(&b.g, "y");
    lnt_gnode *scan = builder_node_to(&b, 0, "Scan", "the_scan", 1, &bs, 1, &ys);
    must(lnt_gnode_set_int(&b.g, scan, "num_scan_inputs", 1), &b.err);
    body_begin(&b, &body, "body");
    const uint32_t choose = body_input(&b, &body, "choose", LNT_BOOL);
    lnt_gnode *choice = builder_node_to(&b, body.sub, "If", "choice", 1, &choose, 1, &y);
    body_output(&body, y);
    body_end(&b, &body, scan, "body");
    body_begin(&b, &then, "then");
    body_output(&then, x);
    body_end(&b, &then, choice, "then_branch");
    body_begin(&b, &other, "other");
    body_output(&other, w);
    body_end(&b, &other, choice, "else_branch");
    builder_output(&b, ys);
    built_as_is(t, &b);
    must(built_set(t, 1, LNT_FLOAT, rank, x_dims, numbers), &t->err);
    must(built_set(t, 2, w_type, rank, w_dims, numbers), &t->err);
}

static void test_slices_of_a_scan_that_change(void **state)
{
    (void)state;
    static const bool first[] = {true, false};
    for (int k = 0; k < 2; k++) {
        built t;
        choosing_scan(&t, 1, two, k ? LNT_DOUBLE : LNT_FLOAT, k ? two : three);
        must(built_set(&t, 0, LNT_BOOL, 1, two, first), &t.err);
        refused(&t, LNT_E_MODEL, "the_scan (Scan)", "changes its type or extents in turn 1");
        must(built_set(&t, 0, LNT_BOOL, 1, two, yes), &t.err);
        const lnt_tensor y = run(&t);
        expect_dims(&y, 2, (int64_t[]){2, 2});
        assert_memory_equal((const float *)y.data + 2, numbers, 2 * sizeof *numbers);
        built_close(&t);
    }
}

static void test_slices_of_too_many_axes(void **state)
{
    (void)state;
    static const int64_t ones[LNT_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    built t;
    choosing_scan(&t, LNT_MAX_RANK, ones, LNT_FLOAT, ones);
    must(built_set(&t, 0, LNT_BOOL, 1, one, yes), &t.err);
    refused(&t, LNT_E_LIMIT, "the_scan (Scan)", "more than 8 axes");
    built_close(&t);
}

/* Slices without elements are no bytes in a file, however many: what is stacked for each has some. */
static void test_as_many_turns_as_a_constant_says(void **state)
{
    (void)state;
    static const int64_t turns[] = {INT64_C(1) << 58, INT64_C(1) << 57, 3};
    static const double slice[24];
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
        const int64_t dims[] = {turns[k], 0};
        builder b;
        builder_body body;
        built t;
        builder_begin(&b);
        const uint32_t w = builder_input(&b, "w", LNT_DOUBLE, 1, (int64_t[]){24});
        const uint32_t bs = lnt_graph_add_constant(&b.g, "bs", LNT_BOOL, 2, dims, NULL, 0);
        const uint32_t ys = lnt_graph_add_value(&b.g, "ys");
        lnt_gnode *scan = builder_node_to(&b, 0, "Scan", "the_scan", 1, &bs, 1, &ys);
        must(lnt_gnode_set_int(&b.g, scan, "num_scan_inputs", 1), &b.err);
        body_begin(&b, &body, "body");
        body_input(&b, &body, "slice", LNT_BOOL);
        body_output(&body, w);
        body_end(&b, &body, scan, "body");
        builder_output(&b, ys);
        built_as_is(&t, &b);
        must(built_set(&t, 0, LNT_DOUBLE, 1, (int64_t[]){24}, slice), &t.err);
        if (turns[k] > 3) {
            refused(&t, LNT_E_LIMIT, "the_scan (Scan)", "larger than the address space");
        } else {
            const lnt_tensor y = run(&t);
            expect_dims(&y, 2, (int64_t[]){3, 24});
        }
        built_close(&t);
    }
}

/* Of two states and two scan outputs the second and the first are not wanted. */
static void test_outputs_of_a_scan_that_nobody_wants(void **state)
{
    (void)state;
    builder b;
    builder_body body;
    built t;
    builder_begin(&b);
    const uint32_t in[] = {builder_input(&b, "a", LNT_FLOAT, 1, two),
                           builder_input(&b, "b", LNT_FLOAT, 1, two),
                           builder_input(&b, "x", LNT_FLOAT, 2, (int64_t[]){-2, 2})};
    const uint32_t out[] = {lnt_graph_add_value(&b.g, "last"), LNT_NONE, LNT_NONE,
                            lnt_graph_add_value(&b.g, "ys")};
    lnt_gnode *scan = builder_node_to(&b, 0, "Scan", "the_scan", 3, in, 4, out);
    must(lnt_gnode_set_int(&b.g, scan, "num_scan_inputs", 1), &b.err);
    body_begin(&b, &body, "body");
    const uint32_t v[] = {body_input(&b, &body, "v", LNT_FLOAT), body_input(&b, &body, "w", LNT_FLOAT),
                          body_input(&b, &body, "item", LNT_FLOAT)};
    const uint32_t sum = builder_node_in(&b, body.sub, "Add", "sum", 2, (uint32_t[]){v[0], v[2]});
    const uint32_t item = builder_node_in(&b, body.sub, "Abs", "same", 1, &v[2]);
    b.g.value[item].info = (lnt_operand){.dtype = LNT_FLOAT, .rank = 1, .dims = {2}};
    body_output(&body, sum);
    body_output(&body, builder_node_in(&b, body.sub, "Add", "other", 2, (uint32_t[]){v[1], v[2]}));
    body_output(&body, builder_node_in(&b, body.sub, "Neg", "unwanted", 1, &v[2]));
    body_output(&body, item);
    body_end(&b, &body, scan, "body");
    builder_output(&b, out[0]);
    builder_output(&b, out[3]);
    built_as_is(&t, &b);
    must(built_set(&t, 0, LNT_FLOAT, 1, two, numbers), &t.err);
    must(built_set(&t, 1, LNT_FLOAT, 1, two, numbers), &t.err);
    for (int64_t turns = 3; turns >= 0; turns -= 3) {
        must(built_set(&t, 2, LNT_FLOAT, 2, (int64_t[]){turns, 2}, numbers), &t.err);
        const lnt_tensor last = run(&t);
        lnt_tensor ys;
        must(lnt_get_output(t.session, 1, &ys, &t.err), &t.err);
        assert_true(*(const float *)last.data == (turns ? 10 : 1)); /* 1 + (1 + 3 + 5) */
        expect_dims(&ys, 2, (int64_t[]){turns, 2});
        assert_memory_equal(ys.data, numbers, (size_t)turns * 2 * sizeof *numbers);
    }
    built_close(&t);
}

/* ---- If ---- */

/* y = x or -x, as `choose` says, input 0 of open length; a second output is not wanted. */
static void if_model(built *t, lnt_dtype type)
{
    builder b;
    builder_body then, other;
    builder_begin(&b);
    const uint32_t choose = builder_input(&b, "choose", type, 1, (int64_t[]){-2});
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, three);
    const uint32_t y = lnt_graph_add_value(&b.g, "y");
    lnt_gnode *choice = builder_node_to(&b, 0, "If", "choice", 1, &choose, 2, (uint32_t[]){y, LNT_NONE});
    body_begin(&b, &then, "then");
    body_output(&then, x);
    body_output(&then, x);
    body_end(&b, &then, choice, "then_branch");
    body_begin(&b, &other, "other");
    body_output(&other, builder_node_in(&b, other.sub, "Neg", "negative", 1, &x));
    body_output(&other, x);
    body_end(&b, &other, choice, "else_branch");
    builder_output(&b, y);
    built_as_is(t, &b);
    must(built_set(t, 1, LNT_FLOAT, 1, three, numbers), &t->err);
}

static void test_conditions_of_an_if(void **state)
{
    (void)state;
    static const bool no[] = {false, false};
    built t;
    if_model(&t, LNT_UINT8);
    must(built_set(&t, 0, LNT_UINT8, 1, one, yes), &t.err);
    refused(&t, LNT_E_TYPE, "choice (If)", "condition must be one bool");
    built_close(&t);
    if_model(&t, LNT_BOOL);
    must(built_set(&t, 0, LNT_BOOL, 1, two, no), &t.err);
    refused(&t, LNT_E_TYPE, "choice (If)", "condition must be one bool");
    for (int k = 0; k < 2; k++) {
        must(built_set(&t, 0, LNT_BOOL, 1, one, k ? yes : no), &t.err);
        const lnt_tensor y = run(&t);
        expect_dims(&y, 1, three);
        assert_true(((const float *)y.data)[2] == (k ? 3 : -3));
    }
    built_close(&t);
}

/* What a branch gives is held against what the file declares of the output of the If. */
static void test_a_branch_of_other_extents(void **state)
{
    (void)state;
    builder b;
    builder_body then, other;
    built t;
    builder_begin(&b);
    const uint32_t choose = builder_input(&b, "choose", LNT_BOOL, 1, one);
    const uint32_t x = builder_input(&b, "x", LNT_FLOAT, 1, (int64_t[]){-2});
    const uint32_t y = lnt_graph_add_value(&b.g, "y");
    b.g.value[y].info = (lnt_operand){.dtype = LNT_FLOAT, .rank = 1, .dims = {3}};
    lnt_gnode *choice = builder_node_to(&b, 0, "If", "choice", 1, &choose, 1, &y);
    body_begin(&b, &then, "then");
    body_output(&then, builder_node_in(&b, then.sub, "Abs", "same", 1, &x));
    body_end(&b, &then, choice, "then_branch");
    body_begin(&b, &other, "other");
    body_output(&other, builder_node_in(&b, other.sub, "Neg", "negative", 1, &x));
    body_end(&b, &other, choice, "else_branch");
    builder_output(&b, y);
    built_as_is(&t, &b);
    must(built_set(&t, 0, LNT_BOOL, 1, one, yes), &t.err);
    must(built_set(&t, 1, LNT_FLOAT, 1, two, numbers), &t.err);
    refused(&t, LNT_E_MODEL, "choice (If)", "y has 2 along axis 0 where the file declares 3");
    must(built_set(&t, 1, LNT_FLOAT, 1, three, numbers), &t.err);
    assert_true(((const float *)run(&t).data)[2] == 3);
    built_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_and_conditions_of_another_type),
        cmocka_unit_test(test_counts_and_conditions_that_are_two),
        cmocka_unit_test(test_a_stack_of_too_many_axes),
        cmocka_unit_test(test_a_stack_beyond_the_address_space),
        cmocka_unit_test(test_slices_that_change),
        cmocka_unit_test(test_no_turns),
        cmocka_unit_test(test_outputs_of_a_loop_that_nobody_wants),
        cmocka_unit_test(test_a_length_out_of_a_loop),
        cmocka_unit_test(test_a_length_from_before_the_loop),
        cmocka_unit_test(test_attributes_of_a_scan),
        cmocka_unit_test(test_axes_counted_from_the_end),
        cmocka_unit_test(test_slices_of_a_scan_that_change),
        cmocka_unit_test(test_slices_of_too_many_axes),
        cmocka_unit_test(test_as_many_turns_as_a_constant_says),
        cmocka_unit_test(test_outputs_of_a_scan_that_nobody_wants),
        cmocka_unit_test(test_conditions_of_an_if),
        cmocka_unit_test(test_a_branch_of_other_extents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
