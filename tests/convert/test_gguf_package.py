"""Files of ours as the gguf package sees them, and folders of the Python exporter as the converter sees them."""
import glob
import os
import subprocess

import gguf
import numpy as np
import pytest
import torch

from train import export, geometry
from train.data import load_tokenizer
from train.reference import formats, hf, params

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture(scope="module", params=["v4", "v41"])
def converted(request, hadal, tmp_path_factory):
    """An untrained small model, exported and converted: (configuration, weights, GGUF path)."""
    folder = tmp_path_factory.mktemp(request.param)
    cfg = geometry.make(request.param, load_tokenizer())
    torch.manual_seed(1)
    weights = {}
    for name, (shape, fmt) in params.table(cfg).items():
        w = torch.randint(0, cfg.n_routed_experts, shape) if fmt == "i64" else torch.randn(shape) * 0.05
        weights[name] = formats.quantise(w, fmt, hf.tile_of(cfg)) if fmt in ("fp8", "fp4", "rows8") else w
    saved = {"weights": weights, "summary": {"confidence_temperatures": [1.5, 2.0, 1.0, 1.0, 1.0]}}
    export.export(saved, request.param, str(folder / "hf"))
    out = str(folder / "model.gguf")
    done = subprocess.run([hadal, "convert", str(folder / "hf"), "--output", out, "--name", "small", "--verify"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return cfg, hf.load(str(folder / "hf"))[1], out


def test_metadata(converted):
    cfg, _, path = converted
    reader = gguf.GGUFReader(path)
    arch = "deepseek41" if cfg.is_v41 else "deepseek4"
    value = lambda name: reader.fields[name].contents()
    assert value("general.architecture") == arch and value("general.name") == "small"
    assert value(f"{arch}.embedding_length") == cfg.hidden_size
    assert value(f"{arch}.attention.compress_ratios") == cfg.compress_ratios
    assert value(f"{arch}.dspark.confidence_temperatures")[:3] == [1.5, 2.0, 1.0]
    assert value("general.sampling.top_p") == pytest.approx(0.95)
    assert len(value("tokenizer.ggml.tokens")) == cfg.vocab_size
    assert len(value("hadal.tensor_xxh64")) == len(reader.tensors)
    if cfg.is_v41:
        assert max(value(f"{arch}.engram.token_map")) + 1 == cfg.engram_compressed_vocab_size


def dequantised(reader, name):
    t = next(t for t in reader.tensors if t.name == name)
    return gguf.quants.dequantize(t.data, t.tensor_type)


def test_values(converted):
    cfg, weights, path = converted
    reader = gguf.GGUFReader(path)
    same = {"token_embd.weight": "embed.weight", "output_norm.weight": "norm.weight",
            "blk.3.ffn_up_exps.weight": "layers.3.ffn.experts.w3.weight",
            "blk.2.attn_compressor_kv.weight": "layers.2.attn.compressor.wkv.weight",
            "mtp.1.ffn_down_exps.weight": "mtp.1.ffn.experts.w2.weight"}
    for ours, theirs in same.items():
        expected = weights[theirs].float().numpy()
        assert np.array_equal(dequantised(reader, ours).reshape(expected.shape), expected), ours


def test_every_tensor_of_the_checkpoint_is_there(converted):
    cfg, weights, path = converted
    names = [t.name for t in gguf.GGUFReader(path).tensors if not t.name.endswith(".scale")]
    assert len(names) == len([n for n in weights if not n.endswith("bias_vl")])
