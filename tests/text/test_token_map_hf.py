"""Keys and numbers of src/text/token_map.c against Hugging Face normalizers."""

import subprocess
import unicodedata

import pytest

import corpus

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import Regex, normalizers  # noqa: E402

REFERENCE = normalizers.Sequence([
    normalizers.NFKC(), normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(),
    normalizers.Replace(Regex(r"[ \t\r\n]+"), " "), normalizers.Replace(Regex("^ $"), "\uE000"),
    normalizers.Strip(), normalizers.Replace("\uE000", " ")])


def normalize(program, texts, tmp_path):
    path = tmp_path / "texts"
    path.write_bytes(b"\0".join(t.encode() for t in texts) + b"\0")
    out = subprocess.run([program("normalize"), path], capture_output=True, check=True).stdout
    return out.decode().split("\0")[:-1]


def test_texts(program, tmp_path):
    texts = [t[i:i + 40] for t in corpus.random_texts(n=2000) for i in range(0, len(t), 40)]
    texts += [" ", "  ", " \n\t", "\u3000", " a", "a ", "\u00a0", "", "\u0301", "İ", "ΑΣ", "ﷺ", "①"]
    for text, got in zip(texts, normalize(program, texts, tmp_path)):
        assert got == REFERENCE.normalize_str(text), ascii(text)


def test_all_code_points(program, tmp_path):
    texts = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]
    expected = [REFERENCE.normalize_str(t) for t in texts]
    differ = [(t, g, e) for t, g, e in zip(texts, normalize(program, texts, tmp_path), expected)
              if g != e]
    assert all(len(e) == 1 and normalizers.Lowercase().normalize_str(t) == e != t
               and unicodedata.category(t) in ("Cn", "Lu") for t, g, e in differ), differ
    assert len(differ) < 80  # capitals of Unicode 14 and later, which utf8proc does not know


def test_map(program, tokenizer_json):
    hf = tokenizers.Tokenizer.from_file(str(tokenizer_json))
    numbers, expected = {}, []
    for id in range(hf.get_vocab_size()):
        text = hf.decode([id], skip_special_tokens=False)
        key = hf.id_to_token(id) if "\ufffd" in text else REFERENCE.normalize_str(text) or text
        expected.append(numbers.setdefault(key, len(numbers)))
    run = subprocess.run([program("normalize"), "--map", tokenizer_json],
                         capture_output=True, text=True, check=True)
    assert [int(line) for line in run.stdout.split()] == expected
