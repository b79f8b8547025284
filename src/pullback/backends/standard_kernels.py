"""Every operation's kernel over the functions of the array API standard.

The standard refuses what NumPy allows: mixed kinds of dtypes, integers where floats are meant, booleans in sums.
The kernels convert first, as NumPy would. Operations outside the standard come from `portable`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LinearAlgebraError
from . import portable
from .protocol import Kernels
from .standard_indexing import Indexing
from .standard_linalg import LinearAlgebra
from .standard_searching import Searching

_PROMOTING = frozenset((
    "add", "subtract", "multiply", "divide", "pow", "floor_divide", "remainder", "atan2", "hypot", "logaddexp",
    "copysign", "nextafter", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
    "matmul", "tensordot", "vecdot",
))  # fmt: skip
_FLOATING = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log1p", "log2", "log10",
    "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh", "atan2", "hypot", "logaddexp", "copysign", "nextafter",
    "divide", "mean",
))  # fmt: skip
_LOGICAL = frozenset(["logical_and", "logical_or", "logical_xor", "logical_not"])
_COUNTING = frozenset(["sum", "prod"])
_ORDERING = frozenset(["max", "min"])
_PLAIN = frozenset((
    "abs", "all", "any", "bitwise_invert", "broadcast_to", "ceil", "count_nonzero", "expand_dims", "flip", "floor",
    "isfinite", "isinf", "isnan", "matrix_transpose", "negative", "positive", "reshape", "roll", "round",
    "sign", "signbit", "squeeze", "square", "tril", "triu", "trunc", "unstack",
))  # fmt: skip
STANDARD = _PROMOTING | _FLOATING | _LOGICAL | _COUNTING | _ORDERING | _PLAIN
LINEAR_ALGEBRA = frozenset((
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "pinv", "qr", "slogdet",
    "solve", "svd", "svdvals",
))  # fmt: skip
FOURIER = frozenset(["fft", "ifft", "rfft", "irfft"])
_COMPLEX_INPUT = frozenset(["fft", "ifft", "irfft"])


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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        kernel = self._standard(name) or portable.bind(name, self)
        self.__dict__[name] = kernel
        return kernel

    def _standard(self, name: str) -> Any:
        """The namespace's own function as a kernel, if `name` is one of the standard's."""
        namespace = self._backend.namespace
        if name in LINEAR_ALGEBRA:
            namespace = getattr(namespace, "linalg", None)
        elif name in FOURIER:
            namespace = getattr(namespace, "fft", None)
        elif name not in STANDARD:
            return None
        function = getattr(namespace, name, None)
        return None if function is None else self._adapted(name, function)

    def _adapted(self, name: str, function: Any) -> Any:
        prepare = self._preparation(name)
        arity, static = _signature(name)

        def kernel(*args: Any, **named: Any) -> Any:
            options = dict(zip(static, args[arity:]), **named)
            return function(*prepare(args[:arity]), **options)

        if name in LINEAR_ALGEBRA:
            return _with_typed_errors(name, kernel)
        if name in _ORDERING:
            return lambda x, *args, **named: self.astype(kernel(x, *args, **named), x.dtype)
        kernel.__name__ = name
        return kernel

    def _preparation(self, name: str) -> Any:
        """What makes inputs as NumPy takes them fit for the standard function."""
        backend = self._backend
        if name in _LOGICAL:
            return lambda inputs: [self.astype(x, backend.raw_dtype(_dtype("bool"))) for x in self.together(inputs)]
        if name in _FLOATING or name in LINEAR_ALGEBRA - {"diagonal", "cross"}:
            return lambda inputs: [self.as_floating(x) for x in self.together(inputs)]
        if name in _COMPLEX_INPUT:
            return lambda inputs: [self.as_complex(x) for x in inputs]
        if name in FOURIER:
            return lambda inputs: [self.as_floating(x) for x in inputs]
        if name in _COUNTING or name in _ORDERING:
            return lambda inputs: [self.as_number(x) for x in inputs]
        if name in _PROMOTING:
            return self.together
        return lambda inputs: inputs


def _with_typed_errors(name: str, kernel: Any) -> Any:
    """Raise a library's complaint about a matrix as one of our errors; each has a class of its own for it."""

    def checked(x: Any, *args: Any, **named: Any) -> Any:
        try:
            return kernel(x, *args, **named)
        except Exception as error:
            if "LinAlgError" not in type(error).__name__:
                raise
            raise LinearAlgebraError(f"{name} of shape {tuple(x.shape)}: {error}.") from error

    return checked


def _signature(name: str) -> tuple[int, tuple[str, ...]]:
    """How many arrays an operation takes, and the names of its static arguments."""
    from ..autodiff.operation import OPERATIONS

    operation = OPERATIONS.get(name)
    if operation is None:
        raise AttributeError(f"no operation {name!r} is declared, so its kernel's signature is not known.")
    return (1 if operation.variadic else len(operation.inputs)), operation.static


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
