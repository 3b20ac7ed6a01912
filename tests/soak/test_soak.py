"""Long runs: `make soak`. SOAK scales them (1: about ten minutes)."""
import json
import os
import subprocess

SCALE = float(os.environ.get("SOAK", "1"))


def run(soak, what, model, n):
    out = subprocess.run([soak, what, model, str(n)], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return [json.loads(line) for line in out.stdout.splitlines()]


def test_ten_thousand_tokens_with_and_without_drafts(soak, model):
    n = int(10_000 * SCALE)
    (result,) = run(soak, "drafts", model, n)
    assert result["tokens"] >= n


def test_ten_thousand_cycles_take_no_memory(soak, model):
    """After a tenth of the cycles the resident size stays; a KiB per hundred cycles would be a leak."""
    n = int(10_000 * SCALE)
    samples = run(soak, "memory", model, n)
    settled = [s for s in samples if s["cycle"] >= n // 10]
    growth = settled[-1]["resident_kib"] - settled[0]["resident_kib"]
    assert growth < max(64, n / 100), samples
