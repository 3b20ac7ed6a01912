#!/usr/bin/env python3
"""Writes a GGUF file of random weights with the layer shapes of a real model, for measuring.

Every matrix keeps the size of what passes through it, attention outputs apart, which are small: averages over many rows
would make all tokens alike, and a few experts would get them all. So numbers stay finite, routing is near uniform, and
the speed is that of a real file with as many layers and experts. Its text means nothing; drafts cannot be judged by it.

Large tensors are copied from one pool of random blocks per format, 8 MiB at a time from random places, scaled to the
tensor. Memory stays near 100 MB whatever the file. Content depends on the options only.

  bench/synth.py --model v4 --layers 6 --experts 24 --vocab 16384 OUT.gguf        # about 2 GB
  bench/synth.py --model v41 --layers 12 --experts 32 --mix mxfp4 OUT.gguf
"""
import argparse
import json
import math
import pathlib
import zlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHUNK = 8 << 20
MIXES = {"q2": dict(gate=Q.IQ2_XXS, up=Q.IQ2_XXS, down=Q.Q2_K, dense=Q.Q8_0),
         "mxfp4": dict(gate=Q.MXFP4, up=Q.MXFP4, down=Q.MXFP4, dense=Q.Q8_0),
         "q8": dict(gate=Q.Q8_0, up=Q.Q8_0, down=Q.Q8_0, dense=Q.Q8_0)}

# Sizes of the releases; --layers, --experts, --vocab and --engram-rows make them smaller.
V4 = dict(architecture="deepseek4", dialect="v4", hidden=4096, layers=43, vocab=129280, heads=64, head_dim=512, rope=64,
          q_lora=1024, o_lora=1024, o_groups=8, window=128, index_heads=64, index_dim=128, index_topk=512, experts=256,
          used=6, ff=2048, hashed=3, eps=1e-6, engram=())
V41 = dict(V4, architecture="deepseek41", dialect="v41", hidden=5120, layers=40, q_lora=1280, index_heads=32, experts=384,
           ff=2304, hashed=0, eps=1e-20, engram=(1, 14))


def plan_layers(g):
    """Ratios and owners, in the proportions of the release."""
    n = g["layers"]
    if g["architecture"] == "deepseek4":
        g["ratios"] = [0 if i < 2 else 4 if i % 2 == 0 else 128 for i in range(n)]
        g["hashed"] = min(g["hashed"], n)
        g["kv_sources"] = [i for i in range(n) if g["ratios"][i]]
        g["index_sources"] = [i for i in range(n) if g["ratios"][i] == 4]
        return
    single = 2 + round((n - 2) * 18 / 38)  # the first layer whose rows are single tokens
    g["ratios"] = [0, 0] + [2] * (single - 2) + [1] * (n - single)
    g["kv_sources"] = [*range(2, single, 6), single]
    g["index_sources"] = [*g["kv_sources"], *range(single + 4, n, 4)]
    g["candidate_source"] = single
    g["engram"] = [i for i in g["engram"] if i < n]


def primes_from(first):
    n = first
    while True:
        if n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1)):
            yield n
        n += 1


def tensors(g, mix):
    """(name, format, shape with rows first, (mean, deviation)) of every tensor; a word in place of numbers names a rule."""
    hidden, heads, dim = g["hidden"], g["heads"], g["head_dim"]
    dense, is_v4 = mix["dense"], g["architecture"] == "deepseek4"
    norm, small = (1.0, 0.1), (0.0, 0.1)

    def matrix(name, rows, cols, kind=dense, gain=1.0):
        return name, kind, (rows, cols), (0.0, gain / math.sqrt(cols))

    def vector(name, n, fill=norm):
        return name, Q.F32, (n,), fill
    yield "token_embd.weight", Q.F16, (g["vocab"], hidden), (0.0, 1.0)
    yield matrix("output.weight", g["vocab"], hidden)
    yield vector("output_norm.weight", hidden)
    if is_v4:
        yield matrix("output_hc_fn.weight", 4, 4 * hidden, Q.F16, 0.25)
        yield vector("output_hc_scale.weight", 1, (1.0, 0.0))
        yield vector("output_hc_base.weight", 4, small)
    for i in range(g["layers"]):
        p, ratio = f"blk.{i}.", g["ratios"][i]
        for part in ("attn", "ffn"):
            yield matrix(f"{p}hc_{part}_fn.weight", 24, 4 * hidden, Q.F16, 0.25)
            yield vector(f"{p}hc_{part}_scale.weight", 3, (1.0, 0.0))
            yield vector(f"{p}hc_{part}_base.weight", 24, "mix")
            yield vector(f"{p}{part}_norm.weight", hidden)
        yield matrix(p + "attn_q_a.weight", g["q_lora"], hidden)
        yield vector(p + "attn_q_a_norm.weight", g["q_lora"])
        yield matrix(p + "attn_q_b.weight", heads * dim, g["q_lora"])
        yield matrix(p + "attn_kv.weight", dim, hidden)
        yield vector(p + "attn_kv_a_norm.weight", dim)
        yield vector(p + "attn_sinks.weight", heads, (0.0, 1.0))
        yield matrix(p + "attn_output_a.weight", g["o_groups"] * g["o_lora"], heads * dim // g["o_groups"])
        yield matrix(p + "attn_output_b.weight", hidden, g["o_groups"] * g["o_lora"], dense, 0.04)
        makes, chooses = i in g["kv_sources"], i in g["index_sources"]
        wide = 2 if is_v4 and ratio == 4 else 1
        if makes:
            yield matrix(p + "attn_compressor_kv.weight", wide * dim, hidden, Q.F16)
            yield vector(p + "attn_compressor_norm.weight", dim)
        if makes and ratio > 1:
            yield matrix(p + "attn_compressor_gate.weight", wide * dim, hidden, Q.F16)
        if makes and is_v4:
            yield p + "attn_compressor_ape.weight", Q.F16, (ratio, wide * dim), (0.0, 0.5)
        if chooses:
            yield matrix(p + "indexer.attn_q_b.weight", g["index_heads"] * g["index_dim"], g["q_lora"], Q.F16)
            yield matrix(p + "indexer.proj.weight", g["index_heads"], hidden, Q.F16)
        if chooses and is_v4:
            yield matrix(p + "indexer_compressor_kv.weight", 2 * g["index_dim"], hidden, Q.F16)
            yield matrix(p + "indexer_compressor_gate.weight", 2 * g["index_dim"], hidden, Q.F16)
            yield p + "indexer_compressor_ape.weight", Q.F16, (ratio, 2 * g["index_dim"]), (0.0, 0.5)
            yield vector(p + "indexer_compressor_norm.weight", g["index_dim"])
        elif makes and chooses:
            yield matrix(p + "indexer.attn_k.weight", g["index_dim"], dim, Q.F16)
            yield vector(p + "indexer.k_norm.weight", g["index_dim"])
        yield matrix(p + "ffn_gate_inp.weight", g["experts"], hidden, Q.F16)
        if i < g["hashed"]:
            yield p + "ffn_gate_tid2eid.weight", Q.I32, (g["vocab"], g["used"]), "experts"
        else:
            yield vector(p + "exp_probs_b.bias", g["experts"], (0.0, 0.01))
        for part, rows, cols in (("gate", g["ff"], hidden), ("up", g["ff"], hidden), ("down", hidden, g["ff"])):
            yield f"{p}ffn_{part}_exps.weight", mix[part], (g["experts"], rows, cols), (0.0, cols ** -0.5)
            yield matrix(f"{p}ffn_{part}_shexp.weight", rows, cols)
        if i in g["engram"]:
            yield p + "engram_embd.weight", Q.Q8_0, (g["table_rows"][i], 256), (0.0, 1.0)
            yield matrix(p + "engram_kv.weight", 5 * hidden, 3 * 8 * 256)
            yield p + "engram_q.weight", Q.F32, (4, hidden), norm
            yield p + "engram_k.weight", Q.F32, (4, hidden), norm


# ---- Random blocks ----

BLOCKS = {Q.Q8_0: [("d", "<f2"), ("q", "i1", 32)], Q.IQ2_XXS: [("d", "<f2"), ("w", "<u4", 16)],
          Q.Q2_K: [("sc", "u1", 16), ("q", "u1", 64), ("d", "<f2"), ("dmin", "<f2")], Q.MXFP4: [("e", "u1"), ("q", "u1", 16)],
          Q.F16: [("x", "<f2")], Q.F32: [("x", "<f4")]}
# Deviation of a decoded value whose block scale is 1; Q2_K: with dmin = 1.5 d and the same nibble twice.
DEVIATION = {Q.Q8_0: 73.32, Q.IQ2_XXS: 53.36, Q.Q2_K: 10.17, Q.MXFP4: 2.93}


def make_pool(kind, rng):
    blocks = np.empty(2 * CHUNK // np.dtype(BLOCKS[kind]).itemsize, dtype=BLOCKS[kind])
    n = len(blocks)
    if kind in (Q.F16, Q.F32):
        blocks["x"] = rng.standard_normal(n, dtype=np.float32)
    elif kind == Q.Q8_0:
        blocks["q"] = rng.integers(-127, 128, (n, 32), dtype=np.int8)
    elif kind == Q.IQ2_XXS:
        blocks["w"] = rng.integers(0, 1 << 32, (n, 16), dtype=np.uint32)
    elif kind == Q.Q2_K:
        blocks["sc"] = rng.integers(1, 16, (n, 16), dtype=np.uint8) * 17
        blocks["q"] = rng.integers(0, 256, (n, 64), dtype=np.uint8)
    else:
        blocks["q"] = rng.integers(0, 256, (n, 16), dtype=np.uint8)
    return blocks


def scale_blocks(kind, blocks, mean, deviation, rng):
    if kind in (Q.F16, Q.F32):
        blocks["x"] = blocks["x"].astype(np.float32) * deviation + mean
        return
    d = deviation / DEVIATION[kind]
    if kind == Q.MXFP4:
        blocks["e"] = 127 + round(math.log2(d)) - rng.integers(0, 2, len(blocks), dtype=np.uint8)
        return
    blocks["d"] = d * (0.8 + 0.4 * rng.random(len(blocks), dtype=np.float32))
    if kind == Q.Q2_K:
        blocks["dmin"] = 1.5 * blocks["d"].astype(np.float32)


def special_data(rule, shape, n_expert, rng):
    if rule == "experts":  # different ones for one token
        first, step = rng.integers(0, n_expert, (shape[0], 1)), rng.integers(1, max(2, n_expert // shape[1]), (shape[0], 1))
        return ((first + step * np.arange(shape[1])) % n_expert).astype("<i4")
    x = rng.standard_normal(shape).astype("<f4") * 0.1  # streams mostly stay where they are
    x[8:] += 2.0 * np.eye(4, dtype=np.float32).ravel()
    return x


def chunks(tensor, pools, g):
    """The data of a tensor in pieces."""
    name, kind, shape, fill = tensor
    rng = np.random.default_rng([g["seed"], zlib.crc32(name.encode())])
    if isinstance(fill, str):
        yield special_data(fill, shape, g["experts"], rng)
        return
    if kind not in pools:
        pools[kind] = make_pool(kind, np.random.default_rng([g["seed"], int(kind)]))
    n = math.prod(shape) // gguf.GGML_QUANT_SIZES[kind][0]
    while n:
        n_now = min(n, len(pools[kind]) // 2)
        start = rng.integers(0, len(pools[kind]) - n_now + 1)
        blocks = pools[kind][start:start + n_now].copy()
        scale_blocks(kind, blocks, *fill, rng)
        yield blocks
        n -= n_now


# ---- Keys ----

def add_tokenizer(w, g):
    """The one of the tiny models; ids that it does not have become words that no text contains."""
    t = json.loads((ROOT / "train/tokenizer/tokenizer.json").read_text())
    tokens = [f"<unused {i}>" for i in range(g["vocab"])]
    types = [gguf.TokenType.UNUSED] * g["vocab"]
    for word, i in t["model"]["vocab"].items():
        tokens[i], types[i] = word, gguf.TokenType.NORMAL
    for x in t["added_tokens"]:
        tokens[x["id"]], types[x["id"]] = x["content"], gguf.TokenType.CONTROL if x["special"] else gguf.TokenType.USER_DEFINED
    merges = [m if isinstance(m, str) else " ".join(m) for m in t["model"]["merges"]]
    w.add_tokenizer_model("gpt2")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges(merges)
    w.add_array("hadal.tokenizer.patterns",
                [x["pattern"]["Regex"] for x in t["pre_tokenizer"]["pretokenizers"] if x["type"] == "Split"])
    for name, i in (("bos", 0), ("eos", 1), ("padding", 2)):
        w.add_uint32(f"tokenizer.ggml.{name}_token_id", i)


def add_keys(w, g):
    a = g["architecture"] + "."
    counts = {"vocab_size": "vocab", "embedding_length": "hidden", "block_count": "layers", "context_length": "context",
              "attention.head_count": "heads", "attention.key_length": "head_dim", "attention.value_length": "head_dim",
              "rope.dimension_count": "rope", "attention.q_lora_rank": "q_lora", "attention.output_lora_rank": "o_lora",
              "attention.output_group_count": "o_groups", "attention.sliding_window": "window",
              "attention.indexer.head_count": "index_heads", "attention.indexer.key_length": "index_dim",
              "attention.indexer.top_k": "index_topk", "expert_count": "experts", "expert_used_count": "used",
              "expert_feed_forward_length": "ff"}
    for key, size in counts.items():
        w.add_uint32(a + key, g[size])
    for key, value in {"attention.head_count_kv": 1, "expert_shared_count": 1, "expert_gating_func": 4,
                       "rope.scaling.original_context_length": 65536, "hyper_connection.count": 4,
                       "hyper_connection.sinkhorn_iterations": 20}.items():
        w.add_uint32(a + key, value)
    for key, value in {"attention.layer_norm_rms_epsilon": g["eps"], "rope.freq_base": 1e4, "rope.scaling.factor": 16.0,
                       "attention.compress_rope_freq_base": 1.6e5, "expert_weights_scale": 1.5,
                       "rope.scaling.yarn_beta_fast": 32.0, "rope.scaling.yarn_beta_slow": 1.0,
                       "hyper_connection.epsilon": 1e-6}.items():
        w.add_float32(a + key, value)
    w.add_bool(a + "expert_weights_norm", True)
    w.add_string(a + "rope.scaling.type", "yarn")
    w.add_array(a + "swiglu_clamp_exp", [10.0] * g["layers"])
    w.add_array(a + "attention.compress_ratios", g["ratios"])
    w.add_string("hadal.chat_dialect", g["dialect"])
    if g["hashed"]:
        w.add_uint32(a + "hash_layer_count", g["hashed"])
    if g["architecture"] == "deepseek41":
        w.add_array(a + "attention.kv_source_layer_ids", g["kv_sources"])
        w.add_array(a + "attention.index_source_layer_ids", g["index_sources"])
        for key, value in (("source_layer_id", g["candidate_source"]), ("topk_blocks", 2048), ("block_size", 8)):
            w.add_uint32(f"{a}attention.candidate_{key}", value)
    if g["engram"]:
        for key, value in {"max_ngram_size": 4, "head_count": 8, "key_length": 256, "pad_id": 2, "vocab_size": g["engram_rows"],
                           "compressed_vocab_size": g["vocab"]}.items():
            w.add_uint32(f"{a}engram.{key}", value)
        w.add_array(a + "engram.layer_ids", g["engram"])
        w.add_array(a + "engram.rows", [g["table_rows"][i] for i in g["engram"]])
        w.add_array(a + "engram.token_map", list(range(g["vocab"])))


def write(g, mix, path):
    w = gguf.GGUFWriter(path, g["architecture"])
    w.add_name(f"synthetic-{g['dialect']}-{g['layers']}x{g['experts']}")
    add_keys(w, g)
    add_tokenizer(w, g)
    listed = list(tensors(g, mix))
    for name, kind, shape, _ in listed:
        stored = gguf.quant_shape_to_byte_shape(shape, kind) if kind in DEVIATION else shape
        dtype = np.dtype({Q.F16: np.float16, Q.F32: np.float32, Q.I32: np.int32}.get(kind, np.uint8))
        w.add_tensor_info(name, stored, dtype, math.prod(stored) * dtype.itemsize, raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_ti_data_to_file()
    out, pools = w.fout[0], {}
    w.write_padding(out, out.tell())
    for tensor in listed:
        for piece in chunks(tensor, pools, g):
            out.write(piece.tobytes())
        w.write_padding(out, out.tell())
    n_byte = out.tell()
    w.close()
    return len(listed), n_byte


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("v4", "v41"), default="v4", help="whose shapes")
    parser.add_argument("--mix", choices=sorted(MIXES), default="q2", help="formats of the experts; the rest is Q8_0")
    for name, text in (("layers", "the first layers only"), ("experts", "fewer per layer"), ("vocab", "fewer tokens, 4096 or more")):
        parser.add_argument("--" + name, type=int, help=text + "; default: all of them")
    parser.add_argument("--engram-rows", type=int, default=16000, help="rows of an n-gram table per column (the release: 16000000)")
    parser.add_argument("--context", type=int, default=1 << 20)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("output", metavar="OUT.gguf")
    o = parser.parse_args()
    g = dict(V4 if o.model == "v4" else V41, context=o.context, seed=o.seed, engram_rows=o.engram_rows)
    g.update({name: getattr(o, name) for name in ("layers", "experts", "vocab") if getattr(o, name)})
    plan_layers(g)
    primes = primes_from(o.engram_rows)
    g["table_rows"] = {i: sum(next(primes) for _ in range(24)) for i in g["engram"]}
    n_tensor, n_byte = write(g, MIXES[o.mix], o.output)
    print(f"{o.output}: {n_tensor} tensors, {n_byte} bytes")


if __name__ == "__main__":
    main()
