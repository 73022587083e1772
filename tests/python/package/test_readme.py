"""What the README shows is what works: its program, built against what `make install` puts down, its Python and its
command lines."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import LINNET, ROOT, linnet, reference, write_case

README = (ROOT / "README.md").read_text()
HELLO = ROOT / "examples" / "hello" / "hello.c"


def snippet(language):
    return re.search(rf"^```{language}\n(.*?)^```", README, re.S | re.M)[1]


def product(name, x, shape, columns):
    """y = x w + b over the last axis of x flattened from axis 1 on."""
    rng = np.random.default_rng(1)
    flat = int(np.prod([d for d in shape[1:] if isinstance(d, int)]))
    w, b = (rng.standard_normal(s).astype(np.float32) for s in ((flat, columns), columns))
    graph = helper.make_graph(
        [helper.make_node("Flatten", [x], ["flat"]), helper.make_node("Gemm", ["flat", "w", "b"], ["y"])], name,
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[0], columns])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where `make install` has put everything."""
    prefix = tmp_path_factory.mktemp("installed")
    done = subprocess.run(["make", "-s", "-C", ROOT, "install", f"PREFIX={prefix}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return prefix


def pkg_config(prefix, *words):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    return shlex.split(subprocess.check_output(["pkg-config", *words, "linnet"], env=environment, text=True))


def run(words, **more):
    done = subprocess.run(words, capture_output=True, timeout=120, **more)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_program_is_what_the_readme_shows():
    assert snippet("c") == HELLO.read_text()
    assert len(HELLO.read_text().splitlines()) <= 20


@pytest.mark.parametrize("how", ["shared", "static"])
def test_program_builds_against_what_is_installed(installed, tmp_path, how):
    model = product("digits", "image", [1, 1, 28, 28], 10)
    onnx.save(model, tmp_path / "digits.onnx")
    run([installed / "bin" / "linnet", "convert", tmp_path / "digits.onnx", "-o", tmp_path / "digits.lnt"])
    extra = ["-static"] if how == "static" else []
    libraries = pkg_config(installed, "--cflags", "--libs", *(["--static"] if extra else []))
    run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", HELLO, *extra, *libraries, "-o", tmp_path / "hello"])
    image = np.random.default_rng(2).standard_normal((1, 1, 28, 28)).astype(np.float32)
    printed = run([tmp_path / "hello"], cwd=tmp_path, input=image.tobytes(),
                  env={"LD_LIBRARY_PATH": str(installed / "lib")})
    np.testing.assert_allclose(np.array(printed.split(), float), reference(model, {"image": image})[0][0], rtol=1e-4,
                               atol=1e-4)
    (tmp_path / "digits.lnt").unlink()
    refused = subprocess.run([tmp_path / "hello"], cwd=tmp_path, input=image.tobytes(), capture_output=True, text=False,
                             env={"LD_LIBRARY_PATH": str(installed / "lib")})
    assert refused.returncode == 1 and b"hello: cannot open digits.lnt" in refused.stderr


def test_version_and_headers(installed, tmp_path):
    assert pkg_config(installed, "--modversion") == linnet("--version").stdout.split()[1:]
    for compiler, name in (("cc", "all.c"), ("c++", "all.cpp")):
        (tmp_path / name).write_text("#include <linnet.h>\nint main(void) { return lnt_version()[0] == 0; }\n")
        run([compiler, "-Wall", "-Wextra", "-Werror", "-pedantic", tmp_path / name, *pkg_config(installed, "--cflags", "--libs"),
             "-o", tmp_path / "all"])


def test_nothing_else_is_exported(installed):
    symbols = run(["nm", "-D", "--defined-only", installed / "lib" / "liblinnet.so"]).split("\n")
    exported = {line.split()[-1] for line in symbols if line}
    declared = set()
    for header in ("linnet.h", "linnet_types.h"):
        text = (installed / "include" / header).read_text()
        declared |= set(re.findall(r"^LNT_API [^;(]*?\b(lnt_\w+)\(", text, re.M))
    assert exported == declared


@pytest.fixture
def workplace(tmp_path):
    """model.onnx with x of [T, 8], x.npy, the case to verify, and samples to calibrate on."""
    x = np.random.default_rng(3).standard_normal((200, 8)).astype(np.float32)
    model = product("model", "x", ["T", 8], 4)
    write_case(tmp_path, model, {"x": x}, reference(model, {"x": x}))
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "samples").mkdir()
    for i in range(4):
        np.savez(tmp_path / "samples" / f"{i}.npz", x=x[i::4])
    return tmp_path


def test_python_snippet(workplace):
    run(["make", "-s", "-C", ROOT, "python"])
    program = "import numpy as np\nx = np.load('x.npy')\n" + snippet("python") + "np.save('y.npy', outputs[0])\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"),
                   "LINNET_LIBRARY": str(ROOT / "build" / "liblinnet_python.so")}
    run([sys.executable, "-c", program], cwd=workplace, env=environment)
    expected = reference(workplace / "model.onnx", {"x": np.load(workplace / "x.npy")})[0]
    np.testing.assert_allclose(np.load(workplace / "y.npy"), expected, rtol=1e-4, atol=1e-5)


def command_lines():
    """The README's `linnet VERB …`, without what is said beside them."""
    lines = re.findall(r"^    linnet (.*?)(?:  .*)?$", README, re.M)
    assert len(lines) >= 6
    return lines


def test_command_lines(workplace, voices):
    shutil.copy(voices / "one.lnt", workplace / "voice.lnt")
    for line in command_lines():
        words = shlex.split(line)
        if words[0] == "doctor":  # a stage of its own
            continue
        if words[0] == "bench":
            words += ["--dim", "T=20", "--runs", "5"]
        done = subprocess.run([LINNET, *words], cwd=workplace, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (line, done.stderr)
