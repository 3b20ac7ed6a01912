"""The worked examples of the V4 chat encoding, byte sums of the fixed texts, V4.1 differences."""

import hashlib

import pytest

from train import chat
from train.chat import ASSISTANT as A, BOS as B, EOS as E, USER as U, SYSTEM as S, render

END, THINK = "</think>", "<think>"
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def user(text, **kw):
    return {"role": "user", "content": text, **kw}


def assistant(text, **kw):
    return {"role": "assistant", "content": text, **kw}


def call(id, arguments):
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def v4(messages, **kw):
    return render(messages, "v4", **kw)


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_fixed_texts():
    block = chat.tools_block(TOOLS, "v4")
    assert len(block.encode()) == 1002
    assert sha(block) == "ea63e9b9ea75623dcd446ad48a5264e07d353d7d6ab2ceaa2b6613173235a12f"
    assert len(chat.EFFORT_HIGH.encode()) == 476
    assert sha(chat.EFFORT_HIGH) == \
        "f7a24f3b3050d4a83781e9b755b316aae2ec1d9dc87562541d90bcb04d7350f7"
    assert len(chat.EFFORT_MAX_0731.encode()) == 528
    assert sha(chat.EFFORT_MAX_0731) == \
        "53fb31b8392ec5b4a926481943efc67636748f137c1a49d493a7af4d4fa55d2c"


DIALOG = [user("a"), assistant("b", reasoning_content="r1"), user("c")]
CALLS = ('\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n'
         '<｜DSML｜parameter name="x" string="false">3</｜DSML｜parameter>\n'
         '<｜DSML｜parameter name="s" string="true">hé\nz</｜DSML｜parameter>\n'
         '</｜DSML｜invoke>\n<｜DSML｜invoke name="f">\n'
         '<｜DSML｜parameter name="x" string="false">[1, 2]</｜DSML｜parameter>\n'
         '<｜DSML｜parameter name="s" string="false">null</｜DSML｜parameter>\n'
         '</｜DSML｜invoke>\n</｜DSML｜tool_calls>')
TOOL_DIALOG = [
    {"role": "system", "content": "s", "tools": TOOLS}, user("q"),
    assistant("ok", reasoning_content="R", tool_calls=[
        call("c1", '{"x": 3, "s": "hé\\nz"}'), call("c2", '{"x": [1, 2], "s": null}')]),
    {"role": "tool", "tool_call_id": "c2", "content": "two"},
    {"role": "tool", "tool_call_id": "c1", "content": "one"}]


def tool_text():
    return (f"{B}s\n\n{chat.tools_block(TOOLS, 'v4')}{U}q{A}{THINK}R{END}ok{CALLS}{E}"
            f"{U}<tool_result>one</tool_result>\n\n<tool_result>two</tool_result>")


def test_examples_without_tools():
    assert v4([user("Hi")]) == f"{B}{U}Hi{A}{END}"
    assert v4([user("Hi")], thinking=True) == f"{B}{U}Hi{A}{THINK}"
    assert v4([{"role": "system", "content": "Be brief."}, user("Hi")], thinking=True,
              effort="max") == f"{B}{chat.EFFORT_HIGH}Be brief.{U}Hi{A}{THINK}"
    assert v4(DIALOG, thinking=True) == f"{B}{U}a{A}{END}b{E}{U}c{A}{THINK}"
    assert v4(DIALOG, thinking=True, drop_thinking=False) == \
        f"{B}{U}a{A}{THINK}r1{END}b{E}{U}c{A}{THINK}"
    assert v4([user("a"), user("b")]) == f"{B}{U}a\n\nb{A}{END}"
    rf = {"role": "system", "content": "s", "response_format": {"type": "json_object"}}
    assert v4([rf, user("q")]) == (
        f"{B}s\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to "
        f'reply:\n{{"type": "json_object"}}{U}q{A}{END}')
    assert v4([user("a"), assistant("part", wo_eos=True)]) == f"{B}{U}a{A}{END}part"
    assert v4([user("a"), {"role": "latest_reminder", "content": "2026-01-01"}]) == \
        f"{B}{U}a{A}{END}<｜latest_reminder｜>2026-01-01"
    assert v4([user("a"), {"role": "system", "content": "b"}, user("c")]) == \
        f"{B}{U}ab{U}c{A}{END}"


def test_examples_with_tasks():
    assert v4([user("a", task="query")]) == f"{B}{U}a<｜query｜>"
    assert v4([user("a", task="action")], thinking=True) == f"{B}{U}a{A}{THINK}<｜action｜>"
    assert v4([user("a"), assistant("b", task="title")]) == f"{B}{U}a{A}{END}b{E}<｜title｜>"


def test_examples_with_tools():
    assert v4(TOOL_DIALOG, thinking=True) == tool_text() + A + THINK
    assert v4(TOOL_DIALOG + [user("next")], thinking=True) == \
        tool_text() + "\n\nnext" + A + THINK
    empty = [{"role": "system", "content": "", "tools": TOOLS}, user("q"),
             assistant("", tool_calls=[call("c", "{}")])]
    assert v4(empty) == (
        f"{B}\n\n{chat.tools_block(TOOLS, 'v4')}{U}q{A}{END}\n\n<｜DSML｜tool_calls>\n"
        f'<｜DSML｜invoke name="f">\n\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>{E}')


def test_v41_differences():
    line = ("Reasoning Effort: 75 (range 1-100, the higher the value, the more thorough the "
            "reasoning)\n\n")
    assert render([user("Hi")]) == f"{B}{U}Hi{A}{END}"
    assert render([user("Hi")], thinking=True) == f"{B}{S}{line}{U}Hi{A}{THINK}"
    assert render([{"role": "system", "content": "s"}, user("Hi")], thinking=True) == \
        f"{B}{S}{line}s{U}Hi{A}{THINK}"
    assert render([{"role": "system", "content": "s"}, user("Hi")]) == f"{B}{S}s{U}Hi{A}{END}"
    assert render([user("a"), assistant("b"), {"role": "system", "content": "c"}]) == \
        f"{B}{U}a{A}{END}b{E}{S}c{A}{END}"
    assert render(TOOL_DIALOG, thinking=True) == (
        f"{B}{S}{line}" + tool_text().removeprefix(B) + A + THINK).replace(
            "｜DSML｜tool_calls", "｜DSML｜ calls").replace("｜DSML｜invoke", "｜DSML｜ invoke").replace(
            "｜DSML｜parameter", "｜DSML｜ parameter")


def test_arguments_encoded_twice():
    """V4.1 reads them once more; V4 has a parameter of that name."""
    twice = [user("q"), assistant("", tool_calls=[call("c", '"{\\"x\\": 3}"')])]
    assert 'parameter name="x" string="false">3<' in render(twice)
    assert 'parameter name="arguments" string="true">"{\\"x\\": 3}"<' in v4(twice)


def test_tools_of_a_user_message():
    """They are never shown. In V4.1 they keep the reasoning, as a system message's do; in V4 they are lost."""
    messages = [user("a", tools=TOOLS), *DIALOG[1:]]
    assert v4(messages, thinking=True) == v4(DIALOG, thinking=True)
    assert render(messages, thinking=True) == render(DIALOG, thinking=True, drop_thinking=False)


def test_developer():
    messages = [{"role": "developer", "content": "d"}, *DIALOG]
    assert v4(messages) == f"{B}{U}d{U}a{A}{END}b{E}{U}c{A}{END}"
    assert v4(messages, thinking=True) == v4(DIALOG, thinking=True)
    for dialect, content in (("v41", "d"), ("v4", "")):
        with pytest.raises(ValueError):
            render([{"role": "developer", "content": content}, *DIALOG], dialect, thinking=True)


@pytest.mark.parametrize("dialect", ["v4", "v41"])
def test_parse_round_trip(dialect):
    text = "R</think>ok" + chat.render_calls(TOOL_DIALOG[2]["tool_calls"], dialect) + E
    got = chat.parse_completion(text, dialect, thinking=True)
    assert (got["reasoning"], got["content"]) == ("R", "ok")
    assert got["calls"] == [{"name": "f", "arguments": {"x": 3, "s": "hé\nz"}},
                            {"name": "f", "arguments": {"x": [1, 2], "s": None}}]
    for broken in (text.replace("</think>", ""), text.replace(E, "") + " more",
                   text.replace('string="true"', 'string="yes"'), text[:-60]):
        with pytest.raises(chat.Malformed):
            chat.parse_completion(broken, dialect, thinking=True)
