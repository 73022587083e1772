"""wheel_smoke.py MODEL.onnx: what a script written for onnxruntime does, with the installed package, numpy and nothing else; then
the same model converted and verified by the command `linnet`."""
import pathlib
import subprocess
import sys
import tempfile

import linnet as ort
import numpy as np

model = sys.argv[1]
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
feed = {}
for value in session.get_inputs():
    shape = [extent if isinstance(extent, int) else 1 for extent in value.shape]
    feed[value.name] = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
expected = session.run(None, feed)
assert all(np.isfinite(y).all() for y in expected) and any(y.any() for y in expected)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "model.lnt"
    subprocess.run(["linnet", "convert", model, "-o", path], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["linnet", "verify", path], check=True, stdout=subprocess.DEVNULL)
    for y, want in zip(ort.InferenceSession(str(path), options).run(None, feed), expected):
        np.testing.assert_array_equal(y, want)
print("linnet", ort.__version__, "runs", model)
