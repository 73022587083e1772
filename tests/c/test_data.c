/* test_data.c — data operators from below: what shape rules keep of unknown extents, strided copies against
 * element-by-element ones, what becomes a view, rows read out of packed panels. */
#include "ops/copy.h"
#include "ops/kernels.h"
#include "ops/op.h"

#include "formats/packed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a node on the spot ---- */

enum { OPERANDS = 6 };

typedef struct fixture {
    lnt_node node;
    lnt_attr attr[4];
    lnt_operand in[OPERANDS], out[OPERANDS];
    lnt_operand *in_at[OPERANDS], *out_at[OPERANDS];
    int64_t value[OPERANDS][LNT_MAX_RANK]; /* contents of inputs that shapes hang on */
    lnt_error err;
    lnt_site site;
} fixture;

static void begin(fixture *f, const char *op)
{
    memset(f, 0, sizeof *f);
    f->node = (lnt_node){.op = lnt_op_by_name("", op), .name = op, .attr = f->attr};
    assert_non_null(f->node.op);
    f->site = (lnt_site){.node = &f->node, .in = f->in_at, .out = f->out_at, .err = &f->err};
}

static lnt_operand *add_input(fixture *f, lnt_dtype dtype, unsigned rank, const int64_t *dims)
{
    lnt_operand *o = &f->in[f->node.n_in];
    o->dtype = (uint8_t)dtype;
    o->rank = (uint8_t)rank;
    if (rank <= LNT_MAX_RANK)
        memcpy(o->dims, dims, rank * sizeof *dims);
    f->in_at[f->node.n_in] = o;
    f->site.n_in = ++f->node.n_in;
    return o;
}

/* A list of int64 that is known. */
static void add_list(fixture *f, unsigned n, const int64_t *values)
{
    const unsigned i = f->node.n_in;
    memcpy(f->value[i], values, n * sizeof *values);
    add_input(f, LNT_INT64, 1, &(int64_t){n})->data = f->value[i];
}

/* A list of n int64 that is not known. */
static void add_unknown_list(fixture *f, int64_t n)
{
    add_input(f, LNT_INT64, 1, &n);
}

static void add_int(fixture *f, const char *name, const int64_t *value)
{
    f->attr[f->node.n_attr++] = (lnt_attr){.name = name, .type = LNT_ATTR_INT, .count = 1, .i = value};
}

static lnt_status infer(fixture *f, unsigned outputs)
{
    for (unsigned i = 0; i < outputs; i++)
        f->out_at[i] = &f->out[i];
    f->site.n_out = f->node.n_out = (uint16_t)outputs;
    return lnt_site_shape(&f->site);
}

static void expect(const lnt_operand *o, unsigned rank, const int64_t *dims)
{
    assert_int_equal(o->rank, rank);
    for (unsigned i = 0; i < rank; i++)
        assert_int_equal(o->dims[i], dims[i]);
}

#define LIST(...)                                                                                            \
    (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                                  \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

enum { ANON = LNT_DIM_UNKNOWN, B = -2, T = -3 }; /* two symbols */

/* ---- shape rules ---- */

static void reshape_to(fixture *f, unsigned rank, const int64_t *dims, unsigned n, const int64_t *shape)
{
    begin(f, "Reshape");
    add_input(f, LNT_FLOAT, rank, dims);
    add_list(f, n, shape);
    assert_int_equal(infer(f, 1), LNT_OK);
}

static void test_reshape_keeps_symbols(void **state)
{
    (void)state;
    fixture f;
    reshape_to(&f, LIST(B, T, 512), LIST(0, 0, 8, 64));
    expect(&f.out[0], LIST(B, T, 8, 64));
    reshape_to(&f, LIST(B, T, 8, 64), LIST(0, -1, 512));
    expect(&f.out[0], LIST(B, T, 512));
    reshape_to(&f, LIST(B, T, 8, 64), LIST(-1, 512));
    expect(&f.out[0], LIST(ANON, 512));
    reshape_to(&f, LIST(T, 6), LIST(3, -1, 2));
    expect(&f.out[0], LIST(3, T, 2));
    reshape_to(&f, LIST(0, 3), LIST(0, -1));
    expect(&f.out[0], LIST(0, 3));
    reshape_to(&f, LNT_RANK_UNKNOWN, NULL, LIST(4, -1));
    expect(&f.out[0], LIST(4, ANON));
}

static void test_unknown_values_leave_ranks(void **state)
{
    (void)state;
    static const char *const ops[] = {"Reshape", "Expand", "Tile", "Unsqueeze", "ConstantOfShape"};
    static const unsigned ranks[] = {3, 3, 2, 5, 3};
    for (unsigned i = 0; i < 5; i++) {
        fixture f;
        begin(&f, ops[i]);
        if (i < 4)
            add_input(&f, LNT_FLOAT, LIST(B, T));
        add_unknown_list(&f, i == 2 ? 2 : 3);
        assert_int_equal(infer(&f, 1), LNT_UNKNOWN);
        assert_int_equal(f.out[0].rank, ranks[i]);
        assert_int_equal(f.out[0].dims[0], ANON);
    }
}

static void test_slice_of_unknown_extents(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "Slice");
    add_input(&f, LNT_FLOAT, LIST(B, T, 10));
    add_list(&f, LIST(0, 2));
    add_list(&f, LIST(INT64_MAX, 6));
    add_list(&f, LIST(1, 2));
    assert_int_equal(infer(&f, 1), LNT_OK);
    expect(&f.out[0], LIST(B, T, 4));

    begin(&f, "Slice"); /* bounds not known: the other axes stay */
    add_input(&f, LNT_FLOAT, LIST(B, T, 10));
    add_unknown_list(&f, 1);
    add_unknown_list(&f, 1);
    add_list(&f, LIST(-1));
    assert_int_equal(infer(&f, 1), LNT_UNKNOWN);
    expect(&f.out[0], LIST(B, T, ANON));
}

static void test_other_rules_keep_symbols(void **state)
{
    (void)state;
    fixture f;
    const int64_t axis = 1, start = 1;
    begin(&f, "Concat");
    add_input(&f, LNT_FLOAT, LIST(B, 3, T));
    add_input(&f, LNT_FLOAT, LIST(B, 4, ANON));
    add_int(&f, "axis", &axis);
    assert_int_equal(infer(&f, 1), LNT_OK);
    expect(&f.out[0], LIST(B, 7, T));

    begin(&f, "Gather");
    add_input(&f, LNT_FLOAT, LIST(100, 8));
    add_input(&f, LNT_INT64, LIST(B, T));
    assert_int_equal(infer(&f, 1), LNT_OK);
    expect(&f.out[0], LIST(B, T, 8));

    begin(&f, "Shape");
    add_input(&f, LNT_FLOAT, LIST(B, T, ANON));
    add_int(&f, "start", &start);
    assert_int_equal(infer(&f, 1), LNT_OK);
    expect(&f.out[0], LIST(2));

    begin(&f, "Flatten");
    add_input(&f, LNT_FLOAT, LIST(B, T, 1));
    assert_int_equal(infer(&f, 1), LNT_OK);
    expect(&f.out[0], LIST(B, T));

    begin(&f, "Split");
    add_input(&f, LNT_FLOAT, LIST(B, 7));
    add_int(&f, "axis", &axis);
    assert_int_equal(infer(&f, 3), LNT_OK);
    expect(&f.out[0], LIST(B, 3));
    expect(&f.out[2], LIST(B, 1));
}

static void test_einsum_keeps_symbols(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "Einsum");
    f.attr[f.node.n_attr++] =
        (lnt_attr){.name = "equation", .type = LNT_ATTR_STRING, .count = 19, .s = "bthd,bshd->bhts"};
    add_input(&f, LNT_FLOAT, LIST(B, T, 4, 16));
    add_input(&f, LNT_FLOAT, LIST(B, 9, 4, 16));
    assert_int_equal(infer(&f, 1), LNT_OK);
    expect(&f.out[0], LIST(B, 4, T, 9));
}

/* ---- copies ---- */

static lnt_status in_slices(lnt_kernel *k, int64_t items, int64_t grain, lnt_task_fn task, void *arg)
{
    (void)grain;
    for (int64_t i = 0; i < items; i += 3)
        LNT_TRY(task(k, arg, i, i + 3 < items ? i + 3 : items, (unsigned)(i % 2)));
    return LNT_OK;
}

static uint32_t next_random(uint32_t *seed)
{
    return *seed = *seed * 1664525u + 1013904223u;
}

/* A box of random extents whose axes are in random order in both places, with gaps, repeats and reversals. */
typedef struct box {
    unsigned rank;
    size_t size;
    int64_t n[5], dst[5], src[5]; /* strides in elements */
    int64_t first, dst_span, src_span;
} box;

static int64_t lay_out(const box *b, const unsigned *order, uint32_t *seed, int64_t *strides)
{
    int64_t step = next_random(seed) >> 30 ? 1 : 2;
    for (unsigned i = 0; i < b->rank; i++) {
        strides[order[i]] = step;
        step *= b->n[order[i]] + (next_random(seed) >> 29 ? 0 : 1);
    }
    return step;
}

static box random_box(uint32_t *seed)
{
    static const uint8_t extents[] = {1, 2, 3, 5, 16, 17, 33, 70};
    box b = {.rank = next_random(seed) >> 16 & 3, .size = (size_t)1 << (next_random(seed) >> 16 & 3)};
    unsigned order[2][5];
    for (unsigned i = 0; i < b.rank; i++) {
        b.n[i] = extents[next_random(seed) >> 29];
        for (unsigned o = 0; o < 2; o++) {
            const unsigned at = (next_random(seed) >> 8) % (i + 1);
            order[o][i] = i;
            order[o][i] = order[o][at];
            order[o][at] = i;
        }
    }
    b.dst_span = lay_out(&b, order[0], seed, b.dst);
    b.src_span = lay_out(&b, order[1], seed, b.src);
    for (unsigned i = 0; i < b.rank; i++)
        switch (next_random(seed) >> 28) {
        case 0: b.src[i] = 0; break;
        case 1:
            b.first += (b.n[i] - 1) * b.src[i];
            b.src[i] = -b.src[i];
            break;
        default: break;
        }
    return b;
}

static void copy_one_by_one(const box *b, unsigned axis, char *dst, const char *src)
{
    if (axis == b->rank) {
        memcpy(dst, src, b->size);
        return;
    }
    for (int64_t i = 0; i < b->n[axis]; i++)
        copy_one_by_one(b, axis + 1, dst + i * b->dst[axis] * (int64_t)b->size,
                        src + i * b->src[axis] * (int64_t)b->size);
}

static void test_copies(void **state)
{
    (void)state;
    lnt_kernel k = {.threads = 2, .kernels = lnt_kernels_of(LNT_LEVEL_SCALAR), .parallel = in_slices};
    for (uint32_t round = 0, seed = 1; round < 3000; round++) {
        const box b = random_box(&seed);
        const size_t dst_bytes = (size_t)b.dst_span * b.size + 64,
                     src_bytes = (size_t)b.src_span * b.size + 64;
        char *src = malloc(src_bytes), *got = malloc(dst_bytes), *want = malloc(dst_bytes);
        for (size_t i = 0; i < src_bytes; i++)
            src[i] = (char)(next_random(&seed) >> 24);
        memset(got, 0x5a, dst_bytes); /* what is between must stay */
        memset(want, 0x5a, dst_bytes);
        const char *from = src + b.first * (int64_t)b.size;
        lnt_copy c;
        lnt_copy_box(&c, b.size, b.rank, b.n, b.dst, b.src);
        assert_int_equal(lnt_copy_run(&k, &c, got, from), LNT_OK);
        copy_one_by_one(&b, 0, want, from);
        if (memcmp(got, want, dst_bytes) != 0)
            fail_msg("round %u: rank %u, %zu bytes an element, kind %d", round, b.rank, b.size, (int)c.kind);
        free(src);
        free(got);
        free(want);
    }
}

static void test_fill(void **state)
{
    (void)state;
    for (size_t unit = 1; unit <= 16; unit *= 2)
        for (int64_t n = 0; n < 40; n++) {
            unsigned char memory[40 * 16 + 1], value[16];
            memset(memory, 0xee, sizeof memory);
            for (unsigned i = 0; i < 16; i++)
                value[i] = (unsigned char)(i + 1);
            lnt_fill(memory, n, value, unit);
            for (size_t i = 0; i < (size_t)n * unit; i++)
                assert_int_equal(memory[i], value[i % unit]);
            assert_int_equal(memory[(size_t)n * unit], 0xee);
        }
}

/* ---- views ---- */

/* Binds the node; true if output 0 is a view that starts offset bytes into the input. */
static bool binds_view(fixture *f, size_t *offset)
{
    lnt_step step;
    lnt_bump memory;
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    assert_int_equal(infer(f, 1), LNT_OK);
    lnt_site_begin_bind(&f->site, &step, &memory, LNT_LEVEL_SCALAR, 1);
    assert_int_equal(lnt_row_bind(&f->site), LNT_OK);
    lnt_bump_free(&memory);
    *offset = f->site.view_offset[0];
    return f->site.view_of[0] == 0;
}

static bool slice_is_view(unsigned axis, int64_t start, int64_t end, uint8_t order, size_t *offset)
{
    fixture f;
    begin(&f, "Slice");
    add_input(&f, LNT_FLOAT, LIST(1, 6, 4, 5))->order = order;
    add_list(&f, LIST(start));
    add_list(&f, LIST(end));
    add_list(&f, LIST(axis));
    f.out[0].order = order;
    return binds_view(&f, offset);
}

static void test_views(void **state)
{
    (void)state;
    fixture f;
    size_t offset;
    assert_true(slice_is_view(1, 2, 5, LNT_ORDER_PLAIN, &offset));
    assert_int_equal(offset, 2 * 4 * 5 * sizeof(float));
    assert_false(slice_is_view(2, 1, 3, LNT_ORDER_PLAIN, &offset));
    assert_false(slice_is_view(1, 2, 5, LNT_ORDER_CHANNELS_LAST, &offset));
    assert_true(slice_is_view(2, 1, 3, LNT_ORDER_CHANNELS_LAST, &offset));
    assert_int_equal(offset, 5 * 6 * sizeof(float));
    assert_true(slice_is_view(3, 0, 99, LNT_ORDER_PLAIN, &offset)); /* nothing is cut */

    static const int64_t turn[] = {1, 0, 2}, swap[] = {0, 2, 1};
    for (unsigned i = 0; i < 2; i++) {
        begin(&f, "Transpose");
        add_input(&f, LNT_INT32, LIST(1, 7, 5));
        f.attr[f.node.n_attr++] =
            (lnt_attr){.name = "perm", .type = LNT_ATTR_INTS, .count = 3, .i = i ? swap : turn};
        assert_int_equal(binds_view(&f, &offset), i == 0);
    }
}

/* ---- packed constants ---- */

static void test_gather_from_panels(void **state)
{
    (void)state;
    static const struct {
        lnt_source source;
        int64_t rows, columns;
    } cases[] = {
        {LNT_SOURCE_KN, 9, 21}, {LNT_SOURCE_KN, 5, 16}, {LNT_SOURCE_NK, 37, 6}, {LNT_SOURCE_NK, 16, 1}};
    for (unsigned c = 0; c < 4; c++) {
        const int64_t rows = cases[c].rows, columns = cases[c].columns,
                      picks[4] = {0, rows - 1, -rows, rows / 2};
        const bool turned = cases[c].source == LNT_SOURCE_NK;
        const lnt_packed packed = lnt_packed_panels(cases[c].source, 1, (uint32_t)(turned ? columns : rows),
                                                    (uint32_t)(turned ? rows : columns));
        float plain[37 * 21], out[4 * 21];
        size_t bytes;
        assert_true(lnt_packed_bytes(&packed, &bytes));
        float *panels = lnt_alloc(&lnt_malloc_allocator, bytes, NULL);
        for (int64_t i = 0; i < rows * columns; i++)
            plain[i] = (float)i;
        lnt_pack(&packed, LNT_FLOAT, plain, panels);

        fixture f;
        begin(&f, "Gather");
        lnt_operand *table = add_input(&f, LNT_FLOAT, LIST(rows, columns));
        table->packed = &packed;
        table->data = panels;
        add_list(&f, 4, picks);
        assert_int_equal(infer(&f, 1), LNT_OK);
        void *out_data[1] = {out};
        assert_int_equal(lnt_evaluate(&lnt_malloc_allocator, &f.node, f.in_at, f.out_at, out_data,
                                      LNT_LEVEL_SCALAR, 0, &f.err),
                         LNT_OK);
        for (unsigned i = 0; i < 4; i++) {
            const int64_t row = picks[i] < 0 ? picks[i] + rows : picks[i];
            assert_memory_equal(out + i * columns, plain + row * columns, (size_t)columns * sizeof(float));
        }
        lnt_free(&lnt_malloc_allocator, panels);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reshape_keeps_symbols),
        cmocka_unit_test(test_unknown_values_leave_ranks),
        cmocka_unit_test(test_slice_of_unknown_extents),
        cmocka_unit_test(test_other_rules_keep_symbols),
        cmocka_unit_test(test_einsum_keeps_symbols),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_gather_from_panels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
