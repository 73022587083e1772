"""What `verify` makes of cases as ONNX's suites have kept them: NaN of small floats, bfloat16 as uint16, other extents than
the model declares."""

import numpy as np
import onnx.parser
import pytest
from harness import linnet, write_case
from onnx import TensorProto, helper

CAST = '<ir_version: 10, opset_import: ["" : 23]> f (float[N] x) => (TYPE[N] y) { y = Cast <to = NUMBER> (x) }'
X = np.float32([1, np.nan, 0.81910545, -2.7182817])  # the last two as bfloat16: 0x3f51 and 0xc02d cut, 0x3f52 and 0xc02e rounded
NAN_AT_1 = [0x3C, 0x7F, 0x3B, 0xC1]  # as float8e5m2


def judged(folder, number, kind, data):
    """verify --suite of a Cast to such a type whose expected output is this data, of such a type."""
    name = TensorProto.DataType.Name(number).lower()
    case = write_case(folder / "node" / "case", onnx.parser.parse_model(CAST.replace("TYPE", name).replace("NUMBER", str(number))),
                      {"x": X}, [X])
    expected = helper.make_tensor("y", kind, [4], bytes(data), raw=True)
    (case / "test_data_set_0/output_0.pb").write_bytes(expected.SerializeToString())
    return linnet("verify", "--suite", folder)


@pytest.mark.parametrize("nan, right", [(0x7D, True), (0x7E, True), (0xFF, True), (0x7C, False), (0x00, False)])
def test_any_nan_is_nan(tmp_path, nan, right):
    data = [nan if code == 0x7F else code for code in NAN_AT_1]
    done = judged(tmp_path, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2, data)
    assert (done.returncode == 0) == right, done.stdout


@pytest.mark.parametrize("kind", [TensorProto.UINT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("below, right", [(0, True), (1, True), (2, False), (-1, False)])
def test_bfloat16_that_was_cut(tmp_path, kind, below, right):
    """Data of the old suites' kind may be one unit lower in magnitude; of bfloat16 proper it may not."""
    codes = np.uint16([0x3F80, 0x7FC0, 0x3F52 - below, 0xC02E - below])
    done = judged(tmp_path, TensorProto.BFLOAT16, kind, codes.tobytes())
    assert (done.returncode == 0) == (right if kind == TensorProto.UINT16 else below == 0), done.stdout


def test_extents_of_the_case(tmp_path):
    """The model declares 3x4 for an input of which the case has one element; what has to fit still has to."""
    text = """<ir_version: 10, opset_import: ["" : 15]>
    f (float[3,4] x, int32[3,4] like) => (int32[3,4] y) { y = CastLike (x, like) }"""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    folder = tmp_path / "node" / "case"
    write_case(folder, onnx.parser.parse_model(text), {"x": x, "like": np.int32([7])}, [x.astype(np.int32)])
    done = linnet("verify", "--suite", tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout and "are constants" in done.stdout, done.stdout
    fed = linnet("verify", folder / "model.onnx")
    assert fed.returncode == 2 and "input like takes int32 3x4, not int32 1" in fed.stderr, "outside of a suite it is a mistake"
    write_case(folder, onnx.parser.parse_model(text), {"x": x, "like": np.int32([7])}, [x.astype(np.int32) + 1])
    assert "1 failed" in linnet("verify", "--suite", tmp_path).stdout
