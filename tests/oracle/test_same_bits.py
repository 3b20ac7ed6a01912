"""Random models in every storage that a checkpoint has: instruction sets, threads and the scalar reference give the same bits."""
import subprocess

import numpy as np
import pytest

import engine
import random_models

WAYS = [["--level", "portable", "--threads", "1"], ["--threads", "3"], ["--backend", "ref"]]


@pytest.mark.parametrize("storage", [True, False], ids=["float32", "official"])
@pytest.mark.parametrize("make", [random_models.v4, random_models.v41])
@pytest.mark.parametrize("seed", range(30, 32))
def test_random_model(hadal, tmp_path, make, seed, storage):
    cfg, _, _, folder = random_models.write(tmp_path / "m", make, seed + 100 * storage, storage)
    ids = random_models.ids(seed, cfg.vocab_size, 70)
    ids_want, want = engine.score(hadal, folder, ids, n_continue=3)
    for way in WAYS:
        ids_got, got = engine.score(hadal, folder, ids, *way, n_continue=3)
        assert ids_got == ids_want, way
        assert got.tobytes() == want.tobytes(), way


# How closely the logits follow those of the float32 weights: correlation of the middle row. Random weights have no slack to
# lose, so a dozen matrices in a row cost the small formats much; what a wrong decoder does is near 0.
FORMATS = {"F16": 0.999, "BF16": 0.98, "Q8_0": 0.95, "Q4_K": 0.4, "MXFP4": 0.3, "Q2_K": 0.02}


@pytest.mark.parametrize("make", [random_models.v4, random_models.v41])
def test_quantised_model(hadal, tmp_path, make):
    """Every format that convert writes: same bits in every way, and close to the weights it came from."""
    wide = dict(hidden_size=256, q_lora_rank=256, moe_intermediate_size=256, o_groups=2, num_attention_heads=2, head_dim=256,
                qk_rope_head_dim=64, o_lora_rank=128, index_head_dim=64, engram_head_dim=256, dspark_markov_rank=256,
                n_routed_experts=2, num_experts_per_tok=1, dspark_n_routed_experts=1, dspark_num_experts_per_tok=1)
    cfg, _, _, folder = random_models.write(tmp_path / "m", make, 40, **wide)
    ids = random_models.ids(40, cfg.vocab_size, 9)
    _, exact = engine.score(hadal, folder, ids, "--no-kv-rounding")
    for name, least in FORMATS.items():
        file = tmp_path / f"{name}.gguf"
        convert = [hadal, "convert", folder, "--output", file, "--quiet", "--type", f"all={name}"]
        subprocess.run(convert, check=True, capture_output=True, timeout=300)
        _, want = engine.score(hadal, file, ids, "--no-kv-rounding")
        for way in WAYS:
            _, got = engine.score(hadal, file, ids, "--no-kv-rounding", *way)
            assert got.tobytes() == want.tobytes(), (name, way)
        like = np.median([np.corrcoef(a, b)[0, 1] for a, b in zip(want, exact)])
        print(f"{name}: correlation {like:.6f}")
        assert like > least, name
        file.unlink()
