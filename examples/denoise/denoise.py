#!/usr/bin/env python3
"""denoise.py MODEL_1 MODEL_2 [IN.wav OUT.wav]: speech without noise, by the two models of DTLN (Westhausen and Meyer, "Dual-Signal
Transformation LSTM Network for Real-Time Noise Suppression", 2020). Without sounds 16-bit samples come from standard input
and go, 24 ms later, to standard output as they come."""

import argparse
import sys
import wave

import numpy as np

import linnet

RATE, BLOCK, STEP = 16000, 512, 128  # samples: each block is STEP new ones behind those of the block before
DELAY = BLOCK - STEP


class Stage:
    """A model with one state, which the caller carries: inputs and outputs are the signal, then the state."""

    def __init__(self, path):
        options = linnet.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = linnet.InferenceSession(path, options)
        ports = self.session.get_inputs()
        if [len(ports), len(self.session.get_outputs())] != [2, 2]:
            raise ValueError(f"{path} is no stage of DTLN: a signal and a state go in, and come out")
        self.names, self.shape = [port.name for port in ports], ports[0].shape
        self.state = np.zeros(ports[1].shape, np.float32)

    def __call__(self, signal):
        signal = np.ascontiguousarray(signal, np.float32).reshape(self.shape)
        result, self.state = self.session.run(None, dict(zip(self.names, (signal, self.state))))
        return result.ravel()


class Denoiser:
    def __init__(self, first, second):
        self.mask, self.refine = Stage(first), Stage(second)
        self.heard, self.said = np.zeros(BLOCK, np.float32), np.zeros(BLOCK, np.float32)

    def step(self, samples):
        """STEP samples, -1 to 1, for STEP new ones: those of DELAY ago."""
        self.heard = np.concatenate([self.heard[STEP:], samples])
        spectrum = np.fft.rfft(self.heard)
        block = np.fft.irfft(self.mask(np.abs(spectrum)) * spectrum)  # the mask is of magnitudes: phases stay
        self.said = np.concatenate([self.said[STEP:], np.zeros(STEP, np.float32)]) + self.refine(block)
        return self.said[:STEP]


def from_bytes(data):
    return np.frombuffer(data, "<i2").astype(np.float32) / 32768


def to_bytes(samples):
    return np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes()


def whole_file(denoiser, source, target):
    with wave.open(source) as sound:
        if (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) != (RATE, 1, 2):
            raise ValueError(f"{source} is not 16 bits, mono, {RATE} Hz")
        heard = from_bytes(sound.readframes(sound.getnframes()))
    steps = -(-(len(heard) + DELAY) // STEP)
    padded = np.pad(heard, (0, steps * STEP - len(heard))).reshape(steps, STEP)
    said = np.concatenate([denoiser.step(samples) for samples in padded])[DELAY:DELAY + len(heard)]
    with wave.open(target, "wb") as sound:
        sound.setparams((1, 2, RATE, 0, "NONE", ""))
        sound.writeframes(to_bytes(said))


def live(denoiser):
    while len(data := sys.stdin.buffer.read(2 * STEP)) == 2 * STEP:
        sys.stdout.buffer.write(to_bytes(denoiser.step(from_bytes(data))))
        sys.stdout.buffer.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", metavar="MODEL_1")
    parser.add_argument("second", metavar="MODEL_2")
    parser.add_argument("sounds", nargs="*", metavar="IN.wav OUT.wav")
    asked = parser.parse_args()
    if len(asked.sounds) not in (0, 2):
        parser.error("a sound to read and one to write, or none")
    try:
        denoiser = Denoiser(asked.first, asked.second)
        whole_file(denoiser, *asked.sounds) if asked.sounds else live(denoiser)
    except (OSError, EOFError, ValueError, wave.Error, linnet.LinnetError) as why:
        sys.exit(f"denoise: {why}")


if __name__ == "__main__":
    main()
