"""Can the model do workspace tasks? Held-out episodes, run in lockstep through the tool loop."""

import collections
import itertools
import random

from . import complete, percent
from .. import chat
from ..data.agent import system_message, task_messages
from ..data.tasks import FAMILIES, Maker, make_task, solved
from ..data.workspace import Workspace

MAX_TURNS = 10
MAX_NEW = 160


def tasks(n, seed=0):
    """n held-out tasks, the families in turn."""
    families = itertools.cycle(FAMILIES)
    return [make_task(Maker(random.Random(f"evaluate/{seed}/{i}"), held_out=True), next(families))
            for i in range(n)]


class Episode:
    """One task with the conversation so far."""

    def __init__(self, task):
        self.task, self.workspace = task, Workspace(task.files)
        self.messages = [system_message(), {"role": "user", "content": task.prompt}]
        self.outcome = None         # "solved", "wrong", "malformed" or "too long"
        self.n_call = 0
        self.raw = []

    def advance(self, text, dialect, thinking):
        """Take one completion: run its calls, or end the episode with its answer."""
        self.raw.append(text)
        try:
            got = chat.parse_completion(text, dialect, thinking)
        except chat.Malformed:
            self.outcome = "malformed"
            return
        if not got["calls"]:
            right = solved(self.task, self.workspace.files, got["content"])
            self.outcome = "solved" if right else "wrong"
            return
        calls = []
        for call in got["calls"]:
            self.n_call += 1
            calls.append({"id": f"c{self.n_call}", "type": "function", "function": call})
        self.messages.append({"role": "assistant", "content": got["content"],
                              "reasoning_content": got["reasoning"], "tool_calls": calls})
        for c, call in zip(calls, got["calls"]):
            result = self.workspace.call(call["name"], call["arguments"])
            if result.startswith(("error: unknown tool", "error: missing parameter")):
                self.outcome = "malformed"
            self.messages.append({"role": "tool", "tool_call_id": c["id"], "content": result})

    def transcript(self):
        return f"[{self.task.family}: {self.outcome}] {self.task.prompt}\n" + "\n".join(self.raw)


def run(generate, dialect, n=200, thinking=False, seed=0):
    """Success and malformed-call rates in percent, per family too, and some failed transcripts."""
    episodes = [Episode(t) for t in tasks(n, seed)]
    for _ in range(MAX_TURNS):
        alive = [e for e in episodes if e.outcome is None]
        if not alive:
            break
        texts = [chat.render(e.messages, dialect, thinking=thinking) for e in alive]
        for e, text in zip(alive, complete(generate, texts, MAX_NEW)):
            e.advance(text, dialect, thinking)
    for e in episodes:
        e.outcome = e.outcome or "too long"
    count = collections.Counter(e.outcome for e in episodes)
    family = collections.defaultdict(list)
    for e in episodes:
        family[e.task.family].append(e.outcome == "solved")
    n_call = sum(e.n_call for e in episodes) + count["malformed"]
    return {"n": n, "success": percent(count["solved"], n),
            "malformed_calls": percent(count["malformed"], n_call), "outcomes": dict(count),
            "families": {f: percent(sum(v), len(v)) for f, v in family.items()},
            "failures": [e.transcript() for e in episodes if e.outcome != "solved"][:10]}


def oracle(dialect, n=200, thinking=False, seed=0):
    """What a perfect model says: prompt text -> completion text."""
    says = {}
    for task in tasks(n, seed):
        ids = itertools.count(1)
        messages = [system_message(), *task_messages(task, Workspace(task.files), ids)]
        for i, m in enumerate(messages):
            if m["role"] == "assistant":
                before = chat.render(messages[:i], dialect, thinking=thinking)
                after = chat.render(messages[:i + 1], dialect, thinking=thinking)
                says[before] = after[len(before):]
    return says
