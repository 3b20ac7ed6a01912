"""The training stream: layout, determinism, masks, and the wall to the held-out pools."""

import itertools
import random
from pathlib import Path

import numpy as np
import pytest

from train import chat
from train.data import KINDS, load_tokenizer, story, stream, talk, world
from train.data.minipy import run_script
from train.data.names import Names, is_held_out
from train.data.phrasings import MORE
from train.data.tasks import FAMILIES, Maker, make_task
from train.data.workspace import Workspace
from train.data.world import GENERAL, SELF

TOKENIZER = load_tokenizer()


def take(n, **options):
    return list(itertools.islice(stream(**options), n))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("dialect", ["v4", "v41"])
def test_documents(kind, dialect):
    for ids, mask in take(4, kind_weights={kind: 1}, dialect=dialect, max_len=1500):
        assert ids.dtype == np.uint16 and mask.dtype == np.uint8 and len(ids) == len(mask) <= 1500
        assert ids[0] == 0 and mask[0] == 0 and set(mask) <= {0, 1}
        text = TOKENIZER.decode(ids.tolist(), skip_special_tokens=False)
        assert np.array_equal(TOKENIZER.encode(text, add_special_tokens=False).ids, ids)


def test_same_arguments_same_documents():
    a, b = (take(12, seed=7, dialect="v4") for _ in range(2))
    assert all(np.array_equal(x[0], y[0]) and np.array_equal(x[1], y[1]) for x, y in zip(a, b))
    assert not np.array_equal(a[0][0], take(1, seed=8, dialect="v4")[0][0])


def test_mask_covers_exactly_the_assistant():
    for ids, mask in take(20, kind_weights={"agent": 1, "talk": 1}):
        text = "".join(TOKENIZER.decode([int(i)], skip_special_tokens=False)
                       for i, m in zip(ids, mask) if m)
        assert chat.USER not in text and chat.ASSISTANT not in text
        assert text.count(chat.EOS) == int((ids == 1).sum())


@pytest.mark.parametrize("max_len", [256, 2048, 16384])
def test_recall_lengths(max_len):
    lengths = [len(ids) for ids, _ in take(6, kind_weights={"recall": 1}, max_len=max_len)]
    assert max(lengths) <= max_len and np.mean(lengths) > 0.6 * max_len


def test_pools_are_disjoint():
    for held_out in (False, True):
        names = Names(random.Random(1), held_out)
        for draw in (names.word, names.identifier, names.title, names.value, names.amount):
            assert all(is_held_out(draw()) == held_out for _ in range(300))


def test_held_out_phrasings_are_not_trained():
    c = talk.Conversation(random.Random(2))
    asked = {c.ask(talk.PERSON["job"][0], n="Anna") for _ in range(600)}
    assert "Which job does Anna have?" not in asked and len(asked) == 12


def test_held_out_phrasings_stand_in_no_training_table():
    tables = [t[0] for t in (*talk.PERSON.values(), *talk.PLACE.values(), *talk.WHO.values(),
                             *talk.SEASON, *GENERAL, *SELF)]
    tables += [t[1] for t in (*talk.PERSON.values(), *talk.PLACE.values())]
    trained = {q for t in tables for q in (*t[:-1], *MORE.get(t[0], ()))}
    assert not trained & {t[-1] for t in tables}
    source = Path(talk.__file__).read_text() + Path(world.__file__).read_text() \
        + Path(story.__file__).read_text()
    assert [k for k in MORE if k not in source] == []


def test_vocabulary_layout():
    vocab = TOKENIZER.get_vocab()
    assert len(vocab) == 4096 and sorted(vocab.values()) == list(range(4096))
    assert [vocab[t] for t in (chat.BOS, chat.EOS, chat.PAD)] == [0, 1, 2]
    for token in (chat.SYSTEM, chat.USER, chat.ASSISTANT, chat.THINK, chat.DSML, "<｜title｜>"):
        assert vocab[token] >= 4096 - 29 and TOKENIZER.encode(token).ids == [vocab[token]]
    for text in ("12345", "é😀\n\t x", "".join(map(chr, range(256)))):
        assert TOKENIZER.decode(TOKENIZER.encode(text).ids) == text
    assert len(TOKENIZER.encode("12345").ids) == 5


def test_every_family_has_a_working_expert():
    for family in FAMILIES:
        for held_out in (False, True):
            task = make_task(Maker(random.Random(family), held_out), family)
            assert task.expected is not None and task.must


def test_shell_and_scripts():
    w = Workspace({"a.py": "import os\n", "b.py": "def f(x):\n    return x + y\n\nprint(f(1))\n",
                   "n.txt": "one\ntwo\n"})
    assert w.call("bash", {"command": "wc -l n.txt"}) == "2 n.txt"
    assert w.call("bash", {"command": "cat n.txt && ls"}) == "one\ntwo\na.py\nb.py\nn.txt"
    assert w.call("bash", {"command": "curl x"}) == "bash: curl: command not found\n[exit 127]"
    assert "SyntaxError" in w.call("bash", {"command": "python a.py"})
    assert "NameError: name 'y' is not defined" in w.call("bash", {"command": "python b.py"})
    assert w.call("edit", {"path": "n.txt", "old": "three", "new": ""}) == \
        "error: text not found in n.txt"
    assert w.call("read", {}) == "error: missing parameter: path"
    out, status = run_script({"x.py": "while True:\n    pass\n"}, "x.py")
    assert status == 1 and "TimeoutError" in out
    assert run_script({"x.py": "x = 2\nprint(f\"{x + 1} items\")\n"}, "x.py") == ("3 items\n", 0)
