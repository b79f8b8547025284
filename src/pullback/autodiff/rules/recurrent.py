"""Recurrent layers over all steps: `x` has the projected inputs, (length, ..., gates * width).

The rules do not use `x` and `bias`; they are kept for higher orders, which differentiate the portable form.
"""

from __future__ import annotations

from functools import partial
from typing import Any


def rules(xp: Any, op: Any) -> None:
    op = partial(op, autocast="half", real=True, composite=True, expands="always")
    op(
        "lstm", "x h c weight bias", "reverse", outputs="out cell", residuals="cells gates",
        joint=lambda g, x, h, c, weight, bias, out, cells, gates, reverse, needs: (
            xp.lstm_gradient(g, h, c, weight, out, cells, gates, reverse, needs)
        ),
    )  # fmt: skip
    op(
        "gru", "x h weight bias", "reverse", residuals="gates",
        joint=lambda g, x, h, weight, bias, out, gates, reverse, needs: (
            xp.gru_gradient(g, h, weight, out, gates, reverse, needs)
        ),
    )  # fmt: skip
    op(
        "rnn", "x h weight bias", "activation reverse",
        joint=lambda g, x, h, weight, bias, out, activation, reverse, needs: (
            xp.rnn_gradient(g, h, weight, out, activation, reverse, needs)
        ),
    )  # fmt: skip
