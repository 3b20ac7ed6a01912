"""Lightning indexer: cheap scores that decide which compressed rows a query attends to. V4 section 5, V4.1 sections 7.3, 7.4."""
import torch
from .basics import hot, linear
from .rope import rotate
from . import rounding

NEVER = -1e30


def queries(p, cfg, x, qr, angle, sims):
    """-> index queries [N, heads, dim] and head weights [N, heads] (may be negative)."""
    return _queries(x, qr, p["wq_b.weight"], p["weights_proj.weight"], *angle, cfg, sims)


@hot
def _queries(x, qr, wq_b, weights_proj, cos, sin, cfg, sims):
    qi = linear(qr, wq_b).unflatten(-1, (cfg.index_n_heads, cfg.index_head_dim))
    qi = rounding.index_vector(cfg, rotate(qi, cos[:, None], sin[:, None]), sims)
    return qi, linear(x, weights_proj) * (cfg.index_head_dim * cfg.index_n_heads) ** -0.5


def scores(qi, weight, keys):
    """qi [B,T,h,d], weight [B,T,h], keys [B,R,d] -> sum over heads of weight * relu(q . k), [B,T,R] fp32."""
    B, T, h, d = qi.shape
    dots = torch.relu((qi.reshape(B, T * h, d) @ keys.transpose(-1, -2)).view(B, T, h, -1))
    total = 0
    for head in range(h):
        total = total + weight[:, :, head, None].float() * dots[:, :, head].float()
    return total


@hot
def masked_scores(qi, weight, keys, visible):
    return scores(qi, weight, keys).masked_fill(~visible, NEVER)


def top_rows(score, allowed, k, exact_ties):
    """Boolean mask of the k best allowed rows per query; ties go to the lower row if exact_ties (slower)."""
    score = score.masked_fill(~allowed, NEVER) if allowed is not None else score
    if k >= score.shape[-1]:
        return score > NEVER
    if exact_ties:
        best = torch.sort(score, dim=-1, descending=True, stable=True).indices[..., :k]
    else:
        best = torch.topk(score, k, dim=-1, sorted=False).indices
    mask = torch.zeros_like(score, dtype=torch.bool).scatter_(-1, best, True)
    return mask & (score > NEVER)


def candidate_rows(cfg, score, newest, exact_ties):
    """V4.1 two-level selection: rows of the best blocks. score [B,T,R] (NEVER where invisible); newest [B,T]: newest visible row.

    The block of the newest visible row is always kept. Returns a row mask [B,T,R].
    """
    size, k = cfg.candidate_block_size, cfg.candidate_topk_blocks
    rows = score.shape[-1]
    pad = -rows % size
    padded = torch.nn.functional.pad(score, (0, pad), value=NEVER) if pad else score
    block = padded.unflatten(-1, (-1, size)).amax(-1)
    block = block.scatter(-1, (newest.clamp_min(0) // size)[..., None], float("inf"))
    keep = top_rows(block, None, k, exact_ties)
    return keep.repeat_interleave(size, -1)[..., :rows] & (score > NEVER)


@hot
def matching_loss(qi, weight, keys, allowed, mass):
    """KL(attention's own distribution over the allowed rows || softmax of the index scores), mean over queries with mass.

    `mass` [B,T,R] is detached; only the indexer learns from this.
    """
    score = scores(qi, weight, keys).masked_fill(~allowed, NEVER)
    target = mass.float() * allowed
    total = target.sum(-1, keepdim=True)
    target = target / total.clamp_min(1e-20)
    log_q = score - torch.logsumexp(score, -1, keepdim=True)
    kl = (target * (torch.log(target.clamp_min(1e-20)) - log_q)).sum(-1)
    valid = (total[..., 0] > 1e-6).float()
    return (kl * valid).sum() / valid.sum().clamp_min(1)
