"""Writes models/rich.onnx: one model with every kind of thing an import has to read. Its output y is 2 * x + 6."""

import pathlib

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

TEXT = """
<ir_version: 9, opset_import: ["" : 10, "own" : 1], producer_name: "make_rich_model", producer_version: "1">
rich (float[N,3] x) => (float[N,3] y) {
    y = Add (summed, branch)
    three = Constant <value = int64 {3}> ()
    go = Constant <value = bool {1}> ()
    clipped = Clip <min: float = -1000.0, max: float = 1000.0> (x)
    doubled = own.times <k: float = 2.0> (clipped)
    total = ReduceSum <keepdims = 0> (doubled)
    nothing = Sub (total, total)
    positive = Less (nothing, raw)
    branch = If (positive) <
        then_branch = yes () => (t) {
            last, all = Loop (three, go, nothing) <
                body = round (int64 i, bool c, float[] s) => (bool c2, float[] s2, float[] each) {
                    c2 = Identity (c)
                    s2 = Add (s, raw)
                    each = Identity (s)
                }
            >
            t = Unsqueeze <axes: ints = [0]> (last)
        },
        else_branch = no () => (e) { e = Unsqueeze <axes = [0]> (nothing) }
    >
    sums, rows = Scan <
        num_scan_inputs = 1,
        scan_input_axes = [1],
        body = column (float[1] a, float[M] v) => (float[1] a2, float[M] w) {
            a2 = Identity (a)
            w = Add (v, typed)
        }
    > (typed, doubled)
    summed = Transpose <perm: ints = [1, 0]> (rows)
}
<domain: "own", opset_import: ["" : 13]>
times <k> (a) => (b) {
    factor = Constant <value_float: float = @k> ()
    b = Mul (a, factor)
}
"""


def main():
    model = onnx.parser.parse_model(TEXT)
    raw = numpy_helper.from_array(np.float32(1), "raw")
    typed = TensorProto(name="typed", data_type=TensorProto.FLOAT, dims=[1], float_data=[3])
    model.graph.initializer.extend([raw, typed])
    model.graph.input.append(helper.make_tensor_value_info("typed", TensorProto.FLOAT, [1]))
    helper.set_model_props(model, {"note": "one of everything"})
    folder = pathlib.Path(__file__).parent
    (folder / "models" / "rich.onnx").write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main()
