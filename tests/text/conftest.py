"""Fixtures of the text tests that compare the C code with Python libraries.

`program` compiles a small program of tests/text/programs with the text layer; it needs no other build.
`tokenizer_json` is the project's tokenizer where it exists, else a small one trained here.
"""

import pathlib
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = "-std=c11 -D_GNU_SOURCE -O2"
LIBRARIES = "-lpcre2-8 -lutf8proc -ljson-c -lm"
SPECIALS = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"]
USER_DEFINED = ["<｜System｜>", "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", "｜DSML｜",
                "<｜latest_reminder｜>", "<|EOT|>", "<dsml:", "</dsml:"]


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """program(name) -> path of the executable."""
    folder = tmp_path_factory.mktemp("programs")
    sources = sorted((ROOT / "src/text").glob("*.c")) + [
        ROOT / "src/base" / name for name in ("arena.c", "buf.c", "err.c", "file.c")]

    def build(name):
        out = folder / name
        if not out.exists():
            source = ROOT / "tests/text/programs" / (name + ".c")
            subprocess.run(["cc", *FLAGS.split(), f"-I{ROOT}/src", *map(str, sources), str(source),
                            "-o", str(out), *shlex.split(LIBRARIES)], check=True)
        return out
    return build


def train_small_tokenizer(corpus):
    """A DeepSeek-style tokenizer with 4,000 entries, trained on `corpus` (a list of texts)."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    patterns = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^" + "\r\n" + r"\p{L}\p{P}\p{S}]?"
                r"[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[" + "\r\n" + r"]*|\s*[" + "\r\n" + r"]+|\s+(?!\S)|\s+"]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
        + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=[AddedToken(s, normalized=False, special=True) for s in SPECIALS])
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_tokens([AddedToken(s, normalized=True, special=False) for s in USER_DEFINED])
    return tokenizer


@pytest.fixture(scope="session")
def tokenizer_json(tmp_path_factory):
    project = ROOT / "train/tokenizer/tokenizer.json"
    if project.exists():
        return project
    import corpus
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    train_small_tokenizer(corpus.training_texts()).save(str(path))
    return path
