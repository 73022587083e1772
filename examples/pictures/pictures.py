#!/usr/bin/env python3
"""pictures.py MODEL PICTURE [-o DRAWN.png]: what is in a picture? Prints classes, boxes of faces or the areas of a mask, and
writes the picture with them drawn on it. What the model computes is seen from its outputs.

A module, too: decode() reads a picture that anybody may have sent, PictureModel looks at it, draw() shows the answer."""

import argparse
import colorsys
import io
import json
import pathlib
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

import linnet

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
PIXELS = 50_000_000  # a picture unpacks to three bytes for each
SIDE = 640  # of models that take any size
MULTIPLE = 32  # of which their sides have to be
STRIDES = (8, 16, 32)  # of YuNet's three grids
IMAGENET = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
RANGES = {
    "raw": lambda x: x,
    "unit": lambda x: x / 255,
    "signed": lambda x: (x - 127) / 128,
    "imagenet": lambda x: (x / 255 - IMAGENET[0]) / IMAGENET[1],
}


class BadPicture(ValueError):
    """What was sent is no picture that can be looked at; the message says why."""


def decode(data):
    """The RGB picture in bytes from anywhere, upright as the camera noted it. Decoders fail in many ways on what is none."""
    try:
        picture = Image.open(io.BytesIO(data), formats=FORMATS)
        width, height = picture.size
    except Exception as why:
        raise BadPicture(f"this is no picture of {', '.join(FORMATS)}") from why
    if width * height > PIXELS:
        raise BadPicture(f"a picture of {width} x {height}: at most {PIXELS // 1_000_000} megapixels are taken")
    try:
        return ImageOps.exif_transpose(picture).convert("RGB")
    except Exception as why:
        raise BadPicture(f"the picture cannot be read, it may be cut short: {why}") from why


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def best_boxes(boxes, scores, least, overlap=0.3):
    """Numbers of the boxes (n x 4, corners) that score `least` or more and overlap none that scores higher: greedy
    non-maximum suppression."""
    left, kept = [i for i in np.argsort(-scores) if scores[i] >= least], []
    area = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=1)
    while left:
        kept.append(left[0])
        rest = np.array(left[1:], int)
        low, high = np.maximum(boxes[left[0], :2], boxes[rest, :2]), np.minimum(boxes[left[0], 2:], boxes[rest, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        left = list(rest[common <= overlap * np.maximum(area[left[0]] + area[rest] - common, 1e-9)])
    return kept


class PictureModel:
    """A model whose one input is a picture, N x C x H x W or N x H x W x C of 1 or 3 channels, whose sides may be open.

    kind: "classes", "faces" (outputs of YuNet or UltraFace) or "mask" (a score for each class and pixel); values: a key of
    RANGES. None: what the outputs, and models of that kind, suggest."""

    def __init__(self, path, labels=(), kind=None, values=None, threads=0):
        options = linnet.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = linnet.InferenceSession(str(path), options)
        self.labels = list(labels)
        inputs = self.session.get_inputs()
        self.input = inputs[0]
        shape = self.input.shape
        channels_at = [axis for axis in (1, 3) if len(shape) == 4 and shape[axis] in (1, 3)]
        if len(inputs) != 1 or not channels_at or self.input.type not in ("tensor(float)", "tensor(uint8)"):
            raise ValueError(f"{path} takes no picture: one input, N x C x H x W or N x H x W x C, of 1 or 3 channels")
        self.last, self.channels = channels_at[0] == 3, shape[channels_at[0]]
        self.height, self.width = shape[1:3] if self.last else shape[2:4]
        self.names = [o.name for o in self.session.get_outputs()]
        self.yunet = {f"{what}_{s}" for what in ("cls", "obj", "bbox") for s in STRIDES} <= set(self.names)
        self.kind = kind or self._kind()
        self.values = RANGES[values or self._values()]

    def _kind(self):
        if self.yunet or {"scores", "boxes"} <= set(self.names):
            return "faces"
        shape = self.session.get_outputs()[0].shape
        return "mask" if len(shape) == 4 and tuple(shape[2:]) != (1, 1) else "classes"

    def _values(self):
        if self.yunet or self.input.type == "tensor(uint8)":
            return "raw"
        return "signed" if self.kind == "faces" else "imagenet" if self.channels == 3 else "unit"

    def _size(self, picture):
        """Width and height that the model is given."""
        scale = min(1, SIDE / max(picture.size))
        sides = (-(-round(side * scale) // MULTIPLE) * MULTIPLE for side in picture.size)
        return tuple(known if isinstance(known, int) else side for known, side in zip((self.width, self.height), sides))

    def _fit(self, picture):
        """The picture at the model's size, and the pixels of the picture that one of its pixels is, across and down. Faces
        keep their shape, with black below or beside; of what is classified the middle is looked at."""
        size = self._size(picture)
        if self.kind == "faces":
            padded, largest = Image.new("RGB", size), float("inf") if isinstance(self.width, int) else 1
            scale = min(size[0] / picture.width, size[1] / picture.height, largest)
            padded.paste(picture.resize([max(1, round(side * scale)) for side in picture.size], Image.Resampling.BILINEAR))
            return padded, (1 / scale, 1 / scale)
        fitted = ImageOps.fit(picture, size) if self.kind == "classes" else picture.resize(size, Image.Resampling.BILINEAR)
        return fitted, (picture.width / size[0], picture.height / size[1])

    def tensor(self, fitted):
        """The picture as the model takes it."""
        x = np.asarray(fitted if self.channels == 3 else fitted.convert("L"), np.float32)
        x = self.values(x.reshape(*x.shape[:2], self.channels))
        x = (x[..., ::-1] if self.yunet else x)[None]
        return np.ascontiguousarray(x if self.last else x.transpose(0, 3, 1, 2), numpy_type(self.input))

    def look(self, picture):
        """What is in the picture, as JSON has it; of a mask the classes by pixel are in "mask"."""
        fitted, scale = self._fit(picture)
        outputs = dict(zip(self.names, self.session.run(None, {self.input.name: self.tensor(fitted)})))
        seen = {"faces": self._faces, "mask": self._mask, "classes": self._classes}[self.kind](outputs, fitted, scale, picture)
        return {"kind": self.kind, "width": picture.width, "height": picture.height, **seen}

    def label(self, number):
        return self.labels[number] if number < len(self.labels) else f"class {number}"

    def _classes(self, outputs, *_):
        scores = outputs[self.names[0]].astype(np.float32).ravel()
        if scores.min() < 0 or abs(scores.sum() - 1) > 1e-2:
            scores = softmax(scores)
        best = np.argsort(-scores, kind="stable")[:5]
        return {"classes": [{"label": self.label(i), "score": float(scores[i])} for i in best]}

    def _faces(self, outputs, fitted, scale, picture):
        boxes, scores, points = (yunet_faces if self.yunet else ultraface_faces)(outputs, fitted.size)
        corners = boxes.reshape(-1, 2, 2) * scale
        corners = np.clip(corners, 0, picture.size).reshape(-1, 4)
        kept = best_boxes(corners, scores, 0.6 if self.yunet else 0.7)
        return {"faces": [{"box": [round(float(v), 1) for v in corners[i]], "score": float(scores[i]),
                           "points": np.round(points[i] * scale, 1).tolist()} for i in kept]}

    def _mask(self, outputs, fitted, scale, picture):
        scores = outputs[self.names[0]][0]
        if len(scores) == 1:  # one score a pixel: a probability, or its logit
            mask = (scores[0] > (0.5 if 0 <= scores.min() and scores.max() <= 1 else 0)).astype(np.uint8)
        else:
            mask = scores.argmax(axis=0).astype(np.uint8)
        mask = np.asarray(Image.fromarray(mask).resize(picture.size, Image.Resampling.NEAREST))
        share = np.bincount(mask.ravel()) / mask.size
        areas = [{"label": self.label(i), "share": float(share[i]), "color": list(color(i))} for i in np.flatnonzero(share)]
        return {"areas": areas, "mask": mask}


def numpy_type(port):
    return {"tensor(float)": np.float32, "tensor(uint8)": np.uint8}[port.type]


def yunet_faces(outputs, size):
    """Boxes (corners), scores and five points each of Wu et al., "YuNet: A Tiny Millisecond-level Face Detector" (2023): each
    cell of three grids has the middle of a face in cells from its own corner, the logarithm of its extents, and the points."""
    boxes, scores, points = [], [], []
    for stride in STRIDES:
        columns, rows = size[0] // stride, size[1] // stride
        corner = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), -1).reshape(-1, 2)
        cls, obj, bbox = (outputs[f"{what}_{stride}"].reshape(len(corner), -1) for what in ("cls", "obj", "bbox"))
        kps = outputs.get(f"kps_{stride}")
        middle, half = corner + bbox[:, :2], np.exp(np.minimum(bbox[:, 2:], 20)) / 2
        boxes.append(np.concatenate([middle - half, middle + half], axis=1) * stride)
        scores.append(np.sqrt(np.clip(cls, 0, 1) * np.clip(obj, 0, 1))[:, 0])
        points.append(np.zeros((len(corner), 0, 2)) if kps is None else (kps.reshape(len(corner), -1, 2) + corner[:, None]) * stride)
    return np.concatenate(boxes), np.concatenate(scores), np.concatenate(points)


def ultraface_faces(outputs, size):
    """Boxes, scores and no points: the outputs are corners in widths and heights, and scores of nothing and of a face."""
    boxes, scores = outputs["boxes"][0] * np.tile(size, 2), outputs["scores"][0, :, 1]
    return boxes, scores, np.zeros((len(boxes), 0, 2))


def color(number):
    """Neighboring numbers look different; 0, the background, is black."""
    return tuple(round(255 * v) for v in colorsys.hsv_to_rgb(number * 0.618 % 1, 0.9, 1.0)) if number else (0, 0, 0)


def draw(picture, seen):
    """A copy of the picture with what was seen."""
    drawn = picture.copy()
    pen, width = ImageDraw.Draw(drawn), max(2, max(picture.size) // 200)
    font = ImageFont.load_default(max(12, max(picture.size) // 30))
    if seen["kind"] == "mask":
        table = np.array([color(i) for i in range(256)], np.uint8)
        painted = Image.blend(drawn, Image.fromarray(table[seen["mask"]]), 0.5)
        drawn.paste(painted, mask=Image.fromarray(np.where(seen["mask"] > 0, 255, 0).astype(np.uint8)))
    for face in seen.get("faces", ()):
        pen.rectangle(face["box"], outline=(0, 255, 0), width=width)
        for x, y in face["points"]:
            pen.ellipse([x - width, y - width, x + width, y + width], fill=(255, 64, 64))
    for best in seen.get("classes", ())[:1]:
        text = f"{best['label']} {best['score']:.0%}"
        pen.rectangle(pen.textbbox((width, width), text, font=font), fill=(0, 0, 0))
        pen.text((width, width), text, fill=(255, 255, 255), font=font)
    return drawn


def plain(seen):
    """What json.dumps takes."""
    return {key: value for key, value in seen.items() if key != "mask"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="an .lnt or .onnx file")
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("-o", "--output", help="the picture with the answer drawn on it")
    parser.add_argument("--labels", type=pathlib.Path, help="a file with the name of a class on each line")
    parser.add_argument("--kind", choices=("classes", "faces", "mask"))
    parser.add_argument("--values", choices=RANGES, help="of a pixel: 0..255, 0..1, -1..1, or as of ImageNet's mean and deviation")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def line(seen):
    for item in seen.get("classes", ()):
        yield f"{item['score']:7.1%}  {item['label']}"
    for item in seen.get("faces", ()):
        yield f"{item['score']:7.1%}  face from {item['box'][0]:.0f},{item['box'][1]:.0f} to {item['box'][2]:.0f},{item['box'][3]:.0f}"
    for item in seen.get("areas", ()):
        yield f"{item['share']:7.1%}  {item['label']}"


def main():
    asked = arguments()
    try:
        labels = asked.labels.read_text().splitlines() if asked.labels else ()
        model = PictureModel(asked.model, labels, asked.kind, asked.values)
        picture = decode(asked.picture.read_bytes())
        seen = model.look(picture)
        if asked.output:
            draw(picture, seen).save(asked.output)
    except (OSError, ValueError, linnet.LinnetError) as why:
        sys.exit(f"pictures: {why}")
    print(json.dumps(plain(seen)) if asked.json else "\n".join(line(seen)) or "nothing found")


if __name__ == "__main__":
    main()
