"""Draft stages from a file of their own: the model's stages, taken out and written in every layout, draft what they drafted within
the model; files that do not fit are refused by name and the answer is the same without drafts."""
import json
import pathlib
import re
import struct
import subprocess

import gguf
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODEL = ROOT / "models/hadal-tiny-v41.gguf"
DFLASH = {"main_proj.weight": "fc.weight", "main_norm.weight": "hidden_norm.weight", "norm.weight": "output_norm.weight",
          "markov_embed.weight": "markov_w1.weight", "markov_head.weight": "markov_w2.weight", "confidence.weight": "conf_proj.weight"}


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def key(name, value):
    """One GGUF key: text, a whole number or a list of them."""
    if isinstance(value, str):
        return text(name) + struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        kind, code = (6, "f") if isinstance(value[0], float) else (5, "i")
        return text(name) + struct.pack(f"<IIQ{len(value)}{code}", 9, kind, len(value), *value)
    return text(name) + struct.pack("<II", 4, value)


def write(path, keys, tensors, misplaced=0):
    """tensors: [(name, reader's tensor, bytes)]; misplaced: bytes by which the data begin too late."""
    head, data = b"", b""
    for name, t, raw in tensors:
        head += text(name) + struct.pack(f"<I{len(t.shape)}Q", len(t.shape), *map(int, t.shape))
        head += struct.pack("<IQ", int(t.tensor_type), len(data))
        data += raw + bytes(-len(raw) % 32)
    head = b"".join(key(k, v) for k, v in keys.items()) + head
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + head
    path.write_bytes(head + bytes(-len(head) % 32) + bytes(misplaced) + data)
    return path


@pytest.fixture(scope="module")
def parts():
    """(keys of the draft stages, their tensors) of the shipped model, in ds4's layout."""
    reader = gguf.GGUFReader(MODEL)
    value = lambda name: reader.fields["deepseek41." + name].contents()
    keys = {"general.architecture": "deepseek41-dspark", "deepseek4.dspark.block_size": value("dspark.block_size"),
            "deepseek4.dspark.noise_token_id": value("dspark.noise_token_id"),
            "deepseek4.dspark.markov_rank": value("dspark.markov_rank"),
            "deepseek4.dspark.target_layer_ids": list(value("dspark.target_layer_ids")),
            "dspark.expert_used_count": value("dspark.expert_used_count"),
            "dspark.confidence_temperatures": [float(x) for x in value("dspark.confidence_temperatures")]}
    return keys, [(t.name, t, t.data.tobytes()) for t in reader.tensors if t.name.startswith("mtp.")]


def answer(hadal, *arguments):
    """(answer, the statistics about drafts, all notes)"""
    command = [hadal, "run", "-m", MODEL, "-p", "Tell me a story.", "--draft", "5", "--temperature", "0", "--threads", "1", *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, re.findall(r"kept, by place: .*", done.stderr), done.stderr


@pytest.fixture(scope="module")
def own(hadal):
    return answer(hadal)


@pytest.mark.parametrize("layout", ["ds4", "llama.cpp"])
def test_layouts(layout, hadal, parts, own, tmp_path):
    keys, tensors = parts
    if layout == "llama.cpp":
        names = {"general.architecture": "dflash", "dflash.block_size": keys["deepseek4.dspark.block_size"],
                 "dflash.mask_token_id": keys["deepseek4.dspark.noise_token_id"],
                 "dflash.target_layers": keys["deepseek4.dspark.target_layer_ids"]}
        keys = {**names, **{k: v for k, v in keys.items() if k.startswith("dspark.")}}
        split = lambda name: name.split(".", 2)
        tensors = [(DFLASH.get(split(n)[2], "blk." + n[4:]), t, raw) for n, t, raw in tensors]
    found = answer(hadal, "--draft-file", write(tmp_path / "drafts.gguf", keys, tensors))
    assert found[1] and found[:2] == own[:2]


def test_folder(hadal, parts, own, tmp_path):
    """A checkpoint folder: its mtp.* tensors and its whole config.json."""
    from train import export, geometry
    from train.data import load_tokenizer
    from train.reference import formats, hf, params
    import torch
    cfg = geometry.make("v41", load_tokenizer())
    torch.manual_seed(1)
    weights = {}
    for name, (shape, fmt) in params.table(cfg).items():
        w = torch.randn(shape) * 0.05
        weights[name] = formats.quantise(w, fmt, hf.tile_of(cfg)) if fmt in ("fp8", "fp4", "rows8") else w
    export.export({"weights": weights, "summary": {"confidence_temperatures": [1.0] * 5}}, "v41", str(tmp_path / "hf"))
    got, places, notes = answer(hadal, "--draft-file", tmp_path / "hf")
    assert got == own[0] and places and places != own[1] and "going on" not in notes
    config = json.loads((tmp_path / "hf/config.json").read_text())
    (config.get("text_config") or config)["hidden_size"] = 512
    (tmp_path / "hf/config.json").write_text(json.dumps(config))
    got, places, notes = answer(hadal, "--draft-file", tmp_path / "hf")
    assert got == own[0] and places != own[1] and "hidden_size is 512" in notes


def damage(case, keys, tensors):
    keys, tensors = dict(keys), list(tensors)
    index = {name: i for i, (name, _, _) in enumerate(tensors)}

    def edit(name, change):
        i = index[name]
        tensors[i] = (name, tensors[i][1], change(tensors[i][2]))
    if case == "model":
        keys["general.architecture"] = "deepseek4-dspark"
    elif case == "noise":
        keys["deepseek4.dspark.noise_token_id"] = 128799
    elif case == "no noise":
        del keys["deepseek4.dspark.noise_token_id"]
    elif case == "taps":
        keys["deepseek4.dspark.target_layer_ids"] = keys["deepseek4.dspark.target_layer_ids"][:2]
    elif case == "far taps":
        keys["deepseek4.dspark.target_layer_ids"] = [37, 38, 39]
    elif case == "missing":
        del tensors[index["mtp.1.attn_kv.weight"]]
    elif case == "nan":
        nan = np.float32("nan").tobytes()
        edit("mtp.1.attn_norm.weight", lambda raw: raw[:8] + nan + raw[12:])
    elif case == "nan scale":
        edit("mtp.1.ffn_up_exps.weight", lambda raw: b"\xff" + raw[1:])
    elif case == "zero":
        edit("mtp.0.main_proj.weight", lambda raw: bytes(len(raw)))
    return keys, tensors


REFUSALS = {"model": "architecture is deepseek4-dspark, expected deepseek41-dspark", "noise": "draft_noise_id",
            "no noise": "dspark.noise_token_id is missing", "taps": "2 tapped layers of width 256",
            "far taps": "tapped layer 0 is none of the 10", "missing": "mtp.1.attn_kv.weight is missing",
            "nan": "mtp.1.attn_norm.weight: row", "nan scale": "mtp.1.ffn_up_exps.weight: row",
            "zero": "mtp.0.main_proj.weight is all zero"}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case, hadal, parts, own, tmp_path):
    path = write(tmp_path / "drafts.gguf", *damage(case, *parts))
    got, places, notes = answer(hadal, "--draft-file", path)
    assert got == own[0] and places != own[1]
    said = [line for line in notes.splitlines() if "going on without drafts" in line]
    assert len(said) == 1 and REFUSALS[case] in said[0] and str(path) in said[0]


def test_misplaced_and_foreign_files(hadal, parts, own, tmp_path):
    for path in [write(tmp_path / "late.gguf", *parts, misplaced=12), tmp_path / "none.gguf", ROOT / "models/hadal-tiny-v4.gguf"]:
        got, places, notes = answer(hadal, "--draft-file", path)
        assert got == own[0] and places != own[1] and notes.count("going on without drafts") == 1


def test_revision(hadal, parts, own, tmp_path):
    """Only a difference is refused; a model that does not say where it is from takes any."""
    keys, tensors = parts
    path = write(tmp_path / "drafts.gguf", {**keys, "general.source.revision": "dba1be0a"}, tensors)
    assert answer(hadal, "--draft-file", path)[:2] == own[:2]
    reader = gguf.GGUFReader(MODEL)
    raw = MODEL.read_bytes()
    n_key = struct.unpack_from("<Q", raw, 16)[0]
    first = min(f.offset for f in reader.fields.values() if f.offset >= 24)
    extra = key("general.source.revision", "7872f01b")
    begin = reader.data_offset
    tail = raw[first:begin].rstrip(b"\0")
    last = max(reader.tensors, key=lambda t: t.field.offset).field
    end = last.offset + sum(part.nbytes for part in last.parts)
    head = raw[:16] + struct.pack("<Q", n_key + 1) + extra + raw[first:end]
    other = tmp_path / "model.gguf"
    other.write_bytes(head + bytes(-len(head) % 32) + raw[begin:])
    got, places, notes = answer(hadal, "-m", other, "--draft-file", path)
    assert got == own[0] and places != own[1] and "made from revision dba1be0a, the model from revision 7872f01b" in notes
