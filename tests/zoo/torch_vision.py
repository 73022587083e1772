"""torchvision's architectures: classification, detection, segmentation, video, optical flow."""

from functools import partial

import torch
import torchvision
from torch import nn
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.backbone_utils import mobilenet_backbone

from torch_parts import Only, image

M = torchvision.models
D, S, V = M.detection, M.segmentation, M.video


def classifier(build, side=224, **small):
    return lambda: (build(weights=None, **small), image(side), {})


def of(kind, side, *given, **small):
    """A model of that class, where torchvision's functions fix what makes it large."""
    return lambda: (kind(*given, **small), image(side), {})


def vgg(norm=False):
    net = M.VGG(M.vgg.make_layers([16, "M", 32, "M", 48, 48, "M", 64, 64, "M", 64, 64, "M"], batch_norm=norm), num_classes=10)
    net.classifier = nn.Sequential(nn.Linear(64 * 49, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10))
    return net, image(224), {}


def alexnet():
    net = M.alexnet(weights=None, num_classes=10)
    net.classifier = nn.Sequential(nn.Dropout(), nn.Linear(256 * 36, 64), nn.ReLU(), nn.Linear(64, 10))
    return net, image(224), {}


def regnet(ratio):
    sizes = M.regnet.BlockParams.from_init_params(depth=5, w_0=24, w_a=24.0, w_m=2.2, group_width=8, se_ratio=ratio)
    return M.RegNet(sizes, num_classes=10), image(64), {}


def deeplab_v3():
    net = S.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)
    return Only(net, lambda found: found["out"]), image(129), {}


def segmenter(build, side=65):
    return lambda: (Only(build(weights=None, weights_backbone=None), lambda found: found["out"]), image(side), {})


def fcn():
    backbone = M._utils.IntermediateLayerGetter(M.resnet18(weights=None), {"layer4": "out"})
    net = S.FCN(backbone, S.fcn.FCNHead(512, 5))
    return Only(net, lambda found: found["out"]), image(65), {}


class Finder(nn.Module):
    """A detector of one image: boxes, scores and what else it finds, in the order of its names."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, image):
        found = self.net([image[0]])[0]
        return tuple(found[key] for key in sorted(found))


def pyramid():
    return mobilenet_backbone("mobilenet_v3_large", weights=None, fpn=True, trainable_layers=6, norm_layer=nn.BatchNorm2d)


def spread(net):
    """Scores of random heads stand close together, where the last bit decides which box goes first: drawn wider."""
    for name, part in net.named_modules():
        if isinstance(part, (nn.Linear, nn.Conv2d)) and ("cls" in name or "classification" in name):
            nn.init.normal_(part.weight, std=0.05)
    return net


def detector(build, side=96, **more):
    """A detector over a small pyramid; few boxes, none dropped by a score that two engines round apart."""
    def built():
        net = build(pyramid(), 5, min_size=side, max_size=side, **more)
        return Finder(spread(net)), image(side), {}
    return built


ANCHORS = AnchorGenerator(((16,), (32,), (64,)), ((0.5, 1.0, 2.0),) * 3)
ONE_ANCHOR = AnchorGenerator(((16,), (32,), (64,)), ((1.0,),) * 3)
TWO_STAGES = {"rpn_anchor_generator": ANCHORS, "rpn_pre_nms_top_n_test": 40, "rpn_post_nms_top_n_test": 20,
              "box_score_thresh": 0.0, "box_detections_per_img": 10}
ONE_STAGE = {"topk_candidates": 40, "detections_per_img": 10, "score_thresh": 0.0}


def ssd():
    backbone = nn.Sequential(*M.mobilenet_v2(weights=None, width_mult=0.25).features[:14])

    class Levels(nn.Module):
        out_channels = [24, 32, 32]

        def __init__(self):
            super().__init__()
            self.first = backbone
            self.second, self.third = (nn.Conv2d(a, 32, 3, 2, 1) for a in (24, 32))

        def forward(self, x):
            first = self.first(x)
            second = self.second(first).relu()
            return {"0": first, "1": second, "2": self.third(second).relu()}

    net = D.ssd.SSD(Levels(), DefaultBoxGenerator([[2], [2, 3], [2]]), (96, 96), 5, score_thresh=0.0, detections_per_img=10,
                topk_candidates=40)
    return Finder(spread(net)), image(96), {}


def ssdlite():
    net = D.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5, score_thresh=0.0,
                                          detections_per_img=10, topk_candidates=40)
    return Finder(spread(net)), image(320), {}


def clip(build, frames=4, side=32):
    return lambda: (build(), {"clip": torch.randn(1, 3, frames, side, side)}, {})


def video(stem, conv):
    kinds = {"block": V.resnet.BasicBlock, "conv_makers": conv, "layers": [1, 1, 1, 1], "stem": stem, "num_classes": 10}
    def build():
        net = V.resnet.VideoResNet(**kinds)
        net.layer4 = nn.Identity()
        net.fc = nn.Linear(256, 10)
        return net
    return clip(build)


def mvit():
    config = [M.video.mvit.MSBlockConfig(num_heads=h, input_channels=a, output_channels=b, kernel_q=[3, 3, 3] if q else [],
                                         kernel_kv=[3, 3, 3], stride_q=q, stride_kv=kv)
              for h, a, b, q, kv in ((1, 24, 24, [1, 1, 1], [1, 4, 4]), (2, 24, 48, [1, 2, 2], [1, 2, 2]))]
    return M.video.mvit.MViT((32, 32), 4, config, residual_pool=True, residual_with_cls_embed=False, rel_pos_embed=True,
                             proj_after_attn=True, num_classes=10)


def swin3d():
    return V.SwinTransformer3d([2, 4, 4], 24, [1, 1], [1, 2], [2, 4, 4], num_classes=10)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = M.optical_flow.raft_small(weights=None)

    def forward(self, before, after):
        return self.net(before, after, num_flow_updates=2)[-1]


def raft():
    return Flow(), {name: torch.rand(1, 3, 128, 128) for name in ("before", "after")}, {}


SWIN = {"patch_size": [4, 4], "embed_dim": 32, "depths": [1, 2, 1], "num_heads": [1, 2, 4], "window_size": [4, 4],
        "num_classes": 10}
# name: gives (module, its inputs, {input: {axis: name of an extent that may vary}})
ZOO = {
    "mobilenet_v2": classifier(M.mobilenet_v2),
    "mobilenet_v3_small": classifier(M.mobilenet_v3_small),
    "mobilenet_v3_large": classifier(M.mobilenet_v3_large, 64),
    "efficientnet_b0": classifier(M.efficientnet_b0),
    "efficientnet_v2": of(M.EfficientNet, 64, [
        M.efficientnet.FusedMBConvConfig(1, 3, 1, 24, 24, 1), M.efficientnet.FusedMBConvConfig(4, 3, 2, 24, 48, 2),
        M.efficientnet.MBConvConfig(4, 3, 2, 48, 64, 2), M.efficientnet.MBConvConfig(6, 3, 2, 64, 96, 2)], 0.2,
        num_classes=10, last_channel=256),
    "resnet18": classifier(M.resnet18),
    "resnet50": classifier(M.resnet50),
    "resnext50": of(M.ResNet, 64, M.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, groups=32, width_per_group=4),
    "wide_resnet50": of(M.ResNet, 64, M.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, width_per_group=128),
    "alexnet": alexnet,
    "vgg11": vgg,
    "vgg11_bn": lambda: vgg(True),
    "squeezenet1_0": classifier(M.squeezenet1_0, 96, num_classes=10),
    "squeezenet1_1": classifier(M.squeezenet1_1, 96, num_classes=10),
    "densenet121": of(M.DenseNet, 64, growth_rate=8, block_config=(2, 3, 3, 2), num_init_features=16, num_classes=10),
    "googlenet": classifier(M.googlenet, 96, aux_logits=False, init_weights=False, num_classes=10),
    "inception_v3": classifier(M.inception_v3, 128, init_weights=False, aux_logits=False, num_classes=10),
    "shufflenet_v2_x0_5": classifier(M.shufflenet_v2_x0_5, 64),
    "shufflenet_v2_x1_0": classifier(M.shufflenet_v2_x1_0, 64),
    "mnasnet0_5": classifier(M.mnasnet0_5, 64),
    "regnet_x": lambda: regnet(None),
    "regnet_y": lambda: regnet(0.25),
    "convnext": of(M.ConvNeXt, 64, [M.convnext.CNBlockConfig(32, 64, 2), M.convnext.CNBlockConfig(64, None, 2)], num_classes=10),
    "vit": of(M.VisionTransformer, 64, image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128,
              num_classes=10),
    "swin_t": of(M.SwinTransformer, 64, **SWIN),
    "swin_v2_t": of(M.SwinTransformer, 64, **SWIN, block=M.swin_transformer.SwinTransformerBlockV2,
                    downsample_layer=M.swin_transformer.PatchMergingV2),
    "maxvit": of(M.MaxVit, 64, (64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10),
    "deeplab_v3": deeplab_v3,
    "lraspp": segmenter(S.lraspp_mobilenet_v3_large),
    "fcn": fcn,
    "faster_rcnn": detector(D.FasterRCNN, **TWO_STAGES),
    "mask_rcnn": detector(D.MaskRCNN, **TWO_STAGES),
    "keypoint_rcnn": detector(partial(D.KeypointRCNN, keypoint_head=D.keypoint_rcnn.KeypointRCNNHeads(256, (64, 64)),
                                      keypoint_predictor=D.keypoint_rcnn.KeypointRCNNPredictor(64, 5)), **TWO_STAGES),
    "retinanet": detector(D.RetinaNet, anchor_generator=ANCHORS, **ONE_STAGE),
    "fcos": detector(D.FCOS, anchor_generator=ONE_ANCHOR, **ONE_STAGE),
    "ssd": ssd,
    "ssdlite": ssdlite,
    "r3d": video(V.resnet.BasicStem, [V.resnet.Conv3DSimple] * 4),
    "mc3": video(V.resnet.BasicStem, [V.resnet.Conv3DSimple] + [V.resnet.Conv3DNoTemporal] * 3),
    "r2plus1d": video(V.resnet.R2Plus1dStem, [V.resnet.Conv2Plus1D] * 4),
    "s3d": clip(lambda: M.video.s3d(weights=None, num_classes=10), 16, 224),
    "mvit": clip(mvit),
    "swin3d": clip(swin3d),
    "raft": raft,
}
