"""Run the held-out evaluations on a trained model and write one JSON.

  python -m train.score --dialect v41 --final /tmp/v41/final.pt --out scores.json
"""
import argparse
import json
import time
import torch
from . import geometry
from .data import load_tokenizer
from .evaluate import agent, retrieval, talk
from .generate import Generator
from .reference import token_map


def load_generator(args, random_rows=False):
    tokenizer = load_tokenizer()
    cfg = geometry.make(args.dialect, tokenizer)
    saved = torch.load(args.final, map_location=args.device, weights_only=False)
    tokens = token_map.build(tokenizer, cfg.vocab_size) if cfg.is_v41 else None
    return Generator(saved["weights"], cfg, tokens, args.device, random_rows), saved


def plain(generator):
    return lambda prompts, max_new, stop_ids, temperature=0: generator.generate(prompts, max_new, stop_ids, temperature)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--dialect", choices=("v4", "v41"), required=True)
    a.add_argument("--final", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    a.add_argument("--agent", type=int, default=200)
    a.add_argument("--retrieval", type=int, default=100)
    a.add_argument("--talk", type=int, default=50)
    args = a.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    generator, saved = load_generator(args)
    scores = dict(dialect=args.dialect, steps=saved.get("step"), tokens=saved.get("tokens"), train_seconds=saved.get("spent"),
                  draft=saved.get("summary"))

    def measure(name, fn):
        began = time.time()
        try:
            scores[name] = fn()
        except Exception as e:                                                   # one failed part must not lose the others
            scores[name] = dict(error=repr(e))
        print(name, round(time.time() - began, 1), json.dumps(scores[name])[:1500], flush=True)
        with open(args.out, "w") as f:
            json.dump(scores, f, indent=1)

    measure("retrieval", lambda: retrieval.run(plain(generator), args.dialect, args.retrieval))
    measure("agent", lambda: agent.run(plain(generator), args.dialect, args.agent))
    measure("talk", lambda: talk.run(plain(generator), args.dialect, args.talk))
    generator.random_rows = True
    measure("retrieval_random_rows", lambda: retrieval.run(plain(generator), args.dialect, max(20, args.retrieval // 4)))


if __name__ == "__main__":
    main()
