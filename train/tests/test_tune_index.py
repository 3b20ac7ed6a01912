"""What the indexers are tuned on is what the reference attends to."""
import pytest
import torch
from train.reference import indexer, toy
from train.reference.model import Batch, Run, backbone
from train.tune_index import PART, Recorder, sparse


@pytest.mark.parametrize("arch", ["v4", "v41"])
def test_recorded_mass(arch, monkeypatch):
    torch.set_num_threads(1)
    cfg, weights, token_map = toy.load(arch)
    ids = torch.tensor([[(t * t + 7 * t + 3) % 97 for t in range(2 * PART)]])
    masses = []
    monkeypatch.setattr(indexer, "matching_loss", lambda qi, w, keys, allowed, mass: masses.append(mass) or torch.zeros(()))
    with torch.no_grad():
        want = backbone(weights, cfg, Batch(cfg, ids, None, None, token_map), Run(sparse=False, index_loss=True, sims=False))
        queries, recorder = torch.tensor([3, 100, PART, 2 * PART - 1]), Recorder(cfg)
        got = recorder.run(weights, Batch(cfg, ids, None, None, token_map), queries, sims=False)
    assert torch.allclose(got, want, atol=1e-3)
    # the candidate source is also given the mass of the layers after it: masses repeat, in order
    distinct = [m for i, m in enumerate(masses) if not i or m is not masses[i - 1]]
    assert len(recorder.layers) == len(distinct) >= 2
    for entry, mass in zip(recorder.layers, distinct):
        assert torch.allclose(entry["mass"], mass[0, queries], atol=1e-4)
        total, row, value = sparse(entry["mass"])
        assert torch.allclose(total, mass[0, queries].sum(-1), atol=1e-3)
        assert torch.allclose(entry["mass"].gather(1, row.long()), value.float(), atol=1e-3)
