/* foreign.h — files of other kinds that are given as ONNX models. */
#ifndef LNT_CONVERT_IMPORT_FOREIGN_H
#define LNT_CONVERT_IMPORT_FOREIGN_H

#include <stddef.h>

/* What a file that is no ONNX model is, and the way out, by how it begins; NULL: not known. */
const char *lnt_foreign_file(const void *bytes, size_t size);

#endif
