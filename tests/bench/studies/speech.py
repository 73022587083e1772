"""Text to speech by length of the text: encoder and decoder of a voice of Piper's medium size, each a model of its own, by
onnxruntime and Linnet. The weights are seeded, the noise is off, so that all engines give the same sound."""

import study  # first: it knows where others lie
import linnet
import onnx
import onnxruntime
import voice
from onnxruntime import quantization

CHARACTERS = (3, 12, 34, 92, 273)
ENGINES = ["ORT", "ORT INT8", "Linnet", "Linnet INT8"]
RATE, HOP = 22050, 256
CALIBRATED = 60  # characters of the text that INT8 is calibrated on


def ids(characters, seed=0):
    """As Piper feeds them: a pause before each phoneme and one behind the last."""
    return voice.inputs(2 * characters + 1, seed=seed, size=voice.MEDIUM)


def files(part, model, given):
    made = study.files(f"voice_{part}")
    onnx.save(model, made["ORT"])
    quantization.quantize_dynamic(made["ORT"], made["ORT INT8"])
    linnet.convert(made["ORT"], made["Linnet"])
    linnet.convert(made["ORT"], made["Linnet INT8"], int8="dynamic", calibrate=[given])
    return made


def closeness(got, want):
    """Cosine where both have as many frames: a duration that rounds otherwise gives another text's worth of them."""
    if got.shape != want.shape:
        return f"{got.shape[2]} frames, not {want.shape[2]}"
    return f"{study.cosine(got, want):.4f}"


def measured(part, characters, sessions, feeds, frames):
    engines = {name: study.of_session(made, feeds) for name, made in sessions.items()}
    want = engines["ORT"]()[0]
    found = {name: closeness(run()[0], want) for name, run in engines.items() if name != "ORT"}
    case = {"part": part, "characters": characters, "seconds": f"{frames * HOP / RATE:.2f}"}
    row = study.Row(case, study.measure(engines), found)
    study.progress(study.label(case), {name: f"{study.mean(t):.3g}" for name, t in row.times.items()}, found)
    return row


def main():
    text = ids(CALIBRATED, seed=1)
    encoder = files("encoder", voice.build_encoder(), text)
    z = study.session("ORT", encoder["ORT"]).run(["z"], text)[0]
    decoder = files("decoder", voice.build_vocoder(), {"z": z})
    parts = {part: {name: study.session(name, path) for name, path in made.items()}
             for part, made in (("encoder", encoder), ("decoder", decoder))}
    rows = {"encoder": [], "decoder": []}
    for characters in CHARACTERS:
        feeds = ids(characters)
        latent = {"z": parts["encoder"]["ORT"].run(["z"], feeds)[0]}
        frames = latent["z"].shape[2]
        rows["encoder"].append(measured("encoder", characters, parts["encoder"], feeds, frames))
        rows["decoder"].append(measured("decoder", characters, parts["decoder"], latent, frames))
    sizes = {f"{part}, {name}": path.stat().st_size for part, made in (("encoder", encoder), ("decoder", decoder))
             for name, path in made.items()}
    study.write(study.Study("speech", ENGINES, rows["encoder"] + rows["decoder"], "Seconds of sound",
                            lambda case: float(case["seconds"]), f"onnxruntime {onnxruntime.__version__}.", sizes),
                "Cosine to ORT's output")


if __name__ == "__main__":
    main()
