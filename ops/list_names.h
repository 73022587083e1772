/* list_names.h — the short names that rows of ops/list.h use for domains and flags, for the files that read those
 * columns. */
#ifndef LNT_OPS_LIST_NAMES_H
#define LNT_OPS_LIST_NAMES_H

#include "ops/op.h"

#define ONNX ""
#define MICROSOFT "com.microsoft"
#define ML "ai.onnx.ml"
#define LINNET "linnet"

enum {
    CL = LNT_OP_CL,
    ELEMENTWISE = LNT_OP_ELEMENTWISE,
    EPILOGUE = LNT_OP_EPILOGUE,
    ANY_RANK = LNT_OP_ANY_RANK,
    EXTENTS = LNT_OP_EXTENTS,
    CONTROL = LNT_OP_CONTROL,
    RANDOM = LNT_OP_RANDOM,
    VIEW = LNT_OP_VIEW,
    CHEAP = LNT_OP_CHEAP,
    COUNTS = LNT_OP_COUNTS,
    INT8 = LNT_OP_INT8,
    QUANTIZED = LNT_OP_QUANTIZED,
    ANY_ORDER = LNT_OP_ANY_ORDER,
    CONVOLVES = LNT_OP_CONVOLVES,
    PARTS = LNT_OP_PARTS,
    TRIPLES = LNT_OP_TRIPLES,
    SKIPS_ANY = LNT_OP_SKIPS_ANY,
    HALVES = LNT_OP_HALVES,
    HALVES_ALIKE = LNT_OP_HALVES_ALIKE
};
#define SKIPS(i) LNT_OP_SKIPS(i)

#endif
