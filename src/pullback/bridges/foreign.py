"""Another library's function as one operation of a Pullback graph.

A `Call` is one run of such a function: it knows how to run it on raw arrays and how to pull cotangents back through it.
The pull is a `Call` itself, so gradients of gradients are recorded in the same way, to any order that the other library
has. Forward mode is a push, where the library has one for every function; else the pull is transposed, so that the
function runs once there as well.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, Sequence

import numpy as np

from .. import backends, modes
from ..autodiff.apply import apply
from ..autodiff.base import resolved
from ..autodiff.batching.stack import Stack
from ..autodiff.creation import asarray
from ..autodiff.forward import Dual, dual, primal_at, tangent_at, variable, vjp_of
from ..autodiff.recipe import Recipe
from ..autodiff.sites import user_site
from ..autodiff.tables import TENSORS
from ..errors import DeviceError, GradientError, VmapError
from ..operations import Operation
from ..tensors.tensor import Tensor


class Call:
    """One run of a function of another library: arrays in, arrays out, and the way back for cotangents."""

    name: str
    needs: tuple[bool, ...] = ()  # which inputs are tracked; known before it runs
    tracked: tuple[bool, ...] = ()  # which outputs depend on these; known after

    def __repr__(self) -> str:
        return self.name

    def run(self, raws: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs, as raw arrays."""
        raise NotImplementedError

    def pull(self, cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the tracked inputs, given those of the outputs; None where there is no dependence."""
        raise NotImplementedError

    def pulled(self, given: tuple[bool, ...]) -> PulledCall:
        """The same as a call, of the cotangents that are `given` and then of the tracked inputs."""
        raise NotImplementedError

    def pushed(self, moving: tuple[bool, ...]) -> PushedCall | None:
        """The call of the inputs and then of the tangents of those that are `moving`; None if there is none."""
        return None


class PulledCall(Call):
    """The pull through another call."""

    found: tuple[bool, ...] = ()  # which gradients there are; known after it has run

    def spread(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients in their places, None where there is none."""
        rest = iter(gradients)
        return tuple([next(rest) if is_there else None for is_there in self.found])


class PushedCall(Call):
    """A call of inputs and tangents: its outputs are those of the inner call, then the tangents of some of them."""

    has_tangent: tuple[bool, ...] = ()  # which outputs have one; known after it has run


class NoForwardModeError(GradientError):
    """A function that the other library cannot push tangents through."""


class ForeignOperation(Operation):
    """The operation of every call of one name."""

    __slots__ = ("recipes",)

    recipes: dict[tuple[bool, ...], Recipe]

    def kernel_for(self, backend: Any) -> Callable[..., Any]:
        return _kernel

    def recipe_for(self, table: Any, mask: tuple[bool, ...]) -> Recipe:
        recipe = self.recipes.get(mask)
        if recipe is None:
            recipe = self.recipes[mask] = Recipe.of_function(self, mask, ("xs", "call"), _backward)
        return recipe


@lru_cache(maxsize=256)
def _operation(name: str) -> ForeignOperation:
    operation = ForeignOperation(name, "*xs", "call", outputs="*outs", autocast="given")
    operation.recipes = {}
    return operation


def _kernel(raws: Sequence[Any], call: Call) -> tuple[Any, ...]:
    return call.run(raws)


def _backward(g: tuple[Any, ...], xs: tuple[Any, ...], call: Call) -> tuple[Any, ...]:
    given = [part for part in g if part is not None]
    if not any(isinstance(part, Tensor) for part in given):
        return call.pull(g)
    pulled = call.pulled(tuple([part is not None for part in g]))
    inputs = [x for x, needed in zip(xs, call.needs) if needed]
    return pulled.spread(record(pulled, [*given, *inputs]))


def record(call: Call, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Run `call` on tensors of its own library, as one operation of the graph."""
    if any(type(x._raw) is Stack for x in tensors):
        raise VmapError(
            f"{user_site()}: {call.name} is a function of another library, which pb.vmap cannot run on many examples "
            "at once. Write it for many examples with that library's own vmap and call it outside of pb.vmap, or in a "
            "loop."
        )
    if modes.is_recording() and any(isinstance(x, Dual) for x in tensors):
        return _with_tangents(call, tensors)
    tensors = [x.detach() if isinstance(x, Dual) else x for x in tensors]
    call.needs = tuple([modes.is_recording() and resolved(x)._node is not None for x in tensors])
    if not tensors:
        return tuple([asarray(raw) for raw in call.run(())])
    outputs = apply(_operation(call.name), tuple(tensors), (call,))
    return tuple([out if is_tracked else out.detach() for out, is_tracked in zip(outputs, call.tracked)])


def _with_tangents(call: Call, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`record` in forward mode."""
    level = max(x.level for x in tensors if isinstance(x, Dual))
    primals = [primal_at(x, level) for x in tensors]
    tangents = [tangent_at(x, level) for x in tensors]
    pushed = call.pushed(tuple([t is not None for t in tangents]))
    found = None if pushed is None else _push(pushed, primals, tangents, level)
    return _transposed(call, primals, tangents, level) if found is None else found


def _push(pushed: PushedCall, primals: list[Any], tangents: list[Any], level: int) -> tuple[Tensor, ...] | None:
    """Outputs with tangents; None where the library cannot push tangents through this function."""
    try:
        results = iter(record(pushed, [*primals, *[t for t in tangents if t is not None]]))
    except NoForwardModeError:
        return None
    outputs = [next(results) for _ in pushed.has_tangent]
    return tuple([dual(out, next(results), level) if t else out for out, t in zip(outputs, pushed.has_tangent)])


def _transposed(call: Call, primals: list[Any], tangents: list[Any], level: int) -> tuple[Tensor, ...]:
    """Outputs with tangents: the pull is linear in the cotangents, so its transpose gives the tangents."""
    variables = [x if t is None else variable(x) for x, t in zip(primals, tangents)]
    outputs = record(call, variables)
    tracked = [out for out in outputs if resolved(out)._node is not None]
    cotangents = [variable(TENSORS.zeros_like(out)) for out in tracked]
    gradients = vjp_of(tracked, cotangents, [v for v, t in zip(variables, tangents) if t is not None])
    directions = [t for t in tangents if t is not None]
    pairs = [(g, t) for g, t in zip(gradients, directions) if g is not None]
    found = iter(vjp_of([g for g, _ in pairs], [t for _, t in pairs], cotangents))
    is_needed = any(x._carries_derivative for x in primals)  # else only the variables made here are behind the outputs
    result = []
    for out in outputs:
        if resolved(out)._node is None:
            result.append(out)
            continue
        tangent = next(found)
        primal = out if is_needed else out.detach()
        result.append(dual(primal, TENSORS.zeros_like(primal) if tangent is None else tangent, level))
    return tuple(result)


# -- arguments -------------------------------------------------------------------------------------


def is_array(leaf: Any) -> bool:
    """Whether an argument is a tensor or an array: what the other library gets as an array of its own."""
    return isinstance(leaf, Tensor) or (backends.of(leaf) is not None and not isinstance(leaf, np.generic))


def common_home(caller: str, tensors: Sequence[Tensor]) -> str | None:
    """The device that the arguments came from; None if there are none."""
    devices = list(dict.fromkeys(x.device for x in tensors))
    if len({device.partition(":")[0] for device in devices}) > 1:
        raise DeviceError(
            f"{caller}: the arguments are on different devices ({', '.join(devices)}). Move one with `.to_device(...)`."
        )
    return devices[0] if devices else None


def accelerator(home: str | None, library: str) -> str | None:
    """Which GPU of the host a device of another library is, by its number; None for the host itself."""
    if home is None:
        return None
    parts = home.split(":")
    if parts[0] == "cupy":
        return f"{library}:{parts[-1]}"
    if len(parts) == 3 and parts[1] in ("gpu", "cuda"):
        return f"{library}:{parts[2]}"
    return None


def refuse_trace(caller: str, library: str) -> None:
    modes.refuse_in_trace(f"{caller}: what {library} computes cannot be seen by pb.compile. Call it outside.")
