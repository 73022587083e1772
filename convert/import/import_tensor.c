/* import_tensor.c — tensors of the model, inside it or in files beside it.
 *
 * External data may be in the model's folder only: a location that is absolute, climbs with "..", or leads
 * out through a symbolic link is refused. */
#include "convert/import/import.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/lnt_assert.h"
#include "base/small.h"
#include "formats/byte_order.h"
#include "formats/tensor_file.h"
#include "formats/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Field numbers of TensorProto and StringStringEntryProto. */
enum { FIELD_DIMS = 1, FIELD_TYPE = 2, FIELD_NAME = 8, FIELD_EXTERNAL = 13, FIELD_LOCATION = 14 };
enum { FIELD_KEY = 1, FIELD_VALUE = 2, LOCATION_EXTERNAL = 1 };

static char *text_of(lnt_importer *im, lnt_wire w)
{
    return lnt_bump_string(&im->g->memory, (const char *)w.at, lnt_wire_bytes(w), im->err);
}

lnt_status lnt_import_tensor_name(lnt_importer *im, const ProtobufCBinaryData *proto, const char **name)
{
    lnt_wire w = lnt_wire_of(proto->data, proto->len);
    lnt_wire_field f;
    *name = "";
    while (lnt_wire_next(&w, &f))
        if (f.number == FIELD_NAME && f.type == LNT_WIRE_BYTES && !(*name = text_of(im, f.bytes)))
            return LNT_E_MEMORY;
    return LNT_OK;
}

/* ---- external data ---- */

typedef struct external_data {
    const char *location;
    int64_t offset, length; /* -1: to the end of the file */
} external_data;

static lnt_status read_number(lnt_importer *im, const char *text, const char *key, int64_t *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    LNT_REQUIRE(*text && !*end && *out >= 0, im->err, LNT_E_MODEL, "external data: %s '%s' is no size", key,
                text);
    return LNT_OK;
}

static lnt_status read_entry(lnt_importer *im, lnt_wire w, external_data *p)
{
    const char *key = "", *value = "";
    lnt_wire_field f;
    while (lnt_wire_next(&w, &f)) {
        if (f.type != LNT_WIRE_BYTES)
            continue;
        const char *text = text_of(im, f.bytes);
        if (!text)
            return LNT_E_MEMORY;
        if (f.number == FIELD_KEY)
            key = text;
        else if (f.number == FIELD_VALUE)
            value = text;
    }
    if (strcmp(key, "location") == 0)
        p->location = value;
    else if (strcmp(key, "offset") == 0)
        return read_number(im, value, key, &p->offset);
    else if (strcmp(key, "length") == 0)
        return read_number(im, value, key, &p->length);
    return LNT_OK;
}

/* Type and extents from the wire, varints packed or not; *external tells where the contents are. */
static lnt_status read_header(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_operand *t,
                              external_data *p, bool *external)
{
    lnt_wire w = lnt_wire_of(proto->data, proto->len);
    lnt_wire_field f;
    uint64_t type = 0, rank = 0;
    *external = false;
    while (lnt_wire_next(&w, &f)) {
        if (f.number == FIELD_TYPE && f.type == LNT_WIRE_VARINT)
            type = f.value;
        else if (f.number == FIELD_LOCATION && f.type == LNT_WIRE_VARINT)
            *external = f.value == LOCATION_EXTERNAL;
        else if (f.number == FIELD_EXTERNAL && f.type == LNT_WIRE_BYTES)
            LNT_TRY(read_entry(im, f.bytes, p));
        else if (f.number == FIELD_DIMS && f.type == LNT_WIRE_VARINT) {
            LNT_REQUIRE(rank < LNT_MAX_RANK && (int64_t)f.value >= 0, im->err, LNT_E_UNSUPPORTED,
                        "a tensor has a negative extent or more than %d", LNT_MAX_RANK);
            t->dims[rank++] = (int64_t)f.value;
        } else if (f.number == FIELD_DIMS && f.type == LNT_WIRE_BYTES) {
            uint64_t value;
            while (lnt_wire_number(&f.bytes, LNT_WIRE_VARINT, &value)) {
                LNT_REQUIRE(rank < LNT_MAX_RANK && (int64_t)value >= 0, im->err, LNT_E_UNSUPPORTED,
                            "a tensor has a negative extent or more than %d", LNT_MAX_RANK);
                t->dims[rank++] = (int64_t)value;
            }
        }
    }
    t->rank = (uint8_t)rank;
    t->dtype = type <= LNT_INT2 ? (uint8_t)type : 0;
    return LNT_OK;
}

static bool climbs(const char *location)
{
    for (const char *part = location; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]))
            return true;
    }
    return false;
}

/* By errno. */
static lnt_status not_found(const lnt_importer *im, const char *location)
{
    LNT_REQUIRE(errno != ENOMEM, im->err, LNT_E_MEMORY, "external data: no memory for the path of '%s'",
                location);
    LNT_REQUIRE(errno == ENOENT || errno == ENOTDIR, im->err, LNT_E_IO, "external data: cannot open '%s': %s",
                location, strerror(errno));
    return lnt_fail(im->err, LNT_E_IO, "external data: there is no file '%s' beside the model", location);
}

/* Opens the file of location; it must be, links resolved, in the model's folder. */
static lnt_status open_inside(lnt_importer *im, const char *location, int *fd, size_t *size)
{
    LNT_REQUIRE(im->folder, im->err, LNT_E_MODEL,
                "the model keeps tensors in '%s': convert it from a file, not from memory", location);
    LNT_REQUIRE(location[0] && location[0] != '/' && !strchr(location, '\\') && !climbs(location), im->err,
                LNT_E_MODEL, "external data at '%s': must be a path inside the model's folder", location);
    const char *path = lnt_import_text(im, "%s/%s", im->folder[0] ? im->folder : ".", location);
    if (!path)
        return LNT_E_MEMORY;
    char *folder = realpath(im->folder[0] ? im->folder : ".", NULL);
    char *file = folder ? realpath(path, NULL) : NULL;
    const size_t n = folder ? strlen(folder) : 0;
    lnt_status status;
    if (!file)
        status = not_found(im, location);
    else if (strncmp(file, folder, n) != 0 || (file[n] != '/' && folder[n - 1] != '/'))
        status = lnt_fail(im->err, LNT_E_MODEL,
                          "external data at '%s': a link leads out of the model's folder", location);
    else
        status = lnt_open_regular(file, O_NOFOLLOW, fd, size, im->err);
    free(folder);
    free(file);
    return status;
}

/* file_bytes: of the whole file. */
static lnt_status read_from(lnt_importer *im, int fd, size_t file_bytes, const external_data *p,
                            lnt_operand *t, size_t bytes)
{
    LNT_REQUIRE(p->length < 0 || (uint64_t)p->length == bytes, im->err, LNT_E_MODEL,
                "external data in '%s': length %lld, but the tensor has %zu bytes", p->location,
                (long long)p->length, bytes);
    LNT_REQUIRE((uint64_t)p->offset <= file_bytes && bytes <= file_bytes - (uint64_t)p->offset, im->err,
                LNT_E_MODEL, "external data: %zu bytes at %lld are not inside '%s' (%zu bytes)", bytes,
                (long long)p->offset, p->location, file_bytes);
    const bool small = lnt_is_small((lnt_dtype)t->dtype);
    const size_t count = (size_t)lnt_operand_count(t);
    LNT_ASSERT(!small || bytes <= count); /* packed, at the beginning of where they are unpacked */
    uint8_t *data = lnt_bump_alloc(&im->g->memory, small ? count : bytes, im->err), *file = data;
    if (lnt_host_big_endian)
        file = lnt_bump_alloc(&im->g->memory, bytes, im->err);
    if (!data || !file)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_read_at(fd, p->location, file, bytes, (size_t)p->offset, im->err));
    const size_t size = lnt_dtype_size((lnt_dtype)t->dtype);
    if (lnt_host_big_endian)
        lnt_copy_elements(data, file, bytes / size, size, true);
    if (small)
        lnt_small_unpack((lnt_dtype)t->dtype, data, count, data);
    t->data = data;
    return LNT_OK;
}

static lnt_status read_external(lnt_importer *im, const external_data *p, lnt_operand *t, size_t *bytes)
{
    const size_t size = lnt_dtype_size((lnt_dtype)t->dtype);
    LNT_REQUIRE(size > 0, im->err, LNT_E_UNSUPPORTED, "a tensor's element type is not supported");
    LNT_REQUIRE(p->location, im->err, LNT_E_MODEL, "external data without a location");
    const int64_t count = lnt_operand_count(t);
    LNT_REQUIRE(count >= 0 && lnt_mul_size((size_t)count, size, bytes), im->err, LNT_E_MODEL,
                "external data in '%s': the tensor is too large", p->location);
    const bool small = lnt_is_small((lnt_dtype)t->dtype);
    const size_t stored = small ? lnt_small_packed_bytes((lnt_dtype)t->dtype, (size_t)count) : *bytes;
    int fd;
    size_t file_bytes;
    LNT_TRY(open_inside(im, p->location, &fd, &file_bytes));
    const lnt_status status = read_from(im, fd, file_bytes, p, t, stored);
    close(fd);
    return status;
}

/* ---- both kinds ---- */

lnt_status lnt_import_tensor_header(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_operand *tensor)
{
    external_data p = {.length = -1};
    bool external;
    *tensor = (lnt_operand){.constant = true};
    return read_header(im, proto, tensor, &p, &external);
}

static void *bump_allocate(void *arg, size_t bytes)
{
    lnt_importer *im = arg;
    return lnt_bump_alloc(&im->g->memory, bytes, im->err);
}

static void bump_release(void *im, void *block)
{
    (void)im;
    (void)block;
}

lnt_status lnt_import_tensor(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_operand *tensor,
                             size_t *bytes)
{
    external_data p = {.length = -1};
    bool external;
    *tensor = (lnt_operand){.constant = true};
    LNT_TRY(read_header(im, proto, tensor, &p, &external));
    if (external)
        return read_external(im, &p, tensor, bytes);
    LNT_REQUIRE(tensor->dtype != LNT_STRING, im->err, LNT_E_UNSUPPORTED,
                "element type %d (%s) is not supported", LNT_STRING, lnt_dtype_text(LNT_STRING));
    const lnt_allocator graph_memory = {bump_allocate, bump_release, im};
    lnt_tensor t;
    lnt_status status = lnt_tensor_parse_pb(proto->data, proto->len, &graph_memory, &t, NULL, 0, im->err);
    if (status == LNT_E_FILE) /* the reader's word for a damaged tensor file */
        status = im->err->code = LNT_E_MODEL;
    LNT_TRY(status);
    tensor->dtype = (uint8_t)t.dtype;
    tensor->rank = (uint8_t)t.rank;
    memcpy(tensor->dims, t.dims, sizeof tensor->dims);
    tensor->data = t.data;
    *bytes = t.bytes;
    return LNT_OK;
}
