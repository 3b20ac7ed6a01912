"""Does the model hold a conversation? Scripted turns in held-out phrasing, facts checked.

The history holds the model's own answers; the user's lines are scripted. Small talk must be one
of the known replies, a story must name its hero, questions about a story are checked against the
story the model told, everything else must contain the world's fact sentence.
"""

import collections
import itertools
import random

from . import complete, percent
from .. import chat
from ..data import talk
from ..data.story import FINDS
from ..data.world import PEOPLE, SMALL_TALK

N_TURN = 8
MAX_NEW = 140
GREETINGS = {a for _, answers in SMALL_TALK for a in answers}
FIND_QUESTION = "What did the story say about a find?"


def script(seed):
    """[(user line, expected answer, kind)] of one conversation."""
    rng = random.Random(f"talk/{seed}")
    units = itertools.islice(talk.conversation(rng, held_out=True), N_TURN)
    out = []
    for user, answer in units:
        kind = answer["kind"]
        if kind == "ask_story" and not any(k == "tell_story" for _, _, k in out):
            kind = "tell_story"         # nothing told yet: the script asks for a story instead
        question = FIND_QUESTION if kind == "ask_story" else user["content"]
        out.append((question, answer["content"], kind))
    return out


def is_right(kind, question, expected, answer, told):
    """told: the last story of this conversation."""
    if kind == "small":
        return answer in GREETINGS
    if kind == "tell_story":
        heroes = [name for name in PEOPLE if name in question]
        return answer.count(".") >= 4 and all(h in answer for h in heroes) \
            and any(f in answer for f in FINDS)
    if kind == "ask_story":
        return any(f in told and f in answer for f in FINDS)
    if kind == "portrait":
        return answer.startswith(expected.split(". ")[0])
    return expected.rstrip(".") in answer


def run(generate, dialect, n=50, thinking=False, seed=0):
    """Right answers in percent, per kind too, failures, and one conversation in full."""
    scripts = [script(f"{seed}/{i}") for i in range(n)]
    histories, told = [[] for _ in scripts], [""] * n
    right = collections.defaultdict(list)
    failures = []
    for turn in range(N_TURN):
        for h, s in zip(histories, scripts):
            h.append({"role": "user", "content": s[turn][0]})
        texts = [chat.render(h, dialect, thinking=thinking) for h in histories]
        for i, text in enumerate(complete(generate, texts, MAX_NEW)):
            question, expected, kind = scripts[i][turn]
            answer = text.rpartition(chat.END_THINK)[2]
            histories[i].append({"role": "assistant", "content": answer})
            ok = is_right(kind, question, expected, answer, told[i])
            right[kind].append(ok)
            if kind == "tell_story":
                told[i] = answer
            if not ok:
                failures.append(f"[{kind}] {question!r}: expected {expected!r}, found {answer!r}")
    n_right, n_all = sum(map(sum, right.values())), sum(map(len, right.values()))
    return {"n": n_all, "right": percent(n_right, n_all),
            "kinds": {k: percent(sum(v), len(v)) for k, v in right.items()},
            "failures": failures[:15],
            "sample": [f"{m['role']}: {m['content']}" for m in histories[0]]}


class Oracle:
    """A perfect talker: knows the scripts; answers about the story it told itself."""

    def __init__(self, dialect, n=50, seed=0):
        self.says = {}
        for i in range(n):
            history, told = [], ""
            for question, expected, kind in script(f"{seed}/{i}"):
                history.append({"role": "user", "content": question})
                if kind == "ask_story":
                    expected = "It was " + next(f for f in FINDS if f in told) + "."
                expected = self.says.setdefault(chat.render(history, dialect), expected)
                if kind == "tell_story":
                    told = expected
                history.append({"role": "assistant", "content": expected})
