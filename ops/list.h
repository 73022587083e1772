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

/* 200: matrix products, convolution, recurrent (matmul.c, conv.c, rnn.c) */
OP(200, 1, MatMul, ONNX, "MatMul", 2, 2, 1, 1, IN0, matmul, matmul, 0, EPILOGUE)
OP(201, 1, Gemm, ONNX, "Gemm", 2, 3, 1, 1, IN0, gemm, gemm, 0, EPILOGUE)
OP(202, 1, FusedMatMul, MICROSOFT, "FusedMatMul", 2, 2, 1, 1, IN0, matmul, matmul, 0, EPILOGUE)
OP(203, 1, Conv, ONNX, "Conv", 2, 3, 1, 1, IN0, conv, conv, 0, CL | EPILOGUE)

/* 300: reductions, normalisation, softmax, pooling, resize */
OP(300, 1, ReduceSum, ONNX, "ReduceSum", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(301, 1, ReduceMean, ONNX, "ReduceMean", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(302, 1, ReduceMax, ONNX, "ReduceMax", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(303, 1, ReduceMin, ONNX, "ReduceMin", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(304, 1, ReduceProd, ONNX, "ReduceProd", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(305, 1, ReduceL1, ONNX, "ReduceL1", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(306, 1, ReduceL2, ONNX, "ReduceL2", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(307, 1, ReduceLogSum, ONNX, "ReduceLogSum", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(308, 1, ReduceLogSumExp, ONNX, "ReduceLogSumExp", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(309, 1, ReduceSumSquare, ONNX, "ReduceSumSquare", 1, 2, 1, 1, IN0, reduce, reduce, V(1), 0)
OP(310, 1, ArgMax, ONNX, "ArgMax", 1, 1, 1, 1, INT64, argmax, argmax, 0, 0)
OP(311, 1, ArgMin, ONNX, "ArgMin", 1, 1, 1, 1, INT64, argmax, argmax, 0, 0)
OP(312, 1, Softmax, ONNX, "Softmax", 1, 1, 1, 1, IN0, same, softmax, 0, 0)
OP(313, 1, LogSoftmax, ONNX, "LogSoftmax", 1, 1, 1, 1, IN0, same, softmax, 0, 0)
OP(314, 1, Hardmax, ONNX, "Hardmax", 1, 1, 1, 1, IN0, same, softmax, 0, 0)
OP(315, 1, LayerNormalization, ONNX, "LayerNormalization", 2, 3, 1, 3, RULE, layernorm, layernorm, 0, 0)
OP(316, 1, RMSNormalization, ONNX, "RMSNormalization", 2, 2, 1, 1, RULE, layernorm, layernorm, 0, 0)
OP(317, 1, SimplifiedLayerNormalization, ONNX, "SimplifiedLayerNormalization", 2, 2, 1, 2, RULE, layernorm, layernorm, 0, 0)
OP(318, 1, SkipLayerNormalization, MICROSOFT, "SkipLayerNormalization", 3, 5, 1, 4, RULE, layernorm, layernorm, 0, 0)
OP(319, 1, SkipSimplifiedLayerNormalization, MICROSOFT, "SkipSimplifiedLayerNormalization", 3, 4, 1, 4, RULE, layernorm, layernorm, 0, 0)
OP(320, 1, BatchNormalization, ONNX, "BatchNormalization", 5, 5, 1, 3, RULE, batchnorm, batchnorm, 0, CL)
OP(321, 1, InstanceNormalization, ONNX, "InstanceNormalization", 3, 3, 1, 1, IN0, same, groupnorm, 0, CL)
OP(322, 1, GroupNormalization, ONNX, "GroupNormalization", 3, 3, 1, 1, IN0, same, groupnorm, 0, CL)
OP(323, 1, LpNormalization, ONNX, "LpNormalization", 1, 1, 1, 1, IN0, same, lpnorm, 0, 0)
OP(324, 1, MeanVarianceNormalization, ONNX, "MeanVarianceNormalization", 1, 1, 1, 1, IN0, same, mvn, 0, 0)
OP(325, 1, LRN, ONNX, "LRN", 1, 1, 1, 1, IN0, same, lrn, 0, 0)
OP(326, 1, MaxPool, ONNX, "MaxPool", 1, 1, 1, 2, INDEX, pool, pool, 0, CL)
OP(327, 1, AveragePool, ONNX, "AveragePool", 1, 1, 1, 1, IN0, pool, pool, 0, CL)
OP(328, 1, LpPool, ONNX, "LpPool", 1, 1, 1, 1, IN0, pool, pool, 0, CL)
OP(329, 1, GlobalAveragePool, ONNX, "GlobalAveragePool", 1, 1, 1, 1, IN0, global_pool, global_pool, 0, CL)
OP(330, 1, GlobalMaxPool, ONNX, "GlobalMaxPool", 1, 1, 1, 1, IN0, global_pool, global_pool, 0, CL)
OP(331, 1, GlobalLpPool, ONNX, "GlobalLpPool", 1, 1, 1, 1, IN0, global_pool, global_pool, 0, CL)
OP(332, 1, Resize, ONNX, "Resize", 1, 4, 1, 1, IN0, resize, resize, V(1) | V(2) | V(3), CL)
OP(333, 1, Upsample, ONNX, "Upsample", 2, 2, 1, 1, IN0, resize, resize, V(1), CL)

/* 400: moving data */
OP(400, 1, Reshape, ONNX, "Reshape", 2, 2, 1, 1, IN0, reshape, reshape, V(1), ANY_RANK | VIEW)
OP(401, 1, Flatten, ONNX, "Flatten", 1, 1, 1, 1, IN0, flatten, reshape, 0, VIEW)
OP(402, 1, Squeeze, ONNX, "Squeeze", 1, 2, 1, 1, IN0, squeeze, reshape, V(1), VIEW)
OP(403, 1, Unsqueeze, ONNX, "Unsqueeze", 2, 2, 1, 1, IN0, unsqueeze, reshape, V(1), VIEW)
OP(404, 1, BitCast, ONNX, "BitCast", 1, 1, 1, 1, RULE, bit_cast, bit_cast, 0, VIEW)
OP(405, 1, Expand, ONNX, "Expand", 2, 2, 1, 1, IN0, expand, expand, V(1), 0)
OP(406, 1, Tile, ONNX, "Tile", 2, 2, 1, 1, IN0, tile, tile, V(1), 0)
OP(407, 1, Transpose, ONNX, "Transpose", 1, 1, 1, 1, IN0, transpose, transpose, 0, 0)
OP(408, 1, DepthToSpace, ONNX, "DepthToSpace", 1, 1, 1, 1, IN0, depth_to_space, depth_to_space, 0, CL)
OP(409, 1, SpaceToDepth, ONNX, "SpaceToDepth", 1, 1, 1, 1, IN0, space_to_depth, space_to_depth, 0, CL)
OP(410, 1, Slice, ONNX, "Slice", 3, 5, 1, 1, IN0, slice, slice, V(1) | V(2) | V(3) | V(4), CL)
OP(411, 1, Split, ONNX, "Split", 1, 2, 1, 255, IN0, split, split, V(1), CL)
OP(412, 1, Concat, ONNX, "Concat", 1, 255, 1, 1, IN0, concat, concat, 0, CL)
OP(413, 1, Pad, ONNX, "Pad", 2, 4, 1, 1, IN0, pad, pad, V(1) | V(3), CL)
OP(414, 1, CenterCropPad, ONNX, "CenterCropPad", 2, 2, 1, 1, IN0, center_crop_pad, center_crop_pad, V(1), 0)
OP(415, 1, Gather, ONNX, "Gather", 2, 2, 1, 1, IN0, gather, gather, 0, 0)
OP(416, 1, GatherElements, ONNX, "GatherElements", 2, 2, 1, 1, IN0, gather_elements, gather_elements, 0, 0)
OP(417, 1, GatherND, ONNX, "GatherND", 2, 2, 1, 1, IN0, gather_nd, gather_nd, 0, 0)
OP(418, 1, ScatterElements, ONNX, "ScatterElements", 3, 3, 1, 1, IN0, scatter_elements, scatter_elements, 0, 0)
OP(419, 1, Scatter, ONNX, "Scatter", 3, 3, 1, 1, IN0, scatter_elements, scatter_elements, 0, 0)
OP(420, 1, ScatterND, ONNX, "ScatterND", 3, 3, 1, 1, IN0, scatter_nd, scatter_nd, 0, 0)
OP(421, 1, TensorScatter, ONNX, "TensorScatter", 2, 3, 1, 1, IN0, tensor_scatter, tensor_scatter, 0, 0)
OP(422, 1, Trilu, ONNX, "Trilu", 1, 2, 1, 1, IN0, trilu, trilu, 0, 0)
OP(423, 1, ReverseSequence, ONNX, "ReverseSequence", 2, 2, 1, 1, IN0, reverse_sequence, reverse_sequence, 0, 0)

/* 500: shapes, constants, ranges, random, selection */
OP(500, 1, Shape, ONNX, "Shape", 1, 1, 1, 1, INT64, shape, shape, 0, 0)
OP(501, 1, Size, ONNX, "Size", 1, 1, 1, 1, INT64, size, size, 0, ANY_RANK)
OP(502, 1, ConstantOfShape, ONNX, "ConstantOfShape", 1, 1, 1, 1, RULE, constant_of_shape, constant_of_shape, V(0), 0)
OP(503, 1, Range, ONNX, "Range", 3, 3, 1, 1, IN0, range, range, V(0) | V(1) | V(2), 0)
OP(504, 1, EyeLike, ONNX, "EyeLike", 1, 1, 1, 1, RULE, eye_like, eye_like, 0, 0)
OP(505, 1, CumSum, ONNX, "CumSum", 2, 2, 1, 1, IN0, same, cum_sum, 0, 0)
OP(506, 1, CumProd, ONNX, "CumProd", 2, 2, 1, 1, IN0, same, cum_prod, 0, 0)
OP(507, 1, TopK, ONNX, "TopK", 2, 2, 1, 2, INDEX, top_k, top_k, V(1), 0)
OP(508, 1, NonZero, ONNX, "NonZero", 1, 1, 1, 1, INT64, non_zero, non_zero, V(0), 0)
OP(509, 1, Compress, ONNX, "Compress", 2, 2, 1, 1, IN0, compress, compress, V(1), 0)
OP(510, 1, OneHot, ONNX, "OneHot", 3, 3, 1, 1, IN2, one_hot, one_hot, V(1), 0)
OP(511, 1, Unique, ONNX, "Unique", 1, 1, 1, 4, IN0, unique, unique, V(0), 0)

/* 600: quantisation */

/* 700: control flow: bound by the runtime */
OP(700, 1, If, ONNX, "If", 1, 1, 1, 255, RULE, control, control, V(0), CONTROL)
OP(701, 1, Loop, ONNX, "Loop", 2, 255, 1, 255, RULE, control, control, V(0) | V(1), CONTROL)
OP(702, 1, Scan, ONNX, "Scan", 1, 255, 1, 255, RULE, control, control, 0, CONTROL)

/* 900: Linnet's own, written by the converter */

/* clang-format on */

#undef V
