"""Storage formats of weights: quantise (training), encode and decode (files). V4.1 section 3.2, V4 sections 6.6, 6.7.

`quantise(w, fmt, tile)` returns the values the file can hold; encode(quantise(w)) == encode(w), so training, export and
engine see the same numbers. Scales are powers of two, stored as one byte (2^(e-127)).
"""
import torch
import torch.nn.functional as F
from .rounding import pow2ceil, round_e2m1, round_e4m3


def _scale(amax, limit):
    return pow2ceil(amax.clamp_min(limit * 2.0 ** -100) / limit)


def _tiles(w, tile):
    """[..., O, I] padded to tiles: [..., O/t, t, I/t, t]"""
    o, i = w.shape[-2:]
    w = F.pad(w, (0, -i % tile, 0, -o % tile))
    return w.unflatten(-1, (-1, tile)).unflatten(-3, (-1, tile))


def scales(w, fmt, tile):
    """fp8: [..., ceil(O/t), ceil(I/t)]; fp4 and rows8: [..., O, I/32]"""
    if fmt == "fp8":
        return _scale(_tiles(w, tile).abs().amax((-3, -1)), 448.0)
    limit = 6.0 if fmt == "fp4" else 448.0
    return _scale(w.unflatten(-1, (-1, 32)).abs().amax(-1), limit)


def spread(scale, shape, fmt, tile):
    """Scales expanded to the weight's shape."""
    if fmt == "fp8":
        full = scale.repeat_interleave(tile, -1).repeat_interleave(tile, -2)
        return full[..., : shape[-2], : shape[-1]]
    return scale.repeat_interleave(32, -1)


def quantise(w, fmt, tile):
    """fp32 -> fp32 values representable in the format (all of them exact in bf16 too)."""
    if fmt == "bf16":
        return w.bfloat16().float()
    if fmt not in ("fp8", "fp4", "rows8"):
        return w
    s = spread(scales(w, fmt, tile), w.shape, fmt, tile)
    if fmt == "fp4":
        return round_e2m1((w / s).clamp(-6, 6)) * s
    return round_e4m3(w / s) * s


def scale_byte(s):
    """Power-of-two fp32 -> E8M0, as uint8."""
    return ((s.contiguous().view(torch.int32) >> 23) & 255).to(torch.uint8)


def byte_scale(b):
    return (b.to(torch.int32) << 23).view(torch.float32)


E2M1 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6])


def encode(w, fmt, tile):
    """-> (payload, scale bytes): payload is float8_e4m3fn, or int8 with two nibbles per byte, low nibble = even column."""
    s = scales(w, fmt, tile)
    q = w / spread(s, w.shape, fmt, tile)
    if fmt != "fp4":
        return round_e4m3(q).to(torch.float8_e4m3fn), scale_byte(s)
    q = round_e2m1(q.clamp(-6, 6))
    code = torch.bucketize(q.abs(), E2M1).to(torch.uint8) | ((q < 0).to(torch.uint8) << 3)
    return (code[..., 0::2] | (code[..., 1::2] << 4)).view(torch.int8), scale_byte(s)


def decode(payload, scale, fmt, tile):
    s = byte_scale(scale.view(torch.uint8))
    if fmt != "fp4":
        w = payload.float()
        return w * spread(s, w.shape, fmt, tile)
    b = payload.view(torch.uint8).to(torch.int64)
    code = torch.stack((b & 15, b >> 4), -1).flatten(-2)
    w = E2M1[code & 7] * torch.where(code >= 8, -1.0, 1.0)
    return w * spread(s, w.shape, fmt, tile)
