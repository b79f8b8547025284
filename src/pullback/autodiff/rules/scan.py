"""Linear recurrences."""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    op(
        "ssm_scan", "x a h0", "axis reverse", autocast="float32", walks=True,
        joint=lambda g, a, h0, out, a_shape, h0_shape, axis, reverse, needs: (
            xp.ssm_scan_gradient(g, a, h0, out, a_shape, h0_shape, axis, reverse, needs)
        ),
    )  # fmt: skip
