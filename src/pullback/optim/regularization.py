"""The gradient that an optimizer goes down, from the one it was given."""

from __future__ import annotations

from typing import Any

from .arithmetic import Arithmetic


def descent_direction(
    xp: Arithmetic, group: dict[str, Any], w: Any, g: Any, weight_decay: Any, out: Any, room: Any
) -> Any:
    """The gradient, turned round where `maximize` is set, plus the gradient of the L2 penalty; in `out` if changed."""
    if group["maximize"]:
        g = xp.negative(g, out)
    if group["weight_decay"]:
        g = xp.add_scaled(g, w, weight_decay, out, room)
    return g
