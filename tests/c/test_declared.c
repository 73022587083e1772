/* test_declared.c — what a model computes is held against what its file declares: tampered files whose values
 * become larger, or of another type, than their readers were made for. Run from the top of the tree. */
#include "model_builder.h"

#include "formats/lnt_file.h"

typedef struct trial {
    uint8_t *image;
    size_t size;
    lnt_model *model;
    lnt_session *session;
    lnt_error err;
} trial;

static void convert(trial *t, const char *path, const lnt_named_text *state)
{
    const lnt_convert_options how = {.opt = LNT_OPT_NONE, .state = state, .n_states = state != NULL};
    lnt_report report;
    void *image;
    *t = (trial){.size = 0};
    lnt_report_init(&report);
    must(lnt_convert_file(path, &how, &report, &image, &t->size, &t->err), &t->err);
    lnt_report_free(&report);
    t->image = image;
}

/* Where in the attribute data that number is. */
static uint64_t find_number(const lnt_file *f, int64_t number)
{
    uint64_t at = 0;
    int64_t there = 0;
    while (memcpy(&there, f->attr_data + at, sizeof there), there != number) {
        at += sizeof there;
        assert_true(at + sizeof there <= f->attr_data_bytes);
    }
    return at;
}

/* The file with n more attributes. */
static void append_attrs(trial *t, const lnt_rec_attr *attrs, uint32_t n)
{
    lnt_section_data section[LNT_FILE_MAX_SECTIONS];
    const lnt_rec_header *h = (const lnt_rec_header *)t->image;
    const lnt_rec_section *table = (const lnt_rec_section *)(h + 1);
    uint8_t *longer = NULL;
    for (uint32_t i = 0; i < h->n_sections; i++) {
        const uint8_t *bytes = (const uint8_t *)t->image + table[i].offset;
        section[i] = (lnt_section_data){(lnt_section)table[i].kind, bytes, table[i].bytes};
        if (table[i].kind != LNT_SECTION_ATTRS)
            continue;
        longer = malloc(table[i].bytes + n * sizeof *attrs);
        assert_non_null(longer);
        memcpy(longer, bytes, table[i].bytes);
        memcpy(longer + table[i].bytes, attrs, n * sizeof *attrs);
        section[i] = (lnt_section_data){LNT_SECTION_ATTRS, longer, table[i].bytes + n * sizeof *attrs};
    }
    void *image = NULL;
    must(lnt_file_build(section, h->n_sections, &lnt_malloc_allocator, &image, &t->size, &t->err), &t->err);
    free(longer);
    lnt_free(&lnt_malloc_allocator, t->image);
    t->image = image;
}

/* Has cast number `which` of the file, whose attributes others share, cast to `type`, which some attribute holds for
 * another reason. */
static void change_cast(trial *t, unsigned which, int64_t type)
{
    lnt_file f;
    must(lnt_file_check(t->image, t->size, true, &f, &t->err), &t->err);
    lnt_rec_node *nodes = (lnt_rec_node *)(uintptr_t)f.nodes;
    for (uint32_t i = 0; i < f.n_nodes; i++) {
        lnt_rec_attr to = f.attrs[nodes[i].first_attr];
        if (nodes[i].n_attrs != 1 || strcmp(f.strings + to.name, "to") != 0 || which-- != 0)
            continue;
        to.data = find_number(&f, type);
        nodes[i].first_attr = f.n_attrs;
        append_attrs(t, &to, 1);
        return;
    }
    fail_msg("no such cast");
}

static void open_session(trial *t)
{
    const lnt_session_options options = {.struct_bytes = sizeof options, .intra_op_num_threads = 1};
    must(lnt_model_create_from_memory(t->image, t->size, NULL, &t->model, &t->err), &t->err);
    must(lnt_session_create(t->model, &options, &t->session, &t->err), &t->err);
}

static void give(trial *t, const char *name, const lnt_tensor *tensor)
{
    const int i = lnt_model_find_input(t->model, name);
    assert_true(i >= 0);
    must(lnt_set_input(t->session, (uint32_t)i, tensor, &t->err), &t->err);
}

static void refused(trial *t, lnt_status status, const char *words)
{
    assert_int_equal(lnt_run(t->session, &t->err), status);
    if (!strstr(t->err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", t->err.message, words);
}

static void end(trial *t)
{
    lnt_session_destroy(&t->session);
    lnt_model_destroy(&t->model);
    lnt_free(&lnt_malloc_allocator, t->image);
}

static float ones[4096];
static const lnt_tensor x = {LNT_FLOAT, 1, {4096}, ones, sizeof ones};

static void test_turns_of_a_scan_times_its_slice_overflow(void **state)
{
    (void)state;
    static const int64_t turns[] = {INT64_C(1) << 58, INT64_C(1) << 57, INT64_C(1) << 56, INT64_C(1) << 40};
    static double slice[24];
    const lnt_tensor w = {LNT_DOUBLE, 1, {24}, slice, sizeof slice};
    trial t;
    convert(&t, "tests/data/models/scan_turns.onnx", NULL);
    open_session(&t);
    give(&t, "w", &w);
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
        const lnt_tensor bs = {LNT_BOOL, 2, {turns[i], 0}, NULL, 0};
        give(&t, "bs", &bs);
        const lnt_status status = lnt_run(t.session, &t.err);
        assert_true(status == LNT_E_LIMIT || status == LNT_E_MEMORY);
        assert_non_null(strstr(t.err.message, "Scan_ys"));
    }
    give(&t, "bs", &(lnt_tensor){LNT_BOOL, 2, {3, 0}, NULL, 0});
    must(lnt_run(t.session, &t.err), &t.err);
    end(&t);
}

static void test_a_branch_of_another_type_in_a_loop(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 2; which++) {
        static int64_t turns = 3;
        trial t;
        convert(&t, "tests/data/models/loop_branches.onnx", NULL);
        change_cast(&t, which, LNT_FLOAT);
        open_session(&t);
        give(&t, "x", &x);
        give(&t, "n", &(lnt_tensor){LNT_INT64, 0, {0}, &turns, sizeof turns});
        refused(&t, LNT_E_TYPE, "is float where the file declares double");
        assert_non_null(strstr(t.err.message, "Cast_"));
        end(&t);
    }
}

static void test_a_branch_of_another_type_in_a_scan(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 2; which++) {
        static uint8_t choices[] = {1, 0, 1};
        trial t;
        convert(&t, "tests/data/models/scan_branches.onnx", NULL);
        change_cast(&t, which, LNT_FLOAT);
        open_session(&t);
        give(&t, "x", &x);
        give(&t, "bs", &(lnt_tensor){LNT_BOOL, 1, {3}, choices, sizeof choices});
        refused(&t, LNT_E_TYPE, "is float where the file declares double");
        end(&t);
    }
}

static void test_a_state_of_another_type(void **state)
{
    (void)state;
    const lnt_named_text fed = {"next", "state"};
    const lnt_tensor row = {LNT_FLOAT, 2, {1, 4096}, ones, sizeof ones};
    lnt_file f;
    trial t;
    convert(&t, "tests/data/models/state_type.onnx", &fed);
    change_cast(&t, 0, LNT_FLOAT);
    must(lnt_file_check(t.image, t.size, true, &f, &t.err), &t.err);
    lnt_rec_value *values = (lnt_rec_value *)(uintptr_t)f.values;
    for (uint32_t i = 0; i < f.n_values; i++) /* even where the file declares nothing of it */
        if (strcmp(f.strings + values[i].name, "next") == 0)
            values[i].dtype = LNT_UNDEFINED;
    must(lnt_file_rehash(t.image, t.size, &t.err), &t.err);
    if (lnt_model_create_from_memory(t.image, t.size, NULL, &t.model, &t.err) == LNT_OK) {
        must(lnt_session_create(t.model, NULL, &t.session, &t.err), &t.err);
        give(&t, "x", &row);
        refused(&t, LNT_E_TYPE, "is to be a state's next contents");
    }
    end(&t);
}

/* The file says float of what ArgMax gives. */
static void test_an_index_that_is_declared_float(void **state)
{
    (void)state;
    builder b;
    built t;
    builder_begin(&b);
    const uint32_t in = builder_input(&b, "x", LNT_FLOAT, 2, (int64_t[]){4, 16});
    const uint32_t at = builder_node(&b, "ArgMax", "at", 1, &in);
    b.g.value[at].info = (lnt_operand){.dtype = LNT_FLOAT, .rank = LNT_RANK_UNKNOWN};
    builder_output(&b, at);
    built_as_is(&t, &b);
    must(built_set(&t, 0, LNT_FLOAT, 2, (int64_t[]){4, 16}, ones), &t.err);
    expect_refused(&t, lnt_run(t.session, &t.err), LNT_E_TYPE, "at (ArgMax)", "is int64 where the file declares float");
    built_close(&t);
}

/* Lays value i channels-last and runs; LNT_E_FILE where it is a constant, an input or an output. */
static lnt_status run_turned(uint32_t i, uint32_t *n_values)
{
    static const lnt_tensor image = {LNT_FLOAT, 4, {1, 3, 8, 8}, ones, 192 * sizeof *ones};
    trial t;
    lnt_file f;
    convert(&t, "tests/data/models/image.onnx", NULL);
    must(lnt_file_check(t.image, t.size, true, &f, &t.err), &t.err);
    lnt_rec_value *v = (lnt_rec_value *)(uintptr_t)f.values + i;
    *n_values = f.n_values;
    lnt_status status = LNT_E_FILE;
    if (v->rank >= 3 && v->rank <= LNT_MAX_RANK && v->constant == LNT_FILE_NONE) {
        v->order = LNT_ORDER_CHANNELS_LAST;
        must(lnt_file_rehash(t.image, t.size, &t.err), &t.err);
        status = lnt_model_create_from_memory(t.image, t.size, NULL, &t.model, &t.err);
    }
    if (status == LNT_OK) {
        must(lnt_session_create(t.model, NULL, &t.session, &t.err), &t.err);
        give(&t, "x", &image);
        status = lnt_run(t.session, &t.err);
        assert_true(status == LNT_OK || strstr(t.err.message, "storage order"));
    }
    end(&t);
    return status;
}

static void test_a_value_in_another_storage_order(void **state)
{
    (void)state;
    unsigned refused_values = 0, taken = 0;
    uint32_t n_values = 1;
    for (uint32_t i = 0; i < n_values; i++) {
        const lnt_status status = run_turned(i, &n_values);
        assert_true(status == LNT_OK || status == LNT_E_MODEL || status == LNT_E_FILE);
        refused_values += status == LNT_E_MODEL;
        taken += status == LNT_OK;
    }
    assert_true(refused_values > 1 && taken > 0);
}

int main(void)
{
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++)
        ones[i] = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_of_a_scan_times_its_slice_overflow),
        cmocka_unit_test(test_a_branch_of_another_type_in_a_loop),
        cmocka_unit_test(test_a_branch_of_another_type_in_a_scan),
        cmocka_unit_test(test_a_state_of_another_type),
        cmocka_unit_test(test_an_index_that_is_declared_float),
        cmocka_unit_test(test_a_value_in_another_storage_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
