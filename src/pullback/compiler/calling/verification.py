"""`with pb.compiled(verify=True)`: compiled calls are made twice, the second time eagerly, and compared."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator

import numpy as np

from ... import tree
from ...errors import TraceError
from ...tensor.core import Tensor

_verifying: ContextVar[bool] = ContextVar("pullback_verifying", default=False)
#: Largest difference allowed, relative to the largest magnitude of the array: some hundred roundings.
TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-10}


@contextmanager
def compiled(*, verify: bool = False) -> Iterator[None]:
    """How compiled functions run inside the block: with `verify`, the function itself runs beside and must agree.

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


def verified(compiled_function: Any, made: Any, arguments: Any, args: Any, kwargs: Any) -> Any:
    """Run the program, put everything back as it was, run the function, and compare."""
    name = compiled_function._name
    watched = [tensor for entry in made.inputs for tensor in entry.tensors]
    watched += [leaf for leaf in arguments.leaves if isinstance(leaf, Tensor)]
    watched = list({id(tensor): tensor for tensor in watched}.values())
    before = [np.array(tensor._data) for tensor in watched]
    steps = [(slot, slot.step) for slot in made.slots]
    states = [(draws.generator, draws.generator.state) for draws in made.draws]
    cells = [(cell, cell.value) for cell, _, _ in made.cells]
    result = made.run(arguments)
    after = [np.array(tensor._data) for tensor in watched]
    for tensor, array in zip(watched, before):
        tensor._data = array
    for slot, step in steps:
        slot.step = step
    for generator, state in states:
        generator.state = state
    for cell, value in cells:
        cell.value = value
    expected = compiled_function.function(*args, **kwargs)
    for path, ours, theirs in zip(tree.paths(expected), tree.leaves(result), tree.leaves(expected)):
        _compare(f"{name}: result{path}", ours, theirs)
    for number, (tensor, array) in enumerate(zip(watched, after)):
        _compare(f"{name}: tensor {number} of shape {tensor.shape} from outside", array, tensor)
    return expected


def _compare(what: str, ours: Any, theirs: Any) -> None:
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
    if not np.array_equal(finite, np.isfinite(x)):
        raise TraceError(f"{what} is finite in other places compiled than eagerly.")
    scale = float(np.abs(y[finite]).max(initial=0.0))
    worst = float(np.abs(np.where(finite, x, 0) - np.where(finite, y, 0)).max())
    width = y.dtype.itemsize // (2 if y.dtype.kind == "c" else 1)
    if worst > TOLERANCE[width] * max(scale, 1e-30):
        raise TraceError(f"{what} differs between compiled and eager by {worst:.3g}, of {scale:.3g} at most.")


def _plain(x: Any) -> Any:
    raw = x.detach()._data if isinstance(x, Tensor) else np.asarray(x)
    return raw.astype(np.float32) if raw.dtype.name == "bfloat16" else raw
