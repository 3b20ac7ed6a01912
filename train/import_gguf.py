"""Write the checkpoint folder that a shipped GGUF file was converted from.

  python -m train.import_gguf models/hadal-tiny-v41.gguf --out DIR

The shipped files keep every value of their checkpoint, so nothing is lost: converting the folder again gives the same tensors
(tests/oracle/test_trained.py). Sizes are geometry.py's; what may differ from it (rows chosen, candidate blocks, confidence
temperatures) is read from the file. For the models of this project only.
"""
import argparse
import numpy as np
import torch
from . import export, geometry
from .data import load_tokenizer
from .reference import formats, hf
from .reference.params import markov_names, table

# GGUF stem of every tensor by its checkpoint stem. Experts of a layer are one tensor in both.
GLOBAL = {"embed.weight": "token_embd.weight", "head.weight": "output.weight", "norm.weight": "output_norm.weight",
          "hc_head_fn": "output_hc_fn.weight", "hc_head_base": "output_hc_base.weight", "hc_head_scale": "output_hc_scale.weight"}
BLOCK = {"attn.wq_a": "attn_q_a", "attn.q_norm": "attn_q_a_norm", "attn.wq_b": "attn_q_b", "attn.wkv": "attn_kv",
         "attn.kv_norm": "attn_kv_a_norm", "attn.attn_sink": "attn_sinks", "attn.wo_a": "attn_output_a",
         "attn.wo_b": "attn_output_b", "attn.compressor.wkv": "attn_compressor_kv", "attn.compressor.wgate": "attn_compressor_gate",
         "attn.compressor.ape": "attn_compressor_ape", "attn.compressor.norm": "attn_compressor_norm",
         "attn.indexer.wq_b": "indexer.attn_q_b", "attn.indexer.weights_proj": "indexer.proj", "attn.indexer.wk": "indexer.attn_k",
         "attn.indexer.k_norm": "indexer.k_norm", "attn.indexer.compressor.wkv": "indexer_compressor_kv",
         "attn.indexer.compressor.wgate": "indexer_compressor_gate", "attn.indexer.compressor.ape": "indexer_compressor_ape",
         "attn.indexer.compressor.norm": "indexer_compressor_norm", "ffn.gate": "ffn_gate_inp", "ffn.gate.tid2eid": "ffn_gate_tid2eid",
         "ffn.experts.w1": "ffn_gate_exps", "ffn.experts.w3": "ffn_up_exps", "ffn.experts.w2": "ffn_down_exps",
         "ffn.shared_experts.w1": "ffn_gate_shexp", "ffn.shared_experts.w3": "ffn_up_shexp",
         "ffn.shared_experts.w2": "ffn_down_shexp", "engram.embed": "engram_embd", "engram.wkv": "engram_kv",
         "engram.q_weight": "engram_q", "engram.k_weight": "engram_k", "confidence_head.proj": "confidence"}


def gguf_name(cfg, name):
    """Name in the GGUF file of a tensor of params.table."""
    if name in GLOBAL:
        return GLOBAL[name]
    if name in markov_names(cfg):
        part = ("markov_embed", "markov_head")[markov_names(cfg).index(name)]
        return f"mtp.{cfg.dspark_stages - 1}.{part}.weight"
    kind, layer, rest = name.split(".", 2)
    prefix = f"{'blk' if kind == 'layers' else 'mtp'}.{layer}."
    if rest == "ffn.gate.bias":
        return prefix + "exp_probs_b.bias"
    stem = rest.removesuffix(".weight")
    return prefix + BLOCK.get(stem, stem) + ".weight"


class File:
    """The tensors of a GGUF file as fp32, by name."""

    def __init__(self, path, tile):
        import gguf
        self.reader, self.tile = gguf.GGUFReader(path), tile
        self.dequantize = gguf.quants.dequantize
        self.tensors = {t.name: t for t in self.reader.tensors}

    def value(self, key):
        """Of the first metadata key that ends like this, or None."""
        found = [f for name, f in self.reader.fields.items() if name.endswith(key)]
        return found[0].contents() if found else None

    def tensor(self, name, shape, fmt):
        t = self.tensors[name]
        raw = torch.from_numpy(np.array(t.data))
        scale = self.tensors.get(name.removesuffix(".weight") + ".scale")
        if scale is not None:
            return formats.decode(raw.view(torch.float8_e4m3fn), torch.from_numpy(np.array(scale.data)), fmt, self.tile)
        if fmt == "rows8":                                                       # each row's scales behind its elements
            n = shape[1]
            return formats.decode(raw[:, :n].contiguous().view(torch.float8_e4m3fn), raw[:, n:].contiguous(), fmt, self.tile)
        if fmt == "i64":
            return raw.view(torch.int32).long().view(shape)
        return torch.from_numpy(np.array(self.dequantize(t.data, t.tensor_type))).view(shape)


def load(path):
    """-> cfg, weights (fp32, experts stacked), as hf.load."""
    file = File(path, None)
    dialect = file.value("hadal.chat_dialect")
    cfg = geometry.make(dialect, load_tokenizer())
    file.tile = hf.tile_of(cfg)
    text = cfg.raw.get("text_config", cfg.raw)
    for key, found in (("index_topk", "indexer.top_k"), ("candidate_topk_blocks", "candidate_topk_blocks")):
        if file.value(found) is not None:
            text[key] = file.value(found)
            setattr(cfg, key, text[key])
    temperatures = file.value("confidence_temperatures")
    text["dspark_confidence_temperatures"] = [round(float(t), 3) for t in temperatures[:cfg.dspark_block_size]]
    weights = {}
    for name, (shape, fmt) in table(cfg).items():
        if name.endswith("gate.bias_vl"):                                        # of image tokens; the engine has none
            weights[name] = torch.zeros(shape)
        else:
            weights[name] = file.tensor(gguf_name(cfg, name), shape, fmt)
            assert weights[name].shape == shape, (name, weights[name].shape, shape)
    return cfg, weights


def write_folder(path, folder):
    cfg, weights = load(path)
    export.check_exact(weights, cfg)
    return export.write(weights, cfg, folder)


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("file")
    a.add_argument("--out", required=True)
    args = a.parse_args()
    print(f"{write_folder(args.file, args.out) / 1e6:.2f} MB")
