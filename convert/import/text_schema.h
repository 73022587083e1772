/* text_schema.h — the messages of ONNX with all of their fields, as protobuf's text form names them. */
#ifndef LNT_CONVERT_IMPORT_TEXT_SCHEMA_H
#define LNT_CONVERT_IMPORT_TEXT_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(identifier, its name in onnx.proto) */
#define LNT_TEXT_MESSAGES(X)                                                                                 \
    X(MODEL, "ModelProto")                                                                                   \
    X(OPSET, "OperatorSetIdProto")                                                                           \
    X(GRAPH, "GraphProto")                                                                                   \
    X(ENTRY, "StringStringEntryProto")                                                                       \
    X(TRAINING, "TrainingInfoProto")                                                                         \
    X(FUNCTION, "FunctionProto")                                                                             \
    X(DEVICE, "DeviceConfigurationProto")                                                                    \
    X(NODE, "NodeProto")                                                                                     \
    X(TENSOR, "TensorProto")                                                                                 \
    X(SEGMENT, "Segment")                                                                                    \
    X(SPARSE, "SparseTensorProto")                                                                           \
    X(VALUE_INFO, "ValueInfoProto")                                                                          \
    X(ANNOTATION, "TensorAnnotation")                                                                        \
    X(ATTRIBUTE, "AttributeProto")                                                                           \
    X(NODE_DEVICE, "NodeDeviceConfigurationProto")                                                           \
    X(SHARDING, "ShardingSpecProto")                                                                         \
    X(INT_LIST, "IntIntListEntryProto")                                                                      \
    X(SHARDED_DIM, "ShardedDimProto")                                                                        \
    X(SIMPLE_SHARDED, "SimpleShardedDimProto")                                                               \
    X(TYPE, "TypeProto")                                                                                     \
    X(TENSOR_TYPE, "Tensor")                                                                                 \
    X(SEQUENCE_TYPE, "Sequence")                                                                             \
    X(MAP_TYPE, "Map")                                                                                       \
    X(OPTIONAL_TYPE, "Optional")                                                                             \
    X(OPAQUE_TYPE, "Opaque")                                                                                 \
    X(SHAPE, "TensorShapeProto")                                                                             \
    X(DIMENSION, "Dimension")

typedef enum lnt_text_message {
#define X(id, name) LNT_TEXT_##id,
    LNT_TEXT_MESSAGES(X)
#undef X
} lnt_text_message;

typedef enum lnt_text_kind {
    LNT_TEXT_INT32,
    LNT_TEXT_INT64,
    LNT_TEXT_UINT64,
    LNT_TEXT_FLOAT,
    LNT_TEXT_DOUBLE,
    LNT_TEXT_STRING, /* bytes, too */
    LNT_TEXT_OF_MESSAGE
} lnt_text_kind;

typedef struct lnt_text_word { /* of an enumeration */
    const char *name;
    int32_t number;
} lnt_text_word;

typedef struct lnt_text_field {
    lnt_text_message message; /* that it is a field of */
    const char *name;
    unsigned number;
    lnt_text_kind kind;
    bool repeated;
    lnt_text_message of;        /* of LNT_TEXT_OF_MESSAGE */
    const lnt_text_word *words; /* of an INT32 that is an enumeration; ended by a NULL */
} lnt_text_field;

const char *lnt_text_message_name(lnt_text_message message);
/* The field called name[0..length); NULL if the message has none. */
const lnt_text_field *lnt_text_find(lnt_text_message message, const char *name, size_t length);

#endif
