"""Held-out tests of what the demonstration models promise: agent, retrieval, talk.

Each has run(generate, dialect, n) -> dict. generate(prompts, max_new, stop_ids, temperature=0)
takes lists of token ids and returns the new ids of each (with or without the stop token).
Names, values and phrasings come from pools the training stream never uses.
"""

import functools

from .. import chat
from ..data import load_tokenizer

BATCH = 64


@functools.cache
def tokenizer():
    return load_tokenizer()


def encode(text):
    return tokenizer().encode(text, add_special_tokens=False).ids


def stop_ids():
    return [tokenizer().token_to_id(chat.EOS)]


def complete(generate, texts, max_new):
    """Completion texts of prompt texts, without EOS; in batches of similar length."""
    prompts = [encode(t) for t in texts]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    out = [None] * len(prompts)
    for start in range(0, len(order), BATCH):
        part = order[start:start + BATCH]
        got = generate([prompts[i] for i in part], max_new, stop_ids(), temperature=0)
        for i, ids in zip(part, got, strict=True):
            ids = list(ids)
            if stop_ids()[0] in ids:
                ids = ids[:ids.index(stop_ids()[0])]
            out[i] = tokenizer().decode(ids, skip_special_tokens=False)
    return out


def percent(part, whole):
    return round(100 * part / whole, 2) if whole else 0.0
