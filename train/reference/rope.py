"""Rotary embedding on interleaved pairs of the last `qk_rope_head_dim` channels. V4 section 3.2, V4.1 section 6.2."""
import math
import torch


def frequencies(cfg, compressed):
    """fp64 frequencies [rope/2]. Layers that read a compressed cache use the second base with YaRN at every length."""
    dim = cfg.qk_rope_head_dim
    index = torch.arange(dim // 2, dtype=torch.float64)
    if not compressed:
        return cfg.rope_theta ** (-2 * index / dim)
    theta, yarn = cfg.compress_rope_theta, cfg.rope_scaling
    base = theta ** (-2 * index / dim)

    def pair_of(rotations):
        original = yarn["original_max_position_embeddings"]
        return dim * math.log(original / (2 * math.pi * rotations)) / (2 * math.log(theta))

    low = max(math.floor(pair_of(yarn["beta_fast"])), 0)
    high = min(math.ceil(pair_of(yarn["beta_slow"])), dim - 1)
    ramp = ((index - low) / max(high - low, 1e-3)).clamp(0, 1)
    return base / yarn["factor"] * ramp + base * (1 - ramp)


class Angles:
    """cos/sin tables for positions 0..n-1, one per base; shared by all layers."""

    def __init__(self, cfg, n, device):
        position = torch.arange(n, dtype=torch.float64)[:, None]
        self.tables = []
        for compressed in (False, True):
            angle = (position * frequencies(cfg, compressed)).to(device)
            self.tables.append((angle.cos().float(), angle.sin().float()))

    def at(self, positions, compressed):
        """(cos, sin), each positions.shape + [rope/2]."""
        cos, sin = self.tables[int(compressed)]
        return cos[positions], sin[positions]


def rotate(x, cos, sin, inverse=False):
    """Rotate the tail of x [..., dim]; cos/sin broadcast against x's leading dimensions."""
    half = cos.shape[-1]
    keep, tail = x[..., : x.shape[-1] - 2 * half], x[..., x.shape[-1] - 2 * half:].float().unflatten(-1, (half, 2))
    if inverse:
        sin = -sin
    a, b = tail[..., 0], tail[..., 1]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    return torch.cat((keep, turned.to(x.dtype)), -1)
