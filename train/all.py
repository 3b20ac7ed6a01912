"""One process from nothing to an exported, scored model, within one wall-clock budget.

  python -m train.all --dialect v41 --work /tmp/v41 --out DIR --seconds 330 --draft-seconds 45 --end 460

--end: seconds after the start at which scoring stops. Staying in one process keeps the compiled code.
--warm only compiles the sparse and the long steps (into the shared compiler cache) and exits.
"""
import argparse
import json
import os
import time
import traceback
import torch
from . import draft, export, score, train
from .generate import Generator


def warm(args):
    """Run one sparse short and one sparse long step on random tokens."""
    trainer = train.Trainer(args)
    for T, long in ((args.short, False), (args.long, True)):
        shape = (args.batch_tokens // T, T)
        ids = torch.randint(3, 4000, shape, device=trainer.device)
        kind, weight = torch.zeros_like(ids), torch.ones(shape, device=trainer.device)
        trainer.step = 3
        trainer.train_step((ids, torch.zeros_like(ids), weight, kind), 0.9, long)
        print("warm", T, flush=True)
    if trainer.device != "cpu":
        print("peak GB", torch.cuda.max_memory_allocated() / 1e9, flush=True)


def main():
    began = time.time()
    a = train.parser()
    draft.options(a)
    a.add_argument("--out", required=True)
    a.add_argument("--end", type=float, default=1e9)
    a.add_argument("--warm", action="store_true")
    a.add_argument("--sizes", default="200,60,40", help="agent, retrieval, talk cases")
    args = a.parse_args()
    args.keep_feeds |= args.warm
    train.prepare(args)
    if args.warm:
        return warm(args)
    trainer = train.Trainer(args)
    if args.resume:
        trainer.resume()
    trainer.loop()
    facts = dict(dialect=args.dialect, steps=trainer.step, tokens=trainer.tokens, train_seconds=round(trainer.spent, 1))
    print(json.dumps(facts), flush=True)
    try:
        stages, summary = draft.train_draft(trainer, args)
    except Exception:                                                            # the backbone alone is worth exporting
        traceback.print_exc()
        stages, summary = trainer.opt, {}
    final = dict(weights={n: w.detach().cpu() for n, w in stages.live.items()}, summary=summary, **facts)
    torch.save(final, os.path.join(args.work, "final.pt"))

    def write():
        folder = os.path.join(args.work, "hf-" + args.dialect)
        total = export.export(final, args.dialect, folder)
        os.system(f"cd {args.work} && tar cf - hf-{args.dialect} | split -b 15M - {args.out}/hf-{args.dialect}.tar.")
        print(f"exported {total / 1e6:.2f} MB, {time.time() - began:.0f} s", flush=True)

    if not args.dummy:
        write()
    try:
        draft.summarise(stages, args, summary)
    except Exception:
        traceback.print_exc()
    print(json.dumps(summary), flush=True)
    if args.dummy:
        return
    write()
    generator = Generator(stages.live, trainer.cfg, trainer.map, args.device)
    score.run(generator, args.dialect, os.path.join(args.out, f"scores-{args.dialect}.json"), dict(facts, draft=summary),
              [int(n) for n in args.sizes.split(",")], began + args.end)


if __name__ == "__main__":
    main()
