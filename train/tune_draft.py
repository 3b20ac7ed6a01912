"""Train the draft stages of a finished model further. Runs on a CPU.

  python -m train.tune_draft collect --model DIR --work W --seed 1      (several processes, any time)
  python -m train.tune_draft fit --model DIR --work W --out DIR2 --seconds 3000
  python -m train.tune_draft measure --model DIR2                       all with --dialect

The backbone is frozen, so a document's taps need one pass: `collect` stores bundles of documents with their taps and final hidden
states. Code, JSON and prose are continued by the model itself, most of them greedily: that is the text drafts are measured on, and
the text people see. Conversations are taken as they are; the model says the same.
"""
import argparse
import glob
import json
import os
import shutil
import time
from types import SimpleNamespace
import numpy as np
import torch
from . import draft, optim
from .data import stream
from .generate import Generator
from .reference import hf, token_map
from .reference.model import Batch, Run, backbone
from .reference.params import table
from .reference.rope import Angles

LONGEST = {"agent": 2048, "api": 2048}                                              # other kinds: 1024
AT_ONCE = 32                                                                     # documents generated together
BUNDLE = 8                                                                       # stored together
SHARES = {"agent": 0.14, "code": 0.38, "json": 0.32, "talk": 0.06, "prose": 0.06, "api": 0.04}    # of collected documents
PICKED = {"agent": 0.3, "code": 0.25, "json": 0.25, "talk": 0.1, "prose": 0.05, "api": 0.05}      # of steps
OWN = {"code": 256, "json": 256, "prose": 192}                                   # tokens that the model adds itself


def load(folder, device="cpu"):
    """What draft.DraftTrainer needs to know of a finished model, and its weights."""
    cfg, weights = hf.load(folder)
    tokens = token_map.for_folder(folder, cfg.vocab_size).to(device) if cfg.engram_layer_ids else None
    return SimpleNamespace(cfg=cfg, device=device, map=tokens, angles=Angles(cfg, 4096, device)), weights


def own_text(generator, cfg, kind, docs, rng, batch=128):
    """Documents cut somewhere and continued by the model: (ids, first own position)."""
    prompts = [ids[: int(rng.integers(24, min(len(ids), 288)))].tolist() for ids, _ in docs]
    temperature = float(rng.choice((0.0, 0.0, 0.0, 0.7)))
    made = generator.generate(prompts, OWN[kind], [cfg.eos_token_id], temperature, batch)
    return [(p + o, len(p)) for p, o in zip(prompts, made)]


def bundle(t, weights, texts):
    """ids, weight and the backbone's states of some documents (ids, weight per token), padded to one length."""
    n = max(len(ids) for ids, _ in texts)
    ids, weight = torch.zeros(len(texts), n + -n % t.cfg.align, dtype=torch.long), torch.zeros(len(texts), n + -n % t.cfg.align)
    for i, (each, w) in enumerate(texts):
        ids[i, : len(each)], weight[i, : len(each)] = torch.tensor(each), torch.tensor(w)
    run, ids = Run(), ids.to(t.device)
    hidden = backbone(weights, t.cfg, Batch(t.cfg, ids, None, t.angles, t.map), run)
    return dict(ids=ids.short(), weight=weight.half().to(t.device), hidden=hidden.half(), taps=[x.half() for x in run.taps])


@torch.no_grad()
def collect(args):
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    t, weights = load(args.model)
    rng = np.random.default_rng(args.seed)
    generator = Generator(weights, t.cfg, t.map)
    streams = {k: iter(stream({k: 1.0}, args.dialect, 880000 + args.seed, 0, LONGEST.get(k, 1024))) for k in SHARES}
    made = dict.fromkeys(args.kinds.split(","), 0)
    for n in range(args.rounds):
        began, kind = time.time(), min(made, key=lambda k: made[k] / SHARES[k])
        made[kind] += AT_ONCE if kind in OWN else BUNDLE
        docs = [next(streams[kind]) for _ in range(AT_ONCE if kind in OWN else BUNDLE)]
        if kind in OWN:
            texts = [(ids, [0] * own + [1] * (len(ids) - own)) for ids, own in own_text(generator, t.cfg, kind, docs, rng)]
        else:
            texts = [(ids.astype(np.int64).tolist(), mask.tolist()) for ids, mask in docs]
        texts.sort(key=lambda x: len(x[0]))
        for at in range(0, len(texts), BUNDLE):
            path = os.path.join(args.work, f"{kind}-{args.seed}-{n}-{at}.pt")
            torch.save(bundle(t, weights, texts[at:at + BUNDLE]), path + ".tmp")
            os.replace(path + ".tmp", path)
        print(n, kind, sum(sum(w) for _, w in texts), round(time.time() - began, 1), flush=True)


class Tuner(draft.DraftTrainer):
    """A draft trainer whose backbone passes were made before."""

    def __init__(self, t, weights, args):
        super().__init__(t, weights, args)
        self.stored = None

    def context(self, ids, start):
        if self.stored is None:                                                  # measuring
            return super().context(ids, start)
        s = self.stored
        return Batch(self.cfg, ids, start, self.t.angles, self.t.map), s["hidden"].float().view(*ids.shape, -1), \
            [x.float() for x in s["taps"]]

    def learn(self, stored, per_row):
        self.stored = stored
        ids, weight = self.stored["ids"].long(), self.stored["weight"].float()
        out = self.gradients(ids, torch.zeros_like(ids), weight, per_row)
        self.stored = None
        return out


def save(tuner, args, temperatures=None):
    cfg = tuner.cfg
    weights = {n: w.detach() for n, w in tuner.live.items()}
    if temperatures:
        cfg.raw.get("text_config", cfg.raw)["dspark_confidence_temperatures"] = temperatures
    hf.save(args.out, weights, cfg)
    for name in os.listdir(args.model):
        if not os.path.exists(os.path.join(args.out, name)):
            shutil.copy(os.path.join(args.model, name), args.out)


def fit(args):
    torch.set_num_threads(args.threads)
    t, weights = load(args.model)
    tuner = Tuner(t, weights, args)
    rng, log, n = np.random.default_rng(args.seed), {}, 0
    began = saved = time.time()
    while time.time() - began < args.seconds:
        for kind in rng.choice(list(PICKED), args.step_bundles, p=list(PICKED.values())):
            path = rng.choice(sorted(glob.glob(os.path.join(args.work, f"{kind}-*.pt"))))
            log.setdefault(kind, []).append(tuner.learn(torch.load(path), args.anchors).tolist())
        share = (time.time() - began) / args.seconds
        tuner.opt.step(min(1.0, (n + 1) / 30) * max(0.0, min(1.0, (1 - share) / 0.7)))
        n += 1
        if time.time() - saved > 180 or n == 5:
            print(f"step {n}, {time.time() - began:.0f} s:",
                  {str(k): np.round(np.mean(v, 0)[: t.cfg.dspark_block_size], 3).tolist() for k, v in sorted(log.items())}, flush=True)
            log, saved = {}, time.time()
            save(tuner, args)
    save(tuner, args)
    print(json.dumps(dict(steps=n)), flush=True)
    measure_tuner(tuner, args)


def measure_tuner(tuner, args):
    """Accepted lengths, and confidence temperatures written into the folder."""
    summary = draft.summarise(tuner, args, {})
    print(json.dumps(summary), flush=True)
    save(tuner, args, summary["confidence_temperatures"])


def measure(args):
    torch.set_num_threads(args.threads)
    t, weights = load(args.model)
    print(json.dumps(draft.summarise(Tuner(t, weights, args), args, {})), flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=("collect", "fit", "measure"))
    draft.options(a)
    a.set_defaults(draft_muon_lr=0.01, draft_adam_lr=1.5e-3, anchors=48)
    a.add_argument("--dialect", choices=("v4", "v41"), required=True)
    a.add_argument("--model", required=True)
    a.add_argument("--work")
    a.add_argument("--out")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--rounds", type=int, default=400, help="of collection")
    a.add_argument("--kinds", default=",".join(SHARES), help="of collected documents")
    a.add_argument("--step-bundles", type=int, default=2, help="bundles of a step")
    a.add_argument("--seconds", type=float, default=3000)
    a.add_argument("--threads", type=int, default=1)
    args = a.parse_args()
    args.dummy = False
    if args.work:
        os.makedirs(args.work, exist_ok=True)
    {"collect": collect, "fit": fit, "measure": measure}[args.what](args)


if __name__ == "__main__":
    main()
