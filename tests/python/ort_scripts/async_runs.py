"""Runs that are asked for without waiting: a callback gathers what they give, or why they did not."""

import threading

import numpy as np
import onnxruntime as rt


class Gathered:
    def __init__(self, n):
        self.left, self.outputs, self.errors, self.lock = n, {}, [], threading.Lock()
        self.done = threading.Event()

    def callback(self, results, number, error):
        with self.lock:
            if error:
                self.errors.append(number)
            else:
                self.outputs[number] = results[0]
            self.left -= 1
            if not self.left:
                self.done.set()


def main(folder):
    options = rt.SessionOptions()
    options.intra_op_num_threads = 2
    session = rt.InferenceSession(str(folder / "batches.onnx"), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(5).standard_normal((12, 4, 8)).astype(np.float32)
    gathered = Gathered(14)
    for number, batch in enumerate(x):
        session.run_async(None, {"x": batch}, gathered.callback, number)
    session.run_async(["y"], {"x": x[0, :, :5]}, gathered.callback, 100)
    session.run_async(["nothing"], {"x": x[0]}, gathered.callback, 101)
    assert gathered.done.wait(60)
    together = session.run(["y"], {"x": x.reshape(-1, 8)})[0].reshape(12, 4, 4)
    outputs = np.stack([gathered.outputs[i] for i in range(12)])
    return {"outputs": outputs, "together": together, "errors": np.array(sorted(gathered.errors))}
