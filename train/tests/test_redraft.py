"""What the draft stages are trained on, and how they come back into a checkpoint."""
import queue
import time
import numpy as np
import torch
from train import redraft
from train.reference import hf, toy


def test_bundles_hold_every_text_once():
    texts = [([i] * (1 + i % 9), None) for i in range(50)]
    parts = list(redraft.bundles(texts, 20))
    assert sorted(ids[0] for part in parts for ids, _ in part) == list(range(50))
    assert all(len(part) * max(len(ids) for ids, _ in part) <= 20 for part in parts)


def test_documents_come_in_rounds_of_one_kind():
    source = queue.Queue()
    for i in range(20):
        source.put(("code" if i % 2 else "agent", np.array([i]), np.array([1])))
    documents = redraft.Documents(source, 8)
    kind, docs = documents.take(time.time() + 60)
    assert kind == "agent" and len(docs) == 1
    while kind != "code":
        kind, docs = documents.take(time.time() + 60)
    assert [int(ids[0]) for ids, _ in docs] == [1, 3, 5, 7, 9, 11, 13, 15]
    assert documents.take(time.time() - 1) is None                              # too few left for a last round


def test_rare_kinds_have_rounds():
    documents = redraft.Documents(None, 768)
    for kind, share in redraft.SHARES.items():
        assert documents.enough[kind] <= 768 * share / max(redraft.SHARES.values())


def test_stages_take_the_place_of_the_folders(tmp_path):
    cfg, weights, _ = toy.load("v41")
    folder, other = str(tmp_path / "a"), {n: w + 1 if n.startswith("mtp.") and w.is_floating_point() else w for n, w in weights.items()}
    hf.save(folder, weights, cfg, plain=True)
    stages = {n: w for n, w in hf.file_tensors(other, cfg, True).items() if n.startswith("mtp.")}
    merged = hf.load(folder, stages)[1]
    assert any(n.startswith("mtp.") for n in merged)
    for name, w in merged.items():
        assert torch.equal(w, other[name].to(w.dtype)), name
