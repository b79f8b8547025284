"""Special functions, with the names that SciPy gives them. They need NumPy alone."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from ..autodiff import base
from ..autodiff.apply import apply, as_operand
from ..autodiff.base import PYTHON_SCALARS, TensorBase
from ..autodiff.creation import default_dtype, given as asarray
from ..autodiff.fast import call_for, fast_path
from ..errors import DtypeError
from ..operations import OPERATIONS
from .activations import sigmoid

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import Operand

__all__ = [
    "digamma", "erf", "erfc", "erfcx", "erfinv", "expit", "gammaln", "i0", "i0e", "i1", "i1e", "log_ndtr", "logit",
    "ndtr", "polygamma", "xlogy", "zeta",
]  # fmt: skip


expit = sigmoid
_polygamma = call_for("polygamma")


@fast_path
def erf(x: Operand) -> Tensor:
    """The error function of each element of `x`: 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    >>> import pullback as pb
    >>> pb.erf(pb.tensor([-10.0, 0.0, 10.0]))
    tensor([-1.,  0.,  1.])
    """
    return apply(OPERATIONS["erf"], (x,))


@fast_path
def erfc(x: Operand) -> Tensor:
    """1 - erf(x), without losing digits where erf(x) is close to 1.

    >>> import pullback as pb
    >>> pb.erfc(pb.tensor(10.0, dtype=pb.float64)).item() < 1e-44
    True
    """
    return apply(OPERATIONS["erfc"], (x,))


@fast_path
def erfcx(x: Operand) -> Tensor:
    """erfc(x) exp(x**2): of moderate size where erfc(x) is too small to be represented.

    >>> import pullback as pb
    >>> round(pb.erfcx(pb.tensor(1000.0, dtype=pb.float64)).item(), 8)
    0.00056419
    """
    return apply(OPERATIONS["erfcx"], (x,))


@fast_path
def erfinv(x: Operand) -> Tensor:
    """The number whose `erf` is x: infinite at -1 and at 1, and not a number outside.

    Parameters
    ----------
    x : array of real numbers

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.erfinv(pb.erf(pb.tensor([0.0, 0.25]))), pb.erfinv(pb.tensor(-1.0))
    (tensor([0.  , 0.25]), tensor(-inf))
    """
    return apply(OPERATIONS["erfinv"], (x,))


@fast_path
def ndtr(x: Operand) -> Tensor:
    """The distribution function of the standard normal distribution at each element of `x`.

    >>> import pullback as pb
    >>> pb.ndtr(pb.tensor([-10.0, 0.0, 10.0])).tolist()[1:]
    [0.5, 1.0]
    """
    return apply(OPERATIONS["ndtr"], (x,))


@fast_path
def log_ndtr(x: Operand) -> Tensor:
    """log(ndtr(x)), also where ndtr(x) is too small to be represented.

    >>> import pullback as pb
    >>> round(pb.log_ndtr(pb.tensor(-1000.0, dtype=pb.float64)).item(), 3)
    -500007.827
    """
    return apply(OPERATIONS["log_ndtr"], (x,))


@fast_path
def logit(x: Operand) -> Tensor:
    """log(x / (1 - x)), the inverse of `sigmoid`: infinite at 0 and at 1, and not a number outside.

    >>> import pullback as pb
    >>> pb.logit(pb.tensor([0.0, 0.5, 1.0]))
    tensor([-inf,   0.,  inf])
    """
    return apply(OPERATIONS["logit"], (x,))


@fast_path
def gammaln(x: Operand) -> Tensor:
    """The logarithm of the absolute value of the gamma function at each element of `x`.

    >>> import pullback as pb
    >>> pb.gammaln(pb.tensor([1.0, 2.0, 0.0]))
    tensor([ 0.,  0., inf])
    """
    return apply(OPERATIONS["gammaln"], (x,))


@fast_path
def digamma(x: Operand) -> Tensor:
    """The derivative of `gammaln` at each element of `x`.

    >>> import pullback as pb
    >>> round(pb.digamma(pb.tensor(1.0, dtype=pb.float64)).item(), 6)
    -0.577216
    """
    return apply(OPERATIONS["digamma"], (x,))


@fast_path
def i0(x: Operand) -> Tensor:
    """The modified Bessel function of the first kind of order 0 at each element of `x`.

    >>> import pullback as pb
    >>> pb.i0(pb.tensor(0.0)).item()
    1.0
    """
    return apply(OPERATIONS["i0"], (x,))


@fast_path
def i1(x: Operand) -> Tensor:
    """The modified Bessel function of the first kind of order 1 at each element of `x`.

    >>> import pullback as pb
    >>> pb.i1(pb.tensor(0.0)).item()
    0.0
    """
    return apply(OPERATIONS["i1"], (x,))


@fast_path
def i0e(x: Operand) -> Tensor:
    """i0(x) exp(-|x|) for each element of `x`: `i0` without overflow.

    >>> import pullback as pb
    >>> round(pb.i0e(pb.tensor(1000.0, dtype=pb.float64)).item(), 6)
    0.012617
    """
    return apply(OPERATIONS["i0e"], (x,))


@fast_path
def i1e(x: Operand) -> Tensor:
    """i1(x) exp(-|x|) for each element of `x`: `i1` without overflow.

    >>> import pullback as pb
    >>> round(pb.i1e(pb.tensor(-1000.0, dtype=pb.float64)).item(), 6)
    -0.012611
    """
    return apply(OPERATIONS["i1e"], (x,))


@fast_path
def _xlogy(x: Any, y: Any) -> Tensor:
    return apply(OPERATIONS["xlogy"], (x, y))


def xlogy(x: Operand, y: Operand) -> Tensor:
    """x log(y), and 0 where x is 0, even if y is 0 too.

    >>> import pullback as pb
    >>> pb.xlogy(pb.tensor([0.0, 2.0]), pb.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    if isinstance(y, base.Tensor) and type(x) in PYTHON_SCALARS:
        x = _number_beside(x, y)
    elif isinstance(x, base.Tensor) and type(y) in PYTHON_SCALARS:
        y = _number_beside(y, x)
    return _xlogy(x, y)


def _number_beside(number: Any, tensor: TensorBase) -> Any:
    """A number as a tensor that goes with another one, whose dtype it leaves alone."""
    if type(number) is complex:
        return number
    is_inexact = tensor.dtype.kind in ("float", "complex")
    return asarray(number, dtype=tensor.dtype if is_inexact else default_dtype(), device=tensor.device)


def polygamma(n: int, x: Operand) -> Tensor:
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


def zeta(x: Operand, q: Any) -> Tensor:
    """The sum of (q + k)**-x over k = 0, 1, 2, ...: Hurwitz' zeta function. With q = 1 it is Riemann's.

    Parameters
    ----------
    x : array or number
        The exponents. At 1 the sum is infinite, and below it does not exist. They have no gradient.
    q : array or number
        Where the sum begins. At 0, -1, ... it is infinite; between them it exists for integer exponents.

    Returns
    -------
    Tensor
        In the shape to which both broadcast.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.zeta(2.0, pb.tensor([1.0, 2.0], dtype=pb.float64))
    tensor([1.64493407, 0.64493407], dtype=float64)
    """
    x, q = _floats("zeta", x), _floats("zeta", q)
    if isinstance(q, base.Tensor) and type(x) in PYTHON_SCALARS:
        x = _number_beside(x, q)
    elif isinstance(x, base.Tensor) and type(q) in PYTHON_SCALARS:
        q = _number_beside(q, x)
    return apply(OPERATIONS["zeta"], (x, q))


def _floats(name: str, x: Any) -> Any:
    """An operand as a tensor of floating-point numbers; numbers and None stay what they are."""
    x = as_operand(x, OPERATIONS[name])
    kind = "complex" if type(x) is complex else x.dtype.kind if isinstance(x, base.Tensor) else "float"
    if kind == "complex":
        raise DtypeError(f"{name}: expected real numbers, got complex ones.")
    return x if kind == "float" else x * 1.0
