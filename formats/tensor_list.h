/* tensor_list.h — the tensors of an ONNX message in a file of its own: TensorProto, SequenceProto or OptionalProto. */
#ifndef LNT_FORMATS_TENSOR_LIST_H
#define LNT_FORMATS_TENSOR_LIST_H

#include "base/memory.h"
#include "formats/wire.h"

enum {
    LNT_LIST_NOTHING = -1, /* an optional that holds nothing */
    LNT_LIST_TENSOR = -2   /* the message is a TensorProto */
};

typedef struct lnt_tensor_list {
    int64_t length; /* of the sequence, or one of those above */
    lnt_wire rest;  /* messages of it that lnt_tensor_list_next has not taken yet */
} lnt_tensor_list;

/* Looks at a message, zero-copy. An optional of a tensor has the form of a sequence of one, and is taken for that; one
 * of a sequence is this sequence. Sequences of other things than tensors are E_UNSUPPORTED. */
lnt_status lnt_tensor_list_open(const void *bytes, size_t size, lnt_tensor_list *list, lnt_error *err);
/* The next TensorProto; false at the end. */
bool lnt_tensor_list_next(lnt_tensor_list *list, lnt_wire *tensor);

#endif
