"""Toy models of the specifications: V4 Appendix F and V4.1 Appendix B. Weights are hashes of their names."""
import numpy as np
import torch
from . import config, params

MASK = (1 << 64) - 1


def fnv1a(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def uniform(name, count):
    """count values in [-1, 1) from a splitmix of the name's hash."""
    with np.errstate(over="ignore"):
        z = np.uint64(fnv1a(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return 2 * ((z >> np.uint64(11)).astype(np.float64) * 2.0 ** -53) - 1


def weight(name, shape):
    v = uniform(name, int(np.prod(shape)))
    if "norm" in name or name.endswith(("q_weight", "k_weight")):
        v = 1 + 0.3 * v
    elif name.endswith("_scale"):
        v = 0.7 + 0.3 * v
    elif not name.endswith(("ape", "bias", "bias_vl", "_base", "sink")):
        c = 6 if "experts" in name or name.endswith(".gate.weight") else 2.5
        v = c * v / np.sqrt(shape[-1])
    return torch.from_numpy(v.astype(np.float32).reshape(shape))


def weights(cfg):
    out = {}
    for name, (shape, fmt) in params.table(cfg).items():
        if name.endswith("tid2eid"):
            t, k = torch.arange(shape[0])[:, None], torch.arange(shape[1])[None]
            out[name] = (5 * t + 7 * k) % 16
        elif ".experts." in name:
            stem, matrix = name.split("experts.")
            out[name] = torch.stack([weight(f"{stem}experts.{e}.{matrix}", shape[1:]) for e in range(shape[0])])
        else:
            out[name] = weight(name, shape)
    return out


YARN = {"type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 65536}
COMMON = dict(
    hidden_act="silu", hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-6, swiglu_limit=10.0, routed_scaling_factor=1.5,
    n_shared_experts=1, norm_topk_prob=True, scoring_func="sqrtsoftplus", topk_method="noaux_tc", rope_theta=10000,
    compress_rope_theta=160000, rope_scaling=YARN, num_key_value_heads=1, attention_bias=False, tie_word_embeddings=False,
    max_position_embeddings=1048576)

V4 = dict(
    COMMON, architectures=["DeepseekV4ForCausalLM"], model_type="deepseek_v4", rms_norm_eps=1e-6, vocab_size=101, hidden_size=64,
    num_hidden_layers=7, compress_ratios=[0, 0, 4, 128, 4, 128, 4], num_attention_heads=8, head_dim=128, qk_rope_head_dim=64,
    q_lora_rank=32, o_groups=4, o_lora_rank=16, sliding_window=128, index_n_heads=4, index_head_dim=128, index_topk=16,
    n_routed_experts=16, num_experts_per_tok=3, moe_intermediate_size=32, num_hash_layers=3, num_nextn_predict_layers=0)

V41 = dict(architectures=["DeepseekV41ForCausalLM"], model_type="deepseek_v41", text_config=dict(
    COMMON, model_type="deepseek_v41_text", rms_norm_eps=1e-20, vocab_size=120, hidden_size=64, moe_intermediate_size=32,
    num_hidden_layers=10, num_attention_heads=4, head_dim=64, qk_rope_head_dim=16, q_lora_rank=32, o_groups=2, o_lora_rank=32,
    n_routed_experts=8, num_experts_per_tok=3, sliding_window=16, compress_ratios=[0, 0, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0],
    kv_source_layer_ids=[2, 4, 5], index_source_layer_ids=[2, 4, 5, 7, 9], index_n_heads=4, index_head_dim=32, index_topk=12,
    candidate_source_layer_id=5, candidate_topk_blocks=6, candidate_block_size=4, engram_layer_ids=[1, 4],
    engram_num_embeddings=[384, 552], engram_max_ngram_size=4, engram_vocab_size=50, engram_n_heads=2, engram_head_dim=32,
    engram_pad_token_id=2, engram_compressed_vocab_size=60, num_nextn_predict_layers=3, dspark_block_size=5,
    dspark_noise_token_id=119, dspark_target_layer_ids=[7, 8, 9], dspark_markov_rank=16, dspark_n_routed_experts=6,
    dspark_num_experts_per_tok=2))


def load(arch):
    """-> cfg, weights, token_map (None for V4)."""
    cfg = config.from_dict(V41 if arch == "v41" else V4)
    token_map = torch.arange(cfg.vocab_size) // 2 if cfg.is_v41 else None
    return cfg, weights(cfg), token_map
