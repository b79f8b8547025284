"""Arithmetic for one formula on every library: results go into `out` where arrays can be written.

A formula calls `xp.add(x, y, out)` and goes on with what that returns: `out` itself on NumPy, PyTorch and CuPy (a new
array if `out` is None), always a new array where the library has no `out` (JAX, the array API standard).

A formula that calls nothing else than the functions here works on lists of arrays too, one element after the other:
where a library has functions of lists (`Backend.lists`) all parameters of a dtype are updated in a few launches.
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import Any, Callable

import numpy as np

from .. import backends

Unary = Callable[[Any, Any], Any]
Binary = Callable[[Any, Any, Any], Any]


class Arithmetic:
    """Elementwise functions that take the array to write to as their last argument; `kernels` has all others."""

    __slots__ = (
        "kernels", "in_place", "add", "subtract", "multiply", "divide", "maximum", "sqrt", "sign", "abs", "negative"
    )  # fmt: skip

    kernels: Any
    in_place: bool  # whether `out` is written to
    add: Binary
    subtract: Binary
    multiply: Binary
    divide: Binary
    maximum: Binary
    sqrt: Unary
    sign: Unary
    abs: Unary
    negative: Unary

    def __init__(self, backend: Any, in_place: bool, **functions: Any) -> None:
        self.kernels = backend.xp
        self.in_place = in_place
        for name, function in functions.items():
            setattr(self, name, function)

    # What some libraries do in one pass; `room` is written to where it takes several.

    def add_scaled(self, x: Any, y: Any, factor: Any, out: Any, room: Any) -> Any:
        """x + factor * y."""
        return self.add(x, self.multiply(y, factor, room), out)

    def blend(self, x: Any, y: Any, kept: Any, new: Any, out: Any, room: Any) -> Any:
        """kept * x + new * y, where kept + new is 1."""
        return self.add(self.multiply(x, kept, out), self.multiply(y, new, room), out)

    def subtract_scaled(self, x: Any, y: Any, factor: Any, out: Any, room: Any) -> Any:
        """x - factor * y."""
        return self.subtract(x, self.multiply(y, factor, room), out)

    def add_product(self, x: Any, y: Any, z: Any, factor: Any, out: Any, room: Any) -> Any:
        """x + factor * y * z."""
        return self.add(x, self.multiply(self.multiply(y, z, room), factor, room), out)

    def subtract_quotient(self, x: Any, y: Any, z: Any, factor: Any, out: Any) -> Any:
        """x - factor * y / z; `z` is written to."""
        return self.subtract(x, self.multiply(self.divide(y, z, z), factor, z), out)

    def convert(self, x: Any, dtype: Any, out: Any) -> Any:
        """The values of `x` rounded to `dtype`, the dtype of `out`."""
        if out is None or not self.in_place:
            return self.kernels.astype(x, dtype)
        out[...] = x
        return out

    def constants(self, values: tuple[float, ...], dtype: Any) -> tuple[Any, ...]:
        """Numbers in the form in which a call with them is fastest and leaves the arrays' dtype alone."""
        return tuple([float(value) for value in values])  # NumPy's scalars would count as arrays


class _NumpyArithmetic(Arithmetic):
    __slots__ = ()

    def constants(self, values: tuple[float, ...], dtype: Any) -> tuple[Any, ...]:
        return tuple([np.array(value, dtype) for value in values])  # a float would be converted in every call


_UNARY = ("sqrt", "sign", "abs", "negative")
_BINARY = ("add", "subtract", "multiply", "divide", "maximum")


def _of_ufuncs(backend: Any, namespace: ModuleType, kind: type[Arithmetic]) -> Arithmetic:
    made = {name: getattr(namespace, name) for name in (*_UNARY, *_BINARY)}
    made["maximum"] = lambda x, y, out: namespace.maximum(x, y, out=out)  # NumPy takes this one's by name only
    return kind(backend, True, **made)


def _of_torch(backend: Any, torch: ModuleType) -> Arithmetic:
    def unary(name: str) -> Unary:
        function = getattr(torch, name)
        return lambda x, out: function(x, out=out)

    def binary(name: str) -> Binary:
        function = getattr(torch, name)
        return lambda x, y, out: function(x, y, out=out)

    made = {name: unary(name) for name in _UNARY}
    return _TorchArithmetic(backend, True, **made, **{name: binary(name) for name in _BINARY})


class _TorchArithmetic(Arithmetic):
    __slots__ = ()

    def add_scaled(self, x: Any, y: Any, factor: Any, out: Any, room: Any) -> Any:
        return _torch().add(x, y, alpha=factor, out=out)

    def blend(self, x: Any, y: Any, kept: Any, new: Any, out: Any, room: Any) -> Any:
        return _torch().lerp(x, y, new, out=out)

    def subtract_scaled(self, x: Any, y: Any, factor: Any, out: Any, room: Any) -> Any:
        return _torch().add(x, y, alpha=-factor, out=out)

    def add_product(self, x: Any, y: Any, z: Any, factor: Any, out: Any, room: Any) -> Any:
        return _torch().addcmul(x, y, z, value=factor, out=out)

    def subtract_quotient(self, x: Any, y: Any, z: Any, factor: Any, out: Any) -> Any:
        return _torch().addcdiv(x, y, z, value=-factor, out=out)


def _torch() -> Any:
    return sys.modules["torch"]


class ListArithmetic(Arithmetic):
    """The same functions of lists of arrays; `kernels` are those of single arrays, which such formulas do not call."""

    __slots__ = ("lists",)

    def __init__(self, backend: Any) -> None:
        self.lists = lists = backend.lists
        functions = {name: getattr(lists, name) for name in (*_UNARY, *_BINARY) if name != "abs"}
        super().__init__(backend, True, abs=lists.absolute, **functions)

    def add_scaled(self, x: Any, y: Any, factor: Any, out: Any, room: Any) -> Any:
        return self.lists.add_scaled(x, y, factor, out)

    def blend(self, x: Any, y: Any, kept: Any, new: Any, out: Any, room: Any) -> Any:
        return self.lists.blend(x, y, new, out)

    def subtract_scaled(self, x: Any, y: Any, factor: Any, out: Any, room: Any) -> Any:
        return self.lists.add_scaled(x, y, -factor, out)

    def add_product(self, x: Any, y: Any, z: Any, factor: Any, out: Any, room: Any) -> Any:
        return self.lists.add_product(x, y, z, factor, out)

    def subtract_quotient(self, x: Any, y: Any, z: Any, factor: Any, out: Any) -> Any:
        return self.lists.subtract_quotient(x, y, z, factor, out)

    def convert(self, x: Any, dtype: Any, out: Any) -> Any:
        return self.lists.convert(x, dtype, out)


def _of_kernels(backend: Any) -> Arithmetic:
    def unary(name: str) -> Unary:
        function = getattr(backend.xp, name)
        return lambda x, out: function(x)

    made: dict[str, Any] = {name: unary(name) for name in _UNARY}
    return Arithmetic(
        backend,
        False,
        **made,
        add=lambda x, y, out: x + y,
        subtract=lambda x, y, out: x - y,
        multiply=lambda x, y, out: x * y,
        divide=lambda x, y, out: x / y,
        maximum=lambda x, y, out: backend.xp.maximum(x, y),
    )


_NUMPY = _of_ufuncs(backends.NUMPY, np, _NumpyArithmetic)
_by_backend: dict[int, Arithmetic] = {id(backends.NUMPY): _NUMPY}


@cache
def list_arithmetic_of(backend: Any) -> ListArithmetic:
    """The arithmetic on lists of a backend's raw arrays; it must have `lists`."""
    return ListArithmetic(backend)


def arithmetic_of(backend: Any) -> Arithmetic:
    """The arithmetic on a backend's raw arrays."""
    found = _by_backend.get(id(backend))
    if found is None:
        if backend.name == "torch":
            import torch

            found = _of_torch(backend, torch)
        elif backend.name == "cupy":
            import cupy

            found = _of_ufuncs(backend, cupy, Arithmetic)
        else:
            found = _of_kernels(backend)
        _by_backend[id(backend)] = found
    return found
