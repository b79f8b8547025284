"""Small networks to checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

WIDTH = 16


def parameters(layers: int, seed: int = 0, frozen: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    generator = np.random.default_rng(seed)

    def one(name: str, *shape: int) -> Any:
        return pb.tensor(generator.standard_normal(shape) / 4, requires_grad=name not in frozen)

    return [
        {
            "scale": one("scale", WIDTH),
            "shift": one("shift", WIDTH),
            "wide": one("wide", 4 * WIDTH, WIDTH),
            "narrow": one("narrow", WIDTH, 4 * WIDTH),
        }
        for _ in range(layers)
    ]


def block(p: dict[str, Any], x: Any, dropout: float = 0.0) -> Any:
    normalized = pb.layer_norm(x, axis=-1, weight=p["scale"], bias=p["shift"])
    hidden = pb.gelu(pb.linear(normalized, p["wide"]))
    if dropout:
        hidden = pb.dropout(hidden, dropout)
    return x + pb.linear(hidden * pb.sigmoid(hidden), p["narrow"])


def network(layers: list[dict[str, Any]], x: Any, dropout: float = 0.0, wrap: Any = lambda f: f) -> Any:
    call = wrap(block)
    for p in layers:
        x = call(p, x, dropout)
    return (x * x).mean()


def gradients(layers: list[dict[str, Any]]) -> list[Any]:
    """The gradients so far, as arrays; the cells are emptied."""
    found = [None if w.grad is None else w.grad.numpy().copy() for p in layers for w in p.values()]
    for p in layers:
        for w in p.values():
            w.grad = None
    return found


def equal(a: list[Any], b: list[Any]) -> bool:
    """Bit for bit."""
    return len(a) == len(b) and all(
        (x is None and y is None) or (x is not None and y is not None and x.tobytes() == y.tobytes())
        for x, y in zip(a, b)
    )
