/* tensor_file.c — tensors by file name: reading and writing by the path's ending. */
#include "formats/tensor_file.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "base/small.h"
#include "formats/byte_order.h"
#include "formats/lnt_file.h"
#include "formats/tensor_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

lnt_status lnt_tensor_alloc(const lnt_allocator *a, lnt_dtype dtype, unsigned rank, const int64_t *dims,
                            lnt_tensor *out, lnt_error *err)
{
    LNT_ASSERT(rank <= LNT_MAX_RANK);
    const size_t element = lnt_dtype_size(dtype);
    size_t bytes;
    LNT_REQUIRE(element > 0, err, LNT_E_UNSUPPORTED, "%s tensors are not supported", lnt_dtype_text(dtype));
    LNT_REQUIRE(rank <= LNT_MAX_RANK, err, LNT_E_LIMIT, "rank %u, at most %d supported", rank, LNT_MAX_RANK);
    LNT_REQUIRE(lnt_shape_bytes(dims, rank, element, &bytes), err, LNT_E_SHAPE,
                "an extent is negative or the tensor's size overflows");
    lnt_tensor t = {.dtype = dtype, .rank = rank, .data = lnt_alloc(a, bytes, err), .bytes = bytes};
    if (!t.data)
        return LNT_E_MEMORY;
    memcpy(t.dims, dims, rank * sizeof *dims);
    *out = t;
    return LNT_OK;
}

void lnt_tensor_free(const lnt_allocator *a, lnt_tensor *t)
{
    lnt_free(a, t->data);
    t->data = NULL;
    t->bytes = 0;
}

void lnt_tensor_clean_bools(lnt_tensor *t)
{
    uint8_t *byte = t->data;
    for (size_t i = 0; t->dtype == LNT_BOOL && i < t->bytes; i++)
        byte[i] = byte[i] != 0;
}

/* ---- reading ---- */

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcmp(path + n - m, ending) == 0;
}

static lnt_status parse(const char *path, const lnt_blob *blob, const char *member, const lnt_allocator *a,
                        lnt_tensor *out, lnt_error *err)
{
    lnt_status status;
    if (ends_with(path, ".npz"))
        status = lnt_tensor_parse_npz(blob->bytes, blob->size, member, a, out, err);
    else if (ends_with(path, ".npy"))
        status = lnt_tensor_parse_npy(blob->bytes, blob->size, a, out, err);
    else
        status = lnt_tensor_parse_pb(blob->bytes, blob->size, a, out, NULL, 0, err);
    if (status != LNT_OK)
        lnt_error_prefix(err, "%s: ", path);
    return status;
}

static lnt_status read_file(const char *path, const char *member, const lnt_allocator *a, lnt_tensor *out,
                            lnt_error *err)
{
    lnt_blob blob;
    LNT_REQUIRE(ends_with(path, ".npz") || ends_with(path, ".npy") || ends_with(path, ".pb"), err,
                LNT_E_UNSUPPORTED, "%s: tensors are read from .npy, .npz and .pb files", path);
    LNT_TRY(lnt_blob_open(path, false, a, &blob, err));
    const lnt_status status = parse(path, &blob, member, a, out, err);
    lnt_blob_close(&blob);
    return status;
}

lnt_status lnt_tensor_read(const char *path, const lnt_allocator *a, lnt_tensor *out, lnt_error *err)
{
    const char *mark = strstr(path, ".npz:");
    if (!mark)
        return read_file(path, NULL, a, out, err);
    const size_t length = (size_t)(mark - path) + strlen(".npz");
    char *file = lnt_alloc(a, length + 1, err);
    if (!file)
        return LNT_E_MEMORY;
    memcpy(file, path, length);
    file[length] = '\0';
    const lnt_status status = read_file(file, path + length + 1, a, out, err);
    lnt_free(a, file);
    return status;
}

/* ---- writing ---- */

enum { MAX_HEADER = 256 };

/* Version 1, padded so that the elements start at a multiple of 64. Elements are in the host's order. */
static size_t npy_header(const lnt_tensor *t, char out[MAX_HEADER])
{
    enum { PREFIX = 10, ALIGN = 64 };
    char *text = out + PREFIX;
    const char order = lnt_dtype_size(t->dtype) == 1 ? '|' : lnt_host_big_endian ? '>' : '<';
    size_t n =
        (size_t)snprintf(text, MAX_HEADER - PREFIX, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                         order, lnt_npy_type(t->dtype));
    for (unsigned i = 0; i < t->rank; i++)
        n += (size_t)snprintf(text + n, MAX_HEADER - PREFIX - n, "%" PRId64 "%s", t->dims[i],
                              t->rank == 1      ? ","
                              : i + 1 < t->rank ? ", "
                                                : "");
    n += (size_t)snprintf(text + n, MAX_HEADER - PREFIX - n, "), }");
    const size_t total = lnt_round_up(PREFIX + n + 1, ALIGN), length = total - PREFIX;
    memset(text + n, ' ', length - n);
    text[length - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(length & 0xff);
    out[9] = (char)(length >> 8);
    return total;
}

static size_t put_varint(char *out, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        out[n++] = (char)(value | 0x80);
    out[n++] = (char)value;
    return n;
}

/* dims and data_type. */
static size_t pb_form(const lnt_tensor *t, char out[MAX_HEADER])
{
    enum { DIMS_TAG = 1 << 3, DATA_TYPE_TAG = 2 << 3 };
    size_t n = 0;
    for (unsigned i = 0; i < t->rank; i++) {
        out[n++] = DIMS_TAG;
        n += put_varint(out + n, (uint64_t)t->dims[i]);
    }
    out[n++] = DATA_TYPE_TAG;
    return n + put_varint(out + n, t->dtype);
}

/* The same and the start of raw_data. */
static size_t pb_header(const lnt_tensor *t, size_t bytes, char out[MAX_HEADER])
{
    enum { RAW_DATA_TAG = 9 << 3 | 2 };
    size_t n = pb_form(t, out);
    out[n++] = RAW_DATA_TAG;
    return n + put_varint(out + n, bytes);
}

/* Text, one string_data for each word. */
static lnt_status write_strings(const char *path, const lnt_tensor *t, lnt_error *err)
{
    enum { STRING_DATA_TAG = 6 << 3 | 2, PREFIX = 16 };
    const char *const *word = t->data;
    size_t total = MAX_HEADER, count, bytes;
    LNT_REQUIRE(ends_with(path, ".pb"), err, LNT_E_UNSUPPORTED, "%s: text can be written to .pb only", path);
    LNT_REQUIRE(lnt_shape_bytes(t->dims, t->rank, sizeof *word, &bytes) && bytes <= t->bytes, err,
                LNT_E_ARGUMENT, "the tensor's memory is smaller than its extents");
    count = bytes / sizeof *word;
    for (size_t i = 0; i < count; i++)
        LNT_REQUIRE(lnt_add_size(total, strlen(word[i]) + PREFIX, &total), err, LNT_E_LIMIT,
                    "%s: too large to write", path);
    char *image = lnt_alloc(&lnt_malloc_allocator, total, err);
    if (!image)
        return LNT_E_MEMORY;
    size_t n = pb_form(t, image);
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(word[i]);
        image[n++] = STRING_DATA_TAG;
        n += put_varint(image + n, length);
        memcpy(image + n, word[i], length);
        n += length;
    }
    const lnt_status status = lnt_write_atomic(path, image, n, err);
    lnt_free(&lnt_malloc_allocator, image);
    return status;
}

static lnt_status check_writable(const lnt_tensor *t, size_t *bytes, lnt_error *err)
{
    LNT_REQUIRE(lnt_dtype_size(t->dtype) > 0, err, LNT_E_UNSUPPORTED, "%s tensors cannot be written",
                lnt_dtype_text(t->dtype));
    LNT_REQUIRE(t->rank <= LNT_MAX_RANK &&
                    lnt_shape_bytes(t->dims, t->rank, lnt_dtype_size(t->dtype), bytes) && *bytes <= t->bytes,
                err, LNT_E_ARGUMENT, "the tensor's memory is smaller than its extents");
    return LNT_OK;
}

lnt_status lnt_tensor_write(const char *path, const lnt_tensor *t, lnt_error *err)
{
    char header[MAX_HEADER];
    size_t bytes = 0, total, used = 0;
    if (t->dtype == LNT_STRING)
        return write_strings(path, t, err);
    LNT_TRY(check_writable(t, &bytes, err));
    const bool npy = ends_with(path, ".npy"), pb = ends_with(path, ".pb"),
               packed = pb && lnt_is_small(t->dtype);
    const size_t elements = bytes;
    if (packed)
        bytes = lnt_small_packed_bytes(t->dtype, elements);
    if (npy)
        used = npy_header(t, header);
    else if (pb)
        used = pb_header(t, bytes, header);
    LNT_REQUIRE(lnt_add_size(used, bytes, &total), err, LNT_E_LIMIT, "%s: too large to write", path);
    uint8_t *image = lnt_alloc(&lnt_malloc_allocator, total, err);
    if (!image)
        return LNT_E_MEMORY;
    memcpy(image, header, used);
    const size_t element = lnt_dtype_size(t->dtype);
    if (packed)
        lnt_small_pack(t->dtype, t->data, elements, image + used);
    else
        lnt_copy_elements(image + used, t->data, bytes / element, element, lnt_host_big_endian && !npy);
    const lnt_status status = lnt_write_atomic(path, image, total, err);
    lnt_free(&lnt_malloc_allocator, image);
    return status;
}
