"""Build the 4096-entry byte-level BPE tokenizer of the demonstration models.

    python -m train.tokenizer.build

The file layout, pre-tokenizer and special strings are DeepSeek's; the merges are ours. They are
learnt so that a made-up name has the same tokens wherever it stands, because a tiny model must
copy it from a sentence into a path or a call:

  * digits never merge: every digit is a token;
  * a leading space or punctuation mark never merges with letters while learning;
  * afterwards " word" is added, last in rank, for frequent whole words only.

The committed tokenizer.json is the one the shipped models use. Building again gives other merges
whenever the text generators have changed since: then every model has to be trained anew.

ids: 0..2 BOS EOS PAD, 3..258 the 256 bytes, then merges, then 29 other special tokens.
"""

import collections
import json
import os
import pathlib
import random
import re

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from train import chat
from train.data import agent, misc, recall, talk

HERE = pathlib.Path(__file__).parent
VOCAB_SIZE = 4096
N_SPACED = 900          # frequent words that get a token with their leading space

FIRST = [chat.BOS, chat.EOS, chat.PAD]
LAST = (["<｜place▁holder▁no▁%d｜>" % i for i in range(7)]
        + [chat.SYSTEM, "<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>", chat.USER, chat.ASSISTANT,
           "<|EOT|>", chat.THINK, chat.END_THINK, chat.DSML, chat.REMINDER]
        + ["<｜%s｜>" % t for t in chat.TASKS]
        + ["<｜task｜>", "<｜answer｜>", "<｜search｜>", "<｜image｜>", "<｜deepseek_image｜>"])

# the three DeepSeek splits (V4 specification 9.2)
PUNCTUATION = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"
SPLITS = (r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
          PUNCTUATION + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
          r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LEARN_SPLITS = (r"\p{N}", r"[\p{L}\p{M}]+")     # extra cuts while learning


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def corpus():
    """A fixed sample of every kind of training text."""
    rng = random.Random("tokenizer")
    sources = [(talk.conversation, 700, 30), (agent.session, 400, 8), (misc.exercises, 150, 12),
               (misc.api, 120, 8)]
    for make, n, n_unit in sources:
        for _ in range(n):
            units = [u for u, _ in zip(make(rng), range(n_unit))]
            yield chat.render([m for u in units for m in u], rng.choice(("v4", "v41")),
                              thinking=rng.random() < 0.3, drop_thinking=False)
    for _ in range(120):
        yield chat.render([m for u in recall.conversation(rng, 6000) for m in u], "v41")
    for kind in ("prose", "code", "json", "copy"):
        for _ in range(150 if kind in ("prose", "code") else 40):
            yield misc.raw_text(kind, rng, 4000)


def without_specials(texts):
    cut = re.compile("|".join(map(re.escape, FIRST + LAST)))
    return [piece for text in texts for piece in cut.split(text) if piece]


def learn(texts):
    """Merges as pairs of byte-alphabet strings, in rank order."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split(p) for p in SPLITS + LEARN_SPLITS] + [pre_tokenizers.ByteLevel(False, use_regex=False)])
    size = VOCAB_SIZE - len(FIRST) - len(LAST) - N_SPACED
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, special_tokens=[], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    model = json.loads(tokenizer.to_str())["model"]
    return [tuple(m) for m in model["merges"]], set(model["vocab"])


def spaced_words(texts, vocab):
    """The most frequent words that are one token and stand after a space."""
    counts = collections.Counter(w for t in texts for w in re.findall(r" ([A-Za-z]+)", t))
    ranked = sorted((w for w in counts if w in vocab), key=lambda w: (-counts[w], w))
    # a name may start with such a syllable; three letters and a vowel pattern do not tell, so
    # only words that the texts use often are taken
    return [w for w in ranked if counts[w] >= 3 and (len(w) > 1 or w in ("a", "I"))]


def assemble(merges):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = FIRST + alphabet + ["".join(m) for m in merges]
    tokens = list(dict.fromkeys(tokens))
    base = VOCAB_SIZE - len(LAST)
    if len(tokens) != base:
        raise ValueError(f"expected {base} base tokens, found {len(tokens)}")
    special = FIRST + LAST
    ids = {t: i for i, t in enumerate(tokens)}
    added = [{"id": ids[t] if t in ids else base + LAST.index(t), "content": t,
              "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": t in FIRST} for t in special]
    pre = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
           for p in SPLITS]
    pre.append({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                "use_regex": False})
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                  "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "Sequence", "normalizers": []},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre},
            "post_processor": {"type": "ByteLevel", "add_prefix_space": True,
                               "trim_offsets": False, "use_regex": True},
            "decoder": byte_level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": ids,
                      "merges": [" ".join(m) for m in merges]}}


CONFIG = {"add_bos_token": False, "add_eos_token": False, "bos_token": chat.BOS,
          "eos_token": chat.EOS, "pad_token": chat.PAD, "unk_token": None,
          "clean_up_tokenization_spaces": False, "legacy": True, "model_max_length": 1048576,
          "tokenizer_class": "PreTrainedTokenizerFast"}


def main():
    texts = list(corpus())
    merges, vocab = learn(without_specials(texts))
    room = VOCAB_SIZE - len(LAST) - len(FIRST) - 256 - len({"".join(m) for m in merges})
    spaced = [w for w in spaced_words(texts, vocab) if "Ġ" + w not in vocab]
    print(f"{len(merges)} merges learnt, room for {room} of {len(spaced)} spaced words")
    merges += [("Ġ", w) for w in spaced[:room]]
    text = json.dumps(assemble(merges), ensure_ascii=False, indent=1)
    (HERE / "tokenizer.json").write_text(text + "\n")
    (HERE / "tokenizer_config.json").write_text(
        json.dumps(CONFIG, ensure_ascii=False, indent=2) + "\n")
    tokenizer = Tokenizer.from_file(str(HERE / "tokenizer.json"))
    n_char, n_token = sum(map(len, texts)), sum(len(tokenizer.encode(t).ids) for t in texts)
    print(f"{tokenizer.get_vocab_size()} entries, {len(texts)} texts, {n_char} characters, "
          f"{n_char / n_token:.2f} characters per token")


if __name__ == "__main__":
    main()
