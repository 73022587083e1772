"""transformers' architectures of speech, audio and time series."""

import torch
import transformers

from torch_parts import Only
from torch_text import PAIR, TINY, WORDS, built

NARROW = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
WAVES = NARROW | {"vocab_size": 32, "conv_dim": [16, 16, 16], "conv_stride": [5, 4, 4], "conv_kernel": [10, 8, 4],
                  "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
SERIES = {"prediction_length": 4, "context_length": 12, "lags_sequence": [1, 2], "num_time_features": 1, "d_model": 16,
          "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
          "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
PATCHES = {"num_input_channels": 3, "context_length": 32, "patch_length": 8, "patch_stride": 8, "d_model": 16, "num_hidden_layers": 2,
           "num_attention_heads": 2, "ffn_dim": 32, "prediction_length": 6}


def hears(name, model="Model", samples=3200, pick=None, **more):
    """A model of a second's part of raw sound."""
    def build():
        net = built(name, model, WAVES | more)
        return Only(net, pick, names=("input_values",)), {"input_values": torch.randn(1, samples)}, {"input_values": {1: "samples"}}
    return build


def frames(name, model="Model", size=16, count=24, pick=None, axes=None, **config):
    """A model of features, `count` of them in a row."""
    def build():
        net = built(name, model, config)
        return (Only(net, pick, names=("input_features",)), {"input_features": torch.randn(1, count, size)},
                {"input_features": axes} if axes else {})
    return build


def whisper(length=40):
    config = PAIR | {"num_mel_bins": 16, "max_source_positions": length, "max_target_positions": 16, "use_cache": False}
    net = built("Whisper", "ForConditionalGeneration", config)
    inputs = {"input_features": torch.randn(1, 16, 2 * length), "decoder_input_ids": torch.randint(3, WORDS, (1, 5)),
              "decoder_attention_mask": torch.ones(1, 5, dtype=torch.long)}
    return (Only(net, lambda found: found.logits, tuple(inputs)), inputs,
            {"decoder_input_ids": {1: "target"}, "decoder_attention_mask": {1: "target"}})


def speech_to_text():
    config = PAIR | {"input_feat_per_channel": 16, "num_conv_layers": 2, "conv_channels": 32, "conv_kernel_sizes": [3, 3],
                     "max_source_positions": 64, "max_target_positions": 16, "use_cache": False}
    net = built("Speech2Text", "ForConditionalGeneration", config)
    inputs = {"input_features": torch.randn(1, 40, 16), "decoder_input_ids": torch.randint(3, WORDS, (1, 5))}
    return Only(net, lambda found: found.logits, tuple(inputs)), inputs, {"decoder_input_ids": {1: "target"}}


def moonshine():
    net = built("Moonshine", "ForConditionalGeneration", {
        "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 64, "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2,
        "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4, "encoder_num_key_value_heads": 4,
        "decoder_num_key_value_heads": 4, "use_cache": False, "attn_implementation": "eager"})
    inputs = {"input_values": torch.randn(1, 6400), "decoder_input_ids": torch.randint(3, WORDS, (1, 5))}
    return Only(net, lambda found: found.logits, tuple(inputs)), inputs, {}


SPEECHT5 = {"vocab_size": WORDS, "hidden_size": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
            "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "conv_dim": [16, 16], "conv_stride": [5, 4],
            "conv_kernel": [10, 8], "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "num_mel_bins": 16,
            "speech_decoder_prenet_units": 32, "speech_decoder_postnet_units": 32, "speaker_embedding_dim": 16, "use_cache": False}


def speecht5_listens():
    net = built("SpeechT5", "ForSpeechToText", SPEECHT5)
    inputs = {"input_values": torch.randn(1, 1600), "decoder_input_ids": torch.randint(3, WORDS, (1, 5))}
    return Only(net, lambda found: found.logits, tuple(inputs)), inputs, {}


def speecht5_speaks():
    net = built("SpeechT5", "ForTextToSpeech", SPEECHT5 | {"speech_decoder_prenet_dropout": 0.0})
    inputs = {"input_ids": torch.randint(3, WORDS, (1, 9)), "decoder_input_values": torch.randn(1, 8, 16),
              "speaker_embeddings": torch.randn(1, 16)}
    return Only(net, lambda found: found.spectrogram, tuple(inputs)), inputs, {}


def fastspeech2():
    net = built("FastSpeech2Conformer", "Model", {
        "vocab_size": WORDS, "hidden_size": 32, "num_mel_bins": 16, "encoder_num_attention_heads": 2, "encoder_layers": 1,
        "encoder_linear_units": 64, "decoder_layers": 1, "decoder_linear_units": 64, "decoder_num_attention_heads": 2,
        "speech_decoder_postnet_units": 32, "speech_decoder_postnet_layers": 2, "pitch_predictor_layers": 1,
        "pitch_predictor_channels": 32, "energy_predictor_channels": 32, "duration_predictor_channels": 32})
    return Only(net, lambda found: found.spectrogram, ("input_ids",)), {"input_ids": torch.randint(3, WORDS, (1, 9))}, {}


def codec(name, side="decode", samples=3200, books=4, levels=32, **config):
    """The half of a neural codec that makes sound of codes, or codes of sound, which carry no gradients."""
    def build():
        net = built(name, "Model", config)
        if side == "encode":
            class Encode(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.net = net

                def forward(self, sound):
                    return self.net.encode(sound).audio_codes
            return Encode(), {"sound": torch.randn(1, 1, samples)}, {}

        class Decode(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, codes):
                found = self.net.decode(codes, [None]) if name == "Encodec" else self.net.decode(audio_codes=codes)
                return found.audio_values
        codes = torch.randint(0, levels, (1, 1, books, 20) if name == "Encodec" else (1, books, 20))
        return Decode(), {"codes": codes}, {}
    return build


class Clap(torch.nn.Module):
    def __init__(self):
        super().__init__()
        audio = {"window_size": 4, "num_mel_bins": 32, "spec_size": 64, "hidden_size": 64, "patch_embeds_hidden_size": 16,
                 "depths": [1, 1, 1], "num_attention_heads": [2, 2, 2], "patch_size": 4, "patch_stride": [4, 4], "projection_dim": 16,
                 "enable_fusion": False, "num_hidden_layers": 3}
        self.net = transformers.ClapModel(transformers.ClapConfig(text_config=TINY, audio_config=audio, projection_dim=16))

    def forward(self, input_ids, input_features):
        return self.net(input_ids=input_ids, input_features=input_features).logits_per_audio


def clap():
    return Clap().eval(), {"input_ids": torch.randint(3, WORDS, (2, 7)), "input_features": torch.randn(1, 1, 60, 32)}, {}


def musicgen():
    net = built("Musicgen", "ForCausalLM", {
        "vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64, "num_codebooks": 4,
        "max_position_embeddings": 64, "use_cache": False, "attn_implementation": "eager"})
    tokens = torch.randint(3, WORDS, (4, 6))
    inputs = {"input_ids": tokens, "attention_mask": torch.ones(1, 6, dtype=torch.long)}
    return Only(net, lambda found: found.logits, tuple(inputs)), inputs, {}


def univnet():
    net = transformers.UnivNetModel(transformers.UnivNetConfig(model_in_channels=16, model_hidden_channels=16, num_mel_bins=20,
                                                               kernel_predictor_hidden_channels=16))
    inputs = {"input_features": torch.randn(1, 12, 20), "noise_sequence": torch.randn(1, 12, 16)}
    return Only(net, lambda found: found.waveforms, tuple(inputs)), inputs, {}


def patches(name, model, **more):
    def build():
        net = built(name, model, PATCHES | more)
        return Only(net, names=("past_values",)), {"past_values": torch.randn(2, 32, 3)}, {}
    return build


def foretells(name, **more):
    """The parameters of what a series becomes, by its past and what is known of its future."""
    def build():
        net = built(name, "Model", SERIES | more)
        past = 12 + 2  # what it looks at, and the longest lag before
        inputs = {"past_values": torch.randn(1, past), "past_time_features": torch.randn(1, past, 1),
                  "past_observed_mask": torch.ones(1, past), "future_values": torch.randn(1, 4),
                  "future_time_features": torch.randn(1, 4, 1)}
        return Only(net, lambda found: found.last_hidden_state if hasattr(found, "last_hidden_state") else found[0],
                    tuple(inputs)), inputs, {}
    return build


def timesfm():
    net = built("TimesFm", "Model", {"patch_length": 8, "context_length": 32, "horizon_length": 8, "hidden_size": 32,
                                     "intermediate_size": 64, "head_dim": 8, "num_hidden_layers": 2, "num_attention_heads": 4,
                                     "freq_size": 3})
    inputs = {"past_values": torch.randn(1, 32), "past_values_padding": torch.zeros(1, 32), "freq": torch.zeros(1, 1, dtype=torch.long)}
    return Only(net, lambda found: found.last_hidden_state, tuple(inputs)), inputs, {}


def decision():
    net = built("DecisionTransformer", "Model", {"state_dim": 5, "act_dim": 3, "hidden_size": 32, "n_layer": 2, "n_head": 2,
                                                 "max_ep_len": 20, "attn_implementation": "eager"})
    inputs = {"states": torch.randn(1, 6, 5), "actions": torch.randn(1, 6, 3), "rewards": torch.randn(1, 6, 1),
              "returns_to_go": torch.randn(1, 6, 1), "timesteps": torch.arange(6)[None], "attention_mask": torch.ones(1, 6)}
    return Only(net, lambda found: (found.state_preds, found.action_preds), tuple(inputs)), inputs, {}


CONFORMER = NARROW | {"num_mel_bins": 16, "feature_projection_input_dim": 16, "vocab_size": 32}
# name: gives (module, its inputs, {input: {axis: name of an extent that may vary}})
ZOO = {
    "wav2vec2": hears("Wav2Vec2", "ForCTC"),
    "wav2vec2_stable": hears("Wav2Vec2", do_stable_layer_norm=True, feat_extract_norm="layer"),
    "wav2vec2_conformer": hears("Wav2Vec2Conformer", position_embeddings_type="rotary", max_source_positions=200),
    "hubert": hears("Hubert", "ForCTC"),
    "wavlm": hears("WavLM"),
    "sew": hears("SEW", "ForCTC", squeeze_factor=2),
    "sew_d": hears("SEWD", squeeze_factor=2, position_buckets=8, max_position_embeddings=32),
    "unispeech": hears("UniSpeech"),
    "unispeech_sat": hears("UniSpeechSat"),
    "data2vec_audio": hears("Data2VecAudio", conv_pos_kernel_size=3, num_conv_pos_embeddings=2),
    "wav2vec2_speaker": hears("Wav2Vec2", "ForXVector", tdnn_dim=[16, 16, 16, 16, 32], xvector_output_dim=16),
    "wav2vec2_bert": frames("Wav2Vec2Bert", "ForCTC", **CONFORMER),
    "ast": lambda: (Only(built("AST", "ForAudioClassification", NARROW | {"patch_size": 8, "max_length": 40, "num_mel_bins": 32,
                                                                        "frequency_stride": 8, "time_stride": 8}),
                         names=("input_values",)), {"input_values": torch.randn(1, 40, 32)}, {}),
    "parakeet": frames("Parakeet", "ForCTC", vocab_size=32, pad_token_id=31, axes={1: "frames"}, encoder_config=NARROW | {
        "num_mel_bins": 16, "subsampling_conv_channels": 16, "conv_kernel_size": 5, "subsampling_factor": 4}),
    "whisper": whisper,
    "speech_to_text": speech_to_text,
    "moonshine": moonshine,
    "speecht5_listens": speecht5_listens,
    "speecht5_speaks": speecht5_speaks,
    "fastspeech2": fastspeech2,
    "univnet": univnet,
    "musicgen": musicgen,
    "clap": clap,
    "encodec": codec("Encodec", levels=64, num_filters=8, hidden_size=32, codebook_size=64, codebook_dim=32, upsampling_ratios=[5, 4, 2],
                     sampling_rate=8000, target_bandwidths=[4.8], num_lstm_layers=1),
    "encodec_encode": codec("Encodec", "encode", num_filters=8, hidden_size=32, codebook_size=64, codebook_dim=32,
                            upsampling_ratios=[5, 4, 2], sampling_rate=8000, target_bandwidths=[4.8], num_lstm_layers=1),
    "dac": codec("Dac", encoder_hidden_size=8, decoder_hidden_size=64, hidden_size=64, downsampling_ratios=[2, 4, 4],
                 upsampling_ratios=[4, 4, 2], n_codebooks=4, codebook_size=32, codebook_dim=4),
    "dac_encode": codec("Dac", "encode", encoder_hidden_size=8, decoder_hidden_size=64, hidden_size=64, downsampling_ratios=[2, 4, 4],
                        upsampling_ratios=[4, 4, 2], n_codebooks=4, codebook_size=32, codebook_dim=4),
    "mimi": codec("Mimi", num_filters=8, hidden_size=32, codebook_size=32, codebook_dim=16, upsampling_ratios=[4, 4, 2],
                  num_quantizers=4, num_semantic_quantizers=1, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=4,
                  intermediate_size=64, vector_quantization_hidden_dimension=16, head_dim=8, upsample_groups=32),
    "patchtst": patches("PatchTST", "ForPrediction"),
    "patchtst_classify": patches("PatchTST", "ForClassification", num_targets=4, use_cls_token=True),
    "patchtsmixer": patches("PatchTSMixer", "ForPrediction", num_layers=2),
    "informer": foretells("Informer", attention_type="full"),
    "informer_sparse": foretells("Informer", sampling_factor=1),
    "autoformer": foretells("Autoformer", label_length=4, moving_average=3),
    "time_series_transformer": foretells("TimeSeriesTransformer"),
    "timesfm": timesfm,
    "decision_transformer": decision,
}
