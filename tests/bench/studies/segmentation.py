"""Segmentation: DeepLabV3 on MobileNetV3, U-Net, BiSeNetV2; PyTorch eager and compiled, onnxruntime, Linnet. The networks are those of
tests/zoo with seeded weights, the pictures two photographs of scikit-learn's."""

import study  # first: it knows where others lie
import linnet
import numpy as np
import onnx
import onnxruntime
import torch
from onnx2torch import convert
from onnxruntime import quantization
from PIL import Image
from sklearn.datasets import load_sample_image

study.sys.path.insert(0, str(study.ROOT / "tests/zoo"))
import segment  # noqa: E402

NETWORKS = {"DeepLabV3": segment.deeplab_v3, "U-Net": segment.unet, "BiSeNetV2": segment.bisenet_v2}
ENGINES = ["PyTorch", "torch.compile", "ORT", "ORT INT8", "Linnet", "Linnet INT8"]
SHOWN = ["PyTorch", "ORT INT8", "Linnet", "Linnet INT8"]  # whose masks stand side by side
CROPS = 8  # of the photograph of a flower, to calibrate on
MASK_WIDTH = 160
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def tensor(picture, height, width):
    """A picture to [1, 3, height, width] as networks trained on ImageNet have it."""
    pixels = np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BILINEAR)) / 255
    return ((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)[None].astype(np.float32)


def crops(picture, height, width):
    rng = np.random.default_rng(0)
    for _ in range(CROPS):
        h = int(rng.integers(picture.shape[0] // 2, picture.shape[0]))
        w = min(h * width // height, picture.shape[1])
        y, x = (int(rng.integers(0, whole - part + 1)) for whole, part in zip(picture.shape, (h, w)))
        yield tensor(picture[y:y + h, x:x + w], height, width)


class Reader(quantization.CalibrationDataReader):
    def __init__(self, name, pictures):
        self.given = iter([{name: picture} for picture in pictures])

    def get_next(self):
        return next(self.given, None)


def mean_iou(a, b):
    """Of two masks of class numbers: the mean of intersection over union, of the classes that either has."""
    return float(np.mean([((a == k) & (b == k)).sum() / ((a == k) | (b == k)).sum() for k in np.union1d(a, b)]))


def files(name, build):
    """The network for each engine that reads a file, quantized on crops of a photograph that is not measured."""
    made = study.files(name.lower().replace("-", ""))
    model = build()
    onnx.save(model, made["ORT"])
    given = model.graph.input[0]
    height, width = (d.dim_value for d in given.type.tensor_type.shape.dim[2:])
    pictures = list(crops(load_sample_image("flower.jpg"), height, width))
    quantization.quantize_static(made["ORT"], made["ORT INT8"], Reader(given.name, pictures), per_channel=True)
    linnet.convert(made["ORT"], made["Linnet"])
    linnet.convert(made["ORT"], made["Linnet INT8"], int8="static", calibrate=[{given.name: p} for p in pictures], min_snr=15)
    return made, {given.name: tensor(load_sample_image("china.jpg"), height, width)}


def network(name, build):
    made, feeds = files(name, build)
    model = convert(onnx.load(made["ORT"])).eval()
    engines = {"PyTorch": study.of_torch(model, feeds), "torch.compile": study.of_torch(torch.compile(model), feeds)}
    engines |= {engine: study.of_session(study.session(engine, path), feeds) for engine, path in made.items()}
    masks = {engine: run()[0].argmax(1)[0] for engine, run in engines.items()}
    found = {engine: f"{mean_iou(mask, masks['PyTorch']):.4f}" for engine, mask in masks.items() if engine != "PyTorch"}
    size = "x".join(map(str, next(iter(feeds.values())).shape[2:]))
    row = study.Row({"network": name, "input": size}, study.measure(engines), found)
    study.progress(name, {engine: f"{study.mean(t):.3g}" for engine, t in row.times.items()}, found)
    return row, masks, {engine: path.stat().st_size for engine, path in made.items()}


def draw(masks):
    """Masks side by side, a network a row, the colors of their classes from a palette."""
    rows = []
    for found in masks:
        height, width = found["PyTorch"].shape
        small = (MASK_WIDTH, MASK_WIDTH * height // width)
        pictures = [np.asarray(Image.fromarray(found[e].astype(np.uint8)).resize(small, Image.Resampling.NEAREST)) for e in SHOWN]
        rows.append(np.concatenate(pictures, axis=1))
    picture = Image.fromarray(np.concatenate(rows))
    picture.putpalette(np.random.default_rng(4).integers(0, 256, 256 * 3).astype(np.uint8).tobytes())
    picture.save(study.PAGES / "segmentation-masks.png", optimize=True)


def main():
    torch.set_num_threads(study.THREADS)
    rows, masks, sizes = zip(*(network(name, build) for name, build in NETWORKS.items()))
    sizes = {f"{row.case['network']}, {engine}": size for row, each in zip(rows, sizes) for engine, size in each.items()}
    draw(masks)
    study.write(study.Study("segmentation", ENGINES, list(rows), "Pictures", lambda case: 1,
                            f"PyTorch {torch.__version__}, onnxruntime {onnxruntime.__version__}.", sizes),
                "Mean intersection over union with PyTorch's mask")


if __name__ == "__main__":
    main()
