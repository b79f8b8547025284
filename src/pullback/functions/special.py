"""Special functions, with the names that SciPy gives them. They need NumPy alone."""

from __future__ import annotations

from operator import index
from typing import Any

from ..autodiff import fast
from ..autodiff.apply import PYTHON_SCALARS
from ..errors import DtypeError
from ..tensor.core import Tensor
from .activations import sigmoid
from .creation import asarray, default_dtype
from .documented import elementwise

__all__ = [
    "digamma", "erf", "erfc", "erfcx", "expit", "gammaln", "i0", "i0e", "i1", "i1e", "log_ndtr", "logit", "ndtr",
    "polygamma", "xlogy",
]  # fmt: skip


def _elementwise(name: str, text: str) -> Any:
    return elementwise(name, text, __name__)


expit = sigmoid
_polygamma = fast.call_for("polygamma")

erf = _elementwise(
    "erf",
    """The error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    >>> import pullback as pb
    >>> pb.erf(pb.tensor([-10.0, 0.0, 10.0]))
    tensor([-1.,  0.,  1.])
    """,
)
erfc = _elementwise(
    "erfc",
    """1 - erf(x), without losing digits where erf(x) is close to 1.

    >>> import pullback as pb
    >>> pb.erfc(pb.tensor(10.0, dtype=pb.float64)).item() < 1e-44
    True
    """,
)
erfcx = _elementwise(
    "erfcx",
    """erfc(x) exp(x**2): of moderate size where erfc(x) is too small to be represented.

    >>> import pullback as pb
    >>> round(pb.erfcx(pb.tensor(1000.0, dtype=pb.float64)).item(), 8)
    0.00056419
    """,
)
ndtr = _elementwise(
    "ndtr",
    """The distribution function of the standard normal distribution.

    >>> import pullback as pb
    >>> pb.ndtr(pb.tensor([-10.0, 0.0, 10.0])).tolist()[1:]
    [0.5, 1.0]
    """,
)
log_ndtr = _elementwise(
    "log_ndtr",
    """log(ndtr(x)), also where ndtr(x) is too small to be represented.

    >>> import pullback as pb
    >>> round(pb.log_ndtr(pb.tensor(-1000.0, dtype=pb.float64)).item(), 3)
    -500007.827
    """,
)
logit = _elementwise(
    "logit",
    """log(x / (1 - x)), the inverse of `sigmoid`: infinite at 0 and at 1, and not a number outside.

    >>> import pullback as pb
    >>> pb.logit(pb.tensor([0.0, 0.5, 1.0]))
    tensor([-inf,   0.,  inf])
    """,
)
gammaln = _elementwise(
    "gammaln",
    """The logarithm of the absolute value of the gamma function.

    >>> import pullback as pb
    >>> pb.gammaln(pb.tensor([1.0, 2.0, 0.0]))
    tensor([ 0.,  0., inf])
    """,
)
digamma = _elementwise(
    "digamma",
    """The derivative of `gammaln`.

    >>> import pullback as pb
    >>> round(pb.digamma(pb.tensor(1.0, dtype=pb.float64)).item(), 6)
    -0.577216
    """,
)
i0 = _elementwise(
    "i0",
    """The modified Bessel function of the first kind of order 0.

    >>> import pullback as pb
    >>> pb.i0(pb.tensor(0.0)).item()
    1.0
    """,
)
i1 = _elementwise(
    "i1",
    """The modified Bessel function of the first kind of order 1.

    >>> import pullback as pb
    >>> pb.i1(pb.tensor(0.0)).item()
    0.0
    """,
)
i0e = _elementwise(
    "i0e",
    """i0(x) exp(-|x|).

    >>> import pullback as pb
    >>> round(pb.i0e(pb.tensor(1000.0, dtype=pb.float64)).item(), 6)
    0.012617
    """,
)
i1e = _elementwise(
    "i1e",
    """i1(x) exp(-|x|).

    >>> import pullback as pb
    >>> round(pb.i1e(pb.tensor(-1000.0, dtype=pb.float64)).item(), 6)
    -0.012611
    """,
)
_xlogy = fast.function_for("xlogy")


def xlogy(x: Any, y: Any) -> Tensor:
    """x log(y), and 0 where x is 0, even if y is 0 too.

    >>> import pullback as pb
    >>> pb.xlogy(pb.tensor([0.0, 2.0]), pb.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    if isinstance(y, Tensor) and type(x) in PYTHON_SCALARS:
        x = _number_beside(x, y)
    elif isinstance(x, Tensor) and type(y) in PYTHON_SCALARS:
        y = _number_beside(y, x)
    return _xlogy(x, y)


def _number_beside(number: Any, tensor: Tensor) -> Any:
    """A number as a tensor that goes with another one, whose dtype it leaves alone."""
    if type(number) is complex:
        return number
    is_inexact = tensor.dtype.kind in ("float", "complex")
    return asarray(number, dtype=tensor.dtype if is_inexact else default_dtype(), device=tensor.device)


def polygamma(n: int, x: Any) -> Tensor:
    """The derivative of order `n` of `digamma`.

    >>> import pullback as pb
    >>> round(pb.polygamma(1, pb.tensor(1.0, dtype=pb.float64)).item(), 6)
    1.644934
    """
    try:
        order = index(n)
    except TypeError:
        raise DtypeError(f"polygamma: the order n must be an integer, got {n!r}. It comes before x.") from None
    if order < 0:
        raise ValueError(f"polygamma: the order n must not be negative, got {order}.")
    return digamma(x) if order == 0 else _polygamma(x, order)
