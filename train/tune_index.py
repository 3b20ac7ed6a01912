"""Improve the indexers of a finished V4.1 model without touching the rest of it. Runs on a CPU.

  python -m train.tune_index collect --model DIR --work W --seed 1      (several processes, any time)
  python -m train.tune_index fit --model DIR --work W --out DIR2 --seconds 300

With every visible row attended, the backbone's activations do not depend on its indexers. So a document needs one forward pass:
`collect` stores, per index layer, the indexer's inputs and the attention mass it has to imitate, at the queries that predict
supervised tokens. `fit` then trains the indexer matrices on the stored queries (KL, deployed roundings in the loop).
"""
import argparse
import glob
import json
import os
import shutil
import time
import numpy as np
import torch
from .data import stream
from .reference import formats, hf, indexer, model, rounding, token_map
from .reference.basics import linear, rms_norm
from .reference.model import Batch, Run, backbone
from .reference.rope import Angles, rotate


class Recorder:
    """Catches the indexers' inputs during a forward pass."""

    def __init__(self):
        self.latents, self.inputs, self.masses = [], [], []
        queries, keys = indexer.queries, model.index_keys

        def record_queries(p, cfg, x, qr, angle, sims):
            self.inputs.append((x, qr))
            return queries(p, cfg, x, qr, angle, sims)

        def record_keys(p, cfg, x, lat, *rest):
            self.latents.append(lat)
            return keys(p, cfg, x, lat, *rest)

        def record_loss(qi, weight, keys_, allowed, mass):
            self.masses.append(mass)
            return torch.zeros(())

        indexer.queries, model.index_keys, indexer.matching_loss = record_queries, record_keys, record_loss


@torch.no_grad()
def collect(args):
    torch.set_num_threads(1)
    cfg, weights = hf.load(args.model)
    tokens = token_map.for_folder(args.model, cfg.vocab_size)
    angles, rng = Angles(cfg, 8192, "cpu"), np.random.default_rng(args.seed)
    kinds = {"recall": 0.75, "pairs": 0.1, "agent": 0.15}
    recorder = Recorder()
    for n, (ids, mask) in enumerate(stream(kinds, "v41", 770000 + args.seed, 300, args.length)):
        if n >= args.docs:
            break
        recorder.latents.clear(), recorder.inputs.clear(), recorder.masses.clear()
        ids = ids.astype(np.int64)
        row = torch.tensor(np.concatenate((ids, np.zeros(-len(ids) % cfg.align, np.int64))))[None]
        batch = Batch(cfg, row, None, angles, tokens)
        backbone(weights, cfg, batch, Run(sparse=False, index_loss=True))
        answers = np.flatnonzero(mask[1:])
        pick = rng.choice(answers, min(len(answers), 160), replace=False)
        other = rng.choice(np.arange(64, len(ids)), 24, replace=False)
        q = torch.tensor(np.sort(np.concatenate((pick, other))))
        layers = []
        for (x, qr), mass in zip(recorder.inputs, recorder.masses):
            layers.append((x[q].half(), qr[q].half(), mass[0, q].half()))
        torch.save(dict(q=q, latents=[l[0].half() for l in recorder.latents], layers=layers),
                   os.path.join(args.work, f"{args.seed}-{n}.pt.tmp"))
        os.replace(os.path.join(args.work, f"{args.seed}-{n}.pt.tmp"), os.path.join(args.work, f"{args.seed}-{n}.pt"))


NAMES = ("wq_b.weight", "weights_proj.weight", "wk.weight", "k_norm.weight")


class Fit:
    def __init__(self, cfg, weights):
        self.cfg, self.weights = cfg, weights
        self.angles = Angles(cfg, 8192, "cpu")
        self.masters = {n: w.clone().requires_grad_() for n, w in weights.items() if ".indexer." in n}

    def live(self, layer, name):
        full = f"layers.{layer}.attn.indexer.{name}"
        w = self.masters[full]
        fmt = "fp8" if name == "wq_b.weight" else "bf16"
        return w + (formats.quantise(w.detach(), fmt, hf.tile_of(self.cfg)) - w.detach())

    def scores(self, doc, i, layer):
        """-> scores [Q, R] (NEVER where invisible), mass [Q, R]"""
        cfg, ratio, owner = self.cfg, self.cfg.ratio(layer), self.cfg.kv_owner(layer)
        x, qr, mass = (t.float() for t in doc["layers"][i])
        lat = doc["latents"][cfg.kv_source_layer_ids.index(owner)].float()
        cos, sin = self.angles.at(doc["q"], True)
        qi = linear(qr, self.live(layer, "wq_b.weight")).unflatten(-1, (cfg.index_n_heads, cfg.index_head_dim))
        qi = rounding.index_vector(cfg, rotate(qi, cos[:, None], sin[:, None]))
        w = linear(x, self.live(layer, "weights_proj.weight")) * (cfg.index_head_dim * cfg.index_n_heads) ** -0.5
        key = rms_norm(linear(lat, self.live(owner, "wk.weight")), self.live(owner, "k_norm.weight"), cfg.rms_norm_eps)
        key = rounding.index_vector(cfg, rotate(key, *self.angles.at(torch.arange(len(lat)) * ratio, True)))
        s = indexer.scores(qi[None], w[None], key[None])[0]
        visible = torch.arange(len(lat)) < ((doc["q"] + 1) // ratio)[:, None]
        return s.masked_fill(~visible, indexer.NEVER), mass * visible

    def loss(self, doc):
        total, caught = 0, []
        for i, layer in enumerate(self.cfg.index_source_layer_ids):
            s, mass = self.scores(doc, i, layer)
            amount = mass.sum(-1, keepdim=True)
            target = mass / amount.clamp_min(1e-6)
            kl = (target * (torch.log(target.clamp_min(1e-9)) - torch.log_softmax(s, -1))).sum(-1)
            # queries that put more weight on rows matter more
            total = total + (kl * amount[:, 0]).sum() / amount.sum().clamp_min(1e-3)
            top = torch.topk(s.detach(), min(self.cfg.index_topk, s.shape[1]), -1).indices
            caught.append(float((mass.gather(1, top).sum(-1)).sum() / mass.sum().clamp_min(1e-6)))
        return total, caught


def fit(args):
    torch.set_num_threads(1)
    cfg, weights = hf.load(args.model)
    if args.index_topk:
        cfg.index_topk = args.index_topk
    f = Fit(cfg, weights)
    opt = torch.optim.Adam(f.masters.values(), lr=args.lr, betas=(0.9, 0.98))
    files = sorted(glob.glob(os.path.join(args.work, "*.pt")))
    docs = [torch.load(p) for p in files]
    held, docs = docs[: max(2, len(docs) // 12)], docs[max(2, len(docs) // 12):]
    print(len(docs), "documents")

    def report(tag):
        with torch.no_grad():
            got = [f.loss(d) for d in held]
        print(tag, "kl", round(float(torch.stack([g[0] for g in got]).mean()), 4), "mass caught",
              np.round(np.mean([g[1] for g in got], 0), 4).tolist(), flush=True)

    report("before")
    began, n = time.time(), 0
    while time.time() - began < args.seconds:
        share = (time.time() - began) / args.seconds
        for g in opt.param_groups:
            g["lr"] = args.lr * min(1, (n + 1) / 20) * (1 - share)
        picks = np.random.default_rng(n).choice(len(docs), 4)
        loss = sum(f.loss(docs[k])[0] for k in picks) / 4
        opt.zero_grad()
        loss.backward()
        opt.step()
        n += 1
        if n % 50 == 0:
            report(f"step {n}")
    report("after")
    for name, w in f.masters.items():
        fmt = "fp8" if name.endswith("wq_b.weight") else "bf16"
        weights[name] = formats.quantise(w.detach(), fmt, hf.tile_of(cfg))
    text = cfg.raw["text_config"]
    for key in ("index_topk", "candidate_topk_blocks"):
        if getattr(args, key):
            text[key] = getattr(args, key)
    hf.save(args.out, weights, cfg)
    for name in os.listdir(args.model):
        if not os.path.exists(os.path.join(args.out, name)):
            shutil.copy(os.path.join(args.model, name), args.out)
    print(json.dumps(dict(steps=n, documents=len(docs))))


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=("collect", "fit"))
    a.add_argument("--model", required=True)
    a.add_argument("--work", required=True)
    a.add_argument("--out")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--docs", type=int, default=400)
    a.add_argument("--length", type=int, default=1024)
    a.add_argument("--seconds", type=float, default=300)
    a.add_argument("--lr", type=float, default=2e-3)
    a.add_argument("--index-topk", type=int, default=0)
    a.add_argument("--candidate-topk-blocks", type=int, default=0)
    args = a.parse_args()
    os.makedirs(args.work, exist_ok=True)
    (collect if args.what == "collect" else fit)(args)
