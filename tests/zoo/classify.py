"""Networks that look at a picture (or a spectrogram) and name it."""

from layers import Net, even


def mobilenet_v2(size=224):
    b = Net(11)
    x = b.conv(b.image(3, size, size), 32, 3, 2, "relu6")
    for t, c, n, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(n):
            x = b.inverted(x, t * b.channels[x], c, stride=s if i == 0 else 1)
    b.classify(b.conv(x, 1280, act="relu6"))
    return b.model("mobilenet_v2")


# kernel, wide, out, squeeze-excite, activation, stride
V3_SMALL = ((3, 16, 16, 1, "relu", 2), (3, 72, 24, 0, "relu", 2), (3, 88, 24, 0, "relu", 1), (5, 96, 40, 1, "hswish", 2),
            (5, 240, 40, 1, "hswish", 1), (5, 240, 40, 1, "hswish", 1), (5, 120, 48, 1, "hswish", 1),
            (5, 144, 48, 1, "hswish", 1), (5, 288, 96, 1, "hswish", 2), (5, 576, 96, 1, "hswish", 1),
            (5, 576, 96, 1, "hswish", 1))
V3_LARGE = ((3, 16, 16, 0, "relu", 1), (3, 64, 24, 0, "relu", 2), (3, 72, 24, 0, "relu", 1), (5, 72, 40, 1, "relu", 2),
            (5, 120, 40, 1, "relu", 1), (5, 120, 40, 1, "relu", 1), (3, 240, 80, 0, "hswish", 2),
            (3, 200, 80, 0, "hswish", 1), (3, 184, 80, 0, "hswish", 1), (3, 184, 80, 0, "hswish", 1),
            (3, 480, 112, 1, "hswish", 1), (3, 672, 112, 1, "hswish", 1), (5, 672, 160, 1, "hswish", 2),
            (5, 960, 160, 1, "hswish", 1), (5, 960, 160, 1, "hswish", 1))


def mobilenet_v3_blocks(b, x, rows, dilated_from=99):
    """The last blocks may keep their size and dilate instead, for segmentation."""
    for i, (k, wide, out, se, act, stride) in enumerate(rows):
        dilation = 2 if i >= dilated_from else 1
        x = b.inverted(x, wide, out, k, stride if dilation == 1 else 1, act, even(wide / 4) if se else 0, dilation=dilation)
    return x


def mobilenet_v3_small(size=224):
    b = Net(12)
    x = b.conv(b.image(3, size, size), 16, 3, 2, "hswish")
    x = b.conv(mobilenet_v3_blocks(b, x, V3_SMALL), 576, act="hswish")
    b.classify(x, hidden=1024, act="hswish")
    return b.model("mobilenet_v3_small")


def efficientnet_b0(size=224):
    b = Net(13)
    x = b.conv(b.image(3, size, size), 32, 3, 2, "silu")
    for t, k, c, n, s in ((1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1),
                          (6, 5, 192, 4, 2), (6, 3, 320, 1, 1)):
        for i in range(n):
            narrow = max(1, b.channels[x] // 4)
            x = b.inverted(x, t * b.channels[x], c, k, s if i == 0 else 1, "silu", narrow, "silu", "sigmoid")
    b.classify(b.conv(x, 1280, act="silu"))
    return b.model("efficientnet_b0")


def resnet(name, size, depths, bottleneck, batchnorm):
    b = Net(14, batchnorm)
    x = b.max_pool(b.conv(b.image(3, size, size), 64, 7, 2))
    for stage, depth in enumerate(depths):
        c = 64 << stage
        out = 4 * c if bottleneck else c
        for i in range(depth):
            stride = 2 if stage and i == 0 else 1
            if bottleneck:
                y = b.conv(b.conv(b.conv(x, c), c, 3, stride), out, act=None, gain=0.7)
            else:
                y = b.conv(b.conv(x, c, 3, stride), out, 3, act=None, gain=0.7)
            short = x if stride == 1 and b.channels[x] == out else b.conv(x, out, 1, stride, None, gain=0.7)
            x = b.act(b.add(y, short), "relu")
    b.classify(x)
    return b.model(name)


def resnet18(size=224):
    return resnet("resnet18", size, (2, 2, 2, 2), False, batchnorm=True)


def resnet50(size=224):
    return resnet("resnet50", size, (3, 4, 6, 3), True, batchnorm=False)


def ds_cnn(size=49):
    """Twelve words in a second of sound: MLPerf Tiny's, over `size` frames of ten cepstral coefficients."""
    b = Net(15)
    x = b.conv(b.image(1, size, 10, "mfcc"), 64, (10, 4), 2, pads=[4, 1, 5, 1])
    for _ in range(4):
        x = b.conv(b.depthwise(x), 64)
    b.classify(x, 12)
    return b.model("ds_cnn")
