"""Attention of one layer: projections, one joint softmax over window rows, compressed rows and a sink, output projection.

One key/value vector serves all heads, and keys are stored rotated, so the output is rotated back before `wo_a`.
V4 section 3, V4.1 section 6.
"""
import torch
from .basics import hot, linear, rms_norm
from .rope import rotate
from . import rounding


def project(p, cfg, x, angle, sims):
    """x [N, D] -> low-rank query qr [N, q_lora], q [N, H, hd], window row kv [N, hd] (rotated and rounded)."""
    return _project(x, p["wq_a.weight"], p["q_norm.weight"], p["wq_b.weight"], p["wkv.weight"], p["kv_norm.weight"],
                    *angle, cfg, sims)


@hot
def _project(x, wq_a, q_norm, wq_b, wkv, kv_norm, cos, sin, cfg, sims):
    qr = rms_norm(linear(x, wq_a), q_norm, cfg.rms_norm_eps)
    q = linear(qr, wq_b).unflatten(-1, (cfg.num_attention_heads, cfg.head_dim))
    if not cfg.is_v41:
        q = rms_norm(q, None, cfg.rms_norm_eps)
    q = rotate(q, cos[:, None], sin[:, None])
    kv = rotate(rms_norm(linear(x, wkv), kv_norm, cfg.rms_norm_eps), cos, sin)
    return qr, q, rounding.window_row(cfg, kv, sims)


@hot
def attend(q, kv, rows, visible, sink, first, window, want_mass, begin=0):
    """Joint attention.

    q [B,T,H,hd]; kv [B,T,hd]; rows [B,R,hd] and visible [B,T,R] (bool) or None; first [B,T/window]: the block starts a
    document. Window rows are taken block by block: a block of `window` queries needs its own block and the one before.
    No window row before `begin` is seen (bounded replay, V4.1 section 14.3).
    Returns o [B,T,H,hd] and, if wanted, each query's attention mass on every row, summed over heads [B,T,R].
    """
    B, T, H, hd = q.shape
    n_block = T // window
    scale = hd ** -0.5
    blocks = kv.view(B, n_block, window, hd)
    before = torch.cat((torch.zeros_like(blocks[:, :1]), blocks[:, :-1]), 1)
    keys = torch.cat((before, blocks), 2)                                        # [B, nb, 2W, hd]
    qb = q.reshape(B, n_block, window * H, hd)
    near = (qb @ keys.transpose(-1, -2)).view(B, n_block, window, H, 2 * window).float() * scale
    i = torch.arange(window, device=q.device)[:, None]
    j = torch.arange(2 * window, device=q.device)[None, :]
    inside = (j > i) & (j <= i + window)                                         # pos_q - pos_k in [0, window)
    inside = inside & ((j >= window) | ~first[:, :, None, None])                 # [B, nb, W, 2W]
    if begin:
        key = torch.arange(n_block, device=q.device)[:, None, None] * window + j - window
        inside = inside & (key >= begin)
    near = near.masked_fill(~inside[:, :, :, None, :], -1e30)
    top = torch.maximum(near.detach().amax(-1), sink.detach())                   # [B, nb, W, H]
    far = None
    if rows is not None:
        far = (q.reshape(B, T * H, hd) @ rows.transpose(-1, -2)).view(B, T, H, -1).float() * scale
        far = far.masked_fill(~visible[:, :, None, :], -1e30)
        top = torch.maximum(top.view(B, T, H), far.detach().amax(-1)).view_as(top)
    weight = torch.exp(near - top[..., None])
    total = weight.sum(-1) + torch.exp(sink - top)
    o = weight.to(q.dtype).view(B, n_block, window * H, -1) @ keys
    o = o.view(B, T, H, hd)
    mass = None
    if rows is not None:
        weight_far = torch.exp(far - top.view(B, T, H, 1))
        total = total.view(B, T, H) + weight_far.sum(-1)
        o = o + (weight_far.to(q.dtype).view(B, T * H, -1) @ rows).view(B, T, H, hd)
        if want_mass:
            mass = (weight_far.detach() / total.detach()[..., None]).sum(2).to(q.dtype)
    return o / total.view(B, T, H, 1).to(o.dtype), mass


def output(p, cfg, o, angle):
    """o [N, H, hd] -> [N, D]: rotate back, block-diagonal wo_a by groups of heads, wo_b."""
    return _output(o, p["wo_a.weight"], p["wo_b.weight"], *angle, cfg.o_groups)


@hot
def _output(o, wo_a, wo_b, cos, sin, groups):
    o = rotate(o, cos[:, None], sin[:, None], inverse=True)
    o = o.flatten(1).unflatten(1, (groups, -1)).to(wo_a.dtype)                   # [N, G, width]
    low = torch.einsum("ngw,grw->ngr", o, wo_a.unflatten(0, (groups, -1)))
    return linear(low.flatten(1), wo_b)
