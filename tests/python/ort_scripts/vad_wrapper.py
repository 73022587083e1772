"""Speech probabilities of a sound by silero's model: an object that keeps state and context between chunks."""

import numpy as np
import onnxruntime as rt


class Wrapper:
    def __init__(self, path, force_onnx_cpu=False):
        options = rt.SessionOptions()
        options.inter_op_num_threads = 1
        options.intra_op_num_threads = 1
        if force_onnx_cpu and "CPUExecutionProvider" in rt.get_available_providers():
            self.session = rt.InferenceSession(path, providers=["CPUExecutionProvider"], sess_options=options)
        else:
            self.session = rt.InferenceSession(path, sess_options=options)
        self.reset_states()
        self.sample_rates = [8000, 16000]

    def reset_states(self, batch=1):
        self.state, self.context = np.zeros((2, batch, 128), np.float32), np.zeros(0, np.float32)
        self.last_rate = self.last_batch = 0

    def valid(self, x, rate):
        x = x[None] if x.ndim == 1 else x
        if rate != 16000 and rate % 16000 == 0:
            x, rate = x[:, :: rate // 16000], 16000
        if rate not in self.sample_rates:
            raise ValueError(f"supported sampling rates: {self.sample_rates}")
        return np.ascontiguousarray(x), rate

    def __call__(self, x, rate):
        x, rate = self.valid(x, rate)
        n, context = (512, 64) if rate == 16000 else (256, 32)
        if x.shape[-1] != n:
            raise ValueError(f"{x.shape[-1]} samples, not {n}")
        if (self.last_rate, self.last_batch) != (rate, len(x)):
            self.reset_states(len(x))
            self.context = np.zeros((len(x), context), np.float32)
        x = np.concatenate([self.context, x], axis=1)
        out, self.state = self.session.run(None, {"input": x, "state": self.state, "sr": np.array(rate, dtype="int64")})
        self.context, self.last_rate, self.last_batch = x[..., -context:], rate, len(x)
        return out

    def audio_forward(self, x, rate):
        x, rate = self.valid(x, rate)
        self.reset_states()
        n = 512 if rate == 16000 else 256
        x = np.pad(x, ((0, 0), (0, -x.shape[1] % n)))
        return np.concatenate([self(x[:, i:i + n], rate) for i in range(0, x.shape[1], n)], axis=1)


def main(folder):
    rng = np.random.default_rng(3)
    t = np.arange(3 * 16000) / 16000
    voice = (np.sin(2 * np.pi * 140 * t) * (np.sin(2 * np.pi * 3 * t) > 0) + 0.05 * rng.standard_normal(len(t))).astype(np.float32)
    vad = Wrapper(str(folder / "vad.onnx"), force_onnx_cpu=True)
    found = {"16 kHz": vad.audio_forward(voice, 16000), "8 kHz": vad.audio_forward(voice[::2], 8000),
             "32 kHz": vad.audio_forward(voice, 32000), "two": vad.audio_forward(np.stack([voice, voice[::-1]]), 16000)}
    try:
        vad(voice[:100], 16000)
    except ValueError as e:
        found["refused"] = np.array("100 samples" in str(e))
    return found
