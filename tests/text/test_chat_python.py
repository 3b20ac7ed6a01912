"""src/text/chat.c and dsml.c against train/chat.py: the same bytes, the same meaning."""

import json
import pathlib
import random
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from train import chat  # noqa: E402

TOOLS = [
    {"type": "function", "function": {"name": "f"}},
    {"type": "function", "function": {
        "name": "wetter", "description": "Wetter für \"Köln\"\n\ttab \\ \u0001 \u007f 中文", "strict": True,
        "parameters": {"type": "object", "required": ["ort"], "properties": {
            "ort": {"type": "string"}, "n": {"type": "integer", "maximum": 18446744073709551615},
            "x": {"type": "number", "default": 1e-7, "minimum": -1.5, "maximum": 1e22,
                  "examples": [0.1, 1e16, 123456789012345.0, 1.0, 5e-324, -0.0, 100000.0, 1e15]}}}}},
]
WORDS = ["a", "Hello", "你好", "", "line\nline", "1 < 2", "<tool_result>", "é\u0301", "{\"k\": 1}", "…", " x "]
ARGUMENTS = ["{}", '{"x": 3, "s": "hé\\nz"}', '{"x":[1,2.50,{"y":null}],"s":null,"b":true}', "not json", "[1]",
             '{"a": "<tag> & \\"quotes\\""}', '{"k": "\\ud83d\\ude00", "n": -12, "f": 1E3, "l": []}', "7",
             '"{\\"x\\": [3]}"', '"[1]"', '"not json"']


def conversation(rng, dialect):
    messages, ids = [], []
    if rng.random() < 0.6:
        messages.append({"role": "system", "content": rng.choice(WORDS)})
        if rng.random() < 0.5:
            messages[0]["tools"] = rng.sample(TOOLS, rng.randrange(1, 3))
        if rng.random() < 0.3:
            messages[0]["response_format"] = {"type": "json_schema", "json_schema": {"é": [1, 2.0]}}
    for _ in range(rng.randrange(1, 9)):
        roles = ["user"] * 4 + ["assistant"] * 3 + ["system", "latest_reminder"]
        roles += ["tool"] * 4 if ids else []
        roles += ["developer"] if dialect != "v41" else []
        role = rng.choice(roles)
        m = {"role": role, "content": rng.choice(WORDS)}
        if role == "developer":
            m["content"] = "D"
        if role == "tool":
            m["tool_call_id"] = rng.choice(ids + ["unknown"])
            if rng.random() < 0.3:
                m["content"] = [{"type": "text", "text": rng.choice(WORDS)}, {"type": "image_url"}]
        if role == "assistant":
            if rng.random() < 0.6:
                m["reasoning_content"] = "R" + rng.choice(WORDS)
            if rng.random() < 0.5:
                ids = [f"c{i}" for i in range(rng.randrange(1, 4))]
                m["tool_calls"] = [{"id": i, "type": "function", "function": {
                    "name": rng.choice(["f", "wetter"]), "arguments": rng.choice(ARGUMENTS)}} for i in ids]
        if role in ("user", "assistant") and rng.random() < 0.15:
            m["task"] = rng.choice(chat.TASKS)
        if role == "user" and rng.random() < 0.1:
            m["tools"] = TOOLS[:1]
        messages.append(m)
    if messages[-1]["role"] == "assistant" and rng.random() < 0.3:
        messages[-1]["wo_eos"] = True
    return messages


def requests(dialect, n=2000):
    rng = random.Random(dialect)
    efforts = [None, *chat.DIALECTS[dialect].effort] + ([1, 42, 100] if dialect == "v41" else [])
    for _ in range(n):
        yield {"messages": conversation(rng, dialect), "thinking": rng.random() < 0.6,
               "reasoning_effort": rng.choice(efforts), "drop_thinking": rng.random() < 0.7}


def run_render(program, dialect, items, tmp_path, *tokenizer):
    path = tmp_path / "requests"
    path.write_bytes(b"\0".join(json.dumps(i, ensure_ascii=bool(n % 2)).encode()
                                for n, i in enumerate(items)) + b"\0")
    return subprocess.run([program("render_chat"), dialect, path, *tokenizer],
                          capture_output=True, check=True).stdout.decode()


def expected_prompt(dialect, r):
    return chat.render(r["messages"], dialect, thinking=r["thinking"], effort=r["reasoning_effort"],
                       drop_thinking=r["drop_thinking"])


@pytest.mark.parametrize("dialect", list(chat.DIALECTS))
def test_prompts(program, tmp_path, dialect):
    items = list(requests(dialect))
    prompts = run_render(program, dialect, items, tmp_path).split("\0")
    for item, prompt in zip(items, prompts):
        assert prompt == expected_prompt(dialect, item), json.dumps(item)


@pytest.mark.parametrize("dialect", list(chat.DIALECTS))
def test_ids_are_those_of_the_whole_prompt(program, tokenizer_json, tmp_path, dialect):
    """Trusted spans change nothing where nobody else wrote a special token."""
    tokenizers = pytest.importorskip("tokenizers")
    hf = tokenizers.Tokenizer.from_file(str(tokenizer_json))
    items = list(requests(dialect, 500))
    lines = run_render(program, dialect, items, tmp_path, tokenizer_json).splitlines()
    for item, line in zip(items, lines):
        ids = hf.encode(expected_prompt(dialect, item), add_special_tokens=False).ids
        assert [int(i) for i in line.split()] == ids, json.dumps(item)


def completions(dialect, rng, n=3000):
    d = chat.DIALECTS[dialect]
    for _ in range(n):
        calls = [{"function": {"name": rng.choice(["f", "g h"]), "arguments": rng.choice(ARGUMENTS)}}
                 for _ in range(rng.randrange(4))]
        text = rng.choice(WORDS) + (chat.render_calls(calls, dialect) if calls else "")
        text = rng.choice(["", "R</think>", "thoughts\n\n</think>"]) + text
        for _ in range(rng.choice([0, 0, 0, 1, 2])):  # damage
            at = rng.randrange(len(text) + 1)
            text = rng.choice([
                text[:at], text[:at] + text[at + 1:], text[:at] + "\n" + text[at:], text + " tail",
                text[:at] + f"<{chat.DSML}{d.invoke}" + text[at:], text.replace("</think>", ""),
                text.replace("true", "false"), text.replace('name="s"', 'name="x"')])
        yield text + rng.choice(["", chat.EOS])


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("dialect", list(chat.DIALECTS))
def test_completions(program, tmp_path, dialect, thinking):
    texts = list(completions(dialect, random.Random(dialect)))
    path = tmp_path / "completions"
    path.write_bytes(b"\0".join(t.encode() for t in texts) + b"\0")
    out = subprocess.run([program("parse_completion"), dialect, "thinking" if thinking else "chat", path],
                         capture_output=True, check=True).stdout.decode()
    n_good = 0
    for text, line in zip(texts, out.split("\0")):
        got = json.loads(line)
        try:
            expected = chat.parse_completion(text, dialect, thinking)
        except chat.Malformed as cause:
            assert got["malformed"], (text, str(cause))
            continue
        # Python lets a DSML token pass in content before a block; the vendor's parser does not.
        assert got.pop("malformed") == "" or chat.DSML in expected["content"], text
        assert got == expected, text
        n_good += 1
    assert n_good > 300
