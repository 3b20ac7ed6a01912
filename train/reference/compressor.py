"""Compressors: groups of `ratio` tokens become one long-range key/value row. V4 section 4, V4.1 section 7.1.

V4: gated pooling with a learned per-slot bias; ratio 4 overlaps (previous group's half A, own half B). V4.1: gated pooling
without overlap or bias; ratio 1 is a plain projection. A row is rotated at the FIRST token of its own group.
"""
import torch
from .basics import hot, linear, rms_norm


def raw_rows(p, cfg, x, slot, ratio):
    """Per-token (value, score) [N, width]; slot = position % ratio. Score is None for ratio 1."""
    value = linear(x, p["wkv.weight"])
    if ratio == 1:
        return value, None
    score = linear(x, p["wgate.weight"])
    if "ape" in p:
        score = score.float() + p["ape"][slot]
    return value, score


def pool(value, score):
    """Softmax over the candidate tokens (dim -2), separately per channel."""
    weight = torch.softmax(score.float(), -2)
    return (weight * value.float()).sum(-2).to(value.dtype)


def overlaps(p):
    """V4's ratio-4 compressors project to two halves; their bias tells the width."""
    return "ape" in p and p["ape"].shape[-1] == 2 * p["norm.weight"].shape[0]


def latents(p, cfg, x, slot, ratio, first_group):
    """All groups of a batch. x [B, T, D] with T a multiple of ratio; first_group [B, T/ratio]: starts a document.

    -> normalised, un-rotated latents [B, T/ratio, c].
    """
    B, T, _ = x.shape
    gate, ape = p.get("wgate.weight"), p.get("ape")
    out = _latents(x.reshape(B * T, -1), p["wkv.weight"], gate, ape, p["norm.weight"], slot.reshape(-1),
                   first_group.reshape(-1), ratio, overlaps(p), cfg.rms_norm_eps)
    return out.view(B, T // ratio, -1)


@hot
def _latents(x, wkv, wgate, ape, norm_w, slot, first_group, ratio, overlap, eps):
    value = linear(x, wkv)
    if ratio == 1:
        return rms_norm(value, norm_w, eps)
    score = linear(x, wgate).float()
    if ape is not None:
        score = score + ape[slot]
    value, score = value.unflatten(0, (-1, ratio)), score.unflatten(0, (-1, ratio))   # [G, ratio, width]
    if overlap:
        c = norm_w.shape[0]
        old_value = torch.cat((torch.zeros_like(value[:1, :, :c]), value[:-1, :, :c]), 0)
        old_score = torch.cat((torch.zeros_like(score[:1, :, :c]), score[:-1, :, :c]), 0)
        old_score = old_score.masked_fill(first_group[:, None, None], -1e30)
        value = torch.cat((old_value, value[..., c:]), 1)
        score = torch.cat((old_score, score[..., c:]), 1)
    return rms_norm(pool(value, score), norm_w, eps)
