/* text_schema.c — ONNX's messages, after its onnx.proto of IR version 13. What the converter reads of them is in
 * onnx.proto here; a text may have all. */
#include "convert/import/text_schema.h"

#include "base/lnt_assert.h"

#include <string.h>

static const lnt_text_word data_types[] = {{"UNDEFINED", 0},       {"FLOAT", 1},
                                           {"UINT8", 2},           {"INT8", 3},
                                           {"UINT16", 4},          {"INT16", 5},
                                           {"INT32", 6},           {"INT64", 7},
                                           {"STRING", 8},          {"BOOL", 9},
                                           {"FLOAT16", 10},        {"DOUBLE", 11},
                                           {"UINT32", 12},         {"UINT64", 13},
                                           {"COMPLEX64", 14},      {"COMPLEX128", 15},
                                           {"BFLOAT16", 16},       {"FLOAT8E4M3FN", 17},
                                           {"FLOAT8E4M3FNUZ", 18}, {"FLOAT8E5M2", 19},
                                           {"FLOAT8E5M2FNUZ", 20}, {"UINT4", 21},
                                           {"INT4", 22},           {"FLOAT4E2M1", 23},
                                           {"FLOAT8E8M0", 24},     {"UINT2", 25},
                                           {"INT2", 26},           {"FLOAT6E2M3", 27},
                                           {"FLOAT6E3M2", 28},     {NULL, 0}};
static const lnt_text_word attribute_types[] = {
    {"UNDEFINED", 0},       {"FLOAT", 1},       {"INT", 2},          {"STRING", 3},
    {"TENSOR", 4},          {"GRAPH", 5},       {"FLOATS", 6},       {"INTS", 7},
    {"STRINGS", 8},         {"TENSORS", 9},     {"GRAPHS", 10},      {"SPARSE_TENSOR", 11},
    {"SPARSE_TENSORS", 12}, {"TYPE_PROTO", 13}, {"TYPE_PROTOS", 14}, {NULL, 0}};
static const lnt_text_word locations[] = {{"DEFAULT", 0}, {"EXTERNAL", 1}, {NULL, 0}};

#define ONE(message, name, number, kind)                                                                     \
    {                                                                                                        \
        LNT_TEXT_##message, name, number, LNT_TEXT_##kind, false, 0, NULL                                    \
    }
#define MANY(message, name, number, kind)                                                                    \
    {                                                                                                        \
        LNT_TEXT_##message, name, number, LNT_TEXT_##kind, true, 0, NULL                                     \
    }
#define WORD(message, name, number, words)                                                                   \
    {                                                                                                        \
        LNT_TEXT_##message, name, number, LNT_TEXT_INT32, false, 0, words                                    \
    }
#define SUB(message, name, number, of)                                                                       \
    {                                                                                                        \
        LNT_TEXT_##message, name, number, LNT_TEXT_OF_MESSAGE, false, LNT_TEXT_##of, NULL                    \
    }
#define SUBS(message, name, number, of)                                                                      \
    {                                                                                                        \
        LNT_TEXT_##message, name, number, LNT_TEXT_OF_MESSAGE, true, LNT_TEXT_##of, NULL                     \
    }

/* clang-format off */
static const lnt_text_field fields[] = {
    ONE(MODEL, "ir_version", 1, INT64), SUBS(MODEL, "opset_import", 8, OPSET), ONE(MODEL, "producer_name", 2, STRING),
    ONE(MODEL, "producer_version", 3, STRING), ONE(MODEL, "domain", 4, STRING), ONE(MODEL, "model_version", 5, INT64),
    ONE(MODEL, "doc_string", 6, STRING), SUB(MODEL, "graph", 7, GRAPH), SUBS(MODEL, "metadata_props", 14, ENTRY),
    SUBS(MODEL, "training_info", 20, TRAINING), SUBS(MODEL, "functions", 25, FUNCTION),
    SUBS(MODEL, "configuration", 26, DEVICE),
    ONE(OPSET, "domain", 1, STRING), ONE(OPSET, "version", 2, INT64),
    SUBS(GRAPH, "node", 1, NODE), ONE(GRAPH, "name", 2, STRING), SUBS(GRAPH, "initializer", 5, TENSOR),
    SUBS(GRAPH, "sparse_initializer", 15, SPARSE), ONE(GRAPH, "doc_string", 10, STRING),
    SUBS(GRAPH, "input", 11, VALUE_INFO), SUBS(GRAPH, "output", 12, VALUE_INFO),
    SUBS(GRAPH, "value_info", 13, VALUE_INFO), SUBS(GRAPH, "quantization_annotation", 14, ANNOTATION),
    SUBS(GRAPH, "metadata_props", 16, ENTRY),
    ONE(ENTRY, "key", 1, STRING), ONE(ENTRY, "value", 2, STRING),
    SUB(TRAINING, "initialization", 1, GRAPH), SUB(TRAINING, "algorithm", 2, GRAPH),
    SUBS(TRAINING, "initialization_binding", 3, ENTRY), SUBS(TRAINING, "update_binding", 4, ENTRY),
    ONE(FUNCTION, "name", 1, STRING), MANY(FUNCTION, "input", 4, STRING), MANY(FUNCTION, "output", 5, STRING),
    MANY(FUNCTION, "attribute", 6, STRING), SUBS(FUNCTION, "attribute_proto", 11, ATTRIBUTE),
    SUBS(FUNCTION, "node", 7, NODE), ONE(FUNCTION, "doc_string", 8, STRING), SUBS(FUNCTION, "opset_import", 9, OPSET),
    ONE(FUNCTION, "domain", 10, STRING), ONE(FUNCTION, "overload", 13, STRING),
    SUBS(FUNCTION, "value_info", 12, VALUE_INFO), SUBS(FUNCTION, "metadata_props", 14, ENTRY),
    ONE(DEVICE, "name", 1, STRING), ONE(DEVICE, "num_devices", 2, INT32), MANY(DEVICE, "device", 3, STRING),
    MANY(NODE, "input", 1, STRING), MANY(NODE, "output", 2, STRING), ONE(NODE, "name", 3, STRING),
    ONE(NODE, "op_type", 4, STRING), ONE(NODE, "domain", 7, STRING), ONE(NODE, "overload", 8, STRING),
    SUBS(NODE, "attribute", 5, ATTRIBUTE), ONE(NODE, "doc_string", 6, STRING), SUBS(NODE, "metadata_props", 9, ENTRY),
    SUBS(NODE, "device_configurations", 10, NODE_DEVICE),
    MANY(TENSOR, "dims", 1, INT64), WORD(TENSOR, "data_type", 2, data_types), SUB(TENSOR, "segment", 3, SEGMENT),
    MANY(TENSOR, "float_data", 4, FLOAT), MANY(TENSOR, "int32_data", 5, INT32),
    MANY(TENSOR, "string_data", 6, STRING), MANY(TENSOR, "int64_data", 7, INT64), ONE(TENSOR, "name", 8, STRING),
    ONE(TENSOR, "doc_string", 12, STRING), ONE(TENSOR, "raw_data", 9, STRING),
    SUBS(TENSOR, "external_data", 13, ENTRY), WORD(TENSOR, "data_location", 14, locations),
    MANY(TENSOR, "double_data", 10, DOUBLE), MANY(TENSOR, "uint64_data", 11, UINT64),
    SUBS(TENSOR, "metadata_props", 16, ENTRY),
    ONE(SEGMENT, "begin", 1, INT64), ONE(SEGMENT, "end", 2, INT64),
    SUB(SPARSE, "values", 1, TENSOR), SUB(SPARSE, "indices", 2, TENSOR), MANY(SPARSE, "dims", 3, INT64),
    ONE(VALUE_INFO, "name", 1, STRING), SUB(VALUE_INFO, "type", 2, TYPE), ONE(VALUE_INFO, "doc_string", 3, STRING),
    SUBS(VALUE_INFO, "metadata_props", 4, ENTRY),
    ONE(ANNOTATION, "tensor_name", 1, STRING), SUBS(ANNOTATION, "quant_parameter_tensor_names", 2, ENTRY),
    ONE(ATTRIBUTE, "name", 1, STRING), ONE(ATTRIBUTE, "ref_attr_name", 21, STRING),
    ONE(ATTRIBUTE, "doc_string", 13, STRING), WORD(ATTRIBUTE, "type", 20, attribute_types),
    ONE(ATTRIBUTE, "f", 2, FLOAT), ONE(ATTRIBUTE, "i", 3, INT64), ONE(ATTRIBUTE, "s", 4, STRING),
    SUB(ATTRIBUTE, "t", 5, TENSOR), SUB(ATTRIBUTE, "g", 6, GRAPH), SUB(ATTRIBUTE, "sparse_tensor", 22, SPARSE),
    SUB(ATTRIBUTE, "tp", 14, TYPE), MANY(ATTRIBUTE, "floats", 7, FLOAT), MANY(ATTRIBUTE, "ints", 8, INT64),
    MANY(ATTRIBUTE, "strings", 9, STRING), SUBS(ATTRIBUTE, "tensors", 10, TENSOR),
    SUBS(ATTRIBUTE, "graphs", 11, GRAPH), SUBS(ATTRIBUTE, "sparse_tensors", 23, SPARSE),
    SUBS(ATTRIBUTE, "type_protos", 15, TYPE),
    ONE(NODE_DEVICE, "configuration_id", 1, STRING), SUBS(NODE_DEVICE, "sharding_spec", 2, SHARDING),
    ONE(NODE_DEVICE, "pipeline_stage", 3, INT32),
    ONE(SHARDING, "tensor_name", 1, STRING), MANY(SHARDING, "device", 2, INT64),
    SUBS(SHARDING, "index_to_device_group_map", 3, INT_LIST), SUBS(SHARDING, "sharded_dim", 4, SHARDED_DIM),
    ONE(INT_LIST, "key", 1, INT64), MANY(INT_LIST, "value", 2, INT64),
    ONE(SHARDED_DIM, "axis", 1, INT64), SUBS(SHARDED_DIM, "simple_sharding", 2, SIMPLE_SHARDED),
    ONE(SIMPLE_SHARDED, "dim_value", 1, INT64), ONE(SIMPLE_SHARDED, "dim_param", 2, STRING),
    ONE(SIMPLE_SHARDED, "num_shards", 3, INT64),
    SUB(TYPE, "tensor_type", 1, TENSOR_TYPE), SUB(TYPE, "sequence_type", 4, SEQUENCE_TYPE),
    SUB(TYPE, "map_type", 5, MAP_TYPE), SUB(TYPE, "optional_type", 9, OPTIONAL_TYPE),
    SUB(TYPE, "sparse_tensor_type", 8, TENSOR_TYPE), SUB(TYPE, "opaque_type", 7, OPAQUE_TYPE),
    ONE(TYPE, "denotation", 6, STRING),
    WORD(TENSOR_TYPE, "elem_type", 1, data_types), SUB(TENSOR_TYPE, "shape", 2, SHAPE),
    SUB(SEQUENCE_TYPE, "elem_type", 1, TYPE),
    WORD(MAP_TYPE, "key_type", 1, data_types), SUB(MAP_TYPE, "value_type", 2, TYPE),
    SUB(OPTIONAL_TYPE, "elem_type", 1, TYPE),
    ONE(OPAQUE_TYPE, "domain", 1, STRING), ONE(OPAQUE_TYPE, "name", 2, STRING),
    SUBS(SHAPE, "dim", 1, DIMENSION),
    ONE(DIMENSION, "dim_value", 1, INT64), ONE(DIMENSION, "dim_param", 2, STRING),
    ONE(DIMENSION, "denotation", 3, STRING),
};
/* clang-format on */

const char *lnt_text_message_name(lnt_text_message message)
{
    static const char *const name[] = {
#define X(id, text) text,
        LNT_TEXT_MESSAGES(X)
#undef X
    };
    LNT_ASSERT(message < sizeof name / sizeof *name);
    return name[message];
}

const lnt_text_field *lnt_text_find(lnt_text_message message, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].message == message && strncmp(fields[i].name, name, length) == 0 &&
            !fields[i].name[length])
            return &fields[i];
    return NULL;
}
