/* test_tensors.c — tensor files against what numpy and onnx wrote (tests/data/make_tensors.py), run from the
 * top of the tree. */
#include "base/half.h"
#include "formats/lnt_file.h"
#include "formats/tensor_file.h"
#include "formats/tensor_list.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define NPY "tests/data/npy.npz"
#define PB "tests/data/pb.npz"
#define DEFLATED "tests/data/deflated.npz"

enum { ELEMENTS = 6, MAX_BYTES = ELEMENTS * 8 };

static const lnt_dtype numpy_types[] = {LNT_FLOAT, LNT_DOUBLE, LNT_FLOAT16, LNT_INT8,   LNT_INT16,  LNT_INT32,
                                        LNT_INT64, LNT_UINT8,  LNT_UINT16,  LNT_UINT32, LNT_UINT64, LNT_BOOL};

static const char *numpy_name(lnt_dtype dtype)
{
    return dtype == LNT_FLOAT ? "float32" : dtype == LNT_DOUBLE ? "float64" : lnt_dtype_text(dtype);
}

static bool is_float(lnt_dtype dtype)
{
    return dtype == LNT_FLOAT || dtype == LNT_DOUBLE || dtype == LNT_FLOAT16 || dtype == LNT_BFLOAT16;
}

static void store_float(lnt_dtype dtype, float x, void *at)
{
    const double wide = x;
    const uint16_t half = dtype == LNT_FLOAT16 ? lnt_float_to_f16(x) : lnt_float_to_bf16(x);
    memcpy(at,
           dtype == LNT_FLOAT    ? (const void *)&x
           : dtype == LNT_DOUBLE ? (const void *)&wide
                                 : &half,
           lnt_dtype_size(dtype));
}

/* Number i of values() in make_tensors.py, as the low bytes of a word. */
static uint64_t integer(lnt_dtype dtype, unsigned i)
{
    const unsigned bits = 8 * (unsigned)lnt_dtype_size(dtype);
    const bool is_signed =
        dtype == LNT_INT8 || dtype == LNT_INT16 || dtype == LNT_INT32 || dtype == LNT_INT64;
    const uint64_t top = UINT64_C(1) << (bits - 1);
    const uint64_t signed_values[ELEMENTS] = {top, UINT64_MAX, 0, 1, 2, top - 1};
    const uint64_t unsigned_values[ELEMENTS] = {0, 1, 2, 3, UINT64_MAX - 1, UINT64_MAX};
    if (dtype == LNT_BOOL)
        return i == 1 || i == 2 || i == 4;
    return is_signed ? signed_values[i] : unsigned_values[i];
}

static size_t expected_bytes(lnt_dtype dtype, uint8_t out[MAX_BYTES])
{
    const float floats[ELEMENTS] = {-1.5f, 0, 0.5f, 1, 2, INFINITY};
    const size_t size = lnt_dtype_size(dtype);
    for (unsigned i = 0; i < ELEMENTS; i++) {
        const uint64_t word = integer(dtype, i);
        if (is_float(dtype))
            store_float(dtype, floats[i], out + i * size);
        else
            for (size_t b = 0; b < size; b++)
                out[i * size + b] =
                    (uint8_t)(word >> 8 * (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? size - 1 - b : b));
    }
    return ELEMENTS * size;
}

static lnt_tensor read_npy(const char *member)
{
    char path[64];
    lnt_tensor t = {0};
    lnt_error err = {0};
    snprintf(path, sizeof path, NPY ":%s", member);
    if (lnt_tensor_read(path, &lnt_malloc_allocator, &t, &err) != LNT_OK)
        fail_msg("%s", err.message);
    return t;
}

/* Parses the message that pb.npz holds as an array of bytes. */
static lnt_status read_pb(const char *member, lnt_tensor *t, char name[16], lnt_error *err)
{
    char path[64];
    lnt_tensor message = {0};
    snprintf(path, sizeof path, PB ":%s", member);
    if (lnt_tensor_read(path, &lnt_malloc_allocator, &message, err) != LNT_OK)
        fail_msg("%s", err->message);
    const lnt_status status =
        lnt_tensor_parse_pb(message.data, message.bytes, &lnt_malloc_allocator, t, name, 16, err);
    lnt_tensor_free(&lnt_malloc_allocator, &message);
    return status;
}

static lnt_tensor read_good_pb(const char *member, const char *expected_name)
{
    char name[16];
    lnt_tensor t = {0};
    lnt_error err = {0};
    if (read_pb(member, &t, name, &err) != LNT_OK)
        fail_msg("%s: %s", member, err.message);
    assert_string_equal(name, expected_name);
    return t;
}

/* The tensor is the 2 x 3 one of make_tensors.py; frees it. */
static void expect_values(lnt_tensor t, lnt_dtype dtype)
{
    uint8_t expected[MAX_BYTES];
    const size_t bytes = expected_bytes(dtype, expected);
    assert_int_equal(t.dtype, dtype);
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.dims[0], 2);
    assert_int_equal(t.dims[1], 3);
    assert_int_equal(t.bytes, bytes);
    assert_memory_equal(t.data, expected, bytes);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
}

static void npy_of_every_type(void **state)
{
    (void)state;
    const char *const suffixes[] = {"", ".npy", "_fortran", "_big"};
    for (unsigned i = 0; i < sizeof numpy_types / sizeof *numpy_types; i++)
        for (unsigned k = 0; k < 4; k++) {
            char member[32];
            snprintf(member, sizeof member, "%s%s", numpy_name(numpy_types[i]), suffixes[k]);
            expect_values(read_npy(member), numpy_types[i]);
        }
    expect_values(read_npy("version_2"), LNT_FLOAT);
    expect_values(read_npy("version_3"), LNT_FLOAT);
}

static void npy_of_every_shape(void **state)
{
    (void)state;
    lnt_tensor t = read_npy("scalar");
    assert_int_equal(t.rank, 0);
    assert_true(*(float *)t.data == 7);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
    t = read_npy("vector");
    assert_int_equal(t.rank, 1);
    assert_int_equal(t.dims[0], 5);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
    t = read_npy("empty");
    assert_int_equal(t.rank, 3);
    assert_int_equal(t.bytes, 0);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
    t = read_npy("cube_fortran");
    for (int i = 0; i < 24; i++)
        assert_int_equal(((int32_t *)t.data)[i], i);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
}

static void pb_of_every_encoding(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof numpy_types / sizeof *numpy_types; i++) {
        char member[32];
        snprintf(member, sizeof member, "%s_typed", numpy_name(numpy_types[i]));
        expect_values(read_good_pb(member, "typed"), numpy_types[i]);
        expect_values(read_good_pb(numpy_name(numpy_types[i]), "raw"), numpy_types[i]);
    }
    expect_values(read_good_pb("bfloat16_typed", "typed"), LNT_BFLOAT16);
    expect_values(read_good_pb("float32_unpacked", ""), LNT_FLOAT);
    expect_values(read_good_pb("int32_unpacked", ""), LNT_INT32);
    expect_values(read_good_pb("optional", "optional"), LNT_FLOAT);
    lnt_tensor t = read_good_pb("scalar", "s");
    assert_int_equal(t.rank, 0);
    assert_true(*(float *)t.data == 7);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
    t = read_good_pb("empty", "e");
    assert_int_equal(t.rank, 3);
    assert_int_equal(t.bytes, 0);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
}

static void expect_pb_refused(const char *member, lnt_status code, const char *expected)
{
    char name[16];
    lnt_tensor t;
    lnt_error err = {0};
    const lnt_status status = read_pb(member, &t, name, &err);
    if (status != code || !strstr(err.message, expected))
        fail_msg("%s: status %d, \"%s\"", member, status, err.message);
}

/* The length of what the message holds, all of whose tensors can be read. */
static int64_t list_length(const void *bytes, size_t size)
{
    lnt_tensor_list list;
    lnt_wire part;
    lnt_error err = {0};
    int64_t n = 0;
    if (lnt_tensor_list_open(bytes, size, &list, &err) != LNT_OK)
        fail_msg("%s", err.message);
    const int64_t length = list.length;
    for (; lnt_tensor_list_next(&list, &part); n++) {
        lnt_tensor t = {0};
        if (lnt_tensor_parse_pb(part.at, lnt_wire_bytes(part), &lnt_malloc_allocator, &t, NULL, 0, &err) !=
            LNT_OK)
            fail_msg("%s", err.message);
        lnt_tensor_free(&lnt_malloc_allocator, &t);
    }
    assert_int_equal(n, length < 0 ? 0 : length);
    return length;
}

static int64_t member_length(const char *member)
{
    char path[64];
    lnt_tensor message = {0};
    snprintf(path, sizeof path, PB ":%s", member);
    assert_int_equal(lnt_tensor_read(path, &lnt_malloc_allocator, &message, NULL), LNT_OK);
    const int64_t length = list_length(message.data, message.bytes);
    lnt_tensor_free(&lnt_malloc_allocator, &message);
    return length;
}

static void expect_list_refused(const char *bytes, size_t size)
{
    lnt_tensor_list list;
    assert_int_equal(lnt_tensor_list_open(bytes, size, &list, NULL), LNT_E_UNSUPPORTED);
}

#define BYTES(text) text, sizeof text - 1

static void pb_lists(void **state)
{
    (void)state;
    assert_int_equal(member_length("sequence"), 2);
    assert_int_equal(member_length("optional"), 1);
    assert_int_equal(member_length("empty_sequence"), 0);
    assert_int_equal(member_length("nothing"), LNT_LIST_NOTHING);
    assert_int_equal(member_length("float32"), LNT_LIST_TENSOR);
    assert_int_equal(member_length("empty"), LNT_LIST_TENSOR);
    /* a tensor of no elements whose extents are packed; an optional of a sequence of one, of none, of nothing */
    assert_int_equal(list_length(BYTES("\x0a\x01\x00\x10\x01")), LNT_LIST_TENSOR);
    assert_int_equal(list_length(BYTES("\x10\x03\x2a\x09\x10\x01\x1a\x05\x10\x09\x4a\x01\x01")), 1);
    assert_int_equal(list_length(BYTES("\x10\x03\x2a\x02\x10\x01")), 0);
    assert_int_equal(list_length(BYTES("\x0a\x01o\x10\x03")), LNT_LIST_NOTHING);
    expect_list_refused(BYTES("\x10\x04\x1a\x00"));
    expect_list_refused(BYTES("\x10\x03\x2a\x00\x2a\x00"));
    expect_list_refused(BYTES("\x10\x03\x2a\x04\x10\x03\x2a\x00"));
    expect_list_refused(BYTES("\x10\x03\x1a\x00\x2a\x00"));
}

static void pb_of_text(void **state)
{
    (void)state;
    char name[16];
    lnt_tensor t, again;
    lnt_error err = {0};
    assert_int_equal(read_pb("strings", &t, name, &err), LNT_OK);
    assert_int_equal(t.dtype, LNT_STRING);
    assert_int_equal(t.bytes, sizeof(char *));
    assert_string_equal(*(const char *const *)t.data, "x");
    const char *const words[] = {"", "a\nb", "\xff", "x"};
    const lnt_tensor four = {LNT_STRING, 2, {2, 2}, (void *)(uintptr_t)words, sizeof words};
    char path[64];
    snprintf(path, sizeof path, "/tmp/lnt-words-%d.pb", (int)getpid());
    assert_int_equal(lnt_tensor_write(path, &four, &err), LNT_OK);
    assert_int_equal(lnt_tensor_read(path, &lnt_malloc_allocator, &again, &err), LNT_OK);
    assert_int_equal(again.rank, 2);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(((const char *const *)again.data)[i], words[i]);
    assert_int_equal(lnt_tensor_write("words.npy", &four, &err), LNT_E_UNSUPPORTED);
    unlink(path);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
    lnt_tensor_free(&lnt_malloc_allocator, &again);
}

static void expect_file_refused(const char *path, lnt_status code, const char *expected)
{
    lnt_tensor t;
    lnt_error err = {0};
    const lnt_status status = lnt_tensor_read(path, &lnt_malloc_allocator, &t, &err);
    if (status != code || !strstr(err.message, expected) || !strstr(err.message, "tests/data"))
        fail_msg("%s: status %d, \"%s\"", path, status, err.message);
}

static void what_cannot_be_read_says_why(void **state)
{
    (void)state;
    expect_pb_refused("external", LNT_E_UNSUPPORTED, "another file");
    expect_pb_refused("sequence", LNT_E_UNSUPPORTED, "sequence");
    expect_pb_refused("nothing", LNT_E_UNSUPPORTED, "element type 0");
    expect_pb_refused("empty_sequence", LNT_E_FILE, "0 elements");
    expect_file_refused(NPY, LNT_E_ARGUMENT, "name one");
    expect_file_refused(NPY ":nobody", LNT_E_NOT_FOUND, "nobody");
    expect_file_refused(NPY ":complex", LNT_E_UNSUPPORTED, "<c8");
    expect_file_refused(NPY ":text", LNT_E_UNSUPPORTED, "<U2");
    expect_file_refused(NPY ":structured", LNT_E_UNSUPPORTED, "structured");
    expect_file_refused("tests/data/make_tensors.py", LNT_E_UNSUPPORTED, ".npy, .npz and .pb");
    expect_file_refused("tests/data/none.npy", LNT_E_IO, "cannot open");
}

/* ---- writing ---- */

typedef struct scratch {
    char folder[32], path[64];
} scratch;

static void scratch_open(scratch *s, const char *file)
{
    strcpy(s->folder, "/tmp/lnt-test-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->path, sizeof s->path, "%s/%s", s->folder, file);
}

static void scratch_close(const scratch *s)
{
    assert_int_equal(unlink(s->path), 0);
    assert_int_equal(rmdir(s->folder), 0);
}

static void write_and_read_back(lnt_dtype dtype, const char *file, lnt_dtype as)
{
    uint8_t data[MAX_BYTES];
    const lnt_tensor t = {
        .dtype = dtype, .rank = 2, .dims = {2, 3}, .data = data, .bytes = expected_bytes(dtype, data)};
    lnt_tensor back;
    lnt_error err = {0};
    scratch s;
    scratch_open(&s, file);
    if (lnt_tensor_write(s.path, &t, &err) != LNT_OK ||
        lnt_tensor_read(s.path, &lnt_malloc_allocator, &back, &err) != LNT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(back.dtype, as);
    back.dtype = dtype;
    expect_values(back, dtype);
    scratch_close(&s);
}

static void written_tensors_read_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof numpy_types / sizeof *numpy_types; i++) {
        write_and_read_back(numpy_types[i], "t.npy", numpy_types[i]);
        write_and_read_back(numpy_types[i], "t.pb", numpy_types[i]);
    }
    write_and_read_back(LNT_BFLOAT16, "t.npy", LNT_UINT16);
    write_and_read_back(LNT_BFLOAT16, "t.pb", LNT_BFLOAT16);
}

/* What we write as .npy is what numpy writes, byte for byte. */
static void npy_is_written_as_numpy_does(void **state)
{
    (void)state;
    const char *const members[] = {"int16", "scalar", "vector", "empty"};
    lnt_blob ours, numpys;
    scratch s;
    assert_int_equal(lnt_blob_open(NPY, false, &lnt_malloc_allocator, &numpys, NULL), LNT_OK);
    for (unsigned i = 0; i < sizeof members / sizeof *members; i++) {
        lnt_tensor t = read_npy(members[i]);
        scratch_open(&s, "t.npy");
        assert_int_equal(lnt_tensor_write(s.path, &t, NULL), LNT_OK);
        assert_int_equal(lnt_blob_open(s.path, false, &lnt_malloc_allocator, &ours, NULL), LNT_OK);
        assert_non_null(memmem(numpys.bytes, numpys.size, ours.bytes, ours.size));
        lnt_blob_close(&ours);
        scratch_close(&s);
        lnt_tensor_free(&lnt_malloc_allocator, &t);
    }
    lnt_blob_close(&numpys);
}

static void raw_files_hold_the_elements(void **state)
{
    (void)state;
    const int16_t data[3] = {1, -2, 3};
    const lnt_tensor t = {LNT_INT16, 1, {3}, (void *)(uintptr_t)data, sizeof data};
    lnt_blob blob;
    scratch s;
    scratch_open(&s, "t.raw");
    assert_int_equal(lnt_tensor_write(s.path, &t, NULL), LNT_OK);
    assert_int_equal(lnt_blob_open(s.path, true, &lnt_malloc_allocator, &blob, NULL), LNT_OK);
    assert_int_equal(blob.size, sizeof data);
    assert_memory_equal(blob.bytes, "\x01\x00\xfe\xff\x03\x00", 6);
    lnt_blob_close(&blob);
    scratch_close(&s);
    const lnt_tensor liar = {LNT_INT16, 1, {4}, (void *)(uintptr_t)data, sizeof data};
    assert_int_equal(lnt_tensor_write("/dev/null", &liar, NULL), LNT_E_ARGUMENT);
}

/* ---- damage ---- */

typedef lnt_status (*parse_fn)(const void *bytes, size_t size, lnt_tensor *t);

static lnt_status parse_pb(const void *bytes, size_t size, lnt_tensor *t)
{
    return lnt_tensor_parse_pb(bytes, size, &lnt_malloc_allocator, t, NULL, 0, NULL);
}

static lnt_status parse_npy(const void *bytes, size_t size, lnt_tensor *t)
{
    return lnt_tensor_parse_npy(bytes, size, &lnt_malloc_allocator, t, NULL);
}

static lnt_status parse_npz(const void *bytes, size_t size, lnt_tensor *t)
{
    return lnt_tensor_parse_npz(bytes, size, "int16_fortran", &lnt_malloc_allocator, t, NULL);
}

static lnt_status parse_alone(const void *bytes, size_t size, lnt_tensor *t)
{
    return lnt_tensor_parse_npz(bytes, size, NULL, &lnt_malloc_allocator, t, NULL);
}

/* Parses a copy of exactly size bytes, byte `at` changed by `flip`, and reads the result to its end. */
static lnt_status parse_copy(parse_fn parse, const uint8_t *bytes, size_t size, size_t at, uint8_t flip)
{
    uint8_t *copy = malloc(size ? size : 1);
    lnt_tensor t = {0};
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    if (at < size)
        copy[at] ^= flip;
    const lnt_status status = parse(copy, size, &t);
    volatile uint8_t sum = 0;
    for (size_t i = 0; status == LNT_OK && i < t.bytes; i++)
        sum = (uint8_t)(sum + ((uint8_t *)t.data)[i]);
    if (status == LNT_OK)
        lnt_tensor_free(&lnt_malloc_allocator, &t);
    free(copy);
    return status;
}

static void damage(parse_fn parse, const uint8_t *bytes, size_t size)
{
    assert_int_equal(parse_copy(parse, bytes, size, size, 0), LNT_OK);
    for (size_t cut = 0; cut < size; cut++)
        if (parse_copy(parse, bytes, cut, cut, 0) == LNT_OK)
            fail_msg("cut to %zu of %zu bytes: accepted", cut, size);
    for (size_t i = 0; i < size; i++)
        for (unsigned bit = 0; bit < 8; bit++)
            (void)parse_copy(parse, bytes, size, i, (uint8_t)(1u << bit));
}

static void damaged_tensors_are_safe(void **state)
{
    (void)state;
    const char *const messages[] = {"float32", "int64_typed", "int32_typed", "float64_typed"};
    for (unsigned i = 0; i < sizeof messages / sizeof *messages; i++) {
        char path[64];
        lnt_tensor message;
        snprintf(path, sizeof path, PB ":%s", messages[i]);
        assert_int_equal(lnt_tensor_read(path, &lnt_malloc_allocator, &message, NULL), LNT_OK);
        if (strcmp(messages[i], "float32") == 0)
            damage(parse_pb, message.data, message.bytes);
        else
            for (size_t k = 0; k < message.bytes; k++)
                (void)parse_copy(parse_pb, message.data, message.bytes, k, 0xff);
        lnt_tensor_free(&lnt_malloc_allocator, &message);
    }
    const char npy[] =
        "\x93NUMPY\x01\x00\x46\x00{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }        "
        "  \n0123456789ab";
    damage(parse_npy, (const uint8_t *)npy, sizeof npy - 1);
    lnt_blob npz;
    assert_int_equal(lnt_blob_open(NPY, true, &lnt_malloc_allocator, &npz, NULL), LNT_OK);
    for (size_t i = 0; i < npz.size; i++)
        (void)parse_copy(parse_npz, npz.bytes, i % 7 ? npz.size : i, i, 0xff);
    lnt_blob_close(&npz);
    assert_int_equal(lnt_blob_open(DEFLATED, true, &lnt_malloc_allocator, &npz, NULL), LNT_OK);
    damage(parse_alone, npz.bytes, npz.size);
    lnt_blob_close(&npz);
}

static void deflated_members_are_read(void **state)
{
    uint8_t expected[MAX_BYTES];
    lnt_tensor t;
    (void)state;
    assert_int_equal(lnt_tensor_read(DEFLATED, &lnt_malloc_allocator, &t, NULL), LNT_OK);
    assert_int_equal(t.dtype, LNT_FLOAT);
    assert_int_equal(t.bytes, expected_bytes(LNT_FLOAT, expected));
    assert_memory_equal(t.data, expected, t.bytes);
    lnt_tensor_free(&lnt_malloc_allocator, &t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_of_every_type),
        cmocka_unit_test(deflated_members_are_read),
        cmocka_unit_test(npy_of_every_shape),
        cmocka_unit_test(pb_of_every_encoding),
        cmocka_unit_test(pb_lists),
        cmocka_unit_test(pb_of_text),
        cmocka_unit_test(what_cannot_be_read_says_why),
        cmocka_unit_test(written_tensors_read_back),
        cmocka_unit_test(npy_is_written_as_numpy_does),
        cmocka_unit_test(raw_files_hold_the_elements),
        cmocka_unit_test(damaged_tensors_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
