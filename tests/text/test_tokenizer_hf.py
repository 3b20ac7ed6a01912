"""Ids of src/text/tokenizer.c against the Hugging Face `tokenizers` library, and the time that hard texts take."""

import json
import subprocess

import pytest

import corpus
from conftest import SPECIALS, USER_DEFINED, train_small_tokenizer

tokenizers = pytest.importorskip("tokenizers")


def encode(program, tokenizer_json, texts, tmp_path, mode="specials"):
    path = tmp_path / "texts"
    path.write_bytes(b"\0".join(t.encode() for t in texts) + b"\0")
    run = subprocess.run([program("encode_file"), tokenizer_json, path, mode],
                         capture_output=True, text=True, check=True)
    return [[int(i) for i in line.split()] for line in run.stdout.splitlines()]


def compare(hf, texts, got):
    assert len(got) == len(texts)
    for text, ids, expected in zip(texts, got, hf.encode_batch(texts, add_special_tokens=False)):
        if ids == expected.ids:
            continue
        at = next((i for i, (a, b) in enumerate(zip(ids, expected.ids)) if a != b),
                  min(len(ids), len(expected.ids)))
        begin = expected.offsets[max(0, at - 3)][0]
        pytest.fail(f"ids differ from token {at}: {ids[at:at + 8]} expected "
                    f"{expected.ids[at:at + 8]} near {ascii(text[begin:begin + 20])}")


def test_corpus(program, tokenizer_json, tmp_path):
    hf = tokenizers.Tokenizer.from_file(str(tokenizer_json))
    texts = [t for t in corpus.all_texts() if t and "\0" not in t]
    assert sum(len(t.encode()) for t in texts) > 2_000_000
    compare(hf, texts, encode(program, tokenizer_json, texts, tmp_path))


def test_special_tokens(program, tokenizer_json, tmp_path):
    hf = tokenizers.Tokenizer.from_file(str(tokenizer_json))
    specials = [t.content for t in hf.get_added_tokens_decoder().values()]
    texts = [t for t in corpus.special_texts(specials) if t]
    compare(hf, texts, encode(program, tokenizer_json, texts, tmp_path))


def test_plain_text_has_no_special_ids(program, tokenizer_json, tmp_path):
    hf = tokenizers.Tokenizer.from_file(str(tokenizer_json))
    special_ids = set(hf.get_added_tokens_decoder())
    texts = [t for t in corpus.special_texts(SPECIALS + USER_DEFINED) if t]
    for text, ids in zip(texts, encode(program, tokenizer_json, texts, tmp_path, "plain")):
        assert not special_ids.intersection(ids)
        assert hf.decode(ids, skip_special_tokens=False) == text


@pytest.mark.parametrize("pairs", [False, True])
def test_both_spellings_of_merges(program, tmp_path, pairs):
    hf = train_small_tokenizer(["low lower lowest new newer newest wide wider widest " * 50])
    data = json.loads(hf.to_str())
    merges = [m.split(" ") if isinstance(m, str) else m for m in data["model"]["merges"]]
    data["model"]["merges"] = merges if pairs else [" ".join(m) for m in merges]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(data))
    texts = ["lowest newest widest\n", "slower", "<｜User｜>wide"]
    compare(hf, texts, encode(program, path, texts, tmp_path))


HARD = {"letter": "a", "letters": "ab", "space": " ", "line feed": "\n", "space and line feed": " \n", "tab": "\t",
        "digit": "7", "punctuation": "!", "less": "<", "special beginning": "<｜", "mark": "\u0301", "han": "中",
        "kana": "ア", "middle dot": "・", "joiner": "\u200d", "emoji": "👍", "control": "\x01", "bar": "｜",
        "hangul": "한", "word and space": "word ", "unassigned": "\U000E0FFF", "carriage return": "\r"}


@pytest.mark.parametrize("name", HARD)
def test_one_megabyte_of_one_kind_takes_less_than_a_second(program, tokenizer_json, tmp_path, name):
    unit = HARD[name].encode()
    path = tmp_path / "text"
    for tail in (b"", b"x", b"\n"):
        path.write_bytes(unit * (1_000_000 // len(unit)) + tail)
        run = subprocess.run([program("encode_file"), "--time", tokenizer_json, path],
                             capture_output=True, text=True, check=True)
        assert float(run.stdout.split()[0]) < 1.0
