"""RoiAlign as onnxruntime has it: few and many samples to a bin, more channels than one piece of work has, regions that
lie partly or wholly beyond the image or are empty, every mode, any number of threads."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import check_against, check_against_reference, reference

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 3))
REGIONS = [[2, 3, 9, 11], [0, 0, 19.5, 14.25], [5.5, 6.5, 5.75, 7], [7, 7, 7, 7], [-6, -9, 8, 4], [-40, -30, 60, 50],
           [100, 3, 130, 9], [3, -90, 9, -60], [12, 9, 4, 2]]


def model_of(channels, extents, regions, opset=16, element=TensorProto.FLOAT, **attributes):
    images, n = 2, len(regions)
    node = helper.make_node("RoiAlign", ["x", "rois", "batch"], ["y"], **attributes)
    shape = [n, channels, attributes.get("output_height", 1), attributes.get("output_width", 1)]
    graph = helper.make_graph(
        [node], "regions",
        [helper.make_tensor_value_info("x", element, [images, channels, *extents]),
         helper.make_tensor_value_info("rois", element, [n, 4]),
         helper.make_tensor_value_info("batch", TensorProto.INT64, [n])],
        [helper.make_tensor_value_info("y", element, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    rng, of = np.random.default_rng(3), helper.tensor_dtype_to_np_dtype(element)
    return model, {"x": rng.standard_normal((images, channels, *extents)).astype(of),
                   "rois": np.array(regions, of), "batch": np.arange(n, dtype=np.int64) % images}


def check(folder, *args, bound="1e-5", **attributes):
    model, feeds = model_of(*args, **attributes)
    check_against_reference(folder, model, feeds, "--max-rel", bound, ways=WAYS)


def check_against_doubles(folder, *args, bound, **attributes):
    """The same against what onnxruntime makes of the model in doubles."""
    model, feeds = model_of(*args, **attributes)
    wide = model_of(*args, element=TensorProto.DOUBLE, **attributes)[0]
    exact = reference(wide, {name: x if name == "batch" else x.astype(np.float64) for name, x in feeds.items()})
    check_against(folder, model, feeds, [y.astype(np.float32) for y in exact], "--max-rel", bound, ways=WAYS)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
def test_modes(tmp_path, mode, ratio, transformation):
    check(tmp_path, 3, (15, 20), REGIONS, mode=mode, sampling_ratio=ratio, output_height=3, output_width=5,
          coordinate_transformation_mode=transformation, spatial_scale=0.75)


@pytest.mark.parametrize("ratio", [0, 2])
def test_more_channels_than_a_piece_has(tmp_path, ratio):
    check(tmp_path, 521, (9, 7), REGIONS, sampling_ratio=ratio, output_height=2, output_width=2)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_most_samples(tmp_path, mode):
    """Sums of 65,536, which onnxruntime's floats have wrong in the fourth digit."""
    check_against_doubles(tmp_path, 19, (15, 20), REGIONS, mode=mode, sampling_ratio=256, output_height=2, output_width=3,
                          bound="1e-4")


@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
def test_regions_far_larger_than_the_image(tmp_path, transformation):
    """Most of their thousands of points lie outside: they are counted, and not looked at."""
    check(tmp_path, 2, (6, 5), [[-2000, 1, 3000, 4], [1, -1500, 4, 900], [-700, -800, 900, 600]], bound="1e-4",
          output_height=1, output_width=2, coordinate_transformation_mode=transformation)


def test_of_doubles(tmp_path):
    check(tmp_path, 3, (15, 20), REGIONS, element=TensorProto.DOUBLE, output_height=4, output_width=4)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("channels, ratio", [(5, 0), (19, 2), (300, 3), (2, 64)])
def test_between_convolutions(tmp_path, mode, channels, ratio):
    """Channels last: the image comes from one convolution, the regions go to another."""
    model, feeds = model_of(channels, (15, 20), REGIONS, mode=mode, sampling_ratio=ratio, output_height=3, output_width=5)
    rng = np.random.default_rng(channels)
    for name in ("before", "behind"):
        weights = rng.standard_normal((channels, channels, 3, 3)).astype(np.float32) / channels
        model.graph.initializer.append(numpy_helper.from_array(weights, name))
    node = model.graph.node[0]
    node.input[0], node.output[0] = "image", "regions"
    model.graph.node.insert(0, helper.make_node("Conv", ["x", "before"], ["image"], pads=[1] * 4))
    model.graph.node.append(helper.make_node("Conv", ["regions", "behind"], ["y"], pads=[1] * 4))
    check_against_reference(tmp_path, model, feeds, "--max-rel", "1e-4", ways=WAYS)


def test_first_version(tmp_path):
    check(tmp_path, 3, (15, 20), REGIONS, opset=10, output_height=3, output_width=5, sampling_ratio=2)
