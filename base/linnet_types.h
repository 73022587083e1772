/* linnet_types.h — the words every part of Linnet shares: status codes, element types, tensors.
 *
 * Public: linnet.h includes it, both are installed. */
#ifndef LINNET_TYPES_H
#define LINNET_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LNT_API __attribute__((visibility("default")))
#define LNT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define LNT_API
#define LNT_PRINTF(fmt, args)
#endif

/* X(identifier, number, text). Numbers are part of the ABI and are never reused. */
/* clang-format off */
#define LNT_STATUS_LIST(X)                                                                 \
    X(OK, 0, "ok")                                                                         \
    X(E_ARGUMENT, 1, "invalid argument")                                                   \
    X(E_FILE, 2, "damaged or foreign file")                                                \
    X(E_MODEL, 3, "malformed ONNX model")                                                  \
    X(E_UNSUPPORTED, 4, "not supported")                                                   \
    X(E_SHAPE, 5, "shapes do not fit")                                                     \
    X(E_TYPE, 6, "element types do not fit")                                               \
    X(E_VALUE, 7, "a value in the data is out of range")                                   \
    X(E_MEMORY, 8, "out of memory")                                                        \
    X(E_LIMIT, 9, "over a stated limit")                                                   \
    X(E_BUSY, 10, "session is running in another thread")                                  \
    X(E_CANCELLED, 11, "cancelled")                                                        \
    X(E_DEADLINE, 12, "deadline passed")                                                   \
    X(E_IO, 13, "input/output error")                                                      \
    X(E_NOT_FOUND, 14, "no such name")                                                     \
    X(E_INTERNAL, 15, "internal error: please report it")
/* clang-format on */

typedef enum lnt_status {
#define X(name, number, text) LNT_##name = number,
    LNT_STATUS_LIST(X)
#undef X
} lnt_status;

/* Where a failed call explains itself. Filled by the first failure, never printed by the library. */
typedef struct lnt_error {
    lnt_status code;
    char message[508]; /* names node, operator, type and, where there is one, the way out */
} lnt_error;

/* Element types carry ONNX's TensorProto.DataType numbers. X(identifier, number, bits, text)
 *
 * Those of the second list are moved, cast, quantized and dequantized, no more. Each has a byte in memory,
 * whatever it takes where ONNX packs it: an integer as its value, a float as its code in the low bits. */
/* clang-format off */
#define LNT_PLAIN_DTYPE_LIST(X)      \
    X(FLOAT, 1, 32, "float")         \
    X(UINT8, 2, 8, "uint8")          \
    X(INT8, 3, 8, "int8")            \
    X(UINT16, 4, 16, "uint16")       \
    X(INT16, 5, 16, "int16")         \
    X(INT32, 6, 32, "int32")         \
    X(INT64, 7, 64, "int64")         \
    X(STRING, 8, 0, "string")        \
    X(BOOL, 9, 8, "bool")            \
    X(FLOAT16, 10, 16, "float16")    \
    X(DOUBLE, 11, 64, "double")      \
    X(UINT32, 12, 32, "uint32")      \
    X(UINT64, 13, 64, "uint64")      \
    X(BFLOAT16, 16, 16, "bfloat16")
#define LNT_SMALL_DTYPE_LIST(X)               \
    X(FLOAT8E4M3FN, 17, 8, "float8e4m3fn")     \
    X(FLOAT8E4M3FNUZ, 18, 8, "float8e4m3fnuz") \
    X(FLOAT8E5M2, 19, 8, "float8e5m2")         \
    X(FLOAT8E5M2FNUZ, 20, 8, "float8e5m2fnuz") \
    X(UINT4, 21, 8, "uint4")                   \
    X(INT4, 22, 8, "int4")                     \
    X(FLOAT4E2M1, 23, 8, "float4e2m1")         \
    X(FLOAT8E8M0, 24, 8, "float8e8m0")         \
    X(UINT2, 25, 8, "uint2")                   \
    X(INT2, 26, 8, "int2")
#define LNT_DTYPE_LIST(X) LNT_PLAIN_DTYPE_LIST(X) LNT_SMALL_DTYPE_LIST(X)
/* clang-format on */

typedef enum lnt_dtype {
    LNT_UNDEFINED = 0,
#define X(name, number, bits, text) LNT_##name = number,
    LNT_DTYPE_LIST(X)
#undef X
} lnt_dtype;

#define LNT_MAX_RANK 8

/* A dense tensor in ONNX order (last dimension fastest). The memory is the caller's. */
typedef struct lnt_tensor {
    lnt_dtype dtype;
    uint32_t rank;              /* 0 is a scalar */
    int64_t dims[LNT_MAX_RANK]; /* elements along each axis; entries past rank are ignored */
    void *data;
    size_t bytes; /* size of data */
} lnt_tensor;

/* A call of an operator that the host brings. Tensors are in ONNX order. */
typedef struct lnt_custom_call {
    uint32_t n_in, n_out;
    const lnt_tensor *in; /* data NULL where an operand is skipped (dtype 0) or, for shape, not known yet */
    lnt_tensor *out;      /* shape fills dtype, rank and dims; run fills data */
    const void *node;     /* for lnt_custom_attr_* */
    void *user;
    lnt_error *err; /* a failure may explain itself here */
} lnt_custom_call;

/* An operator that the host brings, given with lnt_model_options. Must outlive the model; may be called from
 * any thread that runs a session. */
typedef struct lnt_custom_op {
    const char *domain, *name; /* as in the ONNX model; convert it with --custom DOMAIN.NAME */
    uint32_t value_inputs;     /* bit i: shape reads the contents of input i, so it has to wait for them */
    lnt_status (*shape)(lnt_custom_call *call);
    lnt_status (*run)(lnt_custom_call *call);
    void *user;
} lnt_custom_op;

/* Attributes of the node a custom operator is called for, or otherwise where it has none of this name. */
LNT_API int64_t lnt_custom_attr_int(const lnt_custom_call *call, const char *name, int64_t otherwise);
LNT_API float lnt_custom_attr_float(const lnt_custom_call *call, const char *name, float otherwise);
LNT_API const char *lnt_custom_attr_string(const lnt_custom_call *call, const char *name, const char *otherwise);
/* NULL if there is no such list of integers; *n receives its length. */
LNT_API const int64_t *lnt_custom_attr_ints(const lnt_custom_call *call, const char *name, uint32_t *n);

/* Text of a status or element type; never NULL. */
LNT_API const char *lnt_status_text(lnt_status status);
LNT_API const char *lnt_dtype_text(lnt_dtype dtype);
/* Bytes of one element; 0 for strings and unknown numbers. */
LNT_API size_t lnt_dtype_size(lnt_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
