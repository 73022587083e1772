"""openWakeWord's chain of features: a ring of sound, mel frames, embeddings, and the score of a word for every 80 ms."""

import collections

import numpy as np
import onnxruntime as rt


class Features:
    def __init__(self, mels, embedding, ncpu=1):
        options = rt.SessionOptions()
        options.inter_op_num_threads = ncpu
        options.intra_op_num_threads = ncpu
        providers = ["CPUExecutionProvider"]
        self.mel_model = rt.InferenceSession(mels, sess_options=options, providers=providers)
        self.embedding_model = rt.InferenceSession(embedding, sess_options=options, providers=providers)
        self.provider = self.mel_model.get_providers()[0]
        self.embed = lambda x: self.embedding_model.run(None, {"input_1": x})[0].squeeze()
        self.raw = collections.deque(maxlen=16000 * 10)
        self.mels = np.ones((76, 32), np.float32)
        self.features = np.zeros((0, 96), np.float32)

    def melspectrogram(self, x):
        x = np.asarray(x, np.float32)
        x = x[None] if x.ndim == 1 else x
        spectrum = self.mel_model.run(None, {self.mel_model.get_inputs()[0].name: x})[0]
        return spectrum.squeeze() / 10 + 2

    def embeddings(self, x, window=76, step=8):
        spectrum = self.melspectrogram(x)
        windows = [spectrum[i:i + window] for i in range(0, len(spectrum), step) if i + window <= len(spectrum)]
        return self.embed(np.stack(windows)[..., None].astype(np.float32))

    def __call__(self, samples):
        self.raw.extend(samples)
        heard = np.array(self.raw)[-len(samples) - 3 * 160:]
        self.mels = np.vstack([self.mels, self.melspectrogram(heard)])[-10 * 97:]
        self.features = np.vstack([self.features, self.embed(self.mels[None, -76:, :, None].astype(np.float32))])[-120:]


def main(folder):
    rng = np.random.default_rng(9)
    t = np.arange(16000 * 3) / 16000
    sound = (8000 * np.sin(2 * np.pi * (300 + 200 * np.sin(6 * t)) * t) + 500 * rng.standard_normal(len(t))).astype(np.int16)
    features = Features(str(folder / "mels.onnx"), str(folder / "embedding.onnx"))
    found = {"at once": features.embeddings(sound), "provider": np.array(features.provider == "CPUExecutionProvider")}
    word = rt.InferenceSession(str(folder / "word.onnx"), providers=["CPUExecutionProvider"])
    name, frames, scores = word.get_inputs()[0].name, word.get_inputs()[0].shape[1], []
    for i in range(0, len(sound), 1280):
        chunk = sound[i:i + 1280]
        if len(chunk) == 1280:
            features(chunk)
        if len(features.features) >= frames:
            scores.append(word.run(None, {name: features.features[None, -frames:].astype(np.float32)})[0])
    return {**found, "stream": features.features, "scores": np.concatenate(scores)}
