"""The evaluations give a perfect model full marks and a broken one none."""

import pytest

from train import chat
from train.evaluate import agent, encode, retrieval, talk, tokenizer


def answering(says):
    """A generate() that looks its completions up, with EOS as a model would emit it."""
    table = {tuple(encode(prompt)): encode(text.removesuffix(chat.EOS)) + encode(chat.EOS)
             for prompt, text in says.items()}

    def generate(prompts, max_new, stop_ids, temperature=0):
        out = [table[tuple(p)] for p in prompts]
        assert all(len(ids) <= max_new for ids in out)
        return out
    return generate


def saying(text):
    def generate(prompts, max_new, stop_ids, temperature=0):
        return [encode(text) for _ in prompts]
    return generate


@pytest.mark.parametrize("dialect", ["v4", "v41"])
@pytest.mark.parametrize("thinking", [False, True])
def test_agent_expert(dialect, thinking):
    got = agent.run(answering(agent.oracle(dialect, 200, thinking)), dialect, 200, thinking)
    assert got["success"] == 100, got["failures"]
    assert got["malformed_calls"] == 0


def test_agent_broken():
    assert agent.run(saying("I am done."), "v41", 40)["success"] == 0
    broken = agent.run(saying("\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"read\">"), "v41", 40)
    assert broken["success"] == 0 and broken["malformed_calls"] == 100
    loop = agent.run(saying(chat.render_calls(
        [{"function": {"name": "bash", "arguments": {"command": "ls"}}}], "v41")), "v41", 20)
    assert loop["outcomes"] == {"too long": 20}


def test_retrieval():
    lengths = (512, 2048)
    got = retrieval.run(answering(retrieval.oracle("v4", 30, lengths)), "v4", 30, lengths)
    assert got["exact"] == {512: 100, 2048: 100}
    got = retrieval.run(saying("The code of the box is 17."), "v4", 30, lengths)
    assert got["exact"] == {512: 0, 2048: 0}


def test_retrieval_lengths():
    for n_token in retrieval.LENGTHS:
        for prompt, _, _ in retrieval.cases("v41", n_token, 6):
            assert 0.95 * n_token <= len(encode(prompt)) <= n_token


def test_talk():
    got = talk.run(answering(talk.Oracle("v41", 40).says), "v41", 40)
    assert got["right"] == 100, got["failures"]
    got = talk.run(saying("I do not know."), "v41", 10)
    assert got["right"] < 25


def test_tokenizer_size():
    assert tokenizer().get_vocab_size() == 4096
