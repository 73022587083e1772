/* list.h — one row per operator.
 *
 * OP(id, version, Ident, domain, name, inputs min, max, outputs min, max, types, shape rule, bind, values, flags)
 *   id       in files; never reused. Order does not matter; families keep to their hundred.
 *   version  of the operator's meaning: always that of the newest opset; the importer rewrites older forms
 *   types    lnt_type_rule without its prefix
 *   shape    lnt_shape_NAME, bind: lnt_bind_NAME
 *   values   inputs whose contents the shape rule reads: V(0) | V(2)
 *   flags    LNT_OP_* without prefix, or 0
 * 255 as a maximum means any number. */
#define V(i) (1u << (i))

/* clang-format off */

/* 100: elementwise (elementwise.c) */

/* 200: matrix products, convolution, recurrent (gemm.c, conv.c, ...) */

/* 300: reductions, normalisation, softmax, pooling, resize */

/* 400: moving data */

/* 500: shapes, constants, ranges, random, selection */

/* 600: quantisation */

/* 700: control flow: bound by the runtime */
OP(700, 1, If, ONNX, "If", 1, 1, 1, 255, RULE, control, control, V(0), CONTROL)
OP(701, 1, Loop, ONNX, "Loop", 2, 255, 1, 255, RULE, control, control, V(0) | V(1), CONTROL)
OP(702, 1, Scan, ONNX, "Scan", 1, 255, 1, 255, RULE, control, control, 0, CONTROL)

/* 900: Linnet's own, written by the converter */

/* clang-format on */

#undef V
