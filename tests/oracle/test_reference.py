"""The C engine against the PyTorch reference (train/reference): the specifications' toy models, and random models.

Without the cache's trained roundings both are plain fp32 arithmetic in different orders: every row must agree. With them, a
value that lies within fp32 noise of a rounding boundary may fall to either side; one such flip moves a cached value by up to a
quarter and stays in the cache, so later rows differ in the third digit and selections may change. With about a hundred thousand
rounded values per hundred tokens some sequences have one. So with roundings the bulk of the rows must agree tightly (a wrong
rounding rule moves all of them), and no row may choose another token unless it is a close call. The exact roundings have vectors
of their own (tests/ops), and the toy vectors were chosen free of flips.
"""
import numpy as np
import pytest
import torch

import engine
import random_models
from train.reference import toy
from train.reference.model import Run, oracle_logits

PLAIN, OFFICIAL = True, False
RANDOM = [(random_models.v4, 280, seed) for seed in range(1, 4)] + [(random_models.v41, 140, seed) for seed in range(1, 6)]


def reference(cfg, weights, tokens, ids, sims):
    with torch.no_grad():
        return oracle_logits(weights, cfg, ids, Run(sims=sims, exact_ties=True), tokens).numpy()


def rounding(sims):
    return [] if sims else ["--no-kv-rounding"]


@pytest.mark.parametrize("make,n,seed", RANDOM)
@pytest.mark.parametrize("storage", [PLAIN, OFFICIAL], ids=["float32", "official"])
def test_random_model(hadal, tmp_path, make, n, seed, storage):
    """Every size varies; official: FP8 tiles, FP4 rows, BF16."""
    cfg, weights, tokens, folder = random_models.write(tmp_path / "m", make, seed + 100 * storage, storage)
    ids = random_models.ids(seed, cfg.vocab_size, n)
    want = reference(cfg, weights, tokens, ids, sims=False)
    _, got = engine.score(hadal, folder, ids, *rounding(False))
    errors = engine.row_errors(got, want)
    assert errors.max() < 1e-3, (errors.argmax(), errors.max())
    assert engine.same_choice(got, want, 2e-3).all()


@pytest.mark.parametrize("make", [random_models.v4, random_models.v41])
def test_random_models_with_rounding(hadal, tmp_path, make):
    errors, chosen = [], []
    for seed in range(10, 14):
        cfg, weights, tokens, folder = random_models.write(tmp_path / str(seed), make, seed)
        ids = random_models.ids(seed, cfg.vocab_size, 90)
        want = reference(cfg, weights, tokens, ids, sims=True)
        _, got = engine.score(hadal, folder, ids)
        errors.append(engine.row_errors(got, want))
        chosen.append(engine.same_choice(got, want, 0.5))
    errors = np.concatenate(errors)
    assert np.median(errors) < 1e-4
    assert (errors < 1e-3).mean() > 0.6
    assert np.concatenate(chosen).mean() > 0.99


@pytest.mark.parametrize("arch,modulus,n", [("v4", 101, 140), ("v41", 113, 60)])
def test_toy_model(hadal, tmp_path, arch, modulus, n):
    """The folder that the reference writes, read by the engine; ids continue greedily on both sides."""
    cfg, weights, tokens = toy.load(arch)
    ids = [(t * t + 7 * t + 3) % modulus for t in range(n)]
    random_models.save(tmp_path, cfg, weights, tokens, plain=True)
    for sims in (True, False):
        all_ids, got = engine.score(hadal, tmp_path, ids, *rounding(sims), n_continue=10)
        want = reference(cfg, weights, tokens, all_ids, sims)
        assert engine.row_errors(got[:n], want[:n]).max() < 2e-3
        assert all_ids[n:] == want[n - 1:-1].argmax(-1).tolist()
