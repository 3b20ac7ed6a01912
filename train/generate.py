"""Batched generation with static caches; on a GPU one decode step is a captured CUDA graph.

    g = Generator(weights, cfg, token_map, device)
    out = g.generate(list_of_prompt_ids, max_new=200, stop_ids=[1], temperature=0.0)

Caches are addressed by absolute position, as in the engine: window rings, compressed rows and index keys per owner, and rings of raw
compressor rows. A group's row is recomputed at every token and becomes visible when the group is complete. The prompt is
processed by the reference forward pass, whose intermediate rows seed the caches.
"""
import torch
from .reference import attention, compressor, engram, hyper, indexer, model, rounding
from .reference.basics import linear, rms_norm
from .reference.model import Batch, Run
from .reference.params import Params
from .reference.rope import Angles, rotate


def last_positions(length, size):
    """Newest position held by each slot of a ring of `size` after `length` tokens: [B, size], may be negative."""
    slot = torch.arange(size, device=length.device)
    newest = length[:, None] - 1
    return newest - (newest - slot) % size


class Caches:
    """All state of a batch of B sequences of at most `capacity` tokens."""

    def __init__(self, cfg, B, capacity, device, dtype):
        self.cfg, self.B, self.capacity = cfg, B, capacity
        hd, W = cfg.head_dim, cfg.sliding_window

        def zeros(*shape):
            return torch.zeros(*shape, device=device, dtype=dtype)

        self.ids = torch.zeros(B, capacity, dtype=torch.long, device=device)
        self.length = torch.zeros(B, dtype=torch.long, device=device)            # tokens processed
        self.ring = [zeros(B, W, hd) for _ in range(cfg.num_hidden_layers)]
        self.rows, self.keys, self.raw, self.raw_index = {}, {}, {}, {}
        for l in range(cfg.num_hidden_layers):
            if not cfg.owns_compressor(l):
                continue
            r = cfg.ratio(l)
            self.rows[l] = zeros(B, capacity // r, hd)
            wide = 2 if not cfg.is_v41 and r == 4 else 1
            self.raw[l] = [torch.zeros(B, 2 * r, wide * hd, device=device) for _ in range(2)]
            if cfg.owns_indexer(l):
                self.keys[l] = zeros(B, capacity // r, cfg.index_head_dim)
                if not cfg.is_v41:
                    self.raw_index[l] = [torch.zeros(B, 2 * r, 2 * cfg.index_head_dim, device=device) for _ in range(2)]


class Generator:
    def __init__(self, weights, cfg, token_map=None, device="cpu", random_rows=False, sims=True, exact_ties=False):
        self.cfg, self.device = cfg, device
        self.random_rows, self.sims, self.exact_ties = random_rows, sims, exact_ties            # as in model.Run
        self.weights = {n: w.detach() for n, w in weights.items()}
        self.map = token_map.to(device) if token_map is not None else None
        self.dtype = self.weights["embed.weight"].dtype
        self.angles = Angles(cfg, cfg.max_position_embeddings, device)

    # ---- prompt ----

    @torch.no_grad()
    def prefill(self, cache, prompts):
        """Process prompts (left aligned) and fill the caches; -> logits after each prompt [B, V]."""
        cfg = self.cfg
        longest = max(len(p) for p in prompts)
        T = longest + -longest % cfg.align
        ids = torch.zeros(len(prompts), T, dtype=torch.long)
        for i, p in enumerate(prompts):
            ids[i, : len(p)] = torch.tensor(p)
        ids = ids.to(self.device)
        length = torch.tensor([len(p) for p in prompts], device=self.device)
        cache.ids[: len(prompts), : min(T, cache.capacity)] = ids[:, : cache.capacity]
        cache.length[: len(prompts)] = length
        part = max(1, int(1.2e8 // (T * T)))
        out = []
        for at in range(0, len(prompts), part):
            rows = slice(at, min(at + part, len(prompts)))
            run = Run(keep={}, random_rows=self.random_rows, sims=self.sims, exact_ties=self.exact_ties)
            hidden = model.backbone(self.weights, cfg, Batch(cfg, ids[rows], None, self.angles, self.map), run)
            hidden = hidden.view(rows.stop - at, T, -1)
            out.append(hidden[torch.arange(rows.stop - at, device=self.device), length[rows] - 1])
            for layer, kept in run.keep.items():
                self.seed(cache, layer, rows, kept, length[rows])
        return linear(torch.cat(out), self.weights["head.weight"]).float()

    def seed(self, cache, layer, rows, kept, length):
        """Fill one layer's caches from the reference pass."""
        cfg = self.cfg
        each = torch.arange(len(length), device=self.device)[:, None]
        newest = last_positions(length, cfg.sliding_window).clamp_min(0)
        cache.ring[layer][rows] = kept["kv"][each, newest]
        if layer not in cache.rows:
            return
        r, p = cfg.ratio(layer), Params(self.weights, f"layers.{layer}.attn.")
        n = min(kept["rows"].shape[1], cache.rows[layer].shape[1])
        cache.rows[layer][rows, :n] = kept["rows"][:, :n]
        if layer in cache.keys:
            cache.keys[layer][rows, :n] = kept["keys"][:, :n]
        at = last_positions(length, 2 * r).clamp_min(0)
        for store, name in ((cache.raw, "compressor."), (cache.raw_index, "indexer.compressor.")):
            if layer in store and r > 1:
                pair = compressor.raw_rows(p.sub(name), cfg, kept["x"][each, at], at % r, r)
                for target, values in zip(store[layer], pair):
                    target[rows] = values.float()

    # ---- one token ----

    def pooled(self, p, store, x, t, ratio):
        """Add token t's raw row; -> normalised latent of t's group [B, c] (meaningful once complete)."""
        cfg, each = self.cfg, torch.arange(len(t), device=self.device)
        value, score = compressor.raw_rows(p, cfg, x, t % ratio, ratio)
        if ratio == 1:
            return rms_norm(value, p["norm.weight"], cfg.rms_norm_eps)
        store[0][each, t % (2 * ratio)] = value.float()
        store[1][each, t % (2 * ratio)] = score.float()
        begin = t // ratio * ratio
        slots = (begin[:, None] + torch.arange(ratio, device=self.device)) % (2 * ratio)
        value, score = (s[each[:, None], slots] for s in store)
        if compressor.overlaps(p):
            c = p["norm.weight"].shape[0]
            old = (slots + ratio) % (2 * ratio)
            old_value, old_score = (s[each[:, None], old][..., :c] for s in store)
            old_score = old_score.masked_fill((begin == 0)[:, None, None], -1e30)
            value, score = torch.cat((old_value, value[..., c:]), 1), torch.cat((old_score, score[..., c:]), 1)
        return rms_norm(compressor.pool(value, score).to(x.dtype), p["norm.weight"], cfg.rms_norm_eps)

    def update_rows(self, cache, p, layer, x, t):
        cfg, ratio = self.cfg, self.cfg.ratio(layer)
        each, g = torch.arange(len(t), device=self.device), t // ratio
        angle = self.angles.at(g * ratio, True)
        lat = self.pooled(p.sub("compressor."), cache.raw.get(layer), x, t, ratio)
        if layer in cache.keys:
            if cfg.is_v41:
                key = rms_norm(linear(lat, p["indexer.wk.weight"]), p["indexer.k_norm.weight"], cfg.rms_norm_eps)
            else:
                key = self.pooled(p.sub("indexer.compressor."), cache.raw_index[layer], x, t, ratio)
            cache.keys[layer][each, g] = rounding.index_vector(cfg, rotate(key, *angle), self.sims)
        cache.rows[layer][each, g] = model.finish_rows(cfg, lat, angle, self.sims)

    def select(self, cache, p, layer, x, qr, t, angle, sel):
        cfg = self.cfg
        owner, ratio = cfg.kv_owner(layer), cfg.ratio(layer)
        keys = cache.keys[owner]
        visible = torch.arange(keys.shape[1], device=self.device) < ((t + 1) // ratio)[:, None]
        qi, weight = indexer.queries(p.sub("indexer."), cfg, x, qr, angle, self.sims)
        score = indexer.scores(qi[:, None], weight[:, None], keys)
        if self.random_rows:
            score = torch.rand_like(score)
        score = score.masked_fill(~visible[:, None], indexer.NEVER)
        limit = sel["candidates"] if cfg.is_v41 and layer > cfg.candidate_source_layer_id else None
        sel["mask"] = indexer.top_rows(score, limit, cfg.index_topk, self.exact_ties)
        if layer == cfg.candidate_source_layer_id:
            sel["candidates"] = indexer.candidate_rows(cfg, score, ((t + 1) // ratio - 1)[:, None], self.exact_ties)

    def attend(self, cache, p, layer, x, t, sel):
        cfg, ratio, W = self.cfg, self.cfg.ratio(layer), self.cfg.sliding_window
        each = torch.arange(len(t), device=self.device)
        angle = self.angles.at(t, ratio > 0)
        qr, q, kv = attention.project(p, cfg, x, angle, self.sims)
        cache.ring[layer][each, t % W] = kv
        keys = cache.ring[layer]
        seen = last_positions(t + 1, W) >= 0
        if ratio:
            if cfg.owns_compressor(layer):
                self.update_rows(cache, p, layer, x, t)
            rows = cache.rows[cfg.kv_owner(layer)]
            if cfg.owns_indexer(layer):
                self.select(cache, p, layer, x, qr, t, angle, sel)
            if cfg.is_v41 or ratio == 4:
                mask = sel["mask"][:, 0]
            else:
                mask = torch.arange(rows.shape[1], device=self.device) < ((t + 1) // ratio)[:, None]
            keys, seen = torch.cat((keys, rows), 1), torch.cat((seen, mask), 1)
        score = (q @ keys.mT).float() * cfg.head_dim ** -0.5                     # [B, H, K]
        score = score.masked_fill(~seen[:, None], -1e30)
        sink = p["attn_sink"].expand(len(t), -1)[..., None]
        prob = torch.softmax(torch.cat((score, sink), -1), -1)[..., :-1]
        return attention.output(p, cfg, prob.to(keys.dtype) @ keys, angle)

    def step(self, cache, token):
        """Append token [B] to each sequence; -> logits [B, V]."""
        cfg, weights, t = self.cfg, self.weights, cache.length
        each = torch.arange(cache.B, device=self.device)
        cache.ids[each, t] = token
        h, carry = model.streams(weights, token)
        sel = {}
        if cfg.engram_layer_ids:
            past = self.recent(cache, t)
        for layer in range(cfg.num_hidden_layers):
            p = Params(weights, f"layers.{layer}.")
            if layer in cfg.engram_layer_ids:
                h = engram.layer(p.sub("engram."), cfg, h, engram.rows(cfg, layer, past))
            attn = p.sub("attn.")
            h, carry, _ = model.block(p, cfg, h, carry, lambda x: self.attend(cache, attn, layer, x, t, sel), token,
                                      cfg.num_experts_per_tok)
        cache.length += 1
        return model.logits(weights, model.final_hidden(weights, cfg, h, carry)).float()

    def recent(self, cache, t):
        """Compressed ids, newest first [n, B]."""
        back = torch.arange(self.cfg.engram_max_ngram_size, device=self.device)[:, None]
        at = t[None] - back
        each = torch.arange(cache.B, device=self.device)
        ids = self.map[cache.ids[each, at.clamp_min(0)]]
        return torch.where(at >= 0, ids, self.map[self.cfg.engram_pad_token_id])

    # ---- many tokens ----

    def choose(self, logits, temperature):
        if temperature == 0:
            return logits.argmax(-1)
        noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-9, 1 - 1e-7)))
        return (logits / temperature + noise).argmax(-1)

    def generate(self, prompts, max_new, stop_ids=(1,), temperature=0.0, batch=128):
        """-> new ids per prompt, the stop id included if one was produced."""
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        out = [None] * len(prompts)
        for at in range(0, len(order), batch):
            chosen = order[at:at + batch]
            for i, ids in zip(chosen, self._generate([prompts[i] for i in chosen], max_new, stop_ids, temperature)):
                out[i] = ids
        return out

    @torch.no_grad()
    def _generate(self, prompts, max_new, stop_ids, temperature):
        B, longest = len(prompts), max(len(p) for p in prompts) + max_new
        cache = Caches(self.cfg, B, longest + -longest % 256, self.device, self.dtype)
        stop = torch.tensor(list(stop_ids), device=self.device)
        token = self.choose(self.prefill(cache, prompts), temperature)
        new = torch.zeros(B, max_new, dtype=torch.long, device=self.device)
        done = torch.zeros(B, dtype=torch.bool, device=self.device)
        count = torch.zeros((), dtype=torch.long, device=self.device)

        def advance():
            new.scatter_(1, count.expand(B, 1), token[:, None])
            done.logical_or_((token[:, None] == stop).any(1))
            count.add_(1)
            token.copy_(self.choose(self.step(cache, token), temperature))

        replay = advance
        if self.device != "cpu" and max_new > 24:
            replay = self._capture(advance, (cache, new, done, count, token))
        for n in range(max_new):
            replay()
            if n % 16 == 15 and bool(done.all()):
                break
        return [self._cut(row, set(stop_ids)) for row in new[:, : n + 1].tolist()]

    def _capture(self, advance, state):
        """CUDA graph of one step. Warm-up and capture must leave the state as it was."""
        cache, new, done, count, token = state
        saved = [x.clone() for x in (cache.length, count, token)]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            advance()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        replay = graph.replay
        try:
            with torch.cuda.graph(graph):
                advance()
        except RuntimeError as e:                                                # slower, still right
            print("no CUDA graph:", str(e)[:200], flush=True)
            torch.cuda.synchronize()
            replay = advance
        for x, s in zip((cache.length, count, token), saved):
            x.copy_(s)
        done.zero_()
        return replay

    @staticmethod
    def _cut(row, stops):
        for i, t in enumerate(row):
            if t in stops:
                return row[: i + 1]
        return row
