"""How operations work on stacks: the forms that most of them share. An operation's `batch` mark names its form; one of
its own has its name.

A form takes a `Call` and returns tensors of the level below with the examples along their first axis.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Callable

import numpy as np

from ...backends import portable
from ...errors import VmapError
from ...operations import Operation
from ..sites import user_site
from ..tables import TENSORS
from .call import Call

Form = Callable[[Call], Any]
FORMS: dict[str, Form] = {}
#: Forms that give what kernels keep for their gradients, too, where a call wants it.
KEEPING_RESIDUALS: set[Form] = set()
#: Kernels that rules use beside operations, and that have forms of their own; else their portable form is taken.
HELPERS = {
    operation.name: operation
    for operation in (
        Operation(
            "cross_entropy_gradient", "g x target weight lse normalizer", "ignore_index reduction label_smoothing"
        ),
        Operation("outer", "x y"),
        Operation("attention_gradient", "g q k v mask out lse", "needs is_causal scale dropout key offset"),
    )
}


def form(function: Form) -> Form:
    """Make a form known by its name."""
    FORMS[function.__name__.rstrip("_")] = function
    return function


def form_for(operation: Operation) -> Form | None:
    """The form of an operation; None for one that is done by its portable form."""
    if operation.elementwise:
        return aligned
    if "getitem" not in FORMS:
        from . import contractions, indexing, losses, networks  # noqa: F401 - they make their forms known
    found = FORMS[operation.batch] if operation.batch else FORMS.get(operation.name)
    if found is not None:
        return found
    return None if _has_portable_form(operation.name) else examples


def form_for_none(operation: Operation) -> Form | None:
    """The form of an operation where there are no examples at all."""
    is_made_of_others = HELPERS.get(operation.name) is operation and _has_portable_form(operation.name)
    return None if is_made_of_others else examples


@cache
def _has_portable_form(name: str) -> bool:
    try:
        portable.bind(name, None)
    except AttributeError:
        return False
    return True


@form
def aligned(call: Call) -> Any:
    """All inputs broadcast against each other, as those of elementwise operations do."""
    rank = max([call.rank(i) for i in range(len(call.xs))])
    return call.run([call.aligned(i, rank) for i in range(len(call.xs))], call.static)


@form
def following(call: Call) -> Any:
    """All inputs broadcast to the first one, whose shape the result has: so that one has the examples in any case."""
    rank = call.rank(0)
    return call.run([call.spread(0), *[call.aligned(i, rank) for i in range(1, len(call.xs))]], call.static)


@form
def leading(call: Call) -> Any:
    """Only the last axes of the inputs matter, and axes are negative: further ones may come first."""
    if len(call.xs) == 1:
        return call.run(call.xs, call.static)
    return call.run([call.spread(i) for i in range(len(call.xs))], call.static)


KEEPING_RESIDUALS.add(leading)


@form
def first(call: Call) -> Any:
    """So it is with the first input; the others are the same for all examples, or the portable form is taken."""
    if any(call.stacked[1:]):
        return None
    return call.run([call.spread(0), *call.xs[1:]], call.static)


KEEPING_RESIDUALS.add(first)


@form
def examples(call: Call) -> Any:
    """Example by example."""
    call = call.on_tensors()
    results = []
    for number in range(call.size):
        inputs, static = call.example(number)
        results.append(call.run(inputs, static))
    if not results:
        return _no_examples(call)
    if type(results[0]) is tuple:
        return tuple([TENSORS.stack(list(parts), -1 - parts[0].ndim) for parts in zip(*results)])
    return TENSORS.stack(results, -1 - results[0].ndim)


def _no_examples(call: Call) -> Any:
    """What is computed of no example at all, in the shape that an example says whose matrices have an inverse."""
    inputs = [_identity(x) if flag else x for x, flag in zip(call.xs, call.stacked)]
    with np.errstate(all="ignore"):  # only the shape is wanted
        result = call.run(inputs, call.static)
    outs = result if type(result) is tuple else (result,)
    empty = tuple([TENSORS.zeros((0, *out.shape), out._raw.dtype, out) for out in outs])
    return empty if type(result) is tuple else empty[0]


@form
def refused(call: Call) -> Any:
    """The shape of its result depends on values, so that examples could have different ones."""
    raise VmapError(
        f"{user_site()}: `{call.operation.name}` has a result whose shape depends on values, which may differ from "
        f"example to example inside of pb.vmap. Write {call.operation.instead or 'it outside of the function'}."
    )


def _identity(x: Any) -> Any:
    """Ones on the diagonal of the last two axes; zeros where there are none, or no real numbers."""
    shape = x.shape[1:]
    made = TENSORS.zeros(shape, x._raw.dtype, x)
    if len(shape) < 2 or x.dtype.kind not in ("float", "complex"):
        return made
    ones = TENSORS.full((*shape[:-2], min(shape[-2:])), 1, x._raw.dtype, x)
    return TENSORS.place_diagonal(ones, shape, 0)


# -- reductions ------------------------------------------------------------------------------------


@form
def reduction(call: Call) -> Any:
    """Over `axis`, which may be None for all that one example has."""
    names = call.operation.static
    place = names.index("axis")
    if call.static[place] is not None:
        return call.run(call.xs, call.static)
    shape = call.shape(0)
    static = list(call.static)
    static[place] = (-1,)
    keeps = "keepdims" in names and static[names.index("keepdims")]
    if keeps:
        static[names.index("keepdims")] = False
    out = call.run([call.xp.reshape(call.xs[0], (call.size, math.prod(shape)))], static)
    return call.xp.reshape(out, (call.size, *(1,) * len(shape))) if keeps else out


# -- shapes ----------------------------------------------------------------------------------------


@form
def reshape(call: Call) -> Any:
    shape = tuple(call.static[0])
    if -1 in shape:
        known = -math.prod(shape)
        shape = tuple([math.prod(call.shape(0)) // known if n == -1 else n for n in shape])
    return call.xp.reshape(call.xs[0], (call.size, *shape))


@form
def broadcast_to(call: Call) -> Any:
    shape = tuple(call.static[0])
    return call.xp.broadcast_to(call.aligned(0, len(shape)), (call.size, *shape))


@form
def permute_dims(call: Call) -> Any:
    rank = call.rank(0)
    axes = tuple([axis - rank if axis >= 0 else axis for axis in call.static[0]])
    return call.xp.permute_dims(call.xs[0], (-len(axes) - 1, *axes))


@form
def every_axis(call: Call) -> Any:
    """Along `axis`, which may be None: then over all axes, in their order."""
    place = call.operation.static.index("axis")
    if call.static[place] is not None:
        return call.run(call.xs, call.static)
    shape = call.shape(0)
    static = list(call.static)
    static[place] = (-1,)
    flat = call.xp.reshape(call.xs[0], (call.size, math.prod(shape)))
    return call.xp.reshape(call.run([flat], static), (call.size, *shape))


@form
def tile(call: Call) -> Any:
    repetitions = tuple(call.static[0])
    rank = max(len(repetitions), call.rank(0))
    repetitions = (1,) * (rank - len(repetitions)) + repetitions
    return call.xp.tile(call.aligned(0, rank), (1, *repetitions))


@form
def pad(call: Call) -> Any:
    widths, value = call.static
    return call.xp.pad(call.xs[0], ((0, 0), *widths), value)


@form
def lists(call: Call) -> Any:
    """A list of arrays of the same rank, put together along a negative axis."""
    return call.run([call.spread(i) for i in range(len(call.xs))], call.static)


@form
def place_diagonal(call: Call) -> Any:
    shape, offset = call.static
    return call.xp.place_diagonal(call.xs[0], (call.size, *shape), offset)
