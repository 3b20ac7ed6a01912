"""DSpark draft stages: three window-only blocks over the backbone's tapped hidden states, a Markov head and a confidence head.

dspark.md sections 1.4 and 1.5, V4.1 section 10.3. Context rows come from `main` (projected taps of processed positions);
five query rows [anchor, noise x4] see the rows of positions p-window+1..p and each other, in both directions.
"""
import torch
from . import attention, hyper, model, rounding
from .basics import hot, linear, rms_norm
from .params import Params, markov_names
from .rope import rotate


def main_hidden(weights, cfg, taps):
    """taps: list of [N, D] -> [N, D]"""
    return rms_norm(linear(torch.cat(taps, -1), weights["mtp.0.main_proj.weight"]), weights["mtp.0.main_norm.weight"],
                    cfg.rms_norm_eps)


def context_rows(p, cfg, main, angle, sims):
    """Window rows [N, hd] that a stage derives from main [N, D]."""
    kv = rms_norm(linear(main, p["wkv.weight"]), p["kv_norm.weight"], cfg.rms_norm_eps)
    return rounding.window_row(cfg, rotate(kv, *angle), sims)


@hot
def joint(q, context, seen, own, sink):
    """q [A,S,H,hd]; context [A,W,hd] with seen [A,W]; own block rows [A,S,hd] -> [A,S,H,hd]."""
    keys = torch.cat((context, own), 1)
    scale = q.shape[-1] ** -0.5
    score = torch.einsum("ashd,akd->ashk", q, keys).float() * scale
    allowed = torch.cat((seen, seen.new_ones(own.shape[:2])), 1)
    score = score.masked_fill(~allowed[:, None, None, :], -1e30)
    top = torch.maximum(score.detach().amax(-1), sink.detach())[..., None]
    weight = torch.exp(score - top)
    total = weight.sum(-1, keepdim=True) + torch.exp(sink[:, None] - top)
    return torch.einsum("ashk,akd->ashd", (weight / total).to(keys.dtype), keys)


def stages(weights, cfg, rows, row, position, anchor, angles, run):
    """Drafts for A anchors.

    rows: per stage context rows [B, T, hd]; row [A] batch row; position/absolute index of the last processed token as
    (position [A] in its document, absolute [A] in its row); anchor [A]: the token that follows it.
    -> y [A, S, D]: collapsed streams before the final norm.
    """
    place, absolute = position
    A, S, W = len(anchor), cfg.dspark_block_size, cfg.sliding_window
    ids = torch.full((A, S), cfg.dspark_noise_token_id, device=anchor.device)
    ids[:, 0] = anchor
    flat = ids.reshape(-1)
    h, carry = model.streams(weights, flat)
    steps = torch.arange(S, device=anchor.device)
    angle = angles.at((place[:, None] + 1 + steps).reshape(-1), False)
    back = torch.arange(W - 1, -1, -1, device=anchor.device)
    seen = place[:, None] - back >= 0
    at = (absolute[:, None] - back).clamp_min(0)
    for s in range(cfg.dspark_stages):
        p = Params(weights, f"mtp.{s}.")
        context = rows[s][row[:, None], at]

        def attend(x, attn=p.sub("attn.")):
            _, q, own = attention.project(attn, cfg, x, angle, run.sims)
            o = joint(q.view(A, S, *q.shape[1:]), context, seen, own.view(A, S, -1), attn["attn_sink"])
            return attention.output(attn, cfg, o.reshape(A * S, *o.shape[2:]), angle)

        h, carry, run.loads[f"mtp.{s}"] = model.block(p, cfg, h, carry, attend, flat, cfg.dspark_num_experts_per_tok)
    if not cfg.is_v41:
        last = Params(weights, f"mtp.{cfg.dspark_stages - 1}.")
        carry = hyper.head_mix(h, last["hc_head_fn"], last["hc_head_scale"], last["hc_head_base"], cfg)
    return hyper.collapse(h, carry).view(A, S, -1)


def unbiased_logits(weights, cfg, y):
    last = f"mtp.{cfg.dspark_stages - 1}."
    return linear(rms_norm(y, weights[last + "norm.weight"], cfg.rms_norm_eps), weights["head.weight"])


def markov_bias(weights, cfg, previous):
    """-> (logit bias [..., V], Markov embedding [..., rank]) after the token `previous`."""
    embed, head = markov_names(cfg)
    e = torch.nn.functional.embedding(previous, weights[embed])
    return linear(e, weights[head]), e


def confidence(weights, cfg, y, markov_embedding):
    """Logit of the probability that the draft of this row is accepted given that all before it were."""
    w = weights[f"mtp.{cfg.dspark_stages - 1}.confidence_head.proj.weight"].float()
    return torch.nn.functional.linear(torch.cat((y.float(), markov_embedding.float()), -1), w)[..., 0]


def draft(weights, cfg, y, anchor):
    """Greedy left-to-right choice. y [A,S,D] -> ids [A,S], confidence logits [A,S], biased logits [A,S,V]."""
    base, previous = unbiased_logits(weights, cfg, y).float(), anchor
    ids, conf, out = [], [], []
    for s in range(y.shape[1]):
        bias, e = markov_bias(weights, cfg, previous)
        row = base[:, s] + bias.float()
        conf.append(confidence(weights, cfg, y[:, s], e))
        previous = row.argmax(-1)
        ids.append(previous)
        out.append(row)
    return torch.stack(ids, 1), torch.stack(conf, 1), torch.stack(out, 1)


def all_context_rows(weights, cfg, batch, taps, run):
    """Per stage context rows [B, T, hd] from the taps of a backbone pass over `batch`."""
    main = main_hidden(weights, cfg, taps)
    B, T = batch.ids.shape
    return [context_rows(Params(weights, f"mtp.{s}.attn."), cfg, main, batch.angle[0], run.sims).view(B, T, -1)
            for s in range(cfg.dspark_stages)]
