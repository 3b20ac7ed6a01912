"""Read and write a HF-style model folder in the official layout: safetensors shards, index, config.json.

Names and dtypes are those of V4 section 8.1 / V4.1 section 11; routed experts are one tensor per expert in the file and one
stacked tensor in memory. Float32 folders ("toy") hold every tensor unquantised. The container is written here because the
safetensors library knows no F8_E8M0 for older PyTorch versions.
"""
import json
import os
import struct
import numpy as np
import torch
from . import config, formats
from .params import table

DTYPE = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64", torch.int8: "I8", torch.float8_e4m3fn: "F8_E4M3",
         torch.uint8: "F8_E8M0"}
TORCH = {"F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64, "I8": torch.int8, "F8_E4M3": torch.float8_e4m3fn,
         "F8_E8M0": torch.uint8, "F16": torch.float16}


def tile_of(cfg):
    return (getattr(cfg, "quantization_config", None) or {}).get("weight_block_size", [32, 32])[0]


def split_name(name, tensor):
    """(file name, tensor) pairs: one per expert for stacked entries."""
    if ".ffn.experts." not in name:
        return [(name, tensor)]
    stem, rest = name.split(".experts.")
    return [(f"{stem}.experts.{e}.{rest}", tensor[e]) for e in range(tensor.shape[0])]


def file_tensors(weights, cfg, plain):
    """All tensors of the file, encoded. plain: everything as float32."""
    out = {}
    for name, (shape, fmt) in table(cfg).items():
        for each, w in split_name(name, weights[name].detach().cpu()):
            if fmt == "i64":
                out[each] = w.long()
            elif plain or fmt == "f32":
                out[each] = w.float()
            elif fmt == "bf16":
                out[each] = w.bfloat16()
            else:
                payload, scale = formats.encode(w.float(), fmt, tile_of(cfg))
                out[each], out[each.removesuffix(".weight") + ".scale"] = payload, scale
    return out


def write_safetensors(path, tensors):
    header, offset, blobs = {}, 0, []
    for name, t in tensors.items():
        blob = t.contiguous().view(torch.uint8).numpy().tobytes() if t.numel() else b""
        header[name] = {"dtype": DTYPE[t.dtype], "shape": list(t.shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.writelines(blobs)


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        a, b = entry["data_offsets"]
        raw = torch.from_numpy(np.frombuffer(data[8 + n + a:8 + n + b], dtype=np.uint8).copy())
        out[name] = raw.view(TORCH[entry["dtype"]]).view(entry["shape"])
    return out


def save(folder, weights, cfg, plain=False, shard_bytes=15 << 20):
    os.makedirs(folder, exist_ok=True)
    shards, size = [{}], 0
    for name, t in file_tensors(weights, cfg, plain).items():
        n = t.numel() * t.element_size()
        if size + n > shard_bytes and shards[-1]:
            shards.append({})
            size = 0
        shards[-1][name] = t
        size += n
    where, total = {}, 0
    for i, shard in enumerate(shards):
        file = f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        write_safetensors(os.path.join(folder, file), shard)
        where.update({name: file for name in shard})
        total += sum(t.numel() * t.element_size() for t in shard.values())
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": total}, "weight_map": where}, f, indent=1)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(cfg.raw, f, indent=2)
    return total


def load(folder, instead=()):
    """-> cfg, weights (fp32, experts stacked). instead: tensors as in a file that take the place of the folder's."""
    cfg = config.load(os.path.join(folder, "config.json"))
    files = sorted(f for f in os.listdir(folder) if f.endswith(".safetensors"))
    raw = {}
    for f in files:
        raw.update(read_safetensors(os.path.join(folder, f)))
    assert set(instead) <= set(raw), sorted(set(instead) - set(raw))[:3]
    raw.update(instead)

    def one(name, fmt):
        t = raw[name]
        if t.dtype in (torch.float8_e4m3fn, torch.int8):
            return formats.decode(t, raw[name.removesuffix(".weight") + ".scale"], fmt, tile_of(cfg))
        return t if t.dtype == torch.int64 else t.float()

    out = {}
    for name, (shape, fmt) in table(cfg).items():
        if ".ffn.experts." in name:
            stem, rest = name.split(".experts.")
            out[name] = torch.stack([one(f"{stem}.experts.{e}.{rest}", fmt) for e in range(shape[0])])
        else:
            out[name] = one(name, fmt)
    return cfg, out
