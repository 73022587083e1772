/* import_small.c — constants of element types below 8 bits, and of 8-bit floats: integers become int8 or uint8, floats
 * float, all of whose values are the same. */
#include "convert/import/expand.h"

#include "base/checked.h"
#include "formats/wire.h"

#include <math.h>

/* Floats: bits of exponent and mantissa, bias, and which patterns are no number. */
typedef enum specials { NO_SPECIALS, ALL_ONES, MINUS_ZERO, IEEE } specials;

typedef struct small_type {
    const char *name;
    unsigned bits, exponent, mantissa; /* exponent 0: an integer */
    int bias;
    specials specials;
    bool is_signed;
} small_type;

enum { FIRST_SMALL = 17, BIAS_8 = 127 };

/* From TensorProto.FLOAT8E4M3FN on. */
static const small_type types[] = {
    {"float8e4m3fn", 8, 4, 3, 7, ALL_ONES, true},  {"float8e4m3fnuz", 8, 4, 3, 8, MINUS_ZERO, true},
    {"float8e5m2", 8, 5, 2, 15, IEEE, true},       {"float8e5m2fnuz", 8, 5, 2, 16, MINUS_ZERO, true},
    {"uint4", 4, 0, 0, 0, NO_SPECIALS, false},     {"int4", 4, 0, 0, 0, NO_SPECIALS, true},
    {"float4e2m1", 4, 2, 1, 1, NO_SPECIALS, true}, {"float8e8m0", 8, 8, 0, BIAS_8, ALL_ONES, false},
    {"uint2", 2, 0, 0, 0, NO_SPECIALS, false},     {"int2", 2, 0, 0, 0, NO_SPECIALS, true},
};

static const small_type *type_numbered(uint64_t number)
{
    return number >= FIRST_SMALL && number - FIRST_SMALL < sizeof types / sizeof types[0]
               ? &types[number - FIRST_SMALL]
               : NULL;
}

/* ---- elements ---- */

static float decode(const small_type *t, unsigned bits)
{
    const unsigned magnitude = bits & ((1u << (t->bits - t->is_signed)) - 1);
    const unsigned e = magnitude >> t->mantissa, m = magnitude & ((1u << t->mantissa) - 1);
    const unsigned most = (1u << t->exponent) - 1;
    const bool minus = t->is_signed && bits >> (t->bits - 1);
    if ((t->specials == ALL_ONES && magnitude == (1u << (t->bits - t->is_signed)) - 1) ||
        (t->specials == MINUS_ZERO && minus && !magnitude) || (t->specials == IEEE && e == most && m))
        return NAN;
    if (t->specials == IEEE && e == most)
        return minus ? -INFINITY : INFINITY;
    const float fraction = (float)m / (float)(1u << t->mantissa);
    const bool normal = e > 0 || t->mantissa == 0; /* without a mantissa there is no 0 */
    const float value = ldexpf(normal ? 1 + fraction : fraction, (normal ? (int)e : 1) - t->bias);
    return minus ? -value : value;
}

static void unpack(const small_type *t, const uint8_t *bytes, int64_t n, void *out)
{
    const unsigned mask = (1u << t->bits) - 1, sign = 1u << (t->bits - 1);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t at = (uint64_t)i * t->bits;
        const unsigned bits = (unsigned)bytes[at / 8] >> at % 8 & mask;
        if (t->exponent)
            ((float *)out)[i] = decode(t, bits);
        else
            ((uint8_t *)out)[i] = (uint8_t)(t->is_signed && bits & sign ? bits | (0xffu & ~mask) : bits);
    }
}

/* ---- tensors ---- */

enum { FIELD_DATA_TYPE = 2, FIELD_INT32_DATA = 5, FIELD_RAW_DATA = 9 };

const char *lnt_import_small_type(const ProtobufCBinaryData *proto, unsigned *number)
{
    lnt_wire w = lnt_wire_of(proto->data, proto->len);
    lnt_wire_field f;
    *number = 0;
    while (lnt_wire_next(&w, &f))
        if (f.number == FIELD_DATA_TYPE && f.type == LNT_WIRE_VARINT)
            *number = type_numbered(f.value) ? (unsigned)f.value : 0;
    return *number ? type_numbered(*number)->name : NULL;
}

/* Bytes inside the message: raw, or one in each int32. Writes at most `most`, returns how many there are. */
static size_t inside(const ProtobufCBinaryData *proto, uint8_t *out, size_t most)
{
    lnt_wire w = lnt_wire_of(proto->data, proto->len);
    lnt_wire_field f;
    size_t n = 0;
    uint64_t value;
    while (lnt_wire_next(&w, &f)) {
        if (f.number == FIELD_RAW_DATA && f.type == LNT_WIRE_BYTES) {
            const size_t bytes = lnt_wire_bytes(f.bytes);
            if (bytes <= most)
                memcpy(out, f.bytes.at, bytes);
            n = bytes;
        } else if (f.number == FIELD_INT32_DATA && f.type == LNT_WIRE_VARINT) {
            if (n < most)
                out[n] = (uint8_t)f.value;
            n++;
        } else if (f.number == FIELD_INT32_DATA && f.type == LNT_WIRE_BYTES) {
            while (lnt_wire_number(&f.bytes, LNT_WIRE_VARINT, &value)) {
                if (n < most)
                    out[n] = (uint8_t)value;
                n++;
            }
        }
    }
    return n;
}

lnt_status lnt_import_small_tensor(lnt_importer *im, const ProtobufCBinaryData *proto, unsigned number,
                                   lnt_operand *tensor, size_t *bytes)
{
    const small_type *t = type_numbered(number);
    lnt_operand packed = {.dtype = LNT_UINT8, .rank = 1};
    bool external;
    LNT_TRY(lnt_import_tensor_header(im, proto, tensor, &external));
    tensor->dtype = t->exponent ? LNT_FLOAT : t->is_signed ? LNT_INT8 : LNT_UINT8;
    const int64_t n = lnt_operand_count(tensor);
    LNT_REQUIRE(n >= 0 && lnt_operand_bytes(tensor, bytes), im->err, LNT_E_MODEL, "the tensor is too large");
    packed.dims[0] = n / 8 * t->bits + (n % 8 * t->bits + 7) / 8;
    if (external) {
        size_t read;
        LNT_TRY(lnt_import_external(im, proto, &packed, &read));
    } else {
        const size_t most = (size_t)packed.dims[0];
        LNT_REQUIRE(most <= proto->len, im->err, LNT_E_MODEL, "a tensor of %s has too few elements", t->name);
        uint8_t *kept = lnt_bump_alloc(&im->g->memory, most, im->err);
        if (!kept)
            return LNT_E_MEMORY;
        LNT_REQUIRE(inside(proto, kept, most) == most, im->err, LNT_E_MODEL,
                    "a tensor of %s has not as many elements as its extents say", t->name);
        packed.data = kept;
    }
    void *out = lnt_bump_alloc(&im->g->memory, *bytes, im->err);
    if (!out)
        return LNT_E_MEMORY;
    unpack(t, packed.data, n, out);
    tensor->data = out;
    return LNT_OK;
}

/* ---- nodes ---- */

/* v, one for each index of the axis, beside a tensor of this rank. */
static uint32_t along(maker *m, uint32_t v, int64_t axis, unsigned rank)
{
    int64_t dims[LNT_MAX_RANK];
    const lnt_operand *o = lnt_ginfo(m->im->g, v);
    if (o->rank != 1)
        return v;
    for (unsigned i = 0; i < rank; i++)
        dims[i] = i == axis ? -1 : 1;
    return make(m, "Reshape", IN(v, make_ints(m, "along", dims, rank)), NULL);
}

/* DequantizeLinear of floats: (x - zero point) scale. */
static lnt_status dequantize(lnt_importer *im, lnt_inode *n)
{
    const lnt_operand *x = lnt_ginfo(im->g, n->in[0]), *scale = lnt_ginfo(im->g, lnt_inode_in(n, 1));
    const int64_t given = lnt_inode_i(n, "axis", 1);
    if (!scale || scale->rank > 1 || x->rank == LNT_RANK_UNKNOWN)
        return lnt_import_unsupported(im, n, "blocks of 8-bit or 4-bit floats are not supported");
    maker m = {.im = im, .n = n};
    const int64_t axis = given < 0 ? given + x->rank : given;
    const lnt_dtype type = (lnt_dtype)scale->dtype, asked = (lnt_dtype)lnt_inode_i(n, "output_dtype", 0);
    const unsigned rank = x->rank;
    uint32_t y = cast(&m, n->in[0], type);
    if (lnt_inode_in(n, 2) != LNT_NONE)
        y = make(&m, "Sub", IN(y, along(&m, cast(&m, n->in[2], type), axis, rank)), NULL);
    y = make(&m, "Mul", IN(y, along(&m, n->in[1], axis, rank)), NULL);
    finish(&m, 0, "Identity", IN(asked ? cast(&m, y, asked) : y), NULL);
    n->replaced = true;
    return m.status;
}

lnt_status lnt_import_check_small(lnt_importer *im, lnt_inode *n, bool *fine)
{
    unsigned small = 0, others = 0;
    for (unsigned i = 0; i < n->n_in; i++) {
        const unsigned is = n->in[i] == LNT_NONE ? 0 : im->g->value[n->in[i]].small;
        small = is ? is : small;
        others += is && i > 0;
    }
    const bool dequantizes = strcmp(n->op, "DequantizeLinear") == 0 && lnt_inode_in(n, 0) != LNT_NONE &&
                             im->g->value[n->in[0]].small;
    *fine = !small || dequantizes ||
            (!others && (lnt_import_moves_elements(n->op) || strcmp(n->op, "Cast") == 0));
    if (!*fine)
        return lnt_import_unsupported(im, n, "it reads %s, which can be moved, cast and dequantized only",
                                      type_numbered(small)->name);
    return dequantizes && type_numbered(im->g->value[n->in[0]].small)->exponent ? dequantize(im, n) : LNT_OK;
}
