"""One rule table per namespace: each backend's kernels, and the operations on tensors."""

from __future__ import annotations

from typing import Any

from .. import backends
from ..backends import portable
from ..operations import OPERATIONS
from .recipe import Table
from .rules import MODULES

NUMPY_TABLE = Table(backends.NUMPY.xp, MODULES)  # also declares the operations
NUMPY_TABLE.replace(backends.NUMPY.rules(dict(NUMPY_TABLE.rules)))
_tables: dict[int, Table] = {id(backends.NUMPY): NUMPY_TABLE}


def table_for(backend: Any) -> Table:
    """The rules on raw arrays of `backend`."""
    table = _tables.get(id(backend))
    if table is None:
        table = _tables[id(backend)] = Table(backend.xp, MODULES)
        table.replace(backend.rules(dict(table.rules)))
    return table


class TensorNamespace:
    """Every operation under its name and with its kernel's signature, on tensors: what rules see at higher orders."""

    def __getattr__(self, name: str) -> Any:
        operation = OPERATIONS.get(name)
        if operation is not None:
            function = _on_tensors(operation)
        elif name in CREATION:
            function = _creating(name)
        else:
            function = portable.bind(name, self)
        self.__dict__[name] = function
        return function


CREATION = ("zeros", "full", "arange", "zeros_like", "ones_like")


def _creating(name: str) -> Any:
    """A kernel that makes an array like its last argument, for tensors: the result is untracked."""
    from .base import created

    def function(*args: Any) -> Any:
        like = args[-1]._raw
        backend: Any = backends.of(like)
        return created(backend.from_scalar(getattr(backend.xp, name)(*args[:-1], like)))

    function.__name__ = name
    return function


def _on_tensors(operation: Any) -> Any:
    from .apply import apply

    def function(*args: Any, **named: Any) -> Any:
        return apply(operation, *operation.arguments(args, named))

    function.__name__ = operation.name
    return function


TENSORS: Any = TensorNamespace()
_tensor_table: Table | None = None


def tensor_table() -> Table:
    """The rules on tensors, whose results are recorded in turn."""
    global _tensor_table
    if _tensor_table is None:
        _tensor_table = Table(TENSORS, MODULES)
    return _tensor_table
