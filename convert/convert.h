/* convert.h — from an ONNX model to the bytes of a .lnt file: import (convert/import), passes over the graph
 * (convert/passes), INT8 (convert/quantize), and the file (convert/emit). */
#ifndef LNT_CONVERT_CONVERT_H
#define LNT_CONVERT_CONVERT_H

#include "convert/graph/options.h"
#include "convert/graph/report.h"
#include "convert/quantize/quantize.h"

/* Length of the ending by which path names an ONNX model, .onnx or one of its text form's; 0: it does not. */
size_t lnt_onnx_ending(const char *path);
/* Reads path (and external data inside its folder) and converts. A model may be in protobuf's text form, by its
 * contents or its name. On success *image, freed with lnt_free and lnt_malloc_allocator, holds the file.
 * E_UNSUPPORTED: report lists every node at fault and there is no image. */
lnt_status lnt_convert_file(const char *path, const lnt_convert_options *options, lnt_report *report,
                            void **image, size_t *size, lnt_error *err);
/* The same for a model in memory; folder (may be NULL) is where external data may be. */
lnt_status lnt_convert_memory(const void *onnx, size_t onnx_size, const char *folder,
                              const lnt_convert_options *options, lnt_report *report, void **image,
                              size_t *size, lnt_error *err);

#endif
