"""Improve the indexers of a finished model without touching the rest of it. Runs on a CPU.

  python -m train.tune_index collect --model DIR --work W --seed 1      (several processes, any time)
  python -m train.tune_index fit --model DIR --work W --out DIR2 --seconds 300

With every visible row attended, the backbone's activations do not depend on its indexers. So a document needs one forward pass:
`collect` stores, per index layer, the indexer's inputs and the attention mass it has to imitate, at answers, at the questions before
them and at some other positions. `fit` then trains the indexer matrices on the stored queries (KL, deployed roundings in the loop).
"""
import argparse
import glob
import json
import os
import shutil
import time
from unittest import mock
import numpy as np
import torch
from .data import stream
from .reference import attention, compressor, formats, hf, indexer, model, rounding, token_map
from .reference.basics import linear, rms_norm
from .reference.model import Batch, Run, backbone
from .reference.params import Params, table
from .reference.rope import Angles, rotate

KINDS = {"recall": 0.75, "pairs": 0.1, "agent": 0.15}
LONGEST = 16384
KEPT = 256          # rows of a query whose mass is stored: all but a few per cent of it
PART = 128          # queries attended at once


class Recorder:
    """A forward pass of one document with every visible row attended, part by part, that keeps what `fit` needs.

    It stands in for model.select_rows, model.index_keys and attention.attend.
    """

    def __init__(self, cfg):
        self.cfg = cfg

    def run(self, weights, batch, queries, sims=True):
        self.queries, self.key_inputs, self.layers = queries, {}, []
        batch._visible = dict.fromkeys(self.cfg.compress_ratios)                 # attend knows by itself what is visible
        with mock.patch.multiple(model, select_rows=self.select, index_keys=self.keys), \
                mock.patch.object(attention, "attend", self.attend):
            return backbone(weights, self.cfg, batch, Run(sims=sims))

    def keys(self, p, cfg, x, lat, *rest):
        """Index keys come from latents (V4.1) or from the layer's input (V4)."""
        self.key_inputs[len(self.layers)] = (lat if cfg.is_v41 else x)[0].half()

    def select(self, p, cfg, batch, x, qr, layer, sel, run):
        q = self.queries
        self.layers.append(dict(layer=layer, x=x[q].half(), qr=qr[q].half(), mass=0))

    def attend(self, q, kv, rows, visible, sink, first, window, want_mass, *rest):
        _, T, H, hd = q.shape
        ratio = T // rows.shape[1] if rows is not None else 0
        watched = ratio and (self.cfg.is_v41 or ratio == 4)
        # a further dimension carries the sink: as a key that only it can see
        q = torch.cat((q[0] * hd ** -0.5, sink[:, None].expand(T, H, 1)), -1).transpose(0, 1).contiguous()
        out, mass = [], []
        for a in range(0, T, PART):
            b, near = a + PART, max(0, a - window)
            far = rows[0, : b // ratio] if ratio else kv[0, :0]
            value = torch.cat((far, kv[0, near:b], kv.new_zeros(1, hd)))
            key = torch.cat((value, torch.zeros(len(value), 1)), 1)
            key[-1, -1] = 1
            at = torch.arange(a, b)[:, None]
            back = at - torch.arange(near, b)
            hidden = torch.cat((torch.arange(len(far)) >= (at + 1) // max(ratio, 1), (back < 0) | (back >= window),
                                torch.zeros(PART, 1, dtype=torch.bool)), 1)
            share = torch.softmax((q[:, a:b] @ key.mT).masked_fill_(hidden, -1e30), -1)
            out.append((share @ value).transpose(0, 1))
            mine = self.queries[(self.queries >= a) & (self.queries < b)] - a
            if watched and len(mine):
                m = share[:, mine, : len(far)].sum(0)
                mass.append(torch.nn.functional.pad(m, (0, T // ratio - len(far))))
        if watched:
            self.layers[-1]["mass"] = self.layers[-1]["mass"] + torch.cat(mass)
        return torch.cat(out)[None], None


def pick_queries(rng, ids, mask):
    """Sorted positions: answers, the questions before them, and others."""
    answers = np.flatnonzero(mask[1:])
    starts = answers[np.flatnonzero(np.diff(answers, prepend=-9) > 1)]
    questions = np.setdiff1d((starts[:, None] - np.arange(1, 25)).clip(1).ravel(), answers)
    some = [rng.choice(pool, min(len(pool), n), replace=False)
            for pool, n in ((answers, 96), (questions, 48), (np.arange(64, len(ids)), 24))]
    return torch.tensor(np.unique(np.concatenate(some)))


def sparse(mass):
    """[Q, R] -> the largest entries: (total [Q], row [Q, KEPT], value [Q, KEPT])"""
    top = torch.topk(mass, min(KEPT, mass.shape[1]), -1)
    return mass.sum(-1), top.indices.short() if mass.shape[1] < 32768 else top.indices, top.values.half()


@torch.no_grad()
def collect(args):
    torch.set_num_threads(1)
    cfg, weights = hf.load(args.model)
    tokens = token_map.for_folder(args.model, cfg.vocab_size) if cfg.engram_layer_ids else None
    angles, rng = Angles(cfg, LONGEST, "cpu"), np.random.default_rng(args.seed)
    recorder = Recorder(cfg)
    dialect = "v41" if cfg.is_v41 else "v4"
    lengths = [int(n) for n in args.lengths.split(",")]
    streams = [iter(stream(KINDS, dialect, 770000 + 100 * args.seed + i, n // 3, n)) for i, n in enumerate(lengths)]
    for n in range(args.docs):
        began = time.time()
        ids, mask = next(streams[n % len(lengths)])
        ids = ids.astype(np.int64)
        row = torch.tensor(np.concatenate((ids, np.zeros(-len(ids) % PART, np.int64))))[None]
        q = pick_queries(rng, ids, mask)
        recorder.run(weights, Batch(cfg, row, None, angles, tokens), q)
        layers = [dict(l, mass=sparse(l["mass"])) for l in recorder.layers]
        path = os.path.join(args.work, f"{args.seed}-{n}.pt")
        torch.save(dict(q=q, n=len(ids), keys=recorder.key_inputs, layers=layers), path + ".tmp")
        os.replace(path + ".tmp", path)
        print(n, len(ids), len(q), round(time.time() - began, 1), flush=True)


class Fit:
    def __init__(self, cfg, weights):
        self.cfg, self.weights, self.spec = cfg, weights, table(cfg)
        self.angles = Angles(cfg, LONGEST, "cpu")
        self.masters = {n: w.clone().requires_grad_() for n, w in weights.items() if ".indexer." in n}

    def stored(self, name, w):
        return formats.quantise(w.detach(), self.spec[name][1], hf.tile_of(self.cfg))

    def live(self, layer):
        """The indexer of a layer as the file would hold it."""
        prefix = f"layers.{layer}.attn.indexer."
        return Params({n.removeprefix(prefix): w + (self.stored(n, w) - w.detach())
                       for n, w in self.masters.items() if n.startswith(prefix)})

    def keys(self, doc, i, owner):
        cfg, ratio, p = self.cfg, self.cfg.ratio(owner), self.live(owner)
        source = doc["keys"][i].float()
        if cfg.is_v41:
            key = rms_norm(linear(source, p["wk.weight"]), p["k_norm.weight"], cfg.rms_norm_eps)
        else:
            slot = torch.arange(len(source)) % ratio
            first = torch.arange(len(source) // ratio) == 0
            key = compressor.latents(p.sub("compressor."), cfg, source[None], slot[None], ratio, first[None])[0]
        return rounding.index_vector(cfg, rotate(key, *self.angles.at(torch.arange(len(key)) * ratio, True)))

    def scores(self, doc):
        """-> per index layer: scores [Q, R] (NEVER where invisible)"""
        cfg, out, keys = self.cfg, [], {}
        for i, entry in enumerate(doc["layers"]):
            layer = entry["layer"]
            ratio, owner = cfg.ratio(layer), cfg.kv_owner(layer)
            if i in doc["keys"]:
                keys[owner] = self.keys(doc, i, owner)
            qi, w = indexer.queries(self.live(layer), cfg, entry["x"].float(), entry["qr"].float(),
                                    self.angles.at(doc["q"], True), True)
            s = indexer.scores(qi[None], w[None], keys[owner][None])[0]
            visible = torch.arange(s.shape[1]) < ((doc["q"] + 1) // ratio)[:, None]
            out.append(s.masked_fill(~visible, indexer.NEVER))
        return out

    def caught(self, doc, scores):
        """Share of the stored mass on selected rows, per index layer."""
        cfg, out, limit = self.cfg, [], None
        for entry, s in zip(doc["layers"], scores):
            total, row, value = entry["mass"]
            layer = entry["layer"]
            chosen = indexer.top_rows(s, limit if cfg.is_v41 and layer > cfg.candidate_source_layer_id else None, cfg.index_topk, False)
            if layer == cfg.candidate_source_layer_id:
                limit = indexer.candidate_rows(cfg, s[None], ((doc["q"] + 1) // cfg.ratio(layer) - 1)[None], False)[0]
            out.append(float((chosen.gather(1, row.long()) * value).sum() / value.sum()))
        return out

    def loss(self, doc):
        """Sum over index layers of KL(mass || softmax of scores); queries that put more weight on rows matter more."""
        scores, total = self.scores(doc), 0
        extra = None
        for entry, s in zip(reversed(doc["layers"]), reversed(scores)):
            amount, row, value = entry["mass"]
            log_q = torch.log_softmax(s, -1)
            total = total + self.divergence(log_q, row.long(), value.float(), amount)
            if extra is not None and entry["layer"] == self.cfg.candidate_source_layer_id:
                total = total + self.divergence(log_q, *extra)                   # candidates must hold what later layers need
            extra = (row.long(), value.float(), amount) if self.cfg.is_v41 else None
        return total, self.caught(doc, [s.detach() for s in scores])

    @staticmethod
    def divergence(log_q, row, value, amount):
        target = value / value.sum(-1, keepdim=True).clamp_min(1e-9)
        kl = (target * (torch.log(target.clamp_min(1e-9)) - log_q.gather(1, row))).sum(-1)
        return (kl * amount).sum() / amount.sum().clamp_min(1e-3)


def save(f, cfg, weights, args):
    for name, w in f.masters.items():
        weights[name] = f.stored(name, w)
    text = cfg.raw.get("text_config", cfg.raw)
    for key in ("index_topk", "candidate_topk_blocks"):
        if getattr(args, key):
            text[key] = getattr(args, key)
    hf.save(args.out, weights, cfg)
    for name in os.listdir(args.model):
        if not os.path.exists(os.path.join(args.out, name)):
            shutil.copy(os.path.join(args.model, name), args.out)


def fit(args):
    torch.set_num_threads(args.threads)
    cfg, weights = hf.load(args.model)
    for key in ("index_topk", "candidate_topk_blocks"):
        if getattr(args, key):
            setattr(cfg, key, getattr(args, key))
    f = Fit(cfg, weights)
    opt = torch.optim.Adam(f.masters.values(), lr=args.lr, betas=(0.9, 0.98))
    files = sorted(glob.glob(os.path.join(args.work, "*.pt")))
    held, files = files[::len(files) // args.held], [x for i, x in enumerate(files) if i % (len(files) // args.held)]
    print(len(files), "documents")

    def report(tag):
        with torch.no_grad():
            got = [f.loss(torch.load(x)) for x in held]
        print(tag, "kl", round(float(torch.stack([g[0] for g in got]).mean()), 4), "mass caught",
              np.round(np.mean([g[1] for g in got], 0), 4).tolist(), flush=True)

    report("before")
    began, n, saved = time.time(), 0, time.time()
    rng = np.random.default_rng(0)
    while time.time() - began < args.seconds:
        share = (time.time() - began) / args.seconds
        for g in opt.param_groups:
            g["lr"] = args.lr * min(1, (n + 1) / 20) * (1 - share)
        opt.zero_grad()
        for k in rng.choice(len(files), args.batch):
            (f.loss(torch.load(files[k]))[0] / args.batch).backward()
        opt.step()
        n += 1
        if n % args.report == 0:
            report(f"step {n}, {time.time() - began:.0f} s:")
            save(f, cfg, weights, args)
    report("after")
    save(f, cfg, weights, args)
    print(json.dumps(dict(steps=n, documents=len(files))))


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=("collect", "fit"))
    a.add_argument("--model", required=True)
    a.add_argument("--work", required=True)
    a.add_argument("--out")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--docs", type=int, default=400)
    a.add_argument("--lengths", default="2048,8192,4096,16384", help="of documents, in turn")
    a.add_argument("--seconds", type=float, default=300)
    a.add_argument("--lr", type=float, default=2e-3)
    a.add_argument("--batch", type=int, default=4, help="documents of a step")
    a.add_argument("--held", type=int, default=6, help="documents kept for the reports")
    a.add_argument("--report", type=int, default=50, help="steps between reports and saves")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--index-topk", type=int, default=0)
    a.add_argument("--candidate-topk-blocks", type=int, default=0)
    args = a.parse_args()
    os.makedirs(args.work, exist_ok=True)
    (collect if args.what == "collect" else fit)(args)
