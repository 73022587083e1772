"""Networks that name every pixel."""

from classify import V3_LARGE, mobilenet_v3_blocks
from layers import Net


def deeplab_v3(size=321, classes=21):
    """On MobileNetV3-large with the last stage dilated, as torchvision has it."""
    b = Net(21)
    x = b.conv(b.image(3, size, size), 16, 3, 2, "hswish")
    x = b.conv(mobilenet_v3_blocks(b, x, V3_LARGE, dilated_from=12), 960, act="hswish")
    edge = -(-size // 16)
    views = [b.conv(x, 256)] + [b.conv(x, 256, 3, dilation=rate) for rate in (12, 24, 36)]
    views.append(b.resize(b.conv(b.pool(x), 256), (edge, edge)))
    y = b.conv(b.conv(b.concat(*views), 256), 256, 3)
    b.output(b.resize(b.conv(y, classes, act=None), (size, size)), "scores", [1, classes, size, size])
    return b.model("deeplab_v3")


def unet(size=256, first=32, classes=2):
    b = Net(22, batchnorm=True)
    x, skips = b.image(3, size, size), []
    for depth in range(5):
        x = b.conv(b.conv(x, first << depth, 3), first << depth, 3)
        if depth < 4:
            skips.append(x)
            x = b.max_pool(x, 2, 2, 0)
    for skip in reversed(skips):
        c = b.channels[skip]
        up = b.op("ConvTranspose", x, b.weight(2 * c, c, 2, 2, scale=(2 * c) ** -0.5), b.weight(c, scale=0.1), strides=[2, 2])
        b.channels[up] = c
        x = b.conv(b.conv(b.concat(skip, up), c, 3), c, 3)
    b.output(b.conv(x, classes, act=None, norm=False), "scores", [1, classes, size, size])
    return b.model("unet")


def gather_expand(b, x, out, stride):
    """BiSeNetV2's gather-and-expansion layer; the strided one has two depthwise steps and a short cut of its own."""
    c = b.channels[x]
    y = b.conv(x, c, 3)
    if stride == 2:
        y = b.conv(b.conv(y, 6 * c, 3, 2, None, groups=c), 6 * c, 3, 1, None, groups=6 * c)
        x = b.conv(b.depthwise(x, 3, 2, None), out, act=None)
    else:
        y = b.conv(y, 6 * c, 3, 1, "relu", groups=c)
    return b.act(b.add(b.conv(y, out, act=None, gain=0.7), x), "relu")


def semantic_branch(b, x):
    stem = b.conv(x, 16, 3, 2)
    left = b.conv(b.conv(stem, 8), 16, 3, 2)
    x = b.conv(b.concat(left, b.max_pool(stem)), 16, 3)
    for out, strides in ((32, (2, 1)), (64, (2, 1)), (128, (2, 1, 1, 1))):
        for stride in strides:
            x = gather_expand(b, x, out, stride)
    context = b.conv(b.like(x, "ReduceMean", axes=[2, 3], keepdims=1), 128)
    return b.conv(b.add(x, context), 128, 3, act=None)


def bisenet_v2(height=512, width=1024, classes=19):
    b = Net(23)
    image = b.image(3, height, width)
    detail = image
    for out, n in ((64, 2), (64, 3), (128, 3)):
        for i in range(n):
            detail = b.conv(detail, out, 3, 2 if i == 0 else 1)
    semantic = semantic_branch(b, image)
    detail_keep = b.conv(b.depthwise(detail, act=None), 128, act=None)
    detail_down = b.like(b.conv(detail, 128, 3, 2, None), "AveragePool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    semantic_up = b.act(b.resize(b.conv(semantic, 128, 3, act=None), scale=4.0), "sigmoid")
    semantic_keep = b.act(b.conv(b.depthwise(semantic, act=None), 128, act=None), "sigmoid")
    near = b.like(detail_keep, "Mul", semantic_up)
    far = b.resize(b.like(detail_down, "Mul", semantic_keep), scale=4.0)
    y = b.conv(b.conv(b.add(near, far), 128, 3, act=None), 1024, 3)
    scores = b.resize(b.conv(y, classes, act=None, norm=False), scale=8.0)
    b.output(scores, "scores", [1, classes, height, width])
    return b.model("bisenet_v2")
