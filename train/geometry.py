"""The tiny models: complete HF-style config.json dicts for both dialects, and their size budget.

Every mechanism of the big models is present and takes effect within a few hundred to a few thousand tokens: the window is 64,
top-k keeps 64 rows (V4) or 512 (V4.1, as rows of one or two tokens), V4.1's candidate level bites beyond 2,048 tokens.
"""
import numpy as np
from .reference import config, engram, token_map
from .reference.params import table

YARN = {"type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 4096}
COMMON = dict(
    vocab_size=4096, hidden_size=256, moe_intermediate_size=64, num_attention_heads=4, num_key_value_heads=1, q_lora_rank=128,
    o_groups=2, o_lora_rank=64, hidden_act="silu", swiglu_limit=10.0, attention_bias=False, attention_dropout=0.0,
    tie_word_embeddings=False, max_position_embeddings=65536, rope_theta=10000, rope_scaling=YARN, compress_rope_theta=160000,
    n_routed_experts=16, num_experts_per_tok=4, n_shared_experts=1, scoring_func="sqrtsoftplus", topk_method="noaux_tc",
    norm_topk_prob=True, routed_scaling_factor=1.5, sliding_window=64, index_n_heads=4, index_head_dim=64, index_topk=64,
    hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-6, initializer_range=0.02, use_cache=True,
    dspark_block_size=5, dspark_markov_rank=32, dspark_n_routed_experts=8, dspark_num_experts_per_tok=2)
QUANTISATION = dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", scale_fmt="ue8m0")


def token_id(tokenizer, text, default):
    found = tokenizer.token_to_id(text) if tokenizer else None
    return default if found is None else found


def v41(tokenizer=None):
    """Without a tokenizer (dry runs) the Engram map is the identity."""
    classes = int(token_map.build(tokenizer, 4096).max()) + 1 if tokenizer else 4096
    text = dict(
        COMMON, model_type="deepseek_v41_text", num_hidden_layers=10, head_dim=64, qk_rope_head_dim=32, rms_norm_eps=1e-20,
        compress_ratios=[0, 0] + [2] * 4 + [1] * 4 + [0] * 3, kv_source_layer_ids=[2, 4, 6],
        index_source_layer_ids=[2, 4, 6, 8], candidate_source_layer_id=6, candidate_topk_blocks=256, candidate_block_size=8, index_topk=512,
        engram_layer_ids=[1, 4], engram_max_ngram_size=4, engram_vocab_size=3000, engram_n_heads=4, engram_head_dim=32,
        engram_pad_token_id=2, engram_compressed_vocab_size=classes, num_nextn_predict_layers=3,
        dspark_noise_token_id=token_id(tokenizer, "<｜System｜>", 4090), dspark_target_layer_ids=[7, 8, 9])
    draft = config.from_dict(dict(model_type="deepseek_v41", text_config=text))
    text["engram_num_embeddings"] = [sum(p) for p in engram.primes(draft).values()]
    return dict(architectures=["DeepseekV41ForCausalLM"], model_type="deepseek_v41", dtype="bfloat16", bos_token_id=0,
                eos_token_id=1, pad_token_id=2, quantization_config=dict(QUANTISATION, weight_block_size=[32, 32],
                                                                        expert_dtype="fp4"), text_config=text)


def v4(tokenizer=None):
    return dict(
        COMMON, architectures=["DeepseekV4ForCausalLM"], model_type="deepseek_v4", torch_dtype="bfloat16", bos_token_id=0,
        eos_token_id=1, pad_token_id=2, expert_dtype="fp4", rms_norm_eps=1e-6, num_hidden_layers=10, head_dim=128,
        qk_rope_head_dim=64, compress_ratios=[0, 0, 4, 64, 4, 64, 4, 64, 4, 64] + [0] * 3, num_hash_layers=2,
        num_nextn_predict_layers=1, dspark_noise_token_id=token_id(tokenizer, "<｜System｜>", 4090),
        dspark_target_layer_ids=[7, 8, 9], quantization_config=dict(QUANTISATION, weight_block_size=[128, 128]))


def make(dialect, tokenizer=None):
    return config.from_dict((v41 if dialect == "v41" else v4)(tokenizer))


BITS = {"bf16": 16, "f32": 32, "i64": 32, "fp8": 8, "fp4": 4.25, "rows8": 8.25}


def size_bytes(cfg):
    """Payload with native formats (scales of FP8 tiles neglected, hash table as i32): what an exact container needs."""
    return sum(np.prod(shape) * BITS[fmt] / 8 for shape, fmt in table(cfg).values())


if __name__ == "__main__":
    for dialect in ("v41", "v4"):
        cfg = make(dialect)
        total = sum(np.prod(s) for s, _ in table(cfg).values())
        print(f"{dialect}: {total / 1e6:.2f} M parameters, {size_bytes(cfg) / 1e6:.2f} MB native")
