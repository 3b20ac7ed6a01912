"""Write a trained model as a HF folder in the official layout.

  python -m train.export --dialect v41 --final /tmp/v41/final.pt --out DIR

FP8 tiles with E8M0 scales, packed FP4 experts, FP8 Engram rows, BF16 and F32 for the rest, config.json with the official keys,
tokenizer files copied, safetensors shards of at most 15 MiB and their index.
"""
import argparse
import json
import os
import shutil
import torch
from . import geometry
from .data import load_tokenizer
from .reference import formats, hf
from .reference.params import table


def check_exact(weights, cfg):
    """The weights must already be values of their formats; otherwise the file would not be what was trained."""
    for name, (shape, fmt) in table(cfg).items():
        w = weights[name].float()
        if fmt in ("fp8", "fp4", "rows8") and not torch.equal(formats.quantise(w, fmt, hf.tile_of(cfg)), w):
            raise SystemExit(f"{name} is not quantised")


def export(saved, dialect, out):
    """saved: {"weights", "summary"}"""
    cfg = geometry.make(dialect, load_tokenizer())
    temperatures = saved.get("summary", {}).get("confidence_temperatures")
    if temperatures:
        text = cfg.raw.get("text_config", cfg.raw)
        text["dspark_confidence_temperatures"] = temperatures
    check_exact(saved["weights"], cfg)
    return write(saved["weights"], cfg, out)


def write(weights, cfg, out):
    """The whole folder: weights, config.json, tokenizer, sampling defaults. -> bytes of tensors"""
    total = hf.save(out, weights, cfg)
    here = os.path.join(os.path.dirname(__file__), "tokenizer")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(here, name), out)
    with open(os.path.join(out, "generation_config.json"), "w") as f:
        json.dump(dict(bos_token_id=0, eos_token_id=1, do_sample=True, temperature=1.0, top_p=0.95), f)
    return total


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--dialect", choices=("v4", "v41"), required=True)
    a.add_argument("--final", required=True)
    a.add_argument("--out", required=True)
    args = a.parse_args()
    saved = torch.load(args.final, map_location="cpu", weights_only=False)
    print(f"{export(saved, args.dialect, args.out) / 1e6:.2f} MB")
