#!/usr/bin/env python3
"""wakeword.py MELS EMBEDDING WORD [SOUND.wav]: when is a word said? openWakeWord's chain of three models; without a sound, 16-bit
samples are heard from standard input."""

import argparse
import sys
import wave

import numpy as np

import linnet

RATE, STEP, OVERLAP = 16000, 1280, 480  # samples; the overlap gives a step its eight frames of mels
FRAMES, MELS, HOP = 76, 32, 8  # of an embedding; frames between one and the next
SILENCE = 30  # steps before the sound, so that a word at its beginning has a past
AGAIN = 13  # steps until the word is told again


def session(path):
    options = linnet.SessionOptions()
    options.intra_op_num_threads = 1
    return linnet.InferenceSession(path, options)


def run(model, array):
    return model.run(None, {model.get_inputs()[0].name: np.ascontiguousarray(array, np.float32)})[0]


class Listener:
    def __init__(self, mels, embedding, word):
        self.models = [session(path) for path in (mels, embedding, word)]
        shape = self.models[2].get_inputs()[0].shape
        if len(shape) != 3 or not isinstance(shape[1], int):
            raise ValueError(f"{word} takes {shape}: it is to take 1 x STEPS x 96")
        self.heard = np.zeros(OVERLAP, np.float32)
        self.frames = np.ones((FRAMES, MELS), np.float32)
        self.features = np.zeros((shape[1], 96), np.float32)
        for _ in range(SILENCE):
            self.step(np.zeros(STEP, np.float32))

    def step(self, samples):
        """How likely the word ends in these STEP samples, which are -32768 to 32767."""
        mels, embedding, word = self.models
        self.heard = np.concatenate([self.heard[-OVERLAP:], samples])
        new = run(mels, self.heard[None]).reshape(-1, MELS) / 10 + 2
        self.frames = np.concatenate([self.frames, new])[-FRAMES:]
        feature = run(embedding, self.frames[None, :, :, None]).reshape(1, -1)
        self.features = np.concatenate([self.features[1:], feature])
        return float(run(word, self.features[None]).ravel()[0])


def blocks(stream):
    while len(data := stream.read(2 * STEP)) == 2 * STEP:
        yield np.frombuffer(data, "<i2").astype(np.float32)


class WaveStream:
    def __init__(self, path):
        self.sound = wave.open(path)
        if (self.sound.getframerate(), self.sound.getnchannels(), self.sound.getsampwidth()) != (RATE, 1, 2):
            raise ValueError(f"{path} is not 16 bits, mono, {RATE} Hz")

    def read(self, n):
        return self.sound.readframes(n // 2)


def listen(listener, stream, threshold, name):
    last = -AGAIN
    for i, samples in enumerate(blocks(stream)):
        score = listener.step(samples)
        if score >= threshold and i - last >= AGAIN:
            print(f"{(i + 1) * STEP / RATE:7.2f} s  {name}  {score:.2f}", flush=True)
            last = i


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs=3, metavar="MODEL", help="melspectrogram, embedding_model and a word's, .onnx or .lnt")
    parser.add_argument("sound", nargs="?")
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--name", default="heard")
    asked = parser.parse_args()
    try:
        stream = WaveStream(asked.sound) if asked.sound else sys.stdin.buffer
        listen(Listener(*asked.models), stream, asked.threshold, asked.name)
    except (OSError, EOFError, ValueError, wave.Error, linnet.LinnetError) as why:
        sys.exit(f"wakeword: {why}")


if __name__ == "__main__":
    main()
