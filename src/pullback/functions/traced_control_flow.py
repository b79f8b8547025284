"""Control flow inside a program that is being traced, where the values that decide are not known.

Nearly everything here is written in ordinary operations, so that forward and reverse mode, and every backend that
traces, have it without rules of their own: a choice computes both sides and selects, a short loop is unrolled and its
carry stands still once the condition has failed. What was not selected gets gradients of exactly zero, which
elementwise operations keep even where their factor is not finite. A long loop is one instruction of the program, where
the trace can make it one.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from .. import backends, modes, tree
from ..autodiff import base
from ..autodiff.base import PYTHON_SCALARS
from ..autodiff.batching.stack import Stack
from ..autodiff.creation import given as asarray
from ..autodiff.graph import user_frame
from ..autodiff.sites import user_site
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, ShapeError, TraceError
from .carry import Carry, decision, number_like, own, tensor_of

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

#: Steps up to which a loop is unrolled in any case: what is next to each other in the program can be joined.
LONGEST_UNROLLED = 32
LONGEST_SILENT = 128  # steps; longer loops that are unrolled still compile, in time that grows with their length


def select(
    predicate: Tensor, true_function: Callable[..., Any], false_function: Callable[..., Any], operands: tuple[Any, ...]
) -> Any:
    """The results of both functions, and of them those of one: `predicate` is a boolean tensor without axes."""
    with np.errstate(all="ignore") if modes.mapping() is not None else nullcontext():  # of what is not chosen
        opposite = TENSORS.logical_not(predicate) if modes.mapping() is not None else predicate
        taken, structure = tree.flatten_variables(true_function(*_for_takers(predicate, own(operands))))
        other, other_structure = tree.flatten_variables(false_function(*_for_takers(opposite, own(operands))))
    if structure != other_structure:
        raise ShapeError(
            f"cond: {user_site()}: {_both('results of different structure', structure, other_structure)} "
            "Return trees of the same structure from both."
        )
    pairs = [_alike(structure, i, x, y, predicate.device) for i, (x, y) in enumerate(zip(taken, other))]
    return tree.unflatten(structure, [_chosen(predicate, x, y) for x, y in pairs])


def _chosen(predicate: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`x` if the predicate holds, else `y`: the trace remembers that a gradient reaches only one of them."""
    result = TENSORS.where(predicate, x, y)
    trace, node = modes.tracing(), getattr(result, "_node", None)
    if trace is not None and node is not None:
        trace.choices[node] = predicate._raw
    return result


def _for_takers(predicate: Tensor, operands: Any) -> Any:
    """What a function is called with, of which only some of many examples take the result: no gradient reaches it of
    the others, whose own may be NaN. Outside of `vmap`, the operands as they are."""
    if modes.mapping() is None:
        return operands

    def one(x: Any) -> Any:
        is_followed = isinstance(x, base.Tensor) and x.device == predicate.device and _has_derivative(x)
        return TENSORS.where(predicate, x, x.detach()) if is_followed else x

    return tree.map(one, operands, is_leaf=lambda x: not isinstance(x, (tuple, list, dict)))


def _has_derivative(x: Tensor) -> bool:
    """Whether a gradient or a tangent is wanted, at this level or further out."""
    while not x._carries_derivative and type(x._raw) is Stack:
        x = x._raw.tensor
    return x._carries_derivative


def _alike(structure: tree.Structure, i: int, x: Any, y: Any, device: str) -> tuple[Tensor, Tensor]:
    """One leaf of both results as tensors of one shape and dtype; a number takes the other one's dtype."""
    if type(x) in PYTHON_SCALARS and type(y) in PYTHON_SCALARS:
        x, y = asarray(x, device=device), asarray(y, device=device)
    elif type(x) in PYTHON_SCALARS:
        y = tensor_of("cond: the result of false_function", structure, i, y)
        x = number_like(x, y.dtype, y.device)
    elif type(y) in PYTHON_SCALARS:
        x = tensor_of("cond: the result of true_function", structure, i, x)
        y = number_like(y, x.dtype, x.device)
    else:
        x = tensor_of("cond: the result of true_function", structure, i, x)
        y = tensor_of("cond: the result of false_function", structure, i, y)
    path = structure._paths()[i]
    where = f"cond: {user_site()}: " + (f"at `{path}` " if path else "")
    if x.shape != y.shape:
        raise ShapeError(
            f"{where}{_both('results of different shapes', x.shape, y.shape)} Write `pb.broadcast_to(result, shape)` "
            "in the function with fewer elements, or pad its result."
        )
    if x.dtype != y.dtype:
        raise DtypeError(
            f"{where}{_both('results of different dtypes', x.dtype.name, y.dtype.name)} Write "
            f"`.astype(pb.{x.dtype.name})` in false_function."
        )
    return x, y


def _both(what: str, first: Any, second: Any) -> str:
    return (
        f"the functions give {what}: true_function {first}, false_function {second}. The predicate is not known when "
        "a program is compiled, so both run and one result is selected."
    )


def masked_loop(
    condition: Callable[[Any], Any],
    body: Callable[[Any], Any],
    carry: Carry,
    running: Tensor,
    step: int,
    max_steps: int | None,
) -> None:
    """Take the steps from `step` to `max_steps`, each of which moves the carry only if the loop is still running.

    `running` is whether the condition held before the first of them.
    """
    if max_steps is None and _is_any(running) is None:
        raise TraceError(
            f"while_loop: {user_site()}: the condition depends on values that are known only when the compiled program "
            "runs, so the number of steps is not known. Pass the most that it can take: "
            "`pb.while_loop(condition, body, initial, max_steps=...)`."
        )
    if max_steps is not None and is_rolled(max_steps - step, *carry.tensors, running):
        rolled_loop(condition, body, carry, running, max_steps - step)
        return
    if max_steps is not None:
        note_unrolled("while_loop", max_steps - step)
    while True:
        before = carry.tensors
        with np.errstate(all="ignore") if modes.mapping() is not None else nullcontext():
            after = carry.checked(body(_for_takers(running, carry.tree())), step)
        carry.tensors = [_moved(running, x, y) for x, y in zip(after, before)]
        step += 1
        if step == max_steps or _is_any(running) is False:
            return
        holds = decision("while_loop: what the condition returned", condition(carry.tree()))
        if holds is False:
            return
        if holds is not True:
            running = TENSORS.logical_and(running, holds)


def _is_any(running: Tensor) -> bool | None:
    """Whether any of many examples goes on; None if that is not known."""
    backend = running._backend
    raw = backend.values_in(running._raw)
    if raw is running._raw:
        return None
    backend = backends.of(raw)
    return bool(backend.to_numpy(raw).any()) if backend.is_concrete(raw) else None


def _moved(running: Tensor, after: Tensor, before: Tensor) -> Tensor:
    plain = type(after) is type(before) is base.Tensor  # duals may differ in their tangents alone
    if plain and after._raw is before._raw and after._node is before._node:
        return before  # the step passed it on
    return _chosen(running, after, before)


def is_rolled(steps: int, *tensors: Tensor) -> bool:
    """Whether a loop over these is to be one instruction of the program that is being traced."""
    trace = modes.tracing()
    if trace is None or not trace.rolls or modes.mapping() is not None or steps <= LONGEST_UNROLLED:
        return False
    return all(type(x) is base.Tensor for x in tensors)  # not with tangents, for example


def rolled_loop(
    condition: Callable[[Any], Any], body: Callable[[Any], Any], carry: Carry, running: Tensor, steps: int
) -> None:
    """Take so many steps as one instruction, each of which moves the carry only if the loop is still running."""

    def step(given: list[Tensor], _: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        *before, running = given
        carry.tensors = before
        # once more before the first step: after the last one nobody asks, and it might not be able to tell
        holds = decision("while_loop: what the condition returned", condition(carry.tree()))
        if not isinstance(holds, base.Tensor):
            holds = TENSORS.ones_like(running) if holds else TENSORS.zeros_like(running)
        running = TENSORS.logical_and(running, holds)
        after = carry.checked(body(carry.tree()), 0)
        # a choice that is the same for all at every step: whether there is a step at all is said below
        return [*[TENSORS.where(running, x, y) for x, y in zip(after, before)], running], []

    initial = [*carry.tensors, running]
    last, _ = modes.tracing().roll(step, (condition, body), initial, [], steps, False, running)
    carry.tensors = last[:-1]


def note_unrolled(loop: str, steps: int) -> None:
    """Warn, once for a line of the user's, that a long loop will be slow to compile."""
    frame = user_frame(sys._getframe(1))
    if steps <= LONGEST_SILENT or frame is None:
        return
    warnings.warn_explicit(
        f"{loop}: all {steps} steps become part of the compiled program one by one, so compiling takes time and memory "
        f"in proportion; the result is right. To compile faster, compile one step and call {loop} outside, or use a "
        "fused operation such as `pb.ssm_scan`.",
        RuntimeWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
