"""Random numbers inside of `vmap`: of every example's own, or the same for all."""

from __future__ import annotations

from inspect import signature
from typing import Any

from ... import modes
from ...errors import VmapError
from ..base import Tensor, TensorBase
from ..sites import user_site
from ..tables import TENSORS
from .stack import Level


def draw(level: Level, generator: Any, method: Any, args: Any, named: Any) -> Any:
    """The numbers of a method of a generator: drawn at the level below, with the examples along the first axis."""
    arguments = signature(method).bind(generator, *args, **named)
    arguments.apply_defaults()
    given = arguments.arguments
    wholes = {name: level.whole(x) for name, x in given.items() if isinstance(x, TensorBase)}
    for name, (_, has_axis) in wholes.items():
        if has_axis and "shape" in given and name != "p":
            raise VmapError(
                f"{user_site()}: {method.__name__}: `{name}` is one number, which would differ from example to example "
                "inside of pb.vmap. Draw with numbers that all examples share, then scale and shift what was drawn: "
                "`mean + std * pb.random.normal(shape)`."
            )
    token = level.below()
    try:
        if level.randomness == "same" and not any([has_axis for _, has_axis in wholes.values()]):
            given.update((name, x) for name, (x, _) in wholes.items())
            return level.lift(_redrawn(method, arguments))
        if "shape" not in given:
            return level.stacked(_one_by_one(level, method, arguments))
        shape = given["shape"]
        shape = tuple(given["p"].shape if shape is None else [shape] if hasattr(shape, "__index__") else shape)
        if level.randomness == "same":
            return level.stacked(_same_numbers(method, arguments, wholes, shape))
        given["shape"] = (level.size, *shape)
        for name, (x, has_axis) in wholes.items():
            given[name] = _aligned(x, len(shape)) if has_axis else x
        return level.stacked(_redrawn(method, arguments))
    finally:
        modes.leave(token)


def _redrawn(method: Any, arguments: Any) -> Tensor:
    """Draw through the generator's own method, which what is around this level may have something to say to."""
    generator = arguments.args[0]
    return getattr(generator, method.__name__)(*arguments.args[1:], **arguments.kwargs)


def _one_by_one(level: Level, method: Any, arguments: Any) -> Tensor:
    drawn = [_redrawn(method, arguments) for _ in range(max(level.size, 1))]
    stacked = TENSORS.stack(drawn, -1 - drawn[0].ndim)
    return stacked if level.size else TENSORS.getitem(stacked, (slice(0, 0),))


def _same_numbers(method: Any, arguments: Any, wholes: Any, shape: tuple[int, ...]) -> Tensor:
    """Chances that differ, compared with numbers that are the same for all examples."""
    given = arguments.arguments
    (chances, _) = wholes["p"]
    device = chances.device if given["device"] is None else given["device"]
    unit = arguments.args[0].uniform(shape, dtype="float64", device=device)
    return TENSORS.less(unit, _aligned(chances, len(shape)))


def _aligned(x: Tensor, rank: int) -> Tensor:
    return TENSORS.reshape(x, (x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:]))
