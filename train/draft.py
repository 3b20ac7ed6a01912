"""Train and measure the DSpark stages of a finished backbone (dspark.md section 8).

The backbone is frozen and runs in the same forward pass. Data: the training rows, and rows that the backbone continued itself.
"""
import json
import os
import time
import torch
from . import optim
from .data import cut_documents
from .feed import Sampler
from .generate import Generator
from .reference import basics, dspark
from .reference.basics import hot
from .reference.model import Batch, Run, backbone


def own_rows(trainer, sampler, n, temperature, max_new=128):
    """n rows whose documents the backbone continued itself: (ids, start, weight) like the sampler's."""
    cfg, device = trainer.cfg, trainer.device
    prompts = []
    while len(prompts) < n:
        ids, start, weight, _ = sampler.next()
        for row, s, w in zip(ids.cpu(), start.cpu(), weight.cpu()):
            place = ((w == 1) & (s == 0)).nonzero().flatten()
            place = place[(place > 48) & (place < max(64, sampler.pool.T - max_new - 8))]
            if len(place):
                prompts.append(row[: int(place[torch.randint(len(place), (1,))])].tolist())
    prompts = prompts[:n]
    g = Generator(trainer.opt.live, cfg, trainer.map, device)
    out = g.generate(prompts, max_new, [cfg.eos_token_id], temperature, batch=256)
    T = sampler.pool.T
    ids, start, weight = torch.full((n, T), 2), torch.zeros(n, T, dtype=torch.long), torch.zeros(n, T)
    for i, (p, o) in enumerate(zip(prompts, out)):
        end = len(p) + len(o)
        ids[i, :end] = torch.tensor(p + o)
        weight[i, len(p):end] = 1
        tail = end + -end % cfg.align
        start[i, tail:] = tail
    return ids, start, weight


@hot
def draft_losses(base, bias, target_logits, label, conf, keep, ce_share):
    """base+bias: draft logits [A,S,V]; target_logits [A,S,V]; label [A,S]; conf [A,S]; keep [A,S] (supervised prefix).

    -> weighted loss, acceptance per position [S], calibration loss.
    """
    z = base.float() + bias.float()
    log_q = torch.log_softmax(z, -1)
    p = torch.softmax(target_logits.float(), -1)
    ce = -log_q.gather(2, label[..., None])[..., 0]
    l1 = (log_q.exp() - p).abs().sum(-1)
    accept = (1 - 0.5 * l1).detach()
    bce = torch.nn.functional.binary_cross_entropy_with_logits(conf, accept, reduction="none")
    k = torch.arange(label.shape[1], device=label.device)
    w = torch.exp(-k / 4.0) * keep
    loss = (w * (ce_share * ce + (1 - ce_share) * l1 + bce)).sum() / w.sum().clamp_min(1)
    return loss, (accept * keep).sum(0) / keep.sum(0).clamp_min(1), (bce * keep).sum() / keep.sum().clamp_min(1)


class DraftTrainer:
    def __init__(self, trainer, masters, args):
        self.t, self.cfg, self.args = trainer, trainer.cfg, args
        self.opt = optim.Optimiser(self.cfg, masters, trainer.device, trainable=lambda n: n.startswith("mtp."),
                                   muon_lr=args.draft_muon_lr, adam_lr=args.draft_adam_lr)
        self.live = self.opt.live

    def context(self, ids, start):
        """Backbone pass: batch, final hidden [B,T,D], taps."""
        batch = Batch(self.cfg, ids, start, self.t.angles, self.t.map)
        if not torch.is_grad_enabled():
            run = Run()
            hidden = backbone(self.live, self.cfg, batch, run)
        else:                                                                    # same compiled code as in training
            run = Run(index_loss=True, index_stride=2)
            basics.set_compile(self.t.device != "cpu" and not self.args.no_compile)
            hidden = backbone(self.t.opt.live, self.cfg, batch, run).detach()
            basics.set_compile(False)
        return batch, hidden.view(*ids.shape, -1), [x.detach() for x in run.taps]

    def anchors(self, ids, start, weight, per_row):
        """Random processed positions p with supervised p+1 and p+2: (row [A], p [A])."""
        S = self.cfg.dspark_block_size
        ok = (weight == 1).float()
        ok = ok[:, 1:-S - 1] * ok[:, 2:-S]
        p = torch.multinomial(ok + 1e-9, per_row)
        row = torch.arange(len(ids), device=ids.device)[:, None].expand_as(p)
        return row.reshape(-1), p.reshape(-1)

    def gradients(self, ids, start, weight, per_row):
        """Backward pass of one batch. -> acceptance per position, loss, calibration loss"""
        cfg, S = self.cfg, self.cfg.dspark_block_size
        batch, hidden, taps = self.context(ids, start)
        row, p = self.anchors(ids, start, weight, per_row)
        ahead = p[:, None] + 1 + torch.arange(S, device=p.device)                # positions of the block's rows
        block, label = ids[row[:, None], ahead], ids[row[:, None], ahead + 1]
        same = start[row[:, None], ahead + 1] == start[row, p][:, None]
        keep = ((weight[row[:, None], ahead + 1] == 1) & same).float().cumprod(1)
        run = Run()
        rows = dspark.all_context_rows(self.live, cfg, batch, taps, run)
        place = batch.position[row, p]
        y = dspark.stages(self.live, cfg, rows, row, (place, p), block[:, 0], self.t.angles, run)
        bias, e = dspark.markov_bias(self.live, cfg, block)
        conf = dspark.confidence(self.live, cfg, y, e)
        with torch.no_grad():
            target = basics.linear(hidden[row[:, None], ahead], self.live["head.weight"])
        loss, accept, bce = draft_losses(dspark.unbiased_logits(self.live, cfg, y), bias, target, label, conf, keep,
                                         self.args.ce_share)
        loss.backward()
        self.opt.balance(run.loads)
        return torch.cat((accept, torch.stack((loss.detach(), bce)))).detach()

    def step(self, ids, start, weight, per_row, rate):
        out = self.gradients(ids, start, weight, per_row)
        self.opt.step(rate)
        return out

    def loop(self, sampler, own):
        args, began, n, log = self.args, time.time(), 0, []
        own = [x.to(self.t.device) for x in own] if own is not None else None
        while time.time() - began < args.draft_seconds and n < args.draft_max_steps:
            if own is not None and n % 2:
                pick = torch.randint(len(own[0]), (sampler.batch,), device=self.t.device)
                ids, start, weight = (x[pick] for x in own)
            else:
                ids, start, weight, _ = sampler.next()
            share = (time.time() - began) / args.draft_seconds
            rate = min(1.0, (n + 1) / 50) * max(0.0, min(1.0, (1 - share) / 0.7))
            log.append(self.step(ids, start, weight, args.anchors, rate))
            n += 1
            if n % 10 == 0 and self.t.device != "cpu":
                torch.cuda.synchronize()
            if n % 100 == 0:
                m = torch.stack(log).mean(0).tolist()
                log = []
                print(json.dumps(dict(draft_step=n, wall=round(time.time() - began, 1), accept=[round(v, 3) for v in m[:-2]],
                                      loss=round(m[-2], 4), bce=round(m[-1], 4))), flush=True)
        return n


@torch.no_grad()
def measure(draft, by_kind, max_new=128, batch=32):
    """Greedy acceptance on the backbone's own greedy text. by_kind {kind: prompts}

    -> {kind: cycles as (accepted, [per-position (confidence, hit)])}, {kind: what the backbone gave each token of its text}.
    """
    cfg, t = draft.cfg, draft.t
    kinds = [k for k, prompts in by_kind.items() for _ in prompts]
    prompts = [p for prompts in by_kind.values() for p in prompts]
    texts = Generator(draft.live, cfg, t.map, t.device).generate(prompts, max_new, [cfg.eos_token_id], 0.0, batch=256)
    jobs = sorted(zip(prompts, texts, kinds), key=lambda x: len(x[0]))
    cycles, sure = {k: [] for k in by_kind}, {k: [] for k in by_kind}
    for at in range(0, len(jobs), batch):
        part = jobs[at:at + batch]
        drafts, given = all_drafts(draft, [(p, o) for p, o, _ in part])
        for i, (p, o, kind) in enumerate(part):
            cycles[kind] += walk(p + o, len(p) - 1, i, drafts, cfg.dspark_block_size)
            sure[kind] += given[i]
    return cycles, sure


def all_drafts(draft, texts):
    """Drafts from every position of the generated parts: {(text, processed position): (ids, confidence logits)};
    and per text the probability of each generated token.
    """
    cfg, t = draft.cfg, draft.t
    longest = max(len(p) + len(o) for p, o in texts)
    ids = torch.zeros(len(texts), longest + -longest % cfg.align, dtype=torch.long)
    for i, (p, o) in enumerate(texts):
        ids[i, : len(p) + len(o)] = torch.tensor(p + o)
    ids = ids.to(t.device)
    batch, hidden, taps = draft.context(ids, torch.zeros_like(ids))
    given = [probabilities(draft, hidden[i], ids[i], len(p), len(p) + len(o)) for i, (p, o) in enumerate(texts)]
    run = Run()
    rows = dspark.all_context_rows(draft.live, cfg, batch, taps, run)
    where = [(i, q) for i, (p, o) in enumerate(texts) for q in range(len(p) - 1, len(p) + len(o) - 2)]
    if not where:
        return {}, given
    row, p = (torch.tensor(x, device=t.device) for x in zip(*where))
    anchor = ids[row, p + 1]
    y = dspark.stages(draft.live, cfg, rows, row, (p, p), anchor, t.angles, run)
    got, conf, _ = dspark.draft(draft.live, cfg, y, anchor)
    return dict(zip(where, zip(got.tolist(), conf.tolist()))), given


def probabilities(draft, hidden, ids, begin, end):
    """Of the tokens begin..end-1 of one text."""
    p = torch.softmax(basics.linear(hidden[begin - 1:end - 1], draft.live["head.weight"]).float(), -1)
    return p.gather(1, ids[begin:end, None])[:, 0].tolist()


def walk(ids, q, i, drafts, S):
    """Replay speculative decoding over a known text from last processed position q."""
    out = []
    while q < len(ids) - 2 - S:
        got, conf = drafts[i, q]
        hits = []
        for k in range(S):
            hits.append(got[k] == ids[q + 2 + k])
            if not hits[-1]:
                break
        out.append((sum(hits), list(zip(conf, hits))))
        q += sum(hits) + 1
    return out


def calibrate(cycles, S):
    """Per position: the temperature that best explains hits (given that all earlier drafts hit)."""
    grid = torch.exp(torch.linspace(-1.5, 1.5, 61))
    out = []
    for k in range(S):
        pairs = [c[1][k] for c in cycles if len(c[1]) > k]
        if len(pairs) < 20:
            out.append(1.0)
            continue
        z = torch.tensor([p[0] for p in pairs])
        hit = torch.tensor([float(p[1]) for p in pairs])
        loss = [torch.nn.functional.binary_cross_entropy_with_logits(z / t, hit) for t in grid]
        out.append(round(float(grid[int(torch.stack(loss).argmin())]), 3))
    return out


def positions(cycles, S):
    """Per position: the share of drafts kept where all before them were."""
    hits = [[c[1][k][1] for c in cycles if len(c[1]) > k] for k in range(S)]
    return [round(sum(h) / len(h), 3) if h else None for h in hits]


def options(a):
    a.add_argument("--draft-seconds", type=float, default=60)
    a.add_argument("--own-rows", type=int, default=512)
    a.add_argument("--anchors", type=int, default=128)
    a.add_argument("--draft-muon-lr", type=float, default=0.02)
    a.add_argument("--draft-adam-lr", type=float, default=3e-3)
    a.add_argument("--draft-max-steps", type=int, default=10 ** 9)
    a.add_argument("--ce-share", type=float, default=0.1, help="cross entropy's part of the loss; the rest is L1")
    a.add_argument("--measure", type=int, default=32)


def train_draft(trainer, args):
    """Everything from a finished backbone to all final weights {name: tensor} and a summary."""
    basics.set_compile(False)
    sampler = Sampler(os.path.join(args.work, "draft"), args.draft_rows, args.short, args.batch_tokens // args.short, trainer.device, seed=7)
    began, own = time.time(), None
    if args.own_rows:
        half = args.own_rows // 2
        own = [torch.cat(x) for x in zip(own_rows(trainer, sampler, half, 0.0), own_rows(trainer, sampler, half, 0.7))]
    print(json.dumps(dict(own_rows=args.own_rows, wall=round(time.time() - began, 1))), flush=True)
    masters = {**optim.initial(trainer.cfg, seed=3), **{n: w.detach() for n, w in trainer.opt.live.items() if not n.startswith("mtp.")}}
    draft = DraftTrainer(trainer, masters, args)
    steps = draft.loop(sampler, own)
    return draft, dict(draft_steps=steps, draft_seconds=args.draft_seconds)


def summarise(draft, args, summary):
    """Accepted lengths per kind and the confidence temperatures."""
    basics.set_compile(False)
    kinds = ["copy"] if args.dummy else ["agent", "code", "script", "library", "json", "talk", "prose"]
    prompts = {k: cut_documents(args.dialect, k, args.measure) for k in kinds} if not args.dummy else {"copy": [[0] + [5, 6, 7, 8] * 20]}
    cycles, sure = measure(draft, prompts)
    summary["accepted_length"] = {k: round(1 + sum(c[0] for c in v) / len(v), 3) for k, v in cycles.items() if v}
    summary["accepted_positions"] = {k: positions(v, draft.cfg.dspark_block_size) for k, v in cycles.items() if v}
    summary["backbone_sureness"] = {k: round(sum(v) / len(v), 3) for k, v in sure.items() if v}
    everything = [c for v in cycles.values() for c in v]
    summary["confidence_temperatures"] = calibrate(everything, draft.cfg.dspark_block_size)
    return summary
