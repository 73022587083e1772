"""examples/pictures: classes, faces and masks of pictures whose content is known."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from PIL import Image

from harness import ROOT, import_package

import_package()
sys.path.append(str(ROOT / "examples" / "pictures"))
import pictures  # noqa: E402
import small_pictures  # noqa: E402

PROGRAM = ROOT / "examples" / "pictures" / "pictures.py"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {make.__name__: make(folder / f"{make.__name__}.lnt")
            for make in (small_pictures.faces, small_pictures.colors, small_pictures.areas)}


def png(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def with_square(size, x, y, value=(255, 255, 255), side=8):
    """A black picture with a square."""
    array = np.zeros((size[1], size[0], 3), np.uint8)
    array[y:y + side, x:x + side] = value
    return array


def program(*words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run([sys.executable, PROGRAM, *map(str, words)], env=environment, capture_output=True, text=True, timeout=60)


def test_a_face_is_where_it_is(models):
    model = pictures.PictureModel(models["faces"])
    (face,) = model.look(Image.fromarray(with_square((96, 64), 40, 16)))["faces"]
    assert face["box"] == [40, 16, 48, 24] and face["points"] == [[44, 20]] * 5 and face["score"] == pytest.approx(1)
    # Twice and half as large as what the model is given, and of sides that are no multiples of 32.
    (face,) = model.look(Image.fromarray(with_square((1280, 640), 320, 96, side=16)))["faces"]
    assert face["box"] == [320, 96, 336, 112]
    (face,) = model.look(Image.fromarray(with_square((50, 33), 16, 8)))["faces"]
    assert face["box"] == [16, 8, 24, 16]


def test_classes_and_areas(models):
    red = np.zeros((48, 80, 3), np.uint8)
    red[..., 0] = 200
    seen = pictures.PictureModel(models["colors"], ["red", "green"], values="raw").look(Image.fromarray(red))
    assert [c["label"] for c in seen["classes"]] == ["red", "green", "class 2"] and seen["classes"][0]["score"] > 0.99
    areas = pictures.PictureModel(models["areas"], values="raw").look(Image.fromarray(with_square((64, 64), 0, 0, (0, 255, 0), 32)))
    assert [(a["label"], a["share"]) for a in areas["areas"]] == [("class 0", 0.75), ("class 2", 0.25)]
    drawn = np.asarray(pictures.draw(Image.fromarray(np.zeros((64, 64, 3), np.uint8)), areas))
    assert drawn[:32, :32].any() and not drawn[32:].any() and not drawn[:, 32:].any()


def test_the_program(models, tmp_path):
    (tmp_path / "p.png").write_bytes(png(with_square((96, 64), 40, 16)))
    done = program(models["faces"], tmp_path / "p.png", "-o", tmp_path / "drawn.png", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["faces"][0]["box"] == [40, 16, 48, 24]
    drawn = np.asarray(Image.open(tmp_path / "drawn.png"))
    assert tuple(drawn[16, 44]) == (0, 255, 0) and not drawn[:8].any()
    done = program(models["faces"], models["faces"])
    assert done.returncode == 1 and done.stderr.startswith("pictures: this is no picture") and "Traceback" not in done.stderr


def test_what_is_no_picture():
    whole = png(np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8))
    assert pictures.decode(whole).size == (64, 64)
    for data, why in ((b"", "no picture"), (b"GIF89a", "no picture"), (whole[:len(whole) // 2], "cut short"), (b"%PDF-1.4", "no picture")):
        with pytest.raises(pictures.BadPicture, match=why):
            pictures.decode(data)
    bomb = io.BytesIO()
    Image.new("1", (10000, 6000)).save(bomb, "PNG")
    assert len(bomb.getvalue()) < 100_000
    with pytest.raises(pictures.BadPicture, match="10000 x 6000: at most 50 megapixels"):
        pictures.decode(bomb.getvalue())


def test_a_camera_that_was_turned():
    file, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 20)).save(file, "JPEG", exif=exif)
    assert pictures.decode(file.getvalue()).size == (20, 40)


def test_models_that_take_no_pictures(tmp_path):
    path = tmp_path / "m.onnx"
    model = '<ir_version: 8, opset_import: ["" : 18]> m (float[2, 4] x) => (float[2, 4] y) { y = Neg (x) }'
    onnx.save(onnx.parser.parse_model(model), path)
    with pytest.raises(ValueError, match="takes no picture"):
        pictures.PictureModel(path)


def given(folder, file):
    tensor = onnx.TensorProto()
    tensor.ParseFromString((folder / "test_data_set_0" / file).read_bytes())
    return numpy_helper.to_array(tensor)


def test_real_detectors_find_the_same_faces(shared):
    yunet, ultraface = (shared / "models" / name for name in ("yunet_n_dynamic", "ultraface_rfb_320"))
    bgr = given(yunet, "input_0.pb")[0]
    photo = Image.fromarray(bgr[::-1].transpose(1, 2, 0).astype(np.uint8))
    found = [np.array([f["box"] for f in pictures.PictureModel(path / "model.onnx").look(photo)["faces"]]) for path in (yunet, ultraface)]
    assert all(len(boxes) > 35 for boxes in found)
    middle = [boxes.reshape(-1, 2, 2).mean(axis=1) for boxes in found]
    near = np.linalg.norm(middle[0][:, None] - middle[1], axis=2).min(axis=1) < 4
    assert near.mean() > 0.8


def test_a_real_classifier_reads_a_digit(shared):
    folder = shared / "models" / "mnist12"
    digit = Image.fromarray(given(folder, "input_0.pb")[0, 0].astype(np.uint8))
    seen = pictures.PictureModel(folder / "model.onnx", values="raw").look(digit.convert("RGB"))
    assert seen["classes"][0]["label"] == f"class {given(folder, 'output_0.pb').argmax()}"
