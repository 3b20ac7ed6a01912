"""Optimiser with the deployed quantisation in the loop.

fp32 masters are stacked by shape; Muon updates matrices, Adam the rest; after each step the weights the model uses ("live",
bf16 or fp32 leaves) are overwritten by the quantised masters. So the forward pass always sees exactly what the files can hold, and
the model code needs no weight quantisation. Gradients pass straight from live weights to masters.
"""
from collections import defaultdict
import torch
from .reference import formats
from .reference.hf import tile_of
from .reference.params import table


def value_format(name, fmt):
    """Streams are mixed by bf16 matmuls in training, so the F32 mHC matrices also keep to bf16 values."""
    return "bf16" if name.endswith("_fn") else fmt


def live_dtype(name, fmt, device):
    """bf16 holds every quantised value exactly; a CPU is faster in fp32."""
    if device == "cpu" or fmt == "f32" and not name.endswith("_fn"):
        return torch.float32
    return torch.bfloat16


def is_muon(name, shape, fmt):
    if fmt in ("fp8", "fp4"):
        return True
    return len(shape) == 2 and fmt == "bf16" and ("compressor" in name or "indexer.wk." in name)


ADAM_RATE = {"embed.weight": 1.5, "engram.embed.weight": 2.0}


def adam_rate(name):
    for key, rate in ADAM_RATE.items():
        if name.endswith(key) and "markov" not in name:
            return rate
    return 1.0


def orthogonalise(g):
    """Newton-Schulz iteration of Muon on a batch of matrices [n, O, I]."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16() if g.is_cuda else g
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        s = x @ x.mT
        x = a * x + (b * s + c * (s @ s)) @ x
    return x.mT if tall else x


class Group:
    """Same-shape tensors of one rule, stacked."""

    def __init__(self, names, masters, key):
        (self.muon, self.fmt, _, self.rate) = key
        self.names = names
        self.master = torch.stack([masters[n].float() for n in names])
        self.m = torch.zeros_like(self.master)
        self.v = None if self.muon else torch.zeros_like(self.master)


class Optimiser:
    def __init__(self, cfg, masters, device, trainable=lambda name: True, muon_lr=0.02, adam_lr=4e-3):
        self.tile, self.muon_lr, self.adam_lr, self.t = tile_of(cfg), muon_lr, adam_lr, 0
        spec, by_key = table(cfg), defaultdict(list)
        self.live = {}
        for name, (shape, fmt) in spec.items():
            w = masters[name].to(device)
            if fmt == "i64" or name.endswith(("gate.bias", "gate.bias_vl")) or not trainable(name):
                self.live[name] = w if fmt == "i64" else formats.quantise(w.float(), value_format(name, fmt), self.tile).to(
                    live_dtype(name, fmt, device))
                continue
            key = (is_muon(name, shape, fmt), value_format(name, fmt), tuple(shape), adam_rate(name))
            by_key[key].append(name)
            self.live[name] = torch.empty(shape, device=device, dtype=live_dtype(name, fmt, device)).requires_grad_()
        device_masters = {n: masters[n].to(device) for names in by_key.values() for n in names}
        self.groups = [Group(names, device_masters, key) for key, names in by_key.items()]
        self._write_live = None
        self.publish()

    @torch.no_grad()
    def publish(self):
        """Quantise the masters into the live weights."""
        for g in self.groups:
            values = formats.quantise(g.master, g.fmt, self.tile)
            torch._foreach_copy_([self.live[n] for n in g.names], list(values.unbind(0)))

    def grad_norm_scale(self, limit):
        grads = [w.grad for w in self.live.values() if w.grad is not None]
        norm = torch.stack(torch._foreach_norm(grads)).float().norm()
        return norm, (limit / (norm + 1e-6)).clamp_max(1.0)

    @torch.no_grad()
    def step(self, rate, clip=1.0, weight_decay=0.02):
        """rate: schedule factor 0..1. Adam gradients are clipped by global norm; Muon ignores scale."""
        self.t += 1
        norm, clip_scale = self.grad_norm_scale(clip)
        finite = torch.isfinite(norm)
        for g in self.groups:
            grads = [self.live[n].grad for n in g.names]
            grads = [torch.zeros_like(self.live[n]) if x is None else x for n, x in zip(g.names, grads)]
            grad = torch.where(finite, torch.stack(grads).float() * clip_scale, 0.0)
            if g.muon:
                self._muon(g, grad, rate, weight_decay)
            else:
                self._adam(g, grad, rate)
        self.publish()
        for w in self.live.values():
            w.grad = None
        return norm

    def _muon(self, g, grad, rate, weight_decay):
        g.m.lerp_(grad, 0.05)
        update = grad.lerp(g.m, 0.95).flatten(0, -3)
        o, i = update.shape[-2:]
        update = orthogonalise(update).float().view_as(g.master) * max(1, o / i) ** 0.5
        lr = self.muon_lr * rate
        g.master.mul_(1 - lr * weight_decay).add_(update, alpha=-lr)

    def _adam(self, g, grad, rate):
        g.m.lerp_(grad, 0.1)
        g.v.lerp_(grad.square(), 0.02)
        m, v = g.m / (1 - 0.9 ** self.t), g.v / (1 - 0.98 ** self.t)
        g.master.add_(m / (v.sqrt() + 1e-10), alpha=-self.adam_lr * rate * g.rate)

    @torch.no_grad()
    def balance(self, loads, speed=1e-3):
        """Router biases follow the load (noaux_tc): up for starved experts, down for crowded ones."""
        for layer, load in loads.items():
            name = f"layers.{layer}.ffn.gate.bias" if isinstance(layer, int) else f"{layer}.ffn.gate.bias"
            if name in self.live:
                f = load.float()
                self.live[name] += speed * torch.sign(f.mean() - f)

    def state(self):
        return dict(t=self.t, fixed={n: w for n, w in self.live.items() if not w.requires_grad},
                    groups=[dict(names=g.names, master=g.master, m=g.m, v=g.v) for g in self.groups])

    @torch.no_grad()
    def load_state(self, state):
        self.t = state["t"]
        for n, w in state["fixed"].items():
            self.live[n].copy_(w)
        for g, s in zip(self.groups, state["groups"]):
            assert g.names == s["names"]
            g.master.copy_(s["master"]), g.m.copy_(s["m"])
            if g.v is not None:
                g.v.copy_(s["v"])
        self.publish()


def initial(cfg, seed=0):
    """Fresh masters {name: fp32}."""
    gen = torch.Generator().manual_seed(seed)

    def normal(shape, std):
        return torch.randn(shape, generator=gen) * std

    out = {}
    for name, (shape, fmt) in table(cfg).items():
        if name.endswith("tid2eid"):
            n = cfg.n_routed_experts
            out[name] = torch.stack([torch.randperm(n, generator=gen)[: shape[1]] for _ in range(shape[0])])
        elif "norm" in name or name.endswith(("q_weight", "k_weight")):
            out[name] = torch.ones(shape)
        elif name.endswith("_base"):
            out[name] = _hyper_base(shape, normal)
        elif name.endswith("_scale"):
            out[name] = torch.full(shape, 0.1)
        elif name.endswith(("bias", "bias_vl", "ape", "attn_sink")):
            out[name] = torch.zeros(shape)
        elif name.endswith("embed.weight") and "markov" not in name:
            out[name] = normal(shape, 0.5 if name == "embed.weight" else 0.1)
        elif name == "head.weight" or "markov" in name or "confidence" in name:
            out[name] = normal(shape, 0.02)
        else:
            small = 0.3 if name.endswith(("wo_b.weight", "w2.weight")) else 1.0
            out[name] = normal(shape, small * shape[-1] ** -0.5)
    return out


def _hyper_base(shape, normal):
    """Streams start almost independent: comb near the identity, slightly different pre and post per stream."""
    if shape[0] != 24:
        return normal(shape, 0.2)
    comb = torch.eye(4).flatten() * 4.0
    return torch.cat((normal((4,), 0.3) - 0.5, normal((4,), 0.5), comb))
