"""Small models of both architectures with random sizes and random weights, as checkpoint folders.

Sizes vary wherever the engine allows it; limits (window, groups, selection, candidates) are kept small, so that a few hundred
tokens pass all of them.
"""
import json
import pathlib
from types import SimpleNamespace

import numpy as np
import torch

from train.reference import config, engram, hf, params

YARN = {"type": "yarn", "factor": 8, "beta_fast": 16, "beta_slow": 2, "original_max_position_embeddings": 256}


def common(rng):
    n_expert = int(rng.integers(2, 9))
    return dict(
        hidden_act="silu", hc_mult=4, hc_sinkhorn_iters=int(rng.integers(1, 25)), hc_eps=1e-6,
        swiglu_limit=float(rng.choice([1.5, 10.0])), routed_scaling_factor=float(rng.choice([1.0, 1.5, 2.5])), n_shared_experts=1,
        norm_topk_prob=True, scoring_func="sqrtsoftplus", topk_method="noaux_tc", rope_theta=10000, compress_rope_theta=160000,
        rope_scaling={**YARN, "factor": int(rng.choice([4, 16])), "original_max_position_embeddings": int(rng.choice([64, 4096]))},
        num_key_value_heads=1, attention_bias=False, tie_word_embeddings=False, max_position_embeddings=8192,
        vocab_size=int(rng.integers(40, 300)), hidden_size=32 * int(rng.integers(1, 4)),
        moe_intermediate_size=32 * int(rng.integers(1, 3)), q_lora_rank=32 * int(rng.integers(1, 3)),
        o_lora_rank=16 * int(rng.integers(1, 4)), n_routed_experts=n_expert,
        num_experts_per_tok=int(rng.integers(1, min(n_expert, 4) + 1)), index_n_heads=int(rng.integers(1, 5)),
        index_topk=int(rng.integers(2, 12)), bos_token_id=0, eos_token_id=1)


def heads(rng):
    groups = int(rng.choice([1, 2, 3]))
    return dict(o_groups=groups, num_attention_heads=groups * int(rng.integers(1, 3)))


def v4(rng):
    n_layer = int(rng.integers(3, 6))
    ratios = [int(r) for r in rng.choice([0, 4, 128], n_layer)]
    ratios[int(rng.integers(n_layer))] = 4
    rope = int(rng.choice([16, 32, 64]))
    return dict(
        common(rng), **heads(rng), architectures=["DeepseekV4ForCausalLM"], model_type="deepseek_v4", rms_norm_eps=1e-6,
        num_hidden_layers=n_layer, compress_ratios=ratios, qk_rope_head_dim=rope, head_dim=64 * int(rng.integers(1, 3)) + rope,
        index_head_dim=int(rng.choice([64, 128])), sliding_window=int(rng.choice([4, 16, 32, 128])),
        num_hash_layers=int(rng.integers(0, 3)), num_nextn_predict_layers=0)


def v41(rng):
    """Window layers, one or two pair owners with readers, then a ratio-1 owner (the candidate source) with readers."""
    n_window, n_pair, n_one = (int(rng.integers(1, 3)) for _ in range(3))
    ratios = [0] * n_window + [2] * (n_pair + 1) + [1] * (n_one + 2)
    n_layer, first_one = len(ratios), n_window + n_pair + 1
    kv = [n_window, first_one]
    index = sorted({*kv, first_one + 2, n_window + int(rng.integers(0, n_pair + 1))})
    ngram, n_heads, first = int(rng.integers(2, 5)), int(rng.integers(1, 3)), int(rng.integers(20, 60))
    tables = sorted({int(rng.integers(0, n_window)), n_window + 1})
    common_part, rope = common(rng), int(rng.choice([8, 16, 32]))
    hashing = dict(engram_layer_ids=tables, engram_max_ngram_size=ngram, engram_vocab_size=first, engram_n_heads=n_heads)
    primes = engram.primes(SimpleNamespace(**hashing))
    text = dict(
        common_part, **heads(rng), model_type="deepseek_v41_text", rms_norm_eps=float(rng.choice([1e-20, 1e-6])),
        num_hidden_layers=n_layer, compress_ratios=ratios + [0, 0, 0], kv_source_layer_ids=kv, index_source_layer_ids=index,
        head_dim=32 * int(rng.integers(1, 4)) if rope < 32 else 64, qk_rope_head_dim=rope, sliding_window=int(rng.choice([4, 8, 16])),
        index_head_dim=int(rng.choice([32, 64, 96])), candidate_source_layer_id=first_one,
        candidate_topk_blocks=int(rng.integers(2, 8)), candidate_block_size=int(rng.integers(2, 9)), **hashing,
        engram_num_embeddings=[sum(primes[table]) for table in tables], engram_head_dim=32,
        engram_pad_token_id=2, engram_compressed_vocab_size=(common_part["vocab_size"] + 1) // 2, num_nextn_predict_layers=3,
        dspark_block_size=5, dspark_noise_token_id=common_part["vocab_size"] - 1, dspark_markov_rank=16,
        dspark_target_layer_ids=[n_layer - 3, n_layer - 2, n_layer - 1],
        dspark_n_routed_experts=common_part["n_routed_experts"], dspark_num_experts_per_tok=common_part["num_experts_per_tok"])
    return dict(architectures=["DeepseekV41ForCausalLM"], model_type="deepseek_v41", text_config=text)


def weight(rng, name, shape, gain):
    if "norm" in name or name.endswith(("q_weight", "k_weight")):
        w = 1 + 0.2 * rng.standard_normal(shape)
    elif name.endswith("_scale"):
        w = 0.5 + 0.2 * rng.standard_normal(shape)
    elif name.endswith(("ape", "bias", "bias_vl", "_base", "sink")):
        w = 0.3 * rng.standard_normal(shape)
    elif name == "head.weight":
        w = 2 * rng.standard_normal(shape) / shape[-1] ** 0.5
    else:
        w = gain * rng.standard_normal(shape) / shape[-1] ** 0.5
    return torch.from_numpy(w.astype(np.float32))


def weights(rng, cfg, gain=1.0):
    out = {}
    for name, (shape, _) in params.table(cfg).items():
        if name.endswith("tid2eid"):
            rows = [rng.permutation(cfg.n_routed_experts)[:shape[1]] for _ in range(shape[0])]
            out[name] = torch.from_numpy(np.stack(rows).astype(np.int64))
        else:
            out[name] = weight(rng, name, shape, gain)
    return out


def save(path, cfg, values, tokens, plain):
    hf.save(path, values, cfg, plain=plain)
    if tokens is not None:
        (pathlib.Path(path) / "engram_token_map.json").write_text(json.dumps(tokens.tolist()))


def write(path, make, seed, plain=True, **changes):
    """-> cfg, weights as the folder holds them, token map (None: no n-gram tables), path"""
    rng = np.random.default_rng(seed)
    raw = make(rng)
    raw.get("text_config", raw).update(changes)
    cfg = config.from_dict(raw)
    tokens = torch.arange(cfg.vocab_size) // 2 if cfg.engram_layer_ids else None
    save(path, cfg, weights(rng, cfg), tokens, plain)
    cfg, stored = hf.load(path)
    return cfg, stored, tokens, path


def ids(seed, n_vocab, n):
    return [int(i) for i in np.random.default_rng(seed + 1000).integers(0, n_vocab, n)]
