"""Training documents for the two demonstration models, generated on the fly.

    for ids, mask in stream(dialect="v41", seed=3, max_len=2048): ...

ids: uint16, a whole document beginning with BOS, at most max_len long (documents with tools: at
most 1024 if max_len is less). mask: uint8, mask[i] = 1
where token i should be predicted (position i - 1's target): everything but BOS in raw text, the
assistant's tokens (with EOS) in conversations. Same arguments, same documents.

Conversations are filled with turns up to nearly max_len, so windows are well used. Held-out
names, values and phrasings never occur here; see names.py and talk.py.
"""

import os
import random

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np

from .. import chat
from . import agent, misc, recall, talk

# kind -> default share of the tokens
KINDS = {"talk": 0.25, "agent": 0.33, "recall": 0.16, "pairs": 0.06, "api": 0.05,
         "exercise": 0.05, "prose": 0.03, "code": 0.03, "json": 0.02, "copy": 0.02}

THINKING_SHARE = 0.2
TALK_SYSTEMS = ("You are Hadal, a tiny assistant.", "You are a helpful assistant.", "Be brief.",
                "Answer the questions about Saltmere.")
WITH_TOOLS = ("agent", "api")
MIN_WITH_TOOLS = 1024   # tokens: the tools block alone takes 480, so these may exceed max_len
MIN_TURN = 40           # characters: below this much room no further turn is added


def load_tokenizer():
    from tokenizers import Tokenizer
    path = os.path.join(os.path.dirname(__file__), "..", "tokenizer", "tokenizer.json")
    return Tokenizer.from_file(path)


def _units(kind, rng, n_char):
    """Units of messages of one conversation; the first may be a system message."""
    if kind == "agent":
        return agent.session(rng)
    if kind == "api":
        return misc.api(rng)
    makers = {"talk": talk.conversation, "exercise": misc.exercises}
    body = makers[kind](rng) if kind in makers else recall.conversation(rng, n_char)
    return _with_system(rng, body)


def _with_system(rng, body):
    if rng.random() < 0.35:
        yield [{"role": "system", "content": rng.choice(TALK_SYSTEMS)}]
    yield from body


def _effort(rng, dialect):
    if dialect.startswith("v41"):
        return rng.choice((75, 75, 75, 50, 100, rng.randint(1, 100)))
    return "max" if rng.random() < 0.04 else None


def _size(units):
    return sum(len(m.get("content") or "") + 12 + (150 * len(m.get("tool_calls", ())))
               for u in units for m in u)


class Source:
    """Makes documents of one dialect; keeps the characters-per-token ratio of each kind."""

    def __init__(self, dialect, seed, max_len, tokenizer=None):
        self.dialect, self.max_len = dialect, max_len
        self.rng = random.Random(f"{dialect}/{seed}")
        self.tokenizer = tokenizer or load_tokenizer()
        special = self.tokenizer.token_to_id
        self.bos, self.eos = special(chat.BOS), special(chat.EOS)
        self.assistant = special(chat.ASSISTANT)
        self.ratio = {}

    def document(self, kind):
        """(ids, mask) of one document."""
        rng = self.rng
        limit = max(self.max_len, MIN_WITH_TOOLS) if kind in WITH_TOOLS else self.max_len
        target = limit * rng.uniform(0.93, 0.99)
        n_char = int(target * self.ratio.get(kind, 2.6))
        if kind in misc.RAW:
            ids, mask, n = self.raw(misc.raw_text(kind, rng, n_char))
        else:
            text, ids = self.conversation(kind, n_char, limit)
            mask, n = self.assistant_mask(ids), len(text)
        got = n / len(ids)
        self.ratio[kind] = 0.9 * self.ratio.get(kind, got) + 0.1 * got
        return ids[:limit], mask[:limit]

    def raw(self, text):
        """(ids, mask, number of characters) of a text or of segments that end their lines."""
        segments = [(text, True)] if isinstance(text, str) else text
        parts = [e.ids for e in self.tokenizer.encode_batch([t for t, _ in segments],
                                                            add_special_tokens=False)]
        ids = np.array([self.bos, *(i for part in parts for i in part)], np.uint16)
        mask = np.repeat([False, *(p for _, p in segments)], [1, *map(len, parts)])
        return ids, mask.astype(np.uint8), sum(len(t) for t, _ in segments)

    def encode(self, text):
        return np.array(self.tokenizer.encode(text, add_special_tokens=False).ids, np.uint16)

    def conversation(self, kind, n_char, limit):
        rng = self.rng
        thinking = rng.random() < THINKING_SHARE
        options = {"thinking": thinking, "effort": _effort(rng, self.dialect) if thinking else None,
                   "drop_thinking": rng.random() < 0.3}
        units, size, floor = [], 0, 0
        for unit in _units(kind, rng, n_char):
            units.append(unit)
            size += _size([unit])
            if size > n_char - MIN_TURN:
                break
        if kind in WITH_TOOLS:
            floor = 1
        while True:
            messages = [m for u in units for m in u]
            text = chat.render(messages, self.dialect, **options)
            ids = self.encode(text)
            if len(ids) <= limit or len(units) <= floor + 1:
                return text, ids
            too_much = 1 - limit / len(ids)
            del units[max(floor + 1, min(len(units) - 1, int(len(units) * (1 - too_much)))):]

    def assistant_mask(self, ids):
        """1 from the second token after <｜Assistant｜> (the think tag is given) to EOS."""
        n = len(ids)
        starts = np.flatnonzero(ids == self.assistant) + 2
        ends = np.flatnonzero(ids == self.eos) + 1
        mask = np.zeros(n + 1, np.int8)
        starts = starts[starts <= n]
        if len(starts):
            np.add.at(mask, starts, 1)
            np.add.at(mask, ends, -1)
        return np.cumsum(mask[:n]).clip(0, 1).astype(np.uint8)


def stream(kind_weights=None, dialect="v41", seed=0, min_len=0, max_len=2048, tokenizer=None):
    """Endless (ids, mask) documents. kind_weights: kind -> weight, default KINDS."""
    weights = kind_weights or KINDS
    source = Source(dialect, seed, max_len, tokenizer)
    kinds, shares = list(weights), list(weights.values())
    while True:
        ids, mask = source.document(source.rng.choices(kinds, shares)[0])
        if len(ids) >= min_len and mask.any():
            yield ids, mask


def cut_documents(dialect, kind, n):
    """Ids of n documents of no training, cut where a stretch to be predicted begins: what drafts are measured behind."""
    out = []
    for ids, mask in stream({kind: 1.0}, dialect, 990001, 0, 1024):
        begin = [i for i in range(40, len(ids) - 60) if mask[i] and (not mask[i - 1] or kind in misc.RAW)]
        if begin:
            out.append(ids[: begin[len(begin) // 2]].tolist())
        if len(out) == n:
            return out
