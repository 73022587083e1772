"""Generated cases of the com.microsoft operators that onnxruntime's optimizer and quantizer write.

GENERATORS[operator](r) gives one Case; `r` draws shapes, types and numbers."""

import numpy as np

from differential_cases import Case

F32 = np.float32


def floats(r, *shape):
    return r.array(list(shape), F32, -1.0, 1.0)


def some(r, dtype, *shape):
    info = np.iinfo(dtype)
    return r.rng.integers(info.min, info.max + 1, shape).astype(dtype)


def scale(r):
    return np.array(r.rng.uniform(0.005, 0.05), F32)


def zero(r, dtype):
    return np.array(r.int(100, 150) if dtype == np.uint8 else r.int(-20, 20), dtype)


def byte(r):
    return r.pick(np.uint8, np.int8)


# ---- products and activations ----


def fused_matmul(r):
    batch = [r.int(1, 3) for _ in range(r.int(0, 2))]
    m, k, n = r.int(1, 9), r.int(1, 20), r.int(1, 40)
    a, b = [*batch, m, k], [*batch, k, n]
    at = {"transA": r.int(0, 1), "transB": r.int(0, 1), "alpha": r.pick(1.0, 0.5, -2.0)}
    if at["transA"]:
        a[-1], a[-2] = a[-2], a[-1]
    if at["transB"]:
        b[-1], b[-2] = b[-2], b[-1]
    for name, shape in (("transBatchA", a), ("transBatchB", b)):
        if batch and r.chance():
            at[name] = 1
            shape.insert(0, shape.pop(-2))
    return Case([floats(r, *a), floats(r, *b)], constant={1} if r.chance() else (), **at)


def activation(r):
    return Case([r.array(r.shape(low=1, zero=False), F32, -5.0, 5.0)])


def quick_gelu(r):
    return Case([r.array(r.shape(low=1, zero=False), F32, -5.0, 5.0)], alpha=r.pick(1.702, 1.0, 0.7))


def bias_gelu(r):
    shape = r.shape(low=1, high=4, zero=False)
    return Case([r.array(shape, F32), r.array(shape[-1:], F32)])


def fast_gelu(r):
    case = bias_gelu(r)
    return case if r.chance() else Case(case.inputs[:1])


def fused_gemm(r):
    m, k, n = r.int(1, 9), r.int(1, 20), r.int(1, 40)
    at = {"transA": r.int(0, 1), "transB": r.int(0, 1), "alpha": r.pick(1.0, 0.5), "beta": r.pick(1.0, 2.0)}
    name = r.pick("Relu", "LeakyRelu", "Tanh", "Sigmoid", "HardSigmoid", "Elu", "Softplus")
    at["activation"] = name
    if name in ("LeakyRelu", "HardSigmoid", "Elu"):
        at["activation_alpha"] = r.pick(0.1, 0.3)
    if name == "HardSigmoid":
        at["activation_beta"] = 0.4
    a, b = ([k, m] if at["transA"] else [m, k]), ([n, k] if at["transB"] else [k, n])
    c = [r.pick([n], [1, n], [m, 1], [m, n], [])] if r.chance(0.7) else []
    return Case([floats(r, *a), floats(r, *b), *(floats(r, *s) for s in c)], **at)


def fused_conv(r):
    group = r.pick(1, 1, 2)
    channels, features, kernel = group * r.int(1, 5), group * r.int(1, 9), r.int(1, 3)
    size = [r.int(4, 9), r.int(4, 9)]
    at = {"group": group, "kernel_shape": [kernel] * 2, "pads": [r.int(0, kernel - 1)] * 4, "strides": [r.int(1, 2)] * 2}
    name, params = r.pick(("Relu", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.75]), ("Sigmoid", []), ("Tanh", []),
                          ("HardSigmoid", [0.3, 0.4]))
    at["activation"] = name
    if params:
        at["activation_params"] = params
    inputs = [floats(r, 2, channels, *size), floats(r, features, channels // group, kernel, kernel)]
    if r.chance(0.7):
        inputs.append(floats(r, features))
        if r.chance():
            out = [(s + 2 * at["pads"][0] - kernel) // at["strides"][0] + 1 for s in size]
            inputs.append(floats(r, 2, features, *out))
    return Case(inputs, constant={1}, **at)


# ---- normalization and embedding ----


def skip_norm(simplified):
    def make(r):
        batch, length, width = r.int(1, 3), r.int(1, 5), r.int(1, 40)
        inputs = [floats(r, batch, length, width), floats(r, batch, length, width), floats(r, width)]
        if not simplified:
            inputs.append(floats(r, width) if r.chance(0.7) else None)
        if r.chance():
            inputs.append(floats(r, width))
        case = Case(inputs, epsilon=r.pick(1e-5, 1e-3))
        case.names = ["y0", "", "", "y1"] if r.chance() else ["y0"]
        return case

    return make


def embed_norm(r):
    batch, length, width, words = r.int(1, 3), r.int(1, 6), r.int(1, 40), 11
    segments = r.chance()
    ids = r.rng.integers(0, words, (batch, length)).astype(np.int32)
    inputs = [ids, r.rng.integers(0, 2, (batch, length)).astype(np.int32) if segments else None,
              floats(r, words, width), floats(r, 8, width), floats(r, 2, width) if segments else None,
              floats(r, width), floats(r, width)]
    if r.chance():
        inputs.append(r.rng.integers(0, 2, (batch, length)).astype(np.int32))
    return Case(inputs, outputs=2, epsilon=1e-5)


def quantized_embed_norm(r):
    batch, length, width, words = r.int(1, 3), r.int(1, 6), r.int(1, 40), 11
    segments = r.chance()
    tables = [(words, width), (8, width), (2, width), (width,), (width,)]
    chosen = [i != 2 or segments for i in range(5)]
    ids = r.rng.integers(0, words, (batch, length)).astype(np.int32)
    inputs = [ids, r.rng.integers(0, 2, (batch, length)).astype(np.int32) if segments else None]
    inputs += [some(r, np.uint8, *t) if c else None for t, c in zip(tables, chosen)]
    inputs += [r.rng.integers(0, 2, (batch, length)).astype(np.int32) if r.chance() else None]
    inputs += [scale(r) if c else None for c in chosen]
    inputs += [zero(r, np.uint8) if c else None for c in chosen]
    return Case(inputs, outputs=2, epsilon=1e-5)


# ---- attention ----


def mask_of(r, batch, queries, keys):
    kind = r.int(0, 4)
    ends = r.rng.integers(1, keys + 1, batch)
    if kind == 0:
        return None
    if kind == 1:
        return ends.astype(np.int32)
    if kind == 2:
        return np.concatenate([ends, np.maximum(ends - 2, 0)]).astype(np.int32)
    if kind == 3:
        return (np.arange(keys) < ends[:, None]).astype(np.int32)
    mask = r.rng.random((batch, queries, keys)) < 0.7
    mask[..., 0] = True
    return mask.astype(np.int32)


def extents(r):
    heads, width = r.pick(1, 2, 3, 4), r.pick(4, 8, 16, 20)
    return r.int(1, 3), r.pick(1, 2, 5, 17, 33), heads, width


def attention(r):
    batch, length, heads, width = extents(r)
    hidden, inside = heads * width, r.int(1, 12)
    past = r.int(0, 5) if r.chance(0.4) else None
    total = length + (past or 0)
    at = {"num_heads": heads, "unidirectional": r.int(0, 1)}
    if r.chance(0.3):
        at["scale"] = 0.3
    v_hidden = hidden
    if past is None and r.chance(0.3):
        v_hidden = heads * r.pick(2, 8)
        at["qkv_hidden_sizes"] = [hidden, hidden, v_hidden]
    inputs = [floats(r, batch, length, inside), floats(r, inside, 2 * hidden + v_hidden),
              floats(r, 2 * hidden + v_hidden), mask_of(r, batch, length, total)]
    if past is not None:
        inputs.append(floats(r, 2, batch, heads, past, width))
    elif r.chance(0.3):
        inputs += [None, floats(r, batch, heads, length, total)]
    return Case(inputs, outputs=2 if past is not None else 1, constant={1} if r.chance() else (), **at)


def quantized_attention(r):
    batch, length, heads, width = extents(r)
    hidden, inside, kind = heads * width, r.int(1, 12), byte(r)
    past = r.int(0, 5) if r.chance(0.4) else None
    at = {"num_heads": heads, "unidirectional": r.int(0, 1)}
    columns = r.chance(0.3)
    inputs = [some(r, np.uint8, batch, length, inside), some(r, kind, inside, 3 * hidden), floats(r, 3 * hidden),
              scale(r), r.array([3 * hidden], F32, 0.005, 0.05) if columns else scale(r),
              mask_of(r, batch, length, length + (past or 0)), zero(r, np.uint8),
              np.zeros(3 * hidden, kind) if columns else zero(r, kind)]
    if past is not None:
        inputs.append(floats(r, 2, batch, heads, past, width))
    return Case(inputs, outputs=2 if past is not None else 1, **at)


def multi_head_attention(r):
    batch, length, heads, width = extents(r)
    kind, hidden = r.pick("self", "cross", "packed", "packed_kv", "cache", "past"), heads * width
    keys = length if kind in ("self", "packed", "past") else r.int(1, 20)
    v_width = r.pick(width, 6) if kind == "cross" else width
    past = r.int(1, 5) if kind == "past" else 0
    q = floats(r, batch, length, hidden)
    inputs = {"packed": [floats(r, batch, length, heads, 3, width), None, None],
              "packed_kv": [q, floats(r, batch, keys, heads, 2, width), None],
              "cache": [q, floats(r, batch, heads, keys, width), floats(r, batch, heads, keys, width)]}.get(
                  kind, [q, floats(r, batch, keys, hidden), floats(r, batch, keys, heads * v_width)])
    with_bias = kind in ("self", "cross", "past") and r.chance()
    inputs.append(floats(r, 2 * hidden + heads * v_width) if with_bias else None)
    inputs.append(mask_of(r, batch, length, keys + past) if r.chance() else None)
    biased = r.chance(0.3)
    inputs.append(floats(r, r.pick(1, batch), r.pick(1, heads), length, keys + past) if biased else None)
    if past:
        inputs += [floats(r, batch, heads, past, width), floats(r, batch, heads, past, width)]
    at = {"num_heads": heads, "unidirectional": r.int(0, 1) if kind not in ("cross", "cache") else 0}
    if r.chance(0.3):
        at["scale"] = 0.3
    return Case(inputs, outputs=3 if past else 1, **at)


def grouped_attention(r):
    kv_heads, group, width, batch = r.int(1, 3), r.int(1, 4), r.pick(8, 16, 32), r.int(1, 3)
    heads, prompt, rotary = kv_heads * group, r.chance(), r.chance()
    length = r.pick(1, 4, 17) if prompt else 1
    past = 0 if prompt else r.int(1, 12)
    room = past + (r.pick(0, 5) if not prompt else 0)
    lengths = np.full(batch, past + length - 1, np.int32)
    if not prompt and batch > 1 and r.chance():
        lengths[1:] = r.rng.integers(0, past + 1, batch - 1)
    inputs = [floats(r, batch, length, (heads + 2 * kv_heads) * width), None, None]
    if r.chance():
        inputs = [floats(r, batch, length, n * width) for n in (heads, kv_heads, kv_heads)]
    inputs += [floats(r, batch, kv_heads, room, width), floats(r, batch, kv_heads, room, width)]
    inputs += [lengths, np.array(past + length, np.int32)]
    at = {"num_heads": heads, "kv_num_heads": kv_heads}
    if rotary:
        at.update(do_rotary=1, rotary_interleaved=r.int(0, 1))
        inputs += [floats(r, 64, width // 2), floats(r, 64, width // 2)]
    if r.chance(0.3):
        at["softcap"] = 5.0
    if r.chance(0.3):
        at["local_window_size"] = r.int(1, 8)
    if r.chance(0.3):
        at["scale"] = 0.4
    case = Case(inputs, outputs=3, **at)
    case.rows = [None, lengths + 1, lengths + 1]  # of the caches: what is behind is unspecified
    return case


def rotary_embedding(r):
    heads, width, batch, length, positions = r.int(1, 3), r.pick(4, 8, 16), r.int(1, 3), r.int(1, 6), 20
    at = {"interleaved": r.int(0, 1)}
    x = floats(r, batch, heads, length, width) if r.chance(0.4) else floats(r, batch, length, heads * width)
    turned = width
    if r.chance(0.4):
        turned = width // 2
        at.update(rotary_embedding_dim=turned, num_heads=heads)
    ids = np.array([r.int(0, 8)]) if r.chance() else r.rng.integers(0, positions, (batch, length))
    return Case([x, ids.astype(np.int64), floats(r, positions, turned // 2), floats(r, positions, turned // 2)], **at)


# ---- quantized ----


def qlinear_binary(r):
    kind = byte(r)
    shape = r.shape(low=1, high=4, zero=False)
    a, b = r.broadcastable(shape), r.broadcastable(shape)
    return Case([some(r, kind, *a), scale(r), zero(r, kind), some(r, kind, *b), scale(r), zero(r, kind), scale(r),
                 zero(r, kind)])


def qlinear_where(r):
    kind = byte(r)
    shape = r.shape(low=1, high=4, zero=False)
    c, a, b = (r.broadcastable(shape) for _ in range(3))
    return Case([r.array(c, np.bool_), some(r, kind, *a), scale(r), zero(r, kind), some(r, kind, *b), scale(r),
                 zero(r, kind), scale(r), zero(r, kind)], constant={2, 3, 5, 6, 7, 8})


def transpose_matmul(r):
    case = fused_matmul(r)
    return Case(case.inputs, **{k: v for k, v in case.attributes.items() if not k.startswith("transBatch")})


def qlinear_unary(**attributes):
    def make(r):
        kind = byte(r)
        at = {k: v(r) for k, v in attributes.items()}
        return Case([some(r, kind, *r.shape(low=1, high=4, zero=False)), scale(r), zero(r, kind), scale(r),
                     zero(r, kind)], constant={1, 2, 3, 4}, **at)

    return make


def qlinear_softmax(r):
    kind = byte(r)
    shape = [r.int(2, 6) for _ in range(r.int(2, 4))]  # a lone 1 does not fit scale 1/256: onnxruntime wraps around
    return Case([some(r, kind, *shape), scale(r), zero(r, kind), np.array(1 / 256, F32),
                 np.array(0 if kind == np.uint8 else -128, kind)], constant={1, 2, 3, 4}, axis=r.int(0, len(shape) - 1),
                opset=13)


def qlinear_concat(r):
    kind, rank = byte(r), r.int(1, 4)
    shape, axis = [r.int(1, 5) for _ in range(rank)], r.int(-rank, rank - 1)
    inputs = [scale(r), zero(r, kind)]
    for _ in range(r.int(1, 3)):
        shape[axis] = r.int(1, 5)
        inputs += [some(r, kind, *shape), scale(r), zero(r, kind)]
    return Case(inputs, constant=set(range(len(inputs))) - {2, 5, 8}, axis=axis)


def qlinear_pool(r):
    kind, last = np.uint8, r.int(0, 1)
    shape = [2, 6, 7, 3] if last else [2, 3, 6, 7]
    kernel = r.int(1, 3)
    at = {"channels_last": last, "kernel_shape": [kernel] * 2, "strides": [r.int(1, 2)] * 2,
          "pads": [r.int(0, kernel - 1)] * 4, r.pick("ceil_mode", "count_include_pad"): 1}  # both: no AveragePool
    return Case([some(r, kind, *shape), scale(r), zero(r, kind), scale(r), zero(r, kind)], **at)


def qlinear_global_pool(r):
    kind, last = byte(r), r.int(0, 1)
    shape = [2, r.int(1, 9), r.int(1, 9), r.int(1, 20)]
    return Case([some(r, kind, *shape), scale(r), zero(r, kind), scale(r), zero(r, kind)], channels_last=last)


def qlinear_conv(r):
    kernel, channels, features, last = r.int(1, 3), r.int(1, 6), r.int(1, 9), r.int(0, 1)
    shape = [1, 7, 8, channels] if last else [1, channels, 7, 8]
    inputs = [some(r, np.uint8, *shape), scale(r), zero(r, np.uint8),
              some(r, np.int8, features, channels, kernel, kernel), scale(r), np.array(0, np.int8), scale(r),
              zero(r, np.uint8)]
    if r.chance():
        inputs.append(r.rng.integers(-500, 500, features).astype(np.int32))
    return Case(inputs, constant={3}, channels_last=last, kernel_shape=[kernel] * 2, pads=[r.int(0, kernel - 1)] * 4)


def nhwc_max_pool(r):
    kernel = r.int(1, 3)
    return Case([some(r, byte(r), 2, 6, 7, r.int(1, 5))], kernel_shape=[kernel] * 2, strides=[r.int(1, 2)] * 2,
                pads=[r.int(0, kernel - 1)] * 4, ceil_mode=r.int(0, 1))


def matmul_to_float(r):
    a_kind, b_kind = np.uint8, byte(r)
    batch, m, k, n = [r.int(1, 3) for _ in range(r.int(0, 2))], r.int(1, 9), r.int(1, 20), r.int(1, 40)
    columns = r.chance()
    inputs = [some(r, a_kind, *batch, m, k), some(r, b_kind, k, n), scale(r),
              r.array([n], F32, 0.005, 0.05) if columns else scale(r), zero(r, a_kind),
              some(r, b_kind, n) if columns else zero(r, b_kind)]
    if r.chance():
        inputs.append(floats(r, n))
    return Case(inputs, constant={1} if r.chance() else ())


def dynamic_matmul(r):
    kind, m, k, n = byte(r), r.int(1, 9), r.int(1, 20), r.int(1, 40)
    columns = r.chance()
    inputs = [floats(r, *[r.int(1, 3) for _ in range(r.int(0, 1))], m, k), some(r, kind, k, n),
              r.array([n], F32, 0.005, 0.05) if columns else scale(r),
              some(r, kind, n) if columns else zero(r, kind)]
    if r.chance():
        inputs.append(floats(r, n))
    return Case(inputs, constant={1} if r.chance() else ())


def qgemm(r):
    kind, m, k, n = byte(r), r.int(1, 9), r.int(1, 20), r.int(1, 40)
    at = {"transA": r.int(0, 1), "transB": r.int(0, 1), "alpha": r.pick(1.0, 0.5)}
    columns = r.chance()
    a, b = ([k, m] if at["transA"] else [m, k]), ([n, k] if at["transB"] else [k, n])
    inputs = [some(r, np.uint8, *a), scale(r), zero(r, np.uint8), some(r, kind, *b),
              r.array([n], F32, 0.005, 0.05) if columns else scale(r),
              some(r, kind, n) if columns else zero(r, kind),
              r.rng.integers(-500, 500, n).astype(np.int32) if r.chance() else None]
    if r.chance():
        inputs += [scale(r), zero(r, np.uint8)]
    return Case(inputs, **at)


def dynamic_lstm(r):
    directions, hidden, inside, batch, length = r.int(1, 2), r.int(1, 6), r.int(1, 6), r.int(1, 3), r.int(1, 5)
    columns = [directions, 4 * hidden] if r.chance() else [directions]
    kind = byte(r)
    zeros = np.full(columns, 0 if kind == np.int8 else 128, kind)
    inputs = [floats(r, length, batch, inside), some(r, kind, directions, inside, 4 * hidden),
              some(r, kind, directions, hidden, 4 * hidden),
              floats(r, directions, 8 * hidden) if r.chance() else None, None, None, None, None,
              r.array(columns, F32, 0.001, 0.005), zeros, r.array(columns, F32, 0.001, 0.005), zeros]
    return Case(inputs, outputs=3, constant={1, 2, 8, 9, 10, 11}, scale=300, hidden_size=hidden,
                direction="bidirectional" if directions == 2 else r.pick("forward", "reverse"))


def matmul_nbits(r):
    bits, block = r.pick(4, 4, 8), r.pick(16, 32, 64, 128)
    m, k, n = r.int(1, 20), r.int(1, 300), r.int(1, 40)
    blocks = -(-k // block)
    inputs = [floats(r, m, k), some(r, np.uint8, n, blocks, block * bits // 8), r.array([n * blocks], F32, 0.01, 0.1)]
    if r.chance():
        inputs.append(some(r, np.uint8, n * -(-blocks * bits // 8)))
    return Case(inputs, constant={1, 2, 3}, K=k, N=n, bits=bits, block_size=block)


GENERATORS = {
    "Attention": attention,
    "BiasGelu": bias_gelu,
    "DynamicQuantizeLSTM": dynamic_lstm,
    "DynamicQuantizeMatMul": dynamic_matmul,
    "EmbedLayerNormalization": embed_norm,
    "FastGelu": fast_gelu,
    "FusedConv": fused_conv,
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_matmul,
    "Gelu": activation,
    "GroupQueryAttention": grouped_attention,
    "MatMulIntegerToFloat": matmul_to_float,
    "MatMulNBits": matmul_nbits,
    "MultiHeadAttention": multi_head_attention,
    "NhwcMaxPool": nhwc_max_pool,
    "QAttention": quantized_attention,
    "QEmbedLayerNormalization": quantized_embed_norm,
    "QGemm": qgemm,
    "QLinearAdd": qlinear_binary,
    "QLinearAveragePool": qlinear_pool,
    "QLinearConcat": qlinear_concat,
    "QLinearConv": qlinear_conv,
    "QLinearGlobalAveragePool": qlinear_global_pool,
    "QLinearLeakyRelu": qlinear_unary(alpha=lambda r: r.pick(0.01, 0.2)),
    "QLinearMul": qlinear_binary,
    "QLinearSigmoid": qlinear_unary(),
    "QLinearSoftmax": qlinear_softmax,
    "QLinearWhere": qlinear_where,
    "QuickGelu": quick_gelu,
    "RotaryEmbedding": rotary_embedding,
    "SkipLayerNormalization": skip_norm(False),
    "SkipSimplifiedLayerNormalization": skip_norm(True),
    "TransposeMatMul": transpose_matmul,
}
