/* tensor_pb.c — ONNX TensorProto from its wire format, also one in an OptionalProto. Repeated numbers come one field
 * each or packed, many in one field; fields come in any order. */
#include "formats/tensor_file.h"

#include "base/checked.h"
#include "base/small.h"
#include "formats/byte_order.h"
#include "formats/tensor_parts.h"
#include "formats/wire.h"

#include <inttypes.h>
#include <string.h>

/* Fields of TensorProto. */
enum {
    DIMS = 1,
    DATA_TYPE = 2,
    SEGMENT = 3, /* nobody writes it; SequenceProto and OptionalProto have their tensors there */
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    NAME = 8,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11,
    EXTERNAL_DATA = 13,
    DATA_LOCATION = 14
};

typedef struct proto {
    int64_t dims[LNT_MAX_RANK];
    uint64_t rank; /* as found: may be too large */
    uint64_t dtype;
    bool has_raw, elsewhere, not_a_tensor;
    lnt_wire raw, name;
} proto;

/* Takes the next element, sent as `type`, out of a repeated field: packed, or the field's one value. */
static bool next_element(lnt_wire_field *f, lnt_wire_type type, uint64_t *out)
{
    if (f->type == LNT_WIRE_BYTES)
        return lnt_wire_number(&f->bytes, type, out);
    *out = f->value;
    f->bytes.at = f->bytes.end = NULL;
    return f->type == type;
}

static bool has_more(const lnt_wire_field *f, bool first)
{
    return f->type == LNT_WIRE_BYTES ? f->bytes.at < f->bytes.end : first;
}

static bool add_dims(proto *p, lnt_wire_field f)
{
    uint64_t value;
    for (bool first = true; has_more(&f, first); first = false) {
        if (!next_element(&f, LNT_WIRE_VARINT, &value))
            return false;
        if (p->rank < LNT_MAX_RANK)
            p->dims[p->rank] = (int64_t)value;
        p->rank++;
    }
    return true;
}

/* All fields but the typed data. False if the message is malformed. */
static bool scan(lnt_wire w, proto *p)
{
    lnt_wire_field f;
    while (w.at < w.end) {
        if (!lnt_wire_next(&w, &f))
            return false;
        switch (f.number) {
        case DIMS:
            if (!add_dims(p, f))
                return false;
            break;
        case DATA_TYPE: p->dtype = f.value; break;
        case SEGMENT: p->not_a_tensor = true; break;
        case NAME: p->name = f.bytes; break;
        case RAW_DATA:
            p->raw = f.bytes;
            p->has_raw = true;
            break;
        case EXTERNAL_DATA: p->elsewhere = true; break;
        case DATA_LOCATION: p->elsewhere |= f.value != 0; break;
        }
    }
    return true;
}

static unsigned data_field(lnt_dtype dtype)
{
    switch (dtype) {
    case LNT_FLOAT: return FLOAT_DATA;
    case LNT_DOUBLE: return DOUBLE_DATA;
    case LNT_INT64: return INT64_DATA;
    case LNT_UINT32:
    case LNT_UINT64: return UINT64_DATA;
    default: return INT32_DATA;
    }
}

static lnt_wire_type data_wire_type(unsigned number)
{
    return number == FLOAT_DATA    ? LNT_WIRE_FIXED32
           : number == DOUBLE_DATA ? LNT_WIRE_FIXED64
                                   : LNT_WIRE_VARINT;
}

/* Does the number, sign-extended to 64 bits or not, fit into bytes? */
static bool fits(uint64_t value, size_t bytes)
{
    if (bytes == sizeof value)
        return true;
    const uint64_t range = UINT64_C(1) << (8 * bytes);
    return value < range || value >= (uint64_t)0 - range / 2;
}

static void store(void *dst, size_t i, size_t bytes, uint64_t value)
{
    uint8_t *at = (uint8_t *)dst + i * bytes;
    for (size_t b = 0; b < bytes; b++)
        at[lnt_host_big_endian ? bytes - 1 - b : b] = (uint8_t)(value >> (8 * b));
}

/* Counts the elements of the typed data into *count and stores those below capacity. */
static lnt_status read_typed(lnt_wire w, lnt_dtype dtype, void *dst, size_t capacity, size_t *count,
                             lnt_error *err)
{
    const unsigned number = data_field(dtype);
    const size_t bytes = lnt_dtype_size(dtype);
    lnt_wire_field f;
    *count = 0;
    while (w.at < w.end) {
        uint64_t value;
        if (!lnt_wire_next(&w, &f))
            return lnt_fail(err, LNT_E_FILE, "malformed TensorProto");
        if (f.number != number)
            continue;
        for (bool first = true; has_more(&f, first); first = false) {
            LNT_REQUIRE(next_element(&f, data_wire_type(number), &value), err, LNT_E_FILE,
                        "malformed data in TensorProto");
            LNT_REQUIRE(fits(value, bytes), err, LNT_E_VALUE, "element %zu does not fit into %s", *count,
                        lnt_dtype_text(dtype));
            if (*count < capacity)
                store(dst, *count, bytes, value);
            ++*count;
        }
    }
    return LNT_OK;
}

/* What stored_elements gives for so many elements. */
static size_t stored_for(lnt_dtype dtype, size_t n)
{
    return lnt_is_small(dtype) ? lnt_small_packed_bytes(dtype, n) : n;
}

static lnt_status check_proto(const proto *p, lnt_error *err)
{
    LNT_REQUIRE(!p->not_a_tensor, err, LNT_E_UNSUPPORTED, "holds a sequence; only tensors can be read");
    LNT_REQUIRE(!p->elsewhere, err, LNT_E_UNSUPPORTED,
                "its data lies in another file (external data); save the tensor with its data inside");
    LNT_REQUIRE(p->rank <= LNT_MAX_RANK, err, LNT_E_LIMIT, "rank %" PRIu64 ", at most %d supported", p->rank,
                LNT_MAX_RANK);
    const bool sized = p->dtype <= INT32_MAX && lnt_dtype_size((lnt_dtype)p->dtype) > 0;
    LNT_REQUIRE(sized || p->dtype == LNT_STRING, err, LNT_E_UNSUPPORTED,
                "element type %" PRIu64 " (%s) is not supported", p->dtype,
                lnt_dtype_text((lnt_dtype)p->dtype));
    return LNT_OK;
}

/* Elements that the message stores; of small types, bytes that they are packed in. */
static lnt_status stored_elements(lnt_wire message, const proto *p, size_t *count, lnt_error *err)
{
    const size_t size = lnt_dtype_size((lnt_dtype)p->dtype), raw_bytes = (size_t)(p->raw.end - p->raw.at);
    if (!p->has_raw)
        return read_typed(message, (lnt_dtype)p->dtype, NULL, 0, count, err);
    LNT_REQUIRE(raw_bytes % size == 0, err, LNT_E_FILE, "%zu bytes of raw data are no multiple of %zu",
                raw_bytes, size);
    *count = raw_bytes / size;
    return LNT_OK;
}

static void copy_name(lnt_wire from, char *name, size_t name_bytes)
{
    size_t n = (size_t)(from.end - from.at);
    if (!name || name_bytes == 0)
        return;
    if (n > name_bytes - 1)
        n = name_bytes - 1;
    if (n > 0)
        memcpy(name, from.at, n);
    name[n] = '\0';
}

/* Fields of OptionalProto. */
enum { OPTIONAL_NAME = 1, OPTIONAL_TYPE = 2, OPTIONAL_TENSOR = 3, A_TENSOR = 1 };

/* The tensor of an OptionalProto, of which a sequence of one tensor has the form; false if the message is neither. */
static bool is_optional(lnt_wire w, lnt_wire *tensor, lnt_wire *name)
{
    lnt_wire_field f;
    bool has_tensor = false;
    *name = (lnt_wire){NULL, NULL};
    while (w.at < w.end) {
        if (!lnt_wire_next(&w, &f) || (f.number == OPTIONAL_TYPE && f.value != A_TENSOR))
            return false;
        if (f.number == OPTIONAL_NAME && f.type == LNT_WIRE_BYTES) {
            *name = f.bytes;
        } else if (f.number == OPTIONAL_TENSOR && f.type == LNT_WIRE_BYTES && !has_tensor) {
            has_tensor = true;
            *tensor = f.bytes;
        } else if (f.number != OPTIONAL_TYPE) {
            return false;
        }
    }
    return has_tensor;
}

/* ---- text ---- */

/* Counts strings and their characters, each with its end. */
static lnt_status measure_strings(lnt_wire w, size_t *n, size_t *bytes, lnt_error *err)
{
    lnt_wire_field f;
    *n = *bytes = 0;
    while (w.at < w.end) {
        LNT_REQUIRE(lnt_wire_next(&w, &f), err, LNT_E_FILE, "malformed TensorProto");
        if (f.number != STRING_DATA)
            continue;
        const size_t length = f.type == LNT_WIRE_BYTES ? lnt_wire_bytes(f.bytes) : 0;
        LNT_REQUIRE(f.type == LNT_WIRE_BYTES && (!length || !memchr(f.bytes.at, 0, length)), err,
                    LNT_E_UNSUPPORTED, "string %zu has a NUL character in it", *n);
        ++*n;
        *bytes += length + 1; /* all within the message */
    }
    return LNT_OK;
}

static lnt_status read_strings(lnt_wire message, const proto *p, const lnt_allocator *a, lnt_tensor *out,
                               lnt_error *err)
{
    size_t n, bytes, pointers, total;
    int64_t needed = 0;
    lnt_wire_field f;
    LNT_TRY(measure_strings(message, &n, &bytes, err));
    LNT_REQUIRE(lnt_count(p->dims, (unsigned)p->rank, &needed) && (uint64_t)needed == n, err, LNT_E_FILE,
                "TensorProto holds %zu strings, not what its extents say", n);
    LNT_REQUIRE(lnt_mul_size(n, sizeof(char *), &pointers) && lnt_add_size(pointers, bytes, &total), err,
                LNT_E_LIMIT, "too many strings");
    *out = (lnt_tensor){.dtype = LNT_STRING, .rank = (uint32_t)p->rank, .bytes = pointers};
    memcpy(out->dims, p->dims, sizeof out->dims);
    const char **word = out->data = lnt_alloc(a, total, err);
    if (!word)
        return LNT_E_MEMORY;
    char *to = (char *)out->data + pointers;
    while (lnt_wire_next(&message, &f)) {
        if (f.number != STRING_DATA)
            continue;
        const size_t length = lnt_wire_bytes(f.bytes);
        if (length)
            memcpy(to, f.bytes.at, length);
        to[length] = '\0';
        *word++ = to;
        to += length + 1;
    }
    return LNT_OK;
}

/* ---- all ---- */

lnt_status lnt_tensor_parse_pb(const void *bytes, size_t size, const lnt_allocator *a, lnt_tensor *out,
                               char *name, size_t name_bytes, lnt_error *err)
{
    const lnt_wire whole = {bytes, (const uint8_t *)bytes + size};
    lnt_wire inner, optional_name;
    const bool optional = is_optional(whole, &inner, &optional_name);
    const lnt_wire message = optional ? inner : whole;
    proto p = {.rank = 0};
    size_t stored = 0;
    int64_t needed = 0;
    LNT_REQUIRE(scan(message, &p), err, LNT_E_FILE, "malformed TensorProto");
    LNT_TRY(check_proto(&p, err));
    copy_name(optional ? optional_name : p.name, name, name_bytes);
    if (p.dtype == LNT_STRING)
        return read_strings(message, &p, a, out, err);
    LNT_TRY(stored_elements(message, &p, &stored, err));
    const lnt_dtype dtype = (lnt_dtype)p.dtype;
    LNT_REQUIRE(lnt_count(p.dims, (unsigned)p.rank, &needed) && stored_for(dtype, (size_t)needed) == stored,
                err, LNT_E_FILE, "TensorProto holds %zu %s, not what its extents say", stored,
                lnt_is_small(dtype) ? "bytes" : "elements");
    LNT_TRY(lnt_tensor_alloc(a, dtype, (unsigned)p.rank, p.dims, out, err));
    if (p.has_raw)
        lnt_copy_elements(out->data, p.raw.at, stored, lnt_dtype_size(dtype), lnt_host_big_endian);
    else
        LNT_TRY(read_typed(message, dtype, out->data, stored, &stored, err));
    if (lnt_is_small(dtype))
        lnt_small_unpack(dtype, out->data, (size_t)needed, out->data);
    lnt_tensor_clean_bools(out);
    return LNT_OK;
}
