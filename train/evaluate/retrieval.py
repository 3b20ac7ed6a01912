"""Does the model find a planted fact in a long text? Exact value, at several prompt lengths."""

import random

from . import complete, encode, percent
from .. import chat
from ..data import recall
from ..data.names import Names

LENGTHS = (2048, 8192, 16384)
FACTS = (1, 4, 16)          # planted facts per document, in turn
MAX_NEW = 40


def case(dialect, n_token, seed, n_fact):
    """(prompt text, expected answer, value) with a prompt of 95 to 100 % of n_token tokens."""
    ratio = 3.0
    for _ in range(12):
        rng = random.Random(f"retrieval/{n_token}/{seed}")
        names = Names(rng, held_out=True)
        text, facts = recall.document(rng, names, set(), int(ratio * n_token), n_fact)
        fact = rng.choice(facts)
        question = fact.question(rng)
        if rng.random() < 0.2:
            messages = [{"role": "user", "content": text},
                        {"role": "assistant", "content": "I have read the text."},
                        {"role": "user", "content": question}]
        else:
            messages = [{"role": "user", "content": f"{text}\n\n{question}"}]
        prompt = chat.render(messages, dialect)
        n = len(encode(prompt))
        if 0.95 * n_token <= n <= n_token:
            break
        ratio *= 0.975 * n_token / n
    return prompt, fact.sentence(), fact.value


def cases(dialect, n_token, n, seed=0):
    return [case(dialect, n_token, f"{seed}/{i}", FACTS[i % len(FACTS)]) for i in range(n)]


def value_of(answer):
    """The last word of an answer."""
    words = answer.strip().rstrip(".").split()
    return words[-1] if words else ""


def run(generate, dialect, n=200, lengths=LENGTHS, seed=0):
    """Exact-match rates in percent by prompt length, and some failures."""
    out = {"n": n, "exact": {}, "failures": []}
    for n_token in lengths:
        made = cases(dialect, n_token, n, seed)
        answers = complete(generate, [c[0] for c in made], MAX_NEW)
        right = [value_of(a) == c[2] for a, c in zip(answers, made)]
        out["exact"][n_token] = percent(sum(right), n)
        out["failures"] += [f"[{n_token}] expected {c[1]!r}, found {a!r}"
                            for a, c, ok in zip(answers, made, right) if not ok][:5]
    return out


def oracle(dialect, n=200, lengths=LENGTHS, seed=0):
    return {prompt: answer for n_token in lengths
            for prompt, answer, _ in cases(dialect, n_token, n, seed)}
