"""Command line oracle for the C engine: logits of a model folder or of a toy model, as JSON lines.

  python -m train.reference.oracle --model DIR --ids 1,2,3 [--continue N] [--no-kv-rounding]
  python -m train.reference.oracle --toy v41 --ids 1,2,3
  python -m train.reference.oracle --toy v4 --dump-toy DIR     writes the toy model as a float32 HF folder

Each line: {"pos", "id", "logits"}; --continue appends N greedy tokens. fp32 throughout, no activation quantisation, no bf16
rounding of activations outside the simulated caches; ties go to the lower index.
"""
import argparse
import json
import os
from . import hf, toy, token_map
from .model import Run, oracle_logits


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--model")
    a.add_argument("--toy", choices=("v4", "v41"))
    a.add_argument("--dump-toy")
    a.add_argument("--ids", default="")
    a.add_argument("--continue", dest="extra", type=int, default=0)
    a.add_argument("--no-kv-rounding", action="store_true")
    a.add_argument("--last", type=int, default=0, help="print only the last N positions of the prompt")
    args = a.parse_args()
    if args.toy:
        cfg, weights, tokens = toy.load(args.toy)
    else:
        cfg, weights = hf.load(args.model)
        tokens = token_map.for_folder(args.model, cfg.vocab_size) if cfg.engram_layer_ids else None
    if args.dump_toy:
        hf.save(args.dump_toy, weights, cfg, plain=True, shard_bytes=1 << 40)
        if tokens is not None:
            with open(os.path.join(args.dump_toy, "engram_token_map.json"), "w") as f:
                json.dump(tokens.tolist(), f)
    ids = [int(t) for t in args.ids.split(",") if t]
    if not ids:
        return
    n_prompt = len(ids)
    for step in range(args.extra + 1):
        out = oracle_logits(weights, cfg, ids, Run(sims=not args.no_kv_rounding, exact_ties=True), tokens)
        first = max(0, n_prompt - args.last if args.last else 0) if step == 0 else len(ids) - 1
        for pos in range(first, len(ids)):
            print(json.dumps({"pos": pos, "id": ids[pos], "logits": [round(v, 6) for v in out[pos].tolist()]}))
        ids.append(int(out[-1].argmax()))


if __name__ == "__main__":
    main()
