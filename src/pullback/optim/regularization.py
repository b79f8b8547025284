"""Weight decay: the gradient that an optimizer goes down, from the one it was given, or a smaller parameter."""

from __future__ import annotations

from typing import Any, Sequence

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


def decayed(
    xp: Arithmetic, group: dict[str, Any], w: Any, g: Any, decay: Any, spare: Sequence[Any], out: Any
) -> tuple[Any, Any]:
    """The parameter and the gradient after weight decay: `decoupled_weight_decay` says of which of the two.

    `decay` is what the parameter is multiplied by if it is the parameter's, and the weight of the penalty otherwise.
    """
    change, room = spare
    if not group["decoupled_weight_decay"]:
        return w, descent_direction(xp, group, w, g, decay, room, change)
    if group["maximize"]:
        g = xp.negative(g, room)
    return (xp.multiply(w, decay, out) if group["weight_decay"] else w), g
