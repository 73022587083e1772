/* text_model.h — models in protobuf's text form (.textproto, .pbtxt, .prototxt, .onnxtxt) as messages that
 * protobuf-c unpacks. */
#ifndef LNT_CONVERT_IMPORT_TEXT_MODEL_H
#define LNT_CONVERT_IMPORT_TEXT_MODEL_H

#include "base/memory.h"

#include <stdbool.h>

/* Do the bytes begin as a model's text does: with one of its fields? */
bool lnt_text_model(const void *bytes, size_t size);
/* Length of the path's ending if it is that of such a file, else 0. */
size_t lnt_text_model_ending(const char *path);
/* The model's message in its wire format, freed with lnt_free; as large as the text at most, but for empty fields.
 * LNT_E_MODEL tells line and column of what is wrong, and of the column that it counts bytes. */
lnt_status lnt_text_model_parse(const void *text, size_t size, const lnt_allocator *a, void **onnx,
                                size_t *onnx_size, lnt_error *err);

#endif
