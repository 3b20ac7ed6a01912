"""The C engine against the PyTorch reference on the trained models, where their checkpoint folders are (.build/models).

2,100 tokens of held-out documents in sequences of 700: more than 300 positions past every limit of both (window 64, groups up
to 128, selection of 64 rows, which for groups of four begins at 260 tokens). Trained weights amplify differences less than
random ones; see test_reference.py for what a rounding boundary can do.
"""
import subprocess

import numpy as np
import pytest
import torch

import engine
from train.data import stream
from train.reference import hf, token_map
from train.reference.model import Run, oracle_logits

N_SEQUENCE, N_TOKEN, UNSEEN_SEED = 3, 700, 987_654


def documents(dialect):
    ids = []
    for document, _ in stream(None, dialect, UNSEEN_SEED, 0, 2048):
        ids += document.tolist()
        if len(ids) >= N_SEQUENCE * N_TOKEN:
            return np.array(ids[:N_SEQUENCE * N_TOKEN]).reshape(N_SEQUENCE, N_TOKEN).tolist()


@pytest.fixture(scope="module", params=["hadal-tiny-v4", "hadal-tiny-v41"])
def trained(request):
    """-> folder, sequences, function(ids, sims) -> the reference's logits"""
    folder = engine.ROOT / ".build/models" / request.param
    if not (folder / "config.json").exists():
        pytest.skip(f"{folder} is not there: train it (train/README.md)")
    cfg, weights = hf.load(folder)
    tokens = token_map.for_folder(folder, cfg.vocab_size) if cfg.engram_layer_ids else None

    def reference(ids, sims):
        with torch.no_grad():
            return oracle_logits(weights, cfg, ids, Run(sims=sims, exact_ties=True), tokens).numpy()

    return folder, documents("v41" if cfg.is_v41 else "v4"), reference


def surprise(logits, ids):
    """Mean of -log p over the tokens that follow."""
    p = torch.log_softmax(torch.from_numpy(logits[:-1]).double(), -1)
    return -p[torch.arange(len(ids) - 1), ids[1:]].mean().item()


def test_every_row_without_rounding(hadal, trained):
    folder, sequences, reference = trained
    want = reference(sequences[0], sims=False)
    _, got = engine.score(hadal, folder, sequences[0], "--no-kv-rounding")
    errors = engine.row_errors(got, want)
    assert errors.max() < 1e-3, (errors.argmax(), errors.max())
    assert engine.same_choice(got, want, 1e-4).all()


def test_two_thousand_tokens(hadal, trained):
    """The same likeliest token at every position, close calls apart; the same surprise."""
    folder, sequences, reference = trained
    errors, chosen, difference = [], [], []
    for ids in sequences:
        want = reference(ids, sims=True)
        _, got = engine.score(hadal, folder, ids)
        errors.append(engine.row_errors(got, want))
        chosen.append(engine.same_choice(got, want, 0.02))
        difference.append(surprise(got, ids) - surprise(want, ids))
    errors = np.concatenate(errors)
    print(f"relative error: median {np.median(errors):.1e}, largest {errors.max():.1e}, {(errors > 1e-3).mean():.3f} above 1e-3")
    assert np.median(errors) < 1e-4
    assert (errors < 1e-3).mean() > 0.8
    assert np.concatenate(chosen).all()
    assert max(map(abs, difference)) < 1e-3


def test_converted_file_has_the_same_bits(hadal, trained, tmp_path):
    folder, sequences, _ = trained
    file = tmp_path / "model.gguf"
    subprocess.run([hadal, "convert", folder, "--output", file, "--quiet"], check=True, capture_output=True)
    _, from_folder = engine.score(hadal, folder, sequences[1][:150])
    _, from_file = engine.score(hadal, file, sequences[1][:150])
    assert from_folder.tobytes() == from_file.tobytes()
