"""ImageDecoder, which the program brings: what it makes of pictures, beside Pillow, and of what is none."""

import io

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

from harness import linnet

OK = 0


def model(path, pixel_format="RGB"):
    node = helper.make_node("ImageDecoder", ["data"], ["image"], pixel_format=pixel_format)
    graph = helper.make_graph([node], "decoder", [helper.make_tensor_value_info("data", TensorProto.UINT8, ["n"])],
                              [helper.make_tensor_value_info("image", TensorProto.UINT8, ["h", "w", "c"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path.with_suffix(".onnx"))
    done = linnet("convert", path.with_suffix(".onnx"), "-o", path)
    assert done.returncode == OK, done.stderr
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    return {name: model(folder / f"{name}.lnt", name) for name in ("RGB", "BGR", "Grayscale")}


def run(models, data, folder, pixel_format="RGB"):
    (folder / "picture").write_bytes(data)
    return linnet("run", models[pixel_format], "--input", f"data={folder / 'picture'}", "--output", f"image={folder / 'out.npy'}")


def decode(models, data, folder, pixel_format="RGB"):
    done = run(models, data, folder, pixel_format)
    if "Debian's package" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == OK, done.stderr
    return np.load(folder / "out.npy")


def picture(mode="RGB", width=37, height=23):
    """Smooth colors with an edge."""
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x * 7 % 256, y * 11 % 256, (x + y) * 3 % 256], 2).astype(np.uint8)
    pixels[5:9, 10:30] = 255
    made = Image.fromarray(pixels)
    if mode == "RGBA":
        made.putalpha(Image.fromarray((x * y % 256).astype(np.uint8)))
        return made
    return made.convert(mode)


def encoded(made, **how):
    data = io.BytesIO()
    made.save(data, **how)
    return data.getvalue()


@pytest.mark.parametrize("how", [
    {"format": "JPEG"}, {"format": "JPEG", "progressive": True, "quality": 40}, {"format": "JPEG", "subsampling": 0}, {"format": "PNG"},
    {"format": "WEBP"}, {"format": "WEBP", "lossless": True}, {"format": "BMP"}, {"format": "TIFF"},
    {"format": "TIFF", "compression": "tiff_lzw"}, {"format": "TIFF", "compression": "tiff_adobe_deflate"},
    {"format": "JPEG2000"}, {"format": "JPEG2000", "irreversible": True},
    {"format": "PPM"}], ids=str)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_as_pillow_has_it(models, tmp_path, how, mode):
    data = encoded(picture(mode), **how)
    expected = np.array(Image.open(io.BytesIO(data)).convert("RGB"))
    found = decode(models, data, tmp_path)
    assert found.shape == expected.shape and found.dtype == np.uint8
    lossy = how["format"] == "JPEG2000" and how.get("irreversible")  # by floating point
    np.testing.assert_allclose(found.astype(int), expected, rtol=0, atol=1 if lossy else 0)


@pytest.mark.parametrize("mode, how", [
    ("P", {"format": "PNG"}), ("P", {"format": "BMP"}), ("RGBA", {"format": "PNG"}), ("RGBA", {"format": "BMP"}), ("1", {"format": "PNG"}),
    ("1", {"format": "BMP"}), ("1", {"format": "PPM"}), ("RGBA", {"format": "WEBP", "lossless": True, "exact": True}),
    ("1", {"format": "TIFF"}), ("P", {"format": "TIFF"}), ("P", {"format": "PNG", "bits": 4})], ids=str)
def test_other_modes(models, tmp_path, mode, how):
    data = encoded(picture(mode), **how)
    np.testing.assert_array_equal(decode(models, data, tmp_path), np.array(Image.open(io.BytesIO(data)).convert("RGB")))


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (33, 1), (257, 65)], ids=str)
@pytest.mark.parametrize("how", ["JPEG", "PNG", "WEBP", "BMP", "TIFF", "JPEG2000", "PPM"])
def test_extents(models, tmp_path, how, size):
    data = encoded(picture("RGB", *size), format=how)
    np.testing.assert_array_equal(decode(models, data, tmp_path), np.array(Image.open(io.BytesIO(data)).convert("RGB")))


@pytest.mark.parametrize("pixel_format", ["BGR", "Grayscale"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_pixel_formats(models, tmp_path, pixel_format, mode):
    data = encoded(picture(mode), format="PNG")
    image = Image.open(io.BytesIO(data)).convert("RGB")
    expected = np.array(image)[:, :, ::-1] if pixel_format == "BGR" else np.array(image.convert("L"))[:, :, None]
    np.testing.assert_array_equal(decode(models, data, tmp_path, pixel_format), expected)


@pytest.mark.parametrize("data, expected", [
    (b"P1\n3 2\n101\n0 1 0", [[0, 255, 0], [255, 0, 255]]), (b"P2 # a comment\n# another\n2 1 15\n0 15", [[0, 255]]),
    (b"P2\n2 1\n100\n50 1", [[128, 3]]), (b"P4\n10 1\n\xaa\x40", [[0, 255] * 4 + [255, 0]]), (b"P5 3 1 7\n\x00\x03\x07", [[0, 109, 255]]),
    (b"P5 2 1 65535\n\x80\x00\xff\xff", [[128, 255]])], ids=str)
def test_portable_graymaps(models, tmp_path, data, expected):
    found = decode(models, data, tmp_path)
    assert (found[:, :, 0] == expected).all() and (found == found[:, :, :1]).all()


def test_portable_pixmap_as_text(models, tmp_path):
    assert decode(models, b"P3 2 1 255\n1 2 3 255 0 7\n", tmp_path).tolist() == [[[1, 2, 3], [255, 0, 7]]]


def bmp(bits, pixels, width, height, compression=0, behind=b""):
    head = b"BM" + bytes(8) + (54 + len(behind)).to_bytes(4, "little") + (40).to_bytes(4, "little")
    head += width.to_bytes(4, "little") + height.to_bytes(4, "little", signed=True) + b"\1\0" + bits.to_bytes(2, "little")
    return head + compression.to_bytes(4, "little") + bytes(20) + behind + pixels


def test_bmp_of_16_bits_and_from_the_top(models, tmp_path):
    words = np.array([[0x7c00, 0x03e0], [0x001f, 0x7fff]], "<u2")
    colors = [[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 255]]]
    assert decode(models, bmp(16, words.tobytes(), 2, -2), tmp_path).tolist() == colors
    assert decode(models, bmp(16, words.tobytes(), 2, 2), tmp_path).tolist() == colors[::-1]
    masks = b"".join(m.to_bytes(4, "little") for m in (0xf800, 0x07e0, 0x001f))
    assert decode(models, bmp(16, np.array([0xf800, 0x07ff], "<u2").tobytes(), 2, 1, 3, masks), tmp_path).tolist() == [
        [[255, 0, 0], [0, 255, 255]]]


@pytest.mark.parametrize("data, why", [
    (b"", "is empty"), (b"GIF89a" + bytes(40), "no picture"), (b"P6\n9 9\n255\nshort", "ends early"), (b"P6\n0 9\n255\n", "0 x 9"),
    (b"P2\n2 1\n9\n1 10", "too large"), (b"P6\n99999 99999\n255\n", "pixels"), (bmp(24, b"", 5, 5), "ends early"),
    (bmp(8, b"", 5, 5), "palette"), (bmp(24, bytes(200), 5, 5, 1), "compression 1"), (bmp(7, bytes(200), 5, 5), "7 bits"),
    (bmp(24, bytes(200), 2**31 - 1, 2**31 - 1), "ends early"), (bmp(24, bytes(200), 0, -2**31), "pixels"),
    (encoded(picture(), format="JPEG")[:60], "damaged"), (encoded(picture(), format="PNG")[:50], "damaged"),
    (encoded(picture(), format="WEBP")[:60], "damaged"), (encoded(picture(), format="TIFF")[:60], "damaged"),
    (encoded(picture(), format="JPEG2000")[:90], "damaged")], ids=lambda x: str(x)[:30])
def test_what_is_none(models, tmp_path, data, why):
    done = run(models, data, tmp_path)
    if "Debian's package" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode not in (OK, None) and done.returncode > 0 and why in done.stderr, done.stderr
    assert not (tmp_path / "out.npy").exists()


def test_changed_bytes_are_survived(models, tmp_path):
    """Of the formats that are read here."""
    rng = np.random.default_rng(1)
    for data in (encoded(picture("P"), format="BMP"), encoded(picture(), format="BMP"), b"P2 # c\n2 1 15\n0 15",
                 encoded(picture("1"), format="PPM"), encoded(picture(), format="PPM")):
        for _ in range(40):
            changed = bytearray(data)
            for at in rng.integers(0, min(len(data), 70), rng.integers(1, 4)):
                changed[at] = rng.integers(256)
            assert run(models, bytes(changed[:rng.integers(len(data)) if rng.random() < 0.3 else len(data)]), tmp_path).returncode >= 0
