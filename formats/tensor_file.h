/* tensor_file.h — tensors in files: .npy, .npz, ONNX TensorProto .pb, raw bytes.
 *
 * All memory of a read tensor is one lnt_alloc block, freed with lnt_tensor_free; of text, that is an array of pointers
 * with the characters behind it. Sizes in files are checked
 * against the file and for overflow before anything is allocated. */
#ifndef LNT_FORMATS_TENSOR_FILE_H
#define LNT_FORMATS_TENSOR_FILE_H

#include "base/memory.h"

/* Memory for a tensor of these extents, uninitialized; extents and their product are checked. */
lnt_status lnt_tensor_alloc(const lnt_allocator *a, lnt_dtype dtype, unsigned rank, const int64_t *dims,
                            lnt_tensor *out, lnt_error *err);

/* Reads a TensorProto, or that of an OptionalProto, from bytes (a small wire reader of our own; no protobuf).
 * name (may be NULL) receives the tensor's name, cut to name_bytes. */
lnt_status lnt_tensor_parse_pb(const void *bytes, size_t size, const lnt_allocator *a, lnt_tensor *out,
                               char *name, size_t name_bytes, lnt_error *err);
lnt_status lnt_tensor_parse_npy(const void *bytes, size_t size, const lnt_allocator *a, lnt_tensor *out,
                                lnt_error *err);
/* Member name (without .npy) of an .npz; NULL: its only member. Members are stored or deflated (savez_compressed). */
lnt_status lnt_tensor_parse_npz(const void *bytes, size_t size, const char *member, const lnt_allocator *a,
                                lnt_tensor *out, lnt_error *err);
/* By the ending of path: .npy .npz .pb. PATH.npz:MEMBER names a member. Anything else is E_UNSUPPORTED. */
lnt_status lnt_tensor_read(const char *path, const lnt_allocator *a, lnt_tensor *out, lnt_error *err);
/* By the ending of path: .npy, .pb, otherwise raw little-endian bytes. Written atomically. */
lnt_status lnt_tensor_write(const char *path, const lnt_tensor *t, lnt_error *err);
void lnt_tensor_free(const lnt_allocator *a, lnt_tensor *t);

#endif
