"""python -m train.data --preview KIND: print sample documents; --speed: measure the stream;
--prompts FOLDER: write cut documents of each kind, as `hadal bench --content` reads them."""

import argparse
import itertools
import pathlib
import time

from . import KINDS, cut_documents, load_tokenizer, stream

CONTENT = {"code": "code", "script": "script", "json": "json", "tools": "agent", "talk": "talk", "prose": "prose"}


def preview(a):
    tokenizer = load_tokenizer()
    kinds = {a.preview: 1}
    for ids, mask in itertools.islice(stream(kinds, a.dialect, a.seed, 0, a.max_len), a.n):
        print(f"---- {len(ids)} tokens, {mask.mean():.2f} of them predicted")
        print(tokenizer.decode(ids.tolist(), skip_special_tokens=False))


def speed(a):
    for kind in [None, *KINDS]:
        n = n_doc = n_loss = 0
        start = time.perf_counter()
        for ids, mask in stream(kind and {kind: 1}, a.dialect, a.seed, 0, a.max_len):
            n, n_doc, n_loss = n + len(ids), n_doc + 1, n_loss + int(mask.sum())
            if time.perf_counter() - start > 3:
                break
        seconds = time.perf_counter() - start
        print(f"{kind or 'all':9} {n / seconds:9.0f} tokens/s, "
              f"{n / n_doc:7.0f} tokens per document, "
              f"{n_loss / n:.2f} of them predicted")


def prompts(a):
    """Prompts behind one another: each begins with its begin-of-sentence token."""
    tokenizer = load_tokenizer()
    for name, kind in CONTENT.items():
        texts = [tokenizer.decode(ids, skip_special_tokens=False) for ids in cut_documents(a.dialect, kind, a.n)]
        (pathlib.Path(a.prompts) / f"{name}.txt").write_text("".join(texts))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--preview", choices=list(KINDS))
    p.add_argument("--speed", action="store_true")
    p.add_argument("--prompts")
    p.add_argument("--dialect", default="v41")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--max-len", type=int, default=2048)
    p.add_argument("-n", type=int, default=1)
    a = p.parse_args()
    if a.preview:
        preview(a)
    if a.speed:
        speed(a)
    if a.prompts:
        prompts(a)


main()
