/* tensor_npy.c — NumPy's .npy (versions 1 to 3) and .npz (a zip archive of them, stored or deflated).
 *
 * An .npy is "\x93NUMPY", two bytes of version, the length of its header, the header (a Python dict literal
 * with descr, fortran_order and shape), the elements. */
#include "formats/tensor_file.h"

#include "base/checked.h"
#include "base/small.h"
#include "formats/byte_order.h"
#include "formats/inflate.h"
#include "formats/tensor_parts.h"

#include <inttypes.h>
#include <string.h>

/* ---- the header: a small part of Python's literals ---- */

typedef struct text {
    const char *at, *end;
} text;

typedef struct npy_header {
    lnt_dtype dtype;
    bool swap, fortran;
    unsigned rank;
    int64_t dims[LNT_MAX_RANK];
} npy_header;

static void skip_spaces(text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t'))
        t->at++;
}

/* Takes the word if it comes next. */
static bool accept(text *t, const char *word)
{
    const size_t n = strlen(word);
    skip_spaces(t);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
        return false;
    t->at += n;
    return true;
}

/* 'abc' or "abc", cut to capacity. */
static bool accept_string(text *t, char *out, size_t capacity)
{
    size_t n = 0;
    skip_spaces(t);
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
        return false;
    const char quote = *t->at++;
    for (; t->at < t->end && *t->at != quote; t->at++)
        if (n + 1 < capacity)
            out[n++] = *t->at;
    out[n] = '\0';
    return accept(t, (const char[]){quote, '\0'});
}

/* A decimal number, with Python 2's L behind it or not. */
static bool accept_number(text *t, int64_t *out)
{
    int64_t value = 0;
    skip_spaces(t);
    const char *start = t->at;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        if (!lnt_mul_i64(value, 10, &value) || !lnt_add_i64(value, *t->at - '0', &value))
            return false;
    *out = value;
    const bool found = t->at > start;
    (void)(found && accept(t, "L"));
    return found;
}

static const struct npy_type {
    char text[3];
    uint8_t dtype;
} npy_types[] = {
    {"f4", LNT_FLOAT},  {"f8", LNT_DOUBLE}, {"f2", LNT_FLOAT16}, {"i1", LNT_INT8},
    {"i2", LNT_INT16},  {"i4", LNT_INT32},  {"i8", LNT_INT64},   {"u1", LNT_UINT8},
    {"u2", LNT_UINT16}, {"u4", LNT_UINT32}, {"u8", LNT_UINT64},  {"b1", LNT_BOOL},
};

enum { N_NPY_TYPES = sizeof npy_types / sizeof *npy_types };

static lnt_status parse_descr(text *t, npy_header *h, lnt_error *err)
{
    char descr[16];
    if (!accept_string(t, descr, sizeof descr))
        return lnt_fail(err, LNT_E_UNSUPPORTED, "npy: structured element types are not supported");
    const bool big = descr[0] == '>', named = descr[0] && strchr("<>|=", descr[0]);
    for (unsigned i = 0; named && i < N_NPY_TYPES; i++)
        if (strcmp(npy_types[i].text, descr + 1) == 0)
            h->dtype = (lnt_dtype)npy_types[i].dtype;
    LNT_REQUIRE(h->dtype != LNT_UNDEFINED, err, LNT_E_UNSUPPORTED, "npy: element type '%s' is not supported",
                descr);
    h->swap = descr[0] != '=' && big != lnt_host_big_endian;
    return LNT_OK;
}

static lnt_status parse_shape(text *t, npy_header *h, lnt_error *err)
{
    LNT_REQUIRE(accept(t, "("), err, LNT_E_FILE, "npy: shape is not a tuple");
    while (!accept(t, ")")) {
        LNT_REQUIRE(h->rank < LNT_MAX_RANK, err, LNT_E_LIMIT, "npy: more than %d axes", LNT_MAX_RANK);
        LNT_REQUIRE(accept_number(t, &h->dims[h->rank++]), err, LNT_E_FILE, "npy: bad number in the shape");
        (void)accept(t, ",");
    }
    return LNT_OK;
}

static lnt_status parse_entry(text *t, npy_header *h, unsigned *seen, lnt_error *err)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    char key[16];
    LNT_REQUIRE(accept_string(t, key, sizeof key) && accept(t, ":"), err, LNT_E_FILE,
                "npy: malformed header");
    const unsigned which = strcmp(key, "descr") == 0           ? DESCR
                           : strcmp(key, "fortran_order") == 0 ? ORDER
                           : strcmp(key, "shape") == 0         ? SHAPE
                                                               : 0;
    LNT_REQUIRE(which && !(*seen & which), err, LNT_E_FILE, "npy: unexpected key '%s' in the header", key);
    *seen |= which;
    if (which == DESCR)
        return parse_descr(t, h, err);
    if (which == SHAPE)
        return parse_shape(t, h, err);
    h->fortran = accept(t, "True");
    LNT_REQUIRE(h->fortran || accept(t, "False"), err, LNT_E_FILE, "npy: fortran_order is not True or False");
    return LNT_OK;
}

static lnt_status parse_header(text t, npy_header *h, lnt_error *err)
{
    enum { ALL = 7 };
    unsigned seen = 0;
    LNT_REQUIRE(accept(&t, "{"), err, LNT_E_FILE, "npy: malformed header");
    while (!accept(&t, "}")) {
        LNT_TRY(parse_entry(&t, h, &seen, err));
        (void)accept(&t, ",");
    }
    LNT_REQUIRE(seen == ALL, err, LNT_E_FILE, "npy: the header lacks descr, fortran_order or shape");
    return LNT_OK;
}

/* ---- .npy ---- */

/* Finds header and elements. */
static lnt_status split_npy(const uint8_t *bytes, size_t size, text *header, const uint8_t **data,
                            lnt_error *err)
{
    enum { MAGIC = 6, PREFIX = 8 };
    LNT_REQUIRE(size >= PREFIX + 4 && memcmp(bytes, "\x93NUMPY", MAGIC) == 0, err, LNT_E_FILE,
                "not an .npy file");
    LNT_REQUIRE(bytes[MAGIC] >= 1 && bytes[MAGIC] <= 3, err, LNT_E_UNSUPPORTED,
                "npy: version %d is not supported", bytes[MAGIC]);
    const unsigned length_bytes = bytes[MAGIC] == 1 ? 2 : 4;
    const uint64_t length = lnt_load_le(bytes + PREFIX, length_bytes);
    LNT_REQUIRE(length <= size - PREFIX - length_bytes, err, LNT_E_FILE, "npy: truncated in its header");
    const uint8_t *start = bytes + PREFIX + length_bytes;
    *header = (text){(const char *)start, (const char *)start + length};
    *data = start + length;
    return LNT_OK;
}

/* dst in C order from elements where the first axis runs fastest. */
static void from_fortran(const npy_header *h, uint8_t *dst, const uint8_t *src, size_t count, size_t size)
{
    int64_t index[LNT_MAX_RANK] = {0}, stride[LNT_MAX_RANK] = {0}, offset = 0;
    for (unsigned i = 0; i < h->rank; i++)
        (void)lnt_count(h->dims, i, &stride[i]);
    for (size_t n = 0; n < count; n++) {
        lnt_copy_elements(dst + n * size, src + (size_t)offset * size, 1, size, h->swap);
        for (unsigned i = h->rank; i-- > 0;) {
            offset += stride[i];
            if (++index[i] < h->dims[i])
                break;
            offset -= index[i] * stride[i];
            index[i] = 0;
        }
    }
}

lnt_status lnt_tensor_parse_npy(const void *bytes, size_t size, const lnt_allocator *a, lnt_tensor *out,
                                lnt_error *err)
{
    npy_header h = {.dtype = LNT_UNDEFINED};
    text header = {NULL, NULL};
    const uint8_t *data = NULL;
    size_t needed;
    LNT_TRY(split_npy(bytes, size, &header, &data, err));
    LNT_TRY(parse_header(header, &h, err));
    const size_t element = lnt_dtype_size(h.dtype), stored = size - (size_t)(data - (const uint8_t *)bytes);
    LNT_REQUIRE(lnt_shape_bytes(h.dims, h.rank, element, &needed), err, LNT_E_FILE,
                "npy: the size of its shape overflows");
    LNT_REQUIRE(needed == stored, err, LNT_E_FILE, "npy: holds %zu bytes of elements, its shape needs %zu",
                stored, needed);
    LNT_TRY(lnt_tensor_alloc(a, h.dtype, h.rank, h.dims, out, err));
    if (h.fortran)
        from_fortran(&h, out->data, data, needed / element, element);
    else
        lnt_copy_elements(out->data, data, needed / element, element, h.swap);
    lnt_tensor_clean_bools(out);
    return LNT_OK;
}

const char *lnt_npy_type(lnt_dtype dtype)
{
    const lnt_dtype byte = lnt_small_as_byte(dtype);
    const lnt_dtype stored = dtype == LNT_BFLOAT16 ? LNT_UINT16 : lnt_is_small(byte) ? LNT_UINT8 : byte;
    for (unsigned i = 0; i < N_NPY_TYPES; i++)
        if ((lnt_dtype)npy_types[i].dtype == stored)
            return npy_types[i].text;
    return NULL;
}

/* ---- .npz ---- */

typedef struct zip_member {
    const char *name;
    size_t name_bytes;
    unsigned flags, method;
    uint32_t crc, stored_bytes, bytes, offset;
} zip_member;

enum { END_BYTES = 22, ENTRY_BYTES = 46, LOCAL_BYTES = 30, MAX_COMMENT = 65535 };

static uint32_t crc32_of(const uint8_t *bytes, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static bool signed_as(const uint8_t *at, unsigned kind)
{
    return lnt_load_le(at, 4) == (0x4b50u | (uint64_t)kind << 16);
}

/* The record that ends an archive, searched from the end as a comment may follow it. */
static const uint8_t *find_end(const uint8_t *zip, size_t size)
{
    for (size_t back = END_BYTES; back <= size && back <= END_BYTES + MAX_COMMENT; back++)
        if (signed_as(zip + size - back, 0x0605))
            return zip + size - back;
    return NULL;
}

/* Reads the directory's entry at *at (bytes before end) and steps over it. */
static bool next_member(const uint8_t **at, const uint8_t *end, zip_member *m)
{
    const uint8_t *p = *at;
    if (end - p < ENTRY_BYTES || !signed_as(p, 0x0201))
        return false;
    *m = (zip_member){.name = (const char *)p + ENTRY_BYTES,
                      .name_bytes = (size_t)lnt_load_le(p + 28, 2),
                      .flags = (unsigned)lnt_load_le(p + 8, 2),
                      .method = (unsigned)lnt_load_le(p + 10, 2),
                      .crc = (uint32_t)lnt_load_le(p + 16, 4),
                      .stored_bytes = (uint32_t)lnt_load_le(p + 20, 4),
                      .bytes = (uint32_t)lnt_load_le(p + 24, 4),
                      .offset = (uint32_t)lnt_load_le(p + 42, 4)};
    const uint64_t length = ENTRY_BYTES + m->name_bytes + lnt_load_le(p + 30, 2) + lnt_load_le(p + 32, 2);
    if (length > (uint64_t)(end - p))
        return false;
    *at = p + length;
    return true;
}

/* Is the member called name or name.npy? */
static bool is_called(const zip_member *m, const char *name)
{
    const size_t n = strlen(name);
    return m->name_bytes >= n && memcmp(m->name, name, n) == 0 &&
           (m->name_bytes == n || (m->name_bytes == n + 4 && memcmp(m->name + n, ".npy", 4) == 0));
}

static lnt_status find_member(const uint8_t *zip, size_t size, const char *name, zip_member *found,
                              lnt_error *err)
{
    const uint8_t *end = find_end(zip, size);
    LNT_REQUIRE(end, err, LNT_E_FILE, "not an .npz file, or truncated");
    const uint64_t entries = lnt_load_le(end + 10, 2), start = lnt_load_le(end + 16, 4);
    LNT_REQUIRE(start <= (uint64_t)(end - zip), err, LNT_E_FILE,
                "npz: its directory lies outside of the file");
    LNT_REQUIRE(name || entries == 1, err, LNT_E_ARGUMENT,
                "npz: holds %" PRIu64 " tensors; name one as FILE.npz:NAME", entries);
    const uint8_t *at = zip + start;
    for (uint64_t i = 0; i < entries; i++) {
        LNT_REQUIRE(next_member(&at, end, found), err, LNT_E_FILE, "npz: malformed directory");
        if (!name || is_called(found, name))
            return LNT_OK;
    }
    return lnt_fail(err, LNT_E_NOT_FOUND, "npz: holds no tensor '%s'", name);
}

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

/* Where the bytes of the member are that the archive holds: m->stored_bytes of them. */
static lnt_status stored_bytes(const uint8_t *zip, size_t size, const zip_member *m, const uint8_t **bytes,
                               lnt_error *err)
{
    LNT_REQUIRE(m->method == ZIP_STORED || m->method == ZIP_DEFLATED, err, LNT_E_UNSUPPORTED,
                "npz: compressed by method %u; numpy's are stored or deflated", m->method);
    LNT_REQUIRE(!(m->flags & 1), err, LNT_E_UNSUPPORTED, "npz: encrypted");
    LNT_REQUIRE(m->bytes != UINT32_MAX && m->stored_bytes != UINT32_MAX && m->offset != UINT32_MAX, err,
                LNT_E_UNSUPPORTED, "npz: members of 4 GB and more are not supported; use .npy");
    LNT_REQUIRE((m->method == ZIP_STORED ? m->stored_bytes == m->bytes
                                         : m->bytes / LNT_INFLATE_MOST <= m->stored_bytes) &&
                    m->offset <= size && size - m->offset >= LOCAL_BYTES &&
                    signed_as(zip + m->offset, 0x0403),
                err, LNT_E_FILE, "npz: malformed member");
    const uint8_t *local = zip + m->offset;
    const uint64_t skip = LOCAL_BYTES + lnt_load_le(local + 26, 2) + lnt_load_le(local + 28, 2);
    const uint64_t room = size - m->offset;
    LNT_REQUIRE(skip <= room && m->stored_bytes <= room - skip, err, LNT_E_FILE, "npz: truncated");
    *bytes = local + skip;
    return LNT_OK;
}

static lnt_status parse_member(const uint8_t *bytes, const zip_member *m, const lnt_allocator *a,
                               lnt_tensor *out, lnt_error *err)
{
    LNT_REQUIRE(crc32_of(bytes, m->bytes) == m->crc, err, LNT_E_FILE, "npz: damaged (CRC differs)");
    return lnt_tensor_parse_npy(bytes, m->bytes, a, out, err);
}

static lnt_status parse_deflated(const uint8_t *stored, const zip_member *m, const lnt_allocator *a,
                                 lnt_tensor *out, lnt_error *err)
{
    uint8_t *bytes = lnt_alloc(a, m->bytes, err);
    if (!bytes)
        return LNT_E_MEMORY;
    lnt_status status = lnt_inflate(stored, m->stored_bytes, bytes, m->bytes, err);
    if (status != LNT_OK)
        lnt_error_prefix(err, "npz: ");
    else
        status = parse_member(bytes, m, a, out, err);
    lnt_free(a, bytes);
    return status;
}

lnt_status lnt_tensor_parse_npz(const void *bytes, size_t size, const char *member, const lnt_allocator *a,
                                lnt_tensor *out, lnt_error *err)
{
    zip_member m = {.name = NULL};
    const uint8_t *data = NULL;
    LNT_TRY(find_member(bytes, size, member, &m, err));
    LNT_TRY(stored_bytes(bytes, size, &m, &data, err));
    return m.method == ZIP_STORED ? parse_member(data, &m, a, out, err)
                                  : parse_deflated(data, &m, a, out, err);
}
