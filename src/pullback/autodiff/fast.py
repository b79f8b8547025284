"""The short way for operations on NumPy arrays in the default mode.

`apply` does the same for every operation, backend and mode. What is compiled here from templates does it
without loops, look-ups and tuples of arguments: a third of the time. Whatever is out of the ordinary falls
through to the function that was decorated with `fast_path`, or to `apply`.
"""

from __future__ import annotations

import sys
from functools import cache, update_wrapper
from typing import Any, Callable, NamedTuple, TypeVar

import numpy as np

from .. import backends, modes
from ..operations import OPERATIONS, Operation
from . import apply as general, base
from .graph import LIBRARY, Node, next_sequence_number, record_site, users_code
from .recipe import Table, compiled
from .tables import NUMPY_TABLE, table_for

F = TypeVar("F", bound=Callable[..., Any])


class Library(NamedTuple):
    """What the templates need of a library whose arrays are all of one type."""

    table: Table
    array_type: type
    from_scalar: Any
    inexact: frozenset[Any] = frozenset()  # dtypes that can have a gradient
    number_fits: str = "{}.dtype in inexact"  # whether a Python number beside an array leaves its dtype as it is
    look: str = "pass"
    is_exact: str = "out.dtype not in inexact"
    is_unknown: str = "False"


NUMPY = Library(
    NUMPY_TABLE,
    np.ndarray,
    np.asarray,
    number_fits='{}.dtype.kind != "V"',
    look="kind = out.dtype.kind",
    is_exact='kind in "biu"',
    is_unknown='kind not in "fc"',
)


class Ways(dict[type, Any]):
    """The short ways of an operation on the arrays of other libraries, by their type; None where there is none."""

    def __init__(self, operation: Operation, prepare: Any, *more: Any) -> None:
        self._operation, self._prepare, self._more = operation, prepare, more

    def __missing__(self, array_type: type) -> Any:
        backend = backends.of_type(array_type)
        way = None
        if backend is not None and backend.inexact:
            operation = self._operation
            library = Library(table_for(backend), array_type, backend.from_scalar, backend.inexact)
            arguments = ", ".join((*operation.inputs, *(() if self._more else operation.static)))
            way = _stub(operation.name, arguments, lambda made: self._prepare(made, operation, library, *self._more))
        self[array_type] = way
        return way


class _Nowhere(dict[type, Any]):
    def __missing__(self, array_type: type) -> None:
        return None


NOWHERE = _Nowhere()

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
    m = current_mode()
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
        way = ways[type(a)]
        if way is not None:
            return way(x)
    return general(x)
"""

_BINARY = """
def function(x, y):
    m = current_mode()
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
                ordinary = type(a) is ndarray and (type(y) is float or type(y) is int) and {number_fits_a}
        else:
            a = x
            p = None
            b = y._raw if type(y) is Tensor else None
            q = y._node if type(y) is Tensor else None
            ordinary = type(b) is ndarray and (type(x) is float or type(x) is int) and {number_fits_b}
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
        way = ways[type(a if type(x) is Tensor else b)]
        if way is not None:
            return way(x, y)
    return general(x, y)
"""

# Python's operators reach NumPy's loops a little faster than calls of the ufuncs do.
_OPERATORS = {"add": "a + b", "subtract": "a - b", "multiply": "a * b", "divide": "a / b"}
_LOCAL_NAMES = {"x": "a", "y": "b", "out": "out"}


def _finish(library: Library) -> str:
    """The end of a template; another library's is called by NumPy's, which the user called."""
    return _FINISH if library is NUMPY else _FINISH.replace("getframe(1)", "getframe(2)")


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


# Any operation: its inputs are tensors, or None where it allows that.
_GENERAL = """
def function({arguments}):
    m = current_mode()
    if (m is None or m is NO_GRAD) and {ordinary}:
        {unpack}
        try:
            {results} = kernel({raws}{static})
        except Exception:
            return apply(operation, ({inputs}), ({static}))
{one_or_many}
    if type({first}) is Tensor and (m is None or m is NO_GRAD):
        way = ways[type({first}._raw)]
        if way is not None:
            return way({arguments})
    return apply(operation, ({inputs}), ({static}))
"""

_ONE = """
        if type(out) is not ndarray:
            out = asarray(out)
        t = Tensor()
        t._raw = out
        {look}
        if m is NO_GRAD or ({untracked}) or {is_exact}:
            t._node = None
            return t
        if {is_unknown}:
            return apply(operation, ({inputs}), ({static}))
        tracked = ({mask})
        recipe, pack = recipes.get(tracked) or recipe_for(tracked)
        t._node = node = Node()
        node.recipe = recipe
        node.inputs = {parents}
        node.saved = pack({raws}{static}{results})
        node.unbroadcast = None if {same_dtype} else unbroadcasting(operation, ({raws}), ({nodes}), out)
{finish}"""

# Parts of one array.
_MANY = """
        out = {first}_a
        {look}
        if m is NO_GRAD or ({untracked}) or {is_exact}:
            return tuple([make(asarray(part), None) for part in outs])
        if {is_unknown}:
            return apply(operation, ({inputs}), ({static}))
        tracked = ({mask})
        recipe, pack = recipes.get(tracked) or recipe_for(tracked)
        node = Node()
        node.recipe = recipe
        node.inputs = {parents}
        node.saved = pack({raws}{static}outs)
        node.unbroadcast = None
{finish_parts}"""


def call_for(name: str) -> Any:
    """The function (*inputs, *static) of an operation, with its kernel's arguments in its kernel's order."""
    operation = OPERATIONS[name]
    arguments = ", ".join((*operation.inputs, *operation.static))
    return _stub(name, arguments, lambda function: _prepare_call(function, operation, NUMPY))


def _prepare_call(function: Any, operation: Operation, library: Library) -> None:
    inputs = operation.inputs
    recipes: dict[tuple[bool, ...], Any] = {}
    results = ("outs",) if operation.many_outputs else (*operation.outputs, *operation.residuals)

    def recipe_for(mask: tuple[bool, ...]) -> Any:
        recipe = library.table.recipe(operation, mask)
        recipes[mask] = found = recipe, _pack_function(recipe, results)
        return found

    def listed(pattern: str, names: tuple[str, ...] = inputs) -> str:
        return "".join(pattern.format(name) + ", " for name in names)

    optional = [f"({x} is None or type({x}) is Tensor and type({x}._raw) is ndarray)" for x in inputs[1:]]
    first = f"type({inputs[0]}) is Tensor and type({inputs[0]}._raw) is ndarray"
    unpack = [f"{inputs[0]}_a = {inputs[0]}._raw; {inputs[0]}_n = {inputs[0]}._node"] + [
        f"{x}_a, {x}_n = (None, None) if {x} is None else ({x}._raw, {x}._node)" for x in inputs[1:]
    ]
    finish = _finish(library).replace("\n            ", "\n        ")
    parts = {
        "arguments": ", ".join((*inputs, *operation.static)),
        "first": inputs[0],
        "look": library.look,
        "is_exact": library.is_exact,
        "is_unknown": library.is_unknown,
        "ordinary": " and ".join([first, *optional]),
        "unpack": "\n        ".join(unpack),
        "raws": listed("{}_a"),
        "static": listed("{}", operation.static),
        "results": ", ".join(results),
        "inputs": listed("{}"),
        "nodes": listed("{}_n"),
        "untracked": " and ".join(f"{x}_n is None" for x in inputs),
        "mask": listed("{}_n is not None"),
        "parents": f"({inputs[0]}_n,)"
        if len(inputs) == 1
        else f"tuple([n for n in ({listed('{}_n')}) if n is not None])",
        "same_dtype": " and ".join(
            [f"{inputs[0]}_a.dtype is out.dtype"] + [f"({x}_a is None or {x}_a.dtype is out.dtype)" for x in inputs[1:]]
        ),
        "finish": finish,
        "finish_parts": finish.replace("return t", "return select_all(node, outs, asarray)"),
    }
    one_or_many = (_MANY if operation.many_outputs else _ONE).format(**parts)
    source = _GENERAL.format(one_or_many=one_or_many, **parts)
    names = {
        "recipes": recipes,
        "recipe_for": recipe_for,
        "unbroadcasting": general.unbroadcasting,
        "make": base.make,
        "select_all": _select_all,
    }
    ways = Ways(operation, _prepare_call) if library is NUMPY else NOWHERE
    _replace_code(function, source, {**_names_for(operation, library), **names, "ways": ways})


def _pack_function(recipe: Any, results: tuple[str, ...]) -> Any:
    """Compile `pack(*inputs, *static, *results)`, which gives what `recipe.gather` does, of arrays and None alone."""
    operation = recipe.operation
    parts = []
    for name, (kind, index) in zip(recipe.names, recipe.sources):
        if kind in ("shape", "dtype"):
            owner = operation.inputs[index]
            parts.append(f"{owner}.{kind}" if index == 0 else f"None if {owner} is None else {owner}.{kind}")
        else:
            is_many = kind == "output" and operation.many_outputs
            parts.append("_needs" if kind == "needs" else results[0] if is_many else name)
    arguments = ", ".join((*operation.inputs, *operation.static, *results))
    source = f"lambda {arguments}: ({''.join(part + ', ' for part in parts)})"
    return eval(source, {"_needs": recipe.mask})  # made of argument names alone


def _select_all(node: Node, outs: Any, asarray: Any) -> tuple[Any, ...]:
    """The tensors of an operation's several outputs, whose nodes come after `node`."""
    parts = []
    count = len(outs)
    for i, out in enumerate(outs):
        part = Node()
        part.seq = next_sequence_number()
        part.code = node.code
        part.lasti = node.lasti
        part.recipe = general.SELECT
        part.inputs = (node,)
        part.saved = (i, count)
        part.unbroadcast = None
        parts.append(base.make(asarray(out), part))
    return tuple(parts)


def fast_path(function: F) -> F:
    """Give the function of a differentiable operation with one or two inputs, which calls `apply`, the short way."""
    return _before(function, OPERATIONS[function.__name__.lstrip("_")])


def fast_operator(name: str) -> Callable[[F], F]:
    """The same for a method that is one of Python's operators."""
    return lambda method: _before(method, OPERATIONS[name])


def _before(function: F, operation: Operation) -> F:
    """The short way, and `function` where it does not lead on."""
    arguments = ", ".join(operation.inputs)
    stub = _stub(operation.name, arguments, lambda made: _prepare_function(made, operation, NUMPY, function))
    update_wrapper(stub, function)
    return stub


def _prepare_function(function: Any, operation: Operation, library: Library, otherwise: Any) -> None:
    ways = Ways(operation, _prepare_function, otherwise) if library is NUMPY else NOWHERE
    names = {**_names_for(operation, library), "general": otherwise, "ways": ways}
    if operation.inputs == ("x",):
        names["recipe"] = library.table.recipe(operation, (True,))
        source = _UNARY.format(saved=_saved(names["recipe"]), finish=_finish(library))
    else:
        saved = {}
        for label, mask in (("xy", (True, True)), ("x", (True, False)), ("y", (False, True))):
            names[f"recipe_{label}"] = recipe = library.table.recipe(operation, mask)
            saved[f"saved_{label}"] = _saved(recipe)
        expression = _OPERATORS.get(operation.name, "kernel(a, b)") if library is NUMPY else "kernel(a, b)"
        fits = {f"number_fits_{name}": library.number_fits.format(name) for name in "ab"}
        source = _BINARY.format(expression=expression, finish=_finish(library), **saved, **fits)
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


def _names_for(operation: Operation, library: Library) -> dict[str, Any]:
    """The names that every template uses."""
    return {
        "Tensor": base.Tensor,
        "Node": Node,
        "ndarray": library.array_type,
        "asarray": library.from_scalar,
        "inexact": library.inexact,
        "kernel": getattr(library.table.xp, operation.name),
        "current_mode": modes.current,
        "NO_GRAD": modes.NO_GRAD,
        "next_seq": next_sequence_number,
        "getframe": sys._getframe,
        "LIBRARY": LIBRARY,
        "users_code": users_code,
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
