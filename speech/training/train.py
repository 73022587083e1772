"""train.py DIR: trains a voice on DIR/train.npz (features.py) for some minutes: DIR/voice.npz holds its weights. Its loss is that of
spectra at four resolutions (Ryuichi Yamamoto et al., "Parallel WaveGAN", 2020), of durations and of pitch. Same data, seed and
steps: the same voice, within rounding; the learning rate follows time, so that any machine has its best in the minutes given."""
import argparse
import math
import pathlib
import random
import sys
import time

import numpy as np
import torch
from features import HOP, RATE
from networks import CONTEXT, Acoustic, Vocoder
from torch.nn import functional

CROP = 48  # frames of a sentence that a step hears


class Sentences:
    def __init__(self, path):
        """ids and frames of each [T], samples [N * HOP], pitch [N]; those of CROP to 700 frames."""
        data = np.load(path)
        n_ids, n_frames = data["n_ids"], data["n_frames"]
        at_id, at_frame = (np.concatenate([[0], np.cumsum(n)]) for n in (n_ids, n_frames))
        whole = {name: data[name] for name in ("ids", "frames", "samples", "pitch")}
        self.all = []
        for k, n in enumerate(n_frames):
            i, f = slice(at_id[k], at_id[k + 1]), slice(at_frame[k], at_frame[k + 1])
            if CROP <= n <= 700:
                self.all.append((whole["ids"][i].astype(np.int64), whole["frames"][i].astype(np.int64),
                                 whole["samples"][f.start * HOP:f.stop * HOP], whole["pitch"][f]))
        self.all.sort(key=lambda s: len(s[0]))
        voiced = whole["pitch"][whole["pitch"] > 0]
        self.usual_pitch = float(np.median(voiced))
        self.hours = sum(len(s[3]) for s in self.all) * HOP / RATE / 3600


def places_of_ids(n):
    """[n, 2]"""
    k = np.arange(n)
    return np.stack([k / n, 1 / (1 + (n - 1 - k) / 8)], 1).astype(np.float32)


def places_of_frames(frames):
    """Of each frame the id that it belongs to [N], and where it is in that and in the sentence [N, 4]."""
    owner, n = np.repeat(np.arange(len(frames)), frames), int(frames.sum())
    k, own = np.arange(n), frames[owner]
    begin = (np.cumsum(frames) - frames)[owner]
    return owner, np.stack([(k - begin + 0.5) / own, np.log1p(own) / 3, k / n, np.minimum(n - k, 100) / 100], 1).astype(np.float32)


def batch(sentences, rng):
    """Whole sentences for the encoder, crops with their context for the decoder."""
    size, most, width = len(sentences), max(len(s[0]) for s in sentences), CROP + 2 * CONTEXT
    zeros = lambda *shape: np.zeros((size, *shape), np.float32)
    b = {"ids": np.zeros((size, most), np.int64), "frames": zeros(most), "id_mask": zeros(most, 1), "id_place": zeros(most, 2),
         "owner": np.zeros((size, width), np.int64), "place": zeros(width, 4), "mask": zeros(width, 1), "pitch": zeros(width),
         "sound": zeros(CROP * HOP)}
    for k, (ids, frames, samples, hz) in enumerate(sentences):
        t, n = len(ids), len(hz)
        b["ids"][k, :t], b["frames"][k, :t], b["id_mask"][k, :t], b["id_place"][k, :t] = ids, frames, 1, places_of_ids(t)
        owner, place = places_of_frames(frames)
        at = rng.randint(0, n - CROP)
        here = slice(max(at - CONTEXT, 0), min(at + CROP + CONTEXT, n))
        to = slice(here.start - at + CONTEXT, here.stop - at + CONTEXT)
        b["owner"][k, to], b["place"][k, to], b["mask"][k, to], b["pitch"][k, to] = owner[here], place[here], 1, hz[here]
        b["sound"][k] = samples[at * HOP:(at + CROP) * HOP] / 32768
    return {name: torch.from_numpy(x) for name, x in b.items()}


def spectrum(x, size):
    s = torch.stft(x, size, size // 4, size, torch.hann_window(size), return_complex=True, center=False)
    return torch.sqrt(s.real**2 + s.imag**2 + 1e-7)


def sound_loss(made, wanted):
    total = 0
    for size in (2048, 1024, 512, 256):
        a, b = spectrum(made, size), spectrum(wanted, size)
        total = total + (a.clamp_min(1e-3).log() - b.clamp_min(1e-3).log()).abs().mean() + 0.5 * (a - b).abs().sum() / b.sum().clamp_min(1)
    return total / 4


def losses(model, vocoder, b):
    """Of sound, durations, pitch, and of where there is pitch."""
    hidden, logs = model.encode(b["ids"], b["id_place"], b["id_mask"])
    at = torch.gather(hidden, 1, b["owner"][..., None].expand(-1, -1, hidden.shape[2]))
    filters, pitch, voiced = model.decode(at, b["place"], b["mask"])
    inner = slice(CONTEXT, CONTEXT + CROP)
    made = vocoder(filters[:, inner], b["pitch"][:, inner], torch.rand(len(filters)))
    there = (b["pitch"][:, inner] > 0).float()
    return (sound_loss(made, b["sound"]), (((logs - torch.log1p(b["frames"]))**2) * b["id_mask"][..., 0]).sum() / b["id_mask"].sum(),
            ((pitch[:, inner] - torch.log(b["pitch"][:, inner].clamp_min(1))).abs() * there).sum() / there.sum().clamp_min(1),
            functional.binary_cross_entropy_with_logits(voiced[:, inner], there))


def train(model, sentences, arguments):
    vocoder, rng = Vocoder(), random.Random(arguments.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.rate, betas=(0.9, 0.98), weight_decay=0.01)
    groups = [sentences[i:i + arguments.batch] for i in range(0, len(sentences) - arguments.batch + 1, arguments.batch)]
    begun, step, order, sums = time.time(), 0, [], np.zeros(4)
    while (past := (time.time() - begun) / 60 / arguments.minutes) < 1:
        if not order:
            order = rng.sample(range(len(groups)), len(groups))
        for group in optimizer.param_groups:
            group["lr"] = arguments.rate * min(1, (step + 1) / 200) * (0.49 * (1 + math.cos(math.pi * past)) + 0.02)
        parts = losses(model, vocoder, batch(groups[order.pop()], rng))
        optimizer.zero_grad()
        (parts[0] + parts[1] + 5 * parts[2] + 0.3 * parts[3]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        step += 1
        sums += [p.item() for p in parts]
        if step % 200 == 0:
            print(f"{past * arguments.minutes:6.1f} min {step:7} steps   sound {sums[0] / 200:.4f} durations {sums[1] / 200:.4f} "
                  f"pitch {sums[2] / 200:.4f} voiced {sums[3] / 200:.4f}", flush=True)
            sums[:] = 0
        if step % 1000 == 0:
            save(model, arguments.folder)


def save(model, folder):
    np.savez(folder / "voice.npz", **{name: x.numpy() for name, x in model.state_dict().items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="go on from DIR/voice.npz")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    sentences, model = Sentences(arguments.folder / "train.npz"), Acoustic()
    model.usual.fill_(math.log(sentences.usual_pitch))
    if arguments.resume:
        model.load_state_dict({k: torch.from_numpy(v) for k, v in np.load(arguments.folder / "voice.npz").items()})
    print(f"{len(sentences.all):,} sentences, {sentences.hours:.2f} h, {sum(p.numel() for p in model.parameters()):,} weights", flush=True)
    train(model, sentences.all, arguments)
    save(model, arguments.folder)
    return 0


sys.exit(main())
