"""examples/denoise and examples/wakeword: sounds in files and pipes, through chains of models."""

import io
import os
import subprocess
import sys
import wave

import numpy as np
import onnx
import onnx.parser
import pytest

from harness import ROOT, import_package

import_package()
sys.path += [str(ROOT / "examples" / name) for name in ("denoise", "wakeword")]
import denoise  # noqa: E402
import wakeword  # noqa: E402

OWW = ROOT / ".deps" / "wakeword" / "openwakeword" / "resources" / "models"
PATIENCE = 60  # seconds
STAGE = """<ir_version: 8, opset_import: ["" : 17]>
stage (float[1, 1, {n}] x, float[1, 2] state) => (float[1, 1, {n}] y, float[1, 2] next) {{
    c = Constant <value_float = {value}> ()
    one = Constant <value_float = 1.0> ()
    {line}
    next = Add (state, one)
}}"""


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """Models like DTLN's that change nothing: a mask of ones, and a quarter of each of the four blocks that overlap."""
    folder = tmp_path_factory.mktemp("stages")
    zero = "none = Sub (x, x)\n y = Add (none, c)"
    for name, n, value, line in (("1", 257, 1.0, zero), ("2", 512, 0.25, "y = Mul (x, c)")):
        onnx.save(onnx.parser.parse_model(STAGE.format(n=n, value=value, line=line)), folder / f"{name}.onnx")
    return folder / "1.onnx", folder / "2.onnx"


def save(path, samples, rate=16000):
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, rate, 0, "NONE", ""))
        sound.writeframes(np.asarray(samples, "<i2").tobytes())
    return path


def load(path):
    with wave.open(str(path)) as sound:
        return np.frombuffer(sound.readframes(sound.getnframes()), "<i2").astype(float)


def start(name, *words, **more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    words = [sys.executable, ROOT / "examples" / name / f"{name}.py", *words]
    return subprocess.Popen(list(map(str, words)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def run(name, *words):
    out, err = start(name, *words, stdin=subprocess.DEVNULL).communicate(timeout=PATIENCE)
    return out.decode(), err.decode()


@pytest.mark.parametrize("n", [0, 1, 127, 128, 5000])
def test_what_changes_nothing_gives_the_sound_back(stages, tmp_path, n):
    x = np.random.default_rng(n).integers(-9999, 9999, n)
    denoiser = denoise.Denoiser(*map(str, stages))
    denoise.whole_file(denoiser, str(save(tmp_path / "in.wav", x)), str(tmp_path / "out.wav"))
    y = load(tmp_path / "out.wav")
    assert len(y) == n and (n == 0 or np.abs(x - y).max() <= 1)
    assert (denoiser.mask.state == -(-(n + denoise.DELAY) // denoise.STEP)).all(), "the state is carried along"


def test_a_pipe_is_answered_step_by_step(stages):
    x = np.random.default_rng(1).integers(-9999, 9999, (8, denoise.STEP)).astype("<i2")
    with start("denoise", *stages, stdin=subprocess.PIPE) as live:
        y = []
        for step in x:  # each answer is waited for before more is sent
            live.stdin.write(step.tobytes())
            live.stdin.flush()
            y.append(np.frombuffer(live.stdout.read(2 * denoise.STEP), "<i2"))
        live.stdin.close()
        assert live.wait(PATIENCE) == 0
    np.testing.assert_allclose(np.concatenate(y)[denoise.DELAY:], x.ravel()[:-denoise.DELAY], atol=1)


def test_what_is_no_sound_or_no_stage(stages, tmp_path):
    (tmp_path / "none.wav").write_text("no sound")
    save(tmp_path / "rate.wav", [0] * 100, 8000)
    one = stages[1].with_name("one.onnx")
    onnx.save(onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> m (float[4] x) => (float[4] y) { y = Neg (x) }'), one)
    for words, why in (((*stages, tmp_path / "none.wav"), "RIFF"), ((*stages, tmp_path / "rate.wav"), "not 16 bits, mono, 16000 Hz"),
                       ((stages[0], one, tmp_path / "rate.wav"), "no stage of DTLN")):
        out, err = run("denoise", *words, tmp_path / "out.wav")
        assert err.startswith("denoise: ") and why in err and not (tmp_path / "out.wav").exists(), err


def spoken(tmp_path, voice, text):
    """A sentence of espeak-ng's at 16 kHz, between silences."""
    data = subprocess.run(["espeak-ng", "-v", voice, "-s", "130", "--stdout", text], check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(data)) as sound:
        rate, x = sound.getframerate(), np.frombuffer(sound.readframes(sound.getnframes()), "<i2").astype(float)
    y = np.interp(np.arange(int(len(x) * 16000 / rate)) * rate / 16000, np.arange(len(x)), x)
    return np.concatenate([np.zeros(8000), 0.6 * y, np.zeros(16000)])


def test_the_real_models_take_the_noise_away(shared, tmp_path):
    clean = spoken(tmp_path, "en-us", "Good morning. This is the station announcement.")
    noisy = clean + np.random.default_rng(1).normal(0, 300, len(clean))
    models = [shared / "models" / f"dtln_{i}" / "model.onnx" for i in (1, 2)]
    run("denoise", *models, save(tmp_path / "in.wav", noisy), tmp_path / "out.wav")
    said = load(tmp_path / "out.wav")
    assert said[2000:7000].std() < 60, "of the noise of 300"
    error = [np.square(x[8000:-16000] - clean[8000:-16000]).mean() for x in (noisy, said)]
    assert error[1] < error[0] / 2, "nearer to what was spoken than what was heard"


@pytest.fixture
def words():
    if not OWW.is_dir():
        pytest.skip("make deps-test has brought no models")
    return [OWW / f"{name}.onnx" for name in ("melspectrogram", "embedding_model", "hey_mycroft_v0.1")]


def test_a_word_is_heard_and_other_words_are_not(words, tmp_path):
    sound = spoken(tmp_path, "en-us+f3", "Hey Mycroft")
    out, err = run("wakeword", *words, save(tmp_path / "word.wav", sound), "--name", "mycroft")
    (line,) = out.splitlines()
    seconds, name = line.split()[0], line.split()[2]
    assert name == "mycroft" and 1 < float(seconds) < len(sound) / 16000, (out, err)
    others = spoken(tmp_path, "en-us+f3", "Good morning. This is the station announcement.")
    assert run("wakeword", *words, save(tmp_path / "others.wav", others)) == ("", "")


def test_the_chain_computes_what_onnxruntime_s_does(words, tmp_path, monkeypatch):
    import onnxruntime

    sound = spoken(tmp_path, "en-us+f3", "Hey Mycroft").astype(np.float32)

    def scores():
        listener = wakeword.Listener(*map(str, words))
        return [listener.step(sound[i:i + wakeword.STEP]) for i in range(0, len(sound) - wakeword.STEP, wakeword.STEP)]

    ours = scores()
    monkeypatch.setattr(wakeword, "session", lambda path: onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]))
    np.testing.assert_allclose(ours, scores(), atol=1e-3)
    assert max(ours) > 0.5


def test_a_word_is_told_as_it_is_heard(words, tmp_path):
    sound = spoken(tmp_path, "en-us+f3", "Hey Mycroft").astype("<i2")
    with start("wakeword", *words, stdin=subprocess.PIPE) as live:
        live.stdin.write(sound.tobytes())
        live.stdin.flush()
        assert b"heard" in live.stdout.readline()  # before the pipe is closed
        live.stdin.close()
        assert live.wait(PATIENCE) == 0
