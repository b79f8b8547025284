"""Kernels written in terms of other kernels: `def silu(xp, x): return x * xp.sigmoid(x)`.

A backend that has no kernel of its own for an operation uses the one here, and so do tensors when a
fused operation is differentiated twice. The first argument is the namespace.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

_MODULES = (
    "core",
    "elementwise",
    "reductions",
    "shape",
    "indexing",
    "linear",
    "low_rank",
    "contractions",
    "sorting",
    "linalg",
    "fft",
    "activations",
    "normalization",
    "losses",
    "convolution",
    "pooling",
    "attention",
    "scan",
    "recurrent",
    "special",
    "packed",
    "quantized",
)


def bind(name: str, xp: Any) -> Any:
    """The portable kernel `name` for the namespace `xp`."""
    if not name.startswith("_"):
        for module in _MODULES:
            function = vars(import_module(f"{__name__}.{module}")).get(name)
            if function is not None:
                return partial(function, xp)
    raise AttributeError(f"no kernel {name!r}: neither the backend nor backends/portable defines it.")
