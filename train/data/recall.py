"""Documents with planted facts, and questions about them.

One canonical sentence form, "The code of the velto locker is 48213.", carries most facts; the
answer repeats the sentence, so that the words before the value occur twice and can be matched by
attention. Filler is log lines, notes and Saltmere prose. Names are unique within a conversation.
"""

from . import story
from .names import COLORS, NOUNS, Names

THINGS = "code number password key price room size weight".split()
OWNERS = "locker box gate station room cabin shelf drawer boat tower garage safe".split()
ASK = ("What is the {t} of the {n} {o}?", "What is the {t} of the {n} {o}?",
       "Tell me the {t} of the {n} {o}.", "Which {t} does the {n} {o} have?",
       "Do you know the {t} of the {n} {o}?", "Find the {t} of the {n} {o}.",
       "I need the {t} of the {n} {o}.")
SAY = "The {t} of the {n} {o} is {v}."
LEAD_DOCUMENT = ("Read this text and answer the question after it.\n\n",
                 "Here is a text.\n\n", "Remember the following.\n\n", "", "",
                 "This is the log of today.\n\n", "Document:\n\n")


class Fact:
    def __init__(self, names, rng, used):
        while True:
            n = names.word()
            if n not in used:
                break
        used.add(n)
        self.values = {"n": n, "t": rng.choice(THINGS), "o": rng.choice(OWNERS),
                       "v": names.value()}

    @property
    def value(self):
        return self.values["v"]

    def sentence(self):
        return SAY.format(**self.values)

    def question(self, rng):
        return rng.choice(ASK).format(**self.values)


class Setting(Fact):
    """The "key = value" form."""

    def sentence(self):
        return "{n} = {v}".format(**self.values)

    def question(self, rng):
        return rng.choice(("What is the value of {n}?", "What is {n} set to?",
                           "Tell me the value of {n}.")).format(**self.values)


class Filler:
    """Lines that carry no fact anyone asks for. One style per document, or a mix."""

    STYLES = ("log", "note", "prose", "number")

    def __init__(self, rng, names):
        self.rng, self.names = rng, names
        self.styles = self.STYLES if rng.random() < 0.3 else (rng.choice(self.STYLES),)
        self.words = names.words(24)        # a document has its own small vocabulary of names

    def line(self):
        return getattr(self, rng_choice(self.rng, self.styles))()

    def log(self):
        r = self.rng
        w, v = rng_choice(r, self.words), rng_choice(r, self.words)
        return f"{r.randrange(24):02}:{r.randrange(60):02} " + rng_choice(r, (
            f"{w} started", f"{w} stopped", f"{w} sent {r.randrange(1000)} bytes to {v}",
            f"{w} is ready", f"error in {w}, retry {r.randrange(10)}", f"{w} waits for {v}",
            f"{w} finished in {r.randrange(100)} ms"))

    def note(self):
        r = self.rng
        w = rng_choice(r, self.words)
        return rng_choice(r, (
            f"The {w} {rng_choice(r, NOUNS)} is {rng_choice(r, COLORS)}.",
            f"The {rng_choice(r, NOUNS)} of the {w} house needs paint.",
            f"Someone moved the {rng_choice(r, COLORS)} {rng_choice(r, NOUNS)} to the {w} room.",
            f"We have {r.randrange(2, 60)} {rng_choice(r, NOUNS)}s and one {w}.",
            f"The {w} was late again."))

    def prose(self):
        return story.prose(self.rng)

    def number(self):
        r = self.rng
        return f"{rng_choice(r, self.words)} {r.randrange(100, 100000)} {rng_choice(r, COLORS)}"


def rng_choice(rng, seq):
    """random.choice without its overhead: filler is most of a long document."""
    return seq[int(rng.random() * len(seq))]


def document(rng, names, used, n_char, n_fact):
    """About n_char characters with n_fact facts at random places: (text, facts)."""
    filler = Filler(rng, names)
    kind = Fact if rng.random() < 0.8 else Setting
    facts = [kind(names, rng, used) for _ in range(n_fact)]
    lines, size = [], sum(len(f.sentence()) + 1 for f in facts)
    while size < n_char:
        lines.append(filler.line())
        size += len(lines[-1]) + 1
    for f in facts:
        lines.insert(rng.randint(0, len(lines)), f.sentence())
    between = "\n" if rng.random() < 0.7 or filler.styles != ("prose",) else " "
    return between.join(lines), facts


def log_uniform(rng, low, high):
    return int(low * (high / low) ** rng.random()) if high > low else low


def conversation(rng, budget, held_out=False, n_char=None):
    """Units: a document with a question, then more questions; then the next document.

    budget: characters of the whole conversation. n_char: fixed size of the first document.
    """
    names, used, known = Names(rng, held_out), set(), []
    left = budget
    while left > 500:
        size = min(n_char or log_uniform(rng, 300, left * 0.95), left * 0.9)
        n_fact = rng.choice((1, 3, 6, 12, 24, 40)) if rng.random() < 0.7 else int(size // 60)
        n_fact = max(1, min(n_fact, int(size // 60)))
        text, facts = document(rng, names, used, size, n_fact)
        known += facts
        asked = rng.sample(facts, min(len(facts), max(1, int(size // 150)), 40))
        asked += rng.sample(known, min(len(known), 4))
        left -= len(text) + 90 * len(asked)
        lead = rng.choice(LEAD_DOCUMENT)
        # With n_char set the document must be followed by its question in the same message.
        apart = rng.random() < 0.15 and not n_char
        if apart:
            yield [{"role": "user", "content": lead + text},
                   {"role": "assistant", "content": "I have read the text.",
                    "reasoning_content": "I keep the text in mind."}]
        for i, fact in enumerate(asked):
            question = fact.question(rng)
            if i == 0 and not apart:
                question = f"{lead}{text}\n\n{question}"
            answer = fact.sentence() if type(fact) is Fact else \
                "{n} = {v}".format(**fact.values)
            yield [{"role": "user", "content": question},
                   {"role": "assistant", "content": answer,
                    "reasoning_content": "The text says it.", "value": fact.value}]
