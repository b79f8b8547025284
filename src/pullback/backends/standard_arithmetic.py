"""Division, powers and signs with NumPy's results where libraries differ: infinities, zeros, integers.

The functions of a namespace are `divide`, `floor_divide` and so on of the array API standard, which leaves these open.
"""

from __future__ import annotations

import math
from typing import Any


class Arithmetic:
    """Kernels over the namespace of `backend` and the other kernels in `xp`; inputs have been promoted."""

    def __init__(self, backend: Any, xp: Any) -> None:
        self.backend = backend
        self.namespace = backend.namespace
        self.xp = xp

    def _is_integer(self, x: Any) -> bool:
        return self.backend.dtype_of(x).kind in ("int", "uint")

    def floor_divide(self, x: Any, y: Any) -> Any:
        """The floor of the quotient; of integers it is zero where the divisor is."""
        space, xp = self.namespace, self.xp
        if self._is_integer(x):
            return self._of_integers(space.floor_divide, x, y)
        quotient = space.divide(x, y)
        # Where one of them is infinite, or the first is zero, the quotient has a limit or a sign that libraries lose.
        plain = space.isfinite(x) & space.isfinite(y) & (x != 0)
        return xp.where(plain, space.floor_divide(x, xp.where(plain, y, xp.ones_like(y))), space.floor(quotient))

    def remainder(self, x: Any, y: Any) -> Any:
        """What is left by `floor_divide`, with the sign of the divisor: zeros have it too."""
        space, xp = self.namespace, self.xp
        if self._is_integer(x):
            return self._of_integers(space.remainder, x, y)
        found = space.remainder(x, y)
        return xp.where(found == 0, space.copysign(found, y), found)

    def _of_integers(self, function: Any, x: Any, y: Any) -> Any:
        xp = self.xp
        is_zero = xp.equal(y, xp.zeros_like(y))
        found = function(x, xp.where(is_zero, xp.ones_like(y), y))
        return xp.where(is_zero, xp.zeros_like(found), found)

    def reciprocal(self, x: Any) -> Any:
        """1 / x; of integers it is zero but for 1 and -1."""
        if not self._is_integer(x):
            return self.namespace.reciprocal(x)
        xp, one = self.xp, self.xp.ones_like(x)
        is_one = xp.equal(x, one)
        if self.backend.dtype_of(x).kind == "int":
            is_one = is_one | xp.equal(x, -one)
        return xp.where(is_one, x, xp.zeros_like(x))

    def sign(self, x: Any) -> Any:
        """-1, 0 or 1; NaN for NaN."""
        if self.backend.dtype_of(x).kind == "uint":
            return self.xp.astype(self.xp.not_equal(x, self.xp.zeros_like(x)), x.dtype)
        found = self.namespace.sign(x)
        if self._is_integer(x):
            return found
        found = self.xp.where(x == 0, self.xp.zeros_like(x), found)
        nothing = x * math.nan if self.backend.dtype_of(x).kind == "complex" else x  # in both parts
        return self.xp.where(x != x, nothing, found)

    def pow(self, x: Any, y: Any) -> Any:
        """x to the power y, also where the logarithm of x, by which libraries compute it, is infinite."""
        kind = self.backend.dtype_of(x).kind
        if kind == "int" and self.backend.is_concrete(y) and bool(self.namespace.any(y < 0)):
            raise ValueError("Integers to negative integer powers are not allowed.")
        found = self.namespace.pow(x, y)
        if kind != "complex":
            return found
        found = self.xp.where((x == 0) & (self.namespace.real(y) > 0), self.xp.zeros_like(found), found)
        return self.xp.where(y == 0, self.xp.ones_like(found), found)

    def floor(self, x: Any) -> Any:
        return self._rounded(x, self.namespace.floor)

    def ceil(self, x: Any) -> Any:
        return self._rounded(x, self.namespace.ceil)

    def trunc(self, x: Any) -> Any:
        return self._rounded(x, self.namespace.trunc)

    def round(self, x: Any) -> Any:
        return self._rounded(x, self.namespace.round)

    def _rounded(self, x: Any, function: Any) -> Any:
        """Integers and booleans are what they are."""
        return function(x) if self.backend.is_floating(x) else self.backend.copy(x)
