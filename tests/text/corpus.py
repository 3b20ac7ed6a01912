"""A multilingual corpus of more than 2 MB, the same on every run, made of what Python itself brings along."""

import pathlib
import random
import sysconfig
import unicodedata

NAMED_BLOCKS = [  # first and last code point of scripts with their own word shapes
    (0x20, 0x7E), (0xA0, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF), (0x530, 0x58F), (0x590, 0x5FF),
    (0x600, 0x6FF), (0x700, 0x74F), (0x900, 0x97F), (0x980, 0x9FF), (0xB80, 0xBFF), (0xE00, 0xE7F),
    (0xE80, 0xEFF), (0xF00, 0xFFF), (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF),
    (0x1780, 0x17FF), (0x1E00, 0x1EFF), (0x1F00, 0x1FFF), (0x2000, 0x206F), (0x20A0, 0x20CF),
    (0x2100, 0x218F), (0x2190, 0x23FF), (0x2460, 0x24FF), (0x3000, 0x303F), (0x3040, 0x30FF),
    (0x3100, 0x31FF), (0x3400, 0x3500), (0x4E00, 0x4FFF), (0x9F00, 0x9FFF), (0xAC00, 0xADFF),
    (0xFB00, 0xFDFF), (0xFE00, 0xFEFF), (0xFF00, 0xFFEF), (0x10400, 0x1044F), (0x1D400, 0x1D7FF),
    (0x1F300, 0x1F6FF), (0x1F900, 0x1F9FF), (0x20000, 0x20100), (0x2EBF0, 0x2EC00), (0x31350, 0x31360)]
SPACES = [" ", "  ", "    ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\u00a0", "\u2003", "\u3000", "\u180e",
          "\u200d", "\u200b", "\ufeff", "\x0b", "\x0c", "\x85", "\u2028", ""]
PHRASES = ["Hello! 毕老师！1 + 1 = 2 ĠÑĤÐ²ÑĬÑĢ", "你好，世界。\n", "12345 67,890.123", "    int main(void);\n\n}",
           "カタカナ・ひらがな漢字ー々", "don't can't I'll", "é́́ ñ क्षि", "👩‍👩‍👧‍👦🏳️‍🌈 ok", "ⅣⅫ½¾²³①", "…—–·«»",
           "foo_bar-baz/qux.c:12", "a\u0300\u0301b", "\ud7a3\uac00 한국어", "ไทยคำ", "العربية ١٢٣", "İstanbul ß ſ ǅ"]


def stdlib_texts(limit=1_200_000):
    out, size = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="ignore")
        out.append(text)
        size += len(text)
        if size > limit:
            break
    return out


def all_code_points():
    """Every code point, in order and alternating with letters, digits and spaces."""
    chars = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]
    out = ["".join(chars[i:i + 5000]) for i in range(0, len(chars), 5000)]
    assigned = [c for c in chars if unicodedata.category(c) != "Cn" and ord(c) < 0xF0000
                or 0x2EBF0 <= ord(c) <= 0x323AF]
    for around in ("a{}b", " {} ", "1{}\n", "。{}", "{}{}"):
        out += ["".join(around.replace("{}", c) for c in assigned[i:i + 4000])
                for i in range(0, len(assigned), 4000)]
    return out


def random_texts(seed=1, n=3000):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        parts = []
        for _ in range(rng.randrange(1, 40)):
            kind = rng.randrange(6)
            if kind == 0:
                parts.append(rng.choice(SPACES) * rng.randrange(1, 4))
            elif kind == 1:
                parts.append(rng.choice(PHRASES))
            elif kind == 2:
                parts.append(str(rng.randrange(10 ** rng.randrange(1, 12))))
            else:
                low, high = rng.choice(NAMED_BLOCKS)
                parts += [chr(rng.randint(low, high)) for _ in range(rng.randrange(1, 8))]
        out.append("".join(parts))
    return out


def special_texts(specials, seed=2, n=500):
    """Texts in which special tokens, whole and damaged, stand everywhere."""
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        parts = []
        for _ in range(rng.randrange(1, 12)):
            token = rng.choice(specials)
            cut = rng.randrange(len(token) + 1)
            parts += [rng.choice([token, token, token[:cut], token[cut:]]),
                      rng.choice(PHRASES + SPACES)]
        out.append("".join(parts))
    return out


def all_texts():
    return stdlib_texts() + all_code_points() + random_texts() + PHRASES


def training_texts():
    return stdlib_texts(600_000) + random_texts(seed=7, n=1500) + PHRASES * 20
