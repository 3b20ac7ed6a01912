"""The reference reproduces the specifications' toy vectors (V4 App. A and F, V4.1 App. B)."""
import pytest
import torch
from train.reference import dspark, hyper, rounding, toy
from train.reference.model import Batch, Run, backbone, logits, oracle_logits
from train.reference.rope import Angles, frequencies, rotate

V4_ON = {0: (-0.066841, 1.425033, -1.863569, -1.500487, 5.118806, 20), 3: (-1.101211, 1.952200, -0.587819, 0.369273, 20.829659, 36),
         66: (-0.331259, 1.756730, -2.053979, 0.132836, -4.464961, 39), 67: (-3.041524, -0.381504, -0.185889, -1.237401, -0.922286, 32),
         127: (-2.472992, -0.517858, 1.067831, -2.452362, 3.376602, 50), 128: (0.090308, -1.482376, -0.396574, -1.202485, 8.828311, 9),
         255: (0.100027, 1.425786, -2.215337, 2.082133, -4.551733, 63), 299: (0.502041, 0.470070, 0.507329, -0.969553, 3.590715, 36)}
V4_OFF = {0: (0.123104, 1.421601, -1.759524, -1.482647, 5.455848, 20), 3: (-1.085752, 1.933058, -0.506462, 0.363856, 20.988509, 70),
          66: (-0.371110, 1.736356, -2.078841, 0.199487, -4.333032, 39), 67: (-2.960834, -0.446249, -0.138807, -1.276716, -0.695152, 32),
          127: (-2.468441, -0.480184, 1.151215, -2.220411, 2.693291, 50), 128: (0.123327, -1.519181, -0.344267, -1.253125, 8.813960, 9),
          255: (0.022410, 1.384516, -2.187096, 1.895703, -5.268970, 63), 299: (-0.277506, 0.288115, 0.523484, -0.385786, 6.249548, 36)}
V41_ON = {0: (0.122606, 1.971325, 0.459346, -1.072125, 1.626606, 50), 11: (1.843233, -2.214965, 1.462087, -1.936548, -0.071742, 94),
          12: (1.179016, 2.759641, -2.389557, -0.439033, -11.937447, 61), 16: (-2.184830, -0.517360, -0.387946, 0.570207, 4.551647, 117),
          24: (0.361092, -1.015252, 2.084730, -2.227991, 20.130894, 59), 25: (1.192964, -0.019688, 0.599116, -0.467105, 2.653039, 35),
          100: (-0.245052, 0.380878, 2.236608, 0.522373, 17.411963, 38), 199: (1.052352, -0.154361, -0.949507, 1.691735, 18.456801, 38)}
V41_OFF = {0: (-0.084946, 1.967055, 0.355707, -1.204309, 3.309439, 96), 11: (1.751360, -1.976289, 1.447251, -2.375921, 8.575845, 94),
           12: (0.643305, 1.051119, 1.833747, 1.523936, -0.946554, 12), 16: (-1.836502, -0.034385, -0.554326, 1.179314, -3.647032, 117),
           24: (0.331750, -1.064149, 1.977544, -2.121426, 21.741030, 59), 25: (1.262970, -0.681603, 1.193297, 0.489390, 10.868140, 58),
           100: (2.176110, -1.401832, 0.765583, -1.526058, 10.490875, 82), 199: (1.579640, -0.166540, 0.031754, 1.994826, 9.346967, 38)}
CASES = {("v4", True): (V4_ON, 101, 300), ("v4", False): (V4_OFF, 101, 300),
         ("v41", True): (V41_ON, 113, 200), ("v41", False): (V41_OFF, 113, 200)}


def toy_ids(mod, n):
    return [(t * t + 7 * t + 3) % mod for t in range(n)]


@pytest.mark.parametrize("arch,sims", CASES)
def test_logits(arch, sims):
    want, mod, n = CASES[arch, sims]
    cfg, weights, token_map = toy.load(arch)
    got = oracle_logits(weights, cfg, toy_ids(mod, n), Run(sims=sims, exact_ties=True), token_map)
    for t, row in want.items():
        assert torch.allclose(got[t, :4], torch.tensor(row[:4]), atol=1e-3), (t, got[t, :4], row)
        assert abs(float(got[t].sum()) - row[4]) < 2e-2, t
        assert int(got[t].argmax()) == row[5], t


def test_v41_selection():
    cfg, weights, token_map = toy.load("v41")
    run = Run(exact_ties=True)
    oracle_logits(weights, cfg, toy_ids(113, 200), run, token_map)
    want = {2: [0, 1, 2, 3, 4, 6, 7, 11, 13, 16, 17, 19], 4: [0, 1, 2, 3, 8, 10, 11, 12, 13, 17, 18, 19],
            5: [1, 3, 5, 7, 10, 18, 19, 22, 25, 27, 28, 32], 7: [16, 17, 19, 24, 25, 27, 28, 30, 33, 34, 35, 40],
            9: [0, 1, 2, 25, 26, 27, 30, 31, 33, 34, 35, 40]}
    for layer, rows in want.items():
        assert run.trace[layer][0, 40].nonzero().flatten().tolist() == rows


@pytest.mark.parametrize("p,anchor,ids,conf,first", [
    (7, 39, [97, 14, 14, 14, 61], [101.2122, 430.4273, 369.6415, 346.9100, 370.1608],
     [-1.234901, -2.677156, -2.946489, -2.695318, -2.694737]),
    (199, 38, [96, 62, 62, 62, 42], [-448.9708, 192.8083, 241.8079, 178.3034, 28.8215],
     [1.589936, -1.904383, -2.070073, -1.652122, -2.626349])])
def test_v41_drafts(p, anchor, ids, conf, first):
    cfg, weights, token_map = toy.load("v41")
    run = Run(exact_ties=True)
    tokens = toy_ids(113, 200)
    padded = torch.tensor([tokens + [0] * (-len(tokens) % cfg.align)])
    batch = Batch(cfg, padded, angles=Angles(cfg, 300, "cpu"), token_map=token_map)
    with torch.no_grad():
        hidden = backbone(weights, cfg, batch, run)
        assert int(logits(weights, hidden)[p].argmax()) == anchor
        rows = dspark.all_context_rows(weights, cfg, batch, run.taps, run)
        at = torch.tensor([p])
        y = dspark.stages(weights, cfg, rows, torch.tensor([0]), (at, at), torch.tensor([anchor]), batch.angles, run)
        got, c, biased = dspark.draft(weights, cfg, y, torch.tensor([anchor]))
    assert got[0].tolist() == ids
    assert torch.allclose(c[0], torch.tensor(conf), rtol=1e-3, atol=0.05)
    assert torch.allclose(biased[0, :, 0], torch.tensor(first), atol=2e-3)


@pytest.mark.parametrize("arch", ["v4", "v41"])
def test_packing_changes_nothing(arch):
    """Two documents in one row give the logits that each gives alone."""
    cfg, weights, token_map = toy.load(arch)
    a, b = toy_ids(97, 150), toy_ids(89, 100)
    first = len(a) + (-len(a) % cfg.align)
    row = a + [0] * (first - len(a)) + b
    row = torch.tensor([row + [0] * (-len(row) % cfg.align)])
    start = torch.zeros_like(row)
    start[:, first:] = first
    with torch.no_grad():
        packed = logits(weights, backbone(weights, cfg, Batch(cfg, row, start, token_map=token_map), Run(exact_ties=True)))
    for ids, offset in ((a, 0), (b, first)):
        alone = oracle_logits(weights, cfg, ids, Run(exact_ties=True), token_map)
        assert torch.allclose(packed[offset:offset + len(ids)], alone, atol=2e-3)


def test_mhc_operator():
    m = 0.5 * torch.sin(1 + torch.arange(24.0, dtype=torch.float64))
    scale, base = torch.tensor([0.8, 1.1, 1.7]), 0.05 * (torch.arange(24.0) - 12)
    z = m * torch.cat((scale[:1].expand(4), scale[1:2].expand(4), scale[2:].expand(16))) + base
    pre, post = torch.sigmoid(z[:4]) + 1e-6, 2 * torch.sigmoid(z[4:8])
    comb = hyper.sinkhorn(z[8:].view(1, 4, 4), 20, 1e-6)
    assert torch.allclose(pre.float(), torch.tensor([0.4345262, 0.4535649, 0.3908959, 0.3202297]), atol=1e-6)
    assert torch.allclose(comb[0, 0].float(), torch.tensor([0.3575130, 0.2249880, 0.1848196, 0.2326784]), atol=1e-6)
    streams = torch.tensor([[[1.0, 2], [3, 4], [5, 6], [7, 8]]])
    out = hyper.expand(torch.tensor([[10.0, -10.0]]), streams, post[None].float(), comb.float())
    assert torch.allclose(out[0, 2], torch.tensor([14.230268, -5.382967]), atol=1e-5)


def test_rounding_operators():
    i = torch.arange(64.0)
    x = (torch.sin(0.37 * i) * (1 + 0.05 * i)).bfloat16().float()
    y = rounding.w8(x, 64)
    assert y[[1, 2, 3, 8, 33, 63]].tolist() == [0.375, 0.75, 1.0, 0.25, -0.9375, -4.0] and float(y.sum()) == 2.9619140625
    z = rounding.i4(x[:32])
    assert z[[1, 2, 3, 8, 20, 31]].tolist() == [0.5, 0.75, 1.0, 0.25, 2.0, -2.0] and float(z.sum()) == -0.75
    ties = torch.tensor([.25, .75, 1.25, 1.75, 2.5, 3.5, 5.0])
    assert rounding.round_e2m1(ties).tolist() == [0, 1, 1, 2, 2, 4, 4]
    unit = torch.zeros(128)
    unit[5] = 1
    signs = torch.sign(rounding.hadamard(unit))[:16].int().tolist()
    assert signs == [1, -1, 1, -1, -1, 1, -1, 1, 1, -1, 1, -1, -1, 1, -1, 1]


def test_rope_operator():
    cfg, _, _ = toy.load("v4")
    f = frequencies(cfg, True)
    assert abs(f[16] - 2.265625e-3) < 1e-12 and abs(f[31] - 5.680529037e-7) < 1e-14
    pair = torch.tensor([1.0, 0.5]).repeat(32)
    for compressed, i, want in ((False, 1, (-.990248, .519047)), (True, 20, (.809909, .770744))):
        cos, sin = Angles(cfg, 1001, "cpu").at(torch.tensor([1000]), compressed)
        got = rotate(pair[None], cos, sin)[0, 2 * i:2 * i + 2]
        assert torch.allclose(got, torch.tensor(want), atol=2e-6)
