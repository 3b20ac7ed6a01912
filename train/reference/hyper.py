"""Manifold hyper-connections: four residual streams, mixed by small input-dependent matrices.

V4 (section 2) collapses the streams with the `pre` of the same site; V4.1 (section 5) with the `pre` of the site before it.
The caller decides which one it passes to `collapse`. comb[i][j]: stream i flows into stream j (sum over the FIRST index).
"""
import torch
from .basics import hot
from . import sinkhorn_kernel


def controls(h, fn, eps):
    """h [N, 4, D] -> fn . flatten(h) / rms(flatten(h)), fp32 [N, len(fn)]."""
    v = h.flatten(1)
    r = torch.rsqrt(v.float().square().mean(-1, keepdim=True) + eps)
    return torch.nn.functional.linear(v, fn.to(v.dtype)).float() * r


def sinkhorn(c, iters, eps):
    """c [N, 4, 4] logits -> nearly doubly stochastic. A softmax and a column pass, then iters-1 full rounds."""
    c = torch.softmax(c, -1) + eps
    c = c / (c.sum(-2, keepdim=True) + eps)
    for _ in range(iters - 1):
        c = c / (c.sum(-1, keepdim=True) + eps)
        c = c / (c.sum(-2, keepdim=True) + eps)
    return c


def mix(h, fn, scale, base, cfg):
    """-> pre [N,4], post [N,4], comb [N,4,4], all fp32."""
    m = _scaled_controls(h, fn, scale, base, cfg.rms_norm_eps)
    pre = torch.sigmoid(m[:, :4]) + cfg.hc_eps
    post = 2 * torch.sigmoid(m[:, 4:8])
    logits = m[:, 8:].unflatten(-1, (4, 4))
    if logits.is_cuda:
        comb = sinkhorn_kernel.sinkhorn(logits, cfg.hc_sinkhorn_iters, cfg.hc_eps)
    else:
        comb = sinkhorn(logits, cfg.hc_sinkhorn_iters, cfg.hc_eps)
    return pre, post, comb


@hot
def _scaled_controls(h, fn, scale, base, eps):
    m = controls(h, fn, eps)
    per_output = torch.cat((scale[0:1].expand(4), scale[1:2].expand(4), scale[2:3].expand(16)))
    return m * per_output + base


@hot
def collapse_norm(h, pre, norm_w, eps):
    """Weighted sum of the streams, then RMS norm: the input of a sub-layer. -> [N, D]"""
    y = (h.float() * pre[..., None]).sum(1)
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)
    return (y * norm_w.float()).to(h.dtype)


def collapse(h, pre):
    return (h.float() * pre[..., None]).sum(1).to(h.dtype)


@hot
def expand(y, h, post, comb):
    """New streams: h'[j] = post[j]*y + sum_i comb[i][j]*h[i]."""
    f = h.float()
    out = post[..., None] * y.float()[:, None]
    for i in range(4):
        out = out + comb[:, i, :, None] * f[:, i, None, :]
    return out.to(h.dtype)


def head_mix(h, fn, scale, base, cfg):
    """V4's final collapse weights [N, 4]: no Sinkhorn, one scalar scale."""
    return torch.sigmoid(controls(h, fn, cfg.rms_norm_eps) * scale + base) + cfg.hc_eps
