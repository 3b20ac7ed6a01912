"""Train the draft stages of a shipped model further within a wall-clock budget, in one process. Made for a GPU.

  python -m train.redraft train --dialect v41 --gguf models/hadal-tiny-v41.gguf --out DIR --seconds 230 --device cuda
  python -m train.redraft merge --dialect v41 --gguf models/hadal-tiny-v41.gguf --drafts DIR/drafts-v41.safetensors --out hf-v41

What tune_draft does with files and hours, with everything in device memory: worker processes write documents, the model continues
them, fit. Accepted lengths are measured before and after. Nothing but the draft stages changes or is written:
`drafts-DIALECT.safetensors` holds the mtp tensors in the checkpoint's formats, `redraft-DIALECT.json` the figures and the confidence
temperatures. `merge` makes a checkpoint folder of the shipped file with these stages, for `hadal convert`.
"""
import argparse
import json
import multiprocessing as mp
import os
import queue
import time
import numpy as np
import torch
from . import draft, import_gguf, tune_draft
from .data import stream
from .generate import Generator
from .reference import hf

SHARES = {"code": 0.42, "json": 0.2, "agent": 0.12, "talk": 0.06, "prose": 0.14, "api": 0.06}    # of collected documents
PICKED = {"code": 0.42, "json": 0.18, "agent": 0.14, "talk": 0.08, "prose": 0.12, "api": 0.06}     # of bundles in the loss
ENOUGH = 32                                                                      # documents of a kind that are a last round


# ---- documents ----------------------------------------------------------------------------------

def write_documents(out, dialect, seed):
    """Worker: (kind, ids, mask) for ever, kinds by their shares."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.nice(10)
    rng = np.random.default_rng(seed)
    longest = tune_draft.LONGEST
    streams = {k: iter(stream({k: 1.0}, dialect, 910000 + seed, 0, longest.get(k, 1024))) for k in SHARES}
    while True:
        kind = rng.choice(list(SHARES), p=list(SHARES.values()))
        out.put((str(kind), *next(streams[kind])))


def start_writers(args):
    """Before the device is touched: a forked process must not share it."""
    out = mp.get_context("fork").Queue(4 * args.at_once)
    for w in range(args.writers):
        mp.get_context("fork").Process(target=write_documents, args=(out, args.dialect, 100 * args.seed + w), daemon=True).start()
    return out


class Documents:
    """What the writers have made and nobody has used."""

    def __init__(self, source, at_once):
        """at_once: texts of the commonest kind in a round; of others by their share, or they would never have a round."""
        self.source, self.waiting = source, {k: [] for k in SHARES}
        part = {k: 1 if k in tune_draft.OWN else 0.125 for k in SHARES}          # text taken as it is needs no large rounds
        self.enough = {k: max(1, int(at_once * part[k] * s / max(SHARES.values()))) for k, s in SHARES.items()}

    def take(self, deadline):
        """(kind, documents) of a kind that has enough of them; None at the deadline, or the last few of the fullest kind."""
        while time.time() < deadline:
            try:
                kind, ids, mask = self.source.get(timeout=0.5)
            except queue.Empty:
                continue
            self.waiting[kind].append((ids, mask))
            if len(self.waiting[kind]) >= self.enough[kind]:
                return kind, self.drain(kind)
        kind = max(self.waiting, key=lambda k: len(self.waiting[k]))
        return (kind, self.drain(kind)) if len(self.waiting[kind]) >= ENOUGH else None

    def drain(self, kind):
        docs, self.waiting[kind] = self.waiting[kind], []
        return docs


# ---- the model's own text and its states ----------------------------------------------------------

def bundles(texts, per_bundle):
    """Texts of like length together, about per_bundle tokens each."""
    texts = sorted(texts, key=lambda x: len(x[0]))
    while texts:
        n = max(1, per_bundle // len(texts[-1][0]))
        texts, part = texts[:-n], texts[-n:]
        yield part


@torch.no_grad()
def collect(t, weights, documents, args, deadline):
    """-> {kind: bundles}, {kind: supervised tokens}"""
    generator, rng = Generator(weights, t.cfg, t.map, t.device), np.random.default_rng(args.seed)
    made, tokens = {k: [] for k in SHARES}, dict.fromkeys(SHARES, 0)
    while time.time() < deadline:
        found = documents.take(deadline)
        if found is None:
            break
        kind, docs = found
        if kind in tune_draft.OWN:
            texts = [(ids, [0] * own + [1] * (len(ids) - own)) for ids, own in
                     tune_draft.own_text(generator, t.cfg, kind, docs, rng, args.at_once)]
        else:
            texts = [(ids.astype(np.int64).tolist(), mask.tolist()) for ids, mask in docs]
        made[kind] += [tune_draft.bundle(t, weights, part) for part in bundles(texts, args.bundle_tokens)]
        tokens[kind] += sum(sum(w) for _, w in texts)
    return made, tokens


def fit(tuner, made, args, deadline):
    """-> number of steps"""
    began, rng, n, log = time.time(), np.random.default_rng(args.seed), 0, {}
    kinds = [k for k in PICKED if made[k]]
    share = np.array([PICKED[k] for k in kinds])
    while kinds and time.time() < deadline and n < args.max_steps:
        for kind in rng.choice(kinds, args.step_bundles, p=share / share.sum()):
            stored = made[kind][rng.integers(len(made[kind]))]
            per_row = max(1, min(args.anchors // len(stored["ids"]), stored["ids"].shape[1] - tuner.cfg.dspark_block_size - 2))
            log.setdefault(str(kind), []).append(tuner.learn(stored, per_row))
        done = max((time.time() - began) / (deadline - began), n / args.max_steps)
        tuner.opt.step(min(1.0, (n + 1) / 50) * max(0.0, min(1.0, (1 - done) / 0.8)))
        n += 1
        if n % args.log_every == 0:
            means = {k: [round(x, 3) for x in torch.stack(v).mean(0).tolist()] for k, v in sorted(log.items())}
            print(json.dumps(dict(step=n, wall=round(time.time() - began, 1), kept_then_loss_then_calibration=means)), flush=True)
            log = {}
    return n


def write_stages(tuner, args):
    tensors = {n: w for n, w in hf.file_tensors({n: w.detach() for n, w in tuner.live.items()}, tuner.cfg, False).items()
               if n.startswith("mtp.")}
    hf.write_safetensors(os.path.join(args.out, f"drafts-{args.dialect}.safetensors"), tensors)


def train(args):
    began = time.time()
    source = start_writers(args)
    os.makedirs(args.out, exist_ok=True)
    folder = os.path.join(args.work, "hf-" + args.dialect)
    import_gguf.write_folder(args.gguf, folder)
    t, weights = tune_draft.load(folder, args.device)
    if args.drafts:
        weights = hf.load(folder, hf.read_safetensors(args.drafts))[1]
    tuner = tune_draft.Tuner(t, weights, args)
    facts = dict(vars(args), tokens={}, loaded=round(time.time() - began, 1))

    def report(**more):
        facts.update(more, wall=round(time.time() - began, 1))
        print(json.dumps({k: facts[k] for k in more}), round(time.time() - began, 1), flush=True)
        with open(os.path.join(args.out, f"redraft-{args.dialect}.json"), "w") as f:
            json.dump(facts, f, indent=1)

    if args.measure:
        report(before=draft.summarise(tuner, args, {}))
    made, tokens = collect(t, tuner.live, Documents(source, args.at_once), args, began + args.collect_share * args.seconds)
    report(tokens=tokens, bundles={k: len(v) for k, v in made.items()})
    report(steps=fit(tuner, made, args, began + args.seconds))
    write_stages(tuner, args)
    if args.measure:
        report(after=draft.summarise(tuner, args, {}))


# ---- back into a checkpoint -----------------------------------------------------------------------

def merge(args):
    """The shipped file's checkpoint with other draft stages and their confidence temperatures."""
    import_gguf.write_folder(args.gguf, args.out)
    stages = hf.read_safetensors(args.drafts)
    with open(args.drafts.replace("drafts-", "redraft-").replace(".safetensors", ".json")) as f:
        temperatures = json.load(f)["after"]["confidence_temperatures"]
    cfg, weights = hf.load(args.out, stages)
    cfg.raw.get("text_config", cfg.raw)["dspark_confidence_temperatures"] = temperatures
    hf.save(args.out, weights, cfg)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=("train", "merge"))
    draft.options(a)
    a.set_defaults(draft_muon_lr=0.015, draft_adam_lr=2e-3, anchors=2048, ce_share=0.5, measure=48)
    a.add_argument("--dialect", choices=("v4", "v41"), required=True)
    a.add_argument("--gguf", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--drafts", help="stages to merge, or to go on from")
    a.add_argument("--work", default="/tmp")
    a.add_argument("--device", default="cpu")
    a.add_argument("--seconds", type=float, default=230, help="from the start to the end of fitting; measuring and writing follow")
    a.add_argument("--collect-share", type=float, default=0.4, help="of the seconds")
    a.add_argument("--writers", type=int, default=7, help="processes that write documents")
    a.add_argument("--at-once", type=int, default=768, help="texts continued together")
    a.add_argument("--bundle-tokens", type=int, default=32768)
    a.add_argument("--step-bundles", type=int, default=4)
    a.add_argument("--max-steps", type=int, default=10 ** 9)
    a.add_argument("--log-every", type=int, default=100)
    a.add_argument("--seed", type=int, default=1)
    args = a.parse_args()
    args.dummy = False
    torch.manual_seed(args.seed)
    {"train": train, "merge": merge}[args.what](args)


if __name__ == "__main__":
    main()
