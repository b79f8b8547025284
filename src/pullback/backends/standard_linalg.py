"""Linear algebra and statistics that the standard has with other signatures, for fewer inputs, or not at all."""

from __future__ import annotations

import math
from typing import Any

from ..errors import LinearAlgebraError


def with_typed_errors(name: str, kernel: Any) -> Any:
    """Raise a library's complaint about a matrix as one of our errors; each has a class of its own for it."""

    def checked(x: Any, *args: Any, **named: Any) -> Any:
        try:
            return kernel(x, *args, **named)
        except Exception as error:
            if "LinAlgError" not in type(error).__name__:
                raise
            raise LinearAlgebraError(f"{name} of shape {tuple(x.shape)}: {error}.") from error

    return checked


class LinearAlgebra:
    """Kernels over the namespace of `backend` and the other kernels in `xp`."""

    def __init__(self, backend: Any, xp: Any) -> None:
        self.backend = backend
        self.namespace = backend.namespace
        self.xp = xp

    def _is_complex(self, x: Any) -> bool:
        return self.backend.dtype_of(x).kind == "complex"

    def real(self, x: Any) -> Any:
        return self.namespace.real(x) if self._is_complex(x) else x

    def imag(self, x: Any) -> Any:
        return self.namespace.imag(x) if self._is_complex(x) else self.xp.zeros_like(x)

    def conj(self, x: Any) -> Any:
        return self.namespace.conj(x) if self._is_complex(x) else x

    def var(self, x: Any, axis: Any = None, correction: Any = 0, keepdims: bool = False) -> Any:
        x = self.xp.as_floating(x)
        count = math.prod(x.shape if axis is None else (x.shape[a] for a in axis))
        deviation = self.xp.abs(x - self.xp.mean(x, axis, True))
        total = self.xp.sum(deviation * deviation, axis, keepdims)
        return self.xp.divide(total, float(max(count - correction, 0)))

    def std(self, x: Any, axis: Any = None, correction: Any = 0, keepdims: bool = False) -> Any:
        return self.xp.sqrt(self.var(x, axis, correction, keepdims))

    def vector_norm(self, x: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
        x = self.xp.as_floating(x)
        if axis is not None and len(axis) == 0:
            size = self.xp.abs(x)
            return size if ord != 0 else self.xp.astype(self.xp.not_equal(size, 0), size.dtype)
        return self.namespace.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)

    def cross(self, x: Any, y: Any, axis: int) -> Any:
        return self.namespace.linalg.cross(*self.xp.together((x, y)), axis=axis)

    def pinv(self, x: Any, rtol: Any, atol: float) -> Any:
        xp = self.xp
        if not atol or 0 in x.shape:
            return with_typed_errors("pinv", self.namespace.linalg.pinv)(x, rtol=rtol)
        u, s, vh = xp.svd(x, False)
        relative = xp.expand_dims(rtol, (-1,)) if hasattr(rtol, "shape") else rtol
        kept = xp.greater(s, xp.maximum(xp.max(s, (-1,), True) * relative, atol))
        inverses = xp.where(kept, 1 / xp.where(kept, s, xp.ones_like(s)), xp.zeros_like(s))
        return xp.matmul(xp.adjoint(vh) * xp.expand_dims(inverses, (-2,)), xp.adjoint(u))

    def lu(self, x: Any) -> Any:
        """By NumPy: no function of the standard's eliminates."""
        from .numpy.linalg import lu

        return tuple([self.backend.constant(part, x) for part in lu(self.backend.to_numpy(x))])

    def matrix_rank(self, x: Any, rtol: Any) -> Any:
        values = self.xp.svdvals(x)
        if 0 in values.shape:
            return self.xp.zeros(tuple(x.shape[:-2]), self.backend.index_dtype, x)
        largest = self.xp.max(values, (-1,), True)
        bound = self.xp.expand_dims(rtol, (-1,)) if hasattr(rtol, "shape") else rtol
        return self.xp.count_nonzero(self.xp.greater(values, largest * bound), (-1,), False)

    def cofactor(self, x: Any) -> Any:
        """The gradient of the determinant, det(x) inv(x).T, from the singular values: right for singular x too."""
        xp = self.xp
        u, s, vh = xp.svd(x, False)
        scaled = xp.conj(u) * xp.expand_dims(self._products_without(s), (-2,))
        return self._sign(u, vh) * xp.matmul(scaled, xp.conj(vh))

    def cofactor_product(self, g: Any, x: Any) -> Any:
        """The second derivative of the determinant, a symmetric bilinear form, applied to `g`; for singular x too."""
        xp = self.xp
        u, s, vh = xp.svd(x, False)
        pairs = self._products_without_two(s)
        w = xp.matmul(xp.matmul(xp.matrix_transpose(xp.conj(u)), g), xp.matrix_transpose(xp.conj(vh)))
        diagonal = xp.expand_dims(xp.diagonal(w, 0), (-1,))
        on_diagonal = xp.getitem(xp.matmul(xp.astype(pairs, w.dtype), diagonal), (..., 0))
        inside = xp.place_diagonal(on_diagonal, tuple(w.shape), 0) - xp.matrix_transpose(pairs * w)
        return self._sign(u, vh) * xp.matmul(xp.matmul(xp.conj(u), inside), xp.conj(vh))

    def _sign(self, u: Any, vh: Any) -> Any:
        return self.xp.expand_dims(self.xp.det(u) * self.xp.det(vh), (-2, -1))

    def _products_without(self, s: Any) -> Any:
        """For each element of the last axis the product of the others."""
        before = self.xp.cumulative_prod(s, (-1,), False, True)
        return before * self.xp.cumulative_prod(s, (-1,), True, True)

    def _products_without_two(self, s: Any) -> Any:
        """At [i, j] the product of all elements of the last axis but those two; zero at [i, i]."""
        xp, n = self.xp, s.shape[-1]
        zero = xp.zeros((*s.shape[:-1], 1), s.dtype, s)
        rows = []
        for i in range(n):
            before, after = xp.getitem(s, (..., slice(0, i))), xp.getitem(s, (..., slice(i + 1, n)))
            products = self._products_without(xp.concat([before, after], -1))
            first, last = xp.getitem(products, (..., slice(0, i))), xp.getitem(products, (..., slice(i, n - 1)))
            rows.append(xp.concat([first, zero, last], -1))
        return xp.stack(rows, -2) if rows else xp.zeros((*s.shape, n), s.dtype, s)
