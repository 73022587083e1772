"""One session, batches and lengths of every size, from many threads."""

import concurrent.futures

import numpy as np
import onnxruntime as rt


def main(folder):
    options = rt.SessionOptions()
    options.intra_op_num_threads = 1
    session = rt.InferenceSession(str(folder / "lengths.onnx"), options, providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape == ["batch", 4, "length"]
    rng = np.random.default_rng(8)
    x = {(n, t): rng.standard_normal((n, 4, t)).astype(np.float32) for n in (1, 2, 5) for t in (3, 16, 40)}
    one = {f"{n} x {t}": session.run(None, {"x": v})[0] for (n, t), v in x.items()}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = {key: pool.submit(lambda v: session.run(["y"], {"x": v})[0], v) for key, v in x.items() for _ in range(3)}
    for (n, t), run in runs.items():
        np.testing.assert_array_equal(run.result(), one[f"{n} x {t}"])
    rows = np.concatenate([session.run(None, {"x": row[None]})[0] for row in x[5, 16]])
    return {**one, "row by row": rows}
