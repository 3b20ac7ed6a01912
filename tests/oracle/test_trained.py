"""The C engine against the PyTorch reference on the shipped models, whose checkpoint folders are made from models/*.gguf.

One sequence of held-out documents per model, 300 positions past its last limit: v41's candidate level begins at 2,048 tokens (256
blocks of 8), its selection at 512 rows; v4's at 64 rows of four.

How much fp32 noise may do was measured on the reference itself. Its weights times (1 + 1e-7 noise) move rows, relative to their
size, by 1.4e-6 in the middle and up to 0.2 (one row chosen otherwise in a close call) without the cache's roundings; with them by
3e-4 in the middle, 3e-3 for one in ten and up to 0.45. The engine is as close: 1.3e-6, and 6e-4, 6e-3, 0.5.
"""
import subprocess

import numpy as np
import pytest
import torch

import engine
from train.data import stream
from train.import_gguf import write_folder
from train.reference import hf, token_map
from train.reference.model import Run, oracle_logits

N_TOKEN = {"hadal-tiny-v4": 2100, "hadal-tiny-v41": 2400}
UNSEEN_SEED = 987_654


def documents(dialect, n):
    ids = []
    for document, _ in stream(None, dialect, UNSEEN_SEED, 0, 2048):
        ids += document.tolist()
        if len(ids) >= n:
            return ids[:n]


@pytest.fixture(scope="module", params=N_TOKEN)
def trained(request, tmp_path_factory):
    """-> shipped file, its checkpoint folder, token ids, function(ids, sims) -> the reference's logits"""
    file = engine.ROOT / "models" / f"{request.param}.gguf"
    folder = tmp_path_factory.mktemp("checkpoint") / request.param
    write_folder(file, folder)
    cfg, weights = hf.load(folder)
    tokens = token_map.for_folder(folder, cfg.vocab_size) if cfg.engram_layer_ids else None

    def reference(ids, sims):
        with torch.no_grad():
            return oracle_logits(weights, cfg, ids, Run(sims=sims, exact_ties=True), tokens).numpy()

    return file, folder, documents("v41" if cfg.is_v41 else "v4", N_TOKEN[request.param]), reference


def surprise(logits, ids):
    """Mean of -log p over the tokens that follow."""
    p = torch.log_softmax(torch.from_numpy(logits[:-1]).double(), -1)
    return -p[torch.arange(len(ids) - 1), ids[1:]].mean().item()


def test_without_rounding(hadal, trained):
    """All rows but the odd close call of a selection."""
    file, _, ids, reference = trained
    want = reference(ids, sims=False)
    _, got = engine.score(hadal, file, ids, "--no-kv-rounding")
    errors = engine.row_errors(got, want)
    print(f"relative error: median {np.median(errors):.1e}, largest {errors.max():.1e}")
    assert (errors < 1e-3).mean() > 0.997, np.flatnonzero(errors >= 1e-3)
    assert np.median(errors) < 1e-5
    assert engine.same_choice(got, want, 0.02).all()


def test_with_rounding(hadal, trained):
    """The same likeliest token at every position, close calls apart; the same surprise."""
    file, _, ids, reference = trained
    want = reference(ids, sims=True)
    _, got = engine.score(hadal, file, ids)
    errors, chosen = engine.row_errors(got, want), engine.same_choice(got, want, 0.02)
    print(f"relative error: median {np.median(errors):.1e}, largest {errors.max():.1e}, {(errors > 1e-3).mean():.3f} above 1e-3")
    assert np.median(errors) < 3e-3
    assert np.quantile(errors, 0.9) < 3e-2
    assert chosen.mean() > 0.999, np.flatnonzero(~chosen)
    assert abs(surprise(got, ids) - surprise(want, ids)) < 1e-3


def test_folder_and_file_are_the_same_model(hadal, trained, tmp_path):
    """Decoded, encoded and converted again, the weights are the shipped bytes; read from the folder, they give the same bits."""
    file, folder, ids, _ = trained
    again = tmp_path / "model.gguf"
    subprocess.run([hadal, "convert", folder, "--output", again, "--quiet"], check=True, capture_output=True)
    assert again.read_bytes() == file.read_bytes()
    _, from_folder = engine.score(hadal, folder, ids[:150])
    _, from_file = engine.score(hadal, file, ids[:150])
    assert from_folder.tobytes() == from_file.tobytes()
