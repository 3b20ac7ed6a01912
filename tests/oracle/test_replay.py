"""Bounded replay (V4.1 section 14.3) against the PyTorch reference, where it is a mask: the decoder's windows begin at the replay."""
import numpy as np
import pytest

import engine
import random_models
from train.reference.model import Run, oracle_logits


@pytest.mark.parametrize("seed", range(1, 5))
def test_rows_behind_a_prompt(hadal, tmp_path, seed):
    cfg, weights, tokens, folder = random_models.write(tmp_path / "m", random_models.v41, seed, True)
    n_prompt = 3 * cfg.sliding_window + 5
    ids = random_models.ids(seed, cfg.vocab_size, n_prompt + cfg.sliding_window + 20)
    run = Run(sims=False, exact_ties=True, replay_from=n_prompt - cfg.sliding_window)
    want = oracle_logits(weights, cfg, ids, run, tokens).numpy()[n_prompt:]
    exact = oracle_logits(weights, cfg, ids, Run(sims=False, exact_ties=True), tokens).numpy()[n_prompt:]
    _, got = engine.score(hadal, folder, ids, "--no-kv-rounding", "--bounded-replay", n_prompt=n_prompt)
    assert engine.row_errors(got, want).max() < 1e-3
    assert engine.row_errors(got, exact).max() > 1e-2  # it is another computation
    _, got = engine.score(hadal, folder, ids, "--no-kv-rounding", n_prompt=n_prompt)
    assert engine.row_errors(got, exact).max() < 1e-3
