"""Linear map, RMS norm and the switch that compiles the hot functions for training."""
import functools
import torch
import torch.nn.functional as F

_compile = {"on": False}


def set_compile(on):
    _compile["on"] = on


def hot(fn):
    """Mark a per-token function as worth compiling. The oracle runs it as written; training fuses it."""
    fused = None

    @functools.wraps(fn)
    def call(*args, **kwargs):
        nonlocal fused
        if not _compile["on"]:
            return fn(*args, **kwargs)
        if fused is None:
            fused = torch.compile(fn, dynamic=False)
        return fused(*args, **kwargs)
    call.plain = fn
    return call


def linear(x, w):
    """y = W x with w [out, in]; computed in the weight's dtype (bf16 in training, fp32 in the oracle)."""
    return F.linear(x.to(w.dtype), w)


def rms_norm(x, w, eps):
    f = x.float()
    f = f * torch.rsqrt(f.square().mean(-1, keepdim=True) + eps)
    return (f if w is None else f * w.float()).to(x.dtype)
