"""Train one tiny model within a wall-clock budget.

  python -m train.train --dialect v41 --seconds 600 --work /tmp/v41 [--resume]

Phases by elapsed share: dense attention over all visible rows first (indexers warm up on the full attention distribution), then
top-k selection with an occasional dense step; long rows join in the middle. The learning rate falls linearly to zero.
Writes checkpoint.pt (masters, optimiser) and log.jsonl to --work.
"""
import argparse
import json
import os
import time
import numpy as np
import torch
from . import geometry, optim
from .feed import Sampler, start_workers
from .reference import basics, token_map
from .reference.basics import hot
from .reference.model import Batch, Run, backbone
from .reference.rope import Angles

SHORT, LONG = 2048, 16384
DRAFT_KINDS = {"agent": 0.3, "code": 0.22, "json": 0.2, "talk": 0.13, "prose": 0.08, "api": 0.07}
LONG_KINDS = {"recall": 0.55, "agent": 0.2, "talk": 0.15, "prose": 0.1}


@hot
def token_losses(hidden, head, target):
    """-> cross entropy [N] fp32, correct [N]"""
    z = torch.nn.functional.linear(hidden, head).float()
    best = z.argmax(-1)
    loss = torch.logsumexp(z, -1) - z.gather(1, target[:, None])[:, 0]
    return loss, best == target


class Schedule:
    """What happens when, by elapsed share s of the budget."""

    def __init__(self, args):
        self.args = args

    def rate(self, s, step):
        return min(1.0, (step + 1) / 80) * min(1.0, max(0.0, (1 - s) / 0.6))

    def sparse(self, s, step):
        return s > self.args.dense_until and step % 8 != 0

    def long(self, s, step):
        return s > self.args.long_from and step % self.args.long_every == 3


class Trainer:
    def __init__(self, args):
        self.args, self.device = args, args.device
        self.tokenizer = load_tokenizer(args)
        self.cfg = geometry.make(args.dialect, self.tokenizer)
        self.map = None
        if self.cfg.is_v41:
            self.map = (token_map.build(self.tokenizer, 4096) if self.tokenizer else torch.arange(4096)).to(self.device)
        self.opt = optim.Optimiser(self.cfg, optim.initial(self.cfg), self.device, trainable=lambda n: not n.startswith("mtp."),
                                   muon_lr=args.muon_lr, adam_lr=args.adam_lr)
        self.angles = Angles(self.cfg, LONG + 8, self.device)
        self.schedule = Schedule(args)
        self.step, self.spent, self.tokens = 0, 0.0, 0
        self.failures = dict(short=0, long=0)
        self.log_file = open(os.path.join(args.work, "log.jsonl"), "a")
        self.stats = None

    def save(self):
        path = os.path.join(self.args.work, "checkpoint.pt")
        torch.save(dict(step=self.step, spent=self.spent, tokens=self.tokens, opt=self.opt.state()), path + ".tmp")
        os.replace(path + ".tmp", path)

    def resume(self):
        s = torch.load(os.path.join(self.args.work, "checkpoint.pt"), map_location=self.device, weights_only=False)
        self.step, self.spent, self.tokens = s["step"], s["spent"], s["tokens"]
        self.opt.load_state(s["opt"])

    def train_step(self, data, share, long):
        """One optimiser step; returns device tensors only (no synchronisation)."""
        ids, start, weight, kind = data
        sparse = self.schedule.sparse(share, self.step)
        run = Run(sparse=sparse, index_loss=True, index_stride=8 if long else 2, recompute=long)
        batch = Batch(self.cfg, ids, start, self.angles, self.map)
        hidden = backbone(self.opt.live, self.cfg, batch, run)
        target = torch.roll(ids, -1, 1).reshape(-1)
        w = torch.roll(weight, -1, 1)
        w[:, -1] = 0
        w = w.reshape(-1)
        loss, correct = token_losses(hidden, self.opt.live["head.weight"], target)
        main = (loss * w).sum() / w.sum().clamp_min(1)
        index = torch.stack(run.losses).mean()
        (main + index).backward()
        norm = self.opt.step(self.schedule.rate(share, self.step))
        self.opt.balance(run.loads)
        return self.collect(loss.detach(), correct, w, kind, main.detach(), index.detach(), norm, run, long)

    def try_step(self, data, share, long):
        """A step that may fail (memory, compiler) without losing the run: long steps are given up, then compilation."""
        if long and self.failures["long"] > 1:
            return None
        try:
            return self.train_step(data, share, long)
        except Exception as e:
            print("step failed:", "long" if long else "short", repr(e)[:600], flush=True)
            self.failures["long" if long else "short"] += 1
            for w in self.opt.live.values():
                w.grad = None
            if self.device != "cpu":
                torch.cuda.empty_cache()
            if self.failures["short"] > 3:
                basics.set_compile(False)
            if self.failures["short"] > 8:
                raise
            return None

    def collect(self, loss, correct, w, kind, main, index, norm, run, long):
        """Sums per kind over fully supervised targets: count, loss, correct."""
        k = torch.roll(kind, -1, 1).reshape(-1)
        full = (w == 1).float()
        n = len(self.args.kinds)
        sums = torch.stack([torch.bincount(k, v, n)[:n] for v in (full, loss * full, correct.float() * full)])
        load = torch.stack([x.float() / x.sum() for x in run.loads.values()]).max()
        return torch.cat((sums.flatten(), torch.stack((main, index, norm, load)))), long

    def log(self, results, wall, share):
        line = dict(step=self.step, share=round(share, 4), wall=round(wall, 1), tokens=self.tokens)
        for name, pick in (("short", False), ("long", True)):
            rows = [r for r, long in results if long == pick]
            if not rows:
                continue
            total = torch.stack(rows).cpu()
            n = len(self.args.kinds)
            count, loss, correct = total[:, :3 * n].sum(0).view(3, n)
            main, index, norm, load = total[:, 3 * n:].mean(0).tolist()
            by_kind = {k: [round(float(loss[i] / count[i]), 3), round(float(correct[i] / count[i]), 3)]
                       for i, k in enumerate(self.args.kinds) if count[i] > 0}
            line[name] = dict(loss=round(main, 4), index=round(index, 4), norm=round(norm, 3), load=round(load, 3), kinds=by_kind)
        self.log_file.write(json.dumps(line) + "\n")
        self.log_file.flush()
        print(json.dumps(line), flush=True)

    def loop(self):
        args = self.args
        short = Sampler(os.path.join(args.work, "short"), args.rows, args.short, args.batch_tokens // args.short, self.device)
        long = Sampler(os.path.join(args.work, "long"), args.long_rows, args.long, args.batch_tokens // args.long, self.device)
        short.wait(min(args.rows, 2 * short.batch))
        began, results, saved = time.time(), [], time.time()
        before = self.spent
        while True:
            share = self.spent / args.seconds
            if share >= 1 or self.step >= args.max_steps or time.time() - began > args.stop_after:
                break
            is_long = self.schedule.long(share, self.step) and np.array(long.pool.filled[:, 0]).sum() >= long.batch
            done = self.try_step((long if is_long else short).next(), share, is_long)
            if done is not None:
                results.append(done)
            self.step += 1
            self.tokens += args.batch_tokens
            if self.step % 10 == 0 and self.device != "cpu":
                torch.cuda.synchronize()
            self.spent = before + time.time() - began
            if self.step % args.log_every == 0:
                self.log(results, time.time() - began, share)
                results = []
            if time.time() - saved > 120:
                self.save()
                saved = time.time()
        self.save()


def load_tokenizer(args):
    if args.dummy:
        return None
    from .data import load_tokenizer as load
    return load()


def dummy_stream(seed, max_len):
    rng = np.random.default_rng(seed)
    while True:
        n = int(rng.integers(64, max_len))
        half = rng.integers(3, 200, size=n // 2)
        ids = np.concatenate(([0], half, half)).astype(np.uint16)
        yield ids, np.ones(len(ids), np.uint8)


class KindStream:
    """A picklable maker of one kind's document stream, with document lengths spread between shortest and T."""

    def __init__(self, kind, dialect, lengths, dummy=False):
        self.kind, self.dialect, self.lengths, self.dummy = kind, dialect, lengths, dummy

    def __call__(self, seed):
        if self.dummy:
            yield from dummy_stream(seed, self.lengths[-1])
        from .data import stream
        sources = [iter(stream({self.kind: 1.0}, self.dialect, seed * 16 + i, n // 2, n)) for i, n in enumerate(self.lengths)]
        turn = 0
        while True:                                                              # equal token shares per length
            turn += 1
            for i, n in enumerate(self.lengths):
                for _ in range(max(1, self.lengths[-1] // n)):
                    yield next(sources[i])


def start_feeds(args):
    if args.dummy:
        args.kinds = ["copy"]
        shares = long_shares = draft_shares = [1.0]
    else:
        from .data import KINDS
        args.kinds = list(KINDS)
        shares = [KINDS[k] for k in args.kinds]
        long_shares, draft_shares = ([s.get(k, 0.0) + 1e-9 for k in args.kinds] for s in (LONG_KINDS, DRAFT_KINDS))
    s, l = args.short, args.long
    for folder, T, rows, lengths, weight, n in (("short", s, args.rows, [s // 4, s // 2, s], shares, args.workers),
                                               ("draft", s, args.draft_rows, [s // 2, s], draft_shares, args.draft_workers),
                                               ("long", l, args.long_rows, [l // 4, l // 2, l], long_shares, args.long_workers)):
        streams = [KindStream(k, args.dialect, lengths, args.dummy) for k in args.kinds]
        start_workers(os.path.join(args.work, folder), rows, T, streams, weight, n, seed=args.seed)


def parser():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--dialect", choices=("v4", "v41"), required=True)
    a.add_argument("--work", required=True)
    a.add_argument("--seconds", type=float, default=600, help="whole training budget, over all resumed runs")
    a.add_argument("--stop-after", type=float, default=1e9, help="leave this call after so many seconds")
    a.add_argument("--resume", action="store_true")
    a.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    a.add_argument("--short", type=int, default=SHORT)
    a.add_argument("--long", type=int, default=LONG)
    a.add_argument("--batch-tokens", type=int, default=65536)
    a.add_argument("--rows", type=int, default=60000)
    a.add_argument("--long-rows", type=int, default=2000)
    a.add_argument("--draft-rows", type=int, default=8000)
    a.add_argument("--workers", type=int, default=12)
    a.add_argument("--long-workers", type=int, default=3)
    a.add_argument("--draft-workers", type=int, default=2)
    a.add_argument("--muon-lr", type=float, default=0.02)
    a.add_argument("--adam-lr", type=float, default=4e-3)
    a.add_argument("--dense-until", type=float, default=0.2)
    a.add_argument("--long-from", type=float, default=0.45)
    a.add_argument("--long-every", type=int, default=8)
    a.add_argument("--log-every", type=int, default=50)
    a.add_argument("--max-steps", type=int, default=10 ** 9)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--no-compile", action="store_true")
    a.add_argument("--dummy", action="store_true", help="copy task instead of the corpus (debugging)")
    a.add_argument("--keep-feeds", action="store_true", help="the pools are there already")
    return a


def prepare(args):
    os.makedirs(args.work, exist_ok=True)
    torch.manual_seed(args.seed)
    if not args.keep_feeds:
        start_feeds(args)
    elif not args.dummy:
        from .data import KINDS
        args.kinds = list(KINDS)
    else:
        args.kinds = ["copy"]
    torch.backends.cuda.matmul.allow_tf32 = True
    from torch import _dynamo
    _dynamo.config.cache_size_limit = 64
    basics.set_compile(args.device != "cpu" and not args.no_compile)
    return args


def main():
    args = prepare(parser().parse_args())
    trainer = Trainer(args)
    if args.resume:
        trainer.resume()
    trainer.loop()


if __name__ == "__main__":
    main()
