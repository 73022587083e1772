"""features.py DIR: what a voice is trained on, from DIR/train.jsonl and held.jsonl and their sounds (voice_data.py): DIR/train.npz and
held.npz, where sentences follow each other: ids and frames of each [sum T], samples [sum N * HOP], pitch in Hz [sum N], 0 where
there is none, and for each sentence T, N, and the number of its line."""
import argparse
import concurrent.futures
import json
import pathlib
import sys
import wave

import numpy as np
from phoneme_ids import ids_and_frames

RATE, HOP = 16000, 192
STRIDE, SIZE, KNOTS = HOP // 2, 2 * HOP, 64  # of the vocoder's spectra: samples between two, samples of one; of its filters
SPAN, LOWEST, HIGHEST = 480, 60, 320  # samples that are compared with those a period later; Hz
CANDIDATES, VOICELESS, JUMP, SWITCH = 5, 0.45, 1.2, 0.1


def knots_to_bins():
    """What each knot of a filter, of equal distance in mel, contributes to each bin: linear in frequency [KNOTS, SIZE / 2 + 1]."""
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), KNOTS)
    knots = 700 * (10**(mel / 2595) - 1)
    bins = np.linspace(0, RATE / 2, SIZE // 2 + 1)
    return np.stack([np.interp(bins, knots, row) for row in np.eye(KNOTS)]).astype(np.float32)


def read(path):
    """Samples [-1, 1) of a .wav of one channel of 16 bits at RATE."""
    with wave.open(str(path)) as f:
        assert (f.getframerate(), f.getnchannels(), f.getsampwidth()) == (RATE, 1, 2), path
        return np.frombuffer(f.readframes(f.getnframes()), np.int16) / 32768.0


def correlations(x, n):
    """How much each frame is like what comes a period later, for all periods from 0 to RATE / LOWEST [n, periods]."""
    most = RATE // LOWEST
    padded = np.pad(x, ((SPAN + most) // 2, SPAN + most + HOP))
    spans = np.lib.stride_tricks.sliding_window_view(padded, SPAN + most + 1)[HOP // 2::HOP][:n]
    size = 1 << (2 * SPAN + most).bit_length()
    cross = np.fft.irfft(np.fft.rfft(spans, size) * np.fft.rfft(spans[:, :SPAN], size).conj(), size)[:, :most + 1]
    energy = np.cumsum(np.pad(spans**2, ((0, 0), (1, 0))), 1)
    energy = energy[:, SPAN:SPAN + most + 1] - energy[:, :most + 1]
    return cross / np.sqrt(energy * energy[:, :1] + 1e-4)


def pitch(x, n):
    """Hz of each of n frames, 0 where there is none: the best way through the highest correlations (David Talkin, "A Robust
    Algorithm for Pitch Tracking", 1995)."""
    likeness, least, rows = correlations(x, n), RATE // HIGHEST, np.arange(n)[:, None]
    inner = likeness[:, least:-1]
    peak = (inner > likeness[:, least - 1:-2]) & (inner >= likeness[:, least + 1:])
    favored = np.where(peak, inner - 0.02 * np.arange(inner.shape[1]) / inner.shape[1], -1)
    best = np.argsort(-favored, 1)[:, :CANDIDATES]
    score = np.hstack([favored[rows, best], np.full((n, 1), VOICELESS)])
    period = np.log(best + least)
    total, came = score[0].copy(), np.zeros((n, CANDIDATES + 1), int)
    for t in range(1, n):
        step = np.full((CANDIDATES + 1,) * 2, -SWITCH)
        step[:-1, :-1] = -JUMP * np.abs(period[t - 1][:, None] - period[t])
        step[-1, -1] = 0
        reached = total[:, None] + step
        came[t] = reached.argmax(0)
        total = reached.max(0) + score[t]
    state = np.empty(n, int)
    state[-1] = total.argmax()
    for t in range(n - 1, 0, -1):
        state[t - 1] = came[t, state[t]]
    voiced = state < CANDIDATES
    at = best[np.arange(n), np.minimum(state, CANDIDATES - 1)] + least
    a, b, c = (likeness[np.arange(n), at + k] for k in (-1, 0, 1))
    bend = a - 2 * b + c
    hz = RATE / (at + np.where(bend < 0, 0.5 * (a - c) / np.minimum(bend, -1e-9), 0))
    loud = np.sqrt((x[:n * HOP].reshape(n, HOP)**2).mean(1)) >= 2e-3
    return np.where(voiced & loud, hz, 0)


def sentence(job):
    folder, line = job
    x = read(folder / line["wav"])
    n = len(x) // HOP
    ends = np.minimum(np.round(np.array(line["ends"]) * RATE / HOP).astype(int), n)
    ends[-1] = n
    ids, last = ids_and_frames(line["symbols"], ends)
    return ids, np.diff(last, prepend=0), (x[:n * HOP] * 32768).astype(np.int16), pitch(x, n)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    for name in ("held", "train"):
        with open(arguments.folder / f"{name}.jsonl", encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
            ids, frames, samples, hz = zip(*pool.map(sentence, ((arguments.folder, line) for line in lines), chunksize=32))
        np.savez(arguments.folder / f"{name}.npz", ids=np.concatenate(ids).astype(np.int16), frames=np.concatenate(frames).astype(np.int16),
                 samples=np.concatenate(samples), pitch=np.concatenate(hz).astype(np.float32),
                 n_ids=[len(i) for i in ids], n_frames=[len(h) for h in hz])
        every = np.concatenate(hz)
        print(f"{name:<24}{len(lines):>9,} sentences, median pitch {np.median(every[every > 0]):.0f} Hz, {np.mean(every > 0):.0%} voiced")
    return 0


if __name__ == "__main__":
    sys.exit(main())
