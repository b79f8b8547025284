"""The short way for elementwise operations on NumPy arrays in the default mode.

`apply` does the same for every operation, backend and mode. What is compiled here from one template
per number of inputs does it without loops, look-ups and tuples of arguments: a third of the time.
Whatever is out of the ordinary falls through to `apply`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import modes
from ..tensor.core import Tensor
from . import apply as general
from .graph import LIBRARY_FILES, Node, next_sequence_number, record_site
from .operation import OPERATIONS, Operation, compiled
from .tables import NUMPY_TABLE

_FINISH = """
            node.seq = next_seq()
            frame = getframe(1)
            node.code = code = frame.f_code
            node.lasti = frame.f_lasti
            if code.co_filename in LIBRARY_FILES:
                record_site(node)
            return t
"""

_UNARY = """
def function(x):
    m = mode()
    if type(x) is Tensor and (m is None or m is NO_GRAD):
        a = x._data
        if type(a) is ndarray:
            try:
                out = kernel(a)
            except Exception:
                return general(operation, (x,))
            if type(out) is not ndarray:
                out = asarray(out)
            t = Tensor()
            t._data = out
            p = x._node
            if p is None or m is NO_GRAD:
                t._node = None
                return t
            t._node = node = Node()
            node.recipe = recipe
            node.inputs = (p,)
            node.saved = ({saved})
            node.restore = None
{finish}
    return general(operation, (x,))
"""

_BINARY = """
def function(x, y):
    m = mode()
    if m is None or m is NO_GRAD:
        if type(x) is Tensor:
            a = x._data
            p = x._node
            if type(y) is Tensor:
                b = y._data
                q = y._node
                ordinary = type(a) is ndarray and type(b) is ndarray
            else:
                b = y
                q = None
                ordinary = type(a) is ndarray and (type(y) is float or type(y) is int) and a.dtype.kind != "V"
        else:
            a = x
            p = None
            b = y._data if type(y) is Tensor else None
            q = y._node if type(y) is Tensor else None
            ordinary = type(b) is ndarray and (type(x) is float or type(x) is int) and b.dtype.kind != "V"
        if ordinary:
            try:
                out = {expression}
            except Exception:
                return {fallback}
            if type(out) is not ndarray:
                out = asarray(out)
            t = Tensor()
            t._data = out
            if m is NO_GRAD:
                t._node = None
                return t
            if p is not None:
                t._node = node = Node()
                if q is not None:
                    node.recipe = recipe_xy
                    node.inputs = (p, q)
                    node.saved = ({saved_xy})
                    if a.shape == b.shape and a.dtype is b.dtype:
                        node.restore = None
                    else:
                        node.restore = ((a.shape, a.dtype), (b.shape, b.dtype))
                else:
                    node.recipe = recipe_x
                    node.inputs = (p,)
                    node.saved = ({saved_x})
                    if b is y or (a.shape == out.shape and a.dtype is out.dtype):
                        node.restore = None
                    else:
                        node.restore = ((a.shape, a.dtype),)
            elif q is not None:
                t._node = node = Node()
                node.recipe = recipe_y
                node.inputs = (q,)
                node.saved = ({saved_y})
                if a is x or (b.shape == out.shape and b.dtype is out.dtype):
                    node.restore = None
                else:
                    node.restore = ((b.shape, b.dtype),)
            else:
                t._node = None
                return t
{finish}
    return {fallback}
"""

# Python's operators reach NumPy's loops a little faster than calls of the ufuncs do.
_OPERATORS = {"add": "a + b", "subtract": "a - b", "multiply": "a * b", "divide": "a / b"}
_LOCAL_NAMES = {"x": "a", "y": "b", "out": "out"}


def _saved(recipe: Any) -> str:
    """The tuple of values to keep, as source, in terms of the template's local names."""
    parts = []
    for name in recipe.names:
        owner, _, meta = name.rpartition("_")
        parts.append(f"{_LOCAL_NAMES[owner]}.{meta}" if owner else _LOCAL_NAMES[name])
    return "".join(part + ", " for part in parts)


def operate(operation: Operation, x: Any, y: Any) -> Any:
    """A binary operator: lets Python try the other operand where it is nothing we know."""
    try:
        general.as_operand(x, operation), general.as_operand(y, operation)
    except TypeError:
        return NotImplemented
    return general.apply(operation, (x, y))


_STUBS = {
    ("x",): compiled("def function(x):\n    prepare()\n    return function(x)"),
    ("x", "y"): compiled("def function(x, y):\n    prepare()\n    return function(x, y)"),
}


def function_for(name: str, operator: bool = False) -> Any:
    """The function for a differentiable elementwise operation on tensors, or the operator method.

    It is compiled at its first call, so that importing the package stays fast: until then it is a stub, whose
    code is replaced.
    """
    operation = OPERATIONS[name]
    scope: dict[str, Any] = {}
    exec(_STUBS[operation.inputs], scope)
    function = scope["function"]
    function.__name__ = function.__qualname__ = name
    scope["prepare"] = lambda: _prepare(function, operation, operator)
    return function


def _prepare(function: Any, operation: Operation, operator: bool) -> None:
    """Give `function` its real code, and that code its names."""
    scope: dict[str, Any] = {
        "Tensor": Tensor,
        "Node": Node,
        "ndarray": np.ndarray,
        "asarray": np.asarray,
        "kernel": getattr(NUMPY_TABLE.xp, operation.name),
        "mode": modes.current,
        "NO_GRAD": modes.NO_GRAD,
        "next_seq": next_sequence_number,
        "getframe": sys._getframe,
        "LIBRARY_FILES": LIBRARY_FILES,
        "record_site": record_site,
        "operation": operation,
        "general": general.apply,
        "operate": operate,
    }
    if operation.inputs == ("x",):
        scope["recipe"] = NUMPY_TABLE.recipe(operation, (True,))
        source = _UNARY.format(saved=_saved(scope["recipe"]), finish=_FINISH)
    else:
        saved = {}
        for label, mask in (("xy", (True, True)), ("x", (True, False)), ("y", (False, True))):
            scope[f"recipe_{label}"] = recipe = NUMPY_TABLE.recipe(operation, mask)
            saved[f"saved_{label}"] = _saved(recipe)
        fallback = "operate(operation, x, y)" if operator else "general(operation, (x, y))"
        expression = _OPERATORS.get(operation.name, "kernel(a, b)")
        source = _BINARY.format(expression=expression, fallback=fallback, finish=_FINISH, **saved)
    function.__globals__.update(scope)
    made: dict[str, Any] = {}
    exec(compiled(source), made)  # made of the rules' argument names alone
    function.__code__ = made["function"].__code__
