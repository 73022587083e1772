"""examples/web: a server of two workers, asked by its page's requests, by Triton's client and by senders of rubbish."""

import base64
import concurrent.futures
import gzip
import io
import json
import re
import time

import numpy as np
import onnx
import onnx.parser
import pytest
import requests
from PIL import Image

import pages
from harness import ROOT, import_package, reference
from web_server import PATIENCE, children, running

linnet = import_package()
import small_pictures  # noqa: E402

triton = pytest.importorskip("tritonclient.http")
from tritonclient.utils import InferenceServerException, np_to_triton_dtype  # noqa: E402

PNG = {"Content-Type": "image/png"}
ALL_TYPES = {"FP32": "float", "FP64": "double", "FP16": "float16", "INT8": "int8", "INT16": "int16", "INT32": "int32",
             "INT64": "int64", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "BOOL": "bool"}
MIXED = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
mixed (float[N, 4] x, int64[N] ids, bool[N] flags) => (float[N, 4] y, int64[N] next, float[N, 4] ratio) {
    one = Constant <value_int = 1> ()
    axis = Constant <value_ints = [1]> ()
    next = Add (ids, one)
    wide = Cast <to = 1> (ids)
    column = Unsqueeze (wide, axis)
    chosen = Unsqueeze (flags, axis)
    sum = Add (x, column)
    y = Where (chosen, sum, x)
    ratio = Div (x, x)
}""")


def types_model():
    """One input and one output of each type."""
    ports = [", ".join(f"{t}[N] {side}_{t}" for t in ALL_TYPES.values()) for side in ("in", "out")]
    body = "\n".join(f"out_{t} = Identity (in_{t})" for t in ALL_TYPES.values())
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\ntypes ({ports[0]}) => ({ports[1]}) {{\n{body}\n}}')


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    models = [f"{make.__name__}={make(folder / (make.__name__ + '.lnt'))}"
              for make in (small_pictures.faces, small_pictures.colors, small_pictures.areas)]
    for name, model in (("mixed", MIXED), ("types", types_model())):
        onnx.save(model, folder / f"{name}.onnx")
        models.append(str(folder / f"{name}.onnx"))
    models.append(f"large={pages.make(folder)}")
    (folder / "labels.txt").write_text("red\ngreen\nblue\n")
    options = [word for model in models for word in ("--model", model)]
    with running(*options, "--workers", 2, "--threads", 1, "--values", "raw", "--labels", folder / "labels.txt") as (url, pid):
        yield url, pid, folder


@pytest.fixture(scope="module")
def url(server):
    return server[0]


@pytest.fixture
def client(url):
    with triton.InferenceServerClient(url.removeprefix("http://")) as client:
        yield client


def png(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def with_square(x, y, size=(128, 128)):
    array = np.zeros((size[1], size[0], 3), np.uint8)
    array[y:y + 8, x:x + 8] = 255
    return png(array)


def shown(answer):
    head, _, data = answer["picture"].partition(",")
    assert head == "data:image/jpeg;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int)


# ---- the page's requests ----

def test_the_page_needs_nobody_else(url):
    answer = requests.get(url + "/", timeout=PATIENCE)
    assert answer.ok and 'name="viewport"' in answer.text and "http" not in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert requests.get(url + "/models", timeout=PATIENCE).json() == {"faces": "faces", "colors": "classes", "areas": "mask"}


def test_a_face_comes_back_in_a_box(url):
    answer = requests.post(url + "/look/faces", with_square(40, 16), headers=PNG, timeout=PATIENCE).json()
    assert [f["box"] for f in answer["faces"]] == [[40, 16, 48, 24]] and (answer["width"], answer["height"]) == (128, 128)
    pixels = shown(answer)
    assert pixels.shape == (128, 128, 3) and pixels[16, 44, 1] > pixels[16, 44, 0] + 60 and pixels[100, 100].max() < 30


def test_classes_and_a_mask_come_back(url):
    blue = np.zeros((32, 32, 3), np.uint8)
    blue[:, 16:, 2] = 255
    answer = requests.post(url + "/look/colors", png(blue), headers=PNG, timeout=PATIENCE).json()
    assert answer["classes"][0]["label"] == "blue" and answer["classes"][0]["score"] > 0.99
    answer = requests.post(url + "/look/areas", png(blue), headers={"Content-Type": "application/octet-stream"}, timeout=PATIENCE).json()
    assert [(a["label"], a["share"]) for a in answer["areas"]] == [("red", 0.5), ("class 3", 0.5)]


def test_large_pictures_come_back_smaller(url):
    answer = requests.post(url + "/look/faces", png(np.zeros((1000, 4000, 3), np.uint8)), headers=PNG, timeout=PATIENCE).json()
    assert (answer["width"], answer["height"], answer["faces"]) == (1600, 400, [])


@pytest.mark.parametrize("path, body, sent, status, why", [
    ("faces", b"not a picture", "image/png", 400, "no picture"),
    ("faces", b"", "image/png", 400, "no picture"),
    ("faces", with_square(8, 8)[:60], "image/png", 400, "cut short"),
    ("faces", with_square(8, 8), "text/plain", 415, "text/plain"),
    ("faces", with_square(8, 8), "multipart/form-data", 415, "multipart/form-data"),
    ("faces", with_square(8, 8), None, 415, "missing"),
    ("mixed", with_square(8, 8), "image/png", 404, "no model 'mixed' that takes pictures"),
    ("nobody", with_square(8, 8), "image/png", 404, "no model 'nobody'"),
    ("faces", bytes(100_000_000), "image/png", 413, "16 MB"),
    ("faces", (bytes(1 << 20) for _ in range(100)), "image/png", 413, "16 MB"),
])
def test_bad_uploads(url, path, body, sent, status, why):
    answer = requests.post(f"{url}/look/{path}", body, headers={"Content-Type": sent} if sent else {}, timeout=PATIENCE)
    assert answer.status_code == status and why in answer.json()["error"], answer.text


# ---- the Open Inference Protocol ----

def given(**arrays):
    return [{"name": name, "shape": list(a.shape), "datatype": np_to_triton_dtype(a.dtype), "data": a.ravel().tolist()}
            for name, a in arrays.items()]


def mixed_feed(n=3, seed=1):
    rng = np.random.default_rng(seed)
    return {"x": rng.uniform(1, 2, (n, 4)).astype(np.float32), "ids": rng.integers(0, 99, n), "flags": rng.integers(0, 2, n) > 0}


def inputs_of(feed, **how):
    found = []
    for name, array in feed.items():
        found.append(triton.InferInput(name, array.shape, np_to_triton_dtype(array.dtype)))
        found[-1].set_data_from_numpy(array, **how)
    return found


def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("mixed")
    assert not client.is_model_ready("nobody") and not client.is_model_ready("mixed", "2")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    for version in ("", "1"):
        found = client.get_model_metadata("mixed", version)
        assert found["name"] == "mixed" and found["versions"] == ["1"]
        assert found["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}, {"name": "ids", "datatype": "INT64", "shape": [-1]},
                                   {"name": "flags", "datatype": "BOOL", "shape": [-1]}]
        assert [o["name"] for o in found["outputs"]] == ["y", "next", "ratio"]


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("back", [None, True, False])
def test_inference_as_tritonclient_asks(client, there, back):
    """Binary and as JSON, both ways; None: as the client does where nothing is said."""
    feed = mixed_feed()
    expected = dict(zip(("y", "next", "ratio"), reference(MIXED.SerializeToString(), feed)))
    names = ("next", "y")
    outputs = None if back is None else [triton.InferRequestedOutput(name, binary_data=back) for name in names]
    result = client.infer("mixed", inputs_of(feed, binary_data=there), outputs=outputs, request_id="7")
    assert result.get_response()["id"] == "7" and result.get_response()["model_name"] == "mixed"
    assert [o["name"] for o in result.get_response()["outputs"]] == (["y", "next", "ratio"] if back is None else ["next", "y"])
    for name in names:
        np.testing.assert_array_equal(result.as_numpy(name), expected[name])


def test_what_the_readme_shows(url):
    program = re.search(r"```python\n(.*?)```", (ROOT / "examples/web/README.md").read_text(), re.S)[1]
    scope = {}
    exec(program.replace("localhost:8000", url.removeprefix("http://")), scope)
    assert scope["scores"].shape == (1, 1600, 1)


@pytest.mark.parametrize("how", ["gzip", "deflate"])
def test_compressed_requests(client, how):
    feed = mixed_feed(50)
    result = client.infer("mixed", inputs_of(feed), request_compression_algorithm=how)
    np.testing.assert_array_equal(result.as_numpy("next"), feed["ids"] + 1)


@pytest.mark.parametrize("binary", [True, False])
def test_every_datatype(client, binary):
    rng, inputs, feed = np.random.default_rng(3), [], {}
    for code, name in ALL_TYPES.items():
        numpy_type = np.dtype({"float": "float32", "double": "float64"}.get(name, name))
        feed[name] = rng.integers(0, 2, 5).astype(numpy_type)
        if numpy_type.kind in "iu":
            feed[name][:2] = np.iinfo(numpy_type).min, np.iinfo(numpy_type).max
        inputs.append(triton.InferInput(f"in_{name}", [5], code))
        if code == "FP16" and not binary:  # the client has no other way for it
            inputs[-1].set_data_from_numpy(feed[name])
        else:
            inputs[-1].set_data_from_numpy(feed[name], binary_data=binary)
    outputs = [triton.InferRequestedOutput(f"out_{name}", binary_data=binary or name == "float16") for name in ALL_TYPES.values()]
    result = client.infer("types", inputs, outputs=outputs)
    for name, array in feed.items():
        back = result.as_numpy(f"out_{name}")
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)


def test_no_elements(client):
    result = client.infer("mixed", inputs_of(mixed_feed(0)))
    assert result.as_numpy("y").shape == (0, 4) and result.as_numpy("next").shape == (0,)


def test_what_json_cannot_say(url, client):
    feed = {**mixed_feed(), "x": np.zeros((3, 4), np.float32)}
    with pytest.raises(InferenceServerException, match="'ratio' has what JSON cannot say.*ask for binary data"):
        client.infer("mixed", inputs_of(feed), outputs=[triton.InferRequestedOutput("ratio", binary_data=False)])
    assert np.isnan(client.infer("mixed", inputs_of(feed)).as_numpy("ratio")).all()


def changed(feed=None, **changes):
    """A request with the input x changed."""
    request = {"inputs": given(**(feed or mixed_feed(2)))}
    request["inputs"][0] = {k: v for k, v in {**request["inputs"][0], **changes}.items() if v is not None}
    return request


WHOLE = json.dumps(changed()).encode()
REFUSED = [
    ("[]", 400, "a request is to be a JSON object"),
    ("{", 400, "not JSON"),
    ("[" * 100_000, 400, "not JSON"),
    ({}, 400, "inputs is to be a list"),
    ({"inputs": []}, 400, "input 'x' is missing"),
    ({"inputs": [7]}, 400, "an input is to be a JSON object"),
    (changed(name="z"), 400, "no input 'z'; it has x, ids, flags"),
    (changed(name=["x"]), 400, "no input ['x']"),
    ({"inputs": [*given(**mixed_feed(2)), *given(**mixed_feed(2))]}, 400, "given twice"),
    (changed(datatype="FP64"), 400, "datatype FP64, the model takes FP32"),
    (changed(datatype="BYTES", data=["a"] * 8), 400, "datatype BYTES"),
    (changed(shape=[2, 5]), 400, "shape [2, 5], the model takes [-1, 4]"),
    (changed(shape=[8]), 400, "shape [8], the model takes [-1, 4]"),
    (changed(shape=[3, 4]), 400, "data of shape [8], its shape is [3, 4]"),
    (changed(shape=[-1, 4]), 400, "integers from 0 on"),
    (changed(shape=[1 << 61, 4]), 400, "its shape is"),
    (changed(shape="24"), 400, "is to be a list"),
    (changed(data=None), 400, "either data or binary_data_size"),
    (changed(data=["a"] * 8), 400, "not of FP32"),
    (changed(data=[[1], [2, 3]]), 400, "neither a flat list"),
    (changed(data={"a": 1}), 400, "is to be a list"),
    (changed(data=None, parameters={"binary_data_size": 32}), 400, "32 bytes of binary data are announced, 0 are left"),
    (changed(data=None, parameters={"binary_data_size": 31}), 400, "takes 32 bytes"),
    (changed(data=None, parameters={"binary_data_size": "32"}), 400, "takes 32 bytes"),
    ({"inputs": given(**mixed_feed(2)), "outputs": [{"name": "z"}]}, 400, "no output 'z'; it has y, next, ratio"),
    ({"inputs": given(**mixed_feed(2)), "outputs": [{"name": "y", "parameters": {"classification": 2}}]}, 400, "classification"),
    ({"inputs": given(**{**mixed_feed(2), "ids": np.arange(5)})}, 400, "extents 2 and 5 do not broadcast"),
]


@pytest.mark.parametrize("request_body, status, why", REFUSED)
def test_bad_requests(url, request_body, status, why):
    text = request_body if isinstance(request_body, str) else json.dumps(request_body)
    answer = requests.post(url + "/v2/models/mixed/infer", text, timeout=PATIENCE)
    assert answer.status_code == status and why in answer.json()["error"], answer.text


@pytest.mark.parametrize("body, headers, status, why", [
    (b"{}", {"Inference-Header-Content-Length": "3"}, 400, "the body has 2 bytes"),
    (b"{}", {"Inference-Header-Content-Length": "-1"}, 400, "the body has 2 bytes"),
    (WHOLE + b"more", {"Inference-Header-Content-Length": str(len(WHOLE))}, 400, "4 bytes are left"),
    (bytes(20_000_000), {}, 413, "16 MB"),
    (gzip.compress(bytes(20_000_000)), {"Content-Encoding": "gzip"}, 413, "unpacks to more"),
    (gzip.compress(b"{}")[:-6], {"Content-Encoding": "gzip"}, 400, "cut short"),
    (b"{}", {"Content-Encoding": "gzip"}, 400, "not gzip"),
    (b"{}", {"Content-Encoding": "br"}, 415, "br"),
])
def test_bad_bodies(url, body, headers, status, why):
    answer = requests.post(url + "/v2/models/mixed/infer", body, headers=headers, timeout=PATIENCE)
    assert answer.status_code == status and why in answer.json()["error"], answer.text


def test_numbers_that_a_type_cannot_hold(url):
    inputs = [{"name": f"in_{name}", "shape": [1], "datatype": code, "data": [True] if code == "BOOL" else [1]}
              for code, name in ALL_TYPES.items()]
    by_name = {i["name"]: i for i in inputs}
    for name, data in (("in_uint8", [256]), ("in_int8", [-129]), ("in_uint64", [-1]), ("in_uint64", [1 << 64]), ("in_int32", [1.5]),
                       ("in_bool", [1])):
        body = {"inputs": [{**i, "data": data} if i is by_name[name] else i for i in inputs]}
        answer = requests.post(url + "/v2/models/types/infer", json.dumps(body), timeout=PATIENCE)
        assert answer.status_code == 400 and name in answer.json()["error"], (name, data, answer.text)
    assert requests.post(url + "/v2/models/types/infer", json.dumps({"inputs": inputs}), timeout=PATIENCE).ok


@pytest.mark.parametrize("path", ["models/nobody", "models/nobody/infer", "models/mixed/versions/2", "nothing"])
def test_errors_are_the_protocol_s(url, path):
    answer = (requests.post if path.endswith("infer") else requests.get)(f"{url}/v2/{path}", timeout=PATIENCE)
    assert answer.status_code == 404 and list(answer.json()) == ["error"]


# ---- many at once ----

def test_64_at_once_lose_nothing(url):
    def ask(i):
        if i % 2:
            x, y = 8 * (i % 16), 8 * (i // 16)
            answer = requests.post(url + "/look/faces", with_square(x, y), headers=PNG, timeout=PATIENCE)
            return [f["box"] for f in answer.json()["faces"]] == [[x, y, x + 8, y + 8]]
        feed = mixed_feed(1 + i % 7, seed=i)
        answer = requests.post(url + "/v2/models/mixed/infer", json.dumps({"inputs": given(**feed), "id": str(i)}), timeout=PATIENCE).json()
        return answer["id"] == str(i) and answer["outputs"][1]["data"] == (feed["ids"] + 1).tolist()

    with concurrent.futures.ThreadPoolExecutor(64) as senders:
        assert list(senders.map(ask, range(64))) == [True] * 64


def test_workers_share_one_mapped_file(server):
    url, pid, folder = server
    lnt = folder / "pages.lnt"

    def read_in_both():
        workers = [child for child in children(pid) if pages.of_file(child, lnt)]
        return [w for w in workers if pages.total(pages.of_file(w, lnt), "Rss") > 0.9 * pages.WEIGHTS]

    body = json.dumps({"inputs": [{"name": "x", "shape": [1, pages.WIDTH], "datatype": "FP32", "data": [0.5] * pages.WIDTH}]})
    end = time.monotonic() + PATIENCE
    with concurrent.futures.ThreadPoolExecutor(8) as senders:
        while len(read_in_both()) < 2:
            assert time.monotonic() < end, "only one worker is ever asked"
            list(senders.map(lambda _: requests.post(url + "/v2/models/large/infer", body, timeout=PATIENCE).raise_for_status(), range(8)))
    for worker in read_in_both():
        found = pages.of_file(worker, lnt)
        assert not any("w" in permissions for permissions, _, _ in found)
        assert pages.total(found, "Shared_Clean") > 0.9 * pages.WEIGHTS
        assert pages.total(found, "Private_Dirty", "Shared_Dirty", "Anonymous") == 0
