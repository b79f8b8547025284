"""`with pb.compiled(verify=True)`: compiled calls are made twice, the second time eagerly, and compared."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator

import numpy as np

from ... import backends, modes, tree
from ...autodiff.graph import Leaf
from ...errors import TraceError
from ...tensors.tensor import Tensor
from ..iteration import every_instruction
from .arguments import moved

_verifying: ContextVar[bool] = ContextVar("pullback_verifying", default=False)
#: Largest difference allowed, relative to the largest magnitude of the array: some hundred roundings.
TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-10}


@contextmanager
def compiled(*, verify: bool = False) -> Iterator[None]:
    """How compiled functions run inside a `with` block: with `verify`, the function itself runs beside and must agree.

    What is returned, and what is left in parameters and optimizers, is then what the function itself computed.

    >>> import pullback as pb
    >>> double = pb.compile(lambda x: x * 2)
    >>> with pb.compiled(verify=True):
    ...     double(pb.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    token = _verifying.set(verify)
    try:
        yield
    finally:
        _verifying.reset(token)


def is_verifying() -> bool:
    return _verifying.get()


def verified(compiled_function: Any, made: Any, arguments: Any, tell: Any = None) -> Any:
    """Run the program, put everything back as it was, run the function, and compare; its result.

    A difference is an error, or is told.
    """
    name = compiled_function._name
    args, kwargs = arguments.given
    args, kwargs = moved(args, kwargs, made.device)
    watched = [holder for entry in made.inputs if (holder := entry.holder) is not None]
    watched += [leaf for leaf in arguments.leaves if isinstance(leaf, Tensor)]
    watched = list({id(tensor): tensor for tensor in watched}.values())
    before = [tensor._raw for tensor in watched]  # held here, so that the program updates copies
    variables = _variables(watched)
    steps = [(slot, slot.step) for slot in made.slots]
    states = [(draws.generator, draws.generator.state) for draws in made.draws]
    cells = [(cell, cell.value) for cell, _, _ in made.cells]
    left = [(one.place, one.place.get()) for one in made.left]
    result = made.run(arguments, made.gathered(arguments))
    after = [np.array(_numpys(tensor._raw)) for tensor in watched]
    gradients = [None if cell.value is None else np.array(_numpys(cell.value._raw)) for cell, _ in cells]
    for tensor, array in zip(watched, before):
        tensor._raw = array
    for leaf, references, clones in variables:
        leaf.clones = references
        for clone in clones:
            clone._node = leaf
    for slot, step in steps:
        slot.step = step
    for generator, state in states:
        generator.state = state
    for cell, value in cells:
        cell.value = value
    for place, value in left:
        if place.get() is not value:
            place.put(value)
    with modes.changed(inlining=True):
        expected = compiled_function.function(*args, **kwargs)
    try:
        _compare_all(name, made.program, result, expected, watched, after, cells, gradients)
    except TraceError as error:
        if tell is None:
            raise
        tell(error)
    return expected


def _compare_all(
    name: str, program: Any, result: Any, expected: Any, watched: Any, after: Any, cells: Any, gradients: Any
) -> None:
    width = _least_width(program)
    for path, ours, theirs in zip(tree.paths(expected), tree.leaves(result), tree.leaves(expected)):
        _compare(f"{name}: result{path}", ours, theirs, width)
    largest = _largest([cell.value for cell, _ in cells])  # a gradient that should vanish is measured by the others
    are_gradients = {id(cell.value) for cell, _ in cells}
    for number, (tensor, array) in enumerate(zip(watched, after)):
        least = largest if id(tensor) in are_gradients else 0.0
        _compare(f"{name}: tensor {number} of shape {tensor.shape} from outside", array, tensor, width, least)
    for (cell, _), array in zip(cells, gradients):
        if (array is None) is not (cell.value is None):
            raise TraceError(
                f"{name}: a variable has {'no' if array is None else 'a'} gradient compiled, not so eagerly."
            )
        _compare(f"{name}: the gradient of a variable", array, cell.value, width, largest)


def _variables(tensors: list[Tensor]) -> list[tuple[Leaf, list[Any], list[Tensor]]]:
    """The variables among tensors, and the clones that share each until one of them is written."""
    leaves = {id(tensor._node): tensor._node for tensor in tensors if isinstance(tensor._node, Leaf)}
    found = []
    for leaf in leaves.values():
        alive = [clone for reference in leaf.clones if (clone := reference()) is not None and clone._node is leaf]
        found.append((leaf, list(leaf.clones), alive))
    return found


def _least_width(program: Any) -> int:
    """Bytes of the shortest floating-point numbers in a program: under autocast all is as exact as those."""
    values = [*program.inputs, *(value for step, _ in every_instruction(program) for value in step.results)]
    return min([value.dtype.itemsize for value in values if _is_real(value.dtype)], default=8)


def _is_real(dtype: Any) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _largest(tensors: list[Any]) -> float:
    """The largest finite magnitude in some tensors."""
    arrays = [_plain(tensor) for tensor in tensors if tensor is not None]
    return max([float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) for x in arrays], default=0.0)


def _compare(what: str, ours: Any, theirs: Any, least_width: int, least_scale: float = 0.0) -> None:
    if not isinstance(theirs, (Tensor, np.ndarray)):
        return
    x, y = _plain(ours), _plain(theirs)
    if x.shape != y.shape or x.dtype != y.dtype:
        raise TraceError(f"{what} is {x.dtype} of shape {x.shape} compiled, {y.dtype} of shape {y.shape} eagerly.")
    if y.dtype.kind not in "fc":
        if not np.array_equal(x, y):
            raise TraceError(f"{what} differs between compiled and eager in {int((x != y).sum())} elements.")
        return
    if not x.size:
        return
    finite = np.isfinite(y)
    if not np.array_equal(np.where(finite, 0, y), np.where(np.isfinite(x), 0, x), equal_nan=True):
        raise TraceError(f"{what} is finite in other places compiled than eagerly, or infinite in another way.")
    scale = max(float(np.abs(y[finite]).max(initial=0.0)), least_scale)
    worst = float(np.abs(np.where(finite, x, 0) - np.where(finite, y, 0)).max())
    width = min(y.dtype.itemsize // (2 if y.dtype.kind == "c" else 1), least_width)
    if worst > TOLERANCE[width] * max(scale, 1e-30):
        raise TraceError(f"{what} differs between compiled and eager by {worst:.3g}, of {scale:.3g} at most.")


def _numpys(raw: Any) -> Any:
    """An array of any library as one of NumPy's."""
    return raw if type(raw) is np.ndarray else backends.of(raw).to_numpy(raw)


def _plain(x: Any) -> Any:
    raw = np.asarray(_numpys(x.detach()._raw) if isinstance(x, Tensor) else x)
    return raw.astype(np.float32) if raw.dtype.name == "bfloat16" else raw
