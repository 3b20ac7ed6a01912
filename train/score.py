"""Run the held-out evaluations on a trained model and write one JSON.

  python -m train.score --dialect v41 --model DIR --out scores.json      DIR: an exported HF folder
"""
import argparse
import json
import time
import torch
from . import evaluate
from .evaluate import agent, retrieval, talk
from .generate import Generator
from .reference import hf, token_map


def plain(generator):
    return lambda prompts, max_new, stop_ids, temperature=0: generator.generate(prompts, max_new, stop_ids, temperature)


def run(generator, dialect, out, scores, sizes, deadline=float("inf")):
    """Fill and write `scores` part by part; parts that would start after `deadline` (time.time()) are skipped."""
    evaluate.BATCH = 256

    def measure(name, fn):
        began = time.time()
        if began > deadline:
            return
        try:
            scores[name] = fn()
        except Exception as e:                                                   # one failed part must not lose the others
            scores[name] = dict(error=repr(e))
        print(name, round(time.time() - began, 1), json.dumps(scores[name])[:1500], flush=True)
        with open(out, "w") as f:
            json.dump(scores, f, indent=1)

    n_agent, n_retrieval, n_talk = sizes
    measure("retrieval", lambda: retrieval.run(plain(generator), dialect, n_retrieval))
    measure("agent", lambda: agent.run(plain(generator), dialect, n_agent))
    generator.random_rows = True
    measure("retrieval_random_rows", lambda: retrieval.run(plain(generator), dialect, max(10, n_retrieval // 4)))
    generator.random_rows = False
    measure("talk", lambda: talk.run(plain(generator), dialect, n_talk))
    return scores


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--dialect", choices=("v4", "v41"), required=True)
    a.add_argument("--model", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    a.add_argument("--agent", type=int, default=200)
    a.add_argument("--retrieval", type=int, default=100)
    a.add_argument("--talk", type=int, default=50)
    args = a.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    cfg, weights = hf.load(args.model)
    dtype = torch.bfloat16 if args.device == "cuda" else torch.float32
    weights = {n: w.to(args.device, dtype if w.is_floating_point() and w.ndim > 1 and not n.endswith("ape") else w.dtype)
               for n, w in weights.items()}
    tokens = token_map.for_folder(args.model, cfg.vocab_size) if cfg.engram_layer_ids else None
    run(Generator(weights, cfg, tokens, args.device), args.dialect, args.out, dict(dialect=args.dialect),
        (args.agent, args.retrieval, args.talk))


if __name__ == "__main__":
    main()
