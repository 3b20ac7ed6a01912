"""Engram: hashed n-gram memories added to the streams. V4.1 section 9 and Appendix A (numpy's generator gives the multipliers)."""
import numpy as np
import torch
from .basics import hot, linear


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))


def primes(cfg):
    """{layer: [(ngram-1)*heads primes]}, consecutive primes >= engram_vocab_size across layers in config order."""
    per_layer = (cfg.engram_max_ngram_size - 1) * cfg.engram_n_heads
    found, n = [], cfg.engram_vocab_size
    while len(found) < per_layer * len(cfg.engram_layer_ids):
        if is_prime(n):
            found.append(n)
        n += 1
    return {layer: found[i * per_layer:(i + 1) * per_layer] for i, layer in enumerate(cfg.engram_layer_ids)}


def multipliers(cfg, layer):
    bound = (2 ** 63 - 1) // cfg.engram_compressed_vocab_size // 2
    draws = np.random.default_rng(10007 * layer).integers(0, bound, size=cfg.engram_max_ngram_size, dtype=np.int64)
    return [int(2 * v + 1) for v in draws]


def history(cfg, token_map, ids, position):
    """Compressed ids of the last n tokens, newest first: [n, B, T]. Before the document start: the compressed pad id."""
    mapped = token_map[ids]
    pad = token_map[cfg.engram_pad_token_id]
    out = [mapped]
    for shift in range(1, cfg.engram_max_ngram_size):
        older = torch.roll(mapped, shift, dims=1)
        out.append(torch.where(position >= shift, older, pad))
    return torch.stack(out)


def rows(cfg, layer, past):
    """past [n, ...] int64 compressed ids -> table rows [..., columns]; products stay below 2^63."""
    mult, prime = multipliers(cfg, layer), primes(cfg)[layer]
    offset = np.concatenate(([0], np.cumsum(prime)[:-1]))
    mixed, out = past[0] * mult[0], []
    for i in range(1, cfg.engram_max_ngram_size):
        mixed = mixed ^ (past[i] * mult[i])
        for head in range(cfg.engram_n_heads):
            column = (i - 1) * cfg.engram_n_heads + head
            out.append(mixed % prime[column] + int(offset[column]))
    return torch.stack(out, -1)


def layer(p, cfg, h, row_ids):
    """h [N, 4, D], row_ids [N, columns] -> streams with gated memory added."""
    memory = torch.nn.functional.embedding(row_ids, p["embed.weight"]).flatten(1)
    return _gate(h, memory, p["wkv.weight"], p["q_weight"], p["k_weight"], cfg.rms_norm_eps)


@hot
def _gate(h, memory, wkv, q_weight, k_weight, eps):
    n, streams, d = h.shape
    kv = linear(memory, wkv).float().unflatten(1, (streams + 1, d))
    key, value = kv[:, :streams], kv[:, streams:]
    f = h.float()
    dot = (f * (q_weight.float() * k_weight.float()) * key).sum(-1)
    dot = dot * torch.rsqrt(f.square().mean(-1) + eps) * torch.rsqrt(key.square().mean(-1) + eps) * d ** -0.5
    gate = torch.sigmoid(torch.copysign(torch.sqrt(dot.abs().clamp_min(1e-6)), dot))
    return (f + gate[..., None] * value).to(h.dtype)
