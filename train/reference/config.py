"""Model configuration: one flat object for both architectures, read from a HF-style config.json dict.

V4.1 nests its language model fields under `text_config`; V4 is flat. Derived plans (who owns which cache) live here so that
no other file repeats the rules of V4.1 section 2 / V4 section 1.2.
"""
import json
import math
from types import SimpleNamespace

DEFAULTS = dict(
    rms_norm_eps=1e-6, hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-6, swiglu_limit=10.0, routed_scaling_factor=1.5,
    n_shared_experts=1, rope_theta=10000.0, compress_rope_theta=160000.0, num_hash_layers=0,
    kv_source_layer_ids=[], index_source_layer_ids=[], candidate_source_layer_id=None, candidate_topk_blocks=0,
    candidate_block_size=8, engram_layer_ids=[], engram_num_embeddings=[], engram_pad_token_id=2,
    dspark_block_size=0, dspark_target_layer_ids=[], dspark_markov_rank=0, dspark_noise_token_id=0,
    dspark_stages=0, bos_token_id=0, eos_token_id=1, pad_token_id=2)


class Config(SimpleNamespace):
    @property
    def is_v41(self):
        return self.arch == "v41"

    def ratio(self, layer):
        """Compression ratio of the cache that `layer` reads; draft stages read none."""
        return self.compress_ratios[layer] if layer < self.num_hidden_layers else 0

    def kv_owner(self, layer):
        if not self.is_v41:
            return layer
        return max(s for s in self.kv_source_layer_ids if s <= layer)

    def topk_owner(self, layer):
        if not self.is_v41:
            return layer
        return max(s for s in self.index_source_layer_ids if s <= layer)

    def owns_compressor(self, layer):
        return self.ratio(layer) > 0 and self.kv_owner(layer) == layer

    def owns_indexer(self, layer):
        if self.is_v41:
            return self.ratio(layer) > 0 and self.topk_owner(layer) == layer
        return self.ratio(layer) == 4

    @property
    def align(self):
        """Sequences are padded to a multiple of this; padding is causal, hence invisible."""
        return math.lcm(self.sliding_window, *[r for r in self.compress_ratios if r > 0])


def from_dict(d):
    text = d.get("text_config", d)
    flat = {**DEFAULTS, **text}
    for key in ("bos_token_id", "eos_token_id", "pad_token_id", "quantization_config"):
        if key in d:
            flat[key] = d[key]
    flat["arch"] = "v41" if "v41" in text["model_type"] else "v4"
    if flat["dspark_block_size"]:
        # V4 0731 keeps num_nextn_predict_layers = 1 in config.json; the stage count follows from the ratio list.
        flat["dspark_stages"] = len(flat["compress_ratios"]) - flat["num_hidden_layers"]
    flat.setdefault("dspark_n_routed_experts", flat["n_routed_experts"])
    flat.setdefault("dspark_num_experts_per_tok", flat["num_experts_per_tok"])
    cfg = Config(**flat)
    cfg.raw = d
    return cfg


def load(path):
    with open(path) as f:
        return from_dict(json.load(f))
