"""Every operation's kernel over the functions of the array API standard.

The standard refuses what NumPy allows: mixed kinds of dtypes, integers where floats are meant, booleans in sums.
The kernels convert first, as NumPy would. Operations outside the standard come from `portable`.
"""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy as np

from ..operations import OPERATIONS, Operation
from . import portable
from .portable.special import IN_DOUBLE
from .protocol import Kernels
from .standard_arithmetic import Arithmetic
from .standard_indexing import Indexing
from .standard_linalg import LinearAlgebra, with_typed_errors
from .standard_promotion import Promotion, ufunc_of
from .standard_searching import Searching


class StandardKernels(Kernels):
    """The kernels of a `StandardBackend`, made at first use."""

    def __init__(self, backend: Any) -> None:
        groups = (Indexing(backend, self), Searching(backend, self), LinearAlgebra(backend, self))
        super().__init__(
            vars(_Creation(backend)) | vars(_Conversion(backend, self)),
            *(
                {name: getattr(group, name) for name in vars(type(group)) if not name.startswith("_")}
                for group in groups
            ),
            backend.kernels(),
        )
        self._backend = backend
        self._arithmetic = Arithmetic(backend, self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        kernel = self._standard(name) or self.composed(name)
        self.__dict__[name] = kernel
        return kernel

    def composed(self, name: str) -> Any:
        """The kernel made of others; one of an array of real numbers is given what it is written for."""
        kernel, operation = portable.bind(name, self), OPERATIONS.get(name)
        if operation is not None and name in IN_DOUBLE and operation.arity > 1:
            return partial(self._in_double, kernel)
        if operation is None or not (operation.real and operation.inputs == ("x",)):
            return kernel
        backend, keeps_integers, in_double = self._backend, name == "relu", name in IN_DOUBLE

        def of_reals(x: Any, *static: Any) -> Any:
            dtype = backend.dtype_of(x)
            if dtype.kind == "complex":
                raise TypeError(f"there is no kernel for complex numbers ({dtype.name}).")
            if dtype.kind != "float":
                return kernel(x if keeps_integers and dtype.kind != "bool" else self.as_floating(x), *static)
            wide = backend.widest_float() if in_double else _dtype("float32")
            if dtype.itemsize >= wide.itemsize or keeps_integers:
                return kernel(x, *static)
            made = kernel(self.astype(x, backend.raw_dtype(wide)), *static)
            if operation.residuals:
                return self.astype(made[0], x.dtype), *made[1:]
            return self.astype(made, x.dtype)

        return of_reals

    def _in_double(self, kernel: Any, *inputs: Any) -> Any:
        """A formula of several arrays in the widest precision there is, rounded to theirs."""
        arrays = self.together(inputs)
        wide = self._backend.raw_dtype(self._backend.widest_float())
        return self.astype(kernel(*[self.astype(x, wide) for x in arrays]), arrays[0].dtype)

    def _standard(self, name: str) -> Any:
        """The namespace's own function as a kernel, if `name` is one of the standard's."""
        operation = OPERATIONS.get(name)
        if operation is None or not operation.standard:
            return None
        namespace = self._backend.namespace
        if operation.standard != "main":
            namespace = getattr(namespace, operation.standard, None)
        function = getattr(self._arithmetic, name, None) or getattr(namespace, name, None)
        return (
            None if function is None else self._backend.direct(operation, function, self._adapted(operation, function))
        )

    def _adapted(self, operation: Operation, function: Any) -> Any:
        prepare = self._preparation(operation)
        name, arity, static = operation.name, operation.arity, operation.static

        def kernel(*args: Any, **named: Any) -> Any:
            options = dict(zip(static, args[arity:]), **named)
            return function(*prepare(args[:arity]), **options)

        if operation.dtypes == "comparison":
            return self._with_mixed_signs(name, function, prepare)
        if operation.standard == "linalg":
            return with_typed_errors(name, kernel)
        if operation.dtypes == "ordered":
            return lambda x, *args, **named: self.astype(kernel(x, *args, **named), x.dtype)
        kernel.__name__ = name
        return kernel

    def _preparation(self, operation: Operation) -> Any:
        """What makes inputs as NumPy takes them fit for the standard function."""
        backend = self._backend
        ufunc = ufunc_of(operation.name) if operation.dtypes in _AS_THE_UFUNC else None
        if ufunc is not None:
            promote = Promotion(backend, self, ufunc)
            return self._comparable(promote) if operation.dtypes == "comparison" else promote
        match operation.dtypes:
            case "logical":
                return lambda inputs: [self.astype(x, backend.raw_dtype(_dtype("bool"))) for x in self.together(inputs)]
            case "floating":
                return lambda inputs: [self.as_floating(x) for x in self.together(inputs)]
            case "complex":
                return lambda inputs: [self.as_complex(x) for x in inputs]
            case "numbers" | "ordered":
                return lambda inputs: [self.as_number(x) for x in inputs]
        return self.together if operation.dtypes and operation.arity > 1 else lambda inputs: inputs

    def _comparable(self, promote: Promotion) -> Any:
        """Numbers to compare; an integer outside of a dtype's range is further away than any number of it."""
        wide, arrays = self._backend.widest_float(), self._backend.array_types

        def prepare(inputs: Any) -> list[Any]:
            try:
                return promote(inputs)
            except OverflowError:
                x, y = (x if isinstance(x, arrays) else math.copysign(math.inf, x) for x in inputs)
                return promote([self.astype(x, wide) if isinstance(x, arrays) else x for x in (x, y)])

        return prepare

    def _with_mixed_signs(self, name: str, function: Any, prepare: Any) -> Any:
        """A comparison, also of int64 with uint64, which have no integers in common that hold both."""
        of_numbers = _COMPARISONS[name]

        def kernel(x: Any, y: Any) -> Any:
            x, y = prepare((x, y))
            if x.dtype == y.dtype:
                return function(x, y)
            is_signed = [self._backend.dtype_of(z).kind == "int" for z in (x, y)]
            below_zero = (x if is_signed[0] else y) < 0
            both = function(*(self.astype(z, _dtype("uint64")) for z in (x, y)))
            below = of_numbers(-is_signed[0], -is_signed[1])
            return self.where(below_zero, self.full((), below, _dtype("bool"), x), both)

        kernel.__name__ = name
        return kernel


_COMPARISONS = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
#: Kinds of operations whose dtypes are those of NumPy's ufunc of the same name.
_AS_THE_UFUNC = ("promoted", "floating", "bitwise", "comparison")


def _dtype(name: str) -> Any:
    from .. import dtypes

    return dtypes.BY_NAME[name]


class _Creation:
    """Arrays from nothing, on the device of the array `like`."""

    def __init__(self, backend: Any) -> None:
        namespace = backend.namespace

        def zeros(shape: Any, dtype: Any, like: Any) -> Any:
            return namespace.zeros(tuple(shape), dtype=backend.own_dtype(dtype), device=backend.where(like))

        def full(shape: Any, value: Any, dtype: Any, like: Any) -> Any:
            value = value.item() if isinstance(value, np.generic) else value
            return namespace.full(tuple(shape), value, dtype=backend.own_dtype(dtype), device=backend.where(like))

        def arange(start: Any, stop: Any, step: Any, dtype: Any, like: Any) -> Any:
            return namespace.arange(start, stop, step, dtype=backend.own_dtype(dtype), device=backend.where(like))

        def zeros_like(x: Any) -> Any:
            return namespace.zeros_like(x)

        def ones_like(x: Any) -> Any:
            return namespace.ones_like(x)

        self.zeros, self.full, self.arange = zeros, full, arange
        self.zeros_like, self.ones_like = zeros_like, ones_like


class _Conversion:
    """Bringing arrays to a common dtype as NumPy does, and the kernels that need nothing else."""

    def __init__(self, backend: Any, xp: Any) -> None:
        namespace = backend.namespace
        arrays = backend.array_types

        def kind(x: Any) -> str:
            return backend.dtype_of(x).kind

        def astype(x: Any, dtype: Any) -> Any:
            dtype = backend.own_dtype(dtype)
            if x.dtype == dtype:
                return x
            if kind(x) == "complex" and backend._dtypes[dtype].kind not in ("complex", "bool"):
                x = namespace.real(x)
            return namespace.astype(x, dtype)

        def as_floating(x: Any) -> Any:
            return x if kind(x) in ("float", "complex") else astype(x, backend.raw_dtype(backend.widest_float()))

        def as_complex(x: Any) -> Any:
            if kind(x) == "complex":
                return x
            x = as_floating(x)
            small = backend.dtype_of(x).itemsize <= 4
            return astype(x, backend.raw_dtype(_dtype("complex64" if small else "complex128")))

        def as_number(x: Any) -> Any:
            return astype(x, backend.raw_dtype(_dtype("int64"))) if kind(x) == "bool" else x

        def together(inputs: Any) -> list[Any]:
            """The inputs as arrays of one dtype, Python numbers included; None stays None."""
            found = [x for x in inputs if isinstance(x, arrays)]
            dtype = found[0].dtype
            plain = all(x.dtype == dtype for x in found)
            if not plain or len(found) < len(inputs):
                dtype = _common(inputs, found)
            like = found[0]
            return [
                x if x is None else astype(x, dtype) if isinstance(x, arrays) else xp.full((), x, dtype, like)
                for x in inputs
            ]

        def _common(inputs: Any, found: Any) -> Any:
            from .. import dtypes

            parts = [
                dtypes.numpy_dtype(backend.dtype_of(x)) if isinstance(x, arrays) else x for x in inputs if x is not None
            ]
            if any(backend.dtype_of(x) is dtypes.bfloat16 for x in found):
                # no dtype of NumPy's own: next to it Python's floats count as float64 there
                parts = [part for part in parts if type(part) is not float]
            return backend.raw_dtype(dtypes.from_numpy(np.result_type(*parts)))

        def where(condition: Any, x: Any, y: Any) -> Any:
            if not isinstance(x, arrays) and not isinstance(y, arrays):
                x = xp.full((), x, _common([x, y], []), condition)
            x, y = together((x, y))
            if not isinstance(condition, arrays):
                condition = xp.full((), bool(condition), backend.raw_dtype(_dtype("bool")), x)
            return namespace.where(astype(condition, backend.raw_dtype(_dtype("bool"))), x, y)

        def concat(xs: Any, axis: Any) -> Any:
            return namespace.concat(together(xs), axis=axis)

        def stack(xs: Any, axis: Any) -> Any:
            return namespace.stack(together(xs), axis=axis)

        self.astype, self.where, self.concat, self.stack = astype, where, concat, stack
        self.together, self.as_floating, self.as_complex, self.as_number = together, as_floating, as_complex, as_number
