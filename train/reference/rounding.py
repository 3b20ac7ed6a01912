"""The roundings the models were trained with, as fake quantisers: values stay in the tensor's dtype, but only take values
that the compact format can hold. Gradients pass straight through. V4 section 4.6, V4.1 section 3.3.

`pow2ceil` and the e2m1 rule follow the specification to the bit, including ties.
"""
import torch


def pow2ceil(x):
    """Smallest power of two >= x, for positive normal fp32: a carry out of the mantissa increments the exponent."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x7FFFFF) & 0x7F800000).view(torch.float32)


def round_e4m3(x):
    return x.clamp(-448, 448).to(torch.float8_e4m3fn).to(torch.float32)


def round_e2m1(x):
    """Nearest of {0,.5,1,1.5,2,3,4,6}, ties to the even code; |x| <= 6."""
    a = x.abs()
    octave = (a.clamp_min(1).contiguous().view(torch.int32) & 0x7F800000).view(torch.float32)
    step = octave * 0.5                                                          # 0.5 below 2, 1 below 4, else 2
    return torch.sign(x) * torch.round(a / step) * step


def _grouped(x, group, quantise):
    """Apply quantise([..., n_group, group] fp32) over the last dimension, straight-through gradient."""
    g = x.detach().float().unflatten(-1, (-1, group))
    y = quantise(g).flatten(-2).to(x.dtype)
    return y + (x - x.detach()) if x.requires_grad else y      # value y exactly, gradient of x


def _w8(g):
    scale = pow2ceil(g.abs().amax(-1, keepdim=True).clamp_min(1e-4) * (1.0 / 448))
    return round_e4m3(g / scale) * scale


def _i4(g):
    scale = pow2ceil(g.abs().amax(-1, keepdim=True).clamp_min(6 * 2.0 ** -126) * (1.0 / 6))
    return round_e2m1((g / scale).clamp(-6, 6)) * scale


def _c4(g):
    scale = round_e4m3(g.abs().amax(-1, keepdim=True).clamp_min(6 * 2.0 ** -9) / 6)
    return round_e2m1((g / scale).clamp(-6, 6)) * scale


def w8(x, group):
    return _grouped(x, group, _w8)


def i4(x):
    return _grouped(x, 32, _i4)


def c4(x):
    return _grouped(x, 16, _c4)


def hadamard(x):
    """Orthonormal Walsh-Hadamard transform of the last dimension, natural order. V4 section 4.6."""
    n = x.shape[-1]
    y, span = x, 1
    while span < n:
        y = y.unflatten(-1, (n // (2 * span), 2, span))
        a, b = y[..., 0, :], y[..., 1, :]
        y = torch.stack((a + b, a - b), -2).flatten(-3)
        span *= 2
    return y * n ** -0.5


def window_row(cfg, kv, on=True):
    """Rounding of a window row after RoPE: V4 skips the rotary tail, V4.1 does not."""
    if not on:
        return kv
    if cfg.is_v41:
        return w8(kv, 32)
    nope = cfg.head_dim - cfg.qk_rope_head_dim
    return torch.cat((w8(kv[..., :nope], 64), kv[..., nope:]), -1)


def compressed_row(cfg, row, on=True):
    """Rounding of a compressed KV row after RoPE."""
    if not on:
        return row
    return c4(row) if cfg.is_v41 else window_row(cfg, row)


def index_vector(cfg, v, on=True):
    """Rounding of an indexer query or key after RoPE; V4 rotates by Hadamard first (kept when rounding is off)."""
    if not cfg.is_v41:
        v = hadamard(v)
    return i4(v) if on else v
