"""Decoders and encoders against the gguf package (ggml's definitions) and numpy, bit for bit."""
import glob
import hashlib
import os
import subprocess

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as T, quants

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = "-std=c11 -D_GNU_SOURCE -O1 -g -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=all".split()


@pytest.fixture(scope="session")
def tool(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("codec") / "codec_tool")
    sources = glob.glob(f"{ROOT}/src/tensor/*.c") + glob.glob(f"{ROOT}/src/base/*.c")
    subprocess.check_call(["cc", *FLAGS, f"-I{ROOT}/src", f"{ROOT}/tests/tensor/codec_tool.c", *sources, "-o", out,
                           "-lm", "-lpthread"])
    return lambda *args, data=b"": subprocess.run([out, *map(str, args)], input=data, check=True, capture_output=True).stdout


def decode(tool, name, blocks, n_row, n_col):
    return np.frombuffer(tool("decode", name, n_row, n_col, data=blocks.tobytes()), np.float32).reshape(n_row, n_col)


def finite_halves(blocks, offsets, rng):
    """Random bytes make NaN and infinite scales; put ordinary halves (subnormal ones too) there instead."""
    for o in offsets:
        h = (rng.standard_normal(len(blocks)) * 10.0 ** rng.integers(-6, 3, len(blocks))).astype(np.float16)
        blocks[:, o:o + 2] = h.view(np.uint8).reshape(-1, 2)


SCALE_AT = {T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ2_XXS: [0],
            T.IQ3_XXS: [0], T.IQ4_XS: [0]}


@pytest.mark.parametrize("qtype", SCALE_AT, ids=lambda t: t.name)
def test_decode_equals_gguf(tool, qtype):
    rng = np.random.default_rng(int(qtype))
    n_value, n_byte = gguf.GGML_QUANT_SIZES[qtype]
    blocks = rng.integers(0, 256, (600, n_byte), dtype=np.uint8)
    finite_halves(blocks, SCALE_AT[qtype], rng)
    ours = decode(tool, qtype.name, blocks, 200, 3 * n_value)
    theirs = quants.dequantize(blocks.reshape(200, -1), qtype).reshape(200, -1)
    assert np.array_equal(ours.view(np.uint32), theirs.view(np.uint32))


def test_decode_mxfp4(tool):
    rng = np.random.default_rng(4)
    blocks = rng.integers(0, 256, (512, 17), dtype=np.uint8)
    blocks[:, 0] = np.arange(512) % 255
    ours = decode(tool, "MXFP4", blocks, 128, 128)
    theirs = quants.dequantize(blocks.reshape(128, -1), T.MXFP4)
    assert np.array_equal(ours, theirs)  # code 8 is -0 here and +0 there


def test_decode_halves(tool):
    every = np.arange(65536, dtype=np.uint16)
    f16 = decode(tool, "F16", every, 64, 1024).reshape(-1)
    theirs = every.view(np.float16).astype(np.float32)
    nan = np.isnan(theirs)
    assert np.array_equal(f16.view(np.uint32)[~nan], theirs.view(np.uint32)[~nan]) and np.isnan(f16[nan]).all()
    bf16 = decode(tool, "BF16", every, 64, 1024).reshape(-1)
    assert np.array_equal(bf16.view(np.uint32), every.astype(np.uint32) << 16)


def e4m3(b):
    b = b.astype(np.int64)
    e, m = b >> 3 & 15, b & 7
    v = np.where(e > 0, (8 + m) * 2.0 ** (e - 10), m * 2.0 ** -9)
    v = np.where(b & 127 == 127, np.nan, v)
    return np.where(b & 128, -v, v)


E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6])


@pytest.mark.parametrize("name,tile", [("FP8_TILE32", 32), ("FP8_TILE128", 128)])
def test_decode_fp8_tiles(tool, name, tile):
    rng = np.random.default_rng(8)
    n_row, n_col = 2 * tile + 5, tile + 7
    w = rng.integers(0, 127, (n_row, n_col), dtype=np.uint8) | rng.integers(0, 2, (n_row, n_col), dtype=np.uint8) << 7
    s = rng.integers(100, 140, (3, 2), dtype=np.uint8)
    ours = np.frombuffer(tool("decode", name, n_row, n_col, data=w.tobytes() + s.tobytes()), np.float32)
    full = np.repeat(np.repeat(s, tile, 0), tile, 1)[:n_row, :n_col].astype(np.int64)
    assert np.array_equal(ours.reshape(n_row, n_col), (e4m3(w) * 2.0 ** (full - 127)).astype(np.float32))


def test_decode_row_scales(tool):
    rng = np.random.default_rng(9)
    w = rng.integers(0, 127, (9, 256), dtype=np.uint8)
    s = rng.integers(100, 140, (9, 8), dtype=np.uint8)
    expected = (e4m3(w) * 2.0 ** (np.repeat(s, 32, 1).astype(np.int64) - 127)).astype(np.float32)
    apart = np.frombuffer(tool("decode", "FP8_ROW32", 9, 256, data=w.tobytes() + s.tobytes()), np.float32)
    packed = np.frombuffer(tool("decode", "FP8_PACK32", 9, 256, data=np.hstack([w, s]).tobytes()), np.float32)
    assert np.array_equal(apart.reshape(9, 256), expected) and np.array_equal(packed.reshape(9, 256), expected)
    codes = rng.integers(0, 256, (9, 128), dtype=np.uint8)
    value = E2M1[np.stack([codes & 15, codes >> 4], -1).reshape(9, 256)]
    fp4 = np.frombuffer(tool("decode", "FP4_ROW", 9, 256, data=codes.tobytes() + s.tobytes()), np.float32)
    assert np.array_equal(fp4.reshape(9, 256), (value * 2.0 ** (np.repeat(s, 32, 1).astype(np.int64) - 127)).astype(np.float32))


def test_release_bytes(tool):
    """v41 spec 3.2: real bytes of the checkpoint."""
    fp8 = bytes.fromhex("d871f2797069f0e5") + bytes(24) + b"\x73"
    got = np.frombuffer(tool("decode", "FP8_TILE32", 1, 32, data=fp8), np.float32)[:8]
    assert list(got) == [-0.00390625, 0.03515625, -0.0390625, 0.0703125, 0.03125, 0.017578125, -0.03125, -0.0126953125]
    fp4 = bytes.fromhex("a0a8ec4aadaf42aa") + bytes(8) + b"\x78"
    got = np.frombuffer(tool("decode", "FP4_ROW", 1, 32, data=fp4), np.float32)[:16]
    assert list(got) == [0, -0.0078125, 0, -0.0078125, -0.015625, -0.03125, -0.0078125, 0.015625, -0.0234375, -0.0078125,
                         -0.046875, -0.0078125, 0.0078125, 0.015625, -0.0078125, -0.0078125]


def samples(n, rng):
    x = rng.standard_normal(n).astype(np.float32) * np.float32(0.04)
    x[:256] = 0
    x[256:512] = 0.125
    x[512:768] = -np.abs(x[512:768])
    return x


@pytest.mark.parametrize("qtype", [T.F16, T.BF16, T.Q8_0], ids=lambda t: t.name)
def test_encode_equals_gguf(tool, qtype):
    x = samples(8192, np.random.default_rng(1))
    if qtype != T.Q8_0:
        x = np.concatenate([x, x * 1e6, x * 1e-6, np.float32([65519, 65520, -65504, 0, -0.0] * 32)])
    ours = np.frombuffer(tool("encode", qtype.name, len(x), data=x.tobytes()), np.uint8)
    with np.errstate(over="ignore"):
        theirs = x.astype(np.float16).view(np.uint8) if qtype == T.F16 else quants.quantize(x.copy(), qtype).view(np.uint8)
    assert np.array_equal(ours, theirs.reshape(-1))


@pytest.mark.parametrize("qtype,limit", [(T.Q4_K, 0.074), (T.Q2_K, 0.34), (T.MXFP4, 0.13)], ids=lambda v: getattr(v, "name", v))
def test_encode_error_is_small(tool, qtype, limit):
    x = np.random.default_rng(2).standard_normal(1 << 16).astype(np.float32)
    back = quants.dequantize(np.frombuffer(tool("encode", qtype.name, len(x), data=x.tobytes()), np.uint8), qtype)
    error = np.sqrt(np.mean((back - x) ** 2))
    assert error < limit
    x = samples(8192, np.random.default_rng(3))
    back = quants.dequantize(np.frombuffer(tool("encode", qtype.name, len(x), data=x.tobytes()), np.uint8), qtype)
    assert np.isfinite(back).all() and not back[:256].any() and np.allclose(back[256:512], 0.125, rtol=1e-3)


def test_mxfp4_values_survive(tool):
    rng = np.random.default_rng(5)
    blocks = rng.integers(0, 256, (512, 17), dtype=np.uint8)
    blocks[:, 0] = rng.integers(90, 150, 512)
    x = quants.dequantize(blocks.reshape(1, -1), T.MXFP4).astype(np.float32)
    back = quants.dequantize(np.frombuffer(tool("encode", "MXFP4", x.size, data=x.tobytes()), np.uint8), T.MXFP4)
    assert np.array_equal(back, x.reshape(-1))


def test_codebooks(tool):
    out = tool("tables")
    assert hashlib.sha256(out[:2048]).hexdigest() == "05826b5d3e472a3a78f196be62ac78acf81df0f909626e12ab9fa2a5d490dd54"
    assert hashlib.sha256(out[2048:]).hexdigest() == "46e35f5a997efdee6c99ce57854c8a0d4f0ff8ca57e5e8a60c0793ea580acf5d"
