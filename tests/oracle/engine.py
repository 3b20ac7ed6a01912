"""The C engine as a function: token ids in, logits out."""
import json
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def score(hadal, model, ids, *options, n_prompt=0, n_continue=0):
    """-> token ids [n + n_continue], logits [n + n_continue, n_vocab]; both without the first n_prompt"""
    command = [hadal, "score", "-m", str(model), "--ids", ",".join(map(str, ids)), "--logits",
               "--continue", str(n_continue), "--prompt", str(n_prompt), *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, f"{' '.join(command)[:300]}\n{run.stderr}"
    rows = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert [row["pos"] for row in rows] == list(range(n_prompt, len(ids) + n_continue))
    return [row["id"] for row in rows], np.array([row["logits"] for row in rows], dtype=np.float32)


def row_errors(got, want):
    """Largest difference of every row, relative to the row's size (root mean square, at least 1)."""
    size = np.maximum(np.sqrt((want.astype(np.float64) ** 2).mean(-1)), 1)
    return np.abs(got - want).max(-1) / size


def same_choice(got, want, margin):
    """Rows whose likeliest token agrees, where the runner-up is further away than margin; True elsewhere."""
    top = np.sort(want, -1)
    return (got.argmax(-1) == want.argmax(-1)) | (top[:, -1] - top[:, -2] <= margin)
