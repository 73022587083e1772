"""transformers' architectures that see: images, images and text, documents, video."""

import torch
import transformers

from torch_parts import Only
from torch_text import TINY, WORDS, built

NARROW = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
VIT = NARROW | {"image_size": 32, "patch_size": 8}
FOUR = VIT | {"num_hidden_layers": 4}
STAGES = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4, "image_size": 32, "patch_size": 2}
PYRAMID = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 24, 32, 48], "num_attention_heads": [1, 2, 2, 4], "embedding_size": 16}
RESNET = {"embedding_size": 16, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1], "layer_type": "basic"}
FINDS = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
         "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_queries": 8}
TOWERS = {"text_config": TINY, "vision_config": VIT, "projection_dim": 16}


def pixels(side, batch=1, channels=3):
    return {"pixel_values": torch.randn(batch, channels, side, side)}


def sees(name, model="Model", side=32, pick=None, **config):
    """A model of one image."""
    def build():
        net = built(name, model, config)
        return Only(net, pick, names=("pixel_values",)), pixels(side), {}
    return build


def backed(name, model="ForObjectDetection", side=64, **config):
    """A model over a small ResNet as its backbone."""
    def build():
        backbone = transformers.ResNetConfig(**RESNET, out_features=["stage2", "stage3", "stage4"])
        small = config | {"backbone_config": backbone, "use_timm_backbone": None, "use_pretrained_backbone": None, "backbone": None}
        net = built(name, model, small)
        return Only(net, boxes, names=("pixel_values",)), pixels(side), {}
    return build


def boxes(found):
    return found.logits, found.pred_boxes


def segments(found):
    return found.class_queries_logits, found.masks_queries_logits


def reads(name, model="Model", side=32, length=7, mask=True, pick=None, **config):
    """A model of an image and a text."""
    def build():
        net = built(name, model, config)
        inputs = {"input_ids": torch.randint(3, WORDS, (2, length))} | pixels(side, 2)
        if mask:
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        return Only(net, pick, tuple(inputs)), inputs, {}
    return build


def films(name, model="Model", frames=4, side=32, **config):
    def build():
        net = built(name, model, config)
        return Only(net, names=("pixel_values",)), {"pixel_values": torch.randn(1, frames, 3, side, side)}, {}
    return build


def laid_out(name, model="Model", image=False, **config):
    """A model of words with where they stand."""
    def build():
        net = built(name, model, TINY | {"max_2d_position_embeddings": 64} | config)
        corners = torch.randint(0, 30, (1, 9, 2))
        inputs = {"input_ids": torch.randint(3, WORDS, (1, 9)),
                  "bbox": torch.cat((corners, corners + torch.randint(1, 30, (1, 9, 2))), -1)}
        if image:
            inputs |= pixels(32)
        return Only(net, names=tuple(inputs)), inputs, {}
    return build


def writes(vision, text):
    """An image read by one model and told by another."""
    def build():
        config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(vision(), text())
        net = transformers.VisionEncoderDecoderModel(config)
        inputs = pixels(32) | {"decoder_input_ids": torch.randint(3, WORDS, (1, 5))}
        return Only(net, lambda found: found.logits, tuple(inputs)), inputs, {"decoder_input_ids": {1: "target"}}
    return build


def sam():
    config = transformers.SamConfig(
        vision_config=NARROW | {"image_size": 64, "patch_size": 8, "output_channels": 32, "window_size": 4, "global_attn_indexes": [1],
                                "num_pos_feats": 16, "mlp_dim": 64},
        prompt_encoder_config={"hidden_size": 32, "image_size": 64, "patch_size": 8, "mask_input_channels": 8},
        mask_decoder_config={"hidden_size": 32, "mlp_dim": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "iou_head_hidden_dim": 32})
    inputs = pixels(64) | {"input_points": torch.rand(1, 1, 2, 2) * 64}
    return Only(transformers.SamModel(config), lambda found: (found.iou_scores, found.pred_masks), tuple(inputs)), inputs, {}


def masked():
    """What is left of an image where the noise given is large; no two engines draw it alike."""
    net = transformers.ViTMAEModel(transformers.ViTMAEConfig(**VIT))
    return Only(net, names=("pixel_values", "noise")), pixels(32) | {"noise": torch.rand(1, 16)}, {}


def llava():
    config = transformers.LlavaConfig(vision_config=transformers.CLIPVisionConfig(**VIT), image_token_id=5,
                                      text_config=transformers.LlamaConfig(**TINY), vision_feature_layer=-1)
    tokens = torch.randint(6, WORDS, (1, 24))
    tokens[0, 2:18] = 5
    net = transformers.LlavaForConditionalGeneration(config)
    return Only(net, lambda found: found.logits, ("input_ids", "pixel_values")), {"input_ids": tokens} | pixels(32), {}


def detr_like(name):
    return backed(name, **FINDS)


DECODER = {"vocab_size": WORDS, "d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 64,
                      "max_position_embeddings": 64}
HYBRID = {"encoder_hidden_dim": 32, "encoder_in_channels": [32, 48, 64], "feat_strides": [8, 16, 32], "encoder_ffn_dim": 64,
          "encoder_attention_heads": 4, "d_model": 32, "num_queries": 8, "decoder_in_channels": [32, 32, 32], "decoder_layers": 2,
          "decoder_ffn_dim": 64, "decoder_attention_heads": 4, "hidden_expansion": 0.5, "num_denoising": 0}
# name: gives (module, its inputs, {input: {axis: name of an extent that may vary}})
ZOO = {
    "hf_vit": sees("ViT", "ForImageClassification", **VIT),
    "hf_deit": sees("DeiT", "ForImageClassificationWithTeacher", **VIT),
    "hf_beit": sees("Beit", "ForImageClassification", **VIT, use_relative_position_bias=True),
    "hf_data2vec_vision": sees("Data2VecVision", **VIT, use_relative_position_bias=True),
    "hf_dinov2": sees("Dinov2", **VIT),
    "hf_dinov2_registers": sees("Dinov2WithRegisters", **VIT),
    "hf_dinov3": sees("DINOv3ViT", **VIT),
    "hf_ijepa": sees("IJepa", **VIT),
    "hf_vit_msn": sees("ViTMSN", **VIT),
    "hf_vitdet": sees("VitDet", **VIT),
    "hf_yolos": sees("Yolos", "ForObjectDetection", pick=boxes, **VIT | {"image_size": [32, 32]}),
    "hf_swin": sees("Swin", "ForImageClassification", **STAGES),
    "hf_swinv2": sees("Swinv2", **STAGES),
    "hf_swin2sr": sees("Swin2SR", "ForImageSuperResolution", 16, **STAGES | {"image_size": 16, "patch_size": 1}),
    "hf_donut_swin": sees("DonutSwin", **STAGES),
    "hf_convnext": sees("ConvNext", "ForImageClassification", depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48]),
    "hf_convnextv2": sees("ConvNextV2", depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48]),
    "hf_resnet": sees("ResNet", "ForImageClassification", 64, **RESNET),
    "hf_regnet": sees("RegNet", side=64, **RESNET | {"layer_type": "y", "groups_width": 8}),
    "hf_bit": sees("Bit", side=64, embedding_size=32, num_groups=8, hidden_sizes=[32, 32, 64, 64], depths=[1, 1, 1, 1],
                   layer_type="preactivation"),
    "hf_efficientnet": sees("EfficientNet", side=64, width_coefficient=0.25, depth_coefficient=0.25, hidden_dim=320),
    "hf_mobilenet_v1": sees("MobileNetV1", side=64, depth_multiplier=0.25),
    "hf_mobilenet_v2": sees("MobileNetV2", "ForImageClassification", 64, depth_multiplier=0.35),
    "hf_mobilevit": sees("MobileViT", "ForSemanticSegmentation", 64, image_size=64, hidden_sizes=[24, 32, 48],
                         neck_hidden_sizes=[8, 16, 24, 32, 48, 48, 64]),
    "hf_mobilevitv2": sees("MobileViTV2", "ForImageClassification", 64, image_size=64, width_multiplier=0.5),
    "hf_poolformer": sees("PoolFormer", "ForImageClassification", 64, depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48]),
    "hf_segformer": sees("Segformer", "ForSemanticSegmentation", 64, depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48],
                         num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32),
    "hf_glpn": sees("GLPN", "ForDepthEstimation", 64, depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48],
                    num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32),
    "hf_pvt": sees("Pvt", side=64, image_size=64, depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 48], num_attention_heads=[1, 2, 2, 4]),
    "hf_pvt_v2": sees("PvtV2", side=64, image_size=64, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 32, 64],
                      num_attention_heads=[1, 2, 2, 4]),
    "hf_cvt": sees("Cvt", "ForImageClassification", 64, embed_dim=[16, 32, 48], num_heads=[1, 2, 3], depth=[1, 2, 3]),
    "hf_levit": sees("Levit", side=64, image_size=64, hidden_sizes=[16, 32, 48], num_attention_heads=[2, 4, 6], depths=[1, 1, 1],
                     key_dim=[8, 8, 8]),
    "hf_focalnet": sees("FocalNet", side=64, image_size=64, embed_dim=16, depths=[1, 1, 1, 1]),
    "hf_hiera": sees("Hiera", side=64, image_size=[64, 64], embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 4]),
    "hf_swiftformer": sees("SwiftFormer", side=64, depths=[1, 1, 1, 1], embed_dims=[16, 24, 32, 48]),
    "hf_textnet": sees("TextNet", side=64),
    "hf_hgnet_v2": sees("HGNetV2", "ForImageClassification", 64),
    "hf_dpt": sees("DPT", "ForDepthEstimation", **FOUR | {"backbone_out_indices": [0, 1, 2, 3],
                                                         "neck_hidden_sizes": [16, 24, 32, 32], "fusion_hidden_size": 16}),
    "hf_superpoint": sees("SuperPoint", "ForKeypointDetection", 64, encoder_hidden_sizes=[16, 16, 32, 32], decoder_hidden_size=32,
                          descriptor_decoder_dim=32, max_keypoints=20),
    "hf_vit_mae": masked,
    "hf_detr": detr_like("Detr"),
    "hf_conditional_detr": detr_like("ConditionalDetr"),
    "hf_table_transformer": detr_like("TableTransformer"),
    "hf_dab_detr": backed("DabDetr", **FINDS | {"hidden_size": 32}),
    "hf_deformable_detr": backed("DeformableDetr", **FINDS, num_feature_levels=3),
    "hf_rt_detr": backed("RTDetr", **HYBRID),
    "hf_rt_detr_v2": backed("RTDetrV2", **HYBRID),
    "hf_d_fine": backed("DFine", **HYBRID),
    "hf_maskformer": sees("MaskFormer", "ForInstanceSegmentation", 64, segments, fpn_feature_size=32, mask_feature_size=32,
                          backbone_config=transformers.ResNetConfig(**RESNET, out_features=["stage1", "stage2", "stage3", "stage4"]),
                          decoder_config=transformers.DetrConfig(**FINDS)),
    "hf_mask2former": sees("Mask2Former", "ForUniversalSegmentation", 64, segments, feature_size=32, mask_feature_size=32,
                           hidden_dim=32, encoder_feedforward_dim=64, encoder_layers=1, decoder_layers=2, num_attention_heads=4,
                           dim_feedforward=64, num_queries=8,
                           backbone_config=transformers.SwinConfig(**STAGES | {"depths": [1] * 4, "num_heads": [1, 2, 2, 4],
                                                                              "image_size": 64, "patch_size": 4},
                                                                   out_features=["stage1", "stage2", "stage3", "stage4"])),
    "hf_upernet": sees("UperNet", "ForSemanticSegmentation", 64, hidden_size=32, auxiliary_channels=16, auxiliary_in_channels=48,
                       backbone_config=transformers.ResNetConfig(**RESNET, out_features=["stage1", "stage2", "stage3", "stage4"])),
    "hf_depth_anything": sees("DepthAnything", "ForDepthEstimation", 56, fusion_hidden_size=16, neck_hidden_sizes=[8, 16, 24, 32],
                              depth_estimation_type="metric",
                              reassemble_hidden_size=32, patch_size=14, head_hidden_size=8,
                              backbone_config=transformers.Dinov2Config(
                                  **FOUR | {"image_size": 56, "patch_size": 14}, out_indices=[1, 2, 3, 4], apply_layernorm=True,
                                  reshape_hidden_states=False)),
    "hf_vitpose": sees("VitPose", "ForPoseEstimation", backbone_config=transformers.VitPoseBackboneConfig(
        **VIT | {"image_size": [32, 32], "patch_size": [8, 8]}, out_indices=[2])),
    "hf_sam": sam,
    "clip": reads("CLIP", **TOWERS),
    "chinese_clip": reads("ChineseCLIP", **TOWERS),
    "siglip": reads("Siglip", mask=False, text_config=TINY, vision_config=VIT),
    "altclip": reads("AltCLIP", text_config=TINY | {"project_dim": 32}, vision_config=VIT, projection_dim=16),
    "blip": reads("Blip", "Model", **TOWERS),
    "align": reads("Align", side=64, text_config=TINY, projection_dim=80, vision_config={
        "width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320}),
    "groupvit": reads("GroupViT", text_config=TINY, projection_dim=16, projection_intermediate_dim=32, vision_config=VIT | {
        "depths": [1, 1], "num_group_tokens": [4, 0], "num_output_groups": [4, 2], "num_hidden_layers": 2}),
    "clipseg": reads("CLIPSeg", "ForImageSegmentation", pick=lambda found: found.logits, **TOWERS, extract_layers=[0, 1], reduce_dim=16,
                     decoder_num_attention_heads=4, decoder_intermediate_size=32),
    "owlvit": reads("OwlViT", "ForObjectDetection", length=16, pick=boxes, **TOWERS | {"projection_dim": 32}),
    "vilt": reads("Vilt", **TINY, image_size=32, patch_size=8, max_image_length=-1),
    "git": reads("Git", "ForCausalLM", **TINY, vision_config=VIT, use_cache=False),
    "flava": reads("Flava", "Model", pick=lambda found: (found.text_embeddings, found.image_embeddings), text_config=TINY, image_config=VIT,
                   multimodal_config=NARROW, image_codebook_config={}, hidden_size=32, projection_dim=16),
    "bridgetower": reads("BridgeTower", hidden_size=64, num_attention_heads=4, num_hidden_layers=2, text_config=TINY | {"hidden_size": 64},
                         vision_config=VIT | {"hidden_size": 64}),
    "llava": llava,
    "layoutlmv3": laid_out("LayoutLMv3", image=True, input_size=32, patch_size=8, coordinate_size=6, shape_size=4, visual_embed=True),
    "lilt": laid_out("Lilt", hidden_size=48, channel_shrink_ratio=2),
    "bros": laid_out("Bros", dim_bbox=4),
    "trocr": writes(lambda: transformers.ViTConfig(**VIT), lambda: transformers.TrOCRConfig(**DECODER)),
    "donut": writes(lambda: transformers.DonutSwinConfig(**STAGES), lambda: transformers.MBartConfig(**DECODER)),
    "vit_gpt2": writes(lambda: transformers.ViTConfig(**VIT),
                       lambda: transformers.GPT2Config(vocab_size=WORDS, n_embd=32, n_layer=2, n_head=4, n_positions=64)),
    "videomae": films("VideoMAE", "ForVideoClassification", **VIT, num_frames=4),
    "timesformer": films("Timesformer", **VIT, num_frames=4),
    "vivit": films("Vivit", **VIT, num_frames=4, tubelet_size=[2, 8, 8]),
}
