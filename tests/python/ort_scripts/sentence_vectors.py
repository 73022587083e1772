"""Vectors of sentences: tokens padded to the longest, the mean of their embeddings under the mask, and the nearest sentence."""

import numpy as np
import onnxruntime as rt

SENTENCES = ["a small library runs models", "models run in a small library", "the cat sleeps", "rain"]


class Encoder:
    def __init__(self, path):
        self.session = rt.InferenceSession(path, providers=rt.get_available_providers())
        self.names = {port.name for port in self.session.get_inputs()}
        self.words = {word: i + 3 for i, word in enumerate(sorted({w for s in SENTENCES for w in s.split()}))}

    def tokens(self, sentences):
        rows = [[1, *[self.words.get(word, 0) for word in sentence.split()], 2] for sentence in sentences]
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, :len(row)], mask[i, :len(row)] = row, 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}

    def encode(self, sentences, batch):
        vectors = []
        for i in range(0, len(sentences), batch):
            feed = {k: v for k, v in self.tokens(sentences[i:i + batch]).items() if k in self.names}
            hidden = self.session.run(["last_hidden_state"], feed)[0]
            mask = feed["attention_mask"][..., None].astype(np.float32)
            mean = (hidden * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1e-9)
            vectors.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
        return np.concatenate(vectors)


def main(folder):
    encoder = Encoder(str(folder / "sentences.onnx"))
    vectors = encoder.encode(SENTENCES, batch=3)
    alike = vectors @ vectors.T - 2 * np.eye(len(SENTENCES))
    return {"vectors": vectors, "one by one": encoder.encode(SENTENCES, batch=1), "nearest": alike.argmax(axis=1)}
