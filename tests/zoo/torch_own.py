"""Networks written out here: as people write them with torch alone, and decoders with their past as inputs."""

import torch
import transformers
from torch import nn

from torch_parts import Only, image


class UNet(nn.Module):
    def __init__(self, widths=(16, 32, 64)):
        super().__init__()
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip((3, *widths), widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.join = nn.ModuleList(self.block(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                             nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

    def forward(self, x):
        seen = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else nn.functional.max_pool2d(x, 2))
            seen.append(x)
        for i in reversed(range(len(self.up))):
            x = self.join[i](torch.cat((seen[i], self.up[i](x)), 1))
        return self.head(x)


def minilm(layers):
    config = transformers.BertConfig(vocab_size=2000, hidden_size=384, num_hidden_layers=layers, num_attention_heads=12,
                                     intermediate_size=1536)
    net = transformers.BertModel(config, add_pooling_layer=False)
    tokens = torch.randint(0, 2000, (2, 16))
    mask = torch.ones_like(tokens)
    mask[1, 11:] = 0
    axes = {0: "batch", 1: "sequence"}
    inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": torch.zeros_like(tokens)}
    return Only(net, lambda found: found.last_hidden_state), inputs, dict.fromkeys(inputs, axes)


class Decoder(nn.Module):
    """A Llama of one step with its past as inputs and outputs: key and value of each layer."""

    def __init__(self):
        super().__init__()
        config = transformers.LlamaConfig(vocab_size=512, hidden_size=128, intermediate_size=344, num_hidden_layers=2,
                                          num_attention_heads=4, num_key_value_heads=2, attn_implementation="eager")
        self.net = transformers.LlamaForCausalLM(config)

    def forward(self, input_ids, key_0, value_0, key_1, value_1):
        past = transformers.DynamicCache()
        past.update(key_0, value_0, 0)
        past.update(key_1, value_1, 1)
        at = torch.arange(key_0.shape[2], key_0.shape[2] + input_ids.shape[1])[None]
        found = self.net(input_ids, past_key_values=past, position_ids=at, use_cache=True)
        after = found.past_key_values
        return found.logits, *(t for layer in after.layers for t in (layer.keys, layer.values))


def decoder():
    past = {f"{kind}_{i}": torch.randn(1, 2, 5, 32) for i in range(2) for kind in ("key", "value")}
    axes = {"input_ids": {1: "tokens"}} | {name: {2: "past"} for name in past}
    return Decoder(), {"input_ids": torch.randint(0, 512, (1, 3))} | past, axes


def voice():
    """VITS without its noise, which no two engines draw alike."""
    config = transformers.VitsConfig(vocab_size=60, hidden_size=96, num_hidden_layers=2, ffn_dim=192, flow_size=96,
                                     spectrogram_bins=65, upsample_initial_channel=64, noise_scale=0.0,
                                     noise_scale_duration=0.0, prior_encoder_num_flows=2)
    tokens = torch.randint(1, 60, (1, 13))
    return Only(transformers.VitsModel(config), lambda found: found.waveform), {"input_ids": tokens}, {"input_ids": {1: "text"}}


def vocoder():
    net = transformers.SpeechT5HifiGan(transformers.SpeechT5HifiGanConfig(upsample_initial_channel=128))
    return net, {"spectrogram": torch.randn(1, 20, 80)}, {"spectrogram": {1: "frames"}}


def ds_cnn():
    def pair(c):
        return [nn.Conv2d(c, c, 3, padding=1, groups=c), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 1), nn.BatchNorm2d(c),
                nn.ReLU()]
    net = nn.Sequential(nn.Conv2d(1, 64, (10, 4), 2, (5, 1)), nn.BatchNorm2d(64), nn.ReLU(), *pair(64), *pair(64), *pair(64),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12), nn.Softmax(-1))
    return net, image(49, 1, 10), {}


def recurrent(kind, **how):
    net = getattr(nn, kind)(80, 64, num_layers=2, **how)
    return lambda: (Only(net, lambda found: found[0]), {"frames": torch.randn(9, 1, 80)}, {"frames": {0: "time"}})


class CRNN(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (1, 32, 64, 128)
        self.see = nn.Sequential(*(part for a, b in zip(widths, widths[1:]) for part in (
            nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2 if b < 128 else (2, 1)))))
        self.read = nn.LSTM(128 * 4, 64, bidirectional=True, batch_first=True)
        self.head = nn.Linear(128, 37)

    def forward(self, x):
        x = self.see(x)
        x = x.permute(0, 3, 1, 2).flatten(2)
        return self.head(self.read(x)[0]).log_softmax(-1)


# name: gives (module, its inputs, {input: {axis: name of an extent that may vary}})
ZOO = {
    "unet": lambda: (UNet(), image(64), {"image": {2: "height", 3: "width"}}),
    "minilm_l6": lambda: minilm(6),
    "minilm_l12": lambda: minilm(12),
    "decoder": decoder,
    "voice": voice,
    "vocoder": vocoder,
    "ds_cnn": ds_cnn,
    "lstm_stack": recurrent("LSTM"),
    "gru_stack": recurrent("GRU", bidirectional=True),
    "crnn": lambda: (CRNN(), image(32, 1, 100), {"image": {3: "width"}}),
}
