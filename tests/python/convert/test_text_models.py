"""Models in protobuf's text form: the same .lnt as from the binary one; errors with line and column."""

import re

import numpy as np
import onnx
import onnx.parser
import pytest
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor as Field
from onnx import TensorProto, helper, numpy_helper

from harness import LONG, linnet

FILE, USAGE = 3, 2
SMALL = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17], producer_name: "a \\"quoted\\" name">
    m (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1.5, -2, 1e-30}> {
        a = Mul (x, w) b = LeakyRelu <alpha = 0.25> (a)
        y = Clip (b, , ) }""")


def converted(path):
    done = linnet("convert", path, "-o", path.with_suffix(".lnt"))
    assert done.returncode == 0, done.stderr
    return path.with_suffix(".lnt").read_bytes()


def both(folder, model):
    """The .lnt files of the model's two forms."""
    onnx.save(model, folder / "binary.onnx")
    (folder / "text.textproto").write_text(text_format.MessageToString(model))
    return converted(folder / "binary.onnx"), converted(folder / "text.textproto")


def branching():
    """Subgraphs, tensors of every type, strings of every kind, metadata."""
    rng, info = np.random.default_rng(1), helper.make_tensor_value_info
    arrays = {f"c{i}": rng.integers(0, 2, 5).astype(t) for i, t in enumerate("f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8 ?".split())}
    arrays["c4"][0], arrays["c6"][0], arrays["c10"][0] = -2**15, -2**63, 2**64 - 1
    arrays["c0"][:3] = np.inf, -np.inf, np.nan
    data = {"FLOAT": [0.1, -1e-40, 3.4e38], "DOUBLE": [1e300, -0.1], "INT64": [-2**63, 2**63 - 1], "UINT64": [2**64 - 1],
            "INT32": [-2**31, 2**31 - 1], "BFLOAT16": [1.5, -2]}
    typed = [helper.make_tensor(f"t{i}", getattr(TensorProto, t), [len(v)], v) for i, (t, v) in enumerate(data.items())]
    constants = [numpy_helper.from_array(v, k) for k, v in arrays.items()] + typed
    branch = [helper.make_graph([helper.make_node(op, ["x"], ["z"])], op, [], [info("z", TensorProto.FLOAT, ["N"])])
              for op in ("Neg", "Abs")]
    odd = "tabs\t, quotes \" ' and lines\n of it, ä€😀"
    nodes = [helper.make_node("If", ["go"], ["y"], then_branch=branch[0], else_branch=branch[1]),
             *[helper.make_node("Identity", [t.name], [f"o{t.name}"], name=t.name + odd) for t in constants]]
    outputs = [info("y", TensorProto.FLOAT, ["N"])] + [info(f"o{t.name}", t.data_type, list(t.dims)) for t in constants]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, ["N"]), info("go", TensorProto.BOOL, [])], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, doc_string="of \\ every\0 kind\x7f")
    helper.set_model_props(model, {"license": "MIT", "empty": ""})
    return model


def test_the_same_file_comes_of_both_forms(tmp_path):
    for model in (SMALL, branching()):
        binary, text = both(tmp_path, model)
        assert binary == text


def test_real_models(tmp_path, shared):
    for name in ("silero_vad_v6", "mnist12", "tiny_transformer", "tract_qlstm") if LONG else ("tiny_transformer",):
        binary, text = both(tmp_path, onnx.load(shared / "models" / name / "model.onnx"))
        assert binary == text, name


def test_every_verb_takes_them_by_name_or_contents(tmp_path):
    text = text_format.MessageToString(SMALL)
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    for ending in ("textproto", "pbtxt", "prototxt", "onnxtxt"):
        path = tmp_path / f"m.{ending}"
        path.write_text("# a comment first\n\n" + text)
        for words in (["info", path], ["run", path, "--input", f"x={tmp_path}/x.npy", "--output", f"y={tmp_path}/y.npy"]):
            done = linnet(*words)
            assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.float32([[1.5, -0.5, 1e-30]] * 2))
        assert linnet("convert", path).returncode == 0 and (tmp_path / "m.lnt").exists()
        (tmp_path / "m.lnt").unlink()
        done = linnet("convert", path, "-o", tmp_path / f"o.{ending}")
        assert done.returncode == USAGE and "nobody should take for ONNX" in done.stderr
    (tmp_path / "named.onnx").write_text(text)
    assert linnet("convert", tmp_path / "named.onnx").returncode == 0


def test_every_way_to_write_it(tmp_path):
    """Lists, other brackets, separators, comments, escapes and numbers: the same file as from what protobuf itself reads."""
    text = r"""
        ir_version: 0x8;  producer_name: 'a "quoted" ' "name" # two literals
        opset_import <domain: "" version: 021>
        graph: {
          name: "\155\x6d\u00e4\U0001F600\a\b\f\n\r\t\v\\\'\"",
          node [{ input: ["x", "w"] output: "y" op_type: "Mul" attribute [] }]
          input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim <dim_value: 3> } } } }
          output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 3 } } } } }
          initializer { name: "w" data_type: 1 dims: [3] float_data: [1.5f, -2., .5e+1] }
        }"""
    (tmp_path / "a.textproto").write_text(text)
    onnx.save(text_format.Parse(text, onnx.ModelProto()), tmp_path / "b.onnx")
    assert converted(tmp_path / "a.textproto") == converted(tmp_path / "b.onnx")
    named = text.replace("data_type: 1", "data_type: FLOAT").replace("elem_type: 1", "elem_type: FLOAT")
    (tmp_path / "c.textproto").write_text(named)
    assert converted(tmp_path / "c.textproto") == converted(tmp_path / "b.onnx")


def fields_of_every_message():
    """(path of field names from the model down, field) of each message's fields once."""
    seen, queue = set(), [((), onnx.ModelProto.DESCRIPTOR)]
    while queue:
        path, message = queue.pop(0)
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for field in message.fields:
            yield path, message, field
            if field.message_type:
                queue.append((path + (field.name,), field.message_type))


def test_every_field_of_onnx_is_known(tmp_path):
    """One is added to an empty model at a time: what is wrong with that is not its text."""
    values = {Field.TYPE_STRING: '"s"', Field.TYPE_BYTES: '"\\000"', Field.TYPE_FLOAT: "-1.5", Field.TYPE_DOUBLE: "inf",
              Field.TYPE_MESSAGE: "{}"}
    fields = list(fields_of_every_message())
    assert len(fields) > 110
    for path, message, field in fields:
        value = values.get(field.type, field.enum_type.values[-1].name if field.enum_type else "3")
        text = f"{field.name}: {f'[{value}, {value}]' if field.is_repeated else value}"
        for name in reversed(path):
            text = f"{name} {{ {text} }}"
        text_format.Parse(text, onnx.ModelProto())
        (tmp_path / "m.textproto").write_text(text)
        done = linnet("convert", tmp_path / "m.textproto")
        assert done.returncode == FILE and "line " not in done.stderr, (message.full_name, field.name, done.stderr)


@pytest.mark.parametrize("text, place, says", [
    ("ir_versoin: 8", (1, 1), "ModelProto has no field 'ir_versoin'"),
    ("ir_version: 8\ngraph {\n  node { op_typ: \"A\" }\n}", (3, 10), "NodeProto has no field 'op_typ'"),
    ("ir_version 8", (1, 12), "a colon is missing behind ir_version"),
    ("ir_version: ", (1, 13), "a value is missing"),
    ("ir_version: eight", (1, 13), "ir_version: 'eight' is no whole number"),
    ("ir_version: 8.5", (1, 13), "no whole number"),
    ("ir_version: 9223372036854775808", (1, 13), "out of range"),
    ("ir_version: 8 ir_version: 9", (1, 15), "ir_version is there twice"),
    ("ir_version: [8, 9]", (1, 13), "ir_version is no list"),
    ("producer_name: name", (1, 16), "takes a string between quotes"),
    ("producer_name: \"name", (1, 16), "does not end"),
    ("producer_name: \"na\nme\"", (1, 16), "does not end on its line"),
    ("producer_name: \"\\q\"", (1, 17), "no character is written so"),
    ("producer_name: \"\\ud800\"", (1, 17), "no character is written so"),
    ("producer_name: \"\\777\"", (1, 17), "no character is written so"),
    ("graph {\n\tname: \"g\"\n", (1, 7), "not closed by }"),
    ("graph < name: \"g\" }", (1, 19), "a field of GraphProto is expected, not '}'"),
    ("graph: 3", (1, 8), "graph takes a message"),
    ("ir_version: 8 }", (1, 15), "a field of ModelProto is expected, not '}'"),
    ("ir_version: 8\n[a.b]: 3", (2, 1), "is expected, not '['"),
    ("graph { node { input: [\"a\" \"b\", \"c\"; \"d\"] } }", (1, 36), "a list goes on with , or ends with ]"),
    ("graph { node { attribute { f: 0x1p3 } } }", (1, 31), "'0x1p3' is no number"),
    ("graph { node { attribute { f: 1.2.3 } } }", (1, 31), "no number"),
    ("graph { node { attribute { f: 1e } } }", (1, 31), "no number"),
    ("graph { node { attribute { type: SOMETHING } } }", (1, 34), "none of the names"),
    ("graph { initializer { data_type: 3000000000 } }", (1, 34), "out of range"),
    ("graph { initializer { uint64_data: -1 } }", (1, 36), "out of range"),
    ("ir_version: " + "1" * 70, (1, 13), "more than 63 characters"),
    ("ir_version: 8 \0", (1, 15), "is expected"),
    ("graph { " + "node { attribute { g { " * 40, (1, 14 + 23 * 33), "more than 100 messages within each other"),
])
def test_what_is_wrong_has_its_place(tmp_path, text, place, says):
    path = tmp_path / "m.textproto"
    path.write_bytes(text.encode())
    done = linnet("convert", path)
    assert done.returncode == FILE and says in done.stderr, done.stderr
    assert f"m.textproto: line {place[0]}, column {place[1]}: " in done.stderr, done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["m.textproto"]


def test_forms_that_are_not_read_name_the_way_out(tmp_path):
    for kind in ("onnxtxt", "json"):
        onnx.save(SMALL, tmp_path / "m.onnxtxt", format=kind)
        done = linnet("convert", tmp_path / "m.onnxtxt")
        assert done.returncode == FILE and f'format="{kind}"' in done.stderr, done.stderr
    (tmp_path / "m.textproto").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "git lfs pull" in linnet("convert", tmp_path / "m.textproto").stderr
    (tmp_path / "m.textproto").write_text("")
    assert linnet("convert", tmp_path / "m.textproto").returncode == FILE


def test_damaged_texts_are_refused_or_read_as_protobuf_reads_them(tmp_path):
    rng, text = np.random.default_rng(5), text_format.MessageToString(SMALL)
    path = tmp_path / "m.textproto"
    for turn in range(400 if LONG else 80):
        changed = bytearray(text.encode())
        for at in rng.integers(0, len(changed), 1 + turn % 3):
            changed[at] = int(rng.choice(list(b'{}[]<>:;,#"\\ \n-.0179aezE\x00\xff')))
        path.write_bytes(changed)
        done = linnet("convert", path)
        assert done.returncode in (0, FILE, 4), (bytes(changed), done.stderr)
        if re.search(r"line \d+, column", done.stderr):
            continue
        try:
            text_format.Parse(bytes(changed).decode(), onnx.ModelProto())
        except (text_format.ParseError, UnicodeDecodeError) as e:
            assert "UTF-8" in str(e) or isinstance(e, UnicodeDecodeError) or b"\xff" in changed, (bytes(changed), str(e), done.stderr)
