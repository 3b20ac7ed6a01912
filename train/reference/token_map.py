"""Engram's token map: ids whose texts normalise alike share a compressed id. V4.1 section 9.1."""
import json
import os
import re
import unicodedata
import torch


def normal_form(text):
    n = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    n = "".join(c for c in n if not unicodedata.combining(c)).lower()
    n = re.sub(r"[ \t\r\n]+", " ", n)
    return " " if n == " " else n.strip()


def build(tokenizer, vocab_size):
    """tokenizer: tokenizers.Tokenizer -> LongTensor [vocab_size]; the number of classes is max + 1."""
    seen, out = {}, []
    for i in range(vocab_size):
        text = tokenizer.decode([i], skip_special_tokens=False)
        if "\ufffd" in text:
            key = tokenizer.id_to_token(i)
        else:
            key = normal_form(text) or text
        out.append(seen.setdefault(key, len(seen)))
    return torch.tensor(out)


def for_folder(folder, vocab_size):
    """Map of a model folder: an explicit list (toy) or built from tokenizer.json."""
    explicit = os.path.join(folder, "engram_token_map.json")
    if os.path.exists(explicit):
        with open(explicit) as f:
            return torch.tensor(json.load(f))
    from tokenizers import Tokenizer
    return build(Tokenizer.from_file(os.path.join(folder, "tokenizer.json")), vocab_size)
