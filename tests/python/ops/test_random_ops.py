"""Random operators: the right distributions, the same bits for a seed whatever the threads, other bits for
another seed, node or run of a shape."""

import json

import numpy as np
import onnx.parser
import pytest

from harness import levels, linnet

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'


def run(tmp_path, text, inputs=None, *options):
    """All outputs of the model in text, by name."""
    model = onnx.parser.parse_model(HEAD + text)
    onnx.save(model, tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode == 0, done.stderr
    feeds = []
    for name, value in (inputs or {}).items():
        np.save(tmp_path / f"{name}.npy", value)
        feeds += ["--input", f"{name}={tmp_path / name}.npy"]
    done = linnet("run", tmp_path / "m.lnt", *feeds, "--output-dir", tmp_path / "out", *options)
    assert done.returncode == 0, done.stderr
    return {o.name: np.load(tmp_path / "out" / f"{o.name}.npy") for o in model.graph.output}


NORMAL = 'f () => (float[N] y) { y = RandomNormal <mean = 2.0, scale = 3.0, shape = [200001]> () }'
UNIFORM = 'f () => (float[N] y) { y = RandomUniform <low = -1.0, high = 3.0, shape = [200001]> () }'


def test_normal_numbers(tmp_path):
    z = np.sort((run(tmp_path, NORMAL)["y"].astype(np.float64) - 2) / 3)
    assert abs(z.mean()) < 0.01 and abs(z.std() - 1) < 0.01
    for x, below in ((-2.5758, 0.005), (-1.6449, 0.05), (-0.6745, 0.25), (0.0, 0.5), (1.2816, 0.9), (2.3263, 0.99)):
        assert abs(np.searchsorted(z, x) / z.size - below) < 0.005
    assert np.unique(z).size > 0.98 * z.size


def test_neighbors_are_independent(tmp_path):
    y = run(tmp_path, NORMAL)["y"].astype(np.float64) - 2
    for lag in (1, 2, 3):
        assert abs(np.corrcoef(y[:-lag], y[lag:])[0, 1]) < 0.01


def test_uniform_numbers(tmp_path):
    y = run(tmp_path, UNIFORM)["y"]
    assert y.min() >= -1 and y.max() <= 3
    counts, _ = np.histogram(y, 40, (-1, 3))
    assert abs(counts / 5000 - 1).max() < 0.08


@pytest.mark.parametrize("text", [NORMAL, UNIFORM])
def test_a_seed_gives_its_bits_on_any_number_of_threads(tmp_path, text):
    one = run(tmp_path, text, {}, "--threads", "1", "--seed", "5")["y"]
    for threads in ("2", "3"):
        assert np.array_equal(one, run(tmp_path, text, {}, "--threads", threads, "--seed", "5")["y"])
    assert np.mean(one == run(tmp_path, text, {}, "--seed", "6")["y"]) < 0.01


def test_bits_are_the_same_on_every_machine(tmp_path):
    """Pinned where Philox4x32-10 gave its published answer for counter 0 and key 0."""
    y = run(tmp_path, "f () => (double[4] y) { y = RandomNormal <dtype = 11, shape = [4]> () }")["y"]
    assert [v.hex() for v in y.tolist()] == [
        "-0x1.71f8670023a4fp-3", "0x1.3ce4e1a1a89d1p-3", "-0x1.b4daf23c19ae8p+0", "0x1.ce2158d6e1e6ep-1"]


def philox(key, block):
    """The four words of a block of Philox4x32-10, as its authors define it."""
    c, k, low = [block & 0xffffffff, block >> 32, 0, 0], [key & 0xffffffff, key >> 32], 0xffffffff
    for _ in range(10):
        a, b = c[0] * 0xd2511f53, c[2] * 0xcd9e8d57
        c = [b >> 32 ^ c[1] ^ k[0], b & low, a >> 32 ^ c[3] ^ k[1], a & low]
        k = [k[0] + 0x9e3779b9 & low, k[1] + 0xbb67ae85 & low]
    return c


def mix(x):
    """The last steps of splitmix64."""
    full = 2**64 - 1
    x = x + 0x9e3779b97f4a7c15 & full
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & full
    x = (x ^ x >> 27) * 0x94d049bb133111eb & full
    return x ^ x >> 31


@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
def test_floats_are_what_they_are_said_to_be(tmp_path, count):
    """Groups of 16 blocks, word by word: by Philox and Box and Muller in double precision, and the same bits at every level."""
    text = f"""f () => (float[A] n, float[B] u, float16[C] h) {{
        n = RandomNormal <mean = 1.0, scale = 2.0, shape = [{count}]> ()
        u = RandomUniform <low = -1.0, high = 3.0, shape = [{count}]> ()
        h = RandomNormal <dtype = 10, shape = [{count}]> ()
    }}"""
    out = run(tmp_path, text, {}, "--seed", "5")
    for level in levels():
        other = run(tmp_path, text, {}, "--seed", "5", "--level", level)
        assert all(np.array_equal(v, other[name]) for name, v in out.items()), level
    for node, (name, base, scale) in enumerate((("n", 1, 2), ("u", -1, 4), ("h", 0, 1))):
        key, want = mix(5 ^ mix(node)), np.empty((count + 63) // 64 * 64)
        for block in range(want.size // 4):
            w = philox(key, block)
            at = block // 16 * 64 + block % 16 + 16 * np.arange(4)
            if name == "u":
                want[at] = [(x // 512 + 0.5) / 2**23 for x in w]
                continue
            for i in (0, 2):
                radius = np.sqrt(-2 * np.log((w[i] // 2 + 0.5) / 2**31)) * (-1 if w[i + 1] >> 31 else 1)
                angle = (((w[i + 1] << 2 & 0xffffffff) // 512 + 0.5) / 2**23 - 0.5) * np.pi / 2
                pair = np.array([np.cos(angle), np.sin(angle)]) * radius
                want[at[i:i + 2]] = pair[::-1] if w[i + 1] >> 30 & 1 else pair
        close = 2e-3 if name == "h" else 2e-6
        assert np.allclose(out[name], base + scale * want[:count], rtol=close, atol=close), name


def test_nodes_and_their_seeds_differ(tmp_path):
    text = """f (float[2, 3000] x) => (float[A, B] a, float[A, B] b, float[A, B] c, float16[A, B] d) {
        a = RandomNormalLike (x)
        b = RandomNormalLike (x)
        c = RandomNormalLike <seed = 3.0> (x)
        d = RandomUniformLike <dtype = 10> (x)
    }"""
    out = run(tmp_path, text, {"x": np.zeros((2, 3000), np.float32)})
    assert all(v.shape == (2, 3000) for v in out.values()) and out["d"].dtype == np.float16
    for p, q in ("ab", "ac", "bc"):
        assert abs(np.corrcoef(out[p].ravel(), out[q].ravel())[0, 1]) < 0.06


def test_a_nodes_own_seed_does_not_depend_on_the_node(tmp_path):
    text = """f (float[2, 300] x) => (float[2, 300] a, float[2, 300] b, float[2, 300] c) {
        first = RandomNormalLike <seed = 3.0> (x)
        one = Add (first, x)
        a = Neg (one)
        b = RandomNormalLike <seed = 3.0> (x)
        c = RandomNormalLike <seed = 4.0> (x)
    }"""
    x = {"x": np.zeros((2, 300), np.float32)}
    out = run(tmp_path, text, x)
    assert np.array_equal(-out["a"], out["b"]) and not np.array_equal(out["b"], out["c"])
    assert not np.array_equal(out["b"], run(tmp_path, text, x, "--seed", "1")["b"])


@pytest.mark.parametrize("text, why", [
    ("z = RandomNormalLike <seed = 3.0> (y)", None), ("z = RandomUniformLike <seed = 0.0> (y)", None),
    ("z = Bernoulli <seed = 1.0> (p)", None),
    ("z = RandomNormalLike (y)", "has no seed")])
def test_golden_vectors_of_nodes_with_seeds(tmp_path, text, why):
    """Behind nodes that optimization drops, at every level."""
    model = onnx.parser.parse_model(HEAD + f"""f (float[4, 50] x) => (float[4, 50] s) {{
        i = Identity (x)
        j = Neg (i)
        y = Neg (j)
        p = Sigmoid (y)
        {text}
        s = Add (z, y)
    }}""")
    onnx.save(model, tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", "--json")
    told = json.loads(done.stdout)["no_golden_vectors"]
    assert done.returncode == 0 and (told is None if why is None else why in told)
    for level in levels():
        proved = linnet("verify", tmp_path / "m.lnt", "--level", level)
        assert proved.returncode == (2 if why else 0), proved.stdout + proved.stderr


def test_bernoulli_and_multinomial(tmp_path):
    text = """f (float[N] p, float[2, 4] logits) => (int32[N] hits, int64[2, 40000] picks) {
        hits = Bernoulli <dtype = 6> (p)
        picks = Multinomial <dtype = 7, sample_size = 40000> (logits)
    }"""
    chance = np.array([[0.1, 0.2, 0.3, 0.4], [0.97, 0.01, 0.01, 0.01]])
    p = np.repeat(np.array([0, 0.25, 0.9, 1], np.float32), 20000)
    out = run(tmp_path, text, {"p": p, "logits": np.log(chance).astype(np.float32)})
    assert np.allclose(out["hits"].reshape(4, -1).mean(1), [0, 0.25, 0.9, 1], atol=0.012)
    for row, want in zip(out["picks"], chance):
        assert np.allclose(np.bincount(row, minlength=4) / row.size, want, atol=0.01)


def test_turns_of_a_loop_differ(tmp_path):
    text = """f (int64 n) => (float[K, 100] all, float[100] after) {
        all = Loop (n, "") <body = b (int64 i, bool c) => (bool go, float[100] x) {
            go = Identity (c)
            x = RandomNormal <shape = [100]> ()
        }>
        after = RandomNormal <shape = [100]> ()
    }"""
    three = run(tmp_path, text, {"n": np.array(3)})
    five = run(tmp_path, text, {"n": np.array(5)})
    assert np.unique(five["all"]).size == 500
    assert np.array_equal(three["all"], five["all"][:3]) and np.array_equal(three["after"], five["after"])
