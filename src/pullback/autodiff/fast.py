"""The short way for operations on NumPy arrays in the default mode.

`apply` does the same for every operation, backend and mode. What is compiled here from templates does it
without loops, look-ups and tuples of arguments: a third of the time. Whatever is out of the ordinary falls
through to the function that was decorated with `fast_path`, or to `apply`.
"""

from __future__ import annotations

import sys
from functools import cache, update_wrapper
from typing import Any, Callable, TypeVar

import numpy as np

from .. import modes
from ..operations import OPERATIONS, Operation
from . import apply as general, base
from .graph import LIBRARY, Node, next_sequence_number, record_site
from .recipe import compiled
from .tables import NUMPY_TABLE

F = TypeVar("F", bound=Callable[..., Any])

_users_code: list[Any] = [None]  # the code that called last and is not the library's: looked at first

_FINISH = """
            node.seq = next_seq()
            frame = getframe(1)
            node.code = code = frame.f_code
            node.lasti = frame.f_lasti
            if code is not users_code[0]:
                if code.co_filename.startswith(LIBRARY):
                    record_site(node)
                else:
                    users_code[0] = code
            return t
"""

_UNARY = """
def function(x):
    m = mode()
    if type(x) is Tensor and (m is None or m is NO_GRAD):
        a = x._raw
        if type(a) is ndarray:
            try:
                out = kernel(a)
            except Exception:
                return general(x)
            if type(out) is not ndarray:
                out = asarray(out)
            t = Tensor()
            t._raw = out
            p = x._node
            if p is None or m is NO_GRAD:
                t._node = None
                return t
            t._node = node = Node()
            node.recipe = recipe
            node.inputs = (p,)
            node.saved = ({saved})
            node.unbroadcast = None
{finish}
    return general(x)
"""

_BINARY = """
def function(x, y):
    m = mode()
    if m is None or m is NO_GRAD:
        if type(x) is Tensor:
            a = x._raw
            p = x._node
            if type(y) is Tensor:
                b = y._raw
                q = y._node
                ordinary = type(a) is ndarray and type(b) is ndarray
            else:
                b = y
                q = None
                ordinary = type(a) is ndarray and (type(y) is float or type(y) is int) and a.dtype.kind != "V"
        else:
            a = x
            p = None
            b = y._raw if type(y) is Tensor else None
            q = y._node if type(y) is Tensor else None
            ordinary = type(b) is ndarray and (type(x) is float or type(x) is int) and b.dtype.kind != "V"
        if ordinary:
            try:
                out = {expression}
            except Exception:
                return general(x, y)
            if type(out) is not ndarray:
                out = asarray(out)
            t = Tensor()
            t._raw = out
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
                        node.unbroadcast = None
                    else:
                        node.unbroadcast = ((a.shape, a.dtype), (b.shape, b.dtype))
                else:
                    node.recipe = recipe_x
                    node.inputs = (p,)
                    node.saved = ({saved_x})
                    if b is y or (a.shape == out.shape and a.dtype is out.dtype):
                        node.unbroadcast = None
                    else:
                        node.unbroadcast = ((a.shape, a.dtype),)
            elif q is not None:
                t._node = node = Node()
                node.recipe = recipe_y
                node.inputs = (q,)
                node.saved = ({saved_y})
                if a is x or (b.shape == out.shape and b.dtype is out.dtype):
                    node.unbroadcast = None
                else:
                    node.unbroadcast = ((b.shape, b.dtype),)
            else:
                t._node = None
                return t
{finish}
    return general(x, y)
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
        pair = general.without_list(x, y)
        if pair is None and isinstance(x, base.Tensor) and isinstance(y, (np.ndarray, np.generic)):
            raise  # Python would have NumPy take the tensor for an array
        return NotImplemented if pair is None else general.apply(operation, pair)
    return general.apply(operation, (x, y))


# Any operation with one output and no residuals: its inputs are tensors, or None where it allows that.
_GENERAL = """
def function({arguments}):
    m = mode()
    if (m is None or m is NO_GRAD) and {ordinary}:
        {unpack}
        try:
            out = kernel({raws}{static})
        except Exception:
            return apply(operation, ({inputs}), ({static}))
        if type(out) is not ndarray:
            out = asarray(out)
        t = Tensor()
        t._raw = out
        kind = out.dtype.kind
        if m is NO_GRAD or ({untracked}) or kind in "biu":
            t._node = None
            return t
        if kind not in "fc":
            return apply(operation, ({inputs}), ({static}))
        mask = ({mask})
        recipe = recipes.get(mask) or recipe_for(mask)
        t._node = node = Node()
        node.recipe = recipe
        node.inputs = {parents}
        node.saved = recipe.gather(({raws}), ({static}), (out,), ())
        node.unbroadcast = None if {same_dtype} else unbroadcasting(operation, ({raws}), ({nodes}), out)
{finish}
    return apply(operation, ({inputs}), ({static}))
"""


def call_for(name: str) -> Any:
    """The function (*inputs, *static) of an operation, with its kernel's arguments in its kernel's order."""
    operation = OPERATIONS[name]
    arguments = ", ".join((*operation.inputs, *operation.static))
    return _stub(name, arguments, lambda function: _prepare_call(function, operation))


def _prepare_call(function: Any, operation: Operation) -> None:
    inputs = operation.inputs
    recipes: dict[tuple[bool, ...], Any] = {}

    def recipe_for(mask: tuple[bool, ...]) -> Any:
        recipes[mask] = recipe = NUMPY_TABLE.recipe(operation, mask)
        return recipe

    def listed(pattern: str, names: tuple[str, ...] = inputs) -> str:
        return "".join(pattern.format(name) + ", " for name in names)

    optional = [f"({x} is None or type({x}) is Tensor and type({x}._raw) is ndarray)" for x in inputs[1:]]
    first = f"type({inputs[0]}) is Tensor and type({inputs[0]}._raw) is ndarray"
    unpack = [f"{inputs[0]}_a = {inputs[0]}._raw; {inputs[0]}_n = {inputs[0]}._node"] + [
        f"{x}_a, {x}_n = (None, None) if {x} is None else ({x}._raw, {x}._node)" for x in inputs[1:]
    ]
    source = _GENERAL.format(
        arguments=", ".join((*inputs, *operation.static)),
        ordinary=" and ".join([first, *optional]),
        unpack="\n        ".join(unpack),
        raws=listed("{}_a"),
        static=listed("{}", operation.static),
        inputs=listed("{}"),
        nodes=listed("{}_n"),
        untracked=" and ".join(f"{x}_n is None" for x in inputs),
        mask=listed("{}_n is not None"),
        parents=f"({inputs[0]}_n,)" if len(inputs) == 1 else f"tuple([n for n in ({listed('{}_n')}) if n is not None])",
        same_dtype=" and ".join(
            [f"{inputs[0]}_a.dtype is out.dtype"] + [f"({x}_a is None or {x}_a.dtype is out.dtype)" for x in inputs[1:]]
        ),
        finish=_FINISH.replace("\n            ", "\n        "),
    )
    names = {"recipes": recipes, "recipe_for": recipe_for, "unbroadcasting": general.unbroadcasting}
    _replace_code(function, source, {**_names_for(operation), **names})


def fast_path(function: F) -> F:
    """Give the function of a differentiable operation with one or two inputs, which calls `apply`, the short way."""
    return _before(function, OPERATIONS[function.__name__.lstrip("_")])


def fast_operator(name: str) -> Callable[[F], F]:
    """The same for a method that is one of Python's operators."""
    return lambda method: _before(method, OPERATIONS[name])


def _before(function: F, operation: Operation) -> F:
    """The short way, and `function` where it does not lead on."""
    arguments = ", ".join(operation.inputs)
    stub = _stub(operation.name, arguments, lambda made: _prepare_function(made, operation, function))
    update_wrapper(stub, function)
    return stub


def _prepare_function(function: Any, operation: Operation, otherwise: Any) -> None:
    names = {**_names_for(operation), "general": otherwise}
    if operation.inputs == ("x",):
        names["recipe"] = NUMPY_TABLE.recipe(operation, (True,))
        source = _UNARY.format(saved=_saved(names["recipe"]), finish=_FINISH)
    else:
        saved = {}
        for label, mask in (("xy", (True, True)), ("x", (True, False)), ("y", (False, True))):
            names[f"recipe_{label}"] = recipe = NUMPY_TABLE.recipe(operation, mask)
            saved[f"saved_{label}"] = _saved(recipe)
        expression = _OPERATORS.get(operation.name, "kernel(a, b)")
        source = _BINARY.format(expression=expression, finish=_FINISH, **saved)
    _replace_code(function, source, names)


# -- compiling at the first call -----------------------------------------------------------------


def _stub(name: str, arguments: str, prepare: Any) -> Any:
    """A function that gets its real code when it is first called, so that importing the package stays fast."""
    scope: dict[str, Any] = {}
    exec(_stub_code(arguments), scope)
    function = scope["function"]
    function.__name__ = function.__qualname__ = name
    scope["prepare"] = lambda: prepare(function)
    return function


@cache
def _stub_code(arguments: str) -> Any:
    return compiled(f"def function({arguments}):\n    prepare()\n    return function({arguments})")


def _names_for(operation: Operation) -> dict[str, Any]:
    """The names that every template uses."""
    return {
        "Tensor": base.Tensor,
        "Node": Node,
        "ndarray": np.ndarray,
        "asarray": np.asarray,
        "kernel": getattr(NUMPY_TABLE.xp, operation.name),
        "mode": modes.current,
        "NO_GRAD": modes.NO_GRAD,
        "next_seq": next_sequence_number,
        "getframe": sys._getframe,
        "LIBRARY": LIBRARY,
        "users_code": _users_code,
        "record_site": record_site,
        "operation": operation,
        "apply": general.apply,
    }


def _replace_code(function: Any, source: str, names: dict[str, Any]) -> None:
    """Give `function` its real code, and that code its names."""
    function.__globals__.update(names)
    made: dict[str, Any] = {}
    exec(compiled(source), made)  # made of the rules' argument names alone
    function.__code__ = made["function"].__code__
