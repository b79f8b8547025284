"""The short way for shapes, indexing and products on NumPy arrays: what `autodiff.fast` is to elementwise operations.

`apply` does the same for every backend and mode; whatever is out of the ordinary falls through to it.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from .. import modes
from ..autodiff.apply import apply
from ..autodiff.graph import Node, next_sequence_number, record_site
from ..autodiff.operation import OPERATIONS, Operation
from ..autodiff.tables import NUMPY_TABLE
from ..tensor.core import Tensor

_ndarray = np.ndarray
_mode = modes.current
_NO_GRAD = modes.NO_GRAD


def _saver(operation: Operation, recipe: Any) -> Callable[..., tuple[Any, ...]]:
    """A function of the raw inputs, the static arguments and the result that gives what the rule needs kept."""
    parts = []
    for name in recipe.names:
        owner, _, meta = name.rpartition("_")
        parts.append(f"{owner}.{meta}" if owner in operation.inputs and meta in ("shape", "dtype") else name)
    arguments = ", ".join((*operation.inputs, *operation.static, "out"))
    return eval(f"lambda {arguments}: ({''.join(part + ', ' for part in parts)})")  # made of names alone


def one_array(name: str) -> Callable[..., Tensor]:
    """The function (x, *static) for an operation on one array whose result has the dtype of `x`."""
    operation = OPERATIONS[name]
    kernel = getattr(NUMPY_TABLE.xp, name)
    recipe = NUMPY_TABLE.recipe(operation, (True,))
    save = _saver(operation, recipe)

    def function(x: Any, *static: Any) -> Any:
        mode = _mode()
        if type(x) is Tensor and (mode is None or mode is _NO_GRAD):
            a = x._data
            if type(a) is _ndarray:
                try:
                    out = kernel(a, *static)
                except Exception:
                    return apply(operation, (x,), static)
                if type(out) is not _ndarray:
                    out = np.asarray(out)
                result = Tensor()
                result._data = out
                parent = x._node
                if parent is None or mode is not None:
                    result._node = None
                    return result
                result._node = node = Node()
                node.recipe = recipe
                node.inputs = (parent,)
                node.saved = save(a, *static, out)
                node.restore = None
                node.seq = next_sequence_number()
                record_site(node)
                return result
        return apply(operation, (x,), static)

    return function


_LINEAR = OPERATIONS["linear"]
_linear_kernel = NUMPY_TABLE.xp.linear
_linear_recipes: dict[tuple[bool, ...], tuple[Any, Callable[..., tuple[Any, ...]]]] = {}


def linear(x: Any, weight: Any, bias: Any) -> Tensor | None:
    """The operation `linear`, or None where it is not an ordinary case."""
    mode = _mode()
    if not (type(x) is Tensor and type(weight) is Tensor and (mode is None or mode is _NO_GRAD)):
        return None
    a, w = x._data, weight._data
    b: Any
    b, q = (None, None) if bias is None else (bias._data, bias._node) if type(bias) is Tensor else (False, None)
    if not (type(a) is _ndarray and type(w) is _ndarray and (b is None or type(b) is _ndarray)):
        return None
    if w.ndim != 2 or a.dtype is not w.dtype or (b is not None and (b.dtype is not a.dtype or b.shape != w.shape[:1])):
        return None
    try:
        out = _linear_kernel(a, w, b)
    except Exception:
        return None  # the general way makes the error
    result = Tensor()
    result._data = out
    n, p = x._node, weight._node
    if mode is not None or (n is None and p is None and q is None):
        result._node = None
        return result
    mask = (n is not None, p is not None, q is not None)
    found = _linear_recipes.get(mask)
    if found is None:
        recipe = NUMPY_TABLE.recipe(_LINEAR, mask)
        found = _linear_recipes[mask] = (recipe, _saver(_LINEAR, recipe))
    result._node = node = Node()
    node.recipe = found[0]
    node.inputs = tuple([parent for parent in (n, p, q) if parent is not None])
    node.saved = found[1](a, w, b, out)
    node.restore = None
    node.seq = next_sequence_number()
    record_site(node)
    return result
