"""Forward pass of the backbone, both architectures: V4 (Appendix B) and V4.1 (section 4).

One function serves the oracle (fp32, every mechanism as written) and training (bf16, packed documents, indexer losses). A row
of the batch may hold several documents, each starting at a multiple of `cfg.align`: every mask, position and hash is relative
to the document start, so packing changes nothing.
"""
from dataclasses import dataclass, field
import torch
from torch.utils.checkpoint import checkpoint
from . import attention, compressor, engram, hyper, indexer, moe, rounding
from .basics import linear, rms_norm
from .params import Params
from .rope import Angles


@dataclass
class Run:
    """Switches of one forward pass."""
    sims: bool = True              # KV and index roundings
    sparse: bool = True            # top-k selection on; off = every visible row (dense warm-up)
    exact_ties: bool = False       # lower row wins ties (oracle) instead of any
    random_rows: bool = False      # ablation: selection by random scores
    index_loss: bool = False       # collect the indexers' matching losses
    index_stride: int = 1          # ... on every n-th query only
    recompute: bool = False        # save memory: recompute attention in the backward pass
    replay_from: int = 0           # V4.1: windows of the decoder half begin at this token (rows before it mean nothing)
    keep: dict = None              # if a dict: per-layer caches for generation are stored here
    # filled by the forward pass
    losses: list = field(default_factory=list)
    loads: dict = field(default_factory=dict)
    taps: list = field(default_factory=list)
    trace: dict = field(default_factory=dict)

    def maybe_recompute(self, fn, *args):
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(fn, *args, use_reentrant=False)
        return fn(*args)


class Batch:
    """Token ids [B, T] with each token's document start (absolute index in its row), and everything derived from them."""

    def __init__(self, cfg, ids, start=None, angles=None, token_map=None):
        B, T = ids.shape
        device = ids.device
        self.cfg, self.ids = cfg, ids
        self.start = torch.zeros_like(ids) if start is None else start
        self.absolute = torch.arange(T, device=device)
        self.position = self.absolute - self.start                               # [B, T]
        angles = angles or Angles(cfg, T, device)
        flat = self.position.reshape(-1)
        self.angle = [angles.at(flat, c) for c in (False, True)]
        self.angles = angles
        self.first_block = self.position[:, ::cfg.sliding_window] == 0
        self.token_map = token_map
        self._visible = {}
        if cfg.engram_layer_ids:
            past = engram.history(cfg, token_map, ids, self.position).flatten(1)
            self.engram_rows = {l: engram.rows(cfg, l, past) for l in cfg.engram_layer_ids}

    def visible(self, ratio):
        """[B, T, T/ratio] bool: the row's group is complete at the query and belongs to the query's document."""
        if ratio not in self._visible:
            row = self.absolute[: len(self.absolute) // ratio]
            complete = row[None, :] < ((self.absolute + 1) // ratio)[:, None]
            self._visible[ratio] = complete[None] & (row * ratio >= self.start[..., None])
        return self._visible[ratio]

    def newest(self, ratio):
        return (self.absolute + 1) // ratio - 1


def rows_and_keys(p, cfg, batch, x, layer, run):
    """Compressed rows [B,R,hd] of an owner layer, and its index keys [B,R,d] if it has an indexer."""
    ratio = cfg.ratio(layer)
    B, T = batch.ids.shape
    xt = x.view(B, T, -1)
    first = batch.position[:, ::ratio] == 0
    row_position = batch.position[:, ::ratio]
    angle = [a.view(B, T // ratio, -1) for a in batch.angles.at(row_position.reshape(-1), True)]
    slot = batch.position % ratio
    lat = compressor.latents(p.sub("compressor."), cfg, xt, slot, ratio, first)
    keys = None
    if cfg.owns_indexer(layer):
        keys = index_keys(p, cfg, xt.detach(), lat.detach(), slot, ratio, first, angle, run)
    return finish_rows(cfg, lat, angle, run.sims), keys


def finish_rows(cfg, lat, angle, sims):
    from .rope import rotate
    return rounding.compressed_row(cfg, rotate(lat, *angle), sims)


def index_keys(p, cfg, x, lat, slot, ratio, first, angle, run):
    """V4: the indexer's own small compressor. V4.1: a projection of the un-rotated, unrounded latent."""
    from .rope import rotate
    if cfg.is_v41:
        key = rms_norm(linear(lat, p["indexer.wk.weight"]), p["indexer.k_norm.weight"], cfg.rms_norm_eps)
    else:
        key = compressor.latents(p.sub("indexer.compressor."), cfg, x, slot, ratio, first)
    return rounding.index_vector(cfg, rotate(key, *angle), run.sims)


class Selection:
    """State shared by the layers that read one selection: rows, mask, and what the indexer must learn."""

    def __init__(self):
        self.rows, self.keys = {}, {}       # by kv owner
        self.mask = None                    # of the current top-k owner [B,T,R]
        self.candidates = None              # V4.1: row mask of the candidate source
        self.learners = []                  # (qi, weight, keys, allowed) of the current top-k owner, and of `source` after it
        self.source = None                  # of the candidate source: its candidates must hold what later owners need
        self.mass = None                    # attention mass on rows, summed over the reading layers

    def finish(self, run):
        """Close the group of layers that shared a selection: turn the collected mass into a loss."""
        if self.mass is not None:
            for learner in self.learners:
                run.losses.append(run.maybe_recompute(indexer.matching_loss, *learner, self.mass))
        self.learners, self.mass = [], None


def select_rows(p, cfg, batch, x, qr, layer, sel, run):
    """Run the layer's indexer and set the selection mask for it and the layers after it."""
    sel.finish(run)
    B, T = batch.ids.shape
    owner, ratio = cfg.kv_owner(layer), cfg.ratio(layer)
    keys, visible = sel.keys[owner], batch.visible(ratio)
    qi, weight = indexer.queries(p.sub("indexer."), cfg, x.detach(), qr.detach(), batch.angle[1], run.sims)
    qi, weight = qi.view(B, T, *qi.shape[1:]), weight.view(B, T, -1)
    allowed = visible
    if run.sparse:
        with torch.no_grad():
            score = indexer.masked_scores(qi, weight, keys, visible)
            if run.random_rows:
                score = torch.rand_like(score).masked_fill(~visible, indexer.NEVER)
            limit = sel.candidates if cfg.is_v41 and layer > cfg.candidate_source_layer_id else None
            allowed = indexer.top_rows(score, limit, cfg.index_topk, run.exact_ties)
            if layer == cfg.candidate_source_layer_id:
                newest = batch.newest(ratio).expand(B, T)
                sel.candidates = indexer.candidate_rows(cfg, score, newest, run.exact_ties)
                run.trace["candidates"] = sel.candidates
    sel.mask = allowed
    run.trace[layer] = allowed
    if run.index_loss:
        s = run.index_stride
        shift = s // 2
        mine = (qi[:, shift::s], weight[:, shift::s], keys)
        sel.learners = [(*mine, allowed[:, shift::s])]
        if layer == cfg.candidate_source_layer_id:
            sel.source = (*mine, (sel.candidates if run.sparse else visible)[:, shift::s])
        elif sel.source is not None:
            sel.learners.append(sel.source)


def attention_layer(p, cfg, batch, x, layer, sel, run):
    """x [N, D] normed -> [N, D]."""
    B, T = batch.ids.shape
    ratio = cfg.ratio(layer)
    angle = batch.angle[int(ratio > 0)]
    qr, q, kv = attention.project(p, cfg, x, angle, run.sims)
    rows = mask = None
    if ratio:
        owner = cfg.kv_owner(layer)
        if owner == layer:
            sel.rows[layer], sel.keys[layer] = rows_and_keys(p, cfg, batch, x, layer, run)
        rows = sel.rows[owner]
        if cfg.owns_indexer(layer):
            select_rows(p, cfg, batch, x, qr, layer, sel, run)
        mask = sel.mask if cfg.is_v41 or ratio == 4 else batch.visible(ratio)
    if run.keep is not None:
        run.keep[layer] = dict(x=x.view(B, T, -1), kv=kv.view(B, T, -1), rows=sel.rows.get(layer), keys=sel.keys.get(layer))
    begin = run.replay_from if cfg.is_v41 and layer >= cfg.candidate_source_layer_id else 0
    learning = rows is not None and sel.learners and (cfg.is_v41 or ratio == 4)
    o, mass = run.maybe_recompute(
        attention.attend, q.view(B, T, *q.shape[1:]), kv.view(B, T, -1), rows, mask, p["attn_sink"], batch.first_block,
        cfg.sliding_window, learning, begin)
    if learning:
        mass = mass[:, run.index_stride // 2::run.index_stride]
        sel.mass = mass if sel.mass is None else sel.mass + mass
    if not cfg.is_v41 and sel.learners:
        sel.finish(run)
    return attention.output(p, cfg, o.reshape(B * T, *o.shape[2:]), angle)


def block(p, cfg, h, carry, attend, ids, per_token):
    """One transformer block. carry: V4.1's pre-mix from the previous site (V4 ignores it). -> h, carry, expert load."""
    eps = cfg.rms_norm_eps
    pre, post, comb = hyper.mix(h, p["hc_attn_fn"], p["hc_attn_scale"], p["hc_attn_base"], cfg)
    x = hyper.collapse_norm(h, carry if cfg.is_v41 else pre, p["attn_norm.weight"], eps)
    h = hyper.expand(attend(x), h, post, comb)
    lagged = pre
    pre, post, comb = hyper.mix(h, p["hc_ffn_fn"], p["hc_ffn_scale"], p["hc_ffn_base"], cfg)
    x = hyper.collapse_norm(h, lagged if cfg.is_v41 else pre, p["ffn_norm.weight"], eps)
    y, load = moe.layer(p.sub("ffn."), cfg, x, ids, per_token)
    return hyper.expand(y, h, post, comb), pre, load


def streams(weights, ids):
    """Embedding copied into four streams, and the one-hot pre-mix that V4.1 starts from. ids [N]"""
    e = torch.nn.functional.embedding(ids, weights["embed.weight"])
    h = e[:, None].expand(-1, 4, -1).contiguous()
    one_hot = torch.zeros(len(ids), 4, device=ids.device)
    one_hot[:, 0] = 1
    return h, one_hot


def backbone(weights, cfg, batch, run):
    """-> final normed hidden [N, D] (logits = linear(hidden, head.weight))."""
    flat = batch.ids.reshape(-1)
    h, carry = streams(weights, flat)
    sel = Selection()
    for layer in range(cfg.num_hidden_layers):
        p = Params(weights, f"layers.{layer}.")
        if layer in cfg.engram_layer_ids:
            h = engram.layer(p.sub("engram."), cfg, h, batch.engram_rows[layer])
        if cfg.is_v41 and layer in cfg.dspark_target_layer_ids:
            run.taps.append(h.float().mean(1).to(h.dtype))
        attn = p.sub("attn.")
        h, carry, run.loads[layer] = block(
            p, cfg, h, carry, lambda x: attention_layer(attn, cfg, batch, x, layer, sel, run), flat,
            cfg.num_experts_per_tok)
        if not cfg.is_v41 and layer in cfg.dspark_target_layer_ids:
            run.taps.append(h.float().mean(1).to(h.dtype))
    sel.finish(run)
    return final_hidden(weights, cfg, h, carry)


def final_hidden(weights, cfg, h, carry):
    if not cfg.is_v41:
        carry = hyper.head_mix(h, weights["hc_head_fn"], weights["hc_head_scale"], weights["hc_head_base"], cfg)
    return hyper.collapse_norm(h, carry, weights["norm.weight"], cfg.rms_norm_eps)


def logits(weights, hidden):
    return linear(hidden, weights["head.weight"])


@torch.no_grad()
def oracle_logits(weights, cfg, ids, run, token_map=None):
    """ids: list of one conversation -> logits [len(ids), V]. Pads to cfg.align (causal, so invisible)."""
    n = len(ids)
    padded = torch.tensor([list(ids) + [0] * (-n % cfg.align)], device=weights["embed.weight"].device)
    batch = Batch(cfg, padded, token_map=token_map)
    hidden = backbone(weights, cfg, batch, run)
    return logits(weights, hidden)[:n].float()
