"""Mixture of experts: router, routed experts, shared expert. V4 section 6, V4.1 section 8.

With so few tiny experts the fastest form is dense: all experts for all tokens as two matmuls, unselected ones weighted by zero.
"""
import torch
from .basics import hot, linear


def layer(p, cfg, x, ids, experts_per_token):
    """x [N, D], ids [N] -> output [N, D], number of tokens per expert [E]."""
    chosen = p["gate.tid2eid"][ids] if "gate.tid2eid" in p else None
    return _layer(x, p["gate.weight"], p.get("gate.bias"), chosen, p["experts.w1.weight"], p["experts.w3.weight"],
                  p["experts.w2.weight"], p["shared_experts.w1.weight"], p["shared_experts.w3.weight"],
                  p["shared_experts.w2.weight"], experts_per_token, cfg.routed_scaling_factor, cfg.swiglu_limit)


def choose(score, bias, k):
    """Mask of the k largest score+bias, ties to the lower expert. Ranks by counting, which needs no sort."""
    s = score.detach() + bias
    mine, other = s[:, :, None], s[:, None, :]
    index = torch.arange(s.shape[1], device=s.device)
    ahead = (other > mine) | ((other == mine) & (index[None, :] < index[:, None]))
    return ahead.sum(-1) < k


@hot
def _layer(x, gate, bias, chosen, w1, w3, w2, s1, s3, s2, k, route_scale, limit):
    score = torch.sqrt(torch.nn.functional.softplus(linear(x.float(), gate.float()), threshold=30))
    if chosen is None:
        picked = choose(score, bias, k)
    else:
        picked = (chosen[:, :, None] == torch.arange(score.shape[1], device=x.device)).any(1)
    share = score * picked
    share = share / (share.sum(-1, keepdim=True) + 1e-20) * route_scale
    share = torch.cat((share, torch.ones_like(share[:, :1])), 1)                 # the shared expert has weight 1
    width = w1.shape[1]
    a = linear(x, torch.cat((w1.flatten(0, 1), s1))).float().clamp_max(limit)
    u = linear(x, torch.cat((w3.flatten(0, 1), s3))).float().clamp(-limit, limit)
    y = torch.nn.functional.silu(a) * u
    y = (y.unflatten(1, (-1, width)) * share[..., None]).flatten(1).to(x.dtype)
    return linear(y, torch.cat((w2.permute(1, 0, 2).flatten(1), s2), 1)), picked.sum(0)
