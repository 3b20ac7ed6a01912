"""Render conversations to prompt text and parse completions, for the V4 and V4.1 chat dialects.

Why: training documents and evaluation prompts must carry exactly the bytes that the C engine's
chat encoder produces, so this is a second, independent implementation of the wire format.
A dialect is a row of DIALECTS; everything else is shared.

Messages are OpenAI-style dicts: role, content, reasoning_content, tool_calls, tool_call_id, tools
(on a system message), response_format, task, wo_eos. Not here: images, namespaces, tokenising.
"""

import json
from dataclasses import dataclass

BOS = "<｜begin▁of▁sentence｜>"
EOS = "<｜end▁of▁sentence｜>"
PAD = "<｜▁pad▁｜>"
SYSTEM = "<｜System｜>"
USER = "<｜User｜>"
ASSISTANT = "<｜Assistant｜>"
REMINDER = "<｜latest_reminder｜>"
THINK = "<think>"
END_THINK = "</think>"
DSML = "｜DSML｜"
TASKS = ("action", "query", "authority", "domain", "title", "read_url")

# The fixed wording of the TOOLS block. V4.1 uses the same sentences as V4: only the three tag
# names differ, and each starts with a space ("<｜DSML｜ calls>", "<｜DSML｜ invoke ...>",
# "<｜DSML｜ parameter ...>"). C = calls tag, I = invoke tag, P = parameter tag, S = schema lines.
TOOLS_BLOCK = """## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by \
writing a "<{C}>" block like the following:

<{C}>
<{I} name="$TOOL_NAME">
<{P} name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</{P}>
...
</{I}>
<{I} name="$TOOL_NAME2">
...
</{I}>
</{C}>

String parameters should be specified as is and set `string="true"`. For all other types \
(numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning \
inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

{S}

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
"""

RESPONSE_FORMAT = ("## Response Format:\n\n"
                   "You MUST strictly adhere to the following schema to reply:\n")

EFFORT_HIGH = """Reasoning Effort: Absolute maximum with no shortcuts permitted.
You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve \
the root cause, rigorously stress-testing your logic against all potential paths, edge cases, \
and adversarial scenarios.
Explicitly write out your entire deliberation process, documenting every intermediate step, \
considered alternative, and rejected hypothesis to ensure absolutely no assumption is left \
unchecked.

"""

EFFORT_MAX_0731 = """Reasoning Effort: Beyond maximum — exhaustive, relentless, and \
uncompromising.
You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: \
exhaustively decompose the problem into its most fundamental components, trace every causal \
chain to its root, and resolve the underlying cause rather than any surface symptom.
Do not stop reasoning until you have independently verified the solution from multiple angles \
and are certain that no assumption remains unchecked and no error remains undiscovered.

"""

EFFORT_V41 = ("Reasoning Effort: {n} (range 1-100, the higher the value, "
              "the more thorough the reasoning)\n\n")


@dataclass(frozen=True)
class Dialect:
    """What differs between chat formats."""
    calls: str              # text after ｜DSML｜ in the three tags
    invoke: str
    parameter: str
    effort: dict            # effort name -> text before message 0 (thinking mode only)
    default_effort: str
    system_token: bool      # V4.1 marks system text and lets it open an assistant turn
    developer: bool         # whether the role is known
    user_tools: bool        # tools on a user message count (they are never shown)
    twice: bool             # arguments that are a JSON string are read once more

    def effort_text(self, effort):
        if self.system_token and isinstance(effort, int):
            if not 1 <= effort <= 100:
                raise ValueError(f"effort must be within 1..100, found {effort}")
            return EFFORT_V41.format(n=effort)
        return self.effort[self.default_effort if effort is None else effort]


DIALECTS = {
    "v4": Dialect("tool_calls", "invoke", "parameter",
                  {"none": "", "low": "", "high": "", "max": EFFORT_HIGH}, "none",
                  system_token=False, developer=True, user_tools=False, twice=False),
    "v4-0731": Dialect("tool_calls", "invoke", "parameter",
                       {"none": "", "low": "", "high": EFFORT_HIGH, "max": EFFORT_MAX_0731},
                       "low", system_token=False, developer=True, user_tools=False, twice=False),
    "v41": Dialect(" calls", " invoke", " parameter",
                   {k: EFFORT_V41.format(n=n) for k, n in
                    (("low", 50), ("high", 75), ("max", 100))}, "high",
                   system_token=True, developer=False, user_tools=True, twice=True),
}


def to_json(value):
    return json.dumps(value, ensure_ascii=False)


def tools_block(tools, dialect):
    """The TOOLS block for OpenAI-style tools ({"type": "function", "function": {...}})."""
    d = DIALECTS[dialect]
    schemas = "\n".join(to_json(t.get("function", t)) for t in tools)
    names = {"C": DSML + d.calls, "I": DSML + d.invoke, "P": DSML + d.parameter}
    text = TOOLS_BLOCK
    for key, name in names.items():
        text = text.replace("{" + key + "}", name)
    return text.replace("{S}", schemas)


# ---- rendering --------------------------------------------------------------------------------

def _read(text):
    """The JSON value of a text, or None."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _arguments(call, d):
    """The arguments object of a call; text that is not a JSON object becomes one parameter."""
    raw = call["function"]["arguments"]
    if isinstance(raw, dict):
        return raw
    value = _read(raw)
    if d.twice and isinstance(value, str):
        value = _read(value)
    return value if isinstance(value, dict) else {"arguments": raw}


def render_calls(calls, dialect):
    """Two line feeds and the DSML block of one assistant message."""
    d = DIALECTS[dialect]
    out = [f"\n\n<{DSML}{d.calls}>\n"]
    for call in calls:
        params = []
        for key, value in _arguments(call, d).items():
            kind = "true" if isinstance(value, str) else "false"
            text = value if isinstance(value, str) else to_json(value)
            params.append(f'<{DSML}{d.parameter} name="{key}" string="{kind}">{text}'
                          f"</{DSML}{d.parameter}>")
        out.append(f'<{DSML}{d.invoke} name="{call["function"]["name"]}">\n'
                   + "\n".join(params) + f"\n</{DSML}{d.invoke}>\n")
    out.append(f"</{DSML}{d.calls}>")
    return "".join(out)


def _check(messages, d):
    for m in messages:
        if m["role"] == "developer" and not (d.developer and m.get("content")):
            raise ValueError("a developer message needs text and a dialect that knows the role")


def _merge(messages, d):
    """Tool messages become blocks of user turns; adjacent user messages join."""
    merged = []
    for m in messages:
        last = merged[-1] if merged and "blocks" in merged[-1] else None
        if m["role"] == "tool":
            block = ("tool_result", m.get("tool_call_id", ""), m.get("content", ""))
            if last is None:
                last = {"role": "user", "blocks": []}
                merged.append(last)
            last["blocks"].append(block)
        elif m["role"] == "user":
            block = ("text", "", m.get("content") or "")
            if last is None or last.get("task"):
                last = {"role": "user", "blocks": []}
                kept = ("task", "wo_eos", "tools") if d.user_tools else ("task", "wo_eos")
                last.update({k: m[k] for k in kept if k in m})
                merged.append(last)
            last["blocks"].append(block)
        else:
            merged.append(m)
    return merged


def _sort_results(messages):
    """Tool results inside one user turn take the order of the calls they answer."""
    order = {}
    for m in messages:
        if m["role"] == "assistant" and m.get("tool_calls"):
            order = {c["id"]: i for i, c in enumerate(m["tool_calls"]) if c.get("id")}
        elif "blocks" in m and order:
            slots = [i for i, b in enumerate(m["blocks"]) if b[0] == "tool_result"]
            ranked = sorted((m["blocks"][i] for i in slots), key=lambda b: order.get(b[1], 0))
            for i, block in zip(slots, ranked):
                m["blocks"][i] = block
    return messages


def _last_user(messages, d):
    for i in range(len(messages) - 1, -1, -1):
        role = messages[i]["role"]
        if role in ("user", "developer") or (d.system_token and role == "system" and i > 0):
            return i
    return -1


def _drop_reasoning(messages, d):
    last = _last_user(messages, d)
    kept = ("user", "system", "tool", "latest_reminder", "direct_search_results")
    out = []
    for i, m in enumerate(messages):
        if i >= last or m["role"] in kept:
            out.append(m)
        elif m["role"] == "assistant":
            out.append({k: v for k, v in m.items() if k != "reasoning_content"})
    return out


def _result_text(content):
    if isinstance(content, str):
        return content
    return "\n\n".join(p["text"] if p.get("type") == "text" else f"[Unsupported {p.get('type')}]"
                       for p in content)


def _body(m, dialect):
    """A message without its thinking part and without what follows it."""
    d, role, text = DIALECTS[dialect], m["role"], m.get("content") or ""
    if role == "user":
        return USER + "\n\n".join(
            f"<tool_result>{_result_text(b[2])}</tool_result>" if b[0] == "tool_result" else b[2]
            for b in m["blocks"])
    if role == "latest_reminder":
        return REMINDER + text
    if role == "assistant":
        calls = render_calls(m["tool_calls"], dialect) if m.get("tool_calls") else ""
        return text + calls + ("" if m.get("wo_eos") else EOS)
    if role == "developer":
        text = USER + text
    elif role != "system":
        raise ValueError(f"unknown role {role}")
    if m.get("tools"):
        text += "\n\n" + tools_block(m["tools"], dialect)
    if m.get("response_format"):
        text += "\n\n" + RESPONSE_FORMAT + to_json(m["response_format"])
    return text


def _transition(m, opens_turn, thinking, think_here):
    """What the next assistant turn starts with."""
    task = m.get("task")
    if task and task != "action":
        return f"<｜{task}｜>"
    if task:
        return ASSISTANT + (THINK if thinking else END_THINK) + "<｜action｜>"
    if opens_turn:
        return ASSISTANT + (THINK if think_here else END_THINK)
    return ""


def render(messages, dialect="v41", thinking=False, effort=None, drop_thinking=True):
    """The prompt text of a conversation, beginning with BOS."""
    d = DIALECTS[dialect]
    _check(messages, d)
    messages = _sort_results(_merge(messages, d))
    drop = drop_thinking and not any(m.get("tools") for m in messages)
    if thinking and drop:
        messages = _drop_reasoning(messages, d)
    last_user = _last_user(messages, d)
    out = [BOS]
    for i, m in enumerate(messages):
        role = m["role"]
        head = d.effort_text(effort) if thinking and i == 0 else ""
        if d.system_token and (role == "system" or (i == 0 and head)):
            out.append(SYSTEM)
        out.append(head)
        before = messages[i - 1] if i else {}
        if role == "assistant" and thinking and not before.get("task") \
                and (not drop or i > last_user):
            out.append((m.get("reasoning_content") or "") + END_THINK)
        out.append(_body(m, dialect))
        following = messages[i + 1]["role"] if i + 1 < len(messages) else "assistant"
        if following in ("assistant", "latest_reminder"):
            opens = role in ("user", "developer") or (d.system_token and role == "system" and i)
            out.append(_transition(m, opens, thinking, thinking and (not drop or i >= last_user)))
    return "".join(out)


# ---- parsing ----------------------------------------------------------------------------------

class Malformed(ValueError):
    """A completion that breaks the strict grammar."""


def _expect(text, at, literal):
    if not text.startswith(literal, at):
        raise Malformed(f"expected {literal!r} at {at}, found {text[at:at + 20]!r}")
    return at + len(literal)


def _until(text, at, literal):
    end = text.find(literal, at)
    if end < 0:
        raise Malformed(f"missing {literal!r}")
    return text[at:end], end + len(literal)


def _parse_parameters(text, at, d):
    arguments = {}
    close = f"</{DSML}{d.invoke}>\n"
    if text.startswith("\n" + close, at):
        return arguments, at + 1 + len(close)
    while not text.startswith(close, at):
        at = _expect(text, at, f'<{DSML}{d.parameter} name="')
        key, at = _until(text, at, '" string="')
        kind, at = _until(text, at, '">')
        raw, at = _until(text, at, f"</{DSML}{d.parameter}>")
        at = _expect(text, at, "\n")
        if key in arguments or kind not in ("true", "false"):
            raise Malformed(f"bad parameter {key!r} string={kind!r}")
        try:
            arguments[key] = raw if kind == "true" else json.loads(raw)
        except ValueError as e:
            raise Malformed(f"parameter {key!r} is not JSON: {raw!r}") from e
    return arguments, at + len(close)


def parse_calls(text, dialect="v41"):
    """Calls of a DSML block that starts with its opening tag and fills the whole text."""
    d = DIALECTS[dialect]
    at = _expect(text, 0, f"<{DSML}{d.calls}>\n")
    calls = []
    while not text.startswith(f"</{DSML}{d.calls}>", at):
        at = _expect(text, at, f'<{DSML}{d.invoke} name="')
        name, at = _until(text, at, '">\n')
        arguments, at = _parse_parameters(text, at, d)
        calls.append({"name": name, "arguments": arguments})
    at = _expect(text, at, f"</{DSML}{d.calls}>")
    if text[at:]:
        raise Malformed(f"text after the calls: {text[at:at + 20]!r}")
    return calls


def parse_completion(text, dialect="v41", thinking=False):
    """Split a completion into reasoning, content and calls. Raises Malformed."""
    text = text.removesuffix(EOS)
    reasoning = ""
    if thinking:
        reasoning, at = _until(text, 0, END_THINK)
        text = text[at:]
    start = f"\n\n<{DSML}{DIALECTS[dialect].calls}"
    if start in reasoning:
        raise Malformed("tool calls inside the reasoning")
    at = text.find(start)
    if at < 0:
        if DSML in text:
            raise Malformed("DSML token outside a calls block")
        return {"reasoning": reasoning, "content": text, "calls": []}
    return {"reasoning": reasoning, "content": text[:at],
            "calls": parse_calls(text[at + 2:], dialect)}
