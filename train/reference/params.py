"""Tensor table: every weight by its HF name, with shape and storage format. Init, toy weights, quantisation, loading and export
all walk this table. Routed experts of a layer are one stacked entry `...experts.w1.weight` [E, out, in].

Formats: bf16, f32, i64, fp8 (e4m3 with one power-of-two scale per tile), fp4 (e2m1, scale per row and 32 columns),
rows8 (e4m3, scale per row and 32 columns).
"""


def block_table(cfg, prefix, ratio, owns_rows, owns_index, n_experts, per_token, hashed):
    D, H, hd = cfg.hidden_size, cfg.num_attention_heads, cfg.head_dim
    I, V = cfg.moe_intermediate_size, cfg.vocab_size
    group_width = H * hd // cfg.o_groups
    t = {
        "attn_norm.weight": ((D,), "bf16"), "ffn_norm.weight": ((D,), "bf16"),
        "attn.attn_sink": ((H,), "f32"),
        "attn.wq_a.weight": ((cfg.q_lora_rank, D), "fp8"), "attn.q_norm.weight": ((cfg.q_lora_rank,), "bf16"),
        "attn.wq_b.weight": ((H * hd, cfg.q_lora_rank), "fp8"),
        "attn.wkv.weight": ((hd, D), "fp8"), "attn.kv_norm.weight": ((hd,), "bf16"),
        "attn.wo_a.weight": ((cfg.o_groups * cfg.o_lora_rank, group_width), "fp8"),
        "attn.wo_b.weight": ((D, cfg.o_groups * cfg.o_lora_rank), "fp8"),
        "ffn.gate.weight": ((n_experts, D), "bf16"),
        "ffn.experts.w1.weight": ((n_experts, I, D), "fp4"), "ffn.experts.w3.weight": ((n_experts, I, D), "fp4"),
        "ffn.experts.w2.weight": ((n_experts, D, I), "fp4"),
        "ffn.shared_experts.w1.weight": ((I, D), "fp8"), "ffn.shared_experts.w3.weight": ((I, D), "fp8"),
        "ffn.shared_experts.w2.weight": ((D, I), "fp8"),
    }
    for site in ("attn", "ffn"):
        t[f"hc_{site}_fn"] = ((24, 4 * D), "f32")
        t[f"hc_{site}_base"], t[f"hc_{site}_scale"] = ((24,), "f32"), ((3,), "f32")
    if hashed:
        t["ffn.gate.tid2eid"] = ((V, per_token), "i64")
    else:
        t["ffn.gate.bias"] = ((n_experts,), "f32")
        if cfg.is_v41:
            t["ffn.gate.bias_vl"] = ((n_experts,), "f32")
    if owns_rows:
        t.update(compressor_table(cfg, "attn.compressor.", ratio, hd))
    if owns_index:
        di, hi = cfg.index_head_dim, cfg.index_n_heads
        t["attn.indexer.wq_b.weight"] = ((hi * di, cfg.q_lora_rank), "fp8")
        t["attn.indexer.weights_proj.weight"] = ((hi, D), "bf16")
        if not cfg.is_v41:
            t.update(compressor_table(cfg, "attn.indexer.compressor.", ratio, di))
        elif owns_rows:
            t["attn.indexer.wk.weight"] = ((di, hd), "bf16")
            t["attn.indexer.k_norm.weight"] = ((di,), "bf16")
    return {prefix + name: spec for name, spec in t.items()}


def compressor_table(cfg, prefix, ratio, width):
    D = cfg.hidden_size
    out = 2 * width if ratio == 4 and not cfg.is_v41 else width
    t = {"wkv.weight": ((out, D), "bf16"), "norm.weight": ((width,), "bf16")}
    if ratio > 1:
        t["wgate.weight"] = ((out, D), "bf16")
    if not cfg.is_v41:
        t["ape"] = ((ratio, out), "f32")
    return {prefix + name: spec for name, spec in t.items()}


def backbone_table(cfg):
    D, V = cfg.hidden_size, cfg.vocab_size
    t = {"embed.weight": ((V, D), "bf16"), "head.weight": ((V, D), "bf16"), "norm.weight": ((D,), "bf16")}
    if not cfg.is_v41:
        t.update(head_collapse_table(cfg, ""))
    for l in range(cfg.num_hidden_layers):
        t.update(block_table(cfg, f"layers.{l}.", cfg.ratio(l), cfg.owns_compressor(l), cfg.owns_indexer(l),
                             cfg.n_routed_experts, cfg.num_experts_per_tok, l < cfg.num_hash_layers))
    columns = (getattr(cfg, "engram_max_ngram_size", 1) - 1) * getattr(cfg, "engram_n_heads", 0)
    for l, n_row in zip(cfg.engram_layer_ids, cfg.engram_num_embeddings):
        e = f"layers.{l}.engram."
        t[e + "embed.weight"] = ((n_row, cfg.engram_head_dim), "rows8")
        t[e + "wkv.weight"] = ((5 * D, columns * cfg.engram_head_dim), "fp8")
        t[e + "q_weight"], t[e + "k_weight"] = ((4, D), "bf16"), ((4, D), "bf16")
    return t


def head_collapse_table(cfg, prefix):
    return {prefix + "hc_head_fn": ((4, 4 * cfg.hidden_size), "f32"), prefix + "hc_head_base": ((4,), "f32"),
            prefix + "hc_head_scale": ((1,), "f32")}


def markov_names(cfg):
    """(embedding, output) of the Markov head: the two releases spell them differently."""
    last = f"mtp.{cfg.dspark_stages - 1}.markov_head."
    pair = ("embed", "head") if cfg.is_v41 else ("markov_w1", "markov_w2")
    return tuple(f"{last}{name}.weight" for name in pair)


def dspark_table(cfg):
    if not cfg.dspark_stages:
        return {}
    D, V, rank = cfg.hidden_size, cfg.vocab_size, cfg.dspark_markov_rank
    t = {"mtp.0.main_proj.weight": ((D, D * len(cfg.dspark_target_layer_ids)), "fp8"),
         "mtp.0.main_norm.weight": ((D,), "bf16")}
    for s in range(cfg.dspark_stages):
        t.update(block_table(cfg, f"mtp.{s}.", 0, False, False, cfg.dspark_n_routed_experts,
                             cfg.dspark_num_experts_per_tok, False))
    last = f"mtp.{cfg.dspark_stages - 1}."
    t[last + "norm.weight"] = ((D,), "bf16")
    if not cfg.is_v41:
        t.update(head_collapse_table(cfg, last))
    embed, head = markov_names(cfg)
    t[embed], t[head] = ((V, rank), "bf16"), ((V, rank), "bf16")
    t[last + "confidence_head.proj.weight"] = ((1, D + rank), "bf16")
    return t


def table(cfg):
    return {**backbone_table(cfg), **dspark_table(cfg)}


class Params:
    """A view of the weight dict under a name prefix: Params(w, "layers.2.")["attn.wkv.weight"]."""

    def __init__(self, weights, prefix=""):
        self.weights, self.prefix = weights, prefix

    def __getitem__(self, name):
        return self.weights[self.prefix + name]

    def __contains__(self, name):
        return self.prefix + name in self.weights

    def get(self, name):
        return self.weights.get(self.prefix + name)

    def sub(self, prefix):
        return Params(self.weights, self.prefix + prefix)
