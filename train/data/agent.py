"""Tool-use conversations: several tasks, one after another, in one simulated workspace."""

import itertools

from . import talk
from .tasks import FAMILIES, Maker, make_task, trace
from .workspace import TOOLS, Workspace

# What the agent program is expected to send. Others occur too, so that nothing hangs on it.
SYSTEM = ("You are hadal, a small agent. Use the tools to work on the files of the workspace, "
          "then report briefly.")
OTHER_SYSTEMS = ("You are a helpful assistant with tools.", "You are a coding agent.", "",
                 "Help the user with the files in this folder. Be brief.")


def call_message(step, ids):
    return {"role": "assistant", "content": step.text, "reasoning_content": step.thought,
            "tool_calls": [{"id": f"c{next(ids)}", "type": "function",
                            "function": {"name": name, "arguments": arguments}}
                           for name, arguments in step.calls]}


def system_message(text=SYSTEM, tools=TOOLS):
    return {"role": "system", "content": text, "tools": tools}


def task_messages(task, workspace, ids):
    """The expert's transcript of one task, without the system message."""
    out = [{"role": "user", "content": task.prompt}]
    for step, results in trace(task, workspace):
        if not step.calls:
            out.append({"role": "assistant", "content": step.text,
                        "reasoning_content": step.thought})
            continue
        message = call_message(step, ids)
        out.append(message)
        out += [{"role": "tool", "tool_call_id": c["id"], "content": r}
                for c, r in zip(message["tool_calls"], results)]
    return out


# Families that need more steps are drawn more often.
WEIGHTS = [{"fix_name": 2, "fix_operator": 2, "follow_path": 2, "copy_value": 1.5, "csv_lookup": 4,
            "rename_function": 1.5}.get(f, 1) for f in FAMILIES]


def session(rng, held_out=False):
    """Yields units of messages: the system message, then one task (or a chat turn) each."""
    maker, ids = Maker(rng, held_out), itertools.count(1)
    families = list(FAMILIES)
    text = SYSTEM if rng.random() < 0.7 else rng.choice(OTHER_SYSTEMS)
    yield [system_message(text)]
    while True:
        if rng.random() < 0.08:
            yield next(talk.conversation(rng, held_out))
            continue
        task = make_task(maker, rng.choices(families, WEIGHTS)[0])
        try:
            yield task_messages(task, Workspace(task.files), ids)
        except ValueError:
            continue
