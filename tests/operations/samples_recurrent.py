"""Recurrent layers over all steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.functions import recurrent

from .sample import Sample, rng


def _normal(name: str, *shape: int) -> np.ndarray:
    return rng(name).normal(size=shape)


def _arguments(gates: int, states: int) -> tuple[np.ndarray, ...]:
    inputs, width = _normal("x", 3, 2, gates * 2), 2
    state = tuple(_normal(f"state{i}", 2, width) for i in range(states))
    return inputs, *state, _normal("w", gates * width, width), _normal("b", gates * width)


def _torch(layer: str, width: int, reverse: bool, **options: Any) -> Any:
    """The same by PyTorch's step functions: inputs are projected already, so its own projection is the identity."""

    def function(x: Any, *more: Any) -> Any:
        import torch

        *state, weight, bias = more
        eye, none = torch.eye(x.shape[-1], dtype=x.dtype), torch.zeros(x.shape[-1], dtype=x.dtype)
        step = {"lstm": torch._VF.lstm_cell, "gru": torch._VF.gru_cell}.get(layer)
        if step is None:
            step = getattr(torch._VF, f"rnn_{options['activation']}_cell")
        hidden, outputs = tuple(state), []
        for now in reversed(x.unbind(0)) if reverse else x.unbind(0):
            made = step(now, hidden if layer == "lstm" else hidden[0], eye, weight, none, bias)
            hidden = made if layer == "lstm" else (made,)
            outputs.append(hidden[0])
        out = torch.stack(outputs[::-1] if reverse else outputs)
        return (out, hidden[1]) if layer == "lstm" else out

    return function


SAMPLES: list[Sample] = []
for reverse in (False, True):
    ending = "-reverse" * reverse
    SAMPLES += [
        Sample(
            "lstm", f"bias{ending}", lambda *x, r=reverse: recurrent.lstm(*x, r), _arguments(4, 2),
            torch=_torch("lstm", 2, reverse),
        ),
        Sample(
            "gru", f"bias{ending}", lambda *x, r=reverse: recurrent.gru(*x, r), _arguments(3, 1),
            torch=_torch("gru", 2, reverse),
        ),
        *(
            Sample(
                "rnn", f"{kind}{ending}", lambda *x, k=kind, r=reverse: recurrent.rnn(*x, k, r), _arguments(1, 1),
                torch=_torch("rnn", 2, reverse, activation=kind),
            )
            for kind in ("tanh", "relu")
        ),
    ]  # fmt: skip
SAMPLES += [
    Sample(
        "lstm",
        "last-cell",
        lambda x, h, c, w: recurrent.lstm(x, h, c, w, None, False)[1],
        _arguments(4, 2)[:-1],
    ),
    Sample("gru", "no-bias", lambda x, h, w: recurrent.gru(x, h, w, None, False), _arguments(3, 1)[:-1]),
]
