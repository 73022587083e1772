/* ort_api.h — the part of ONNX Runtime's C interface that the paired benchmark uses, and where each function stands in
 * its table. Functions are only ever appended to that table, so a place holds for all later versions of it;
 * all of these stood there in version 5, which a library is asked for. Objects are opaque to us: void *. */
#ifndef LNT_CLI_MEASURE_ORT_API_H
#define LNT_CLI_MEASURE_ORT_API_H

#include <stddef.h>
#include <stdint.h>

enum {
    LNT_ORT_API_VERSION = 5,
    LNT_ORT_OLDEST_MINOR = 12, /* of release 1.x: what came before is not tested */
    LNT_ORT_LOG_ERRORS = 3,
    LNT_ORT_PLAIN = 0, /* graph optimization: none, all */
    LNT_ORT_OPTIMIZED = 99,
    LNT_ORT_ARENA_ALLOCATOR = 1,
    LNT_ORT_DEFAULT_MEMORY = 0
};

/* X(place in the table, result, function, parameters); a status of NULL is success. */
#define LNT_ORT_FUNCTIONS(X)                                                                                 \
    X(2, const char *, GetErrorMessage, (const void *status))                                                \
    X(3, void *, CreateEnv, (int log_level, const char *name, void **env))                                   \
    X(7, void *, CreateSession, (void *env, const char *path, const void *options, void **session))          \
    X(9, void *, Run,                                                                                        \
      (void *session, const void *options, const char *const *in_names, const void *const *in, size_t n_in,  \
       const char *const *out_names, size_t n_out, void **out))                                              \
    X(10, void *, CreateSessionOptions, (void **options))                                                    \
    X(23, void *, SetSessionGraphOptimizationLevel, (void *options, int level))                              \
    X(24, void *, SetIntraOpNumThreads, (void *options, int threads))                                        \
    X(25, void *, SetInterOpNumThreads, (void *options, int threads))                                        \
    X(30, void *, SessionGetInputCount, (const void *session, size_t *n))                                    \
    X(31, void *, SessionGetOutputCount, (const void *session, size_t *n))                                   \
    X(36, void *, SessionGetInputName, (const void *session, size_t i, void *allocator, char **name))        \
    X(37, void *, SessionGetOutputName, (const void *session, size_t i, void *allocator, char **name))       \
    X(49, void *, CreateTensorWithDataAsOrtValue,                                                            \
      (const void *memory, void *data, size_t bytes, const int64_t *dims, size_t rank, int dtype,            \
       void **value))                                                                                        \
    X(51, void *, GetTensorMutableData, (void *value, void **data))                                          \
    X(60, void *, GetTensorElementType, (const void *shape, int *dtype))                                     \
    X(61, void *, GetDimensionsCount, (const void *shape, size_t *rank))                                     \
    X(62, void *, GetDimensions, (const void *shape, int64_t *dims, size_t rank))                            \
    X(65, void *, GetTensorTypeAndShape, (const void *value, void **shape))                                  \
    X(69, void *, CreateCpuMemoryInfo, (int allocator, int memory, void **info))                             \
    X(78, void *, GetAllocatorWithDefaultOptions, (void **allocator))                                        \
    X(93, void, ReleaseStatus, (void *status))                                                               \
    X(99, void, ReleaseTensorTypeAndShapeInfo, (void *shape))                                                \
    X(100, void, ReleaseSessionOptions, (void *options))                                                     \
    X(130, void *, AddSessionConfigEntry, (void *options, const char *key, const char *text))

typedef struct lnt_ort_functions {
#define X(place, result, name, parameters) result(*name) parameters;
    LNT_ORT_FUNCTIONS(X)
#undef X
} lnt_ort_functions;

/* What the library's one exported function, OrtGetApiBase, returns. */
typedef struct lnt_ort_base {
    const void *const *(*table)(uint32_t version);
    const char *(*version)(void);
} lnt_ort_base;

#endif
