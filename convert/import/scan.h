/* scan.h — the bounds that hold before protobuf-c sees a model. */
#ifndef LNT_CONVERT_IMPORT_SCAN_H
#define LNT_CONVERT_IMPORT_SCAN_H

#include "base/error.h"

enum {
    LNT_ONNX_MAX_DEPTH = 200,        /* messages inside messages: about 60 nested subgraphs */
    LNT_ONNX_MAX_NODES = 1 << 20,    /* as written, and again once functions are inlined */
    LNT_ONNX_MAX_MESSAGES = 20000000 /* of all kinds */
};

/* Refuses what is no ONNX model, or is nested deeper or has more nodes or messages than the limits. */
lnt_status lnt_onnx_scan(const void *bytes, size_t size, lnt_error *err);

#endif
