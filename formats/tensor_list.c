/* tensor_list.c — sequences and optionals of tensors from their wire format. */
#include "formats/tensor_list.h"

/* Fields of SequenceProto and OptionalProto: these have the same numbers for what is in them. */
enum { NAME = 1, KIND = 2, TENSOR = 3, SEQUENCE = 5 };

/* What KIND says. */
enum { KIND_NOTHING, KIND_TENSOR, KIND_SEQUENCE = 3 };

/* What a message has, if it is one of the two. */
typedef struct found {
    uint64_t kind;
    int64_t tensors, sequences;
    lnt_wire name, sequence;
    bool has_name;
} found;

/* False where the message is neither, or malformed. */
static bool look(lnt_wire w, found *f)
{
    lnt_wire_field field;
    *f = (found){.kind = KIND_NOTHING};
    while (w.at < w.end) {
        if (!lnt_wire_next(&w, &field))
            return false;
        if (field.number == KIND && field.type == LNT_WIRE_VARINT) {
            f->kind = field.value;
        } else if (field.number == NAME && field.type == LNT_WIRE_BYTES) {
            f->has_name = true;
            f->name = field.bytes;
        } else if (field.number == TENSOR && field.type == LNT_WIRE_BYTES) {
            f->tensors++;
        } else if (field.number == SEQUENCE && field.type == LNT_WIRE_BYTES) {
            f->sequences++;
            f->sequence = field.bytes;
        } else {
            return false;
        }
    }
    return true;
}

/* A TensorProto without elements may have its extents in the field of the name, and nothing but its type besides. */
static bool is_name(const found *f)
{
    for (const uint8_t *at = f->name.at; f->has_name && at < f->name.end; at++)
        if (*at < ' ')
            return false;
    return f->has_name;
}

lnt_status lnt_tensor_list_open(const void *bytes, size_t size, lnt_tensor_list *list, lnt_error *err)
{
    found f, inner;
    const lnt_wire whole = lnt_wire_of(bytes, size);
    *list = (lnt_tensor_list){LNT_LIST_TENSOR, whole};
    if (!look(whole, &f) || (!f.tensors && !f.sequences && !is_name(&f)))
        return LNT_OK;
    LNT_REQUIRE(f.kind <= KIND_TENSOR || f.kind == KIND_SEQUENCE, err, LNT_E_UNSUPPORTED,
                "holds a sequence or an optional of other things than tensors");
    LNT_REQUIRE(f.sequences <= 1 && (!f.sequences || !f.tensors), err, LNT_E_UNSUPPORTED,
                "holds a sequence of sequences; only sequences of tensors can be read");
    list->length = f.kind == KIND_TENSOR ? f.tensors : LNT_LIST_NOTHING;
    if (f.kind != KIND_SEQUENCE || !f.sequences)
        return LNT_OK;
    LNT_REQUIRE(look(f.sequence, &inner) && !inner.sequences && inner.kind <= KIND_TENSOR, err,
                LNT_E_UNSUPPORTED, "holds an optional of other things than tensors and sequences of them");
    *list = (lnt_tensor_list){inner.tensors, f.sequence};
    return LNT_OK;
}

bool lnt_tensor_list_next(lnt_tensor_list *list, lnt_wire *tensor)
{
    lnt_wire_field field;
    while (list->length >= 0 && list->rest.at < list->rest.end && lnt_wire_next(&list->rest, &field))
        if (field.number == TENSOR && field.type == LNT_WIRE_BYTES) {
            *tensor = field.bytes;
            return true;
        }
    return false;
}
