"""networks.py: the voice: an acoustic model, of ids to durations, pitch and filters, and a vocoder that filters pulses and noise.

The acoustic model is made of ConvNeXt's blocks (Zhuang Liu et al., "A ConvNet for the 2020s", 2022) along one axis, the vocoder
a harmonic-plus-noise model (Xavier Serra and Julius Smith, "Spectral modeling synthesis", 1990). A frame has HOP samples, and two
pairs of filters: logarithms of their gains for harmonics and noise at KNOTS frequencies of equal distance in mel."""
import math

import torch
from features import HOP, KNOTS, RATE, SIZE, STRIDE, knots_to_bins
from phoneme_ids import TABLE
from torch import nn
from torch.nn import functional

BINS = SIZE // 2 + 1
CONTEXT = 20  # frames to either side that a frame of the decoder sees


def along_time(convolution, x):
    """[B, T, C]: convolutions want channels first."""
    return convolution(x.transpose(1, 2)).transpose(1, 2)


class Block(nn.Module):
    """ConvNeXt's: depthwise, normalized, twice as wide and back, added."""

    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv1d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.widen, self.narrow = nn.Linear(channels, 2 * channels), nn.Linear(2 * channels, channels)
        self.narrow.weight.data *= 0.3

    def forward(self, x, mask):
        return (x + self.narrow(functional.relu(self.widen(self.norm(along_time(self.depthwise, x)))))) * mask


class Predictor(nn.Module):
    """Two layers, the first of which sees `width` places."""

    def __init__(self, channels, width, outputs):
        super().__init__()
        self.look, self.tell = nn.Conv1d(channels, 96, width, padding=width // 2), nn.Linear(96, outputs)

    def forward(self, x):
        return self.tell(functional.relu(along_time(self.look, x)))


class Acoustic(nn.Module):
    """Tensors are [B, T, C], of ids, or [B, N, C], of frames; masks [B, T, 1] are 1 where a sentence is."""

    def __init__(self, channels=192, encoder=4, decoder=6):
        super().__init__()
        self.embedding = nn.Embedding(len(TABLE), channels)
        self.embedding.weight.data *= 0.3
        self.enter = nn.Linear(channels + 2, channels)
        self.encoder = nn.ModuleList(Block(channels) for _ in range(encoder))
        self.durations = Predictor(channels, 3, 1)
        self.between = nn.Linear(channels + 4, channels)
        self.decoder = nn.ModuleList(Block(channels) for _ in range(decoder))
        self.norm = nn.LayerNorm(channels)
        self.pitch = Predictor(channels, 5, 2)
        self.filters = nn.Linear(channels, 4 * KNOTS)
        self.filters.bias.data.fill_(-5)
        self.register_buffer("usual", torch.zeros(()))  # logarithm of the pitch that is predicted from

    def encode(self, ids, place, mask):
        """ids [B, T], place [B, T, 2]: hidden [B, T, C], logarithm of 1 + frames [B, T]."""
        x = self.enter(torch.cat([self.embedding(ids), place], 2)) * mask
        for block in self.encoder:
            x = block(x, mask)
        return x, self.durations(x)[..., 0]

    def decode(self, hidden, place, mask):
        """hidden [B, N, C], place [B, N, 4]: filters [B, N, 4 * KNOTS], logarithm of the pitch and how much it is there
        [B, N]."""
        x = self.between(torch.cat([hidden, place], 2)) * mask
        for block in self.decoder:
            x = block(x, mask)
        x = self.norm(x) * mask
        pitch = self.pitch(x)
        return self.filters(x), pitch[..., 0] + self.usual, pitch[..., 1]


class Vocoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("spread", torch.from_numpy(knots_to_bins()), persistent=False)
        self.register_buffer("window", torch.hann_window(SIZE), persistent=False)

    def pulses(self, hz, phase):
        """Pitch [B, N], 0 where there is none, and a phase of 0 to 1 [B]: pulses that hold all harmonics below RATE / 2, of
        power 1 [B, N * HOP]."""
        voiced = (hz > 0).float()
        hz = torch.where(hz > 0, hz, torch.full_like(hz, 150))
        smooth = lambda x: functional.interpolate(x[:, None], scale_factor=HOP, mode="linear", align_corners=False)[:, 0]
        hz, voiced = smooth(hz), smooth(voiced)
        turn = torch.cumsum((hz / RATE).double(), 1) + phase[:, None].double()
        angle = math.pi * ((turn - torch.floor(turn)).float() - 0.5)
        harmonics = torch.floor(0.48 * RATE / hz)
        low = torch.sin(angle)
        near = low.abs() < 1e-4
        kernel = torch.sin((2 * harmonics + 1) * angle) / torch.where(near, torch.ones_like(low), low)
        return torch.where(near, harmonics, (kernel - 1) / 2) * torch.sqrt(2 / harmonics) * voiced

    def spectra(self, x):
        """[B, N * HOP]: [B, 2 * N, BINS], the first around the middle of the first half frame."""
        left = (SIZE - STRIDE) // 2
        framed = functional.pad(x, (left, SIZE)).unfold(1, SIZE, STRIDE)[:, :x.shape[1] // STRIDE]
        return torch.fft.rfft(framed * self.window)

    def forward(self, filters, hz, phase):
        """filters [B, N, 4 * KNOTS], of the first half frame for harmonics and noise, then of the second: [B, N * HOP]"""
        batch, n, _ = filters.shape
        logs = filters.reshape(batch, 2 * n, 2, KNOTS).permute(2, 0, 1, 3)
        gains = torch.exp(logs @ self.spread)
        x = self.pulses(hz, phase)
        both = self.spectra(torch.cat([x, torch.randn_like(x)])).reshape(2, batch, 2 * n, BINS)
        frames = torch.fft.irfft((gains * both).sum(0), SIZE) * (self.window / 1.5)
        whole = functional.fold(frames.transpose(1, 2), (1, (2 * n - 1) * STRIDE + SIZE), (1, SIZE), stride=(1, STRIDE))
        return whole[:, 0, 0, (SIZE - STRIDE) // 2:][:, :n * HOP]
